"""Calibrators on disk: readable, versioned JSON that notices when it was changed."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from unprior._files import read_whole, replacing
from unprior._validation import describe_validation_error
from unprior.calibration.calibrator import SelectivePriorCalibrator
from unprior.calibration.features import FEATURE_NAMES
from unprior.calibration.gate import Settings, StrengthModel
from unprior.calibration.selection import Grid, Selection, TaskChange, Ties
from unprior.calibration.strength import Standardisation
from unprior.errors import UnpriorError
from unprior.scores.provenance import Provenance

FORMAT = "unprior.calibrator"
VERSION = 1
_LARGEST_WEIGHT = 1e9  # beyond it, strengths are no longer numbers; a fit comes nowhere near
_FEATURES = len(FEATURE_NAMES)
_ROUNDING = 1e-8

Calibrator = TypeVar("Calibrator", bound=SelectivePriorCalibrator)
Finite = Annotated[float, Field(allow_inf_nan=False)]
Vector = Annotated[list[Finite], Field(min_length=_FEATURES, max_length=_FEATURES)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class _Settings(_Part):
    rho: Positive
    max_strength: Positive
    min_margin: Finite
    conflict_support: Finite | None
    absorption_support: Finite | None
    max_distance: Finite | None


class _Change(_Part):
    task: str
    cf_net: int
    cf_total: Annotated[int, Field(gt=0)]
    cs_net: int
    cs_total: Annotated[int, Field(ge=0)]
    """0 where settings were chosen without commonsense images."""


class _Selection(_Part):
    changes: list[_Change]
    changed: int
    feasible: int
    searched: int


class _Uncertainty(_Part):
    covariance: list[Vector] = Field(min_length=_FEATURES, max_length=_FEATURES)
    precision: list[list[Finite]] = Field(min_length=_FEATURES - 1, max_length=_FEATURES - 1)

    @model_validator(mode="after")
    def _square(self) -> _Uncertainty:
        if any(len(row) != _FEATURES - 1 for row in self.precision):
            raise ValueError(f"precision must be {_FEATURES - 1} by {_FEATURES - 1}")
        for name, rows in (("covariance", self.covariance), ("precision", self.precision)):
            matrix = np.array(rows)
            scale = np.abs(matrix).max()
            if np.abs(matrix - matrix.T).max() > _ROUNDING * scale:
                raise ValueError(f"{name} must be symmetric")
            if np.linalg.eigvalsh(matrix).min() < -_ROUNDING * scale:
                raise ValueError(f"{name} has a negative variance, which there cannot be")
        return self


class _Feature(_Part):
    mean: Finite
    scale: Positive
    theta: Annotated[float, Field(ge=-_LARGEST_WEIGHT, le=_LARGEST_WEIGHT)]


class _Grid(_Part):
    rho: list[Finite]
    max_strength: list[Finite]
    min_margin: list[Finite]
    support: list[Finite]
    distance_quantile: list[Finite]


class _Variant(_Part):
    kind: str
    """Name of the class."""
    parameters: dict[str, bool | Finite | list[str] | None]
    """Constructor arguments that SPC itself does not have."""


class CalibratorFile(_Part):
    """Everything in a calibrator file but its checksum."""

    format: Literal["unprior.calibrator"]
    version: Literal[1]
    made_by: str
    """Version of the package that wrote the file."""
    model: str | None
    """The vision-language model whose scores were fitted; a calibrator belongs to one model."""
    epsilon_cs: Finite
    uncertainty: bool
    grid: _Grid
    settings: _Settings | None
    """Null for a calibrator that abstains."""
    candidate_counts: list[Annotated[int, Field(ge=2)]] = Field(min_length=1)
    development_rows: int
    loss: Finite
    gradient_norm: Finite
    selection: _Selection
    features: dict[str, _Feature]
    laplace: _Uncertainty | None
    ties: Ties = "first"
    """Left out of the file where it is the default, so that 0.1.0 reads the file."""
    variant: _Variant | None = None
    """What makes the calibrator another one than SPC; left out for SPC itself."""
    strength: Positive | None = None
    """The given λ of a fixed-strength calibrator in a file of 0.1.0, where variants are not recorded."""
    provenance: list[Provenance] = Field(default_factory=list)
    """How the scores were made that it was fitted on; files of version 0.1.0 do not say."""

    @model_validator(mode="after")
    def _consistent(self) -> CalibratorFile:
        if tuple(self.features) != FEATURE_NAMES:
            raise ValueError(f"features must be exactly {', '.join(FEATURE_NAMES)}, in this order")
        if self.uncertainty != (self.laplace is not None):
            raise ValueError("laplace must be present exactly when uncertainty is true")
        if self.settings is not None:
            thresholds = (
                self.settings.conflict_support, self.settings.absorption_support, self.settings.max_distance,
            )  # fmt: skip
            if any((value is not None) != self.uncertainty for value in thresholds):
                raise ValueError("support and distance thresholds must be present exactly when uncertainty is true")
        return self


def save_calibrator(calibrator: SelectivePriorCalibrator, path: Path) -> None:
    """Write a fitted calibrator; every number is stored exactly."""
    content = _content(calibrator)
    document = {**content, "checksum": _checksum(content)}
    text = _readable(document)
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


def load_calibrator(path: Path, kind: type[Calibrator]) -> Calibrator:
    """Read and check a calibrator file."""
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
    if document.get("version") != VERSION:
        raise UnpriorError(
            f"{path}: calibrator version {document.get('version')!r}, this unprior reads version {VERSION}. "
            f"Fit it again with this version, or install the one that made it "
            f"(unprior {document.get('made_by', 'unknown')})."
        )
    checksum = document.pop("checksum", None)
    try:
        content = CalibratorFile.model_validate(document)
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
        return _rebuild(content, _class_of(content, kind))
    except UnpriorError as error:
        raise UnpriorError(f"{path}: {error}") from None


def _not_a_calibrator(path: Path) -> UnpriorError:
    return UnpriorError(f"{path}: not a calibrator; `unprior fit SCORES --out CALIBRATOR.json` makes one")


def _checksum(content: dict[str, Any]) -> str:
    canonical = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return "sha256:" + hashlib.sha256(canonical.encode()).hexdigest()


def _content(calibrator: SelectivePriorCalibrator) -> dict[str, Any]:
    from unprior._version import __version__

    model = calibrator.model_
    laplace = None
    if model.covariance is not None and model.precision is not None:
        laplace = {"covariance": model.covariance.tolist(), "precision": model.precision.tolist()}
    parts = zip(FEATURE_NAMES, model.standardisation.mean, model.standardisation.scale, model.theta, strict=True)
    selection = asdict(calibrator.selection_)
    settings = selection.pop("settings")
    parameters = calibrator.common_parameters | calibrator.fitted_parameters_
    content = {
        "format": FORMAT,
        "version": VERSION,
        "made_by": __version__,
        "model": calibrator.model_name_,
        "epsilon_cs": parameters["epsilon_cs"],
        "uncertainty": parameters["uncertainty"],
        "grid": asdict(parameters["grid"] or Grid()),
        "settings": settings,
        "candidate_counts": list(calibrator.candidate_counts_),
        "development_rows": calibrator.development_rows_,
        "loss": calibrator.loss_,
        "gradient_norm": calibrator.gradient_norm_,
        "selection": selection,
        "features": {
            name: {"mean": float(mean), "scale": float(scale), "theta": float(weight)}
            for name, mean, scale, weight in parts
        },
        "laplace": laplace,
    }
    if calibrator.provenance_:
        content["provenance"] = [record.record() for record in calibrator.provenance_]
    if parameters["ties"] != "first":
        content["ties"] = parameters["ties"]
    if type(calibrator) is not SelectivePriorCalibrator:
        own = {name: value for name, value in parameters.items() if name not in calibrator.common_parameters}
        content["variant"] = {"kind": type(calibrator).__name__, "parameters": own}
    # Through the schema, so that what is written is what will be accepted.
    try:
        return CalibratorFile.model_validate(json.loads(json.dumps(content))).model_dump(exclude_unset=True)
    except (TypeError, ValidationError) as error:
        reason = describe_validation_error(error) if isinstance(error, ValidationError) else error
        raise UnpriorError(f"this {type(calibrator).__name__} cannot be saved: {reason}") from None


def _class_of(content: CalibratorFile, kind: type[Calibrator]) -> type[Calibrator]:
    """The class that decides as the saved calibrator did: the one recorded, if it is a kind of what was asked for."""
    if content.variant is None:
        return kind
    for known in (kind, *_subclasses(kind)):
        if known.__name__ == content.variant.kind:
            return known
    raise UnpriorError(
        f"the file holds a {content.variant.kind}, which decides otherwise than {kind.__name__}; "
        f"import that class and load the file with {content.variant.kind}.load"
    )


def _subclasses(kind: type[Calibrator]) -> list[type[Calibrator]]:
    from unprior.calibration import conditions, fixed, one_sided, prior_blind  # noqa: F401  so that they are known

    return [each for child in kind.__subclasses__() for each in (child, *_subclasses(child))]


def _rebuild(content: CalibratorFile, kind: type[Calibrator]) -> Calibrator:
    grid = Grid(**{name: tuple(values) for name, values in content.grid.model_dump().items()})
    calibrator = kind(
        epsilon_cs=content.epsilon_cs, uncertainty=content.uncertainty, grid=None if grid == Grid() else grid
    )
    own: dict[str, Any] = {} if content.variant is None else dict(content.variant.parameters)
    if content.strength is not None and "strength" in calibrator.get_params():
        own["strength"] = content.strength
    if content.ties != "first":
        own["ties"] = content.ties
    calibrator.set_params(**{name: tuple(each) if isinstance(each, list) else each for name, each in own.items()})
    calibrator.check_parameters()
    calibrator.fitted_parameters_ = calibrator.get_params()
    features = content.features.values()
    laplace = content.laplace
    settings = None if content.settings is None else Settings(**content.settings.model_dump())
    changes = tuple(TaskChange(**change.model_dump()) for change in content.selection.changes)
    counts = content.selection.model_dump(exclude={"changes"})
    calibrator.settings_ = settings
    calibrator.selection_ = Selection(settings, changes, **counts)
    calibrator.candidate_counts_ = tuple(content.candidate_counts)
    calibrator.model_name_ = content.model
    calibrator.provenance_ = tuple(content.provenance)
    calibrator.development_rows_ = content.development_rows
    calibrator.loss_, calibrator.gradient_norm_ = content.loss, content.gradient_norm
    calibrator.model_ = StrengthModel(
        Standardisation(np.array([part.mean for part in features]), np.array([part.scale for part in features])),
        np.array([part.theta for part in features]),
        None if laplace is None else np.array(laplace.covariance),
        None if laplace is None else np.array(laplace.precision),
    )
    return calibrator
