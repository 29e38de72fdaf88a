"""The pages of the documentation as they are written, with their links, headings and code blocks."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from markdown_it import MarkdownIt
from markdown_it.token import Token
from mdit_py_plugins.anchors.index import slugify
from mdit_py_plugins.deflist import deflist_plugin

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
sys.path.insert(0, str(DOCS / "_ext"))  # what the site is built with

_PARSER = MarkdownIt("commonmark").enable("table").use(deflist_plugin)
_LABEL = re.compile(r"^\(([\w-]+)\)=$", re.MULTILINE)
_RUNNABLE = "<!-- runnable -->"


class Block(NamedTuple):
    """A fenced block of a page."""

    language: str
    text: str
    line: int
    is_runnable: bool


def pages() -> list[Path]:
    """All Markdown pages that readers see, and those at the root of the repository."""
    inside = [
        each
        for each in DOCS.rglob("*.md")
        if not {"_ext", "_templates", "executed"} & set(each.relative_to(DOCS).parts)
    ]
    return sorted([*inside, *ROOT.glob("*.md")])


def name(page: Path) -> str:
    """A page as messages and tests name it."""
    return page.relative_to(ROOT).as_posix()


@cache
def text_of(page: Path) -> str:
    """A page with what is generated in its place."""
    from site_generated import generate

    return generate(page.read_text(encoding="utf-8"))


def _tokens(tokens: list[Token]) -> Iterator[Token]:
    for token in tokens:
        yield token
        yield from _tokens(token.children or [])


def links(page: Path) -> list[str]:
    """The targets of all links and images."""
    found = _tokens(_PARSER.parse(text_of(page)))
    targets = [token.attrGet({"link_open": "href", "image": "src"}.get(token.type, "")) for token in found]
    return [str(each) for each in targets if each]


@cache
def anchors(page: Path) -> set[str]:
    """The places of a page that can be linked to."""
    text = text_of(page)
    tokens = _PARSER.parse(text)
    headings = [after.content for token, after in pairwise(tokens) if token.type == "heading_open"]
    plain = (re.sub(r"[`*]", "", heading) for heading in headings)
    return {slugify(heading) for heading in plain} | set(_LABEL.findall(text))


def blocks(page: Path, *languages: str) -> list[Block]:
    """The fenced blocks in some languages."""
    text = page.read_text(encoding="utf-8")
    lines = text.splitlines()
    return [
        Block(token.info.strip(), token.content, token.map[0] + 1, _RUNNABLE in lines[max(0, token.map[0] - 1)])
        for token in _PARSER.parse(text)
        if token.type == "fence" and token.map and token.info.strip() in languages
    ]


def commands(page: Path) -> list[tuple[int, str]]:
    """Line and text of every command in the console blocks; a backslash continues a line."""
    found = []
    for block in blocks(page, "console"):
        joined = re.sub(r"\\\n\s*", lambda _: " ", block.text)
        found += [(block.line, line[2:]) for line in joined.splitlines() if line.startswith("$ ")]
    return found
