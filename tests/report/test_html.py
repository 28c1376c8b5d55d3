"""The report as a file and in a browser: complete, safe, quiet, and alive."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from html.parser import HTMLParser
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from calibrant import registry
from calibrant.problems.testbed import picture_grid
from calibrant.report.html import render, write_report
from calibrant.report.page import Published, suite_page
from calibrant.suites.testbed import SUITE, TEMP, TRAIN
from calibrant.types import CalibrantError, Cell, Cost, Record, Scores

CHROMIUM = Path("/usr/bin/chromium")
QUIET = ("gpu", "background-networking", "component-update", "sync")
FLAGS = ["--headless", "--no-sandbox", "--no-first-run", *(f"--disable-{feature}" for feature in QUIET)]
AGENTS = ("uniform", "prior", "oracle", "logistic", "mlp", "ensemble", "ensemble+")
EVIL = '</script><img src=x onerror="window.hacked=1">.py:Agent'
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
PROVENANCE = {"calibrant": "0.1.0", "cores": 2, "libraries": {"jax": "0.10.2", "numpy": "2.4.1"}}
LOCAL = ("file:", "data:", "blob:")


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
    for name in SUITE.presets["paper"].problems:
        problem = registry.resolve("problems", name)
        if problem.train not in train or str(problem.temp) not in temps:
            continue
        drawn = beliefs(problem, agents) if pictures else {}
        for seed in range(seeds):
            luck = np.random.default_rng([problem.train, int(problem.temp * 100), seed])
            hardness = np.exp(0.3 * luck.normal()) * {0.01: 1.2, 0.1: 0.9, 0.5: 0.3}[problem.temp]
            for agent in agents:
                cell = Cell(name, agent, seed, f"{name}|{agent}|{seed}")
                provenance = PROVENANCE | {"date": f"2026-02-{seed + 1:02d}"}
                scores, cost = results(agent, problem, hardness, luck)
                picture = drawn.get(agent, {}) if seed == 0 else {}
                reason = (failing or {}).get(agent) if seed == 1 else None
                records.append(Record(cell, {} if reason else scores, cost, provenance, picture, reason))
    return records


def results(agent: str, problem: Any, hardness: float, luck: np.random.Generator) -> tuple[dict[str, Scores], Cost]:
    start, end, saved, cpu = CHARACTERS.get(agent, CHARACTERS["mlp"])
    marginal = hardness * (end + (start - end) / (1 + problem.train / 20) ** 0.6) * np.exp(0.1 * luck.normal())
    dependence = 10 * marginal * saved / (1 + problem.train / 100)
    means = {
        "kl_tau1": marginal,
        "kl_tau10": 10 * marginal + dependence,
        "kl_tau10_dyadic": 10 * marginal + 1.6 * dependence,
        "marginal_tau10": 10 * marginal,
        "dependence_tau10": dependence,
        "accuracy": 0.95 - marginal * 0.6 - problem.temp / 2 + 0.01 * luck.normal(),
        "ece": 0.02 + 0.1 * marginal + 0.004 * abs(luck.normal()),
    }
    bias = 0.004 * (agent == "prior")
    cost = Cost(fit_cpu_seconds=cpu * (1 + problem.train / 2000) * float(np.exp(0.05 * luck.normal())))
    return {name: Scores(float(mean), mc_bias=bias, mc_se=bias / 4) for name, mean in means.items()}, cost


def beliefs(problem: Any, agents: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Pictures of a real environment: agents mix the truth with other environments, as much as data leaves open."""
    grid, draws = picture_grid(), [replace(problem, tuples=2).sample(seed) for seed in range(5)]
    truth, *alien = (np.exp(draw.environment.logp(grid))[:, 1] for draw in draws)
    known, others = 1 - 1 / (1 + problem.train / 15), np.stack(alien)
    worlds = {
        "uniform": np.full((1, len(grid)), 0.5),
        "prior": others,
        "oracle": truth[None],
        "logistic": (1 / (1 + np.exp(-2 * grid @ np.array([known, 1 - known]))))[None],
        "mlp": (known * truth + (1 - known) * others[0])[None],
        "ensemble": known * truth + (1 - known) * (0.85 * others[:1] + 0.15 * others),
    }
    common = {"x": draws[0].train.x, "y": draws[0].train.y, "grid": grid, "truth": truth}
    drawn = {agent: worlds.get(agent, known * truth + (1 - known) * others) for agent in agents}
    return {agent: common | {"mean": found.mean(0), "worlds": found} for agent, found in drawn.items()}


class Page(HTMLParser):
    """Start tags with their attributes."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))


@pytest.fixture(scope="module")
def full(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The paper's size: 7 agents, 21 settings, 10 seeds, one agent with failures, a published table."""
    path = tmp_path_factory.mktemp("full") / "report.html"
    published = Published("Table 2", "Osband et al., 2022", {"mlp": {"kl_tau1": 0.129}, "sgmcmc": {"kl_tau1": 0.1}})
    records = synthetic_records(failing={"ensemble+": "FloatingPointError: <b>NaN</b> after 812 steps"})
    write_report(path, [suite_page(records, SUITE, published=published)])
    return path


@pytest.fixture(scope="module")
def small() -> list[Record]:
    return synthetic_records(("mlp", "ensemble", "ensemble+"), (1, 10, 100), seeds=3, pictures=False)


# --- the file ---------------------------------------------------------------------------------------


def test_is_one_small_file_that_refers_to_nothing_outside(full: Path) -> None:
    assert full.stat().st_size < 2.5e6
    assert [path.name for path in full.parent.iterdir()] == ["report.html"]
    page = Page(full.read_text())
    links = [attributes[name] or "" for _, attributes in page.tags for name in ("href", "src") if name in attributes]
    assert len(links) > 500
    assert {link.partition(",")[0] for link in links if link[0] != "#"} == {"data:", "data:image/png;base64"}


def test_vendored_scripts_are_small_and_can_stand_inside_a_page() -> None:
    assets = [path for path in resources.files("calibrant.report").joinpath("assets").iterdir() if path.is_file()]
    assert sum(len(path.read_bytes()) for path in assets) < 1e6
    for script in (path.read_text() for path in assets if path.name.endswith(".js")):
        assert not any(trap in script for trap in ("</script", "<script", "<!--", "sourceMappingURL"))


def test_shows_words_failures_and_provenance(full: Path) -> None:
    text = full.read_text()
    assert "For joint predictions (KL τ=10), ensemble+ leads: its loss is 0." in text
    assert "FloatingPointError: &lt;b&gt;NaN&lt;/b&gt; after 812 steps" in text
    assert "10 February 2026" in text and "jax 0.10.2, numpy 2.4.1" in text


def test_gaps_closed_are_shown_where_there_is_a_floor(small: list[Record]) -> None:
    assert "Gap closed" not in render([suite_page(small, SUITE)])
    floors = [
        replace(
            record,
            cell=replace(record.cell, agent="bayes"),
            scores={name: replace(score, mean=score.mean / 2) for name, score in record.scores.items()}
            | {"converged": Scores(1.0)},
        )
        for record in small
        if record.cell.agent == "mlp" and not record.failed
    ]
    page = render([suite_page([*small, *floors], SUITE)])
    assert page.count("Gap closed, KL") == 3
    assert "share of the way from mlp (0) to bayes (1)" in page and '<span class="mean">1.00</span>' in page


def test_names_cannot_inject(small: list[Record]) -> None:
    records = [*small, *synthetic_records(agents=(EVIL,), train=(1, 10), seeds=2)]
    text = render([suite_page(records, SUITE, baseline=EVIL)])
    tags, attributes = zip(*Page(text).tags, strict=True)
    assert "img" not in tags and tags.count("script") == 5  # the data, three libraries and our own
    specs = json.loads(text.partition(" data-charts>")[2].partition("</script>")[0])
    assert EVIL in {row["agent"] for row in specs["loss-kl_tau10"]["data"]["values"]}
    assert {given.get("data-agent") for given in attributes} >= {EVIL, "mlp"}


def test_a_reader_never_sees_half_a_file(tmp_path: Path, small: list[Record]) -> None:
    path = tmp_path / "report.html"
    path.write_text("older")
    with pytest.raises(CalibrantError, match="at least one suite"):
        write_report(path, [])
    assert path.read_text() == "older"
    write_report(path, [suite_page(small, SUITE)])
    assert path.read_text().endswith("</html>\n") and len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize("name", ["missing/report.html", "folder"])
def test_what_cannot_be_written_is_one_sentence(tmp_path: Path, small: list[Record], name: str) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(CalibrantError, match=f"cannot write '.*{name}'"):
        write_report(tmp_path / name, [suite_page(small, SUITE)])
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]


def test_two_suites_share_a_page_without_sharing_ids(small: list[Record]) -> None:
    page = Page(render([suite_page(small, SUITE)] * 2))
    ids = [attributes["id"] for _, attributes in page.tags if "id" in attributes]
    assert len(ids) == len(set(ids)) > 15


# --- the browser ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def visit() -> Iterator[Callable[..., Any]]:
    """Opens a report; what it prints to the console or asks of the network is kept on `page.said`."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    if not CHROMIUM.exists():
        pytest.skip(f"{CHROMIUM} is not installed")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=str(CHROMIUM), args=FLAGS)

        def open_page(path: Path, width: int = 1280, scheme: str = "light") -> Any:
            page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
            page.said = []
            page.on("console", lambda message: page.said.append(message.text))
            page.on("pageerror", lambda error: page.said.append(str(error)))
            page.on("request", lambda asked: page.said.append(asked.url) if asked.url[:5] not in LOCAL else None)
            page.goto(path.as_uri())
            page.wait_for_selector("body[data-ready]", timeout=20_000)
            return page

        yield open_page
        browser.close()


def test_draws_everything_quietly(full: Path, visit: Callable[..., Any]) -> None:
    page = visit(full)
    assert page.said == []
    drawn = page.eval_on_selector_all(".chart svg.marks", "all => all.map(one => one.getBoundingClientRect().height)")
    assert len(drawn) == 8 and min(drawn) > 150
    assert page.locator("#testbed-losses .mark-rect path").count() == 21
    sizes = """all => Promise.all(all.map(async one => { const image = new Image(); image.src = one.href.baseVal;
               await image.decode(); return image.naturalWidth; }))"""
    assert set(page.eval_on_selector_all(".gallery:not([hidden]) image", sizes)) == {32}
    page.close()


def test_table_sorts_and_filters(full: Path, visit: Callable[..., Any]) -> None:
    page = visit(full)
    names = "rows => rows.filter(row => !row.hidden).map(row => row.dataset.agent)"
    rows = "#testbed-board table.board tbody tr"
    button = page.get_by_role("columnheader", name="accuracy").get_by_role("button")
    button.click()
    upwards = page.eval_on_selector_all(rows, names)
    assert set(upwards[:2]) == {"uniform", "prior"} and upwards[-1] == "oracle"
    button.click()
    assert page.eval_on_selector_all(rows, names) == upwards[::-1]
    page.fill("[data-filter]", "SEMBLE+")
    assert page.eval_on_selector_all(rows, names) == ["ensemble+"]
    page.close()


def test_legend_and_choices_act_on_charts_and_pictures(full: Path, visit: Callable[..., Any]) -> None:
    page = visit(full)
    bars, lines = page.locator("#testbed-losses .mark-rect path"), page.locator("#testbed-curves .mark-line path")
    chip = page.get_by_role("button", name="uniform", exact=True)
    chip.click()
    page.wait_for_function("document.querySelectorAll('#testbed-losses .mark-rect path').length === 18")
    assert chip.get_attribute("aria-pressed") == "false" and lines.count() == 18
    assert not page.locator(".gallery:not([hidden]) tr[data-agent=uniform]").is_visible()
    page.get_by_role("button", name="show all").click()
    page.wait_for_function("document.querySelectorAll('#testbed-losses .mark-rect path').length === 21")
    assert bars.count() == lines.count() == 21

    paths = "[...document.querySelectorAll('.mark-line path')].map(line => line.getAttribute('d')).join()"
    before = page.evaluate(paths)
    page.get_by_text("KL τ=10 dyadic", exact=True).last.click()
    page.wait_for_function(f"before => {paths} !== before", arg=before)

    page.get_by_label("Setting").select_option(label="10 training points, temperature 0.01")
    assert page.locator(".gallery:visible").count() == 1
    assert page.locator(".gallery:visible .truth p").inner_text().startswith("10 training points, temperature 0.01")
    assert page.locator(".dots:visible").count() > 20
    page.get_by_role("checkbox").uncheck()
    assert page.locator(".dots:visible").count() == 0
    page.close()


def test_fits_phones_and_follows_the_dark(full: Path, visit: Callable[..., Any]) -> None:
    page = visit(full, width=390, scheme="dark")
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    shades = "all => all.map(one => getComputedStyle(one).fill.match(/[0-9.]+/g).slice(0, 3).map(Number))"
    labels = page.eval_on_selector_all(".chart .role-axis-label text", shades)
    assert len(labels) > 30 and min(min(label) for label in labels) > 200  # bright on dark
    page.close()


@pytest.mark.parametrize(
    ("measured", "present", "absent"),
    [
        ((("mlp",), (1, 10), TEMP), "losses curves parts pictures", "cost"),
        ((("ensemble", "uniform"), (1, 10), ("0.1",)), "losses curves parts pictures", "cost"),
        ((("mlp", "ensemble"), (10,), ("0.1",)), "losses parts pictures cost", "curves"),
        (((EVIL, "mlp"), (1, 10), ("0.5",)), "losses curves parts pictures cost", "published"),
    ],
    ids=["one agent", "no baseline", "one setting", "a hostile name"],
)
def test_missing_pieces_are_left_out(
    tmp_path: Path, visit: Callable[..., Any], measured: tuple[Any, ...], present: str, absent: str
) -> None:
    path = tmp_path / "report.html"
    write_report(path, [suite_page(synthetic_records(*measured, seeds=2), SUITE)])
    page = visit(path)
    assert page.said == [] and page.evaluate("window.hacked") is None
    assert all(page.locator(f"#testbed-{part}").count() == 1 for part in present.split())
    assert all(page.locator(f"#testbed-{part}").count() == 0 for part in absent.split())
    page.close()
