"""Calibrators on disk: readable, versioned JSON that notices when it was changed."""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field, ValidationError, model_validator

from unprior._files import read_whole, replacing
from unprior._validation import describe_validation_error
from unprior.calibration.certificate import Retention
from unprior.calibration.certified import constant_strength
from unprior.calibration.features import FEATURE_NAMES
from unprior.calibration.file_certificate import CertificatePart
from unprior.calibration.file_parts import (
    FEATURE_COUNT,
    MAX_COUNT,
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
from unprior.calibration.file_version_1 import FileVersion1
from unprior.calibration.gate import CONDITIONS, StrengthModel
from unprior.calibration.ladder import DELTA
from unprior.calibration.parameters import Parameters, Sides, default_rule
from unprior.calibration.selection import Grid, Groups, Histogram, Outcomes, Ties
from unprior.calibration.stable import Prior
from unprior.calibration.state import FittedState, FittedStrength
from unprior.calibration.strength import Standardisation
from unprior.calibration.strength_rules import Constant, Fixed, Learned, Split, StrengthRule
from unprior.errors import UnpriorError
from unprior.scores.provenance import Provenance
from unprior.scores.schema import IntArray

FORMAT = "unprior.calibrator"
VERSION = 2


class _Learned(StrictModel):
    rule: Literal["learned"]

    def build(self) -> Learned:
        return Learned()


class _Constant(StrictModel):
    rule: Literal["constant"]

    def build(self) -> Constant:
        return Constant()


class _Fixed(StrictModel):
    rule: Literal["fixed"]
    value: Positive

    def build(self) -> Fixed:
        return Fixed(self.value)


class _Split(StrictModel):
    rule: Literal["split"]

    def build(self) -> Split:
        return Split()


class _Parameters(StrictModel):
    epsilon_cs: Finite
    uncertainty: bool
    grid: GridPart
    ties: Ties
    strength: Annotated[_Learned | _Constant | _Fixed | _Split, Field(discriminator="rule")]
    features: list[str]
    conditions: list[str] | None
    fit_on: Sides
    select_on: Sides
    retention: Retention = "paper"
    delta: Finite = DELTA
    target_mixture: dict[str, Finite] | None = None
    prior: Prior = "plain"
    strict: bool = False

    def build(self) -> Parameters:
        strength: StrengthRule | None = self.strength.build()
        if strength == default_rule(self.retention):
            strength = None
        return Parameters(
            epsilon_cs=self.epsilon_cs,
            uncertainty=self.uncertainty,
            grid=self.grid.build(),
            ties=self.ties,
            strength=strength,
            features=tuple(self.features),
            conditions=build_conditions(self.conditions),
            fit_on=self.fit_on,
            select_on=self.select_on,
            retention=self.retention,
            delta=self.delta,
            target_mixture=self.target_mixture,
            prior=self.prior,
            strict=self.strict,
        )


class _Feature(StrictModel):
    mean: Weight
    scale: Scale


class _Fit(StrictModel):
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


class _Outcomes(StrictModel):
    tasks: list[str]
    totals: list[Count]
    """Rows of both sides of every task in turn."""
    distance_limits: list[Finite]
    net: _Sparse
    """Repairs minus harms by ρ and λ_max, condition, side, and thresholds passed (support, margin, distance)."""
    changed: _Sparse
    """Changed answers by the same, without the side."""

    def build(self, parameters: Parameters) -> Outcomes:
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


class CalibratorFile(StrictModel):
    """Everything in a calibrator file but its checksum."""

    format: Literal["unprior.calibrator"]
    version: Literal[2]
    made_by: str
    """Version of the package that wrote the file."""
    model: str | None
    """The vision-language model whose scores were fitted; a calibrator belongs to one model."""
    provenance: list[Provenance]
    """How the scores were made that it was fitted on."""
    parameters: _Parameters
    settings: SettingsPart | None
    """Null for a calibrator that abstains."""
    selection: SelectionPart
    candidate_counts: CandidateCounts
    development_rows: Count
    features: dict[str, _Feature]
    precision: Precision | None
    """Metric of the distance from the development data; null for the standard version."""
    fits: list[_Fit] = Field(min_length=1)
    """One for every ρ; a calibrator that was read from a file of version 1 has the chosen one."""
    outcomes: _Outcomes | None
    """What every setting does to the development rows; null for what was read from a file of version 1, and for a
    calibrator with a certificate."""
    certificate: CertificatePart | None = None
    """What is promised about new pairs; null under the paper's rule."""

    @model_validator(mode="after")
    def _consistent(self) -> CalibratorFile:
        check_features(dict(self.features))
        uncertainty = self.parameters.uncertainty
        if any((part is not None) != uncertainty for part in (self.precision, *(fit.covariance for fit in self.fits))):
            raise ValueError("precision and covariance must be present exactly when uncertainty is true")
        if self.precision is not None:
            check_matrix("precision", self.precision)
        for fit in self.fits:
            if fit.covariance is not None:
                check_matrix("covariance", fit.covariance)
        if (self.certificate is None) != (self.parameters.retention == "paper"):
            raise ValueError("a certificate must be present exactly when retention is certified or expected")
        if self.certificate is not None:
            self.certificate.check(self.settings)
            self._check_promise(self.certificate)
        if self.settings is not None:
            self.settings.check(uncertainty)
            if self.settings.rho not in [fit.rho for fit in self.fits]:
                raise ValueError(f"there is no fit for the chosen rho {self.settings.rho}")
        return self

    def _check_promise(self, certificate: CertificatePart) -> None:
        """The certificate is about these parameters and this strength."""
        own, given = certificate, self.parameters
        if (own.epsilon, own.delta, own.retention) != (given.epsilon_cs, given.delta, given.retention):
            raise ValueError("the certificate was made for another limit, chance or rule than the parameters have")
        if own.has_target != (given.target_mixture is not None):
            raise ValueError("the certificate was made for another mixture than the parameters have")
        if self.fits[0].theta != constant_strength(own.strength).theta.tolist():
            raise ValueError("the strength is not that of the certificate")

    def build(self) -> FittedState:
        """The state that was saved."""
        parameters = self.parameters.build()
        parameters.check()
        grid, features = parameters.searched_grid, self.features.values()
        if self.outcomes is not None and [fit.rho for fit in self.fits] != list(grid.rho):
            raise UnpriorError("the fits do not belong to the grid of the file")
        scaling = Standardisation(
            np.array([part.mean for part in features]), np.array([part.scale for part in features])
        )
        precision = None if self.precision is None else np.array(self.precision)
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
                for fit in self.fits
            ),
            selection=self.selection.build(self.settings),
            outcomes=None if self.outcomes is None else self.outcomes.build(parameters),
            candidate_counts=tuple(self.candidate_counts),
            development_rows=self.development_rows,
            model_name=self.model,
            provenance=tuple(self.provenance),
            certificate=None if self.certificate is None else self.certificate.build(),
        )


def save_state(state: FittedState, path: Path) -> None:
    """Write a fitted state; every number is stored exactly."""
    content = _content(state)
    text = _readable({**content, "checksum": _checksum(content)})
    with replacing(path) as temporary:
        temporary.write_text(text + "\n", encoding="utf-8")


def _readable(value: Any, indent: int = 0) -> str:
    """Indented JSON, but a vector stands on one line and not on thirteen."""
    inner = "  " * (indent + 1)
    if isinstance(value, dict):
        lines = [f"{inner}{json.dumps(key)}: {_readable(entry, indent + 1)}" for key, entry in value.items()]
    elif isinstance(value, list) and any(isinstance(entry, dict | list) for entry in value):
        lines = [inner + _readable(entry, indent + 1) for entry in value]
    else:
        return json.dumps(value, ensure_ascii=False, allow_nan=False)
    opening, closing = "{}" if isinstance(value, dict) else "[]"
    return f"{opening}\n" + ",\n".join(lines) + f"\n{'  ' * indent}{closing}"


def load_state(path: Path) -> FittedState:
    """Read and check a calibrator file of any version."""
    raw = read_whole(path)
    try:
        document = json.loads(raw)
        json.dumps(document, ensure_ascii=False).encode()  # JSON can spell half of a character
    except UnicodeEncodeError:
        raise UnpriorError(
            f"{path}: not a valid calibrator: it has a character that is not valid Unicode. "
            f"Fit it again with `unprior fit`."
        ) from None
    except (ValueError, RecursionError) as error:
        if raw.strip() and (raw.lstrip()[:1] != b"{" or "Extra data" in str(error)):
            raise _not_a_calibrator(path) from None
        raise UnpriorError(
            f"{path}: not a complete calibrator file, it may be truncated ({error}). Fit it again with `unprior fit`."
        ) from None
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise _not_a_calibrator(path)
    schemas: dict[Any, type[CalibratorFile | FileVersion1]] = {1: FileVersion1, VERSION: CalibratorFile}
    version = document.get("version")
    if not isinstance(version, int) or version not in schemas:
        raise UnpriorError(
            f"{path}: calibrator version {version!r}, this unprior reads versions 1 to {VERSION}. "
            f"Fit it again with this version, or install the one that made it "
            f"(unprior {document.get('made_by', 'unknown')})."
        )
    checksum = document.pop("checksum", None)
    try:
        content = schemas[version].model_validate(document)
    except ValidationError as error:
        raise UnpriorError(
            f"{path}: not a valid calibrator: {describe_validation_error(error)}. Fit it again with `unprior fit`."
        ) from None
    if checksum != _checksum(document):
        raise UnpriorError(
            f"{path}: the contents were changed after the file was saved (the checksum does not match). "
            f"Use the original file, or fit it again with `unprior fit`."
        )
    try:
        return content.build()
    except UnpriorError as error:
        raise UnpriorError(f"{path}: {error}") from None


def _not_a_calibrator(path: Path) -> UnpriorError:
    return UnpriorError(f"{path}: not a calibrator; `unprior fit SCORES --out CALIBRATOR.json` makes one")


def _checksum(content: dict[str, Any]) -> str:
    canonical = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return "sha256:" + hashlib.sha256(canonical.encode()).hexdigest()


def _content(state: FittedState) -> dict[str, Any]:
    from unprior._version import __version__

    parameters, outcomes, model = state.parameters, state.outcomes, state.chosen.model
    selection = asdict(state.selection)
    settings = selection.pop("settings")
    scaling = zip(FEATURE_NAMES, model.standardisation.mean, model.standardisation.scale, strict=True)
    rule = parameters.rule
    content = {
        "format": FORMAT,
        "version": VERSION,
        "made_by": __version__,
        "model": state.model_name,
        "provenance": [record.record() for record in state.provenance],
        "parameters": {
            "epsilon_cs": parameters.epsilon_cs,
            "uncertainty": parameters.uncertainty,
            "grid": asdict(parameters.grid or Grid()),
            "ties": parameters.ties,
            "strength": {"rule": type(rule).__name__.lower(), **asdict(rule)},
            "features": parameters.features,
            "conditions": parameters.conditions,
            "fit_on": parameters.fit_on,
            "select_on": parameters.select_on,
            "retention": parameters.retention,
            "delta": parameters.delta,
            "target_mixture": None if parameters.target_mixture is None else dict(parameters.target_mixture),
            "prior": parameters.prior,
            "strict": parameters.strict,
        },
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
        "certificate": None if state.certificate is None else state.certificate.record(),
    }
    # Through the schema, so that what is written is what will be accepted.
    try:
        return CalibratorFile.model_validate(json.loads(json.dumps(content))).model_dump(exclude_unset=True)
    except (TypeError, ValidationError) as error:
        reason = describe_validation_error(error) if isinstance(error, ValidationError) else error
        raise UnpriorError(f"this calibrator cannot be saved: {reason}") from None
