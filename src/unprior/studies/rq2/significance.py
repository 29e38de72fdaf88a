"""RQ2: which changes of SPC are more than chance?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from unprior.calibration import Decisions
from unprior.evaluation import Change, compare, holm, mcnemar
from unprior.evaluation.comparison import group_rows
from unprior.studies.by_model import LEVEL
from unprior.studies.common.versions import spc_versions
from unprior.studies.result import StudyResult, Test, format_repairs, grouped
from unprior.studies.study import Study
from unprior.tables.format import format_list
from unprior.tables.model import Row, Section, Table


@dataclass(frozen=True, slots=True)
class Comparison:
    """One side of one task before and after one version of SPC."""

    version: str
    task: str
    side: str
    change: Change
    p: float
    """Of the exact two-sided McNemar test."""
    holm_p: float
    """Adjusted over the comparisons of the version."""

    @property
    def label(self) -> str:
        """Such as ``MC CF``."""
        return f"{self.task.upper()} {self.side.upper()}"


@dataclass(frozen=True, slots=True)
class Significance(StudyResult):
    """Exact tests of every version of SPC, task and side.

    >>> from unprior import SelectivePriorCalibrator, synthesize
    >>> table = synthesize(seed=0)
    >>> decisions = SelectivePriorCalibrator().fit(table).predict(table.where(split="test"))
    >>> [row.label for row in study_significance({"SPC": decisions}).rows]
    ['MC CF', 'MC CS', 'QA CF', 'QA CS']
    """

    rows: tuple[Comparison, ...]

    @property
    def families(self) -> dict[str, list[Comparison]]:
        """The comparisons by version."""
        return grouped(self.rows, key=lambda row: row.version)

    def tests(self) -> tuple[Test, ...]:
        """Every task and side, each version a family of its own."""
        return tuple(Test(row.version, row.label, row.p, row.holm_p) for row in self.rows)

    @property
    def table(self) -> Table:
        """Raw and adjusted p, one section per version."""
        sections = []
        for version, rows in self.families.items():
            lines = [
                (row.label, format_repairs(row.change), *map(format_p_as_in_paper, (row.p, row.holm_p))) for row in rows
            ]
            sections.append(Section(version, tuple(map(Row, lines))))
        return Table(
            "Exact tests of SPC",
            ("Comparison", "Repairs/harms", "Raw p", "Holm p"),
            tuple(sections),
            "Exact two-sided McNemar tests; Holm's adjustment covers the comparisons of one version.",
        )

    @property
    def sentences(self) -> tuple[str, ...]:
        """Which changes remain significant."""
        versions: dict[str, list[str]] = {}  # versions with the same outcome are named together
        for version, rows in self.families.items():
            kept = [row for row in rows if row.holm_p <= LEVEL]
            names = [f"{row.label} ({'gain' if row.change.delta > 0 else 'loss'})" for row in kept]
            outcome = f"{len(kept) or 'none'} of {len(rows)} changes {'is' if len(kept) < 2 else 'are'}"
            outcome += f" significant at {LEVEL:g} after adjustment" + (f": {format_list(names)}" if kept else "")
            versions.setdefault(outcome, []).append(version)
        return (
            *(f"With {format_list(names)} {outcome}." for outcome, names in versions.items()),
            f"The smallest adjusted p of all versions is {format_p_as_in_paper(min(row.holm_p for row in self.rows))}.",
        )

    def records(self) -> list[dict[str, Any]]:
        """One record per version, task and side."""
        return [
            {"version": row.version, "task": row.task, "side": row.side}
            | asdict(row.change)
            | {"p": row.p, "holm_p": row.holm_p, "family": len(self.families[row.version])}
            for row in self.rows
        ]


def format_p_as_in_paper(p: float) -> str:
    """p as in the paper: six digits, or a power of ten where these would say too little.

    >>> format_p_as_in_paper(0.000277), format_p_as_in_paper(1.0), format_p_as_in_paper(8.55e-14)
    ('0.000277', '1.000000', '8.55e-14')
    """
    return f"{p:.6f}" if p >= 1e-4 else f"{p:.2e}"


def study_significance(versions: Mapping[str, Decisions]) -> Significance:
    """Test all tasks and sides of every version, each version a family of its own."""
    found: list[Comparison] = []
    for version, decisions in versions.items():
        changes = [
            (str(task), side, compare(decisions.table.take(rows), decisions.final_positions[rows], side=side))
            for (task,), rows in group_rows(decisions.table, "task").items()
            for side in ("cf", "cs")
        ]
        raw = [mcnemar(change.repairs, change.harms).p_value for _, _, change in changes]
        tests = zip(changes, raw, holm(raw).adjusted, strict=True)
        found += [Comparison(version, *change, p, holm_p) for change, p, holm_p in tests]
    return Significance(tuple(found))


STUDY = Study(
    name="significance",
    label="tab:primary-holm",
    title="Exact tests",
    asks="Which changes of accuracy by SPC are more than chance?",
    how="Exact two-sided McNemar tests on the test pairs for {versions}; Holm's adjustment over the "
    "tasks and sides of one version.",
    run=lambda inputs: study_significance(spc_versions(inputs)),
)
