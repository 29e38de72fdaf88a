"""All probes of one engine."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from PIL import Image

from unprior.engines.doctor.finding import Finding
from unprior.engines.doctor.probes import CONSEQUENCES, PROBES, WITHOUT_SCORES
from unprior.engines.doctor.trial import Trial
from unprior.engines.protocol import Engine

if TYPE_CHECKING:
    from unprior.engines.transformers.engine import TransformersEngine

_MEND_FIRST = "Mend what failed above first; it may explain this, too."


@dataclass(frozen=True, slots=True)
class Examination:
    """What all probes found."""

    model: str
    findings: tuple[Finding, ...]

    @property
    def failed(self) -> bool:
        """Whether something would make results wrong; warnings do not."""
        return any(finding.status == "failed" for finding in self.findings)

    def finding(self, name: str) -> Finding:
        """The finding of a probe."""
        return next(finding for finding in self.findings if finding.name == name)

    def record(self) -> dict[str, Any]:
        """Everything as one JSON document."""
        return {
            "model": self.model,
            "failed": self.failed,
            "findings": [asdict(finding) for finding in self.findings],
        }


def examine(
    engine: Engine,
    image: Image.Image | None = None,
    question: str | None = None,
    *,
    against: TransformersEngine | None = None,
    report: Callable[[int, int], None] | None = None,
) -> Examination:
    """Probe an engine.

    Parameters
    ----------
    engine
        Any engine; one that offers more than the protocol is probed more closely.
    image
        The image to ask about; by default one is drawn.
    question
        A yes/no question about it.
    against
        The same model from a folder, whose prompts and scores the engine's are compared with.
    report
        Told, before every probe, how many are done and how many there are.
    """
    trial = Trial.from_engine(engine, image, question, against)
    findings: list[Finding] = []
    for done, probe in enumerate(PROBES):
        if report is not None:
            report(done, len(PROBES))
        # Without a single score every probe would say the same, for a dead server each after all its retries.
        mute = bool(findings) and findings[0].status == "failed" and probe.name not in WITHOUT_SCORES
        found = Finding(probe.name, "skipped", "nothing can be scored") if mute else probe(trial)
        if found is None:
            continue
        if (
            found.status == "failed"
            and found.name in CONSEQUENCES
            and any(each.status == "failed" for each in findings)
        ):
            found = replace(found, remedy=_MEND_FIRST)
        findings.append(found)
    return Examination(engine.name, tuple(findings))
