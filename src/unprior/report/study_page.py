"""Studies as files to use and as one page to read."""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unprior._files import replacing
from unprior.plots.style import DARK, LIGHT, FigureStyle, as_svg
from unprior.report.html import write_page
from unprior.studies.finished import FinishedStudy
from unprior.studies.result import StudyResult
from unprior.studies.study import QUESTIONS
from unprior.tables.csv import as_csv
from unprior.tables.html import HtmlTable, from_records, from_terminal
from unprior.tables.latex import as_latex
from unprior.tables.terminal import as_rich

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PAGE = "index.html"
_PNG_DPI = 200


def write_study(folder: Path, finished: FinishedStudy) -> tuple[str, ...]:
    """Write one study as CSV, JSON, LaTeX and, where it has a figure, PNG, PDF and SVG; returns the files' names."""
    study, result = finished.study, finished.result
    if result is None:
        return ()
    record = {
        "name": study.name,
        "question": study.question,
        "title": study.title,
        "asks": study.asks,
        "how": finished.how,
        "sentences": list(result.sentences),
        "records": result.records(),
    }
    contents: dict[str, bytes] = {
        "csv": as_csv(result.records()).encode(),
        "json": (json.dumps(record, indent=2, ensure_ascii=False, allow_nan=False) + "\n").encode(),
        "tex": as_latex(result.table, study.name).encode(),
    }
    figure = result.figure(LIGHT)
    if figure is not None:
        contents |= {"png": _drawn(figure, "png"), "pdf": _drawn(figure, "pdf"), "svg": as_svg(figure).encode()}
    for suffix, content in contents.items():
        with replacing(folder / f"{study.name}.{suffix}") as temporary:
            temporary.write_bytes(content)
    return tuple(f"{study.name}.{suffix}" for suffix in contents)


def write_study_page(
    path: Path,
    title: str,
    finished: Sequence[FinishedStudy],
    facts: Mapping[str, Sequence[tuple[str, str]]] | None = None,
) -> None:
    """Write all studies as one page that needs nothing else and reads like the results of a paper.

    ``facts`` say how the scores of each model were made, for the foot of the page.
    """
    chapters = [
        _Chapter(name.upper(), question, [_entry(each) for each in finished if each.study.question == name])
        for name, question in QUESTIONS.items()
    ]
    shown = [chapter for chapter in chapters if chapter.entries]
    write_page(
        path,
        "study.html.j2",
        title=title,
        chapters=shown,
        facts=[fact for each in (facts or {}).values() for fact in each],
    )


@dataclass(frozen=True, slots=True)
class _Entry:
    name: str
    title: str
    asks: str
    how: str
    sentences: tuple[str, ...]
    table: HtmlTable | None
    numbers: HtmlTable | None
    light: str | None
    dark: str | None
    width: int
    lacks: str | None


@dataclass(frozen=True, slots=True)
class _Chapter:
    name: str
    question: str
    entries: list[_Entry]


def _entry(finished: FinishedStudy) -> _Entry:
    study, result = finished.study, finished.result
    common: dict[str, Any] = {"name": study.name, "title": study.title, "asks": study.asks, "how": finished.how}
    if result is None:
        return _Entry(**common, sentences=(), table=None, numbers=None, light=None, dark=None, width=0,
                      lacks=finished.lacks)  # fmt: skip
    light, width = _picture(result, LIGHT)
    dark, _ = _picture(result, DARK)
    return _Entry(
        **common,
        sentences=result.sentences,
        table=from_terminal(as_rich(result.table)),
        numbers=from_records(study.title, result.records()),
        light=light,
        dark=dark,
        width=width,
        lacks=None,
    )


def _picture(result: StudyResult, style: FigureStyle) -> tuple[str | None, int]:
    figure = result.figure(style)
    if figure is None:
        return None, 0
    encoded = base64.b64encode(as_svg(figure).encode()).decode("ascii")
    return f"data:image/svg+xml;base64,{encoded}", round(figure.get_size_inches()[0] * 110)


def _drawn(figure: Figure, kind: str) -> bytes:
    """A figure on white paper; nothing in the file tells when it was made, so the same numbers give the same bytes."""
    import matplotlib

    stream = io.BytesIO()
    nothing = {"pdf": {"CreationDate": None, "Producer": None, "Creator": None}, "png": {"Software": None}}[kind]
    with matplotlib.rc_context({"pdf.fonttype": 42}):
        figure.savefig(stream, format=kind, dpi=_PNG_DPI, facecolor=LIGHT.paper, metadata=nothing)
    return stream.getvalue()
