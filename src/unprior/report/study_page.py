"""Studies as files to use and as one page to read."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from shlex import quote

from unprior._files import replacing
from unprior.plots.style import LIGHT, as_file, as_svg
from unprior.report.headline import EMBEDDED_WARNING, is_embedded, summaries
from unprior.report.html import write_page
from unprior.report.section import latex_tables, make_section
from unprior.studies.finished import FinishedStudy, Gap
from unprior.studies.result import grouped
from unprior.studies.study import QUESTIONS, Study
from unprior.tables.csv import as_csv

PAGE = "index.html"


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
        contents |= {"png": as_file(figure, "png"), "pdf": as_file(figure, "pdf"), "svg": as_svg(figure).encode()}
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
    lacking = _missing(finished)
    embedded = [EMBEDDED_WARNING] if any(map(is_embedded, facts or {})) else []
    write_page(
        path,
        "study.html.j2",
        title=title,
        notes=list(dict.fromkeys([*notes, *embedded])),
        summaries=summaries(finished),
        lacking=lacking,
        everything=_prepare_all([gap for gap in lacking if gap.command()]),
        chapters=[chapter for chapter in chapters if chapter["sections"]],
        facts=facts or {},
    )


def _missing(finished: Sequence[FinishedStudy]) -> dict[Gap, list[Study]]:
    """What studies are without, each thing once with the studies that it would complete."""
    found = [
        (gap, each.study)
        for each in finished
        if each.lacks
        for gap in each.gaps or (Gap("", each.lacks, made_by=False),)
    ]
    return {gap: [study for _, study in pairs] for gap, pairs in grouped(found, key=lambda pair: pair[0]).items()}


def _prepare_all(gaps: Sequence[Gap]) -> str | None:
    """One command instead of several."""
    folders = " ".join(dict.fromkeys(f"--run {quote(str(gap.folder))}" for gap in gaps if gap.folder is not None))
    return f"unprior study all {folders} --prepare" if folders and len(gaps) > 1 else None
