"""The Neural Testbed's problems, drawn by another network than agents are told of.

Osband et al., "The Neural Testbed", NeurIPS 2022, section 6: agents keep the network and the hyperparameters that suit
the default generative model, a ReLU network of 50 and 50 hidden units, and are trained and judged in environments that
other activations or widths have drawn. An environment is the one that `testbed` draws for the same fields and seed;
only the facts differ: they name the default network. So control agents that draw from the generative law (`prior`,
`bayes`) draw from the default one here, and all laws share one compiled program.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, replace

from calibrant.problems.testbed import Testbed
from calibrant.types import Instance


@dataclass(frozen=True)
class Misspecified(Testbed):
    """A testbed problem whose agents are told of the default network, whatever drew it (Osband et al., 2022)."""

    def sample(self, seed: int) -> Instance:
        drawn, told = super().sample(seed), self.assumed()
        facts = replace(drawn.facts, hidden=told.hidden, activation=told.activation, init=told.init)
        # What beliefs look like is drawn once, in the suite `testbed`: eleven laws of maps would fill a report.
        return replace(drawn, facts=facts, question=replace(drawn.question, picture=None))

    def shape(self) -> Hashable:
        return self.assumed().shape()

    def assumed(self) -> Testbed:
        """The problem that agents take this one for."""
        return Testbed(
            train=self.train, temp=self.temp, dim=self.dim, classes=self.classes,
            tuples=self.tuples, tau=self.tau, kappa=self.kappa, worlds=self.worlds,
        )  # fmt: skip
