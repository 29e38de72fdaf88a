"""Puts what the program says about itself into pages: a comment `<!-- generate: NAME -->` becomes Markdown.

Links to a script (`../tutorial/plot_name.py`) lead to the page that is made of it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import site_api
import site_cli
import site_formats
from sphinx.application import Sphinx

from unprior.report.glossary import GLOSSARY

_MARK = re.compile(r"<!-- generate: (\S+)(?: (\S+))? -->")
_SCRIPT = re.compile(
    r"\]\(((?:\.\./)*)(tutorial|gallery)/(plot_\w+\.py|index\.\w+|GALLERY_HEADER\.\w+)?((?:#[\w-]+)?)\)"
)

_LABEL = re.compile(r"\bsphx_glr_(tutorial|gallery)_")


def glossary() -> str:
    """The words of the reports, each with its meaning."""
    return "\n\n".join(f"{site_cli.escape(term.name)}\n: {site_cli.escape(term.meaning)}" for term in GLOSSARY)


GENERATORS: dict[str, Callable[..., str]] = {
    "cli": site_cli.markdown,
    "api": site_api.markdown,
    "schema": site_formats.markdown,
    "settings": site_formats.settings,
    "glossary": glossary,
}


def generate(text: str) -> str:
    """A page with everything that is generated in its place."""
    return _MARK.sub(lambda found: GENERATORS[found[1]](*filter(None, [found[2]])), text)


def script_page(found: re.Match[str]) -> str:
    """The link to the page of a script; without a script, to the page that lists them."""
    up, kind, script, anchor = found.groups()
    name = Path(script).stem if script and script.startswith("plot_") else "index"
    return f"]({up}executed/{kind}/{name}.rst{anchor})"


def _on_source_read(app: Sphinx, docname: str, source: list[str]) -> None:
    if app.env.doc2path(docname).suffix == ".md":
        source[0] = _SCRIPT.sub(script_page, generate(source[0]))
    elif docname.startswith("executed/"):  # scripts name each other by where they are, not by where their pages go
        source[0] = _LABEL.sub(r"sphx_glr_executed_\1_", source[0])


def _on_finished(app: Sphinx, failure: Exception | None) -> None:
    if failure is None and app.builder.format == "html":
        folder = Path(app.outdir) / "reference" / "schemas"
        folder.mkdir(parents=True, exist_ok=True)
        for name in site_formats.SCHEMAS:
            (folder / f"{name}.json").write_text(site_formats.schema_text(name), encoding="utf-8")


def setup(app: Sphinx) -> dict[str, Any]:
    """Connect to Sphinx."""
    app.connect("source-read", _on_source_read)
    app.connect("build-finished", _on_finished)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
