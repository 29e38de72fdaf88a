"""Calibrators on disk: readable, versioned JSON that notices when it was changed."""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field, ValidationError, model_validator

from unprior._files import read_whole, replacing
from unprior._validation import describe_validation_error
from unprior.calibration.certificate import Retention
from unprior.calibration.certified import constant_strength
from unprior.calibration.file_certificate import CertificatePart
from unprior.calibration.file_fit import (
    FeaturePart,
    FitContent,
    OpenFitPart,
    OpenPart,
    OutcomesPart,
    StrengthPart,
    build_fit,
    check_fit,
    fit_content,
    open_content,
)
from unprior.calibration.file_parts import (
    CandidateCounts,
    Count,
    Finite,
    GridPart,
    Positive,
    Precision,
    SelectionPart,
    SettingsPart,
    StrictModel,
    build_conditions,
)
from unprior.calibration.file_scale import ScalePart, check_choice, check_scales
from unprior.calibration.file_version_1 import FileVersion1
from unprior.calibration.ladder import DELTA
from unprior.calibration.open_answers import DEFAULT, OpenAnswers
from unprior.calibration.parameters import Parameters, Sides, default_rule
from unprior.calibration.selection import Grid, Ties
from unprior.calibration.stable import Prior
from unprior.calibration.state import FittedState
from unprior.calibration.strength_rules import Constant, Fixed, Learned, Split, StrengthRule
from unprior.errors import UnpriorError
from unprior.scores.provenance import Provenance

FORMAT = "unprior.calibrator"
VERSION = 2
_SAME_STRENGTH = 1e-9  # far below what lifts a given strength above its cap


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


class _OpenAnswers(StrictModel):
    clips: list[Positive | None] = Field(min_length=1)
    """Null does not clip."""
    temperature: Positive | None

    def build(self) -> OpenAnswers:
        return OpenAnswers(tuple(math.inf if clip is None else clip for clip in self.clips), self.temperature)


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
    open_answers: _OpenAnswers | None = None

    @property
    def offered(self) -> OpenAnswers:
        """What open answers may be scaled by."""
        return DEFAULT if self.open_answers is None else self.open_answers.build()

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
            open_answers=self.offered,
        )


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
    features: dict[str, FeaturePart]
    precision: Precision | None
    """Metric of the distance from the development data; null for the standard version."""
    fits: list[StrengthPart] = Field(min_length=1)
    """One for every ρ; a calibrator that was read from a file of version 1 has the chosen one."""
    outcomes: OutcomesPart | None
    """What every setting does to the development rows; null for what was read from a file of version 1, and for a
    calibrator with a certificate."""
    certificate: CertificatePart | None = None
    """What is promised about new pairs; null under the paper's rule."""

    scale: ScalePart | None = None
    """Of a calibrator of open answers alone: how their scores are brought to the scale of the method."""
    other_clips: list[OpenFitPart] = Field(default_factory=list)
    """Of the same: what was fitted with the other values of τ."""
    open: OpenPart | None = None
    """What was fitted on open questions, beside questions with options."""

    @model_validator(mode="after")
    def _consistent(self) -> CalibratorFile:
        uncertainty = self.parameters.uncertainty
        parts: list[FitContent] = [self, *self.other_clips]
        parts += [] if self.open is None else [self.open, *self.open.other_clips]
        for part in parts:
            check_fit(part, uncertainty)
        if self.scale is None and self.other_clips:
            raise ValueError("there are fits with other values of τ, but none with the chosen one")
        if self.scale is not None and self.open is not None:
            raise ValueError("a calibrator of open answers alone cannot have another one for them")
        if (self.certificate is None) != (self.parameters.retention == "paper"):
            raise ValueError("a certificate must be present exactly when retention is certified or expected")
        if self.certificate is not None:
            self._check_promise(self.certificate)
        opened = self if self.open is None else self.open
        if opened.scale is not None:
            scales = [opened.scale, *(each.scale for each in opened.other_clips)]
            check_scales(scales, self.parameters.offered, opened.development_rows, self.certificate)
        return self

    def _check_promise(self, certificate: CertificatePart) -> None:
        """The certificate is about these parameters and these strengths."""
        own, given = certificate, self.parameters
        parts: dict[bool, CalibratorFile | OpenPart] = {self.scale is not None: self}
        if self.open is not None:
            parts[True] = self.open
        certificate.check({is_open: part.settings for is_open, part in parts.items()})
        if (own.epsilon, own.delta, own.retention) != (given.epsilon_cs, given.delta, given.retention):
            raise ValueError("the certificate was made for another limit, chance or rule than the parameters have")
        if own.has_target != (given.target_mixture is not None):
            raise ValueError("the certificate was made for another mixture than the parameters have")
        for is_open, part in parts.items():
            # Not bit by bit: the logarithm of another NumPy or processor may end in another digit.
            expected = constant_strength(own.strength_of(is_open)).theta
            if not np.allclose(part.fits[0].theta, expected, rtol=0, atol=_SAME_STRENGTH):
                raise ValueError("the strength is not that of the certificate")

    def build(self) -> FittedState:
        """The state that was saved."""
        parameters = self.parameters.build()
        parameters.check()
        certificate = None if self.certificate is None else self.certificate.build()

        def build(part: FitContent, scale: ScalePart | None = None) -> FittedState:
            state = build_fit(part, parameters, self.model, tuple(self.provenance), certificate)
            return state if scale is None else replace(state, scale=scale.build())

        def build_open(part: FitContent, scale: ScalePart, others: list[OpenFitPart]) -> FittedState:
            state = replace(build(part, scale), other_clips=tuple(build(each, each.scale) for each in others))
            check_choice(state)
            return state

        if self.scale is not None:
            return build_open(self, self.scale, self.other_clips)
        opened = self.open
        return replace(
            build(self), open=None if opened is None else build_open(opened, opened.scale, opened.other_clips)
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

    parameters = state.parameters
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
            # Only where it was set, so that files about questions with options stay what they were.
            **({} if parameters.open_answers == DEFAULT else {"open_answers": parameters.open_answers.record()}),
        },
        **fit_content(state),
        "certificate": None if state.certificate is None else state.certificate.record(),
        **open_content(state),
        **({} if state.open is None else {"open": fit_content(state.open) | open_content(state.open)}),
    }
    # Through the schema, so that what is written is what will be accepted.
    try:
        return CalibratorFile.model_validate(json.loads(json.dumps(content))).model_dump(exclude_unset=True)
    except (TypeError, ValidationError) as error:
        reason = describe_validation_error(error) if isinstance(error, ValidationError) else error
        raise UnpriorError(f"this calibrator cannot be saved: {reason}") from None
