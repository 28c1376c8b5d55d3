"""Finding hyperparameters fairly: on environments of their own, at a stated cost, with every trial kept."""

from __future__ import annotations

# Seeds from here on draw tuning environments. No report reads them, and no run that reports reaches so far.
TUNING_SEEDS = 1_000_000
