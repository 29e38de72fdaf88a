"""The calibrator that comes with the embedded model, for questions that are asked as it was fitted."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from unprior.embedded import CALIBRATOR, NAME
from unprior.engines.protocol import EngineInfo
from unprior.errors import UnpriorError, UnpriorNote, format_option, warn
from unprior.scoring.plan import engine_provenance

if TYPE_CHECKING:
    from unprior.calibration import SelectivePriorCalibrator


def packaged_calibrator(
    engine: EngineInfo, side: int | None = None, kinds: Iterable[str] = (), *, force: bool = False
) -> SelectivePriorCalibrator | None:
    """The calibrator that comes with a model; None where there is none.

    One that was fitted on scores made in another way, for instance with another wording, is left out with a note: the
    user did not ask for it.

    Parameters
    ----------
    engine
        A loaded model; only ``embedded`` has a calibrator in the package.
    side
        Side of the square that images are brought to.
    kinds
        How questions will be worded: ``mc``, ``qa``, ``open``.
    force
        Take it all the same.

    >>> from unprior import load_engine
    >>> packaged_calibrator(load_engine("embedded")).retention
    'certified'
    """
    if engine.name != NAME:
        return None
    made = engine_provenance(engine, side, kinds)
    if made.weights is None:  # a server may call any model so
        return None
    from unprior.calibration import SelectivePriorCalibrator

    try:
        calibrator = SelectivePriorCalibrator.load(CALIBRATOR)
    except UnpriorError as error:
        raise UnpriorError(
            f"the calibrator of the embedded model is damaged in this installation ({error}); install unprior again, "
            f"or ask with --no-calibrator"
        ) from None
    refused = calibrator.differences([made]).refused
    if refused and not force:
        told = f"The packaged calibrator is left out, it was fitted with {'; '.join(refused)}"
        warn(UnpriorNote(f"{told}; {format_option('force', True)} applies it all the same."))
        return None
    return calibrator
