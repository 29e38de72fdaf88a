"""One study of several models: a block of rows, a column of the figure and sentences for each."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from unprior.evaluation import holm
from unprior.plots.panels import Panels, by_model, one_after_another
from unprior.plots.style import LIGHT, FigureStyle
from unprior.studies.result import StudyResult, Test, grouped
from unprior.studies.study import Study
from unprior.tables.format import format_list, format_p
from unprior.tables.model import Row, Section, Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_SENTENCE = re.compile(r"(?<=\.) (?=[^a-zα-ω\d])")
_MAX_NAMED = 6
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
    tests_in: Mapping[str, Study] = field(default_factory=dict)
    """Studies that show the tests of a family, which are then not repeated here."""

    @property
    def table(self) -> Table:
        """The tables under each other, a block for every model."""
        tables = {name: result.table for name, result in self.results.items()}
        first = next(iter(tables.values()))
        columns = tuple(dict.fromkeys(column for table in tables.values() for column in table.columns))
        sections = []
        for name, table in tables.items():
            for place, section in enumerate(table.sections):
                heading = f"{name}: {section.heading}" if section.heading else None if place else name
                rows = tuple(_aligned(row, table.columns, columns) for row in section.rows)
                sections.append(Section(heading, rows))
        caption = _caption({name: table.caption for name, table in tables.items()})
        if self.families() and any("Holm p" in column for column in columns):
            caption += " Adjusted p in this table are those of one model."
        return replace(first, columns=columns, sections=tuple(sections), caption=caption + self._where_tests_are())

    @property
    def further_tables(self) -> tuple[Table, ...]:
        """The further tables of every model, and the tests adjusted over all models."""
        own = [replace(table, title=f"{name}: {table.title}") for name, result in self.results.items()
               for table in result.further_tables]  # fmt: skip
        return (*own, *([self._holm_table()] if self._own() else []))

    @property
    def sentences(self) -> tuple[str, ...]:
        """What the numbers say about each model, and which tests hold over all of them."""
        by_name = [f"{name}: {sentence}" for name, result in self.results.items() for sentence in result.sentences]
        if not (families := self.families()):
            return tuple(by_name)
        kept = {name: sum(p <= LEVEL for _, p in members) for name, members in families.items()}
        counts = [f"{kept[name]} of {len(members)} with {name}" for name, members in families.items()]
        if len(families) > _MAX_NAMED:
            own = [name for name in families if name.startswith("SPC")][:_MAX_NAMED]
            rest = [name for name in families if name not in own]
            counts = [f"{kept[name]} of {len(families[name])} with {name}" for name in own]
            total = sum(len(families[name]) for name in rest)
            counts.append(f"{sum(kept[name] for name in rest)} of {total} in {len(rest)} other families")
        words = f"Changes that are significant at {LEVEL:g} after Holm's adjustment over all models in the table"
        return (*by_name, f"{words}: {format_list(counts)}.")

    def records(self) -> list[dict[str, Any]]:
        """The records of all models, each with its model and with p adjusted over all models where it has a test.

        Tests of a study come in the order of its records: one for each, or one for each side; none for a record that
        says so (``in_family``).
        """
        sizes = {family: len(members) for family, members in self.families().items()}
        adjusted, found = self.adjusted(), []
        for name, result in self.results.items():
            tests = iter(result.tests())
            for record in result.records():
                added: dict[str, Any] = {}
                for side in () if not sizes else ("",) if "holm_p" in record else ("cf_", "cs_"):
                    untested = record.get(f"{side}p", 0) is None or not record.get("in_family", True)
                    test = None if untested else next(tests)
                    added[f"{side}holm_p_all_models"] = None if test is None else adjusted[name, test]
                    added["family_all_models"] = None if test is None else sizes[test.family]
                found.append({"model": name} | record | added)
        return found

    def adjusted(self) -> dict[tuple[str, Test], float]:
        """p of every test by model, adjusted over its family in all models."""
        found: dict[tuple[str, Test], float] = {}
        tests = [(name, test) for name, result in self.results.items() for test in result.tests()]
        for members in grouped(tests, key=lambda each: each[1].family).values():
            found |= dict(zip(members, holm([test.p for _, test in members]).adjusted, strict=True))
        return found

    def tests(self) -> tuple[Test, ...]:
        """The tests of all models, adjusted over all of them."""
        return tuple(replace(test, name=f"{name} {test.name}", holm_p=p) for (name, test), p in self.adjusted().items())

    def panels(self) -> Panels | None:
        """The panels of every model that has a figure, one model after the other."""
        found = self._panels()
        return one_after_another(found) if found else None

    def figure(self, style: FigureStyle = LIGHT, *, narrow: bool = False) -> Figure | None:
        """A column for every model that has a figure; ``narrow`` puts all panels under each other."""
        found = self._panels()
        if not found:
            return None
        return one_after_another(found).figure(style, narrow=True) if narrow else by_model(found, style)

    def _panels(self) -> dict[str, Panels]:
        return {name: panels for name, result in self.results.items() if (panels := result.panels()) is not None}

    def families(self) -> dict[str, list[tuple[tuple[str, Test], float]]]:
        """Model, test and p adjusted over all models, by family."""
        return grouped(self.adjusted().items(), key=lambda item: item[0][1].family)

    def _own(self) -> dict[str, list[tuple[tuple[str, Test], float]]]:
        return {family: members for family, members in self.families().items() if family not in self.tests_in}

    def _where_tests_are(self) -> str:
        how, others = "adjusted per model and over all models", ""
        for title, families in grouped(self.tests_in, key=lambda family: self.tests_in[family].title).items():
            others += f" “{title}” has the tests of {format_list(families)}, {how}."
        return others + (f" The last table has the {'other ' * bool(others)}tests, {how}." if self._own() else "")

    def _holm_table(self) -> Table:
        sections = []
        for family, members in self._own().items():
            rows = [(name, test.name, *map(format_p, (test.p, test.holm_p, p))) for (name, test), p in members]
            sections.append(Section(f"{family} ({len(members)} tests)", tuple(map(Row, rows))))
        return Table(
            "Tests adjusted per model and over all models",
            ("Model", "Test", "Raw p", "Holm p, this model", "Holm p, all models"),
            tuple(sections),
            "Exact two-sided McNemar tests. Holm's adjustment over the tests under one heading: those of one model, "
            "and those of all models.",
            text_columns=2,
        )


def _caption(captions: Mapping[str, str]) -> str:
    """What the captions of all models say once; what only some say with the names of these."""
    speakers: dict[str, list[str]] = {}
    for name, caption in captions.items():
        for sentence in _SENTENCE.split(caption):
            speakers.setdefault(sentence, []).append(name)
    shared = [sentence for sentence, names in speakers.items() if len(names) == len(captions)]
    own = [f"{format_list(names)}: {sentence}" for sentence, names in speakers.items() if len(names) < len(captions)]
    return " ".join([*shared, *own])


def _aligned(row: Row, columns: Sequence[str], wanted: Sequence[str]) -> Row:
    """A row with a dash where its model has no such column."""
    if tuple(columns) == tuple(wanted):
        return row
    places = [columns.index(column) if column in columns else None for column in wanted]
    cells = tuple("–" if place is None else row.cells[place] for place in places)
    return replace(row, cells=cells, bold_cells=tuple(new for new, old in enumerate(places) if old in row.bold_cells))
