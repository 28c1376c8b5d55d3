"""Tuned defaults: a readable file that says, for a suite and an agent, which spec a study found, and what study it was.

The library brings a file of its own; one named `tuned.toml` in the working directory goes before it.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any, TypeAlias

from calibrant import registry
from calibrant.engine.provenance import provenance
from calibrant.report.files import write_whole
from calibrant.tune import TUNING_SEEDS
from calibrant.tune.show import Summary
from calibrant.types import CalibrantError

OWN = Path("tuned.toml")  # in the working directory
PACKAGED = Path(__file__).with_name("tuned.toml")
HEADER = """\
# Tuned defaults by suite and agent, each with the study that found it. `calibrant run SUITE --tuned` uses them;
# `calibrant tune SUITE AGENT --adopt` writes them. Objectives are means over tuning environments, which no report uses.
"""

Entries: TypeAlias = dict[str, dict[str, dict[str, Any]]]  # suite -> agent as it was given -> what was found


def tuned_specs(suite: str, agents: Iterable[str], files: Sequence[Path] = (OWN, PACKAGED)) -> list[str]:
    """The agents with their tuned specs in place of those that a study of this suite started from.

    Agents that nobody tuned stay as they are; if that is all of them, the user expected something else.
    """
    known = tuned_for(suite, files)
    names = [registry.canonical("agents", agent) for agent in agents]
    if not known.keys() & set(names):
        raise CalibrantError(
            f"there is no tuned spec of {', '.join(names)} for suite '{suite}'; `calibrant tune {suite} AGENT --adopt` "
            f"writes one to {OWN}"
        )
    return [known.get(name, name) for name in names]


def tuned_for(suite: str, files: Sequence[Path] = (OWN, PACKAGED)) -> dict[str, str]:
    """Every agent that a study of this suite started from, with the spec it found; earlier files win."""
    found: dict[str, str] = {}
    for file in reversed(files):
        entries = read_tuned(file).get(suite, {}) if file.exists() else {}
        found |= {agent: entry["spec"] for agent, entry in entries.items()}
    return found


def adopt(summary: Summary, file: Path = OWN) -> dict[str, Any]:
    """Write the best trial of a study into a file, in place of an earlier one of the same suite and agent."""
    entries = read_tuned(file) if file.exists() else {}
    found = describe(summary)
    entries.setdefault(summary.study.suite, {})[summary.study.agent] = found
    write_whole(file, print_tuned(entries).encode())
    return found


def describe(summary: Summary) -> dict[str, Any]:
    """The best trial and the study it comes from, as they stand in the file."""
    study, best = summary.study, summary.best
    if best is None or best.trial.objective is None:
        raise CalibrantError(f"no trial of study {study.name} has been measured on every tuning environment yet")
    judged = sum(line.trial.state != "open" for line in summary.lines)
    return {
        "spec": best.trial.spec,
        "metric": study.metric,
        "objective": float(f"{best.trial.objective:.6g}"),
        "as_given": float(f"{summary.given.gap:.6g}"),  # how far the agent as it was given lies from that
        "as_given_se": float(f"{summary.given.gap_se:.6g}"),
        "study": study.name,
        "sampler": study.sampler,
        "space": list(study.space),
        "trials": judged,
        "complete": sum(line.trial.state == "complete" for line in summary.lines),
        "halving": list(study.rungs),
        "preset": study.preset,
        "where": ",".join(f"{field}={value}" for field, value in study.where.items()),
        "seeds": study.seeds,
        "first_seed": TUNING_SEEDS,
        "sampler_seed": study.seed,
        "cpu_seconds": round(summary.cost, 1),
        "date": datetime.now(UTC).date(),
        "calibrant": provenance()["calibrant"],
    }


def read_tuned(file: Path) -> Entries:
    """The entries of a file; every one is a spec of an agent that exists."""
    try:
        entries = tomllib.loads(file.read_text())
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise CalibrantError(f"'{file}' cannot be read as a file of tuned specs: {error}") from None
    for suite, agents in entries.items():
        for agent, entry in agents.items() if isinstance(agents, Mapping) else [(suite, None)]:
            spec = entry.get("spec") if isinstance(entry, Mapping) else None
            if not isinstance(spec, str):
                raise CalibrantError(f"'{file}' should hold tables [suite.\"agent\"] with a spec, but {agent} has none")
    return entries


def print_tuned(entries: Entries) -> str:
    parts = [HEADER]
    for suite, agents in sorted(entries.items()):
        for agent, entry in sorted(agents.items()):
            lines = [f"{name} = {_toml(value)}" for name, value in entry.items()]
            parts.append("\n".join([f"[{_key(suite)}.{_key(agent)}]", *lines, ""]))
    return "\n".join(parts)


def _key(name: str) -> str:
    bare = name.replace("-", "").replace("_", "")
    return name if bare.isascii() and bare.isalnum() else json.dumps(name)


def _toml(value: Any) -> str:
    """Text, numbers, dates and lists of them; JSON writes all but dates as TOML does."""
    return value.isoformat() if isinstance(value, date) else json.dumps(value, ensure_ascii=False)
