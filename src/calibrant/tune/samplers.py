"""Who proposes the next configurations: Optuna's samplers, asked in batches over our own store.

Nothing of a sampler is stored. Before a batch is asked for, Optuna's study is made anew from the trials that have been
judged, and the sampler gets a fresh seed for every trial number: a study that was interrupted goes on exactly as one
that was not. CMA-ES keeps a state between generations; it is led through the past batches again, which takes
milliseconds.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any

from calibrant import seeds
from calibrant.registry import nearest
from calibrant.tune.spaces import Choice, Point, Range, Space
from calibrant.types import CalibrantError

if TYPE_CHECKING:
    import optuna

NAMES = ("grid", "random", "tpe", "cmaes", "gp")
LEARNING = ("tpe", "cmaes", "gp")  # those whose proposals depend on what was found before
BATCH = 8  # trials that are proposed together by a sampler that learns; one generation of CMA-ES


@dataclass(frozen=True)
class Judged:
    """A trial as a sampler sees it."""

    number: int
    batch: int
    point: Point
    objective: float | None  # None: it failed


@dataclass(frozen=True)
class Proposer:
    """A sampler other than the grid, with all that its proposals depend on except the past."""

    sampler: str
    space: Space
    minimise: bool
    seed: int

    def propose(self, past: Sequence[Judged], numbers: Sequence[int]) -> list[Point]:
        """Points for trials of these numbers; none of them knows how the others of the batch will end."""
        study = self._study()
        if self.sampler == "cmaes":
            self._relive(study, past)
        else:
            for trial in past:
                self._add(study, trial)
        return [self._point(self._ask(study, number)) for number in numbers]

    def _study(self) -> optuna.Study:
        import optuna

        optuna.logging.set_verbosity(optuna.logging.WARNING)
        return optuna.create_study(direction="minimize" if self.minimise else "maximize")

    def _add(self, study: optuna.Study, trial: Judged) -> None:
        """Tell the study about a trial as it stands; one that failed, or lies outside of the space, teaches nothing."""
        import optuna

        if trial.objective is None or not inside(trial.point, self.space):
            return
        distributions = {name: distribution(one) for name, one in self.space.items()}
        values = {name: value(one, trial.point[name]) for name, one in self.space.items()}
        told = optuna.trial.create_trial(params=values, distributions=distributions, value=trial.objective)
        study.add_trial(told)

    def _relive(self, study: optuna.Study, past: Sequence[Judged]) -> None:
        """Ask and tell all over again, batch by batch; trial 0 is the user's own and was never asked for."""
        import optuna

        for _, batch in groupby(past, key=lambda trial: trial.batch):
            asked = []
            for trial in batch:
                if trial.number == 0:
                    self._add(study, trial)
                    continue
                again = self._ask(study, trial.number)
                if self._point(again) != dict(trial.point):
                    raise CalibrantError(
                        f"trial {trial.number} was proposed by another version of Optuna or of the cmaes package, so "
                        "CMA-ES cannot continue this study: give another --seed to start a new one"
                    )
                asked.append((again, trial.objective))
            for again, objective in asked:
                state = optuna.trial.TrialState.FAIL if objective is None else optuna.trial.TrialState.COMPLETE
                study.tell(again, objective, state=state)

    def _ask(self, study: optuna.Study, number: int) -> optuna.Trial:
        study.sampler = _sampler(self.sampler, seeds.child("tune", self.seed, number) % 2**32)
        return study.ask({name: distribution(one) for name, one in self.space.items()})

    def _point(self, trial: optuna.Trial) -> dict[str, str]:
        return {
            name: one.word(trial.params[name]) if isinstance(one, Range) else str(trial.params[name])
            for name, one in self.space.items()
        }


def check_name(name: str) -> None:
    """Refuse, in one sentence, a sampler that is not there."""
    if name not in NAMES:
        raise CalibrantError(f"unknown sampler '{name}'{nearest(name, NAMES)}; there are {', '.join(NAMES)}")
    if name == "gp" and importlib.util.find_spec("torch") is None:
        raise CalibrantError(
            "sampler gp (Gaussian processes) needs torch, which is not installed: install it, or choose --sampler tpe"
        )


def check_sampler(name: str, space: Space) -> None:
    """Refuse, in one sentence, a sampler that cannot search this space."""
    ranges = [key for key, one in space.items() if isinstance(one, Range)]
    if name == "cmaes" and len(ranges) < 2:
        raise CalibrantError(
            "sampler cmaes needs at least two ranges, as in l2=0.01..100:log,prior_scale=0.3..30:log; "
            f"here it has {len(ranges)}"
        )


def inside(point: Point, space: Space) -> bool:
    return all(name in point and one.holds(point[name]) for name, one in space.items())


def distribution(one: Choice | Range) -> optuna.distributions.BaseDistribution:
    from optuna import distributions

    if isinstance(one, Choice):
        return distributions.CategoricalDistribution(one.values)
    if one.whole:
        return distributions.IntDistribution(int(one.low), int(one.high), log=one.log)
    return distributions.FloatDistribution(one.low, one.high, log=one.log)


def value(one: Choice | Range, word: str) -> Any:
    """A word of a spec as Optuna knows it."""
    if isinstance(one, Choice):
        return word
    return int(float(word)) if one.whole else float(word)


def _sampler(name: str, seed: int) -> optuna.samplers.BaseSampler:
    from optuna import samplers

    if name == "tpe":
        return samplers.TPESampler(seed=seed)
    if name == "gp":
        return samplers.GPSampler(seed=seed)
    if name == "cmaes":  # words are drawn at random beside it
        return samplers.CmaEsSampler(seed=seed, popsize=BATCH, warn_independent_sampling=False)
    return samplers.RandomSampler(seed=seed)
