"""RQ2: which settings does selection choose?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

from unprior.calibration import SelectivePriorCalibrator, TaskChange
from unprior.calibration.gate import Settings
from unprior.calibration.selection import Grid
from unprior.studies.inputs import StudyInputs
from unprior.studies.result import StudyResult
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
        records = []
        for row in self.rows:
            version = "uncertainty-aware" if row.uncertainty else "standard"
            record: dict[str, Any] = {"version": version, "epsilon": row.epsilon}
            chosen = {} if row.settings is None else asdict(row.settings)
            record |= {name: chosen.get(name) for name in SYMBOLS}
            record["candidate_counts"] = _counts(row)
            record |= {"feasible": row.feasible, "searched": row.searched}
            for task in self.tasks:
                change = _change(row, task)
                for side in ("cf", "cs"):
                    name = f"delta_{side}"
                    record[f"{task}_{name}"] = None if change is None else getattr(change, name)
            records.append(record)
        return records

    @property
    def table(self) -> Table:
        """One row per limit, by version; with the development outcome of what was chosen."""
        sections = []
        for version, rows in self._versions().items():
            lines = []
            for row in rows:
                values = [None if row.settings is None else getattr(row.settings, name) for name in SYMBOLS]
                outcomes = [_change(row, task) for task in self.tasks]
                lines.append(Row((
                    format_limit(row.epsilon),
                    *("–" if value is None else f"{value:.3g}" for value in values),
                    _counts(row),
                    f"{row.feasible}/{row.searched}",
                    *(
                        "–" if change is None else format_changes(change.delta_cf, change.delta_cs)
                        for change in outcomes
                    ),
                )))  # fmt: skip
            sections.append(Section(version, tuple(lines)))
        return Table(
            "Settings selected on the development pairs",
            ("ε", *SYMBOLS.values(), "Candidates", "Feasible", *(f"{task.upper()} ΔCF/ΔCS" for task in self.tasks)),
            tuple(sections),
            "Changes in points on the development pairs, on which the settings were chosen; a dash where a version has "
            "no such setting or nothing was feasible. A τ above 1 never lets its condition revise. Candidates are the "
            "numbers of them that are accepted at test time.",
        )

    @property
    def sentences(self) -> tuple[str, ...]:
        """Which limits choose the same, and which settings are at an end of their grid."""
        sentences = []
        for version, rows in self._versions().items():
            chosen = [row for row in rows if row.settings is not None]
            idle = [format_limit(row.epsilon) for row in rows if row.settings is None]
            if idle:
                sentences.append(
                    f"{version} finds nothing feasible with ε = {format_list(idle)} and keeps every answer there."
                )
            if chosen:
                sentences += [_alike(version, chosen), _at_ends(version, chosen)]
        return tuple(sentences)

    def _versions(self) -> dict[str, list[ChosenSettings]]:
        versions: dict[str, list[ChosenSettings]] = {}
        for row in self.rows:
            name = "Uncertainty-aware SPC" if row.uncertainty else "Standard SPC"
            versions.setdefault(name, []).append(row)
        return versions


def _alike(version: str, rows: Sequence[ChosenSettings]) -> str:
    limits: dict[Settings | None, list[str]] = {}
    for row in rows:
        limits.setdefault(row.settings, []).append(format_limit(row.epsilon))
    if len(limits) == 1:
        return f"{version} chooses one set of settings with ε = {format_list(limits[rows[0].settings])}."
    every = format_list([format_limit(row.epsilon) for row in rows])
    same = [f"ε = {format_list(each)} choose the same" for each in limits.values() if len(each) > 1]
    return (
        f"{version} chooses {len(limits)} different settings with ε = {every}"
        + "".join(f"; {each}" for each in same)
        + "."
    )


def _at_ends(version: str, rows: Sequence[ChosenSettings]) -> str:
    counts = Counter(end for row in rows for end in row.ends)
    words = []
    for name, symbol in SYMBOLS.items():
        found = [f"{end} in {counts[name, end]}" for end in ("smallest", "largest") if counts[name, end]]
        if found:
            words.append(f"{symbol} ({format_list(found)})")
    name = version[0].lower() + version[1:]
    if not words:
        return f"Nothing that {name} chooses is at an end of its grid."
    return f"Of these {len(rows)} choices of {name}, the following are at an end of their grid: {format_list(words)}."


def _counts(row: ChosenSettings) -> str:
    return ", ".join(map(str, row.candidate_counts))


def _change(row: ChosenSettings, task: str) -> TaskChange | None:
    return next((change for change in row.changes if change.task == task), None)


def study_settings(calibrators: Sequence[SelectivePriorCalibrator]) -> SelectedSettings:
    """Say what calibrators that were fitted here have chosen, and from how much."""
    return SelectedSettings(
        tuple(
            ChosenSettings(
                each.uncertainty, each.epsilon_cs, each.settings_, _ends(each), each.candidate_counts_,
                each.selection_.feasible, each.selection_.searched, each.selection_.changes,
            )
            for each in calibrators
        )
    )  # fmt: skip


def _ends(calibrator: SelectivePriorCalibrator) -> tuple[tuple[str, str], ...]:
    """Settings that are the smallest or largest of what they were chosen from."""
    grid, chosen = calibrator.grid or Grid(), calibrator.settings_
    outcomes = calibrator.state_.outcomes
    limits = () if outcomes is None else outcomes.distance_limits
    offered = {"conflict_support": grid.support, "absorption_support": grid.support, "max_distance": limits}
    ends = []
    for field in fields(Settings) if chosen is not None else ():
        values = offered[field.name] if field.name in offered else getattr(grid, field.name)
        value = getattr(chosen, field.name)
        if value is not None and len(values) > 1 and value in (values[0], values[-1]):
            ends.append((field.name, "smallest" if value == values[0] else "largest"))
    return tuple(ends)


def _fitted(inputs: StudyInputs) -> list[SelectivePriorCalibrator]:
    limits = sorted({*EPSILONS, inputs.epsilon, inputs.wide_epsilon})
    return [inputs.fitted(epsilon, uncertainty=uncertainty) for uncertainty in (False, True) for epsilon in limits]


STUDY = Study(
    name="settings",
    label="tab:spc-primary-settings",
    question="rq2",
    title="Selected settings",
    asks="Which settings does selection choose on the development pairs, and do they depend on the permitted loss?",
    how="Standard and uncertainty-aware SPC, selected on the development pairs with every ε of 0, 0.02, 0.04, 0.06 and "
    "0.10 and of the run's own {epsilon} and {wide_epsilon}: the highest mean of ΔCF + 0.5 ΔCS over tasks, with ΔCF ≥ "
    "0 and ΔCS ≥ −ε on each. Test pairs are not looked at.",
    needs=("scores",),
    run=lambda inputs: study_settings(_fitted(inputs)),
)
