"""One study of several models: a block of rows, a column of the figure and sentences for each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from unprior.evaluation import holm
from unprior.plots.panels import by_model
from unprior.plots.style import LIGHT, FigureStyle
from unprior.studies.result import StudyResult, Test
from unprior.tables.format import format_p
from unprior.tables.model import Row, Section, Table

LEVEL = 0.05
"""What counts as significant in sentences."""


@dataclass(frozen=True, slots=True)
class ByModel(StudyResult):
    """The results of one study by model, shown together.

    >>> from unprior import synthesize
    >>> from unprior.studies.inputs import StudyInputs
    >>> from unprior.studies.registry import STUDIES
    >>> runs = {f"model {seed}": StudyInputs(synthesize(seed=seed)) for seed in (0, 1)}
    >>> both = ByModel({name: STUDIES["components"].run(inputs) for name, inputs in runs.items()})
    >>> [section.heading for section in both.table.sections]
    ['model 0', 'model 1']
    """

    results: Mapping[str, StudyResult]

    @property
    def table(self) -> Table:
        """The tables under each other, a block for every model."""
        tables = {name: result.table for name, result in self.results.items()}
        first = next(iter(tables.values()))
        columns = tuple(dict.fromkeys(column for table in tables.values() for column in table.columns))
        sections = [
            replace(
                section,
                heading=f"{name}: {section.heading}"
                if section.heading
                else (name if section is table.sections[0] else None),
                rows=tuple(_aligned(row, table.columns, columns) for row in section.rows),
            )
            for name, table in tables.items()
            for section in table.sections
        ]
        return replace(first, columns=columns, sections=tuple(sections))

    @property
    def further_tables(self) -> tuple[Table, ...]:
        """The further tables of every model, and the tests adjusted over all models."""
        own = [replace(table, title=f"{name}: {table.title}") for name, result in self.results.items()
               for table in result.further_tables]  # fmt: skip
        return (*own, *([self._holm_table()] if self.adjusted() else []))

    @property
    def sentences(self) -> tuple[str, ...]:
        """What the numbers say about each model, and which tests hold over all of them."""
        by_name = [f"{name}: {sentence}" for name, result in self.results.items() for sentence in result.sentences]
        families: dict[str, list[float]] = {}
        for (_, test), p in self.adjusted().items():
            families.setdefault(test.family, []).append(p)
        over_all = [
            f"{family}: {sum(p <= LEVEL for p in values)} of {len(values)} changes are significant at {LEVEL:g} after "
            f"Holm's adjustment over all {len(self.results)} models."
            for family, values in families.items()
        ]
        return (*by_name, *over_all)

    def records(self) -> list[dict[str, Any]]:
        """The records of all models, each with its model."""
        return [{"model": name} | record for name, result in self.results.items() for record in result.records()]

    def adjusted(self) -> dict[tuple[str, Test], float]:
        """p of every test by model, adjusted over its family in all models."""
        found: dict[tuple[str, Test], float] = {}
        tests = [(name, test) for name, result in self.results.items() for test in result.tests()]
        for family in dict.fromkeys(test.family for _, test in tests):
            members = [each for each in tests if each[1].family == family]
            found |= dict(zip(members, holm([test.p for _, test in members]).adjusted, strict=True))
        return found

    def tests(self) -> tuple[Test, ...]:
        """The tests of all models, adjusted over all of them."""
        return tuple(replace(test, name=f"{name} {test.name}", holm_p=p) for (name, test), p in self.adjusted().items())

    def figure(self, style: FigureStyle = LIGHT) -> Any:
        """A column for every model that has a figure."""
        panels = {name: found for name, result in self.results.items() if (found := result.panels()) is not None}
        return by_model(panels, style) if panels else None

    def _holm_table(self) -> Table:
        adjusted = self.adjusted()
        sections = []
        for family in dict.fromkeys(test.family for _, test in adjusted):
            members = {each: p for each, p in adjusted.items() if each[1].family == family}
            rows = tuple(
                Row((name, test.name, format_p(test.p), format_p(test.holm_p), format_p(p)))
                for (name, test), p in members.items()
            )
            sections.append(Section(f"{family} ({len(members)} tests)", rows))
        return Table(
            "Tests adjusted per model and over all models",
            ("Model", "Test", "Raw p", "Holm p, this model", "Holm p, all models"),
            tuple(sections),
            "Exact two-sided McNemar tests. Holm's adjustment over the tests of one model, and over those of all "
            "models in the table.",
            text_columns=2,
        )


def _aligned(row: Row, columns: Sequence[str], wanted: Sequence[str]) -> Row:
    """A row with a dash where its model has no such column."""
    if tuple(columns) == tuple(wanted):
        return row
    cells = dict(zip(columns, row.cells, strict=True))
    bold = tuple(place for place, column in enumerate(wanted) if column in columns
                 and columns.index(column) in row.bold_cells)  # fmt: skip
    return replace(row, cells=tuple(cells.get(column, "–") for column in wanted), bold_cells=bold)
