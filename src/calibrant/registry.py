"""Names and specs: `ensemble+?size=30&l2=3` becomes a frozen dataclass, and prints back as itself.

A spec names an entry of the registry, of an installed plugin (entry points `calibrant.agents`, `.problems`,
`.metrics`), or an object in a file or module (`my_agent.py:Agent`). Entries are strings until they are asked for, so
that naming things imports no numerical library.
"""

from __future__ import annotations

import dataclasses
import difflib
import functools
import hashlib
import importlib
import importlib.util
import sys
import typing
from collections.abc import Callable, Hashable
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, cast

from calibrant.types import CalibrantError

BUILTIN: dict[str, dict[str, str]] = {
    "agents": {
        "uniform": "calibrant.agents.uniform:Uniform",
        "prior": "calibrant.agents.prior:Prior",
        "oracle": "calibrant.agents.oracle:Oracle",
        "logistic": "calibrant.agents.logistic:Logistic",
        "mlp": "calibrant.agents.mlp:Mlp",
        "ensemble": "calibrant.agents.ensemble:Ensemble",
        "ensemble+": "calibrant.agents.ensemble_plus:EnsemblePlus",
        "dropout": "calibrant.agents.dropout:Dropout",
        "bbb": "calibrant.agents.bbb:Bbb",
        "hypermodel": "calibrant.agents.hypermodel:Hypermodel",
        "epinet": "calibrant.agents.epinet:Epinet",
        "sgmcmc": "calibrant.agents.sgmcmc:Sgmcmc",
        "hmc": "calibrant.agents.hmc:Hmc",
        "nuts": "calibrant.agents.nuts:Nuts",
        "mclmc": "calibrant.agents.mclmc:Mclmc",
        "bayes": "calibrant.agents.bayes:Bayes",
        "laplace": "calibrant.agents.laplace:Laplace",
        "swag": "calibrant.agents.swag:Swag",
        "ntk_ensemble+": "calibrant.agents.ntk_ensemble_plus:NtkEnsemblePlus",
        "flow": "calibrant.agents.flow:Flow",
        "temperature_scaled": "calibrant.agents.temperature_scaled:TemperatureScaled",
        "deep_kernel": "calibrant.agents.deep_kernel:DeepKernel",
        "knn": "calibrant.agents.knn:Knn",
        "random_forest": "calibrant.agents.random_forest:RandomForest",
        "marginal": "calibrant.agents.marginal:Marginal",
        "coins_independent": "calibrant.agents.coins_independent:CoinsIndependent",
        "coins_shared": "calibrant.agents.coins_shared:CoinsShared",
        "coins_posterior": "calibrant.agents.coins_posterior:CoinsPosterior",
    },
    "problems": {
        "testbed": "calibrant.problems.testbed:Testbed",
        "misspecified": "calibrant.problems.misspecified:Misspecified",
        "real": "calibrant.problems.real:Real",
        "coins": "calibrant.problems.coins:Coins",
        "logistic": "calibrant.problems.logistic:Logistic",
        "bandit": "calibrant.problems.bandit:Bandit",
        "contextual": "calibrant.problems.contextual:Contextual",
        "active": "calibrant.problems.active:Active",
        "coin_bandit": "calibrant.problems.coin_bandit:CoinBandit",
    },
    "suites": {
        "testbed": "calibrant.suites.testbed:SUITE",
        "testbed-hd": "calibrant.suites.hd:SUITE",
        "robustness": "calibrant.suites.robustness:SUITE",
        "real": "calibrant.suites.real:SUITE",
        "coins": "calibrant.suites.coins:SUITE",
        "logistic": "calibrant.suites.logistic:SUITE",
        "bandit": "calibrant.suites.bandit:SUITE",
        "bandit-rules": "calibrant.suites.bandit:BY_RULE",
        "bandit-laws": "calibrant.suites.bandit:BY_LAW",
        "contextual": "calibrant.suites.contextual:SUITE",
        "active": "calibrant.suites.active:SUITE",
    },
}


@functools.cache
def table(kind: str) -> dict[str, str]:
    """Every known name of a kind with the `module:object` it stands for; plugins cannot shadow our own."""
    plugins = {point.name: point.value for point in entry_points(group=f"calibrant.{kind}")}
    return plugins | BUILTIN.get(kind, {})


def load(kind: str, name: str) -> Any:
    """The class or object behind a bare name; an unknown name gets the nearest valid one."""
    if ":" in name:
        return load_object(name)
    known = table(kind)
    if name not in known:
        raise CalibrantError(f"unknown {kind[:-1]} '{name}'{nearest(name, known)}; `calibrant list {kind}` shows all")
    module, _, attribute = known[name].partition(":")
    return getattr(importlib.import_module(module), attribute)


def resolve(kind: str, spec: str) -> Any:
    """Build what a spec describes. Only names, numbers and words are read; nothing is evaluated.

    >>> resolve("agents", "ensemble+?size=30&l2=3").size
    30
    """
    name, _, query = spec.partition("?")
    return build(load(kind, name.strip()), parse_query(spec, query), spec)


def canonical(kind: str, spec: str) -> str:
    """The one way to write a spec: defaults left out, fields in declared order, file agents with their digest.

    >>> canonical("agents", "mlp?steps=1000&l2=3.0")
    'mlp?l2=3'
    """
    name, _, query = spec.partition("?")
    name = name.strip()
    target = load(kind, name)
    if ":" in name:
        path, _, attribute = _split_reference(name)
        name = f"{path}:{attribute}@{source_digest(name)}"
    values = parse_query(spec, query)
    if not _has_fields(target):
        return name + _join(values)
    return name + _join(changed(build(target, values, spec)))


def identity(kind: str, spec: str) -> dict[str, Any]:
    """Everything a spec says, defaults included: what a content hash is taken of."""
    built, written = resolve(kind, spec), canonical(kind, spec)
    fields = dataclasses.fields(built) if dataclasses.is_dataclass(built) else ()
    return {"name": written.partition("?")[0], "spec": written} | {
        field.name: show(getattr(built, field.name)) for field in fields
    }


# --- reading and printing ---------------------------------------------------------------------


def parse_query(spec: str, query: str) -> dict[str, str]:
    pairs: dict[str, str] = {}
    for part in filter(None, query.split("&")):
        key, equals, value = part.partition("=")
        if not (key and equals and value):
            raise CalibrantError(f"'{part}' in '{spec}' is not of the form name=value")
        if key in pairs:
            raise CalibrantError(f"'{key}' is given twice in '{spec}'")
        pairs[key] = value
    return pairs


def build(target: Any, values: dict[str, str], spec: str) -> Any:
    """Call a factory with checked parameters; dataclasses are validated against their annotations."""
    if not _has_fields(target):
        if values and not callable(target):
            raise CalibrantError(f"'{spec}' names an object that is already built; it takes no parameters")
        return _made(target, values, spec) if values or isinstance(target, type) else target
    known = [field.name for field in dataclasses.fields(target)]
    for name in values:
        if name not in known:
            takes = f"it takes {', '.join(known)}" if known else "it takes none"
            raise CalibrantError(f"unknown parameter '{name}' in '{spec}'{nearest(name, known)}; {takes}")
    return _validated(cast(Hashable, target))({key: _split(target, key, value) for key, value in values.items()}, spec)


def _has_fields(target: Any) -> bool:
    """A dataclass, whose parameters can be checked and printed; not an object made of one."""
    return isinstance(target, type) and dataclasses.is_dataclass(target)


def _made(target: Any, values: dict[str, Any], spec: str) -> Any:
    try:
        return target(**values)
    except (TypeError, ValueError) as error:
        raise CalibrantError(f"'{spec}' could not be built: {error}") from error


@functools.cache
def _validated(target: Any) -> Callable[[dict[str, Any], str], Any]:
    """Checks words against a dataclass's annotations by a model beside it.

    The class itself must not validate: JAX rebuilds agents from traced numbers.
    """
    from pydantic import ConfigDict, TypeAdapter, ValidationError, create_model

    hints = typing.get_type_hints(target, include_extras=True)
    rules: dict[str, Any] = {field.name: (hints[field.name], None) for field in dataclasses.fields(target)}
    config = ConfigDict(extra="forbid", allow_inf_nan=False, arbitrary_types_allowed=True)
    model = create_model("Spec", __config__=config, **rules)
    adapter = TypeAdapter(model)

    def make(values: dict[str, Any], spec: str) -> Any:
        try:
            checked = adapter.validate_python(values)
        except ValidationError as error:
            first = error.errors()[0]
            wrong = ".".join(str(part) for part in first["loc"][:1])
            what = str(first["msg"]).replace("Input should", "it should")
            raise CalibrantError(f"{wrong}={show(values[wrong])} in '{spec}': {what}") from None
        return _made(target, {name: getattr(checked, name) for name in values}, spec)

    return make


def _split(target: Any, key: str, value: str) -> Any:
    """`hidden=50x50` is a tuple; everything else stays a word until its annotation reads it."""
    hint = typing.get_type_hints(target)[key]
    kinds = {typing.get_origin(kind) or kind for kind in (hint, *typing.get_args(hint))}
    return value.split("x") if kinds & {tuple, list} else value


def changed(built: Any) -> dict[str, str]:
    """The fields that differ from their defaults, in declared order, printed."""
    return {
        field.name: show(getattr(built, field.name))
        for field in dataclasses.fields(built)
        if getattr(built, field.name) != _default(field)
    }


def _default(field: dataclasses.Field[Any]) -> Any:
    return field.default if field.default_factory is dataclasses.MISSING else field.default_factory()


def show(value: Any) -> str:
    """A value as it stands in a spec: 0.1, 30, relu, 50x50."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple | list):
        return "x".join(show(part) for part in value)
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)
    return str(value)


def _join(values: dict[str, str]) -> str:
    return "?" + "&".join(f"{key}={value}" for key, value in values.items()) if values else ""


def nearest(name: str, known: Any) -> str:
    close = difflib.get_close_matches(name, list(known), n=1, cutoff=0.4)
    return f", did you mean '{close[0]}'?" if close else ""


# --- objects in files and modules ---------------------------------------------------------------


def load_object(name: str) -> Any:
    """The object `NAME` of `FILE.py:NAME` or `package.module:NAME`, optionally pinned by `@digest`."""
    path, digest, attribute = _split_reference(name)
    if digest and digest != source_digest(name):
        raise CalibrantError(f"{path} has changed since it was named as '{name}': its digest is {source_digest(name)}")
    module = _import_file(path) if path.endswith(".py") else _import_module(path)
    if not hasattr(module, attribute):
        raise CalibrantError(f"{path} has no '{attribute}'{nearest(attribute, vars(module))}")
    return getattr(module, attribute)


def source_digest(name: str) -> str:
    """Twelve hex digits of the source file: an edited agent is another agent."""
    path, _, _ = _split_reference(name)
    source = path if path.endswith(".py") else getattr(_import_module(path), "__file__", None)
    if not source:
        return "builtin"
    try:
        return hashlib.sha256(Path(source).read_bytes()).hexdigest()[:12]
    except OSError as error:
        raise CalibrantError(f"the agent file {path} cannot be read: {error.strerror or error}") from error


def _split_reference(name: str) -> tuple[str, str, str]:
    path, _, attribute = name.rpartition(":")
    attribute, _, digest = attribute.partition("@")
    if not path or not attribute.isidentifier():
        raise CalibrantError(f"'{name}' should be FILE.py:NAME or module:NAME")
    return path, digest, attribute


def _import_module(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except Exception as error:
        raise CalibrantError(f"module '{name}' cannot be imported: {error}") from error


def _import_file(path: str) -> Any:
    file = Path(path)
    if not file.is_file():
        raise CalibrantError(f"no file '{path}'")
    name = f"calibrant_user_{hashlib.sha256(file.read_bytes() + path.encode()).hexdigest()[:16]}"
    if name in sys.modules:
        return sys.modules[name]
    found = importlib.util.spec_from_file_location(name, file)
    assert found and found.loader
    module = importlib.util.module_from_spec(found)
    sys.modules[name] = module
    try:
        found.loader.exec_module(module)
    except Exception as error:
        del sys.modules[name]
        raise CalibrantError(f"{path} cannot be imported: {type(error).__name__}: {error}") from error
    return module
