"""The calibrators of a server, by name; each was fitted on scores made as this server makes them."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unprior._files import exists, kind_of_file
from unprior.embedded import CALIBRATOR, NAME
from unprior.engines.protocol import EngineInfo
from unprior.errors import UnpriorError, warn
from unprior.scoring.plan import engine_provenance
from unprior.serving.errors import refuse

if TYPE_CHECKING:
    from unprior.calibration import SelectivePriorCalibrator
    from unprior.scores.provenance import Provenance

PACKAGED = "packaged"
KINDS = ("mc", "qa", "open")
"""Of the questions that a server takes."""


@dataclass(frozen=True, slots=True)
class NamedCalibrator:
    """A calibrator with what replies call it."""

    name: str
    calibrator: SelectivePriorCalibrator
    digest: str
    """Of its file."""
    side: int | None
    """Of the square that images are brought to, as those that it was fitted on."""
    caveats: tuple[str, ...] = ()
    """What differs from how its scores were made without being refused, and what the server behind does not tell."""

    @classmethod
    def load(cls, name: str, path: Path, engine: EngineInfo) -> NamedCalibrator:
        """Read a file, a folder or a repository of the hub; one fitted on other scores than the engine's is refused."""
        from unprior.calibration import SelectivePriorCalibrator
        from unprior.calibration.pretrained import find_file

        kind = kind_of_file(path.stat().st_mode) if exists(path) else None
        if kind not in (None, "a folder"):  # who opens a pipe waits for somebody to write
            raise UnpriorError(f"{path}: this is {kind}; --calibrator needs a file")
        path = find_file(path)
        calibrator = SelectivePriorCalibrator.load(path)
        sizes = {record.image_size for record in calibrator.provenance_} - {None}
        side = (sizes.pop() if len(sizes) == 1 else None) or None
        here = engine_provenance(engine, side, KINDS)
        differences = calibrator.differences([here])
        told = f"{path} was fitted on other scores than {engine.name} makes here"
        if differences.refused:
            raise UnpriorError(f"{told}: {'; '.join(differences.refused)}. Fit one on scores of this model.")
        if calibrator.prior != "plain":
            raise UnpriorError(
                f"{path} has a {calibrator.prior} prior, which needs the claims of a question; the server takes "
                f"calibrators with the plain prior (unprior fit without --prior)"
            )
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        return cls(name, calibrator, f"sha256:{digest[:16]}", side, (*differences.noted, *_untold(calibrator, here)))

    def record(self) -> dict[str, Any]:
        """What can be known about it."""
        fitted = self.calibrator
        return {
            "id": self.name,
            "object": "calibrator",
            "digest": self.digest,
            "version": fitted.parameters.version,
            "epsilon_cs": fitted.epsilon_cs,
            "retention": fitted.retention,
            "candidate_counts": list(fitted.candidate_counts_),
            "promise": None if fitted.certificate_ is None else fitted.certificate_.sentence,
            "caveats": list(self.caveats),
            "provenance": [record.record() for record in fitted.provenance_],
        }


@dataclass(frozen=True, slots=True)
class Calibrators:
    """All of a server; the first one decides unless a request names another."""

    known: Mapping[str, NamedCalibrator]

    @classmethod
    def load(cls, given: Sequence[str], engine: EngineInfo) -> Calibrators:
        """From ``NAME=PLACE`` or ``PLACE``; the embedded model brings its own where none is given."""
        pairs = [_named(text) for text in given]
        if not pairs and engine.name == NAME:
            try:
                return cls({PACKAGED: NamedCalibrator.load(PACKAGED, CALIBRATOR, engine)})
            except UnpriorError as error:  # nobody asked for it
                warn(f"the packaged calibrator is not used: {error}")
                return cls({})
        names = [name for name, _ in pairs]
        double = next((name for name in names if names.count(name) > 1), None)
        if double is not None:
            raise UnpriorError(f"--calibrator names {double!r} twice; give each file a name of its own, NAME=FILE")
        return cls({name: NamedCalibrator.load(name, path, engine) for name, path in pairs})

    def choose(self, name: str | None) -> NamedCalibrator | None:
        """The calibrator that a request asks for; None where the server has none."""
        if name is None:
            return next(iter(self.known.values()), None)
        if name not in self.known:
            have = ", ".join(self.known) or "none"
            raise refuse(
                f"unprior.calibrator: there is no calibrator of that name; this server has {have}",
                code="unknown_calibrator", param="unprior.calibrator",
            )  # fmt: skip
        return self.known[name]


def _untold(calibrator: SelectivePriorCalibrator, here: Provenance) -> list[str]:
    """What the calibrator knows of its scores and the engine does not tell of its own, so that nothing compares it."""
    names = ("weights", "precision")
    fitted = {name: {getattr(record, name) for record in calibrator.provenance_} - {None} for name in names}
    return [
        f"fitted with {name} {', '.join(sorted(map(str, fitted[name])))}, which the server behind does not tell"
        for name in names
        if fitted[name] and getattr(here, name) is None
    ]


def _named(text: str) -> tuple[str, Path]:
    name, equals, path = text.partition("=")
    if not equals:
        return Path(text).stem or text, Path(text)
    if not name or not path:
        raise UnpriorError(f"--calibrator {text!r}: write NAME=FILE")
    return name, Path(path)
