"""The report as a file and in a browser: complete, safe, and quiet."""

from __future__ import annotations

import json
import os
import re
import shutil
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from calibrant.problems.testbed import Testbed, picture_grid
from calibrant.report.html import render, write_report
from calibrant.report.page import Published, suite_page
from calibrant.suites.testbed import SUITE, TEMP, TRAIN
from calibrant.types import CalibrantError, Cell, Cost, Record, Scores

CHROMIUM = "/usr/bin/chromium"
FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-background-networking --disable-component-update --disable-sync "
    "--no-first-run"
).split()
AGENTS = ("uniform", "prior", "oracle", "logistic", "mlp", "ensemble", "ensemble+")
# Per agent: marginal loss with no data and with much, share of it that dependence saves or adds, CPU seconds of a fit.
CHARACTERS: Mapping[str, tuple[float, float, float, float]] = {
    "uniform": (0.55, 0.55, 0.0, 0.0004),
    "prior": (0.56, 0.56, -0.25, 0.0008),
    "oracle": (0.0, 0.0, 0.0, 0.0003),
    "logistic": (0.42, 0.22, 0.0, 0.05),
    "mlp": (0.45, 0.03, 0.0, 0.6),
    "ensemble": (0.43, 0.028, -0.06, 6.1),
    "ensemble+": (0.41, 0.027, -0.45, 6.8),
}


def synthetic_records(
    agents: Sequence[str] = AGENTS,
    train: Sequence[int] = TRAIN,
    temps: Sequence[str] = TEMP,
    seeds: int = 10,
    pictures: bool = True,
    failing: Mapping[str, str] | None = None,
) -> list[Record]:
    """Records that look like the real thing: losses that fall with data, harder environments harder for everyone."""
    records = []
    for size in train:
        for temp in temps:
            problem = next(p for p in SUITE.presets["paper"].problems if p == _spec(size, temp))
            for seed in range(seeds):
                luck = np.random.default_rng([size, int(float(temp) * 100), seed])
                hardness = np.exp(0.3 * luck.normal())
                for agent in agents:
                    records.append(_record(problem, agent, seed, size, float(temp), hardness, luck, failing or {}))
    if pictures:
        drawn = {p: _pictures(p, agents) for p in {r.cell.problem for r in records}}
        records = [
            Record(r.cell, r.scores, r.cost, r.provenance, drawn[r.cell.problem][r.cell.agent], r.reason)
            if r.cell.seed == 0 and not r.failed
            else r
            for r in records
        ]
    return records


def _record(
    problem: str,
    agent: str,
    seed: int,
    size: int,
    temp: float,
    hardness: float,
    luck: np.random.Generator,
    failing: Mapping[str, str],
) -> Record:
    start, end, saved, cpu = CHARACTERS.get(agent, CHARACTERS["mlp"])
    scale = {0.01: 1.2, 0.1: 0.9, 0.5: 0.3}[temp] * hardness
    marginal = scale * (end + (start - end) / (1 + size / 20) ** 0.6) * np.exp(0.1 * luck.normal())
    dependence = 10 * marginal * saved / (1 + size / 100)
    cell = Cell(problem, agent, seed, f"{problem}|{agent}|{seed}")
    provenance = {
        "calibrant": "0.1.0",
        "versions": {"jax": "0.10.2", "numpy": "2.4.1"},
        "hardware": "x86_64, 2 cores",
        "commit": "0123456789abcdef",
        "finished": f"2026-02-{1 + seed % 27:02d}T09:30:00+00:00",
    }
    if agent in failing and seed == 1:
        return Record(cell, reason=failing[agent], provenance=provenance)
    joint = 10 * marginal + dependence
    sampled = agent in ("prior",)
    scores = {
        "kl_tau1": Scores(marginal),
        "kl_tau10": Scores(joint, mc_bias=0.004 * sampled, mc_se=0.001 * sampled),
        "kl_tau10_dyadic": Scores(10 * marginal + 1.6 * dependence + 0.05 * abs(luck.normal()) * (agent != "oracle")),
        "marginal_tau10": Scores(10 * marginal),
        "dependence_tau10": Scores(dependence),
        "accuracy": Scores(float(np.clip(0.95 - marginal * 0.6 - temp / 2 + 0.01 * luck.normal(), 0, 1))),
        "ece": Scores(float(0.02 + 0.1 * marginal + 0.004 * abs(luck.normal()))),
    }
    cost = Cost(fit_cpu_seconds=cpu * (1 + size / 2000) * float(np.exp(0.05 * luck.normal())), fit_wall_seconds=cpu)
    return Record(cell, scores, cost, provenance)


def _pictures(problem: str, agents: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Beliefs on a real environment: agents mix the truth with other environments, as much as data leaves open."""
    size, temp = _fields(problem)
    instance = Testbed(train=size, temp=temp, tuples=2).sample(0)
    others = [Testbed(train=size, temp=temp, tuples=2).sample(seed).environment for seed in range(1, 5)]
    grid = picture_grid()
    truth = np.exp(instance.environment.logp(grid))[:, 1]
    alien = np.stack([np.exp(other.logp(grid))[:, 1] for other in others])
    known = 1 - 1 / (1 + size / 15)
    worlds = {
        "uniform": np.full((1, len(grid)), 0.5),
        "prior": alien,
        "oracle": truth[None],
        "logistic": (1 / (1 + np.exp(-2 * grid @ np.array([known, 1 - known]))))[None],
        "mlp": (known * truth + (1 - known) * alien[0])[None],
        "ensemble": known * truth + (1 - known) * (0.85 * alien[:1] + 0.15 * alien),
    }
    common = {"x": instance.train.x, "y": instance.train.y, "grid": grid, "truth": truth}
    beliefs = {agent: worlds.get(agent, known * truth + (1 - known) * alien) for agent in agents}
    return {agent: common | {"mean": belief.mean(0), "worlds": belief} for agent, belief in beliefs.items()}


def _spec(size: int, temp: str) -> str:
    given = [f"train={size}"] * (size != 10) + [f"temp={temp}"] * (temp != "0.1")
    return "testbed" + ("?" + "&".join(given) if given else "")


def _fields(problem: str) -> tuple[int, float]:
    given = dict(pair.split("=") for pair in problem.partition("?")[2].split("&") if pair)
    return int(given.get("train", 10)), float(given.get("temp", 0.1))
