"""Does an agent keep the contract? Findings in plain words, each with what to do about it.

An agent that breaks the contract still runs, but its score means something else: a world that changes between calls is
not one function, a fit that depends on the global random state cannot be repeated. Checked on one small instance:

builds, fits, shapes, finite numbers     the agent can be made, and answers every input (the rest needs these)
inputs                                   it leaves its training data and questions as they were
coherent worlds                          a world answers the same when asked again, in another order, with fewer inputs
reproducible                             the same key gives the same belief, and the same worlds of it
global random state                      it neither reads nor moves NumPy's and Python's global generators
one point, one class                     it survives the smallest training sets
number of worlds                         it gives as many worlds as asked, or all its atoms
worker process                           another process can build it from its spec
"""

from __future__ import annotations

import contextlib
import os
import random
import subprocess
import sys
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant import registry
from calibrant.adapters import as_agent
from calibrant.adapters.answers import Misshapen, NotFinite
from calibrant.adapters.callables import ModifiedInputs
from calibrant.engine.trial import WORLDS, Bench, Trial
from calibrant.protocols import Belief
from calibrant.types import Array, CalibrantError, Data, Instance

TOLERANCE = 1e-3  # relative and absolute: batches of another size may round differently
WORKER_SECONDS = 120
BUILD = """import sys
from calibrant import adapters, registry
adapters.as_agent(registry.resolve("agents", sys.argv[1]))"""
SEEDED = "take all random numbers from a generator made of the seed, np.random.default_rng(seed)"


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at: its name, whether it is in order, and a sentence to read."""

    name: str
    ok: bool
    message: str


class Broken(Exception):
    """The contract is broken: a sentence that says how, and what to do."""


def check_agent(agent: Any, problem_spec: str = "testbed?train=10&temp=0.1", seed: int = 0) -> list[Finding]:
    """Check an agent, given as a spec such as `my_agent.py:Agent` or as an object, on one draw of a problem.

    >>> findings = check_agent(lambda seed, train, facts: lambda x: np.zeros((1, len(x), facts.classes)))
    >>> all(finding.ok for finding in findings)
    True
    """
    instance: Instance = registry.resolve("problems", problem_spec).sample(seed)
    return list(_findings(agent, instance, seed))


def _findings(agent: Any, instance: Instance, seed: int) -> Iterator[Finding]:
    """Stops after the first finding without which nothing else can be asked."""
    try:
        built = as_agent(registry.resolve("agents", agent) if isinstance(agent, str) else agent)
    except Exception as error:
        yield Finding("builds", False, f"it cannot be built: {_sentence(error)}")
        return
    yield Finding("builds", True, "it can be built")
    bench = Bench(built, instance, seed)
    with _global_random(1) as moved:
        first = yield from _first_answers(bench)
        disturbed = moved()
    if first is None:
        return
    yield _finding("coherent worlds", lambda: _coherent(bench, first))
    reproducible = _finding("reproducible", lambda: _reproducible(bench, first))
    yield reproducible
    yield _finding("global random state", lambda: _global_state(bench, first, disturbed, reproducible.ok))
    yield _finding("one point", lambda: _one_point(bench))
    yield _finding("one class", lambda: _one_class(bench))
    yield _finding("number of worlds", lambda: _number_of_worlds(bench, first.belief))
    yield _finding("worker process", lambda: _worker(agent))


def _finding(name: str, check: Callable[[], str]) -> Finding:
    """A check tells what it found in order, or raises."""
    try:
        return Finding(name, True, check())
    except Broken as broken:
        return Finding(name, False, str(broken))
    except Exception as error:
        return Finding(name, False, f"it fails when this is tried: {_sentence(error)}")


# --- the findings -------------------------------------------------------------------------------


def _first_answers(bench: Bench) -> Generator[Finding, None, Trial | None]:
    """Findings up to the first answers; returns the trial, or None when there is nothing to go on with."""
    train, x = bench.train, bench.x
    try:
        belief = bench.fit(train)
    except Exception as error:
        yield Finding("fits", False, f"fit(seed, train, facts) does not give a belief: {_sentence(error)}")
        return None
    yield Finding("fits", True, "fit gives a belief")
    try:
        trial = bench.imagine(belief, x=x)
    except ModifiedInputs as error:
        yield Finding("inputs", False, _sentence(error))
        return None
    except NotFinite as error:
        yield Finding("shapes", True, "answers are [worlds, inputs, classes]")
        yield Finding("finite numbers", False, f"{_sentence(error)}, so look for log(0), 0/0 and overflow")
        return None
    except Exception as error:
        lead = "" if isinstance(error, Misshapen) else "its worlds do not answer: "
        yield Finding("shapes", False, lead + _sentence(error))
        return None
    yield Finding("shapes", True, "answers are [worlds, inputs, classes]")
    yield Finding("finite numbers", True, "all answers are finite")
    yield _finding("inputs", lambda: _untouched(bench, train, x))
    return trial


def _untouched(bench: Bench, train: Data, x: Array) -> str:
    pairs = {"train.x": (train.x, bench.train.x), "train.y": (train.y, bench.train.y), "x": (x, bench.x)}
    changed = [name for name, (now, before) in pairs.items() if not np.array_equal(now, before)]
    if changed:
        raise Broken(f"it changed {' and '.join(changed)} in place; it should work on a copy (x = x.copy())")
    return "training data and questions are left as they were"


def _coherent(bench: Bench, first: Trial) -> str:
    x, expected = bench.x, first.logits
    ways = {
        "when asked again": slice(None),
        "when the inputs come in another order": slice(None, None, -1),
        "when fewer inputs are asked": slice(3, 8),
    }
    for way, rows in ways.items():
        if not _close(bench.ask(first.worlds, x[rows].copy(), len(expected)), expected[:, rows]):
            fix = "a world is one function, so draw all its randomness from its seed, whatever x is"
            raise Broken(f"the same world answers differently {way}; {fix}")
    return "every world is one function"


def _reproducible(bench: Bench, first: Trial) -> str:
    if not _close(bench.imagine(first.belief).logits, first.logits):
        raise Broken(f"the same key gave different worlds of the same belief; {SEEDED}")
    with _global_random(1):
        again = bench.imagine(bench.fit(bench.train))
    if not _close(again.logits, first.logits):
        raise Broken(f"fitting twice with the same key gave different beliefs; {SEEDED}")
    return "the same key gives the same belief and the same worlds"


def _global_state(bench: Bench, first: Trial, disturbed: bool, reproducible: bool) -> str:
    with _global_random(2):
        other = bench.imagine(bench.fit(bench.train))
    if reproducible and not _close(other.logits, first.logits):
        raise Broken(f"its answers depend on the global random state (np.random.seed, random.seed); {SEEDED}")
    if disturbed:
        raise Broken(f"it moves the global random state, on which others may rely; {SEEDED}")
    return "the global random state is neither read nor moved"


def _one_point(bench: Bench) -> str:
    bench.imagine(bench.fit(Data(bench.train.x[:1], bench.train.y[:1])))
    return "a single training point is enough"


def _one_class(bench: Bench) -> str:
    bench.imagine(bench.fit(Data(bench.train.x, np.zeros_like(bench.train.y))))
    return "training data may all be of one class"


def _number_of_worlds(bench: Bench, belief: Belief) -> str:
    atoms = belief.atoms
    for n in (1, WORLDS) if atoms is None else (1, WORLDS, atoms, atoms + 1):
        try:
            bench.imagine(belief, n)
        except Misshapen as error:
            raise Broken(f"asked for {n} worlds, {_sentence(error)}") from error
    return "it gives as many worlds as asked" if atoms is None else f"it gives its finite support, {atoms} in all"


def _worker(agent: Any) -> str:
    if not isinstance(agent, str):
        return "an object runs in this process only; name it as FILE.py:NAME to use worker processes"
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-P", "-c", BUILD, agent]
    try:
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=WORKER_SECONDS)
    except subprocess.TimeoutExpired as error:
        raise Broken(f"building it takes over {WORKER_SECONDS} s in another process; move slow work to fit") from error
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or ["it ended without a word"])[-1]
        raise Broken(f"another process cannot build it from '{agent}': {reason}")
    return "another process can build it from its spec"


# --- helpers ------------------------------------------------------------------------------------


@contextlib.contextmanager
def _global_random(seed: int) -> Iterator[Callable[[], bool]]:
    """Known global generators inside, the caller's again afterwards; gives a function that tells if they moved."""
    before_numpy, before_python = np.random.get_state(), random.getstate()  # noqa: NPY002 - the very thing in question
    np.random.seed(seed)  # noqa: NPY002
    random.seed(seed)
    known = _global_now()
    try:
        yield lambda: _global_now() != known
    finally:
        np.random.set_state(before_numpy)  # noqa: NPY002
        random.setstate(before_python)


def _global_now() -> tuple[object, ...]:
    state: Any = np.random.get_state(legacy=False)  # noqa: NPY002
    return state["state"]["key"].tobytes(), state["state"]["pos"], state["has_gauss"], random.getstate()


def _close(a: Array, b: Array) -> bool:
    return a.shape == b.shape and np.allclose(a, b, rtol=TOLERANCE, atol=TOLERANCE)


def _sentence(error: BaseException) -> str:
    text = " ".join(str(error).split()).rstrip(".") or "no reason given"
    return text if isinstance(error, Broken | CalibrantError) else f"{type(error).__name__}: {text}"
