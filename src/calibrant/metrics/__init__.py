"""Scores: arrays in, arrays out, no training code."""

from calibrant.metrics.catalogue import Metric, catalogue, score, score_game, versions

__all__ = ["Metric", "catalogue", "score", "score_game", "versions"]
