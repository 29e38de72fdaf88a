"""RQ2: which settings does selection choose?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from unprior.calibration import SelectivePriorCalibrator, TaskChange
from unprior.calibration.gate import Settings
from unprior.calibration.selection import Grid
from unprior.studies.inputs import StudyInputs
from unprior.studies.result import StudyResult, grouped
from unprior.studies.rq3.frontier import EPSILONS
from unprior.studies.study import Study
from unprior.tables.format import format_changes, format_limit, format_list
from unprior.tables.model import Row, Section, Table

SYMBOLS = {
    "rho": "ρ", "max_strength": "λ_max", "min_margin": "m_min", "conflict_support": "τ_D", "absorption_support": "τ_A",
    "max_distance": "d_max",
}  # fmt: skip
"""Settings as formulas call them."""


@dataclass(frozen=True, slots=True)
class ChosenSettings:
    """What one version of SPC chose with one limit."""

    uncertainty: bool
    epsilon: float
    settings: Settings | None
    """None when nothing was feasible."""
    ends: tuple[tuple[str, str], ...]
    """Settings at an end of their grid, each with ``smallest`` or ``largest``."""
    candidate_counts: tuple[int, ...]
    """Numbers of candidates that are accepted at test time."""
    feasible: int
    searched: int
    changes: tuple[TaskChange, ...]
    """On the development rows, by task; empty when nothing was feasible."""

    def change(self, task: str) -> TaskChange | None:
        """The development outcome on one task; None when nothing was feasible."""
        return next((change for change in self.changes if change.task == task), None)


@dataclass(frozen=True, slots=True)
class SelectedSettings(StudyResult):
    """Settings of every version and limit.

    >>> from unprior import SelectivePriorCalibrator, synthesize
    >>> fitted = [SelectivePriorCalibrator(epsilon_cs=epsilon).fit(synthesize(seed=0)) for epsilon in (0.04, 0.1)]
    >>> [row.searched for row in study_settings(fitted).rows]
    [80, 80]
    """

    rows: tuple[ChosenSettings, ...]

    @property
    def tasks(self) -> tuple[str, ...]:
        """Tasks of the development rows, as far as something was chosen."""
        return tuple(sorted({change.task for row in self.rows for change in row.changes}))

    def records(self) -> list[dict[str, Any]]:
        """One record per version and limit."""
        deltas = ("delta_cf", "delta_cs")
        return [
            {"version": "uncertainty-aware" if row.uncertainty else "standard", "epsilon": row.epsilon}
            | {name: getattr(row.settings, name, None) for name in SYMBOLS}
            | {"candidate_counts": ", ".join(map(str, row.candidate_counts))}
            | {"feasible": row.feasible, "searched": row.searched}
            | {f"{task}_{delta}": getattr(row.change(task), delta, None) for task in self.tasks for delta in deltas}
            for row in self.rows
        ]

    @property
    def table(self) -> Table:
        """One row per limit, by version; with the development outcome of what was chosen."""
        lines = {version: tuple(Row(self._cells(row)) for row in rows) for version, rows in self._versions().items()}
        return Table(
            "Settings selected on the development pairs",
            ("ε", *SYMBOLS.values(), "Candidates", "Feasible", *(f"{task.upper()} ΔCF/ΔCS" for task in self.tasks)),
            tuple(map(Section, lines.keys(), lines.values())),
            "Changes in points on the development pairs, on which the settings were chosen; a dash where a version has "
            "no such setting or nothing was feasible. A τ above 1 never lets its condition revise. Candidates are the "
            "numbers of them that are accepted at test time.",
        )

    def _cells(self, row: ChosenSettings) -> tuple[str, ...]:
        values = [getattr(row.settings, name, None) for name in SYMBOLS]
        changes = [row.change(task) for task in self.tasks]
        return (
            format_limit(row.epsilon),
            *("–" if value is None else f"{value:.3g}" for value in values),
            ", ".join(map(str, row.candidate_counts)),
            f"{row.feasible}/{row.searched}",
            *("–" if each is None else format_changes(each.delta_cf, each.delta_cs) for each in changes),
        )

    @property
    def sentences(self) -> tuple[str, ...]:
        """Which limits choose the same, and which settings are at an end of their grid."""
        sentences = []
        for version, rows in self._versions().items():
            chosen = [row for row in rows if row.settings is not None]
            if len(chosen) < len(rows):
                idle = _limits(row for row in rows if row.settings is None)
                sentences.append(f"{version} finds nothing feasible with {idle} and keeps every answer there.")
            if chosen:
                sentences += [_alike(version, chosen), _at_ends(version, chosen)]
        return tuple(sentences)

    def _versions(self) -> dict[str, list[ChosenSettings]]:
        return grouped(self.rows, key=lambda row: "Uncertainty-aware SPC" if row.uncertainty else "Standard SPC")


def _limits(rows: Iterable[ChosenSettings]) -> str:
    return f"ε = {format_list([format_limit(row.epsilon) for row in rows])}"


def _alike(version: str, rows: Sequence[ChosenSettings]) -> str:
    same = grouped(rows, key=lambda row: row.settings).values()
    if len(same) == 1:
        return f"{version} chooses one set of settings with {_limits(rows)}."
    words = [f"{version} chooses {len(same)} different settings with {_limits(rows)}"]
    return "; ".join(words + [f"{_limits(each)} choose the same" for each in same if len(each) > 1]) + "."


def _at_ends(version: str, rows: Sequence[ChosenSettings]) -> str:
    counts = Counter(end for row in rows for end in row.ends)
    words = []
    for name, symbol in SYMBOLS.items():
        found = [f"{end} in {counts[name, end]}" for end in ("smallest", "largest") if counts[name, end]]
        words += [f"{symbol} ({format_list(found)})"] if found else []
    name = version[0].lower() + version[1:]
    if not words:
        return f"Nothing that {name} chooses is at an end of its grid."
    return f"Of these {len(rows)} choices of {name}, the following are at an end of their grid: {format_list(words)}."


def study_settings(calibrators: Sequence[SelectivePriorCalibrator]) -> SelectedSettings:
    """Say what calibrators that were fitted here have chosen, and from how much."""
    rows = [
        ChosenSettings(
            each.uncertainty, each.epsilon_cs, each.settings_, _ends(each), each.candidate_counts_,
            each.selection_.feasible, each.selection_.searched, each.selection_.changes,
        )
        for each in calibrators
    ]  # fmt: skip
    return SelectedSettings(tuple(rows))


def _ends(calibrator: SelectivePriorCalibrator) -> tuple[tuple[str, str], ...]:
    """Settings that are the smallest or largest of what they were chosen from."""
    grid, chosen, outcomes = calibrator.grid or Grid(), calibrator.settings_, calibrator.state_.outcomes
    limits = () if outcomes is None else outcomes.distance_limits
    offered = {"conflict_support": grid.support, "absorption_support": grid.support, "max_distance": limits}
    ends = []
    for name in SYMBOLS:
        values, value = offered[name] if name in offered else getattr(grid, name), getattr(chosen, name, None)
        if value is not None and len(values) > 1 and value in (values[0], values[-1]):
            ends.append((name, "smallest" if value == values[0] else "largest"))
    return tuple(ends)


def _fitted(inputs: StudyInputs) -> list[SelectivePriorCalibrator]:
    limits = sorted({*EPSILONS, inputs.epsilon, inputs.wide_epsilon})
    return [inputs.fitted(epsilon, uncertainty=uncertainty) for uncertainty in (False, True) for epsilon in limits]


STUDY = Study(
    name="settings",
    label="tab:spc-primary-settings",
    title="Selected settings",
    asks="Which settings does selection choose on the development pairs, and do they depend on the permitted loss?",
    how="Standard and uncertainty-aware SPC, selected on the development pairs with every ε of 0, 0.02, 0.04, 0.06 and "
    "0.10 and of the run's own {epsilon} and {wide_epsilon}: the highest mean of ΔCF + 0.5 ΔCS over tasks, with ΔCF ≥ "
    "0 and ΔCS ≥ −ε on each. Test pairs are not looked at.",
    run=lambda inputs: study_settings(_fitted(inputs)),
)
