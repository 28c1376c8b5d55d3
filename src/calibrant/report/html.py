"""One self-contained HTML file: boards, charts and pictures of one or more suites. It needs no network.

A content security policy admits the report's own scripts by their hashes and nothing else; names of agents and all
other text from outside are escaped by the template, data for charts by its `tojson` filter.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import Any

from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup

from calibrant.report.correlation import Comparison, Series
from calibrant.report.correlation_matrix import Matrix
from calibrant.report.correlation_view import correlation_views
from calibrant.report.files import write_whole
from calibrant.report.page import SuitePage
from calibrant.report.pictures import COLOUR_MAP
from calibrant.report.view import page_views
from calibrant.types import CalibrantError

BUNDLES = ("vega", "vega-lite", "vega-embed")


def write_report(path: Path, pages: Sequence[SuitePage], between: Sequence[Comparison | Series] = ()) -> None:
    write_whole(path, render(pages, between).encode())


def render(pages: Sequence[SuitePage], between: Sequence[Comparison | Series] = ()) -> str:
    """The report as text; `between` holds suites against each other."""
    if not pages:
        raise CalibrantError("a report needs at least one suite with records")
    title = "Calibrant: " + ", ".join(page.suite.title for page in pages)
    views = [view for found in between for view in correlation_views(found)]
    views = [view | {"id": f"between-{place}"} for place, view in enumerate(views, start=1)]
    return _fill("report", title=title, ramp=",".join(COLOUR_MAP), pages=page_views(pages), between=views)


def render_correlation(found: Comparison | Series | Matrix) -> str:
    """The figures and tables of a correlation as text."""
    views = correlation_views(found)
    return _fill("correlation", title=f"Calibrant: {views[0]['heading']}", views=views)


def _fill(name: str, **context: Any) -> str:
    """A template with the styles and the scripts that every page carries."""
    scripts = [*map(_bundle, BUNDLES), _read("assets/report.js")]
    hashes = [base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts]
    environment = Environment(
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        loader=FunctionLoader(lambda part: _read(f"templates/{part}")),
    )
    environment.policies["json.dumps_kwargs"] = {"allow_nan": False, "ensure_ascii": False, "separators": (",", ":")}
    template = environment.from_string(_read(f"templates/{name}.html.j2"))
    return template.render(
        css=Markup(_read("assets/report.css")),
        scripts=[Markup(script) for script in scripts],
        script_hashes=Markup(" ".join(f"'sha256-{digest}'" for digest in hashes)),
        **context,
    )


def _bundle(name: str) -> str:
    """A vendored script with its licence, which has to travel with it."""
    licence = _read(f"assets/{name}.LICENSE")
    others = _read("assets/THIRD-PARTY.txt") if name == BUNDLES[0] else ""
    return f"/*!\n{name}\n\n{licence}\n{others}*/\n{_read(f'assets/{name}.min.js')}"


def _read(name: str) -> str:
    return resources.files("calibrant.report").joinpath(name).read_text(encoding="utf-8")
