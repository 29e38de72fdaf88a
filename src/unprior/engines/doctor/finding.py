"""What a probe found, and what a probe is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple

from unprior.engines.doctor.trial import Trial
from unprior.errors import UnpriorError

Status = Literal["ok", "warning", "failed", "skipped"]

_ERROR_REMEDY = "The message is the engine's own: look there (server log, memory, files of the model)."


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of an examination."""

    name: str
    """What was probed."""
    status: Status
    """Only ``failed`` means that results would be wrong."""
    detail: str
    """What was seen."""
    remedy: str | None = None
    """What to do about it; None where there is nothing to do."""


class Verdict(NamedTuple):
    """A finding that has no name yet."""

    status: Status
    detail: str
    remedy: str | None = None


@dataclass(frozen=True, slots=True)
class Probe:
    """A named judgement of an engine that never raises.

    >>> Probe("arithmetic", lambda trial: Verdict("ok", str(1 / 0)))(None).detail
    'ZeroDivisionError: division by zero'
    """

    name: str
    judge: Callable[[Trial], Verdict | None]
    """None says that the probe does not concern the engine."""

    def __call__(self, trial: Trial) -> Finding | None:
        """Judge the engine; whatever it raises is a failed finding."""
        try:
            verdict = self.judge(trial)
            return None if verdict is None else Finding(self.name, *verdict)
        except UnpriorError as error:
            return Finding(self.name, "failed", str(error), _ERROR_REMEDY)
        except Exception as error:  # an engine may raise anything; the other probes go on
            return Finding(self.name, "failed", f"{type(error).__name__}: {error}", _ERROR_REMEDY)
