"""The nouns of Calibrant. Imported by every room, imports none of them.

Read top to bottom: what an agent is given, what it is asked, what it answers, what is kept.
Shapes are written in brackets; arrays may be NumPy's or JAX's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

Array: TypeAlias = Any  # a NumPy or a JAX array; the comment beside a field gives its shape
Key: TypeAlias = Any  # a JAX key for native agents, a plain integer for black-box agents

DEFAULT_STORE = "sqlite:///calibrant.db"  # where records live unless a user says otherwise


class CalibrantError(Exception):
    """Wrong input: one sentence that says what was expected. The command line exits with code 2."""


# --- what an agent is given -------------------------------------------------------------------


@dataclass(frozen=True)
class Data:
    """Labelled inputs. Rows beyond `Facts.train_size` are padding and must not be read."""

    x: Array  # [rows, inputs] float32
    y: Array  # [rows] int32


@dataclass(frozen=True)
class Facts:
    """What an agent may know a priori. `train_size` and `temperature` may be traced by JAX."""

    inputs: int
    classes: int
    train_size: Any
    temperature: Any
    hidden: tuple[int, ...] = (50, 50)
    activation: str = "relu"
    init: str = "truncated"
    law: str = "network"  # what environments are
    environment: Any = None  # the true environment: only for control agents that declare `privileged`


# --- what it is asked -------------------------------------------------------------------------


@dataclass(frozen=True)
class Tuples:
    """A family of n tuples of order tau: input `anchors[i, j]` is asked `repeats[i, j]` times."""

    name: str  # "" for i.i.d., "dyadic" for kappa=2, else "kappa<k>"
    tau: int
    anchors: Array  # [n, a] index into Question.x
    repeats: Array  # [n, a] every row sums to tau


@dataclass(frozen=True)
class Long:
    """Tuples too long to be kept: each is drawn when it is asked; its first tau inputs are asked for every order."""

    tau: tuple[int, ...]  # orders, rising
    n: int
    draw: Any  # i -> (inputs [longest, inputs], true log-probabilities [longest, classes], labels [longest])


@dataclass(frozen=True)
class Question:
    """Unique inputs and the structure in which they are asked."""

    x: Array  # [unique, inputs]
    tuples: tuple[Tuples, ...]
    marginal: Array  # [m, k] rows of x that single predictions are judged on: item i averages its k inputs
    worlds: int = 1000  # how many worlds a belief without finite support is asked for
    picture: Array | None = None  # [p, inputs] a grid to draw the belief on, where inputs can be drawn
    long: Long | None = None  # i.i.d. tuples of high order


@dataclass(frozen=True)
class Truth:
    """The labels drawn at the unique inputs, and the true log-probabilities where they are known."""

    labels: Array  # [unique]
    logp: Array | None = None  # [unique, classes]


@dataclass(frozen=True)
class Instance:
    """One draw of a problem."""

    train: Data
    facts: Facts
    question: Question
    truth: Truth
    environment: Any = None  # called at inputs [batch, inputs], gives true logits [batch, classes]


@dataclass(frozen=True)
class Arena:
    """One draw of a game: a table of inputs, and the probability of a reward at every row and arm.

    Either all rows are offered at every step, or one row a step, which `order` names.
    """

    table: Array  # [rows, inputs] float32
    reward: Array  # [rows, arms]
    arms: tuple[int, ...]  # the class that an arm of a row stands for
    facts: Facts
    order: Array | None = None  # [steps] row offered at each step


# --- what it answers --------------------------------------------------------------------------


@dataclass(frozen=True)
class Answers:
    """Log-probabilities of every world at the unique inputs of a question."""

    logp: Array  # [worlds, unique, classes], finite
    weights: Array | None = None  # [worlds], uniform when None
    exact: bool = False  # the worlds are the belief's whole support: no Monte-Carlo error
    log_joint: Any = None  # the belief's own closed form of joint probabilities, see `protocols.ClosedBelief`


@dataclass(frozen=True)
class Scores:
    """One metric on one cell: the mean over items, its errors, and the items themselves.

    `se` is the standard error over items; `mc_bias` and `mc_se` are the estimated bias and standard
    error that come from asking finitely many worlds (both 0 when the support was enumerated).
    """

    mean: float
    se: float = 0.0
    n: int = 1
    mc_bias: float = 0.0
    mc_se: float = 0.0
    items: Array | None = None  # [n] float32, kept only for the metrics from which the rest follow


# --- what is kept -----------------------------------------------------------------------------


@dataclass(frozen=True)
class Cell:
    """The unit of work. Its id is a content hash of everything that matters to a number."""

    problem: str  # canonical problem spec
    agent: str  # canonical agent spec
    seed: int
    id: str

    @property
    def chance(self) -> tuple[str, str, int]:
        """What the agent's random numbers are derived from: not the id, so that a new metric leaves it as it was."""
        return self.problem, self.agent, self.seed


@dataclass(frozen=True)
class Cost:
    """What a cell cost. A cell of a cohort carries its equal share of the cohort's seconds."""

    compile_cpu_seconds: float = 0.0
    compile_wall_seconds: float = 0.0
    fit_cpu_seconds: float = 0.0
    fit_wall_seconds: float = 0.0
    ask_cpu_seconds: float = 0.0
    ask_wall_seconds: float = 0.0
    peak_memory_mb: float = 0.0
    parameters: int = 0
    worlds: int = 0
    cohort: int = 1


@dataclass(frozen=True)
class Record:
    """What a finished cell leaves behind. A failed one has a reason and no scores."""

    cell: Cell
    scores: Mapping[str, Scores] = field(default_factory=dict)
    cost: Cost = field(default_factory=Cost)
    provenance: Mapping[str, Any] = field(default_factory=dict)
    picture: Mapping[str, Array] = field(default_factory=dict)  # what a belief looks like on a 2-D grid
    reason: str | None = None  # why it failed; None when it is done

    @property
    def failed(self) -> bool:
        return self.reason is not None
