"""The certificate in a calibrator file: its promise is computed again from its counts before it is believed."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError

from unprior._validation import describe_validation_error
from unprior.calibration.certificate import SEED, Certificate, TaskThreshold
from unprior.calibration.file_parts import Count, Positive, SettingsPart, StrictModel
from unprior.calibration.ladder import Plan, smallest_kept
from unprior.errors import UnpriorError
from unprior.scores.schema import OPEN

_Share = Annotated[float, Field(ge=0, le=1)]
_SAME = 1e-9


def read_certificate(record: dict[str, Any], place: Path) -> Certificate:
    """The certificate that decisions note, without the names of its pairs."""
    try:
        part = CertificatePart.model_validate(record)
        part.check_counts()
    except (ValidationError, ValueError) as error:
        told = describe_validation_error(error) if isinstance(error, ValidationError) else str(error)
        raise UnpriorError(f"{place}: its certificate is not valid: {told}. Make the decisions again.") from None
    return part.build()


class _Threshold(StrictModel):
    task: str
    pairs: Count
    harms: Count
    threshold: Annotated[float, Field(ge=0, allow_inf_nan=False)]
    bound: _Share


class CertificatePart(StrictModel):
    """A certificate, as :meth:`~unprior.calibration.certificate.Certificate.record` writes it."""

    sentence: str
    label: Literal["exact"]
    retention: Literal["certified", "expected"]
    epsilon: _Share
    delta: Annotated[float, Field(gt=0, le=0.5)]
    pairs: Count
    calibration: Count
    steps: list[Annotated[int, Field(ge=-1)]]
    tasks: list[_Threshold]
    chance: _Share | None
    bound: _Share | None
    weight: Annotated[float, Field(ge=1, allow_inf_nan=False)]
    mixture: dict[str, _Share]
    has_target: bool
    strength: Positive
    strength_rule: Literal["split", "fixed"]
    seed: Count
    calibration_pairs: list[int | str] = Field(default_factory=list)
    strength_pairs: list[int | str] = Field(default_factory=list)
    harmed_by_strict: bool = False
    open_strength: Positive | None = None
    by_image: bool = False

    def strength_of(self, is_open: bool) -> float:
        """λ for open questions, or for those with options."""
        return self.strength if not is_open or self.open_strength is None else self.open_strength

    def check(self, parts: Mapping[bool, SettingsPart | None]) -> None:
        """Refuse counts that do not support the promise, or thresholds other than those that are applied.

        ``parts`` are the settings for questions with options (False) and for open questions (True). Those for open
        questions may stand alone, taken from a calibrator with both.
        """
        if any((settings is None) != (not self.steps) for settings in parts.values()):
            raise ValueError(
                "there must be settings exactly when the certificate has steps, without which it promises nothing"
            )
        applied = {True: parts.get(True), False: parts.get(False)}
        if not any(applied.values()):
            return
        for is_open, settings in applied.items():
            leads = [(each.task, each.threshold) for each in self.tasks if (each.task == OPEN) == is_open]
            if settings is None and leads and not is_open:
                continue
            if (settings and settings.min_leads) != (leads or None):
                raise ValueError("the thresholds of the settings are not those of the certificate")
            if settings is not None and settings.max_strength != self.strength_of(is_open):
                raise ValueError("the strength of the settings is not that of the certificate")
        self.check_counts()
        self.check_pairs()

    def check_counts(self) -> None:
        """Refuse counts that do not support the promise."""
        if not self.steps:
            self._check_abstaining()
            return
        names = [each.task for each in self.tasks]
        if len(self.steps) != len(names) or len(set(names)) < len(names):
            raise ValueError("the certificate needs a step for every task, and tasks of different names")
        if self.steps[0] < 0 or self.steps != sorted(self.steps, reverse=True) or self.seed != SEED:
            raise ValueError("the steps must start with at least 0 and never rise, and the seed is always the same")
        if any(each.pairs != self.calibration or each.harms > self.steps[0] for each in self.tasks):
            raise ValueError("a task has other pairs or more harms than its steps permit")
        if not self.steps[0] < self.calibration <= self.pairs:
            raise ValueError("thresholds must be set on some of the development pairs")
        if self.mixture and abs(sum(self.mixture.values()) - 1.0) > _SAME:
            raise ValueError("the shares of the mixture must add up to 1")
        plan, rate = Plan(tuple(self.steps), self.calibration), self.epsilon / self.weight
        kept = smallest_kept(plan, self.delta if self.retention == "certified" else None)
        if kept > rate + _SAME:
            raise ValueError(f"the steps of the certificate do not keep its promise of ε = {self.epsilon:g}")
        if {self.bound, *(each.bound for each in self.tasks)} - {min(1.0, self.weight * kept)}:
            raise ValueError("the bound is not the one of the steps")

    def _check_abstaining(self) -> None:
        if self.tasks or self.bound is not None or self.chance is not None or self.calibration:
            raise ValueError("a certificate without steps has no thresholds and no bound")

    def check_pairs(self) -> None:
        """Refuse pairs that set thresholds and fitted the strength, too, or too few of them."""
        calibration, strength = set(map(str, self.calibration_pairs)), set(map(str, self.strength_pairs))
        if calibration & strength:
            raise ValueError("the certificate needs other pairs for the strength than for the thresholds")
        if len(calibration) < max(self.calibration, len(self.calibration_pairs)):
            raise ValueError("the certificate names fewer pairs than set its thresholds")

    def build(self) -> Certificate:
        """The certificate that was saved."""
        values = self.model_dump(exclude={"label", "sentence"})
        return Certificate(
            **values
            | {
                "steps": tuple(self.steps),
                "tasks": tuple(TaskThreshold(**each.model_dump()) for each in self.tasks),
                "mixture": tuple(self.mixture.items()),
                "calibration_pairs": tuple(self.calibration_pairs),
                "strength_pairs": tuple(self.strength_pairs),
            }
        )
