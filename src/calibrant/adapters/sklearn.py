"""A scikit-learn classifier as an agent: a point belief, or one world for each tree of a forest.

The estimator is cloned for every fit, and every parameter named `random_state` (nested ones too) is set from the seed.
`predict_proba` becomes log-probabilities after clipping to [clip, 1 - clip], 0.01 and 0.99 unless told otherwise: a
classifier that counts votes would else claim certainty. A class that the training data lack gets the lower bound.

Training data that a classifier cannot digest, namely a single class, or fewer rows than its `n_neighbors`, are given
pseudo-points at x = 0, one of every class (more rounds of them until there are enough rows). Otherwise none is added.

As a spec: `sklearn.neighbors:KNeighborsClassifier?n_neighbors=3`, or, with this adapter's own parameters,
`calibrant.adapters.sklearn:sklearn_agent?estimator=sklearn.ensemble:RandomForestClassifier&n_estimators=30&worlds=trees`.
"""

from __future__ import annotations

import inspect
import math
from dataclasses import dataclass
from typing import Any, Literal, cast, get_args

import numpy as np
from sklearn.base import clone

from calibrant import registry
from calibrant.adapters.callables import FiniteBelief
from calibrant.types import Array, CalibrantError, Data, Facts

Imagined = Literal["one", "trees"]  # a point belief, or the members of a forest as equally likely worlds


@dataclass(frozen=True)
class SklearnAgent:
    """See the top of this file; `sklearn_agent` makes it from words as well as from objects."""

    estimator: Any
    clip: float = 0.01
    worlds: Imagined = "one"

    def fit(self, seed: int, train: Data, facts: Facts) -> FiniteBelief:
        x, y = _digestible(train, facts, _neighbours(self.estimator))
        present, encoded = np.unique(y, return_inverse=True)  # members of forests know classes by position only
        model = _seeded(clone(self.estimator, safe=False), seed)
        model.fit(x, encoded)
        members = _trees(model) if self.worlds == "trees" else [_Member(model)]
        columns = [present[member.classes(len(present))] for member in members]

        def logits(inputs: Array) -> Array:
            probabilities = np.zeros((len(members), len(inputs), facts.classes))
            for world, (member, column) in enumerate(zip(members, columns, strict=True)):
                probabilities[world][:, column] = member.probabilities(inputs)
            return np.log(np.clip(probabilities, self.clip, 1 - self.clip))

        return FiniteBelief(logits, len(members), facts.classes)


def sklearn_agent(estimator: Any, *, clip: float | str = 0.01, worlds: str = "one", **parameters: Any) -> SklearnAgent:
    """An agent from an estimator: an object, a class, or `module:Class`; words become numbers as its defaults ask.

    >>> sklearn_agent("sklearn.neighbors:KNeighborsClassifier", n_neighbors="3").estimator
    KNeighborsClassifier(n_neighbors=3)
    """
    found = registry.load_object(estimator) if isinstance(estimator, str) else estimator
    made = _made(found) if isinstance(found, type) else found
    if not hasattr(made, "predict_proba"):
        raise CalibrantError(
            f"{type(made).__name__} has no predict_proba; expected a classifier with probabilities "
            "(sklearn.calibration:CalibratedClassifierCV adds them to one that has none)"
        )
    if worlds not in get_args(Imagined):
        raise CalibrantError(f"worlds={worlds}: expected {' or '.join(get_args(Imagined))}")
    bound = _number(str(clip))
    if bound is None or not 0 < bound < 0.5:
        raise CalibrantError(f"clip={clip}: expected a number between 0 and 0.5")
    return SklearnAgent(_configured(made, parameters), float(bound), cast(Imagined, worlds))


def with_origin(train: Data, facts: Facts, rounds: int = 1) -> Data:
    """The data with pseudo-points at x = 0, one of every class, so many times."""
    pseudo = np.tile(np.arange(facts.classes), rounds)
    origin = np.zeros((len(pseudo), facts.inputs), np.float32)
    return Data(np.concatenate([train.x, origin]), np.append(train.y, pseudo))


# --- parameters ---------------------------------------------------------------------------------


def read_parameter(name: str, word: str, default: Any) -> Any:
    """A word as a value of its default's type; where the default is a word or None, whatever it looks like.

    >>> read_parameter("n_neighbors", "3", 5), read_parameter("alpha", "1", 0.5), read_parameter("max_depth", "4", None)
    (3, 1.0, 4)
    >>> read_parameter("hidden_layer_sizes", "50x50", (100,)), read_parameter("weights", "distance", "uniform")
    ((50, 50), 'distance')
    """
    truth, number = {"true": True, "false": False}.get(word.lower()), _number(word)
    if isinstance(default, bool):
        if truth is None:
            raise CalibrantError(f"{name}={word}: expected true or false")
        return truth
    if isinstance(default, int | float):
        if number is None:
            raise CalibrantError(f"{name}={word}: expected a number such as {default}")
        return float(number) if isinstance(default, float) else number
    if isinstance(default, tuple):
        parts = [_number(part) for part in word.split("x")]
        if None in parts:
            raise CalibrantError(f"{name}={word}: expected numbers joined by x, such as 50x50")
        return tuple(parts)
    if default is None and word.lower() == "none":
        return None
    return next((value for value in (truth, number) if value is not None), word)


def _made(cls: type) -> Any:
    try:
        return cls()
    except TypeError as error:
        raise CalibrantError(f"{cls.__name__} cannot be made without arguments: {error}") from error


def _configured(estimator: Any, parameters: dict[str, Any]) -> Any:
    """A clone with these parameters set, its words read; an object without `get_params` is taken as it is."""
    if not hasattr(estimator, "get_params"):
        if parameters:
            raise CalibrantError(f"{type(estimator).__name__} has no set_params; set {', '.join(parameters)} in code")
        return estimator
    known = estimator.get_params(deep=True)
    for name in parameters:
        if name not in known:
            kind = type(estimator).__name__
            raise CalibrantError(f"unknown parameter '{name}' of {kind}{registry.nearest(name, known)}")
    defaults = {name: one.default for name, one in inspect.signature(type(estimator)).parameters.items()}
    wanted = estimator.get_params(deep=False) | parameters
    words = {name: value for name, value in wanted.items() if isinstance(value, str)}
    read = {name: read_parameter(name, word, defaults.get(name, "")) for name, word in words.items()}
    return clone(estimator).set_params(**parameters | read)


def _number(word: str) -> int | float | None:
    for kind in (int, float):
        try:
            value = kind(word)
        except ValueError:
            continue
        return value if math.isfinite(value) else None
    return None


# --- fitting ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Member:
    """A fitted classifier, and the inputs it looks at when it is a member that sees only some of them."""

    model: Any
    features: Array | None = None  # all of them

    def classes(self, present: int) -> Array:
        return np.asarray(getattr(self.model, "classes_", np.arange(present))).astype(np.int64)

    def probabilities(self, x: Array) -> Array:
        return self.model.predict_proba(x if self.features is None else x[:, self.features])


def _trees(model: Any) -> list[_Member]:
    found = list(np.ravel(getattr(model, "estimators_", [])))
    if not found or not all(hasattr(member, "predict_proba") for member in found):
        raise CalibrantError(
            f"worlds=trees: {type(model).__name__} has no members with predict_proba; expected a forest"
        )
    features = getattr(model, "estimators_features_", [None] * len(found))
    return [_Member(member, seen) for member, seen in zip(found, features, strict=True)]


def _seeded(estimator: Any, seed: int) -> Any:
    names = estimator.get_params() if hasattr(estimator, "get_params") else {}
    random = {name: seed for name in names if name.rpartition("__")[2] == "random_state"}
    return estimator.set_params(**random) if random else estimator


def _neighbours(estimator: Any) -> int:
    named = estimator.get_params() if hasattr(estimator, "get_params") else {}
    counts = [value for name, value in named.items() if name.rpartition("__")[2] == "n_neighbors"]
    return max((count for count in counts if isinstance(count, int)), default=0)


def _digestible(train: Data, facts: Facts, neighbours: int) -> tuple[Array, Array]:
    alone = int(len(np.unique(train.y)) < 2)
    rounds = max(alone, math.ceil((neighbours - len(train.y)) / facts.classes))
    enough = with_origin(train, facts, rounds)
    return enough.x, enough.y
