"""What a fit leaves behind: a frozen state that decides, is saved whole, and can choose its settings again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from unprior.calibration.certificate import Certificate
from unprior.calibration.choice import exact_value
from unprior.calibration.decisions import Decisions
from unprior.calibration.features import Observation, observe
from unprior.calibration.gate import REASONS, Reason, Settings, StrengthModel, decide, is_revision
from unprior.calibration.open_answers import OpenScale
from unprior.calibration.parameters import Parameters
from unprior.calibration.ranges import stable_ranges
from unprior.calibration.selection import Groups, Outcomes, Selection, select
from unprior.calibration.stable import StableRows, stabilise
from unprior.errors import UnpriorError
from unprior.scores import Block, ScoreTable
from unprior.scores.checked import require_table
from unprior.scores.provenance import Provenance
from unprior.scores.schema import BoolArray
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
    certificate: Certificate | None = None
    """What is promised about new pairs; None under the paper's rule, which promises nothing."""
    scale: OpenScale | None = None
    """Of a state that decides about open questions: how their scores are brought to the scale of the method."""
    other_clips: tuple[FittedState, ...] = ()
    """Of such a state: the fits with the other τ, from which settings under another limit are chosen."""
    open: FittedState | None = None
    """What was fitted on open questions, beside what was fitted on questions with options."""

    @property
    def open_part(self) -> FittedState | None:
        """What decides about open questions."""
        return self.open if self.scale is None else self

    @property
    def closed_part(self) -> FittedState | None:
        """What decides about questions with options."""
        return self if self.scale is None else None

    @property
    def abstains(self) -> bool:
        """Whether no answer is ever changed, neither to questions with options nor to open ones."""
        return self.settings is None and (self.open is None or self.open.settings is None)

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
        promise = {} if self.certificate is None else {"certificate": self.certificate.record(pair_lists=False)}
        scale = None if self.open_part is None else self.open_part.scale
        return {
            "version": self.parameters.version,
            "epsilon_cs": self.parameters.epsilon_cs,
            **promise,
            **({} if scale is None else {"open": scale.record()}),
            "model": self.model_name,
            "scores": [record.record() for record in self.provenance],
        }

    def reselect(self, epsilon_cs: float) -> FittedState:
        """The same fit with its settings chosen under another limit."""
        if self.certificate is not None:
            raise UnpriorError(
                "a certificate holds for the limit that it was made for. Fit the calibrator again with another one, "
                "epsilon_cs."
            )
        if self.outcomes is None:
            raise UnpriorError(
                "this calibrator comes from a file of version 1, which does not hold what other settings would do. "
                "Fit it again with `unprior fit` to choose settings under another limit."
            )
        parameters = replace(self.parameters, epsilon_cs=epsilon_cs)
        parameters.check()
        chosen = replace(self, parameters=parameters, selection=choose_settings(parameters, self.outcomes))
        if self.open is not None:
            return replace(chosen, open=self.open.reselect(epsilon_cs))
        return choose_clip([chosen, *(each.reselect(epsilon_cs) for each in self.other_clips)])

    def with_outcome(self, development: ScoreTable) -> FittedState:
        """The same with what it does to the development rows counted."""
        if self.open is not None:
            opened = self.open.with_outcome(development.take(development.is_open))
            return replace(replace(self, open=None).with_outcome(development.take(~development.is_open)), open=opened)
        if self.settings is None:
            return self
        final, groups = self.predict(development).final_positions, Groups.from_table(development)
        original = development.original_positions
        gain = development.is_right(final).astype(np.int64) - development.is_right(original)
        net = np.bincount(groups.group, weights=gain, minlength=len(groups.totals))
        changes = groups.changes(np.rint(net).astype(np.int64))
        selection = replace(self.selection, changes=changes, changed=int((final != original).sum()))
        return replace(self, selection=selection)

    def predict(self, table: ScoreTable) -> Decisions:
        """Decide for every row of a table; rows need no answer.

        Open questions and those with options are decided by what was fitted on such questions; without it, answers
        stay.
        """
        require_table(table)
        if self.scale is None and not table.is_open.any():
            return self._predict_own(table)
        result = self._undecided(table)
        kinds = (
            (self.closed_part, ~table.is_open, Reason.CLOSED_UNFITTED),
            (self.open_part, table.is_open, Reason.OPEN_UNFITTED),
        )
        image, prior = table.image_scores.copy(), table.prior_scores.copy()
        for part, rows, unfitted in kinds:
            if part is None:
                result.reason[rows] = REASONS.index(unfitted)
            elif rows.any():
                decided = part._predict_own(table.take(rows))
                _put(decided, rows, result)
                if decided.stable is not None:
                    cells = np.repeat(rows, table.candidate_counts)
                    image[cells], prior[cells] = decided.stable.image_scores, decided.stable.prior_scores
        return replace(result, stable=table.with_image_scores(image).with_prior_scores(prior))

    def _undecided(self, table: ScoreTable) -> Decisions:
        """Every answer as it was."""
        rows, uncertain, for_open = len(table), self.parameters.uncertainty, self.open_part
        return Decisions(
            table=table,
            settings=self.settings,
            open_settings=None if for_open is None else for_open.settings,
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
            lead=None if self.certificate is None else np.zeros(rows),
            needed_lead=None if self.certificate is None else self._needed_leads(table),
        )

    def _predict_own(self, table: ScoreTable) -> Decisions:
        """Decide about questions of the kind that this was fitted on."""
        result = self._undecided(table)
        if self.settings is not None:
            stable = self._prepared(table)
            if stable.claims is not None or self.scale is not None:
                result = replace(result, stable=stable.table)
            for block in stable.table.blocks(_ROWS_AT_ONCE):
                self._decide_block(block, observe(block, stable), self.settings, result)
            if self.parameters.strict:
                self._name_strict_changes(result)
        return result

    def _prepared(self, table: ScoreTable) -> StableRows:
        """The scores that are decided on."""
        if self.scale is not None:
            return StableRows(self.scale.apply(table))
        return stabilise(table, self.parameters.prior, strict=self.parameters.strict)

    def _name_strict_changes(self, result: Decisions) -> None:
        """An answer that only the canonical form changed is a revision, too, and one that came back is none."""
        changed = result.final_positions != result.table.original_positions
        by_form = changed & ~result.revised
        result.reason[by_form] = REASONS.index(Reason.CANONICAL)
        back = ~changed & result.revised
        result.reason[back] = REASONS.index(Reason.SAME_ANSWER)
        result.revised[:] = changed

    def _needed_leads(self, table: ScoreTable) -> FloatArray:
        """The threshold of every row's task; NaN for a task that the certificate does not cover."""
        code, labels = table.codes("task")
        leads = dict((self.settings and self.settings.min_leads) or ())
        return np.array([leads.get(str(task), np.nan) for (task,) in labels])[code]

    def _decide_block(self, block: Block, seen: Observation, settings: Settings, result: Decisions) -> None:
        prepared = self.chosen.model.prepare(seen)
        needed = None if result.needed_lead is None else result.needed_lead[block.rows]
        proposals = prepared.propose(settings.max_strength, self.parameters.conditions, leads=needed is not None)
        reason = decide(proposals, block.candidate_count, settings, self.candidate_counts, needed)
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
        optional = (
            (result.support, proposals.support),
            (result.distance, proposals.distance),
            (result.lead, proposals.lead),
        )
        for column, values in optional:
            if column is not None and values is not None:
                column[rows] = values


def _put(decided: Decisions, rows: BoolArray, result: Decisions) -> None:
    """Copy the columns of decisions about some rows to their places among all."""
    for field in fields(Decisions):
        values, column = getattr(decided, field.name), getattr(result, field.name)
        if isinstance(values, np.ndarray):
            column[rows] = values


def choose_clip(states: Sequence[FittedState]) -> FittedState:
    """Of fits with different τ the best, by the rule that settings are chosen by; of equal ones the largest τ.

    A larger τ changes the scores less. The others are kept with the chosen one.
    """
    ranked = sorted(states, key=lambda state: -np.inf if state.scale is None else -state.scale.clip)
    best = ranked[0]
    for state in ranked[1:]:
        if state.settings is not None and (best.settings is None or _value(state) > _value(best)):
            best = state
    others = tuple(replace(state, other_clips=()) for state in ranked if state is not best)
    return replace(best, other_clips=others)


def _value(state: FittedState) -> tuple[Any, ...]:
    selection = state.selection
    counts = [net for change in selection.changes for net in (change.cf_net, change.cs_net)]
    totals = [total for change in selection.changes for total in (change.cf_total, max(change.cs_total, 1))]
    return exact_value((*counts, selection.changed), np.array(totals))


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
