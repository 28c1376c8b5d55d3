"""Ensembles whose prior functions are drawn from the neural tangent kernel.

He, Lakshminarayanan and Teh, "Bayesian Deep Ensembles via the Neural Tangent Kernel", NeurIPS 2020. A member is a
trained network plus  p(x) = (prior_scale / sqrt(temperature)) J(x; theta_0) delta,  the derivative of a network at its
random birth theta_0 along a random direction delta, whose entries have variance 1 / fan_in of their layer. Given
theta_0, p is a Gaussian process with the empirical tangent kernel as covariance: J S J', S the variances of delta.

All layers of delta are drawn. The paper leaves out the last one, because at birth a member is itself a draw of that
layer's kernel and keeps it; ours is pulled to zero by weight decay.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from annotated_types import Ge

from calibrant.agents.ensemble_plus import EnsemblePlus
from calibrant.nets.mlp import Mlp
from calibrant.nets.prior_functions import Tangent
from calibrant.nets.trees import tree


@tree
@dataclass(frozen=True)
class NtkEnsemblePlus(EnsemblePlus):
    """Deep ensemble with prior functions of the neural tangent kernel (He et al., 2020)."""

    prior_scale: Annotated[float, Ge(0)] = 0.6  # tangent functions are larger than networks at birth

    def prior_function(self, network: Mlp) -> Any:
        return Tangent(network)
