"""RQ2: what does one example cost?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from unprior.baselines.answers import Cost, MethodAnswers
from unprior.studies.result import StudyResult
from unprior.studies.rq2.methods import Methods
from unprior.studies.study import Study
from unprior.tables.format import format_count, format_list
from unprior.tables.model import Table

_REFERENCES = {"original": "Original answer", "spc": "SPC"}


@dataclass(frozen=True, slots=True)
class MethodCost:
    """One method that was measured."""

    method: str
    label: str
    """The name for people."""
    cost: Cost


@dataclass(frozen=True, slots=True)
class Costs(StudyResult):
    """Images encoded, forward passes and seconds by method.

    >>> result = study_cost([], {"original": Cost(1.0, 4.0, 0.2, 20), "spc": Cost(1.0, 6.0, 0.25, 20)})
    >>> [row.cells for row in result.table.rows]
    [('Original answer', '1', '4', '0.2', '1.0', '1.0'), ('SPC', '1', '6', '0.25', '1.5', '1.2')]
    """

    rows: tuple[MethodCost, ...]
    """The original answer, SPC, then the other methods; only what was measured."""

    @classmethod
    def from_methods(cls, methods: Methods) -> Costs:
        """Costs of methods that were compared."""
        known = {"original": methods.original_cost} | {row.name: row.cost for row in methods.rows}
        others = {row.name: row.label for row in methods.rows if row.kind != "spc"}
        return cls(tuple(MethodCost(name, label, cost) for name, label in (_REFERENCES | others).items()
                         if (cost := known.get(name)) is not None))  # fmt: skip

    def of(self, method: str) -> Cost | None:
        """What one method costs, such as ``original``; None where it was not measured."""
        return next((row.cost for row in self.rows if row.method == method), None)

    def times(self, cost: Cost, unit: str) -> float | None:
        """A cost as a multiple of the original answer's; None without one to compare with."""
        base = getattr(self.of("original"), unit, 0)
        return getattr(cost, unit) / base if base else None

    @property
    def table(self) -> Table:
        """One row per method."""
        rows = [
            (row.label, f"{row.cost.images:.2g}", f"{row.cost.passes:.3g}", f"{row.cost.seconds:.3g}",
             *(_multiple(self.times(row.cost, unit)) for unit in ("passes", "seconds")))
            for row in self.rows
        ]  # fmt: skip
        examples = format_list([str(count) for count in sorted({row.cost.examples for row in self.rows})])
        return Table.plain(
            "Cost of one example",
            ("Method", "Images encoded", "Forward passes", "Seconds", "Passes, times original", "Time, times original"),
            rows,
            f"Means over {examples or 'no'} examples, all methods on each in turn. SPC: the original answer and the "
            "scores of all candidates with and without the image; strength and gate need no pass of the model, so all "
            "versions and every ε cost the same.",
            bold=[index for index, row in enumerate(self.rows) if row.method == "spc"],
        )

    @property
    def sentences(self) -> tuple[str, ...]:
        """What SPC costs, and the cheapest and dearest of the others."""
        if not self.rows:
            return ("No costs were measured.",)
        sentences = []
        own, original = self.of("spc"), self.of("original")
        if own is not None and original is not None:
            passes, seconds = (_multiple(self.times(own, unit)) for unit in ("passes", "seconds"))
            images = own.images - original.images
            sentences.append(
                f"SPC takes {passes} times the forward passes and {seconds} times the seconds of the original answer "
                f"and encodes {f'{images:+.2g} images' if images else 'no further image'}."
            )
        others = [row for row in self.rows if row.method not in _REFERENCES]
        if len({row.cost.seconds for row in others}) > 1:
            ends = (choose(others, key=lambda row: row.cost.seconds) for choose in (max, min))
            slowest, fastest = (f"{row.label} ({row.cost.seconds:.3g} s)" for row in ends)
            sentences.append(f"{slowest} is the slowest of the other methods, {fastest} the fastest.")
        if others and own is not None:
            slower = sum(row.cost.seconds > own.seconds for row in others)
            count, verb = format_count(len(others), "other method"), "takes" if slower < 2 else "take"
            sentences.append(f"{slower or 'None'} of {count} {verb} longer than SPC.")
        return tuple(sentences)

    def records(self) -> list[dict[str, Any]]:
        """One record per method."""
        return [
            {"method": row.method, "label": row.label}
            | asdict(row.cost)
            | {f"{unit}_times": self.times(row.cost, unit) for unit in ("images", "passes", "seconds")}
            for row in self.rows
        ]


def _multiple(value: float | None) -> str:
    return "–" if value is None else f"{value:.1f}"


def study_cost(baselines: Sequence[MethodAnswers], references: Mapping[str, Cost]) -> Costs:
    """Gather what was measured; ``references`` are the costs of the ``original`` answer and of ``spc``."""
    rows = [MethodCost(name, label, references[name]) for name, label in _REFERENCES.items() if name in references]
    rows += [MethodCost(each.info.name, each.info.label, each.info.cost) for each in baselines if each.info.cost]
    return Costs(tuple(rows))


STUDY = Study(
    name="cost",
    title="Cost of one example",
    asks="How many images, forward passes and seconds does each method take?",
    how="Counted and timed on the same examples, one at a time, the methods in turn on each; means per example. The "
    "paper reports medians on other machines.",
    needs=("baselines",),
    run=lambda inputs: study_cost(inputs.baselines, inputs.costs),
)
