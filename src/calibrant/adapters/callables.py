"""Any Python object or function as an agent: NumPy arrays in, NumPy arrays out.

**An agent** is one of

* an object with `fit(seed, train, facts)`;
* a function `agent(seed, train, facts)`;
* a function that can be called with no arguments and returns one of the above.

`seed` is an integer below 2**32. `train.x` is float32 [rows, inputs] and `train.y` is int64 [rows]: private copies
without padding. `facts` holds plain Python numbers, and never the true environment. Parameters of a spec such as
`my_agent.py:Agent?alpha=3` reach a dataclass as its annotations say, and any other class or function as words.

**A belief** is what the agent returns. It is recognised in this order:

1. it has a method `worlds(seed, n)`: a full belief. Its attribute `atoms` is the size of its finite support, or None
   (also when absent) if it has to be sampled. `worlds` gives a callable `x -> [n, batch, classes]`, which may carry an
   attribute `weights` [n];
2. it is a callable whose second parameter is required, or is named `seed` or `key`:
   `sampler(x, seed) -> [batch, classes]`. One seed is one world: the same seed must give the same function at every x;
3. it is a callable with one required parameter: `worlds(x) -> [n, batch, classes]`, always the same n worlds, which are
   the whole belief. It may carry an attribute `weights` [n].

All answers are logits. They have to be finite: a class that is thought impossible gets a very low logit, not -inf.
A sampler is really called once per world, each time with a fresh seed, so its randomness is seen and not baked in.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from calibrant import seeds
from calibrant.adapters.answers import Misshapen, check_logits, check_numbers, check_weights, shape_of
from calibrant.protocols import Belief
from calibrant.types import Array, CalibrantError, Data, Facts, Key

SEEDS = 2**32  # NumPy's, scikit-learn's, torch's and JAX's generators all take seeds below this
ODD = 0x9E3779B1  # steps of an odd size visit every seed once: no two worlds of a belief share one


class ModifiedInputs(CalibrantError):
    """An answer was computed by changing the inputs in place."""


@dataclass(frozen=True)
class BlackBoxAgent:
    """An agent that runs cell by cell on NumPy arrays and integer seeds."""

    run: Callable[[int, Data, Facts], Any]
    native: ClassVar[bool] = False

    def fit(self, key: Key, train: Data, facts: Facts) -> Belief:
        return self.fit_given(plain_seed(key), plain_data(train, facts), plain_facts(facts))

    def fit_given(self, seed: int, train: Data, facts: Facts) -> Belief:
        """Fit on exactly these arrays; `fit` protects the caller's with copies."""
        return as_belief(self.run(seed, train, facts), train, facts)


@dataclass(frozen=True)
class SampledBelief:
    """A belief behind `sampler(x, seed)`: every world has a seed of its own."""

    sampler: Callable[[Array, int], Array]
    classes: int
    atoms: None = None

    def worlds(self, key: Key, n: int) -> CheckedWorlds:
        first = seeds.child("worlds", key)
        chosen = [(first + world * ODD) % SEEDS for world in range(n)]
        return CheckedWorlds(lambda x: (self.sampler(x, seed) for seed in chosen), n, self.classes)


@dataclass(frozen=True)
class FiniteBelief:
    """A belief whose whole support is `function(x) -> [atoms, batch, classes]`; it is enumerated whatever n is."""

    function: Callable[[Array], Array]
    atoms: int
    classes: int
    weights: Array | None = None

    def worlds(self, key: Key, n: int) -> CheckedWorlds:
        return CheckedWorlds(_enumerated(self.function, self.atoms), self.atoms, self.classes, self.weights)


@dataclass(frozen=True)
class FullBelief:
    """A user's own belief with `worlds(seed, n)`, asked for all its atoms when it has finitely many."""

    belief: Any
    atoms: int | None
    classes: int

    def worlds(self, key: Key, n: int) -> CheckedWorlds:
        count = self.atoms or n
        worlds = self.belief.worlds(plain_seed(key), count)
        if not callable(worlds):
            raise CalibrantError(f"worlds(seed, n) gave {_kind(worlds)}; expected a callable x -> [n, batch, classes]")
        weights = check_weights(getattr(worlds, "weights", None), count)
        return CheckedWorlds(_enumerated(worlds, count), count, self.classes, weights)


@dataclass(frozen=True)
class CheckedWorlds:
    """Worlds whose every answer is checked for shape, kind and finiteness before it can become a score."""

    answers: Callable[[Array], Iterable[Array]]  # [batch, inputs] -> for each world, logits [batch, classes]
    count: int
    classes: int
    weights: Array | None = None

    def __call__(self, x: Array) -> Array:
        asked = np.asarray(x, np.float32)
        given = asked.copy()
        logits = np.empty((self.count, len(asked), self.classes), np.float32)
        for world, answer in enumerate(self.answers(given)):
            logits[world] = check_logits(answer, logits.shape[1:], f"the answer of world {world}")
        if not np.array_equal(given, asked):
            raise ModifiedInputs("the belief changed its inputs x in place; it should work on a copy (x = x.copy())")
        return logits


# --- from what the user wrote to the contracts --------------------------------------------------


def as_black_box(obj: Any) -> BlackBoxAgent:
    """Recognise an object with `fit`, a function of three arguments, or a function of none that makes one of them."""
    fit = getattr(obj, "fit", None)
    run = fit if callable(fit) else obj
    if not callable(run):
        raise CalibrantError(f"{_kind(obj)} is not an agent; expected fit(seed, train, facts) or a function of these")
    if run is obj and inspect.isroutine(obj) and _takes(obj, 0):
        made = obj()
        if inspect.isroutine(made) and _takes(made, 0):
            raise CalibrantError(f"{_kind(obj)} makes a function without parameters; expected it to make an agent")
        return as_black_box(made)
    if not _takes(run, 3):
        raise CalibrantError(f"{_name(run)}{_signature(run)} cannot be called as {_name(run)}(seed, train, facts)")
    return BlackBoxAgent(run)


def as_belief(returned: Any, train: Data, facts: Facts) -> Belief:
    """Recognise what an agent returned, by the rules at the top of this file."""
    if isinstance(returned, SampledBelief | FiniteBelief | FullBelief):
        return returned
    if callable(getattr(returned, "worlds", None)):
        return FullBelief(returned, _atoms(getattr(returned, "atoms", None)), facts.classes)
    if not callable(returned):
        raise CalibrantError(
            f"fit returned {_kind(returned)}; expected an object with worlds(seed, n), "
            "a function sampler(x, seed), or a function worlds(x)"
        )
    named = _positional(returned)
    if len(named) >= 2 and (named[1].default is named[1].empty or named[1].name in ("seed", "key")):
        return SampledBelief(returned, facts.classes)
    if len(named) >= 1:
        return _finite(returned, train, facts)
    raise CalibrantError(
        f"fit returned a callable {_name(returned)}{_signature(returned)} that could be anything; "
        "name its parameters (x, seed) for a sampler or (x) for a finite set of worlds"
    )


def plain_seed(key: Key) -> int:
    return int(key) % SEEDS


def plain_data(train: Data, facts: Facts) -> Data:
    """Copies without padding: float32 [rows, inputs] and int64 [rows]."""
    rows = int(facts.train_size)
    return Data(np.array(train.x[:rows], np.float32), np.array(train.y[:rows], np.int64))


def plain_facts(facts: Facts) -> Facts:
    """Plain Python numbers; the true environment stays with the judge."""
    temperature = None if facts.temperature is None else float(facts.temperature)
    return dataclasses.replace(
        facts,
        inputs=int(facts.inputs),
        classes=int(facts.classes),
        train_size=int(facts.train_size),
        temperature=temperature,
        environment=None,
    )


# --- reading signatures -------------------------------------------------------------------------


def _finite(function: Callable[[Array], Array], train: Data, facts: Facts) -> FiniteBelief:
    probe = train.x[:1].copy() if len(train.x) else np.zeros((1, facts.inputs), np.float32)
    answer = check_numbers(function(probe), "the answer of worlds(x)")
    if answer.ndim != 3 or not len(answer):
        raise Misshapen(
            f"worlds(x) answered one input with shape {shape_of(answer)}; expected [worlds, 1, {facts.classes}] "
            "(a random function takes (x, seed) and gives [batch, classes])"
        )
    weights = check_weights(getattr(function, "weights", None), len(answer))
    return FiniteBelief(function, len(answer), facts.classes, weights)


def _enumerated(function: Callable[[Array], Array], count: int) -> Callable[[Array], Array]:
    def answers(x: Array) -> Array:
        answer = check_numbers(function(x), "the answer of the worlds")
        if answer.ndim != 3 or len(answer) != count:
            raise Misshapen(
                f"the answer of the worlds has shape {shape_of(answer)}; expected [{count}, {len(x)}, classes]"
            )
        return answer

    return answers


def _atoms(atoms: Any) -> int | None:
    if atoms is None:
        return None
    if isinstance(atoms, bool) or not isinstance(atoms, int | np.integer) or atoms < 1:
        raise CalibrantError(f"the belief's atoms are {atoms!r}; expected a number of worlds, at least 1, or None")
    return int(atoms)


def _positional(function: Any) -> list[inspect.Parameter]:
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return []
    return [one for one in parameters if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)]


def _takes(function: Any, count: int) -> bool:
    try:
        inspect.signature(function).bind(*range(count))
    except TypeError:
        return False
    except ValueError:  # a compiled function that hides its parameters: calling it will tell
        return count > 0
    return True


def _signature(function: Any) -> str:
    try:
        return str(inspect.signature(function))
    except (TypeError, ValueError):
        return "(...)"


def _name(function: Any) -> str:
    return str(getattr(function, "__name__", type(function).__name__))


def _kind(obj: Any) -> str:
    return f"'{obj.__name__}'" if inspect.isroutine(obj) else f"an object of type {type(obj).__name__}"
