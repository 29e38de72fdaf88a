"""What a fit leaves behind: a frozen state that decides, is saved whole, and can choose its settings again."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from unprior.calibration.decisions import Decisions
from unprior.calibration.features import Observation, observe
from unprior.calibration.gate import REASONS, Reason, Settings, StrengthModel, decide, is_revision
from unprior.calibration.parameters import Parameters
from unprior.calibration.ranges import stable_ranges
from unprior.calibration.selection import Outcomes, Selection, select
from unprior.errors import UnpriorError
from unprior.scores import Block, ScoreTable
from unprior.scores.checked import require_table
from unprior.scores.provenance import Provenance
from unprior.scores.table import FloatArray

_ROWS_AT_ONCE = 1 << 14


@dataclass(frozen=True, slots=True)
class FittedStrength:
    """The strength model of one ρ, and how well it fits."""

    rho: float
    loss: float
    """The objective at θ."""
    gradient_norm: float
    """Length of its gradient there."""
    model: StrengthModel

    @property
    def theta(self) -> FloatArray:
        """The fitted weights θ."""
        return self.model.theta


@dataclass(frozen=True, slots=True, eq=False)
class FittedState:
    """Everything that a fit found; it never changes.

    >>> from unprior import SelectivePriorCalibrator, synthesize
    >>> table = synthesize(seed=0)
    >>> state = SelectivePriorCalibrator().fit(table).state_
    >>> state.parameters.epsilon_cs, len(state.fits), state.reselect(0.1).parameters.epsilon_cs
    (0.04, 4, 0.1)
    """

    parameters: Parameters
    """The constructor arguments at the time of the fit."""
    fits: tuple[FittedStrength, ...]
    """One per ρ; from a file of version 1 only the chosen one."""
    selection: Selection
    """The chosen settings and what they do to the development rows."""
    outcomes: Outcomes | None
    """What every setting does to the development rows; a file of version 1 does not tell."""
    candidate_counts: tuple[int, ...]
    """The set of K seen in development; other K are never revised."""
    development_rows: int
    """Rows that the strength was fitted on."""
    model_name: str | None
    """The vision-language model that the development scores came from."""
    provenance: tuple[Provenance, ...]
    """How the development scores were made, as far as their table knows."""

    @property
    def settings(self) -> Settings | None:
        """The chosen settings; None when nothing was feasible and the calibrator abstains."""
        return self.selection.settings

    @property
    def chosen(self) -> FittedStrength:
        """The fit of the chosen ρ; the one of the largest ρ, which is never used, from a calibrator that abstains."""
        settings = self.settings
        return self.fits[-1] if settings is None else next(fit for fit in self.fits if fit.rho == settings.rho)

    @property
    def made_with(self) -> dict[str, Any]:
        """What decisions note about the calibrator that made them."""
        return {
            "version": self.parameters.version,
            "epsilon_cs": self.parameters.epsilon_cs,
            "model": self.model_name,
            "scores": [record.record() for record in self.provenance],
        }

    def reselect(self, epsilon_cs: float) -> FittedState:
        """The same fit with its settings chosen under another limit."""
        if self.outcomes is None:
            raise UnpriorError(
                "this calibrator comes from a file of version 1, which does not hold what other settings would do. "
                "Fit it again with `unprior fit` to choose settings under another limit."
            )
        parameters = replace(self.parameters, epsilon_cs=epsilon_cs)
        parameters.check()
        return replace(self, parameters=parameters, selection=choose_settings(parameters, self.outcomes))

    def predict(self, table: ScoreTable) -> Decisions:
        """Decide for every row of a table; rows need no answer."""
        require_table(table)
        rows, uncertain = len(table), self.parameters.uncertainty
        result = Decisions(
            table=table,
            settings=self.settings,
            made_with=self.made_with,
            final_positions=table.original_positions.copy(),
            revised=np.zeros(rows, dtype=np.bool_),
            proposal_positions=np.full(rows, -1, dtype=np.int64),
            strength=np.zeros(rows),
            margin=np.zeros(rows),
            condition=np.full(rows, -1, dtype=np.int8),
            reason=np.full(rows, REASONS.index(Reason.ABSTAINS), dtype=np.int8),
            range_low=np.full(rows, np.nan),
            range_high=np.full(rows, np.nan),
            support=np.zeros(rows) if uncertain else None,
            distance=np.zeros(rows) if uncertain else None,
        )
        if self.settings is not None:
            for block in table.blocks(_ROWS_AT_ONCE):
                self._decide_block(block, observe(block), self.settings, result)
        return result

    def _decide_block(self, block: Block, seen: Observation, settings: Settings, result: Decisions) -> None:
        prepared = self.chosen.model.prepare(seen)
        proposals = prepared.propose(settings.max_strength, self.parameters.conditions)
        reason = decide(proposals, block.candidate_count, settings, self.candidate_counts)
        revised = is_revision(reason)
        rows = block.rows
        result.final_positions[rows] = np.where(revised, proposals.candidate, block.original)
        result.revised[rows] = revised
        result.proposal_positions[rows] = proposals.candidate
        result.strength[rows] = proposals.strength
        result.margin[rows] = proposals.margin
        result.condition[rows] = proposals.condition
        result.reason[rows] = reason
        result.range_low[rows], result.range_high[rows] = stable_ranges(seen.image, seen.prior, proposals.candidate)
        for column, values in ((result.support, proposals.support), (result.distance, proposals.distance)):
            if column is not None and values is not None:
                column[rows] = values


def choose_settings(parameters: Parameters, outcomes: Outcomes) -> Selection:
    """Choose among what was counted."""
    return select(
        outcomes.histograms,
        outcomes.groups,
        parameters.searched_grid,
        outcomes.distance_limits,
        parameters.epsilon_cs,
        uncertainty=parameters.uncertainty,
        ties=parameters.ties,
    )
