"""One study as a section of a page: question, sentences, figure, tables, and the files to take away."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from unprior.plots.style import DARK, LIGHT, as_file, as_svg, recoloured
from unprior.report.glossary import Term, terms_in
from unprior.studies.by_model import ByModel
from unprior.studies.finished import FinishedStudy
from unprior.studies.result import StudyResult
from unprior.studies.study import Study
from unprior.tables.csv import as_csv
from unprior.tables.html import HtmlTable, from_records, from_table
from unprior.tables.latex import as_latex, as_latex_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure as MatplotlibFigure

_PIXELS = 110
"""Of an inch, where the page is wide enough."""
_SHRUNK, _MARGINS = 0.7, 84


class Drawing(NamedTuple):
    """A figure, drawn for light and for dark pages."""

    light: str
    """Data URI."""
    dark: str
    """Data URI."""
    width: int
    height: int


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure for wide and for narrow screens."""

    wide: Drawing
    narrow: Drawing

    @property
    def least(self) -> int:
        """The narrowest screen, in pixels, on which letters of the wide drawing can still be read."""
        return round(_SHRUNK * self.wide.width) + _MARGINS


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
    tests_in: tuple[Study, ...] = ()
    """Studies of the page that show its tests."""


def make_section(finished: FinishedStudy, *, files: bool) -> Section:
    """A finished study for a page.

    Parameters
    ----------
    finished
        The study, with a result or with what it lacks.
    files
        Whether the files of :func:`unprior.report.study_page.write_study` are beside the page to link to; otherwise
        the page holds the numbers, the LaTeX and the figure as PDF itself.

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
    drawn = result.figure(LIGHT)
    figure = None if drawn is None else _figure(result, drawn)
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
        _links(study, result, drawn, files=files),
        terms_in(words),
        tuple(dict.fromkeys(result.tests_in.values())) if isinstance(result, ByModel) else (),
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


def _links(study: Study, result: StudyResult, drawn: MatplotlibFigure | None, *, files: bool) -> tuple[Link, ...]:
    if files:
        kinds = ("csv", "json", "tex", *(("pdf", "png", "svg") if drawn else ()))
        targets = {kind: f"{study.name}.{kind}" for kind in kinds}
    else:
        tex = latex_tables(study, result, figure=drawn is not None)
        targets = {
            "csv": data_uri("text/csv;charset=utf-8", as_csv(result.records())),
            "tex": data_uri("text/x-tex;charset=utf-8", tex),
        }
        if drawn:
            targets["pdf"] = data_uri("application/pdf", as_file(drawn, "pdf", outlines=True))
    names = {"tex": "LaTeX"}
    return tuple(Link(names.get(kind, kind.upper()), to, f"{study.name}.{kind}") for kind, to in targets.items())


def _figure(result: StudyResult, drawn: MatplotlibFigure) -> Figure:
    narrow = result.figure(LIGHT, narrow=True)
    wide = _drawing(drawn, result)
    return Figure(wide, wide if narrow is None else _drawing(narrow, result, narrow=True))


def _drawing(drawn: MatplotlibFigure, result: StudyResult, *, narrow: bool = False) -> Drawing:
    width, height = (round(_PIXELS * inches) for inches in drawn.get_size_inches().tolist())
    light = as_svg(drawn)
    dark = recoloured(light, LIGHT, DARK)
    if dark is None and (again := result.figure(DARK, narrow=narrow)) is not None:  # colours depend on the ground
        dark = as_svg(again)
    one, other = (data_uri("image/svg+xml", each) for each in (light, dark or light))
    return Drawing(one, other, width, height)
