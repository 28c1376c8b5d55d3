"""Suites held against each other: who takes part, on which environments, in words, tables and drawings."""

from __future__ import annotations

import json
import math
import xml.etree.ElementTree as ET
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import pearsonr, spearmanr

from calibrant import registry
from calibrant.report.contenders import shared_methods, usual_metric
from calibrant.report.correlation import Comparison, compare, compare_series, held_together
from calibrant.report.correlation_charts import extent, heat_chart, placed, scatter_chart
from calibrant.report.correlation_matrix import Matrix, compare_values, matrices
from calibrant.report.correlation_view import correlation_view, plain
from calibrant.report.figure import figure_svg, matrix_svg, scatter_svg, write_figure
from calibrant.report.html import render, render_correlation
from calibrant.report.page import suite_page
from calibrant.stats.intervals import Interval
from calibrant.suites.base import Suite
from calibrant.types import CalibrantError, Cell, Record, Scores

TESTBED: Suite = registry.load("suites", "testbed")
HD: Suite = registry.load("suites", "testbed-hd")
ROBUST: Suite = registry.load("suites", "robustness")
LEVELS = {"mlp": 1.0, "ensemble": 0.8, "dropout": 0.7, "bbb": 0.6, "hypermodel": 0.5, "ensemble+": 0.3}
HERE, THERE = ("testbed", "testbed?train=100"), ("testbed?dim=10", "testbed?train=100&dim=100")


def record(agent: str, problem: str, seed: int, loss: float) -> Record:
    names = ("kl_tau1", "kl_tau10", "kl_tau10_dyadic")
    scores = {name: Scores(loss if name != "kl_tau1" else 2 - loss) for name in names}
    cell = Cell(problem, agent, seed, f"{problem}{agent}{seed}")
    return Record(cell, {} if math.isnan(loss) else scores, reason="broke" if math.isnan(loss) else None)


def records(problems: tuple[str, ...], levels: Mapping[str, float] = LEVELS, power: float = 1.0) -> list[Record]:
    """Levels to a power, times what an environment does to all agents, with a little that it does to each."""
    rng = np.random.default_rng(7)
    return [
        record(agent, problem, seed, level**power * (1 + seed / 5) * float(np.exp(0.05 * rng.normal())))
        for agent, level in levels.items()
        for problem in problems
        for seed in range(3)
    ]


def both(**options: object) -> Comparison:
    return compare((TESTBED, records(HERE)), (HD, records(THERE, power=2.0)), **options)  # type: ignore[arg-type]


def laws(levels: Mapping[str, float] = LEVELS) -> list[Record]:
    problems = ROBUST.preset("quick").problems
    return records(tuple(problem for problem in problems if "train=100" not in problem), levels)


def test_means_and_coefficients_are_what_scipy_finds() -> None:
    found = both()
    assert [point.agent for point in found.points] == sorted(LEVELS)
    assert (found.a.metric, found.b.metric, found.a.environments) == ("kl_tau10_dyadic", "kl_tau10_dyadic", 6)
    a, b = (np.array([getattr(point, side).mean for point in found.points]) for side in "ab")
    own = [one.scores["kl_tau10"].mean for one in records(HERE) if one.cell.agent == found.points[0].agent]
    assert a[0] == pytest.approx(np.mean(own))
    known = {one.kind: one for one in found.correlations}
    assert known["pearson"].value == pytest.approx(pearsonr(a, b).statistic)
    assert known["log"].value == pytest.approx(pearsonr(np.log(a), np.log(b)).statistic)
    assert known["rank"].value == pytest.approx(spearmanr(a, b).statistic)
    assert known["log"].value > known["pearson"].value > 0.9  # a power law is a line of logarithms
    assert known["log"].low <= known["log"].value <= known["log"].high <= 1


def test_each_side_has_its_metric() -> None:
    """tau=1 runs against the others by construction."""
    assert both(metrics=("kl_tau1", None)).correlations[2].value == pytest.approx(-1, abs=0.2)
    own = (TESTBED, records(HERE))
    same = compare(own, own, metrics=("kl_tau10", "kl_tau10_dyadic"))
    assert {(one.value, one.low, one.high) for one in same.correlations} == {(1.0, 1.0, 1.0)}
    assert usual_metric(TESTBED) == usual_metric(HD) == "kl_tau10_dyadic"


def test_controls_take_part_only_when_named() -> None:
    levels = LEVELS | {"uniform": 5.0, "oracle": 0.0}
    sides = (TESTBED, records(HERE, levels)), (HD, records(THERE, levels | {"knn": 2.0}))
    found = compare(*sides)
    assert dict(found.left_out) == {
        "uniform": "a control agent", "oracle": "a control agent", "knn": "no score in suite 'testbed'",
    }  # fmt: skip
    assert "left out: oracle, uniform (a control agent)" in plain(found)
    named = compare(*sides, agents=["uniform", "oracle", "mlp", "ensemble"])
    assert [point.agent for point in named.points] == ["ensemble", "mlp", "oracle", "uniform"] and not named.left_out
    assert math.isnan({one.kind: one.value for one in named.correlations}["log"])  # the oracle's loss is 0
    assert json.loads(json.dumps(named.to_json(), allow_nan=False))["correlations"][1]["value"] is None


def test_methods_may_have_other_parameters_on_either_side() -> None:
    """As when agents are tuned for each suite; of several specs of a method one has to be named."""
    there = {f"{agent}?lr=0.1" if agent != "mlp" else agent: level for agent, level in LEVELS.items()}
    here, other = (TESTBED, records(HERE)), (HD, records(THERE, there))
    with pytest.raises(CalibrantError, match="share mlp"):
        compare(here, other)
    found, same = compare(here, other, match="method"), compare(here, (HD, records(THERE)))
    assert [point.agent for point in found.points] == sorted(LEVELS)
    assert found.correlations == same.correlations
    assert found.points[0].specs == ("bbb", "bbb?lr=0.1") and "bbb is bbb here and bbb?lr=0.1 there" in plain(found)
    several = (HD, records(THERE, there | {"bbb?lr=0.2": 3.0}))
    with pytest.raises(CalibrantError, match=r"several specs of 'bbb', bbb\?lr=0.1, bbb\?lr=0.2: name one by --agents"):
        compare(here, several, match="method")
    twice = (HD, records(THERE, there | {"bbb": 3.0}))
    assert compare(here, twice, match="method").points[0].specs == ("bbb", "bbb")  # the one with defaults only
    named = compare(here, twice, match="method", agents=["bbb?lr=0.1", "mlp", "dropout"])
    assert [point.specs for point in named.points] == [
        ("bbb", "bbb?lr=0.1"), ("dropout", "dropout?lr=0.1"), ("mlp", "mlp"),
    ]  # fmt: skip


def test_a_suite_against_every_value_of_a_field_of_another() -> None:
    """Each value is the comparison with its part alone; one with too few agents is passed over with the reason."""
    few = [one for one in records(THERE[1:], power=2.0) if one.cell.agent in ("mlp", "bbb")]
    here, there = (TESTBED, records(HERE)), (HD, [*records(THERE[:1], power=2.0), *few])
    found = compare_series(here, there, "dim", blocks=3)
    alone = compare(here, (HD, records(THERE[:1], power=2.0)), blocks=3, part="dim=10")
    assert list(found.comparisons) == ["10"] and found.comparisons["10"].to_json() == alone.to_json()
    assert list(found.passed_over) == ["100"]
    assert "share bbb, mlp" in found.passed_over["100"]
    lines = plain(found).splitlines()
    assert lines[0].startswith("testbed: KL τ=10 dyadic against testbed-hd: KL τ=10 dyadic, by dim")
    assert lines[3].split()[:3] == ["10", "6", "3"] and lines[-1].startswith("passed over: dim=100 (")
    assert json.loads(json.dumps(found.to_json(), allow_nan=False))["values"]["10"]["b"]["part"] == "dim=10"
    with pytest.raises(CalibrantError, match="at least 3 agents"):
        compare_series(here, (HD, few), "dim")
    with pytest.raises(CalibrantError, match="no field 'dimm', did you mean 'dim'"):
        compare_series(here, there, "dimm")


def test_every_value_has_a_section_and_a_panel() -> None:
    found = compare_series((TESTBED, records(HERE)), (HD, records(THERE)), "dim", blocks=3)
    page = render_correlation(found)
    assert (
        page.count('data-chart="correlation"') == 2 and 'id="part-2"' in page and "Correlations of logarithms" in page
    )
    panels = ET.fromstring(figure_svg(found)).findall("{*}g/{*}svg")
    assert len(panels) == 2
    points = {circle.attrib["r"] for circle in panels[0].findall("{*}circle")}
    assert points == {"5", "2.5"} and len(panels[0].findall("{*}circle")) == len(LEVELS) * 4  # means, and three blocks


def test_a_report_of_several_suites_holds_them_together() -> None:
    """Bandits against the testbed's marginal and joint scores, by dimension; others by the usual score."""
    bandit: Suite = registry.load("suites", "bandit")
    regret = [
        Record(one.cell, {"regret": one.scores["kl_tau10"]})
        for one in records(("bandit", "bandit?dim=10"), LEVELS | {"uniform": 9.0})
    ]
    sides = [(bandit, regret), (TESTBED, records(HERE)), (HD, records(THERE))]
    pairs = {(one.field, *_metrics(part)) for one in held_together(sides[:2]) for part in one.comparisons.values()}
    assert pairs == {("dim", metric, "regret", f"dim={dim}") for metric in ("kl_tau1", "kl_tau10") for dim in (2, 10)}
    assert [type(one).__name__ for one in held_together(sides)] == ["Series"] * 4 + ["Comparison"]
    assert held_together([(TESTBED, records(HERE, {"mlp": 1.0})), (HD, records(THERE))]) == []
    page = render([suite_page(regret, bandit)], held_together(sides[:2]))
    assert page.count('data-chart="correlation"') == 4 and 'id="between-6"' in page


def _metrics(found: Comparison) -> tuple[str, str, str]:
    return found.a.metric, found.b.metric, found.b.part


def test_only_environments_that_all_agents_answered_count() -> None:
    own = records(HERE)
    broken = [
        record("mlp", HERE[0], 0, math.nan) if (c := one.cell).agent == "mlp" and c.seed == 0 else one for one in own
    ]
    assert compare((TESTBED, broken), (HD, records(THERE))).a.environments < 6
    rest = [one for one in own if (one.cell.agent == "mlp") == (one.cell.problem == HERE[0])]
    with pytest.raises(CalibrantError, match="no environment of suite 'testbed' was answered by all of bbb, "):
        compare((TESTBED, rest), (HD, records(THERE)))


@pytest.mark.parametrize(
    ("levels", "options", "said"),
    [
        (
            {"mlp": 1.0, "bbb": 2.0, "uniform": 3.0},
            {},
            "at least 3 agents .* 'testbed' and suite 'testbed-hd' share bbb, mlp",
        ),
        ({"knn": 1.0}, {}, "share none"),
        (LEVELS, {"agents": ["mlp", "bbb"]}, "at least 3 agents .* share bbb, mlp"),
        (
            LEVELS,
            {"agents": ["mlp", "bbb", "ensemble?size=10"]},
            "'ensemble.size=10' has no score in suite 'testbed', did",
        ),
        (LEVELS, {"agents": ["mlp", "bbb", "nobody"]}, "unknown agent 'nobody'"),
        (LEVELS, {"metrics": ("kl_tau11", None)}, "suite 'testbed' has a metric 'kl_tau11', did you mean 'kl_tau1'"),
    ],
)
def test_wrong_input_is_one_sentence(levels: Mapping[str, float], options: dict[str, object], said: str) -> None:
    with pytest.raises(CalibrantError, match=said) as caught:
        compare((TESTBED, records(HERE)), (HD, records(THERE, levels)), **options)  # type: ignore[arg-type]
    assert "\n" not in str(caught.value)


def test_laws_are_compared_one_thing_at_a_time() -> None:
    """Activations at the default width, in the paper's order; widths at the default activation, ascending."""
    own = laws()
    by_activation, by_width = (compare_values(own, ROBUST, field, metric="kl_tau10") for field in ROBUST.compared)
    assert by_activation.values == ("tanh", "swish", "sigmoid", "selu", "relu", "leaky_relu", "gelu")
    assert by_width.values == ("5x5", "10x10", "20x20", "50x50", "100x100")
    assert by_activation.environments == (3,) * 7
    cells = by_width.cells
    for i, j in ((0, 4), (2, 1)):
        assert cells[i][j].value == pytest.approx(cells[j][i].value) and cells[i][j].value > 0.9
    assert all(cells[i][i].value == pytest.approx(1) for i in range(5))
    train = compare_values(records(HERE), TESTBED, "train", kind="rank")
    assert train.values == ("10", "100") and train.kind == "rank"


def test_wrong_fields_are_one_sentence() -> None:
    with pytest.raises(CalibrantError, match="no field 'activaton', did you mean 'activation'"):
        compare_values(laws(), ROBUST, "activaton")
    with pytest.raises(CalibrantError, match="only one temp: there is nothing to correlate"):
        compare_values(laws(), ROBUST, "temp")


def test_a_report_shows_the_matrices_it_has_records_for() -> None:
    found = matrices(laws(), ROBUST)
    assert [(one.field, one.metric) for one in found] == [
        (field, metric) for field in ("activation", "hidden") for metric in ("kl_tau1", "kl_tau10")
    ]
    assert matrices(laws({"mlp": 1.0, "bbb": 2.0}), ROBUST) == [] and matrices(records(HERE), TESTBED) == []
    text = render([suite_page(laws(), ROBUST)])
    assert 'id="robustness-matrices"' in text and text.count('data-chart="matrix-') == 4
    assert "matrices" not in render([suite_page(records(HERE), TESTBED)]).partition("</main>")[0]


def test_charts_hold_every_agent_and_every_pair() -> None:
    scatter, heat = scatter_chart(both()), heat_chart(matrix())
    assert [value["agent"] for value in scatter.spec["data"]["values"]] == sorted(LEVELS)
    assert len(heat.spec["data"]["values"]) == 49
    json.dumps([scatter.spec, heat.spec], allow_nan=False)
    x = scatter.spec["layer"][-1]["encoding"]["x"]
    assert x["scale"]["type"] == "log" and x["scale"]["domain"][0] < min(point.a.mean for point in both().points)


def test_axes_are_logarithmic_where_means_are_positive() -> None:
    """An interval that reaches to zero or below ends at the axis, a fifth of the smallest mean."""
    wide = [Interval(2000.0, -500.0, 4500.0, 10), Interval(100.0, 20.0, 180.0, 10), Interval(50.0, 40.0, 60.0, 10)]
    low, high, logarithmic = extent(wide)
    assert logarithmic and 7 < low < 10 and high > 4500
    place = placed(wide, 0.0, 1.0)
    assert place(-500.0) == 0 and place(100.0) - place(50.0) == pytest.approx(place(4000.0) - place(2000.0))
    assert extent([*wide, Interval(0.0, 0.0, 0.0, 10)])[2] is False


def matrix() -> Matrix:
    return compare_values(laws(), ROBUST, "activation", metric="kl_tau10")


def test_words_for_a_terminal() -> None:
    text = plain(both())
    assert text.startswith("6 agents on 6 environments of testbed and 6 environments of testbed-hd; means")
    assert "of ranks (Spearman)" in text and "5th to 95th percentile" in text
    lines = plain(matrix()).splitlines()
    assert [line.split()[0] for line in lines if line.startswith(("swish", "gelu", "selu"))] == [
        "swish",
        "selu",
        "gelu",
    ]


def test_a_page_is_whole_and_escaped(tmp_path: Path) -> None:
    levels = {"mlp": 1.0, "bbb": 0.5, "x.py:</script><b>": 0.7}
    found = compare((TESTBED, records(HERE, levels)), (HD, records(THERE, levels)))
    page = render_correlation(found)
    assert "</script><b>" not in page and "x.py:&lt;/script&gt;" in page
    assert "http-equiv" in page and 'data-chart="correlation"' in page
    assert correlation_view(matrix())["tables"][0]["head"][0] == "activation"
    write_figure(tmp_path / "m.html", matrix())
    assert 'data-chart="matrix-activation-kl_tau10"' in (tmp_path / "m.html").read_text()


def test_drawings_are_well_formed(tmp_path: Path) -> None:
    levels = {"mlp": 1.0, "bbb": 0.5, "x.py:<b>": 0.7}
    found = compare((TESTBED, records(HERE, levels)), (HD, records(THERE, levels)))
    drawn = ET.fromstring(scatter_svg(found))
    circles = drawn.findall("{*}circle")
    assert len(circles) == 3 and "x.py:<b>" in [text.text for text in drawn.findall("{*}text")]
    places = {point.agent: float(circle.attrib["cx"]) for point, circle in zip(found.points, circles, strict=True)}
    assert places["bbb"] < places["x.py:<b>"] < places["mlp"]
    squares = ET.fromstring(matrix_svg(matrix())).findall("{*}rect")
    assert len(squares) == 49 and squares[0].attrib["fill"] == "#0b6fb8"  # 1 on the diagonal
    write_figure(tmp_path / "s.svg", found)
    assert (tmp_path / "s.svg").read_text() == scatter_svg(found)
    with pytest.raises(CalibrantError, match=r"FILE.html or FILE.svg, not to 's.png'"):
        write_figure(Path("s.png"), found)


def test_a_method_with_several_specs_stands_by_the_one_of_a_preset() -> None:
    """Else a report of two suites would have to ask which of them is meant."""
    hd, real = (registry.load("suites", name) for name in ("testbed-hd", "real"))
    here = [
        Record(Cell("testbed", agent, 0, agent)) for agent in ("ensemble+?size=10", "ensemble+?size=3", "knn", "oracle")
    ]
    there = [
        Record(Cell("real", agent, 0, agent)) for agent in ("ensemble+?l2_form=fixed&size=10&prior_scale=1", "oracle")
    ]
    found = shared_methods((hd, here), (real, there))
    assert found == ["ensemble+?size=10", "ensemble+?l2_form=fixed&size=10&prior_scale=1"]
