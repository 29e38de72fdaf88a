"""A page on which the right answers are chosen: one file, nothing from elsewhere, progress kept in the browser."""

from __future__ import annotations

import base64
import hashlib
import io
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

from unprior._text import one_line, visible
from unprior.images import open_image
from unprior.serving.label_log import LoggedExample
from unprior.serving.label_sheet import NONE

_SIDE = 640
"""Of an image on the page, at most, in pixels."""


def label_page(name: str, examples: Sequence[LoggedExample], images: Mapping[str, Path]) -> str:
    """The page about some examples; ``images`` are put into it, by digest and as far as there are any."""
    from jinja2 import Environment, StrictUndefined

    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    style, script = _asset("label.css"), _asset("label.js")
    groups: dict[str, list[dict[str, Any]]] = {}
    for number, example in enumerate(examples, 1):
        groups.setdefault(example.image, []).append(_shown(number, example))
    known = hashlib.sha256("\n".join(each.name for each in examples).encode()).hexdigest()[:16]
    return environment.from_string(_asset("label.html.j2")).render(
        name=one_line(name),
        style=style,
        script=script,
        style_digest=_digest(style),
        script_digest=_digest(script),
        groups=[
            {"digest": digest, "image": _preview(images[digest]) if digest in images else None, "examples": group}
            for digest, group in groups.items()
        ],
        count=len(examples),
        known=known,
        file=Path(name).stem,
        none_word=NONE,  # none is a constant of the template's language
    )


def _shown(number: int, example: LoggedExample) -> dict[str, Any]:
    record = example.record
    answer = NONE if record.get("label") == "none" else record.get("answer")
    return {
        "number": number,
        "id": example.name,
        "question": visible(str(record["question"])),
        "candidates": [(each, one_line(each)) for each in example.candidates],
        "is_open": example.is_open,
        "original": _told(record.get("original")),
        "decided": _told(record.get("decided")),
        "answer": "" if answer is None else answer,
    }


def _told(answer: Any) -> str:
    return "no answer" if answer is None else f"“{one_line(str(answer))}”"


def _preview(path: Path) -> str:
    image = open_image(path)
    image.thumbnail((_SIDE, _SIDE))
    png, jpeg = io.BytesIO(), io.BytesIO()
    image.save(png, "PNG", optimize=True)
    image.save(jpeg, "JPEG", quality=88)
    kind, content = ("png", png) if png.tell() <= jpeg.tell() else ("jpeg", jpeg)
    return f"data:image/{kind};base64,{base64.b64encode(content.getvalue()).decode()}"


def _asset(name: str) -> str:
    return files("unprior.serving").joinpath("assets", name).read_text(encoding="utf-8")


def _digest(text: str) -> str:
    """Of a script or style that a page may run, as its content security policy names it."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
