"""A table as a population to draw development pairs from, again and again, and to judge calibrators on as a whole."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from unprior.calibration.features import Observation, observe
from unprior.calibration.gate import Settings, StrengthModel, decide, is_revision
from unprior.calibration.selection import Groups
from unprior.scores import Block, ScoreTable
from unprior.scores.schema import IntArray
from unprior.scores.table import FloatArray


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a calibrator does to a population."""

    tasks: tuple[str, ...]
    harm: FloatArray
    """Rate of commonsense answers that turn from right to wrong, by task."""
    delta_cf: FloatArray
    """ΔCF by task."""

    @property
    def worst_harm(self) -> float:
        """Of the task that is harmed most."""
        return float(self.harm.max())

    @property
    def mean_cf(self) -> float:
        """Mean ΔCF over tasks."""
        return float(self.delta_cf.mean())


@dataclass(eq=False)
class Pool:
    """Pairs that stand for all pairs: drawn with replacement, they are independent draws, and its rates are the truth.

    >>> from unprior import SelectivePriorCalibrator, synthesize
    >>> pool = Pool(synthesize(seed=0))
    >>> drawn = pool.draw(np.random.default_rng(0), 70)
    >>> len(drawn), len(drawn.codes("pair_id")[1])
    (280, 70)
    """

    table: ScoreTable

    @cached_property
    def _rows_of_pair(self) -> list[IntArray]:
        code, labels = self.table.codes("pair_id")
        order = np.argsort(code, kind="stable")
        return np.split(order, np.cumsum(np.bincount(code, minlength=len(labels)))[:-1])

    @property
    def pairs(self) -> int:
        """How many there are."""
        return len(self._rows_of_pair)

    def draw(self, rng: np.random.Generator, pairs: int) -> ScoreTable:
        """So many pairs, each a pair of its own even when it was drawn before."""
        rows = [self._rows_of_pair[index] for index in rng.integers(self.pairs, size=pairs)]
        names = np.repeat(np.arange(pairs), [len(each) for each in rows])
        return self.table.take(np.concatenate(rows)).with_column("pair_id", names.tolist())

    @cached_property
    def _blocks(self) -> list[tuple[Block, Observation]]:
        return [(block, observe(block)) for block in self.table.blocks(max_rows=len(self.table))]

    @cached_property
    def _groups(self) -> Groups:
        return Groups.from_table(self.table)

    def outcome(self, model: StrengthModel, settings: Settings | None) -> Outcome:
        """What a strength and its settings do to all pairs."""
        groups = self._groups
        gain = np.zeros(len(self.table), dtype=np.int64)
        harmed = np.zeros(len(self.table), dtype=np.int64)
        leads = None
        if settings is not None and settings.min_leads is not None:
            known = dict(settings.min_leads)
            leads = np.array([known.get(task, np.nan) for task in groups.tasks])[groups.group // 2]
        for block, seen in self._blocks if settings is not None else []:
            assert settings is not None
            proposals = model.prepare(seen).propose(settings.max_strength, leads=leads is not None)
            count, needed = block.candidate_count, None if leads is None else leads[block.rows]
            revised = is_revision(decide(proposals, count, settings, (count,), needed))
            right, proposed_right = (
                self.table.is_right(each, block.rows) for each in (block.original, proposals.candidate)
            )
            gain[block.rows] = revised * (proposed_right.astype(np.int64) - right)
            harmed[block.rows] = revised & right & ~proposed_right
        shape = (len(groups.tasks), 2)
        totals = groups.totals.reshape(shape)
        gains, harms = (
            np.bincount(groups.group, weights=each, minlength=len(groups.totals)).reshape(shape)
            for each in (gain, harmed)
        )
        return Outcome(groups.tasks, harms[:, 1] / totals[:, 1], gains[:, 0] / totals[:, 0])
