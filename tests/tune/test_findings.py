"""What a smaller search would have found, checked by counting; which hyperparameters matter, where it is known."""

from __future__ import annotations

import itertools
import math
import statistics

import pytest

from calibrant.tune.findings import expected_best, importance

VALUES = [0.7, 0.1, 0.4, 0.4, 2.5, 0.3]


@pytest.mark.parametrize(("minimise", "best"), [(True, min), (False, max)])
def test_the_expected_best_is_the_mean_over_all_draws(minimise: bool, best: type[min]) -> None:
    curve = expected_best(VALUES, minimise)
    counted = [
        statistics.fmean(best(drawn) for drawn in itertools.combinations(VALUES, k)) for k in range(1, len(VALUES) + 1)
    ]
    assert curve == pytest.approx(counted)
    assert curve[0] == pytest.approx(statistics.fmean(VALUES)) and curve[-1] == best(VALUES)


def test_no_trials_no_curve() -> None:
    assert expected_best([]) == ()
    assert expected_best([3.0]) == (3.0,)
    assert all(math.isfinite(one) for one in expected_best([float(i) for i in range(2000)])[::100])


def test_importance_finds_what_matters() -> None:
    points = [
        {"l2": f"{10.0**i:g}", "lr": str(j), "form": word} for i in range(-3, 3) for j in range(3) for word in "ab"
    ]
    shares = importance(points, [math.log10(float(point["l2"])) ** 2 for point in points])
    assert next(iter(shares)) == "l2" and shares["l2"] > 0.9 and sum(shares.values()) == pytest.approx(1)
    shares = importance(points, [float(point["form"] == "a") for point in points])
    assert shares["form"] > 0.9
    assert importance(points, [float(point["form"] == "a") for point in points]) == shares


def test_what_says_nothing_says_nothing() -> None:
    points = [{"l2": str(i), "lr": "1"} for i in range(5)]
    assert importance(points[:3], [1.0, 2.0, 3.0]) == {}  # too few
    assert importance([{"l2": "1"}] * 5, [1.0, 2.0, 3.0, 4.0, 5.0]) == {}  # nothing varies
    assert importance(points, [1.0] * 5) == {}  # nothing follows
    assert importance(points, [1.0, 2.0, 3.0, 4.0, 5.0]) == {"l2": pytest.approx(1)}  # lr did not vary
    assert importance([], []) == {}
