"""The estimator: fit on paired development data, decide for any example."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Iterable, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np

from unprior.calibration.decisions import Decision, Decisions
from unprior.calibration.development import development_rows
from unprior.calibration.features import Observation, observe
from unprior.calibration.gate import (
    REASONS,
    PreparedObservation,
    Proposals,
    Reason,
    Settings,
    StrengthModel,
    decide,
    is_revision,
)
from unprior.calibration.posterior import development_distance, distance_precision, laplace_covariance
from unprior.calibration.ranges import stable_ranges
from unprior.calibration.selection import (
    TIES,
    Grid,
    Groups,
    Histogram,
    Selection,
    Ties,
    count_rows,
    distance_limits,
    select,
)
from unprior.calibration.strength import Standardisation, StrengthFit, StrengthObjective, fit_strengths
from unprior.errors import InvalidScoresError, UnpriorError
from unprior.scores import Block, ScoreTable
from unprior.scores.provenance import Differences, Provenance, compare_provenance
from unprior.scores.schema import IntArray
from unprior.scores.table import FloatArray

_ROWS_AT_ONCE = 1 << 14


class _Search(NamedTuple):
    """Everything that a choice of settings needs."""

    models: Sequence[StrengthModel]
    """One per ρ."""
    histograms: Sequence[Histogram]
    groups: Groups
    limits: Sequence[float]


class SelectivePriorCalibrator:
    """Selective Prior Calibration (SPC): subtract the prior where it misleads, keep it where it helps.

    Parameters
    ----------
    epsilon_cs
        Largest loss of commonsense accuracy that selection may accept on any development task.
    uncertainty
        Use the uncertainty-aware version: averages over plausible strengths, and also asks that the
        proposal is stable and the scores are not unlike the development data.
    grid
        The settings to choose from; the default is the paper's.
    ties
        Which of equally good settings to choose: ``first`` in loop order, or, as in the authors' released scripts of
        the standard version, the one whose JSON text sorts first (``released``).

    Attributes
    ----------
    settings_
        The chosen settings, or None when nothing was feasible and the calibrator abstains.
    model_
        The fitted strength model (θ, standardisation, and Σ when uncertainty-aware).
    selection_
        The search's outcome: development changes by task, number of feasible settings.
    loss_, gradient_norm_
        Objective and length of its gradient at the fitted θ.
    candidate_counts_
        The set of K seen in development; other K are never revised.
    model_name_
        The vision-language model that the development scores came from.
    provenance_
        How the development scores were made, as far as their table knows.
    fits_
        One fit per ρ (after ``fit`` only; a loaded calibrator has just the chosen one).
    distances_
        Development distances d_dev by row (after ``fit`` only; None for the standard version).
    fitted_parameters_
        Constructor arguments at the time of the fit; :meth:`set_params` takes effect in the next one.

    >>> from unprior import SelectivePriorCalibrator, synthesize
    >>> table = synthesize(seed=0)
    >>> calibrator = SelectivePriorCalibrator(epsilon_cs=0.04).fit(table)
    >>> decisions = calibrator.predict(table.where(split="test"))
    >>> len(decisions)
    920
    """

    settings_: Settings | None
    model_: StrengthModel
    selection_: Selection
    loss_: float
    gradient_norm_: float
    candidate_counts_: tuple[int, ...]
    model_name_: str | None
    provenance_: tuple[Provenance, ...]
    development_rows_: int
    fits_: list[StrengthFit]
    distances_: FloatArray | None
    fitted_parameters_: dict[str, Any]

    def __init__(
        self,
        *,
        epsilon_cs: float = 0.04,
        uncertainty: bool = False,
        grid: Grid | None = None,
        ties: Ties = "first",
    ) -> None:
        """Keep the parameters; they are checked in :meth:`fit`."""
        self.epsilon_cs = epsilon_cs
        self.uncertainty = uncertainty
        self.grid = grid
        self.ties = ties

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Constructor arguments by name, as scikit-learn's ``clone`` expects them."""
        return {
            name: getattr(self, name) for name in inspect.signature(type(self).__init__).parameters if name != "self"
        }

    def set_params(self, **parameters: Any) -> Self:
        """Change constructor arguments by name; they take effect in the next :meth:`fit`.

        >>> SelectivePriorCalibrator().set_params(epsilon_cs=0.1)
        SelectivePriorCalibrator(epsilon_cs=0.1)
        """
        known = self.get_params()
        for name, value in parameters.items():
            if name not in known:
                raise UnpriorError(f"no parameter {name!r}; there are {', '.join(known)}")
            setattr(self, name, value)
        return self

    @property
    def common_parameters(self) -> dict[str, Any]:
        """The constructor arguments that every variant of SPC has.

        >>> sorted(SelectivePriorCalibrator().common_parameters)
        ['epsilon_cs', 'grid', 'ties', 'uncertainty']
        """
        return {name: getattr(self, name) for name in inspect.signature(SelectivePriorCalibrator).parameters}

    def clone(self, **changes: Any) -> Self:
        """An unfitted calibrator of the same kind, with the same parameters but those given.

        >>> SelectivePriorCalibrator(epsilon_cs=0.1).clone(uncertainty=True)
        SelectivePriorCalibrator(epsilon_cs=0.1, uncertainty=True)
        """
        return type(self)(**self.get_params() | changes)

    def __repr__(self) -> str:
        """Show the parameters that differ from the defaults."""
        shown = []
        for name, parameter in inspect.signature(type(self)).parameters.items():
            value = getattr(self, name)
            if value != parameter.default:
                shown.append(f"{name}={value!r}")
        return f"{type(self).__name__}({', '.join(shown)})"

    def fit(self, table: ScoreTable, *, split: str | None = "dev") -> Self:
        """Learn the strength and choose the settings on the rows of one split.

        Parameters
        ----------
        table
            Scores with answers; both sides of every task must be present.
        split
            Which rows to use. The default leaves test rows alone even in a full table; None uses all.

        >>> from unprior import SelectivePriorCalibrator, synthesize
        >>> SelectivePriorCalibrator(uncertainty=True).fit(synthesize(seed=0)).selection_.searched
        8640
        """
        self.check_parameters()
        development = self._rows_to_fit(table, split)
        self.fitted_parameters_ = self.get_params()
        grid = self._searched_grid()
        blocks = list(development.blocks(max_rows=len(development)))
        observations = [observe(block) for block in blocks]
        features = np.concatenate([observation.features for observation in observations])
        standardisation = self._standardise(features)
        inputs = standardisation.apply(features)
        objective = StrengthObjective(inputs, observations, [block.answer for block in blocks])
        self.fits_ = self._fit_strengths(objective, grid.rho)
        self.candidate_counts_ = tuple(sorted({block.candidate_count for block in blocks}))

        precision = distance_precision(inputs) if self.uncertainty else None
        limits: tuple[float, ...] = ()
        self.distances_ = None
        order = np.concatenate([block.rows for block in blocks])
        if precision is not None:
            distances = development_distance(inputs, precision)
            limits = distance_limits(distances, grid)
            self.distances_ = np.empty(len(order))
            self.distances_[order] = distances
        models = [
            StrengthModel(
                standardisation,
                fit.theta,
                self._covariance(fit) if self.uncertainty else None,
                precision,
            )
            for fit in self.fits_
        ]
        judged = self._rows_to_select_on(development)
        if judged is not development:
            blocks = list(judged.blocks(max_rows=len(judged)))
            observations = [observe(block) for block in blocks]
        self._search = self._count(models, judged, blocks, observations, limits)
        self._choose()
        self.model_name_ = development.arrow.column("model")[0].as_py()
        self.provenance_ = development.provenance
        self.development_rows_ = len(development)
        return self

    def reselect(self, epsilon_cs: float) -> Self:
        """The same fit with its settings chosen under another limit; what is fitted does not depend on it.

        >>> from unprior import SelectivePriorCalibrator, synthesize
        >>> table = synthesize(seed=0)
        >>> fitted = SelectivePriorCalibrator(epsilon_cs=0.04).fit(table)
        >>> fitted.reselect(0.1).settings_ == SelectivePriorCalibrator(epsilon_cs=0.1).fit(table).settings_
        True
        """
        if not hasattr(self, "_search"):
            raise UnpriorError("settings can be chosen again only where the calibrator was fitted, not from its file")
        other = copy.copy(self)
        # What was counted belongs to the parameters of the fit, whatever was set since.
        other.set_params(**self.fitted_parameters_ | {"epsilon_cs": epsilon_cs})
        other.check_parameters()
        other.fitted_parameters_ = other.get_params()
        other._choose()
        return other

    def _choose(self) -> None:
        """Choose settings among what was counted."""
        models, histograms, groups, limits = self._search
        grid = self._searched_grid()
        self.selection_ = select(
            histograms, groups, grid, limits, self.epsilon_cs, uncertainty=self.uncertainty, ties=self.ties
        )
        self.settings_ = self.selection_.settings
        # An abstaining calibrator keeps the strongest regularisation; its proposals are never used.
        chosen = -1 if self.settings_ is None else grid.rho.index(self.settings_.rho)
        self.model_ = models[chosen]
        self.loss_, self.gradient_norm_ = self.fits_[chosen].loss, self.fits_[chosen].gradient_norm

    def predict(self, table: ScoreTable) -> Decisions:
        """Decide for every row of a table; rows need no answer.

        >>> from unprior import SelectivePriorCalibrator, synthesize
        >>> table = synthesize(seed=0)
        >>> decisions = SelectivePriorCalibrator().fit(table).predict(table)
        >>> bool((decisions.final_positions[~decisions.revised] == table.original_positions[~decisions.revised]).all())
        True
        """
        self._check_fitted()
        rows, uncertain = len(table), self.model_.covariance is not None
        result = Decisions(
            table=table,
            settings=self.settings_,
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
        if self.settings_ is not None:
            for block in table.blocks(_ROWS_AT_ONCE):
                self._decide_block(block, observe(block), self.settings_, result)
        return result

    def decide(
        self,
        candidates: Sequence[str],
        image_scores: Sequence[float],
        prior_scores: Sequence[float],
        original: str | None,
    ) -> Decision:
        """Decide for one example.

        >>> from unprior import SelectivePriorCalibrator, synthesize
        >>> calibrator = SelectivePriorCalibrator().fit(synthesize(seed=0))
        >>> decision = calibrator.decide(["five", "six"], [-0.6, -0.9], [-0.02, -4.0], original="five")
        >>> decision.final
        'six'
        """
        row = {
            "pair_id": 0,
            "task": "mc",
            "candidates": list(candidates),
            "image_scores": np.asarray(image_scores).tolist(),
            "prior_scores": np.asarray(prior_scores).tolist(),
            "original": original,
        }
        try:
            table = ScoreTable.from_rows([row], require_answers=False)
        except InvalidScoresError as error:
            raise UnpriorError(f"this example cannot be decided: {error.problems[0].reason}") from None
        return self.predict(table)[0]

    def save(self, path: str | Path) -> None:
        """Write the fitted calibrator as readable, versioned JSON."""
        from unprior.calibration.storage import save_calibrator

        self._check_fitted()
        save_calibrator(self, Path(path))

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a calibrator that :meth:`save` wrote; predictions are identical.

        >>> import tempfile
        >>> from unprior import SelectivePriorCalibrator, synthesize
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     SelectivePriorCalibrator().fit(synthesize(seed=0)).save(f"{folder}/calibrator.json")
        ...     SelectivePriorCalibrator.load(f"{folder}/calibrator.json").candidate_counts_
        (2, 4)
        """
        from unprior.calibration.storage import load_calibrator

        return load_calibrator(Path(path), cls)

    def _count(
        self,
        models: Sequence[StrengthModel],
        judged: ScoreTable,
        blocks: Sequence[Block],
        observations: Sequence[Observation],
        limits: Sequence[float],
    ) -> _Search:
        """What every setting would do to the rows that settings are judged by."""
        grid = self._searched_grid()
        groups = Groups.of(judged, np.concatenate([block.rows for block in blocks]))
        histograms: list[Histogram] = []
        for model in models:
            prepared = [model.prepare(observation) for observation in observations]
            for cap in grid.max_strength:
                proposals = [self._propose(part, cap) for part in prepared]
                gains = [_gain(block, part.candidate) for block, part in zip(blocks, proposals, strict=True)]
                histograms.append(count_rows(proposals, gains, groups, grid, limits))
        return _Search(models, histograms, groups, limits)

    def _decide_block(self, block: Block, seen: Observation, settings: Settings, result: Decisions) -> None:
        proposals = self._propose(self.model_.prepare(seen), settings.max_strength)
        reason = decide(proposals, block.candidate_count, settings, self.candidate_counts_)
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

    def _rows_to_fit(self, table: ScoreTable, split: str | None) -> ScoreTable:
        """Rows that shape the strength; a control that sees less of the pairs overrides this."""
        return development_rows(table, split)

    def _rows_to_select_on(self, development: ScoreTable) -> ScoreTable:
        """Rows that settings are judged by; a control that sees less of the pairs overrides this."""
        return development

    def _propose(self, prepared: PreparedObservation, max_strength: float) -> Proposals:
        """Proposals and the conditions that support them; a control with other conditions overrides this."""
        return prepared.propose(max_strength)

    def _standardise(self, features: FloatArray) -> Standardisation:
        """How features enter the strength; a control that must not look at them overrides this."""
        return Standardisation.of(features)

    def _searched_grid(self) -> Grid:
        """The settings to choose from; a control that has fewer to choose from overrides this."""
        return self.grid or Grid()

    def _fit_strengths(self, objective: StrengthObjective, rhos: Sequence[float]) -> list[StrengthFit]:
        """One fit per ρ; a control that is given its strength overrides this."""
        return fit_strengths(objective, rhos)

    @property
    def made_with(self) -> dict[str, Any]:
        """What decisions note about the calibrator that made them."""
        version = "uncertainty-aware" if self.uncertainty else "standard"
        known: dict[str, Any] = {"version": version, "epsilon_cs": self.epsilon_cs, "model": self.model_name_}
        return known | {"scores": [record.record() for record in self.provenance_]}

    def differences(self, made: Sequence[Provenance], models: Iterable[str | None] = ()) -> Differences:
        """What differs between the scores this was fitted on and others that it is to be applied to.

        Parameters
        ----------
        made
            How the others were made.
        models
            Their models; a note need not cover all rows.
        """
        own = self.provenance_ or (Provenance(model=self.model_name_),)
        noted = {record.model for record in made}
        unnoted = [Provenance(model=name) for name in sorted(filter(None, models)) if name not in noted]
        return compare_provenance(own, [*made, *unnoted])

    def _covariance(self, fit: StrengthFit) -> FloatArray:
        """Σ of θ; a control whose strength has fewer parameters overrides this."""
        return laplace_covariance(fit.hessian)

    def check_parameters(self) -> None:
        """Refuse parameters that cannot be fitted with; :meth:`fit` does this, too."""
        if not 0.0 <= self.epsilon_cs <= 1.0:
            raise UnpriorError(f"epsilon_cs is {self.epsilon_cs}, it is a share of accuracy between 0 and 1 (0.04)")
        if self.ties not in TIES:
            raise UnpriorError(f"ties is {self.ties!r}, it must be {' or '.join(TIES)}")
        grid = self.grid or Grid()
        for field in fields(grid):
            values = getattr(grid, field.name)
            if len(values) == 0 or list(values) != sorted(set(values)):
                raise UnpriorError(f"grid.{field.name} is {values}, it must hold increasing values")
        if min(grid.rho) <= 0 or min(grid.max_strength) <= 0:
            raise UnpriorError("grid.rho and grid.max_strength must be positive")

    def _check_fitted(self) -> None:
        if not hasattr(self, "model_"):
            raise UnpriorError("this calibrator is not fitted; call fit(table) or load(path) first")


def _gain(block: Block, proposal: IntArray) -> IntArray:
    """+1 where adopting the proposal repairs the answer, -1 where it harms it."""
    return np.asarray((proposal == block.answer).astype(np.int64) - (block.original == block.answer))
