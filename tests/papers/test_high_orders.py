"""What figure 6 asks: orders so high that labels are drawn."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.special import log_softmax

from calibrant import registry
from calibrant.metrics import score
from calibrant.types import Answers


@pytest.mark.parametrize("tau", [30, 100])
def test_the_truth_and_its_opposite_cost_one_bit(tau: int) -> None:
    """Of two worlds one is the truth and the other gives every label the other's chance, so that labels soon tell them
    apart: KL is log 2, less what a chance agreement gains, which is nothing here. False alarms: 5 errors, below 1e-6.
    """
    instance = registry.resolve("problems", f"testbed?temp=0.1&tuples=200&tau=1x{tau}").sample(1)
    true = instance.environment(instance.question.x)
    logp = log_softmax(np.stack([true, true[:, ::-1]]), axis=-1).astype(np.float32)
    found = score(Answers(logp, None, exact=True), instance.question, instance.truth)[f"kl_tau{tau}"]
    assert found.n == 200 and 0 < found.se < 0.1
    assert abs(found.mean - math.log(2)) < 5 * found.se
