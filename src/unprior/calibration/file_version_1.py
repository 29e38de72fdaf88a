"""Calibrator files of version 1, which 0.1.0 wrote: the chosen fit alone, and a control as the name of a class."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from pydantic import Field, model_validator

from unprior.calibration.features import ALL_FEATURES, IMAGE_FEATURES
from unprior.calibration.file_parts import (
    CandidateCounts,
    Count,
    Covariance,
    Finite,
    GridPart,
    Positive,
    Precision,
    Scale,
    SelectionPart,
    SettingsPart,
    StrictModel,
    Weight,
    build_conditions,
    check_features,
    check_matrix,
)
from unprior.calibration.gate import CONDITIONS, StrengthModel
from unprior.calibration.parameters import Parameters
from unprior.calibration.selection import Ties
from unprior.calibration.state import FittedState, FittedStrength
from unprior.calibration.strength import Standardisation
from unprior.calibration.strength_rules import Constant, Fixed
from unprior.errors import UnpriorError
from unprior.scores.provenance import Provenance


class _Laplace(StrictModel):
    covariance: Covariance
    precision: Precision

    @model_validator(mode="after")
    def _are_variances(self) -> _Laplace:
        check_matrix("precision", self.precision)
        check_matrix("covariance", self.covariance)
        return self


class _Feature(StrictModel):
    mean: Weight
    scale: Scale
    theta: Weight


class _Variant(StrictModel):
    kind: str
    """Name of a class."""
    parameters: dict[str, bool | Finite | list[str] | None]
    """Its own constructor arguments."""


class FileVersion1(StrictModel):
    """Everything in a file of version 1 but its checksum."""

    format: Literal["unprior.calibrator"]
    version: Literal[1]
    made_by: str
    model: str | None
    epsilon_cs: Finite
    uncertainty: bool
    grid: GridPart
    settings: SettingsPart | None
    candidate_counts: CandidateCounts
    development_rows: Count
    loss: Finite
    gradient_norm: Finite
    selection: SelectionPart
    features: dict[str, _Feature]
    laplace: _Laplace | None
    ties: Ties = "first"
    variant: _Variant | None = None
    """What makes the calibrator another one than SPC."""
    strength: Positive | None = None
    """A given λ; 0.1.0 does not record variants."""
    provenance: list[Provenance] = Field(default_factory=list)
    """0.1.0 does not record it."""

    @model_validator(mode="after")
    def _consistent(self) -> FileVersion1:
        check_features(dict(self.features))
        if self.uncertainty != (self.laplace is not None):
            raise ValueError("laplace must be present exactly when uncertainty is true")
        if self.settings is not None:
            self.settings.check(self.uncertainty)
        return self

    def build(self) -> FittedState:
        """The state; without the counted outcomes, settings cannot be chosen again."""
        parameters = Parameters(
            **{
                "epsilon_cs": self.epsilon_cs,
                "uncertainty": self.uncertainty,
                "grid": self.grid.build(),
                "ties": self.ties,
                "strength": None if self.strength is None else Fixed(self.strength),
                "features": ALL_FEATURES,
                "conditions": CONDITIONS,
                "fit_on": "both",
                "select_on": "both",
            }
            | _parameters_of(self.variant)
        )
        parameters.check()
        features, laplace = self.features.values(), self.laplace
        model = StrengthModel(
            Standardisation(np.array([part.mean for part in features]), np.array([part.scale for part in features])),
            np.array([part.theta for part in features]),
            None if laplace is None else np.array(laplace.covariance),
            None if laplace is None else np.array(laplace.precision),
        )
        rho = parameters.searched_grid.rho[-1] if self.settings is None else self.settings.rho
        return FittedState(
            parameters=parameters,
            fits=(FittedStrength(rho, self.loss, self.gradient_norm, model),),
            selection=self.selection.build(self.settings),
            outcomes=None,
            candidate_counts=tuple(self.candidate_counts),
            development_rows=self.development_rows,
            model_name=self.model,
            provenance=tuple(self.provenance),
        )


def _parameters_of(variant: _Variant | None) -> dict[str, Any]:
    """What a class of version 1 is as parameters."""
    match variant:
        case None | _Variant(kind="SelectivePriorCalibrator"):
            return {}
        case _Variant(kind="FixedStrengthCalibrator", parameters={"strength": None}):
            return {"strength": Constant()}
        case _Variant(kind="FixedStrengthCalibrator", parameters={"strength": float(value)}):
            return {"strength": Fixed(value)}
        case _Variant(kind="OneSidedCalibrator", parameters={"fit_on_both": both}):
            return {"fit_on": "both" if both else "cf", "select_on": "cf"}
        case _Variant(kind="PriorBlindCalibrator"):
            return {"features": IMAGE_FEATURES}
        case _Variant(kind="ConditionsCalibrator", parameters={"allowed": None | list() as allowed}):
            return {"conditions": build_conditions(allowed)}
    raise UnpriorError(
        f"the file holds a {variant.kind}, a class that is not part of unprior. "
        f"Fit it again with the parameters of SelectivePriorCalibrator."
    )
