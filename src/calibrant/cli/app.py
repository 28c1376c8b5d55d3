"""Every command with its options and help. The work is done by the rooms that each one calls."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from calibrant import __version__
from calibrant.cli import output
from calibrant.types import DEFAULT_STORE

app = typer.Typer(
    name="calibrant",
    help="Measures how well a learning system knows what it does not know.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Start with `calibrant run testbed`, then `calibrant board testbed`. Any command resumes when given again.",
)

Store = Annotated[str, typer.Option("--store", metavar="URL", help="Database: a file, sqlite:///FILE or postgresql://...",
                                    envvar="CALIBRANT_STORE")]  # fmt: skip
Json = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]
SuiteName = Annotated[str, typer.Argument(metavar="SUITE", help="A suite: `calibrant list suites`.")]


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(__version__)
        raise typer.Exit()


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass


@app.command("list")
def list_(
    kind: Annotated[Literal["agents", "suites", "problems", "metrics"], typer.Argument(help="What to list.")],
    json: Json = False,
) -> None:
    """What there is: agents, suites, problems or metrics, each with its parameters and one line."""
    from calibrant.cli.listing import listing

    output.listing(listing(kind), json)


@app.command()
def run(
    suite: SuiteName,
    agents: Annotated[str, typer.Option(help='Agents, separated by commas: mlp,"ensemble+?size=30&l2=3".')] = "",
    agent: Annotated[
        list[str] | None, typer.Option(metavar="FILE.py:NAME", help="Your own agent; may be repeated.")
    ] = None,
    preset: Annotated[str, typer.Option(help="Size of the suite: quick or paper.")] = "quick",
    where: Annotated[str, typer.Option(help="Only problems with these values: temp=0.1,train=10|30.")] = "",
    seeds: Annotated[int | None, typer.Option(help="Environments per setting; the preset's number by default.")] = None,
    executor: Annotated[Literal["auto", "local", "processes"], typer.Option(help="Who does the work.")] = "auto",
    workers: Annotated[int | None, typer.Option(help="Worker processes; one per core by default.")] = None,
    timeout: Annotated[float | None, typer.Option(min=0.001, help="Seconds a cell may take before it fails.")] = None,
    store: Store = DEFAULT_STORE,
    json: Json = False,
) -> None:
    """Run agents on a suite. What the store already has is not run again; interrupt and repeat at will."""
    from calibrant.cli.running import run_suite

    names = [name for name in (part.strip() for part in agents.split(",")) if name] + (agent or [])
    outcome = run_suite(suite, names, preset, output.pairs(where), seeds, executor, workers, timeout, store, quiet=json)
    output.outcome(outcome, suite, store, json)
    raise typer.Exit(outcome.exit_code)


@app.command()
def board(
    suite: SuiteName,
    by: Annotated[str, typer.Option(help="Slice by fields of the problem: temp,train.")] = "",
    baseline: Annotated[str | None, typer.Option(help="The agent that others are compared with.")] = None,
    metrics: Annotated[str, typer.Option(help="Columns: kl_tau10,ece; the suite's own by default.")] = "",
    agents: Annotated[str, typer.Option(help='Only these agents: mlp,"ensemble?size=10".')] = "",
    format: Annotated[
        Literal["table", "json", "csv", "latex", "parquet"], typer.Option(help="How to print it.")
    ] = "table",
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Write to a file instead of printing.")] = None,
    store: Store = DEFAULT_STORE,
    json: Json = False,
) -> None:
    """A suite's results: means with 95 % intervals, paired differences to a baseline, tiers."""
    from calibrant.api import load

    names = output.words(agents) or None
    made = load(store).board(
        suite, by=output.words(by), baseline=baseline, metrics=output.words(metrics) or None, agents=names
    )
    output.board(made, "json" if json else format, out)


@app.command()
def report(
    suites: Annotated[
        list[str] | None, typer.Argument(metavar="SUITE", help="All that have records by default.")
    ] = None,
    out: Annotated[Path, typer.Option("--out", "-o", help="The file to write.")] = Path("report.html"),
    baseline: Annotated[str | None, typer.Option(help="The agent that others are compared with.")] = None,
    store: Store = DEFAULT_STORE,
    json: Json = False,
) -> None:
    """One self-contained HTML file with tables and figures; it needs no network."""
    from calibrant.api import load

    path = load(store).report(out, suites or (), baseline=baseline)
    output.written(path, json)


@app.command()
def score(
    predictions: Annotated[
        Path, typer.Argument(metavar="PREDICTIONS.npz", help=r"logits \[worlds, items, classes], labels \[items].")
    ],
    json: Json = False,
) -> None:
    """Score saved predictions without any model: NLL, joint NLL, accuracy, calibration; KL where the truth is given."""
    from calibrant.adapters.predictions import load_predictions
    from calibrant.metrics import score as score_answers

    output.scores(score_answers(*load_predictions(predictions), key="score"), json)


@app.command()
def check(
    agent: Annotated[str, typer.Argument(metavar="FILE.py:NAME", help="The agent to test, or any agent spec.")],
    problem: Annotated[str, typer.Option(help="The problem to try it on.")] = "testbed?train=10&temp=0.1",
    json: Json = False,
) -> None:
    """Test an agent against the contract, and say in plain words what is wrong."""
    from calibrant.cli.checking import check_spec

    findings = check_spec(agent, problem)
    output.findings(findings, json)
    raise typer.Exit(0 if all(finding.ok for finding in findings) else 1)
