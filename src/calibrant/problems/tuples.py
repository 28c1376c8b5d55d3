"""In which structure inputs are asked: i.i.d. tuples, and polyadic tuples of kappa anchors.

Polyadic sampling (Osband et al., "Evaluating High-Order Predictive Distributions in Deep Learning", UAI 2022):
draw kappa anchor inputs, then fill the tau places of the tuple by anchors drawn uniformly with replacement. Labels are
drawn independently at every place. kappa=2 is dyadic sampling. A tuple is kept as its anchors and how often
each is repeated, because the order of the places changes no score; a dyad is evaluated at 2 inputs, never at 10.
"""

from __future__ import annotations

import numpy as np

from calibrant.seeds import Stream
from calibrant.types import Tuples


def family_name(kappa: int) -> str:
    return "dyadic" if kappa == 2 else f"kappa{kappa}"


def iid_tuples(n: int, tau: int, stride: int, start: int = 0) -> Tuples:
    """Tuple i asks the first `tau` of the `stride` inputs that belong to it."""
    anchors = start + np.arange(n)[:, None] * stride + np.arange(tau)
    return Tuples("", tau, anchors, np.ones_like(anchors))


def polyadic_tuples(stream: Stream, n: int, tau: int, kappa: int, start: int = 0) -> Tuples:
    """Tuple i asks its own `kappa` anchors, `tau` times in all."""
    places = stream.integers(kappa, n, tau)
    repeats = (places[:, :, None] == np.arange(kappa)).sum(axis=1)
    anchors = start + np.arange(n * kappa).reshape(n, kappa)
    return Tuples(family_name(kappa), tau, anchors, repeats)
