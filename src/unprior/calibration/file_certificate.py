"""The certificate in a calibrator file: its promise is computed again from its counts before it is believed."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError

from unprior._validation import describe_validation_error
from unprior.calibration.certificate import Certificate, TaskThreshold
from unprior.calibration.file_parts import Count, Positive, SettingsPart, StrictModel
from unprior.calibration.ladder import Plan, smallest_kept, total_chance
from unprior.errors import UnpriorError

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

    def check(self, settings: SettingsPart | None) -> None:
        """Refuse counts that do not support the promise, or thresholds other than those that are applied."""
        if (settings is None) != (not self.steps):
            raise ValueError(
                "there must be settings exactly when the certificate has steps, without which it promises nothing"
            )
        if settings is None:
            return
        if settings.min_leads != [(each.task, each.threshold) for each in self.tasks]:
            raise ValueError("the thresholds of the settings are not those of the certificate")
        if settings.max_strength != self.strength:
            raise ValueError("the strength of the settings is not that of the certificate")
        self.check_counts()

    def check_counts(self) -> None:
        """Refuse counts that do not support the promise."""
        if not self.steps:
            return
        if len(self.steps) != len(self.tasks) or set(self.calibration_pairs) & set(self.strength_pairs):
            raise ValueError("the certificate needs a step for every task, and other pairs for the strength")
        plan, rate = Plan(tuple(self.steps), self.calibration), self.epsilon / self.weight
        if self.retention == "certified":
            kept = total_chance(plan.steps, plan.pairs, rate) <= self.delta + _SAME
        else:
            kept = smallest_kept(plan, None) <= rate + _SAME
        if not kept:
            raise ValueError(f"the steps of the certificate do not keep its promise of ε = {self.epsilon:g}")

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
