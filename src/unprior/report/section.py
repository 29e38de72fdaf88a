"""One study as a section of a page: question, sentences, figure, tables, and the files to take away."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass, field

from unprior.plots.style import DARK, LIGHT, as_svg
from unprior.report.glossary import Term, terms_in
from unprior.studies.by_model import ByModel
from unprior.studies.finished import FinishedStudy
from unprior.studies.result import StudyResult
from unprior.studies.study import Study
from unprior.tables.csv import as_csv
from unprior.tables.html import HtmlTable, from_records, from_table
from unprior.tables.latex import as_latex, as_latex_figure

_PIXELS = 110
"""Of an inch, where the page is wide enough."""


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure, drawn for light and for dark pages."""

    light: str
    """Data URI."""
    dark: str
    """Data URI."""
    width: int
    height: int


@dataclass(frozen=True, slots=True)
class Link:
    """A file to take away."""

    name: str
    """Its format."""
    target: str
    """A file beside the page, or a data URI."""
    file: str
    """Its name when it is saved."""


@dataclass(frozen=True, slots=True)
class Section:
    """A study as pages show it."""

    study: Study
    how: str
    lacks: str | None
    sentences: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """By model where there are several; those about all models have no name."""
    figure: Figure | None = None
    tables: tuple[HtmlTable, ...] = ()
    numbers: HtmlTable | None = None
    """The records behind it all; None without a result."""
    links: tuple[Link, ...] = ()
    terms: tuple[Term, ...] = ()
    """Words of the glossary that it uses."""


def make_section(finished: FinishedStudy, *, files: bool) -> Section:
    """A finished study for a page.

    Parameters
    ----------
    finished
        The study, with a result or with what it lacks.
    files
        Whether the files of :func:`unprior.report.study_page.write_study` are beside the page to link to; otherwise
        the page holds the numbers and the LaTeX itself.

    >>> from unprior import synthesize
    >>> from unprior.studies import StudyInputs, choose_studies, run_studies
    >>> (finished,) = run_studies(choose_studies(["components"]), [StudyInputs(synthesize(seed=0))])
    >>> section = make_section(finished, files=True)
    >>> [link.target for link in section.links][:3], [term.name for term in section.terms][:2]
    (['components.csv', 'components.json', 'components.tex'], ['CF', 'CS'])
    """
    study, result = finished.study, finished.result
    if result is None:
        return Section(study, finished.how, finished.lacks)
    tables = (result.table, *result.further_tables)
    figure = _figure(result)
    words = [study.asks, finished.how, *result.sentences]
    words += [text for table in tables for text in (table.title, *table.columns, table.caption)]
    return Section(
        study,
        finished.how,
        finished.lacks,
        sentences_by_model(result),
        figure,
        tuple(map(from_table, tables)),
        from_records(study.title, result.records()),
        _links(study, result, drawn=figure is not None, files=files),
        terms_in(words),
    )


def sentences_by_model(result: StudyResult) -> dict[str, tuple[str, ...]]:
    """The sentences under the name of their model where there are several; those about all models have no name."""
    if not isinstance(result, ByModel):
        return {"": result.sentences}
    own = {name: each.sentences for name, each in result.results.items()}
    shared = result.sentences[sum(map(len, own.values())) :]
    return own | ({"": shared} if shared else {})


def latex_tables(study: Study, result: StudyResult, *, figure: bool) -> str:
    """All tables of a study for a paper, those after the first with numbered labels; and its figure if wanted."""
    label = study.latex_label
    first = as_latex(result.table, label)
    further = [as_latex(table, f"{label}-{number}") for number, table in enumerate(result.further_tables, start=2)]
    drawn = [as_latex_figure(f"{study.name}.pdf", study.title, study.figure_label)] if figure else []
    return "\n".join([first, *further, *drawn])


def data_uri(kind: str, content: str | bytes) -> str:
    """A file inside the page.

    >>> data_uri("text/csv", "a")
    'data:text/csv;base64,YQ=='
    """
    raw = content.encode() if isinstance(content, str) else content
    return f"data:{kind};base64,{base64.b64encode(raw).decode('ascii')}"


def _links(study: Study, result: StudyResult, *, drawn: bool, files: bool) -> tuple[Link, ...]:
    if files:
        kinds = ("csv", "json", "tex", *(("pdf", "png", "svg") if drawn else ()))
        targets = {kind: f"{study.name}.{kind}" for kind in kinds}
    else:
        csv, tex = as_csv(result.records()), latex_tables(study, result, figure=False)
        mimes = {"csv": ("text/csv", csv), "tex": ("text/x-tex", tex)}
        targets = {kind: data_uri(f"{mime};charset=utf-8", content) for kind, (mime, content) in mimes.items()}
    names = {"tex": "LaTeX"}
    return tuple(Link(names.get(kind, kind.upper()), to, f"{study.name}.{kind}") for kind, to in targets.items())


def _figure(result: StudyResult) -> Figure | None:
    light, dark = result.figure(LIGHT), result.figure(DARK)
    if light is None or dark is None:  # whoever draws in light draws in dark
        return None
    width, height = (round(_PIXELS * inches) for inches in light.get_size_inches().tolist())
    light_uri, dark_uri = (data_uri("image/svg+xml", as_svg(each)) for each in (light, dark))
    return Figure(light_uri, dark_uri, width, height)
