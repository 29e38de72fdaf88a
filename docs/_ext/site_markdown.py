"""A page as Markdown, from its document tree: what was generated or executed is in it."""

from __future__ import annotations

import re
from collections.abc import Callable
from html.parser import HTMLParser
from typing import Any

from docutils import nodes

_LEFT_OUT = frozenset(
    ("comment", "target", "index", "substitution_definition", "meta", "title", "pending", "toctree", "colspec",
     "system_message", "download_reference")
)  # fmt: skip
_HIDDEN_CLASSES = frozenset(("sphx-glr-download-link-note", "sphx-glr-footer", "sphx-glr-signature"))
_WRAPPED = {
    **dict.fromkeys(("emphasis", "title_reference", "literal_emphasis"), "*"),
    **dict.fromkeys(("strong", "literal_strong"), "**"),
}
_PLAIN_HTML = 400
_NOTES = {"seealso": "See also", "versionadded": "New", "versionchanged": "Changed"}


class _Tables(HTMLParser):
    """Texts and tables of a piece of HTML; drawings, styles and scripts are left out."""

    def __init__(self) -> None:
        """Begin with nothing."""
        super().__init__()
        self.blocks: list[str] = []
        self._rows: list[list[str]] | None = None
        self._text: list[str] = []
        self._hidden = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Begin a table, a row or a cell."""
        self._hidden += tag in ("style", "script", "svg")
        if tag == "table":
            self._flush()
            self._rows = []
        elif tag == "tr" and self._rows is not None:
            self._rows.append([])
        elif tag in ("td", "th", "caption"):
            self._text = []

    def handle_endtag(self, tag: str) -> None:
        """End one."""
        self._hidden -= tag in ("style", "script", "svg")
        if tag in ("td", "th") and self._rows:
            self._rows[-1].append(self._taken().replace("|", "\\|"))
        elif tag == "table" and self._rows is not None:
            self.blocks += [table(self._rows)] if any(self._rows) else []
            self._rows = None
        elif tag in ("p", "div", "caption", "h1", "h2", "h3", "li"):
            self._flush()

    def handle_data(self, data: str) -> None:
        """Text of a cell, or between tables."""
        if not self._hidden:
            self._text.append(data)

    def _taken(self) -> str:
        text, self._text = " ".join("".join(self._text).split()), []
        return text

    def _flush(self) -> None:
        if text := self._taken():
            self.blocks.append(text)


def table(rows: list[list[str]]) -> str:
    """Rows as a Markdown table, the first of them its head."""
    rows = [row for row in rows if row]
    width = max(map(len, rows))
    filled = [row + [""] * (width - len(row)) for row in rows]
    lines = [filled[0], ["---"] * width, *filled[1:]]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def from_html(text: str) -> str:
    """A piece of HTML within Markdown: short ones as they are, of others the texts and tables."""
    text = re.sub(r"<!--.*?-->", "", text, flags=re.DOTALL)
    if len(text) < _PLAIN_HTML and not re.search(r"<(svg|script|style|table|div)\b", text):
        return text.strip()
    parser = _Tables()
    parser.feed(text)
    parser._flush()
    return "\n\n".join(parser.blocks)


def _indented(text: str, first: str) -> str:
    lines = text.split("\n")
    blank = " " * len(first)
    return "\n".join([first + lines[0], *(blank + line if line else "" for line in lines[1:])])


class Writer:
    """Turns document trees into Markdown."""

    def __init__(self, link: Callable[[str], str], image: Callable[[str], str]) -> None:
        """``link`` and ``image`` say where targets lie, seen from the page."""
        self._link, self._image = link, image

    def page(self, tree: nodes.document) -> str:
        """The whole page."""
        return "\n\n".join(self._children(tree, 0)) + "\n"

    def _children(self, node: nodes.Element, level: int) -> list[str]:
        return [text for child in node.children if (text := self._block(child, level).strip("\n"))]

    def _joined(self, node: nodes.Element, level: int) -> str:
        return "\n\n".join(self._children(node, level))

    def _block(self, node: nodes.Node, level: int) -> str:
        name = type(node).__name__
        if name in _LEFT_OUT or (isinstance(node, nodes.Element) and _HIDDEN_CLASSES & set(node.get("classes", ()))):
            return ""
        if handler := getattr(self, f"_do_{name}", None):
            return str(handler(node, level))
        if isinstance(node, nodes.Admonition):
            title = _NOTES.get(name, name.capitalize())
            return "\n".join(f"> {line}".rstrip() for line in f"**{title}.** {self._joined(node, level)}".split("\n"))
        if isinstance(node, nodes.Text | nodes.Inline | nodes.TextElement):
            return self._inline(node)
        return self._joined(node, level) if isinstance(node, nodes.Element) else ""

    def _do_section(self, node: nodes.section, level: int) -> str:
        title = next((each for each in node.children if isinstance(each, nodes.title)), None)
        head = f"{'#' * min(level + 1, 6)} {self._texts(title)}\n\n" if title is not None else ""
        return head + self._joined(node, level + 1)

    def _do_paragraph(self, node: nodes.paragraph, level: int) -> str:
        return self._texts(node)

    def _do_rubric(self, node: nodes.rubric, level: int) -> str:
        return f"**{self._texts(node)}**"

    def _do_transition(self, node: nodes.transition, level: int) -> str:
        return "---"

    def _do_bullet_list(self, node: nodes.bullet_list, level: int) -> str:
        return self._items(node, level, lambda _: "- ")

    def _do_enumerated_list(self, node: nodes.enumerated_list, level: int) -> str:
        start = int(node.get("start", 1))
        return self._items(node, level, lambda place: f"{start + place}. ")

    def _items(self, node: nodes.Element, level: int, mark: Callable[[int], str]) -> str:
        items = [self._children(each, level) for each in node.children if isinstance(each, nodes.Element)]
        is_loose = any(len(each) > 1 and not each[1].startswith("- ") for each in items)
        gap = "\n\n" if is_loose else "\n"
        return gap.join(_indented(gap.join(each), mark(place)) for place, each in enumerate(items))

    def _do_definition_list(self, node: nodes.definition_list, level: int) -> str:
        entries = []
        for item in node.children:
            terms = [self._texts(each) for each in item.children if isinstance(each, nodes.term)]
            told = [self._joined(each, level) for each in item.children if isinstance(each, nodes.definition)]
            entries.append(_indented(f"{', '.join(terms)}: " + "\n\n".join(told), "- "))
        return "\n".join(entries)

    def _do_field_list(self, node: nodes.field_list, level: int) -> str:
        fields = [(self._texts(field[0]), self._joined(field[1], level)) for field in node.findall(nodes.field)]
        parts = [f"**{name}**:{chr(10) if told.startswith('- ') else ' '}{told}".rstrip() for name, told in fields]
        return "\n".join(_indented(part, "- ") for part in parts)

    def _do_literal_block(self, node: nodes.Element, level: int) -> str:
        language = node.get("language", "")
        fence = "````" if "```" in node.astext() else "```"
        return f"{fence}{'' if language in ('default', 'none') else language}\n{node.astext().rstrip()}\n{fence}"

    def _do_code_links_block(self, node: nodes.Element, level: int) -> str:
        return f"```python\n{node.astext().rstrip()}\n```"

    def _do_doctest_block(self, node: nodes.Element, level: int) -> str:
        return f"```pycon\n{node.astext().rstrip()}\n```"

    def _do_math_block(self, node: nodes.Element, level: int) -> str:
        return f"```text\n{node.astext()}\n```"

    def _do_block_quote(self, node: nodes.block_quote, level: int) -> str:
        return "\n".join(f"> {line}".rstrip() for line in self._joined(node, level).split("\n"))

    def _do_table(self, node: nodes.table, level: int) -> str:
        title = [f"**{self._texts(each)}**\n\n" for each in node.children if isinstance(each, nodes.title)]
        rows = [
            [" ".join(self._joined(entry, level).split()).replace("|", "\\|") for entry in row.children]
            for row in node.findall(nodes.row)
        ]
        return "".join(title) + table(rows)

    def _do_image(self, node: nodes.Element, level: int) -> str:
        return f"![{node.get('alt') or ''}]({self._image(node['uri'])})"

    _do_imgsgnode = _do_image

    def _do_raw(self, node: nodes.raw, level: int) -> str:
        return from_html(node.astext()) if "html" in node.get("format", "").split() else ""

    def _do_desc(self, node: nodes.Element, level: int) -> str:
        head = [each for each in node.children if type(each).__name__ == "desc_signature"]
        body = [each for each in node.children if type(each).__name__ == "desc_content"]
        names = [f"{'#' * min(level + 1, 6)} `{' '.join(each.astext().split())}`" for each in head]
        return "\n\n".join([*names, *(self._joined(each, level + 1) for each in body)])  # type: ignore[arg-type]

    def _texts(self, node: Any) -> str:
        return "".join(self._inline(each) for each in node.children).strip()

    def _inline(self, node: nodes.Node) -> str:
        name = type(node).__name__
        if isinstance(node, nodes.Text):
            return re.sub(r"\s*\n\s*", " ", node.astext())
        if name in _LEFT_OUT:
            return ""
        if name in ("image", "raw"):
            return self._block(node, 0)
        if name in ("literal", "math"):
            fence = "``" if "`" in node.astext() else "`"
            return f"{fence}{node.astext()}{fence}"
        inside = "".join(self._inline(each) for each in node.children)
        if isinstance(node, nodes.reference):
            target = node.get("refuri") or f"#{node.get('refid', '')}"
            return f"[{inside}]({self._link(target)})"
        return f"{_WRAPPED.get(name, '')}{inside}{_WRAPPED.get(name, '')}"
