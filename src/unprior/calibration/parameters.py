"""The parameters of a calibrator, checked and kept together with what was fitted under them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal, get_args

import numpy as np

from unprior.calibration.certificate import RETENTIONS, Retention, check_mixture
from unprior.calibration.features import ALL_FEATURES
from unprior.calibration.gate import CONDITIONS, Condition
from unprior.calibration.ladder import DELTA, check_delta
from unprior.calibration.open_answers import DEFAULT, OpenAnswers
from unprior.calibration.selection import TIES, Grid, Ties
from unprior.calibration.stable import Prior, check_prior, check_strict
from unprior.calibration.strength_rules import Constant, Learned, Split, StrengthRule
from unprior.errors import UnpriorError, did_you_mean, format_option

Sides = Literal["both", "cf"]
"""Rows of both sides of the pairs, or of the counterfactual side alone."""
_LARGEST = 1e300
SIDE_CHOICES: tuple[Sides, ...] = get_args(Sides)


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameters:
    """The constructor arguments of :class:`~unprior.SelectivePriorCalibrator` at the time of a fit."""

    epsilon_cs: float
    uncertainty: bool
    grid: Grid | None
    ties: Ties
    strength: StrengthRule | None
    features: tuple[str, ...]
    conditions: tuple[Condition, ...] | None
    fit_on: Sides
    select_on: Sides
    retention: Retention = "paper"
    delta: float = DELTA
    target_mixture: Mapping[str, float] | None = None
    prior: Prior = "plain"
    strict: bool = False
    open_answers: OpenAnswers = DEFAULT

    def check(self) -> None:
        """Refuse what cannot be fitted with, and name it."""
        if not _is_number(self.epsilon_cs) or not 0.0 <= self.epsilon_cs <= 1.0:
            raise UnpriorError(f"epsilon_cs is {self.epsilon_cs!r}, it is a share of accuracy between 0 and 1 (0.04)")
        if not isinstance(self.uncertainty, bool | np.bool_):
            raise UnpriorError(f"uncertainty is {self.uncertainty!r}, it must be True or False")
        if self.ties not in TIES:
            raise UnpriorError(f"ties is {self.ties!r}, it must be {' or '.join(TIES)}")
        for name in ("fit_on", "select_on"):
            if getattr(self, name) not in SIDE_CHOICES:
                raise UnpriorError(f"{name} is {getattr(self, name)!r}, it must be {' or '.join(SIDE_CHOICES)}")
        if not isinstance(self.strength, StrengthRule | None):
            raise UnpriorError(
                f"strength is {self.strength!r}, it must be Learned(), Constant(), Fixed(value) or Split(); "
                f"import them from unprior.calibration"
            )
        check_prior(self.prior)
        check_strict(self.strict, self.prior)
        if not isinstance(self.open_answers, OpenAnswers):
            raise UnpriorError(
                f"open_answers is {self.open_answers!r}, it must be OpenAnswers(...), which is in unprior.calibration"
            )
        self.open_answers.check()
        self.rule.check()
        self._check_retention()
        _check_names("features", self.features, ALL_FEATURES)
        if self.conditions is not None:
            _check_names("conditions", self.conditions, CONDITIONS)
        _check_grid(Grid() if self.grid is None else self.grid)

    def _check_retention(self) -> None:
        if not isinstance(self.retention, str) or self.retention not in RETENTIONS:
            like = did_you_mean(str(self.retention), RETENTIONS)
            raise UnpriorError(f"retention is {self.retention!r}{like}, it must be {', '.join(RETENTIONS)}")
        check_delta(self.delta)
        check_mixture(self.target_mixture)
        if self.retention == "paper":
            if isinstance(self.strength, Split):
                raise UnpriorError(f"strength=Split() goes with {format_option('retention', 'certified')}")
            if self.target_mixture is not None:
                raise UnpriorError(f"a target mixture goes with {format_option('retention', 'certified')}")
            return
        if isinstance(self.strength, Learned | Constant):
            raise UnpriorError(
                f"strength is {self.strength!r}, which is fitted on the pairs that a certificate counts on; with "
                f"retention={self.retention!r} it must be Split() or Fixed(value)"
            )
        if self.uncertainty:
            raise UnpriorError(
                f"{format_option('uncertainty', True)} goes with {format_option('retention', 'paper')}; "
                f"{self.retention} retention has a gate of its own"
            )
        for name in ("fit_on", "select_on"):
            if getattr(self, name) != "both":
                raise UnpriorError(f"{name} must be 'both' with retention={self.retention!r}, which counts harm on CS")

    @property
    def rule(self) -> StrengthRule:
        """Where the strength comes from: as given, or what goes with the rule of retention."""
        return self.strength or default_rule(self.retention)

    @property
    def searched_grid(self) -> Grid:
        """The settings to choose from."""
        return self.rule.narrow(self.grid or Grid())

    @property
    def version(self) -> str:
        """The version of SPC, as tables and sentences name it."""
        version = "uncertainty-aware" if self.uncertainty else "standard"
        version = version if self.retention == "paper" else self.retention
        stable = f"{'strict ' if self.strict else ''}{self.prior} prior"
        return version if self.prior == "plain" else f"{version}, {stable}"


def default_rule(retention: Retention) -> StrengthRule:
    """Where the strength comes from unless something else is asked for.

    >>> default_rule("paper"), default_rule("certified")
    (Learned(), Split())
    """
    return Learned() if retention == "paper" else Split()


def _check_grid(grid: Any) -> None:
    if not isinstance(grid, Grid):
        raise UnpriorError(f"grid is {grid!r}, it must be a Grid; import it from unprior")
    for field in fields(grid):
        values = getattr(grid, field.name)
        if not isinstance(values, tuple | list) or not all(map(_is_number, values)):
            raise UnpriorError(f"grid.{field.name} is {values!r}, it must be a tuple of numbers")
        if len(values) == 0 or list(values) != sorted(set(values)):
            raise UnpriorError(f"grid.{field.name} is {values}, it must hold increasing values")
    if min(grid.rho) <= 0 or min(grid.max_strength) <= 0:
        raise UnpriorError("grid.rho and grid.max_strength must be positive")
    if not 0 <= grid.distance_quantile[0] <= grid.distance_quantile[-1] <= 1:
        raise UnpriorError("grid.distance_quantile must lie between 0 and 1")


def _is_number(value: Any) -> bool:
    number = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
    return number and bool(-_LARGEST <= value <= _LARGEST)


def _check_names(parameter: str, given: Any, known: tuple[str, ...]) -> None:
    if isinstance(given, str) or not isinstance(given, tuple):
        raise UnpriorError(f"{parameter} is {given!r}, it must be a tuple of names: {', '.join(known)}")
    for name in given:
        if name not in known:
            like = did_you_mean(str(name), known)
            raise UnpriorError(f"{parameter} has {str(name)!r}{like}; there are {', '.join(known)}")
