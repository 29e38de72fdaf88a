"""What was fitted on one kind of question, in a calibrator file: settings, strengths, and what every setting does."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import Annotated, Any, Protocol

import numpy as np
from pydantic import Field, model_validator

from unprior.calibration.certificate import Certificate
from unprior.calibration.features import FEATURE_NAMES
from unprior.calibration.file_parts import (
    FEATURE_COUNT,
    MAX_COUNT,
    CandidateCounts,
    Count,
    Covariance,
    Finite,
    Positive,
    Precision,
    Scale,
    SelectionPart,
    SettingsPart,
    StrictModel,
    Weight,
    check_features,
    check_matrix,
)
from unprior.calibration.file_scale import ScalePart
from unprior.calibration.gate import CONDITIONS, StrengthModel
from unprior.calibration.parameters import Parameters
from unprior.calibration.selection import Groups, Histogram, Outcomes
from unprior.calibration.state import FittedState, FittedStrength
from unprior.calibration.strength import Standardisation
from unprior.errors import UnpriorError
from unprior.scores.provenance import Provenance
from unprior.scores.schema import IntArray


class FeaturePart(StrictModel):
    """How one feature is standardised."""

    mean: Weight
    scale: Scale


class StrengthPart(StrictModel):
    """The strength of one ρ."""

    rho: Positive
    loss: Finite
    gradient_norm: Finite
    theta: Annotated[list[Weight], Field(min_length=FEATURE_COUNT, max_length=FEATURE_COUNT)]
    covariance: Covariance | None
    """Σ of θ; null for the standard version."""


class _Sparse(StrictModel):
    """An array of small whole numbers, most of them zero."""

    shape: list[Annotated[int, Field(gt=0)]]
    places: list[Count]
    """Where it is not zero, in the flattened array."""
    values: list[Annotated[int, Field(ge=-MAX_COUNT, le=MAX_COUNT)]]

    @model_validator(mode="after")
    def _fits(self) -> _Sparse:
        counts = {len(self.places), len(set(self.places)), len(self.values)}
        if len(counts) > 1 or max(self.places, default=0) >= math.prod(self.shape):
            raise ValueError("places and values must be equally many, and places differ and lie within the shape")
        return self

    @staticmethod
    def content(array: IntArray) -> dict[str, Any]:
        flat = array.ravel()
        places = np.flatnonzero(flat)
        return {"shape": list(array.shape), "places": places.tolist(), "values": flat[places].tolist()}

    def build(self) -> IntArray:
        array = np.zeros(math.prod(self.shape), dtype=np.int64)
        array[self.places] = self.values
        return array.reshape(self.shape)


class OutcomesPart(StrictModel):
    """What every setting does to the development rows."""

    tasks: list[str]
    totals: list[Count]
    """Rows of both sides of every task in turn."""
    distance_limits: list[Finite]
    net: _Sparse
    """Repairs minus harms by ρ and λ_max, condition, side, and thresholds passed (support, margin, distance)."""
    changed: _Sparse
    """Changed answers by the same, without the side."""

    def build(self, parameters: Parameters) -> Outcomes:
        """The outcomes that were saved."""
        grid, uncertainty = parameters.searched_grid, parameters.uncertainty
        runs, conditions, sides = len(grid.rho) * len(grid.max_strength), len(CONDITIONS), 2 * len(self.tasks)
        support, distance = (len(grid.support), len(grid.distance_quantile)) if uncertainty else (1, 1)
        bins = [support + 1, len(grid.min_margin) + 1, distance + 1]
        wanted = ([runs, conditions, sides, *bins], [runs, conditions, *bins])
        if (self.net.shape, self.changed.shape) != wanted or len(self.totals) != sides or 0 in self.totals[::2]:
            raise UnpriorError("the counted outcomes do not belong to the grid and the tasks of the file")
        if len(self.distance_limits) != (distance if uncertainty else 0):
            raise UnpriorError("the distance limits do not belong to the grid of the file")
        groups = Groups(tuple(self.tasks), np.zeros(0, dtype=np.int64), np.array(self.totals, dtype=np.int64))
        pairs = zip(self.net.build(), self.changed.build(), strict=True)
        return Outcomes(groups, tuple(Histogram(net, changed) for net, changed in pairs), tuple(self.distance_limits))


class FitContent(Protocol):
    """What a calibrator file holds of a fit, for itself or for its open part."""

    settings: SettingsPart | None
    selection: SelectionPart
    candidate_counts: CandidateCounts
    development_rows: int
    features: dict[str, FeaturePart]
    precision: Precision | None
    fits: list[StrengthPart]
    outcomes: OutcomesPart | None


class OpenFitPart(StrictModel):
    """What was fitted on open questions with one τ."""

    scale: ScalePart
    settings: SettingsPart | None
    selection: SelectionPart
    candidate_counts: CandidateCounts
    development_rows: Count
    features: dict[str, FeaturePart]
    precision: Precision | None
    fits: list[StrengthPart] = Field(min_length=1)
    outcomes: OutcomesPart | None


class OpenPart(OpenFitPart):
    """What was fitted on open questions: the chosen τ, and the others."""

    other_clips: list[OpenFitPart]


def check_fit(part: FitContent, uncertainty: bool) -> None:
    """Refuse a fit whose parts do not belong together."""
    check_features(dict(part.features))
    if any((each is not None) != uncertainty for each in (part.precision, *(fit.covariance for fit in part.fits))):
        raise ValueError("precision and covariance must be present exactly when uncertainty is true")
    if part.precision is not None:
        check_matrix("precision", part.precision)
    for fit in part.fits:
        if fit.covariance is not None:
            check_matrix("covariance", fit.covariance)
    if part.settings is not None:
        part.settings.check(uncertainty)
        if part.settings.rho not in [fit.rho for fit in part.fits]:
            raise ValueError(f"there is no fit for the chosen rho {part.settings.rho}")


def build_fit(
    part: FitContent,
    parameters: Parameters,
    model: str | None,
    provenance: tuple[Provenance, ...],
    certificate: Certificate | None,
) -> FittedState:
    """The state of one kind of question that was saved."""
    if part.outcomes is not None and [fit.rho for fit in part.fits] != list(parameters.searched_grid.rho):
        raise UnpriorError("the fits do not belong to the grid of the file")
    features = part.features.values()
    scaling = Standardisation(np.array([each.mean for each in features]), np.array([each.scale for each in features]))
    precision = None if part.precision is None else np.array(part.precision)
    return FittedState(
        parameters=parameters,
        fits=tuple(
            FittedStrength(
                fit.rho,
                fit.loss,
                fit.gradient_norm,
                StrengthModel(
                    scaling,
                    np.array(fit.theta),
                    None if fit.covariance is None else np.array(fit.covariance),
                    precision,
                ),
            )
            for fit in part.fits
        ),
        selection=part.selection.build(part.settings),
        outcomes=None if part.outcomes is None else part.outcomes.build(parameters),
        candidate_counts=tuple(part.candidate_counts),
        development_rows=part.development_rows,
        model_name=model,
        provenance=provenance,
        certificate=certificate,
    )


def fit_content(state: FittedState) -> dict[str, Any]:
    """Plain values of what was fitted on one kind of question."""
    outcomes, model = state.outcomes, state.chosen.model
    selection = asdict(state.selection)
    settings = selection.pop("settings")
    scaling = zip(FEATURE_NAMES, model.standardisation.mean, model.standardisation.scale, strict=True)
    return {
        "settings": settings,
        "selection": selection,
        "candidate_counts": state.candidate_counts,
        "development_rows": state.development_rows,
        "features": {name: {"mean": float(mean), "scale": float(scale)} for name, mean, scale in scaling},
        "precision": None if model.precision is None else model.precision.tolist(),
        "fits": [
            {
                "rho": fit.rho,
                "loss": fit.loss,
                "gradient_norm": fit.gradient_norm,
                "theta": fit.theta.tolist(),
                "covariance": None if fit.model.covariance is None else fit.model.covariance.tolist(),
            }
            for fit in state.fits
        ],
        "outcomes": None
        if outcomes is None
        else {
            "tasks": outcomes.groups.tasks,
            "totals": outcomes.groups.totals.tolist(),
            "distance_limits": outcomes.distance_limits,
            "net": _Sparse.content(np.stack([each.net for each in outcomes.histograms])),
            "changed": _Sparse.content(np.stack([each.changed for each in outcomes.histograms])),
        },
    }


def open_content(state: FittedState) -> dict[str, Any]:
    """Plain values of what is known of open questions alone; nothing for a state of questions with options."""
    if state.scale is None:
        return {}
    others = [{"scale": each.scale.record(), **fit_content(each)} for each in state.other_clips if each.scale]
    return {"scale": state.scale.record(), "other_clips": others}
