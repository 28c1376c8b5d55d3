"""Scikit-learn classifiers as agents.

A class that needs no arguments can be named directly, and its parameters set in the spec:

    calibrant run testbed --agent "sklearn.neighbors:KNeighborsClassifier?n_neighbors=3"

A pipeline, or a belief with one world for each tree of a forest, takes a few lines in a file:

    calibrant run testbed --agent examples/sklearn_agent.py:forest --agent examples/sklearn_agent.py:quadratic
"""

from __future__ import annotations

from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures

from calibrant.adapters.sklearn import SklearnAgent, sklearn_agent


def forest() -> SklearnAgent:
    """Thirty trees that disagree where data are scarce: thirty worlds."""
    return sklearn_agent(RandomForestClassifier(n_estimators=30), worlds="trees")


def quadratic() -> SklearnAgent:
    """A single opinion: one world."""
    return sklearn_agent(make_pipeline(PolynomialFeatures(degree=2), LogisticRegression()))
