"""From a data file to a receipt: only what is missing is run, and the store keeps the receipt."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy.dialects import postgresql

from calibrant.engine.store import SqlStore, keep_receipt, open_store
from calibrant.papers.format import Paper, find
from calibrant.papers.receipts import Row
from calibrant.papers.reproduce import choose, reproduce
from calibrant.types import CalibrantError

FILE = """
name = "tiny"
title = "A tiny paper"
citation = "Nobody, 2020"

[items.table1]
title = "Table 1"
plan = { problems = ["testbed?train=1&tuples=20&worlds=20", "testbed?tuples=20&worlds=20&train=3"], seeds = 2 }
within = 0.001
relative_to = "uniform"
ratios = ["kl_tau10"]
[[items.table1.values]]
label = "UNIFORM"
agent = "uniform"
published = { accuracy = 0.5, kl_tau1 = 9.0, kl_tau10 = 90.0 }
[[items.table1.values]]
label = "ORACLE"
agent = "oracle"
published = { kl_tau10 = 0.0, accuracy = 0.2 }
[[items.table1.values]]
label = "ORACLE AT 3"
agent = "oracle"
where = { train = 3 }
published = { kl_tau10 = 0.0 }

[items.figure1]
title = "Figure 1"
plan = { problems = ["testbed?train=1&tuples=20&tau=1x3x20"], seeds = 3 }
[[items.figure1.trends]]
claim = "knowing the truth pays, and the more so the more is asked"
worse = "uniform"
better = "oracle"
metrics = ["kl_tau1", "kl_tau3", "kl_tau20"]

[items.future]
title = "Table of the future"
plan = { suite = "testbed", preset = "quick", seeds = 1 }
[[items.future.values]]
label = "NEW"
agent = "not-yet-invented"
published = { accuracy = 0.5 }
"""


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Paper:
    path = tmp_path_factory.mktemp("papers") / "tiny.toml"
    path.write_text(FILE)
    return find(f"{path}:table1")[0]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqlStore]:
    with open_store(str(tmp_path / "results.db")) as opened:
        yield opened


def row(rows: tuple[Row, ...], label: str, metric: str) -> Row:
    return next(one for one in rows if (one.label, one.metric) == (label, metric))


def test_a_table_is_run_compared_and_kept(tiny: Paper, store: SqlStore) -> None:
    receipt, outcome = reproduce(tiny, "table1", store, executor="local")
    assert (outcome.total, outcome.already, outcome.done, outcome.failed) == (8, 0, 8, 0)
    assert receipt.whole and (receipt.cells, receipt.missing) == (8, 0)
    even = row(receipt.rows, "UNIFORM", "accuracy")
    assert even.ours is not None and even.ours.mean == pytest.approx(0.5) and even.verdict == "agrees"
    assert row(receipt.rows, "UNIFORM", "kl_tau1").verdict == "differs"  # at most log 2 per label on average
    assert row(receipt.rows, "ORACLE", "kl_tau10").verdict == "agrees"
    assert row(receipt.rows, "ORACLE", "accuracy").verdict == "differs"
    assert row(receipt.rows, "ORACLE", "kl_tau10 / UNIFORM").published == 0
    assert {one.n for one in receipt.rows if one.label == "ORACLE"} == {4}
    some = row(receipt.rows, "ORACLE AT 3", "kl_tau10")
    assert (some.n, some.of) == (2, 2)
    assert receipt.cpu_seconds > 0

    (kept,) = store.receipts("tiny", "table1")
    assert kept.pop("provenance")["libraries"]
    assert kept == json.loads(json.dumps(receipt.to_json()))

    again, outcome = reproduce(tiny, "table1", store, executor="local")
    assert (outcome.already, outcome.done) == (8, 0)
    assert again.to_json() == receipt.to_json() and len(store.receipts("tiny", "table1")) == 1


def test_a_figure_without_numbers_is_checked_for_its_direction(tiny: Paper, store: SqlStore) -> None:
    """Orders above ten have their labels drawn. The oracle's loss is 0, so the benefit is the loss of `uniform`."""
    receipt, _ = reproduce(tiny, "figure1", store, executor="local")
    benefits = [one.ours.mean for one in receipt.rows if one.kind == "benefit" and one.ours]
    assert benefits[0] > 0 and benefits[2] == pytest.approx(20 * benefits[0], rel=0.05)
    assert [one.verdict for one in receipt.rows if one.kind == "growth"] == ["agrees", "agrees"]


def test_fewer_seeds_reuse_and_are_reused(tiny: Paper, store: SqlStore) -> None:
    one, outcome = reproduce(tiny, "table1", store, seeds=1, executor="local")
    assert outcome.done == 4 and not one.whole and one.seeds == 1
    assert (one.rows[0].n, one.rows[0].of) == (2, 4)
    _, outcome = reproduce(tiny, "table1", store, executor="local")
    assert (outcome.already, outcome.done) == (4, 4)
    again, _ = reproduce(tiny, "table1", store, seeds=1, executor="local")
    assert again.to_json() == one.to_json()  # records of other seeds are left out


def test_nothing_is_run_when_told_so(tiny: Paper, store: SqlStore) -> None:
    reproduce(tiny, "table1", store, agents=["oracle"], seeds=1, executor="local")
    receipt, outcome = reproduce(tiny, "table1", store, run=False)
    assert (outcome.total, outcome.already, outcome.done) == (8, 2, 0)
    assert receipt.missing == 6 and not receipt.whole
    assert row(receipt.rows, "UNIFORM", "accuracy").verdict == "not run"
    assert row(receipt.rows, "ORACLE", "kl_tau10").n == 2


def test_the_store_keeps_receipts_that_differ_the_latest_last(store: SqlStore) -> None:
    for number in (1, 2, 1):
        store.keep_receipt("tiny", "table1", {"number": number})
    store.keep_receipt("tiny", "figure1", {"number": 3})
    assert [one["number"] for one in store.receipts("tiny", "table1")] == [2, 1]
    assert store.receipts("huge", "table1") == []
    upsert = str(keep_receipt("postgresql").compile(dialect=postgresql.dialect()))
    assert "ON CONFLICT (digest) DO UPDATE SET made = excluded.made" in upsert


# --- who stands for whom -----------------------------------------------------------------------------


def test_agents_are_chosen_by_name_with_other_parameters_or_tuned() -> None:
    paper, name = find("neural-testbed:table2")
    item = paper.items[name]

    everyone = choose(item, [], {}, "p:t")
    assert everyone.specs == {agent: agent for agent in item.agents} and everyone.as_published and not everyone.tuned
    some = choose(item, ["mlp", "ensemble+?size=30&l2=1"], {}, "p:t")
    assert some.specs == {"mlp": "mlp", "ensemble+": "ensemble+?size=30"} and not some.as_published
    tuned = choose(item, [], {"mlp": "mlp?l2=3.0"}, "p:t")
    assert tuned.specs["mlp"] == "mlp?l2=3" and tuned.as_published and tuned.tuned
    mixed = choose(item, ["mlp?l2=9"], {"mlp": "mlp?l2=3"}, "p:t")
    assert mixed.specs == {"mlp": "mlp?l2=9"} and not mixed.tuned  # what is spelled out goes before


def test_agents_of_one_name_are_told_apart(tiny: Paper) -> None:
    sizes = ("ensemble?size=3", "ensemble?size=5")
    rows = [{"label": size, "agent": size, "published": {"ece": 0.1}} for size in sizes]
    raw = tiny.items["future"].model_dump() | {"values": rows}
    item = type(tiny.items["future"]).model_validate(raw)
    assert choose(item, ["ensemble"], {}, "p:t").specs == {size: size for size in sizes}
    assert choose(item, ["ensemble?size=5"], {}, "p:t").specs == {"ensemble?size=5": "ensemble?size=5"}
    with pytest.raises(CalibrantError, match=re.escape("could stand for ensemble?size=3 or ensemble?size=5")):
        choose(item, ["ensemble?size=7"], {}, "p:t")


@pytest.mark.parametrize(
    ("item", "agents", "sentence"),
    [
        (
            "table1",
            ["orcale"],
            "tiny:table1 says nothing about agent 'orcale', did you mean 'oracle'?; it names uniform,",
        ),
        ("table1", ["oracle?size=3"], "unknown parameter 'size' in 'oracle?size=3'"),
        ("figure1", ["oracle"], "no claim of tiny is about oracle alone"),
        ("future", [], "none of the agents of tiny:future can be run here: unknown agent 'not-yet-invented'"),
    ],
)
def test_what_cannot_be_asked_is_told(
    tiny: Paper, store: SqlStore, item: str, agents: list[str], sentence: str
) -> None:
    with pytest.raises(CalibrantError, match=re.escape(sentence)):
        reproduce(tiny, item, store, agents=agents)
    assert store.receipts("tiny", item) == []


def test_an_agent_that_is_not_there_is_not_run(tiny: Paper, store: SqlStore) -> None:
    rows = [*tiny.items["table1"].values, *tiny.items["future"].values]
    item = tiny.items["table1"].model_copy(update={"values": tuple(rows)})
    paper = tiny.model_copy(update={"items": {"both": item}})
    receipt, _ = reproduce(paper, "both", store, seeds=1, executor="local")
    assert row(receipt.rows, "NEW", "accuracy").verdict == "not run"
    assert list(receipt.absent) == ["not-yet-invented"] and not receipt.whole
