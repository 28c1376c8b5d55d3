"""Bring your own agent: NumPy code, scikit-learn classifiers, torch modules, saved predictions.

`as_agent` turns whatever a spec such as `my_agent.py:Agent` names into an agent that the engine can run:

* a native agent (`native = True`: pure JAX, run in cohorts) passes through unchanged, and so do our control agents that
  are told the truth (`privileged = True`, which nobody else's agent can claim);
* a scikit-learn classifier becomes a point belief, see `calibrant.adapters.sklearn`;
* anything with `fit(seed, train, facts)`, or a function of these, see `calibrant.adapters.callables`.

A class stands for the object it makes when called without arguments.
"""

from __future__ import annotations

from typing import Any

from calibrant.adapters.callables import BlackBoxAgent, as_black_box
from calibrant.protocols import Agent
from calibrant.types import CalibrantError


def as_agent(obj: Any) -> Agent:
    """An agent for the engine: `fit(key, train, facts) -> Belief`, with `native` telling which keys it takes.

    >>> as_agent(lambda seed, train, facts: lambda x: [[[0.0] * facts.classes] * len(x)]).native
    False
    """
    made = _instance(obj) if isinstance(obj, type) else obj
    if getattr(made, "native", False) or _is_control(made) or isinstance(made, BlackBoxAgent):
        agent: Agent = made
        return agent
    if _is_estimator(made):
        from calibrant.adapters.sklearn import sklearn_agent

        made = sklearn_agent(made)
    return as_black_box(made)


def _instance(cls: type) -> Any:
    try:
        return cls()
    except TypeError as error:
        raise CalibrantError(f"{cls.__name__} cannot be made without arguments ({error}); give an instance") from error


def _is_control(obj: Any) -> bool:
    return getattr(obj, "privileged", False) is True and type(obj).__module__.startswith("calibrant.agents.")


def _is_estimator(obj: Any) -> bool:
    """Judged by its methods, so that naming an agent does not import scikit-learn."""
    return hasattr(obj, "fit") and (hasattr(obj, "get_params") or hasattr(obj, "predict_proba"))
