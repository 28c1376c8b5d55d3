"""Every command from end to end: help, JSON, exit codes, and one sentence for whatever is wrong."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from calibrant import __version__, registry
from calibrant.cli import main

COMMANDS = (
    *("list", "run", "board", "report", "correlate", "export"),
    *("import", "score", "check", "tune", "reproduce", "data"),
)
SCRIPT = Path(sys.executable).with_name("calibrant")
EXAMPLE = Path(__file__).parents[2] / "examples" / "numpy_agent.py"


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Six cells: two agents in three settings."""
    file = tmp_path_factory.mktemp("store") / "results.db"
    words = (
        "run",
        "testbed",
        "--agents",
        "uniform,oracle",
        "--where",
        "train=10",
        "--seeds",
        "1",
        "--store",
        str(file),
    )
    assert run(*words, "--executor", "local") == 0
    return str(file)


class Terminal:
    """Runs commands as the script does, in this process."""

    def __init__(self, captured: pytest.CaptureFixture[str]) -> None:
        self._captured = captured

    def __call__(self, *words: str, code: int = 0) -> str:
        """What a command prints, after checking its exit code."""
        assert run(*words) == code, self._captured.readouterr().err
        return self._captured.readouterr().out

    def json(self, *words: str, code: int = 0) -> Any:
        return json.loads(self(*words, "--json", code=code))

    def sentence(self, *words: str) -> str:
        """What a command says about wrong input: one line, and nothing on the standard output."""
        assert run(*words) == 2
        out, err = self._captured.readouterr()
        assert out == "" and err.startswith("calibrant: ") and err.count("\n") == 1 and err.endswith("\n"), err
        return err.removeprefix("calibrant: ").rstrip("\n")


def run(*words: str) -> int:
    with pytest.MonkeyPatch.context() as patch, pytest.raises(SystemExit) as ended:
        patch.setattr(sys, "argv", ["calibrant", *words])
        main()
    return int(ended.value.code or 0)


@pytest.fixture
def calibrant(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, store: str
) -> Terminal:
    """In an empty folder, on a wide terminal. The store is made first, so that its words are not taken for ours."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("NO_COLOR", "1")
    capsys.readouterr()
    return Terminal(capsys)


# --- help -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("command", "shown"),
    [
        ("list", ["agents|suites|problems|metrics", "--json"]),
        ("run", ['mlp,"ensemble+?size=30&l2=3"', "FILE.py:NAME", "temp=0.1,train=10|30", "auto|local|processes"]),
        (
            "board",
            [
                "temp,train",
                "kl_tau10,ece",
                "table|json|csv|latex|markdown|parquet",
                "sqlite:///FILE",
                "CALIBRANT_STORE",
            ],
        ),
        ("report", ["[SUITE]...", "report.html", "--baseline"]),
        ("score", ["PREDICTIONS.npz", "logits [worlds, items, classes]", "labels [items]"]),
        ("check", ["FILE.py:NAME", "testbed?train=10&temp=0.1"]),
        ("tune", ["grid|random|tpe|cmaes|gp", "l2=0.1|1|10", "--cpu-minutes", "--no-halving", "tuned.toml"]),
        ("export", ["[SUITE]...", "records.jsonl.gz", "--agents"]),
        ("import", ["FILE", "calibrant export", "--store"]),
        ("reproduce", ["PAPER:ITEM", "neural-testbed:table2", "--no-run", "--tuned"]),
    ],
)
def test_help_shows_how_options_look(calibrant: Terminal, command: str, shown: list[str]) -> None:
    text = calibrant(command, "--help")
    assert text == calibrant(command, "-h")
    for part in shown:
        assert part in text


def test_help_names_every_command(calibrant: Terminal) -> None:
    text = calibrant("--help")
    assert all(f"│ {command} " in text for command in COMMANDS)
    assert calibrant("--version").strip() == __version__


def test_help_is_quick_and_imports_nothing_numerical() -> None:
    """About 0.2 s of CPU; the limit leaves room for a busy machine."""
    code = """
import sys, time
from calibrant.cli import main
sys.argv = ["calibrant", "--help"]
try:
    main()
except SystemExit:
    heavy = {"jax", "numpy", "scipy", "sklearn", "sqlalchemy", "pydantic", "jinja2", "optax"} & set(sys.modules)
    print("heavy:", *sorted(heavy))
    print(time.process_time())
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    *_, heavy, seconds = done.stdout.splitlines()
    assert heavy.split() == ["heavy:"]
    assert float(seconds) < 0.6


def test_shells_are_told_how_to_complete() -> None:
    def ask(**env: str) -> str:
        done = subprocess.run([SCRIPT], env=os.environ | env, capture_output=True, text=True, check=True)
        return done.stdout

    script = ask(_CALIBRANT_COMPLETE="source_bash")
    assert "complete -o default -F _calibrant_completion calibrant" in script
    assert ask(_CALIBRANT_COMPLETE="complete_bash", COMP_WORDS="calibrant bo", COMP_CWORD="1").split() == ["board"]
    completed = ask(_CALIBRANT_COMPLETE="complete_bash", COMP_WORDS="calibrant run --ex", COMP_CWORD="2")
    assert completed.split() == ["--executor"]


# --- list -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["agents", "suites", "problems"])
def test_list_shows_every_name_with_parameters_and_one_line(calibrant: Terminal, kind: str) -> None:
    entries = calibrant.json("list", kind)
    assert [entry["name"] for entry in entries] == list(registry.table(kind))
    for entry in entries:
        assert set(entry) == {"name", "summary", "parameters"}
        assert entry["summary"] and "\n" not in entry["summary"]
    text = calibrant("list", kind)
    assert all(entry["name"] in text and entry["summary"] in text for entry in entries)


def test_listed_parameters_can_be_given(calibrant: Terminal) -> None:
    """What is shown as a default is what the parser reads."""
    for entry in calibrant.json("list", "agents"):
        given = {name: value for name, value in entry["parameters"].items() if value != "None"}
        query = "&".join(f"{name}={value}" for name, value in given.items())
        spec = entry["name"] + (f"?{query}" if query else "")
        assert registry.canonical("agents", spec) == entry["name"]


def test_list_metrics_holds_the_names_on_the_board(calibrant: Terminal) -> None:
    names = {entry["name"] for entry in calibrant.json("list", "metrics")}
    assert {"kl_tau1", "kl_tau10", "aggregate", "nll", "joint_nll_tau10", "accuracy", "ece", "brier"} <= names


# --- run, board, report ---------------------------------------------------------------------------


def test_run_tells_what_it_did(calibrant: Terminal, store: str) -> None:
    words = ("run", "testbed", "--agents", "oracle,uniform", "--where", "train=10", "--seeds", "1", "--store", store)
    result = calibrant.json(*words)
    assert result == {
        "total": 6, "already": 6, "done": 0, "failed": 0, "interrupted": False, "reasons": [], "exit_code": 0,
    }  # fmt: skip
    text = calibrant(*words)
    assert "6 cells: 6 already there, 0 done" in text
    assert f"calibrant board testbed --store {store}" in text


def test_run_makes_the_store_it_is_told(calibrant: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    words = ("run", "testbed", "--agents", "oracle", "--where", "train=10,temp=0.1", "--seeds", "1")
    assert calibrant.json(*words)["done"] == 1
    assert Path("calibrant.db").is_file()
    monkeypatch.setenv("CALIBRANT_STORE", "sqlite:///other.db")
    assert calibrant.json(*words)["done"] == 1
    assert Path("other.db").is_file()
    assert calibrant.json("board", "testbed")["rows"][0]["n"] == 1


def test_a_failed_cell_is_exit_code_one(calibrant: Terminal) -> None:
    Path("mine.py").write_text("def agent(seed, train, facts):\n    raise ValueError('no idea')\n")
    words = ("run", "testbed", "--agent", "mine.py:agent", "--where", "train=10,temp=0.1", "--seeds", "1")
    result = calibrant.json(*words, code=1)
    assert (result["done"], result["failed"], result["exit_code"]) == (0, 1, 1)
    assert "ValueError: no idea" in result["reasons"][0]
    row = calibrant.json("board", "testbed")["rows"][0]
    assert (row["n"], row["failed"], row["mean"]) == (0, 1, None)


def test_board_json_has_the_documented_shape(calibrant: Terminal, store: str) -> None:
    board = calibrant.json("board", "testbed", "--store", store, "--baseline", "uniform")
    assert {"suite", "baseline", "rows", "tiers"} <= set(board)
    assert (board["suite"], board["baseline"]) == ("testbed", "uniform")
    metrics = registry.load("suites", "testbed").metrics
    assert {(row["agent"], row["metric"]) for row in board["rows"]} == {
        (agent, metric) for agent in ("uniform", "oracle") for metric in metrics
    }
    for row in board["rows"]:
        assert {"agent", "metric", "slice", "mean", "low", "high", "n", "failed"} <= set(row)
        assert (row["n"], row["failed"], row["slice"]) == (3, 0, {})
        assert row["low"] <= row["mean"] <= row["high"]
    assert set(board["tiers"]) == set(metrics)
    assert sorted(agent for tier in board["tiers"]["kl_tau1"] for agent in tier) == ["oracle", "uniform"]


def test_board_measures_the_gap_to_a_floor(calibrant: Terminal, store: str) -> None:
    words = ("board", "testbed", "--store", store, "--baseline", "uniform")
    assert {row["gap"] for row in calibrant.json(*words)["rows"]} == {None}
    board = calibrant.json(*words, "--floor", "oracle")
    shares = {(row["agent"], row["metric"]): row["gap"] for row in board["rows"]}
    assert board["floor"] == "oracle" and shares["oracle", "accuracy"] is None
    assert (shares["uniform", "kl_tau10"]["mean"], shares["oracle", "kl_tau10"]["mean"]) == (0, 1)


def test_board_can_be_sliced_and_narrowed(calibrant: Terminal, store: str) -> None:
    words = ("board", "testbed", "--store", store, "--by", "temp,train", "--metrics", "ece,nll", "--agents", "uniform")
    board = calibrant.json(*words)
    assert {(row["slice"]["temp"], row["slice"]["train"]) for row in board["rows"]} == {
        (0.01, 10), (0.1, 10), (0.5, 10),
    }  # fmt: skip
    assert {(row["agent"], row["metric"], row["n"]) for row in board["rows"]} == {
        ("uniform", "ece", 1), ("uniform", "nll", 1),
    }  # fmt: skip


def test_report_writes_one_file(calibrant: Terminal, store: str) -> None:
    written = calibrant.json("report", "--store", store)
    assert written["path"] == "report.html"
    text = Path("report.html").read_text()
    assert len(text.encode()) == written["bytes"] > 100_000
    assert text.startswith("<!doctype html>") and "oracle" in text
    assert "wrote mine.html" in calibrant("report", "testbed", "-o", "mine.html", "--store", store)


def test_exported_records_give_the_same_board_elsewhere(calibrant: Terminal, store: str) -> None:
    assert calibrant("export", "testbed", "--store", store) == "written 6, file records.jsonl.gz\n"
    assert calibrant("import", "records.jsonl.gz", "--store", "other.db").startswith("read 6, already there 0, file ")
    assert calibrant.json("import", "records.jsonl.gz", "--store", "other.db")["already there"] == 6
    assert calibrant("board", "testbed", "--store", "other.db") == calibrant("board", "testbed", "--store", store)
    assert "no such records" in calibrant.sentence("export", "testbed", "--agents", "mlp", "--store", store)


# --- score and check ------------------------------------------------------------------------------


def test_score_reads_saved_predictions(calibrant: Terminal) -> None:
    labels = np.arange(40) % 2
    logits = np.zeros((1, 40, 2))
    logits[0, np.arange(40), labels] = np.log(3)  # 3 to 1 for the right class
    np.savez("predictions.npz", logits=logits, labels=labels)
    scores = calibrant.json("score", "predictions.npz")
    for one in scores.values():
        assert set(one) == {"mean", "se", "n", "mc_bias", "mc_se"}
    assert scores["nll"]["mean"] == pytest.approx(np.log(4 / 3))
    assert scores["joint_nll_tau10"]["mean"] == pytest.approx(10 * np.log(4 / 3))
    assert scores["accuracy"] == {"mean": 1.0, "se": 0.0, "n": 40, "mc_bias": 0.0, "mc_se": 0.0}
    assert scores["brier"]["mean"] == pytest.approx(2 / 16)
    text = calibrant("score", "predictions.npz")
    assert [line.split()[0] for line in text.splitlines()] == ["metric", *scores]


def test_check_passes_a_sound_agent(calibrant: Terminal) -> None:
    findings = calibrant.json("check", f"{EXAMPLE}:Agent?features=10")
    assert all(set(finding) == {"name", "ok", "message"} and finding["ok"] for finding in findings)
    assert findings[-1] == {
        "name": "worker process", "ok": True, "message": "another process can build it from its spec",
    }  # fmt: skip


def test_check_says_what_is_wrong(calibrant: Terminal) -> None:
    Path("odd.py").write_text(
        "import numpy as np\n"
        "def agent(seed, train, facts):\n"
        "    return lambda x: np.random.normal(size=(3, len(x), facts.classes))\n"
    )
    text = calibrant("check", "odd.py:agent", code=1)
    assert "WRONG  coherent worlds: the same world answers differently when asked again" in text
    assert text.splitlines()[-1].endswith("checks failed")
    assert any(not finding["ok"] for finding in calibrant.json("check", "odd.py:agent", code=1))


# --- what is wrong is one sentence ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("run testbd", "unknown suite 'testbd', did you mean 'testbed'?; `calibrant list suites` shows all"),
        ("board tstbed --store {store}", "unknown suite 'tstbed', did you mean 'testbed'?"),
        ("report tstbed --store {store}", "unknown suite 'tstbed', did you mean 'testbed'?"),
        ("run testbed --agents ensmble", "unknown agent 'ensmble', did you mean 'ensemble'?"),
        ("run testbed --agents mlp?stps=3", "unknown parameter 'stps' in 'mlp?stps=3', did you mean 'steps'?"),
        ("run testbed --agents mlp?steps", "'steps' in 'mlp?steps' is not of the form name=value"),
        ("run testbed --agents mlp?steps=many", "steps=many in 'mlp?steps=many': it should be a valid integer"),
        ("run testbed --agents oracle?depth=1", "unknown parameter 'depth' in 'oracle?depth=1'; it takes none"),
        ("run testbed --preset pper", "suite 'testbed' has no preset 'pper', did you mean 'paper'?"),
        ("run testbed --where temp", "'temp' is not of the form field=value, as in --where temp=0.1,train=10"),
        ("run testbed --where temp=", "'temp=' is not of the form field=value"),
        ("run testbed --where tmp=0.1", "problems of suite 'testbed' have no 'tmp', did you mean 'temp'?"),
        ("run testbed --where temp=0.1,temp=0.5", "'temp' is given twice in --where; temp=0.1|0.5 means either"),
        ("run testbed --where temp=7", "no problem of suite 'testbed' (quick) has temp=7"),
        ("run testbed --seeds 0", "seeds=0 should be at least 1"),
        ("run testbed --agent none.py:agent", "no file 'none.py'"),
        ("run testbed --agents oracle --store none/results.db", "there is no directory none for the store"),
        ("run testbed --agents oracle --store mysql://me", "a store is named by a file, by sqlite:///FILE or by"),
        ("board testbed", "no store at calibrant.db; `calibrant run` makes one"),
        ("report", "no store at calibrant.db; `calibrant run` makes one"),
        ("board testbed --store {store} --baseline mlp", "the baseline 'mlp' has no record in suite 'testbed'"),
        ("board testbed --store {store} --floor bayes", "the floor 'bayes' has no record in suite 'testbed'"),
        (
            "board testbed --store {store} --metrics kl_tau2",
            "no record has a metric 'kl_tau2', did you mean 'kl_tau1'?",
        ),
        ("board testbed --store {store} --by tmp", "problems have no field 'tmp' to slice by, did you mean 'temp'?"),
        ("board testbed --store {store} --agents mlp", "has no records of suite 'testbed'"),
        ("board testbed --store {store} --format parquet", "parquet is not text: say where to write it with --out"),
        (
            "board testbed --store {store} --out none/board.txt",
            "cannot write 'none/board.txt': No such file or directory",
        ),
        ("board testbed --store {store} --out .", "cannot write '.':"),
        ("report --store {store} --out none/report.html", "cannot write 'none/report.html': No such file"),
        ("report --store {store} --out .", "cannot write '.'"),
        ("score none.npz", "no file 'none.npz'"),
        ("check none.py:agent", "no file 'none.py'"),
        ("check mpl", "unknown agent 'mpl', did you mean 'mlp'?"),
        ("check oracle --problem testbd", "unknown problem 'testbd', did you mean 'testbed'?"),
    ],
)
def test_wrong_input_is_one_sentence(calibrant: Terminal, store: str, words: str, sentence: str) -> None:
    assert sentence in calibrant.sentence(*words.format(store=store).split())
    assert list(Path().iterdir()) == []  # nothing was made


def test_an_agent_file_that_cannot_be_used_is_one_sentence(calibrant: Terminal) -> None:
    Path("mine.py").write_text("import nothing_of_that_name\n")
    assert "mine.py cannot be imported: ModuleNotFoundError" in calibrant.sentence("check", "mine.py:agent")
    Path("mine.py").write_text("def agent(")
    assert "mine.py cannot be imported: SyntaxError" in calibrant.sentence("run", "testbed", "--agent", "mine.py:agent")
    Path("mine.py").write_text("def agnet(seed, train, facts): ...\n")
    words = ("run", "testbed", "--agent", "mine.py:agent")
    assert calibrant.sentence(*words) == "mine.py has no 'agent', did you mean 'agnet'?"


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["lst"], "Did you mean 'list'?"),
        (["list", "agnts"], "'agents', 'suites', 'problems', 'metrics'"),
        (["run"], "Missing argument 'SUITE'"),
        (["run", "testbed", "--executr", "local"], "--executor"),
        (["run", "testbed", "--executor", "cloud"], "'auto', 'local', 'processes'"),
        (["run", "testbed", "--seeds", "few"], "--seeds"),
        (["board", "testbed", "--format", "tex"], "'latex'"),
    ],
)
def test_wrong_usage_is_exit_code_two(
    calibrant: Terminal, capsys: pytest.CaptureFixture[str], words: list[str], hint: str
) -> None:
    assert run(*words) == 2
    assert hint in capsys.readouterr().err
