"""Choosing the settings on development data: every setting of the grid is counted exactly.

A row passes a threshold or it does not, so one histogram of the rows over (condition, support, margin,
distance) bins, accumulated along its axes, holds the outcome of all settings of one (ρ, λ_max) at once.
The cost is one pass over the rows, whatever the number of settings.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Literal, Self, get_args

import numpy as np

from unprior.calibration.choice import choose
from unprior.calibration.gate import CONDITIONS, Proposals, Settings, within_distance
from unprior.scores import ScoreTable
from unprior.scores.schema import IntArray
from unprior.scores.table import FloatArray

Ties = Literal["first", "released"]
"""Which of equally good settings is chosen: the first in loop order, or the one whose JSON text sorts first."""
TIES: tuple[Ties, ...] = get_args(Ties)


@dataclass(frozen=True, slots=True)
class Grid:
    """Values to choose from; each must increase. The default is the paper's.

    >>> Grid(max_strength=(0.8,)).min_margin
    (0.0, 0.05, 0.1, 0.2, 0.3)
    """

    rho: tuple[float, ...] = (0.01, 0.1, 1.0, 10.0)
    max_strength: tuple[float, ...] = (0.8, 1.0, 1.2, 1.5)
    min_margin: tuple[float, ...] = (0.0, 0.05, 0.1, 0.2, 0.3)
    support: tuple[float, ...] = (0.5, 0.65, 0.8, 0.9, 0.95, 1.01)
    """For both τ_D and τ_A."""
    distance_quantile: tuple[float, ...] = (0.90, 0.95, 0.99)
    """Of the development distances, giving d_max."""


@dataclass(frozen=True, slots=True)
class TaskChange:
    """What a setting does to one task of the development data.

    >>> TaskChange("mc", cf_net=7, cf_total=70, cs_net=-1, cs_total=70).delta_cf
    0.1
    """

    task: str
    cf_net: int
    """Repairs minus harms on counterfactual images."""
    cf_total: int
    cs_net: int
    """Repairs minus harms on commonsense images."""
    cs_total: int

    @property
    def delta_cf(self) -> float:
        """ΔCF."""
        return self.cf_net / self.cf_total

    @property
    def delta_cs(self) -> float:
        """ΔCS; NaN when the settings were chosen without commonsense images."""
        return self.cs_net / self.cs_total if self.cs_total else float("nan")


@dataclass(frozen=True, slots=True)
class Selection:
    """The outcome of the search; ``settings`` is None when nothing was feasible.

    >>> from unprior import SelectivePriorCalibrator, synthesize
    >>> SelectivePriorCalibrator().fit(synthesize(seed=0)).selection_.searched
    80
    """

    settings: Settings | None
    changes: tuple[TaskChange, ...]
    """Development outcome of the chosen settings by task; empty when nothing was feasible."""
    changed: int
    """Development answers that the chosen settings change."""
    feasible: int
    """Settings that kept the promise ΔCF ≥ 0 and ΔCS ≥ −ε on every task."""
    searched: int
    """Settings that were tried."""

    @property
    def utility(self) -> float:
        """Mean over tasks of ΔCF + 0.5 ΔCS."""
        return float(np.mean([change.delta_cf + 0.5 * change.delta_cs for change in self.changes]))


@dataclass(frozen=True, slots=True)
class Groups:
    """Which (task, side) each development row belongs to: group 2t is CF, 2t + 1 is CS of task t."""

    tasks: tuple[str, ...]
    group: IntArray
    """Group of every row; empty where only the counts of rows are known, as from a file."""
    totals: IntArray

    @classmethod
    def from_table(cls, table: ScoreTable, order: IntArray | None = None) -> Self:
        """Number the (task, side) of every row, in the order of the table or of the rows given."""
        code, labels = table.codes("task")
        tasks = tuple(str(label[0]) for label in labels)
        ranked = sorted(range(len(tasks)), key=tasks.__getitem__)
        rank = np.argsort(ranked)
        group = 2 * rank[code] + np.where(table.is_cf, 0, 1)
        group = group if order is None else group[order]
        return cls(tuple(tasks[index] for index in ranked), group, np.bincount(group, minlength=2 * len(tasks)))

    def only(self, task: str) -> Self:
        """The groups of one task, when all rows belong to it."""
        first = 2 * self.tasks.index(task)
        return type(self)((task,), self.group - first, self.totals[first : first + 2])

    def changes(self, nets: IntArray) -> tuple[TaskChange, ...]:
        """Pair the net counts of all groups with their totals, by task."""
        counts = [(int(net), int(total)) for net, total in zip(nets, self.totals, strict=True)]
        return tuple(
            TaskChange(task, *counts[2 * index], *counts[2 * index + 1]) for index, task in enumerate(self.tasks)
        )


@dataclass(frozen=True, slots=True)
class Histogram:
    """Rows that one (ρ, λ_max) would revise, by the number of thresholds they pass."""

    net: IntArray
    """Repairs minus harms, shape (condition, group, support bin, margin bin, distance bin)."""
    changed: IntArray
    """Revised answers, shape (condition, support bin, margin bin, distance bin)."""


@dataclass(frozen=True, slots=True)
class Outcomes:
    """What every setting of a grid does to the development rows: all that a choice of settings needs."""

    groups: Groups
    histograms: tuple[Histogram, ...]
    """Over ρ, then λ_max."""
    distance_limits: tuple[float, ...]
    """Values of d_max to choose from; empty for the standard version."""


def count_rows(
    proposals: Sequence[Proposals],
    gains: Sequence[IntArray],
    groups: Groups,
    grid: Grid,
    distance_limits: Sequence[float],
) -> Histogram:
    """Sort the rows into bins, with what revising them would gain.

    ``gains`` is +1 where the proposal would repair the answer, -1 where it would harm it; rows are in
    the order of ``groups.group``.
    """
    condition = np.concatenate([part.condition for part in proposals]).astype(np.int64)
    differs = np.concatenate([part.differs for part in proposals])
    gain = np.concatenate(gains)
    margin = np.concatenate([part.margin for part in proposals])
    # A bin is the number of thresholds that the row passes.
    margin_bin = np.searchsorted(grid.min_margin, margin, side="right")
    uncertain = proposals[0].support is not None
    if uncertain:
        support = np.concatenate([part.support for part in proposals if part.support is not None])
        distance = np.concatenate([part.distance for part in proposals if part.distance is not None])
        support_bin = np.searchsorted(grid.support, support, side="right")
        distance_bin = np.sum([within_distance(distance, limit) for limit in distance_limits], axis=0)
    else:
        support_bin = distance_bin = np.ones(len(margin), dtype=np.int64)
    supports, distances = (len(grid.support), len(distance_limits)) if uncertain else (1, 1)
    bins = (len(CONDITIONS), len(groups.totals), supports + 1, len(grid.min_margin) + 1, distances + 1)
    rows = differs & (condition >= 0)
    cell = np.ravel_multi_index(
        (condition[rows], groups.group[rows], support_bin[rows], margin_bin[rows], distance_bin[rows]), bins
    )
    size = int(np.prod(bins))
    net = np.bincount(cell, weights=gain[rows], minlength=size).reshape(bins)
    changed = np.bincount(cell, minlength=size).reshape(bins).sum(axis=1)
    return Histogram(np.rint(net).astype(np.int64), changed)


def _passing(histogram: IntArray) -> IntArray:
    """From rows per bin to rows that pass each threshold, along the last three axes.

    Threshold j is passed by bins j+1 and up when thresholds increase (support, margin). Distance limits
    increase too but are passed from below, so a row that passes n of them passes the n largest.
    """
    for axis in (-3, -2, -1):
        histogram = np.flip(np.cumsum(np.flip(histogram, axis), axis=axis), axis)
    return histogram[..., 1:, 1:, :0:-1]


def select(
    histograms: Sequence[Histogram],
    groups: Groups,
    grid: Grid,
    distance_limits: Sequence[float],
    epsilon_cs: float,
    *,
    uncertainty: bool,
    ties: Ties = "first",
) -> Selection:
    """Pick the best feasible setting; ``histograms`` run over ρ, then λ_max.

    Ties ``released`` concern the standard version; the uncertainty-aware one always takes the first in loop order.
    See :func:`~unprior.calibration.choice.choose` for what is feasible and what is best.
    """
    net = _passing(np.stack([histogram.net for histogram in histograms]))
    changed = _passing(np.stack([histogram.changed for histogram in histograms]))
    # From here on the axes are (ρ and λ_max, [group,] τ_D, τ_A, m_min, d_max): the loop order.
    net = net[:, 0, :, :, None] + net[:, 1, :, None, :]
    changed = changed[:, 0, :, None] + changed[:, 1, None, :]
    shape = changed.shape
    net, changed = np.moveaxis(net, 1, -1).reshape(-1, len(groups.totals)), changed.reshape(-1)
    rank = _released_rank(grid) if ties == "released" and not uncertainty else None
    choice = choose(net, changed, groups.totals, epsilon_cs, rank)
    if choice.feasible == 0:
        return Selection(None, (), 0, 0, len(net))
    chosen = choice.index
    run, conflict, absorption, margin, distance = (int(index) for index in np.unravel_index(chosen, shape))
    thresholds = (
        (grid.support[conflict], grid.support[absorption], distance_limits[distance])
        if uncertainty
        else (None, None, None)
    )
    settings = Settings(
        rho=grid.rho[run // len(grid.max_strength)],
        max_strength=grid.max_strength[run % len(grid.max_strength)],
        min_margin=grid.min_margin[margin],
        conflict_support=thresholds[0],
        absorption_support=thresholds[1],
        max_distance=thresholds[2],
    )
    return Selection(settings, groups.changes(net[chosen]), int(changed[chosen]), choice.feasible, len(net))


def _released_rank(grid: Grid) -> IntArray:
    """Places of the standard version's settings in the order of their JSON texts with sorted keys."""
    texts = [
        json.dumps({"rho": rho, "max_strength": cap, "min_margin": margin}, sort_keys=True)
        for rho, cap, margin in product(grid.rho, grid.max_strength, grid.min_margin)
    ]
    return np.argsort(np.argsort(texts, kind="stable"))


def distance_limits(distances: FloatArray, grid: Grid) -> tuple[float, ...]:
    """Quantiles of the development distances, by linear interpolation."""
    return tuple(float(limit) for limit in np.quantile(distances, grid.distance_quantile))
