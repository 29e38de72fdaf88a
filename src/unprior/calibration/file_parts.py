"""Parts that calibrator files of all versions have in common."""

from __future__ import annotations

from typing import Annotated

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from unprior.calibration.features import FEATURE_NAMES
from unprior.calibration.gate import CONDITIONS, Condition, Settings
from unprior.calibration.selection import Grid, Selection, TaskChange
from unprior.errors import UnpriorError
from unprior.scores.table import FloatArray

MAX_WEIGHT = 1e9
"""Beyond it, strengths are no longer numbers; a fit comes nowhere near."""
MAX_COUNT = 2**53
"""Of rows; more could not be counted exactly."""
FEATURE_COUNT = len(FEATURE_NAMES)
_ROUNDING = 1e-8

Finite = Annotated[float, Field(allow_inf_nan=False)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Weight = Annotated[float, Field(ge=-MAX_WEIGHT, le=MAX_WEIGHT)]
Scale = Annotated[float, Field(ge=1e-7, allow_inf_nan=False)]
"""A deviation of a feature; a fit takes smaller ones for none, and writes 1."""
Support = Annotated[float, Field(ge=0, allow_inf_nan=False)]  # above 1, a condition is switched off
Count = Annotated[int, Field(ge=0, le=MAX_COUNT)]
Vector = Annotated[list[Finite], Field(min_length=FEATURE_COUNT, max_length=FEATURE_COUNT)]
Covariance = Annotated[list[Vector], Field(min_length=FEATURE_COUNT, max_length=FEATURE_COUNT)]
Precision = Annotated[list[list[Finite]], Field(min_length=FEATURE_COUNT - 1, max_length=FEATURE_COUNT - 1)]
CandidateCounts = Annotated[list[Annotated[int, Field(ge=2)]], Field(min_length=1)]


class StrictModel(BaseModel):
    """A part of a file: nothing is converted, nothing unknown is accepted."""

    model_config = ConfigDict(extra="forbid", strict=True)


class SettingsPart(StrictModel):
    """The chosen settings."""

    rho: Positive
    max_strength: Positive
    min_margin: Finite
    conflict_support: Support | None
    absorption_support: Support | None
    max_distance: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None
    min_leads: list[Annotated[tuple[str, Finite], Field(strict=False)]] | None = None

    def check(self, uncertainty: bool) -> None:
        """The uncertainty-aware version has three thresholds more."""
        thresholds = (self.conflict_support, self.absorption_support, self.max_distance)
        if any((value is not None) != uncertainty for value in thresholds):
            raise ValueError("support and distance thresholds must be present exactly when uncertainty is true")

    def build(self) -> Settings:
        """The settings themselves."""
        leads = None if self.min_leads is None else tuple(self.min_leads)
        return Settings(**self.model_dump(exclude={"min_leads"}), min_leads=leads)


class ChangePart(StrictModel):
    """What the settings do to one development task."""

    task: str
    cf_net: int
    cf_total: Annotated[int, Field(gt=0)]
    cs_net: int
    cs_total: Count
    """0 where settings were chosen without commonsense images."""


class SelectionPart(StrictModel):
    """The search's outcome."""

    changes: list[ChangePart]
    changed: int
    feasible: int
    searched: int

    def build(self, settings: SettingsPart | None) -> Selection:
        """The selection with its settings."""
        changes = tuple(TaskChange(**change.model_dump()) for change in self.changes)
        counts = self.model_dump(exclude={"changes"})
        return Selection(None if settings is None else settings.build(), changes, **counts)


class GridPart(StrictModel):
    """The settings that were offered."""

    rho: list[Finite]
    max_strength: list[Finite]
    min_margin: list[Finite]
    support: list[Finite]
    distance_quantile: list[Finite]

    def build(self) -> Grid | None:
        """The grid; None for the paper's."""
        grid = Grid(**{name: tuple(values) for name, values in self.model_dump().items()})
        return None if grid == Grid() else grid


def build_conditions(names: list[str] | None) -> tuple[Condition, ...] | None:
    """Support conditions by their names; None asks for none."""
    try:
        return None if names is None else tuple(Condition(name) for name in names)
    except ValueError as error:
        raise UnpriorError(f"{error}; conditions are {' and '.join(CONDITIONS)}") from None


def check_features(names: dict[str, object]) -> None:
    """A file names all features in their order."""
    if tuple(names) != FEATURE_NAMES:
        raise ValueError(f"features must be exactly {', '.join(FEATURE_NAMES)}, in this order")


def check_matrix(name: str, rows: list[list[float]]) -> FloatArray:
    """A matrix of variances: square, symmetric, and without a negative variance."""
    if any(len(row) != len(rows) for row in rows):
        raise ValueError(f"{name} must be {len(rows)} by {len(rows)}")
    matrix = np.array(rows)
    scale = np.abs(matrix).max()
    if np.abs(matrix - matrix.T).max() > _ROUNDING * scale:
        raise ValueError(f"{name} must be symmetric")
    if np.linalg.eigvalsh(matrix).min() < -_ROUNDING * scale:
        raise ValueError(f"{name} has a negative variance, which there cannot be")
    return matrix
