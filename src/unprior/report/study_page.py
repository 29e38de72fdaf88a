"""Studies as files to use and as one page to read."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from unprior._files import replacing
from unprior.plots.style import LIGHT, as_svg
from unprior.report.headline import EMBEDDED_WARNING, is_embedded, summaries
from unprior.report.html import write_page
from unprior.report.section import latex_tables, make_section
from unprior.studies.finished import FinishedStudy
from unprior.studies.study import QUESTIONS
from unprior.tables.csv import as_csv

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
    figure = result.figure(LIGHT)
    contents: dict[str, bytes] = {
        "csv": as_csv(result.records()).encode(),
        "json": (json.dumps(record, indent=2, ensure_ascii=False, allow_nan=False) + "\n").encode(),
        "tex": latex_tables(study, result, figure=figure is not None).encode(),
    }
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
    *,
    files: bool = True,
    notes: Sequence[str] = (),
) -> None:
    """Write studies of one or several models as one page that needs nothing else and reads like results of a paper.

    Parameters
    ----------
    path
        The HTML file; it appears whole or not at all.
    title
        The heading.
    finished
        The studies; those of several models have a block for each.
    facts
        How the scores of each model were made, for the foot of the page, see
        :func:`unprior.report.page.provenance_facts`.
    files
        Whether :func:`write_study` writes its files beside the page, which then links to them.
    notes
        What the reader should know before the numbers.
    """
    sections = [make_section(each, files=files) for each in finished]
    chapters = [
        {"name": name, "question": question, "sections": [each for each in sections if each.study.question == name]}
        for name, question in QUESTIONS.items()
    ]
    embedded = [EMBEDDED_WARNING] if any(map(is_embedded, facts or {})) else []
    write_page(
        path,
        "study.html.j2",
        title=title,
        notes=list(dict.fromkeys([*notes, *embedded])),
        summaries=summaries(finished),
        lacking=[each for each in finished if each.lacks],
        chapters=[chapter for chapter in chapters if chapter["sections"]],
        facts=facts or {},
    )


def _drawn(figure: Figure, kind: str) -> bytes:
    """A figure on white paper; nothing in the file tells when it was made, so the same numbers give the same bytes."""
    import matplotlib

    stream = io.BytesIO()
    nothing = {"pdf": {"CreationDate": None, "Producer": None, "Creator": None}, "png": {"Software": None}}[kind]
    with matplotlib.rc_context({"pdf.fonttype": 42}):
        figure.savefig(stream, format=kind, dpi=_PNG_DPI, facecolor=LIGHT.paper, metadata=nothing)
    return stream.getvalue()
