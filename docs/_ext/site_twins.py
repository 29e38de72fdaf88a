"""A Markdown twin beside every page, and `llms.txt`, which lists them."""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

from docutils import nodes
from site_markdown import Writer
from sphinx.application import Sphinx
from sphinx.util.osutil import relative_uri

_SECTIONS = {
    "executed/tutorial": "Tutorial",
    "how-to": "How-to",
    "reference": "Reference",
    "explanation": "Explanation",
    "executed/gallery": "Gallery",
}
_SENTENCE = re.compile(r"(.+?[.:!?])(?:\s|$)", re.DOTALL)


def _link(target: str) -> str:
    """A target within the site is the twin of that page."""
    return target if "://" in target else re.sub(r"\.html(?=#|$)", ".md", target)


def _on_page(app: Sphinx, name: str, template: str, context: dict[str, Any], tree: nodes.document | None) -> None:
    """Write the twin, and tell readers of the page where it is."""
    if tree is None or app.builder.format != "html":
        return
    images = relative_uri(app.builder.get_target_uri(name), "_images")

    def image(uri: str) -> str:
        found = app.builder.images.get(uri, posixpath.basename(uri))  # figures of scripts keep their names
        return uri if "://" in uri else posixpath.join(images, found)

    twin = Path(app.outdir) / f"{name}.md"
    twin.parent.mkdir(parents=True, exist_ok=True)
    twin.write_text(Writer(_link, image).page(tree), encoding="utf-8")
    address = posixpath.basename(name) + ".md"
    context["metatags"] += f'\n<link rel="alternate" type="text/markdown" href="{address}" title="Markdown">'
    context["markdown_twin"] = address


def first_sentence(tree: nodes.document) -> str:
    """The first sentence of a page, outside notes and lists."""
    for paragraph in tree.findall(nodes.paragraph):
        if isinstance(paragraph.parent, nodes.section | nodes.document) and paragraph.astext().strip():
            text = " ".join(paragraph.astext().split())
            found = _SENTENCE.match(text)
            return found[1].rstrip(":") if found else text
    return ""


def _order(app: Sphinx, name: str, seen: dict[str, None]) -> None:
    """Pages in the order of the tables of contents."""
    if name not in seen:
        seen[name] = None
        for child in app.env.toctree_includes.get(name, ()):
            _order(app, child, seen)


def _on_finished(app: Sphinx, failure: Exception | None) -> None:
    if failure is not None or app.builder.format != "html":
        return
    seen: dict[str, None] = {}
    _order(app, "index", seen)
    pages = [name for name in (*seen, *sorted(app.env.found_docs)) if name in app.env.found_docs]
    root = app.env.get_doctree("index")
    lines = [f"# {app.config.project}", f"> {first_sentence(root)}"]
    left = dict.fromkeys(pages)
    for folder, heading in (("", "Start"), *_SECTIONS.items()):
        chosen = [name for name in left if (posixpath.dirname(name) + "/").startswith(folder + "/")] if folder else []
        chosen = chosen or ([name for name in left if "/" not in name] if not folder else [])
        if not chosen:
            continue
        entries = []
        for name in chosen:
            del left[name]
            told = first_sentence(app.env.get_doctree(name))
            entries.append(f"- [{app.env.titles[name].astext()}]({name}.md)" + (f": {told}" if told else ""))
        lines += [f"## {heading}", "\n".join(entries)]
    if left:
        lines += ["## More", "\n".join(f"- [{app.env.titles[name].astext()}]({name}.md)" for name in left)]
    (Path(app.outdir) / "llms.txt").write_text("\n\n".join(lines) + "\n", encoding="utf-8")


def setup(app: Sphinx) -> dict[str, Any]:
    """Connect to Sphinx."""
    app.connect("html-page-context", _on_page)
    app.connect("build-finished", _on_finished)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
