"""Every command with its options and help. The work is done by the rooms that each one calls."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from calibrant import __version__
from calibrant.cli import INTERRUPTED, data, output
from calibrant.types import DEFAULT_STORE

app = typer.Typer(
    name="calibrant",
    help="Measures how well a learning system knows what it does not know.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Start with `calibrant run testbed`, then `calibrant board testbed`. Any command resumes when given again.",
)
app.add_typer(data.app, name="data")

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
    kind: Annotated[
        Literal["agents", "suites", "problems", "metrics", "papers", "datasets"], typer.Argument(help="What to list.")
    ],
    json: Json = False,
) -> None:
    """What there is: agents, suites, problems, metrics or papers, each with its parameters and one line."""
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
    tuned: Annotated[bool, typer.Option("--tuned", help="Take agents as `calibrant tune --adopt` left them.")] = False,
    store: Store = DEFAULT_STORE,
    json: Json = False,
) -> None:
    """Run agents on a suite. What the store already has is not run again; interrupt and repeat at will."""
    from calibrant.cli.running import run_suite

    names = [name for name in (part.strip() for part in agents.split(",")) if name] + (agent or [])
    outcome = run_suite(
        suite, names, preset, output.pairs(where), seeds, executor, workers, timeout, tuned, store, quiet=json
    )
    output.outcome(outcome, suite, store, json)
    raise typer.Exit(outcome.exit_code)


@app.command()
def tune(
    suite: Annotated[str | None, typer.Argument(metavar="SUITE", help="A suite: `calibrant list suites`.")] = None,
    agent: Annotated[str | None, typer.Argument(metavar="AGENT", help="An agent; what its spec fixes stays.")] = None,
    sampler: Annotated[
        Literal["grid", "random", "tpe", "cmaes", "gp"] | None, typer.Option(help="Who proposes; grid by default.")
    ] = None,
    space: Annotated[
        str, typer.Option(help='What to search: "l2=0.1|1|10,prior_scale=0.1..10:log"; the known space by default.')
    ] = "",
    trials: Annotated[int | None, typer.Option(help="Configurations in all; the whole grid, else 30.")] = None,
    cpu_minutes: Annotated[float | None, typer.Option(help="CPU minutes in all, past sessions included.")] = None,
    metric: Annotated[str | None, typer.Option(help="What is improved; aggregate, d1 + d10/10, by default.")] = None,
    seeds: Annotated[int, typer.Option(help="Tuning environments per setting; no report uses them.")] = 3,
    preset: Annotated[str, typer.Option(help="Size of the suite: quick or paper.")] = "quick",
    where: Annotated[str, typer.Option(help="Only problems with these values: temp=0.1,train=10|30.")] = "",
    halving: Annotated[bool, typer.Option(help="Stop hopeless configurations after a few seeds.")] = True,
    seed: Annotated[int, typer.Option(help="Of the sampler.")] = 0,
    show: Annotated[bool, typer.Option("--show", help="Run nothing; show the studies that the store holds.")] = False,
    adopt: Annotated[bool, typer.Option("--adopt", help="Write the best spec to the file of tuned specs.")] = False,
    file: Annotated[Path, typer.Option(help="The file that --adopt writes.")] = Path("tuned.toml"),
    executor: Annotated[Literal["auto", "local", "processes"], typer.Option(help="Who does the work.")] = "auto",
    workers: Annotated[int | None, typer.Option(help="Worker processes; one per core by default.")] = None,
    store: Store = DEFAULT_STORE,
    json: Json = False,
) -> None:
    """Search an agent's hyperparameters on environments that no report uses. Interrupt and repeat at will."""
    from calibrant.cli import tuning
    from calibrant.tune.search import Budget

    if show:
        found, code = tuning.tuned_so_far(store, suite, agent, sampler=sampler, metric=metric), 0
    else:
        summary, finished = tuning.tune_agent(
            suite, agent, Budget(trials, cpu_minutes), executor, workers, store, quiet=json,
            sampler=sampler or "grid", space=space, metric=metric or "aggregate", seeds=seeds, preset=preset,
            where=output.pairs(where), halving=halving, seed=seed,
        )  # fmt: skip
        found, code = [summary], finished.exit_code
    adopted = tuning.adopt_best(found, file) if adopt and code != INTERRUPTED else None
    output.studies(found, adopted, file, json, interrupted=code == INTERRUPTED)
    raise typer.Exit(code)


@app.command()
def board(
    suite: SuiteName,
    by: Annotated[str, typer.Option(help="Slice by fields of the problem: temp,train.")] = "",
    baseline: Annotated[str | None, typer.Option(help="The agent that others are compared with.")] = None,
    metrics: Annotated[str, typer.Option(help="Columns: kl_tau10,ece; the suite's own by default.")] = "",
    agents: Annotated[str, typer.Option(help='Only these agents: mlp,"ensemble?size=10".')] = "",
    where: Annotated[str, typer.Option(help="Only problems with these values: temp=0.1,train=10|30.")] = "",
    preset: Annotated[str | None, typer.Option(help="Only problems of this preset.")] = None,
    floor: Annotated[
        str | None, typer.Option(help="The agent that the share of the gap closed is measured to; bayes by default.")
    ] = None,
    format: Annotated[
        Literal["table", "json", "csv", "latex", "markdown", "parquet"], typer.Option(help="How to print it.")
    ] = "table",
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Write to a file instead of printing.")] = None,
    store: Store = DEFAULT_STORE,
    json: Json = False,
) -> None:
    """A suite's results: means with 95 % intervals, paired differences to a baseline, tiers."""
    from calibrant.api import load

    names = output.words(agents) or None
    made = load(store).board(
        suite,
        by=output.words(by),
        baseline=baseline,
        metrics=output.words(metrics) or None,
        agents=names,
        floor=floor,
        where=output.pairs(where),
        preset=preset,
    )
    output.board(made, "json" if json else format, out)


@app.command()
def report(
    suites: Annotated[
        list[str] | None, typer.Argument(metavar="SUITE", help="All that have records by default.")
    ] = None,
    out: Annotated[Path, typer.Option("--out", "-o", help="The file to write.")] = Path("report.html"),
    baseline: Annotated[str | None, typer.Option(help="The agent that others are compared with.")] = None,
    preset: Annotated[str | None, typer.Option(help="Only problems of this preset.")] = None,
    store: Store = DEFAULT_STORE,
    json: Json = False,
) -> None:
    """One self-contained HTML file with tables and figures; it needs no network."""
    from calibrant.api import load

    path = load(store).report(out, suites or (), baseline=baseline, preset=preset)
    output.written(path, json)


@app.command()
def correlate(
    a: Annotated[str, typer.Argument(metavar="SUITE", help="A suite: `calibrant list suites`.")],
    b: Annotated[str | None, typer.Argument(metavar="SUITE", help="Another, or the same by another metric.")] = None,
    by: Annotated[
        str | None,
        typer.Option(help="One suite: between values of a field, activation. Two: at each of the second's, dim."),
    ] = None,
    metric_a: Annotated[str | None, typer.Option(help="Of the first suite; dyadic joint loss by default.")] = None,
    metric_b: Annotated[str | None, typer.Option(help="Of the second suite; likewise.")] = None,
    agents: Annotated[str, typer.Option(help='Only these agents: mlp,"ensemble?size=10"; all but controls.')] = "",
    match: Annotated[
        Literal["spec", "method"], typer.Option(help="method: an agent may have other parameters on either side.")
    ] = "spec",
    where_a: Annotated[str, typer.Option(help="Only problems of the first suite with these values: temp=0.1.")] = "",
    where_b: Annotated[str, typer.Option(help="Likewise of the second suite: dim=50.")] = "",
    blocks: Annotated[int, typer.Option(min=0, help="Also correlate within so many blocks of seeds.")] = 0,
    kind: Annotated[
        Literal["pearson", "log", "rank"], typer.Option(help="Within one suite: which coefficient.")
    ] = "pearson",
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Also draw it: FILE.html or FILE.svg.")] = None,
    store: Store = DEFAULT_STORE,
    json: Json = False,
) -> None:
    """Whether agents that score well on one suite score well on another: correlations with bootstrap intervals."""
    from calibrant.cli.correlating import correlate_suites

    found = correlate_suites(
        a, b, by, metric_a, metric_b, output.words(agents) or None, kind, match,
        output.pairs(where_a), output.pairs(where_b), blocks, store,
    )  # fmt: skip
    output.correlation(found, out, json)


@app.command("reproduce")
def reproduce_(
    reference: Annotated[
        str,
        typer.Argument(metavar="PAPER:ITEM", help="As in neural-testbed:table2, or FILE.toml:ITEM; none: a list."),
    ] = "",
    agents: Annotated[str, typer.Option(help='Only these of its agents: mlp,"ensemble?size=10".')] = "",
    seeds: Annotated[int | None, typer.Option(help="Environments per setting; as published by default.")] = None,
    tuned: Annotated[bool, typer.Option("--tuned", help="Our tuned hyperparameters instead of the defaults.")] = False,
    no_run: Annotated[bool, typer.Option("--no-run", help="Run nothing: compare what the store has.")] = False,
    executor: Annotated[Literal["auto", "local", "processes"], typer.Option(help="Who does the work.")] = "auto",
    workers: Annotated[int | None, typer.Option(help="Worker processes; one per core by default.")] = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="The page to write, or its folder; docs/results if it exists.")
    ] = None,
    store: Store = DEFAULT_STORE,
    json: Json = False,
) -> None:
    """Hold a published table or figure against ours: run what is missing, print and write the receipt."""
    if not reference:
        return list_("papers", json)
    from calibrant.cli.reproducing import reproduce_item

    made = reproduce_item(
        reference, output.words(agents), seeds, tuned, not no_run, executor, workers, out, store, quiet=json
    )
    output.receipt(*made, json)
    raise typer.Exit(made[1].exit_code)


@app.command("export")
def export_(
    suites: Annotated[
        list[str] | None, typer.Argument(metavar="SUITE", help="All that have records by default.")
    ] = None,
    agents: Annotated[str, typer.Option(help='Only these agents: mlp,"ensemble?size=10".')] = "",
    out: Annotated[Path, typer.Option("--out", "-o", help="The file to write.")] = Path("records.jsonl.gz"),
    store: Store = DEFAULT_STORE,
    json: Json = False,
) -> None:
    """Write records to one file: to publish them beside a table, or to take them to another store."""
    from calibrant.cli.exporting import export_suites

    written = export_suites(suites or (), output.words(agents) or None, out, store)
    output.exchanged({"written": written, "file": str(out)}, json)


@app.command("import")
def import_(
    files: Annotated[list[Path], typer.Argument(metavar="FILE", help="Files that `calibrant export` wrote.")],
    store: Store = DEFAULT_STORE,
    json: Json = False,
) -> None:
    """Add the records of exported files to a store. What the store already has stays as it is."""
    from calibrant.engine.exchange import import_records
    from calibrant.engine.store import open_store

    with open_store(store) as opened:
        for file in files:
            total, already = import_records(file, opened)
            output.exchanged({"read": total, "already there": already, "file": str(file)}, json)


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
