"""The scale of open answers in a calibrator file: everything that follows from the rest of the file is checked.

T rests on scores that the file does not hold, so a value within its range has to be believed, and so has the number of
rows it was fitted on, and which τ the counts of a fit belong to. What else is told about the scale follows from the
parameters, the certificate, or the counts of what every setting does.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from unprior.calibration.file_certificate import CertificatePart
from unprior.calibration.file_parts import Count, Positive, StrictModel
from unprior.calibration.open_answers import TEMPERATURE, OpenAnswers, OpenScale
from unprior.calibration.state import FittedState
from unprior.calibration.strength import LARGEST_FOUND
from unprior.errors import UnpriorError


class ScalePart(StrictModel):
    """The scale of open answers."""

    clip: Positive | None
    """Null where the prior is not clipped."""
    temperature: Positive
    rows: Count

    def build(self) -> OpenScale:
        """The scale that was saved."""
        return OpenScale(math.inf if self.clip is None else self.clip, self.temperature, self.rows)


def check_scales(
    parts: Sequence[ScalePart], offered: OpenAnswers, development_rows: int, certificate: CertificatePart | None
) -> None:
    """Refuse scales that no fit with these parameters leaves behind.

    ``parts`` are the chosen scale and those of the fits with other values of τ.
    """
    scales = [part.build() for part in parts]
    wanted = sorted(offered.clips) if certificate is None else [offered.middle]
    if sorted(scale.clip for scale in scales) != wanted:
        raise ValueError("the values of τ are not those that the parameters offer")
    if len({(scale.temperature, scale.rows) for scale in scales}) > 1:
        raise ValueError("T must be the same for all values of τ")
    temperature, rows = scales[0].temperature, scales[0].rows
    if offered.temperature is not None:
        if (temperature, rows) != (offered.temperature, 0):
            raise ValueError("T is not the one that the parameters give")
    elif rows == 0:
        if certificate is None or temperature != TEMPERATURE:
            raise ValueError(f"a T that was fitted on no row is {TEMPERATURE:g}, and comes with a certificate only")
    elif not 1 / LARGEST_FOUND <= temperature / TEMPERATURE <= LARGEST_FOUND:
        raise ValueError(f"no fit finds a T of {temperature:g}")
    elif certificate is None and rows != development_rows:
        raise ValueError("T must be fitted on the rows that the strength was fitted on")
    elif certificate is not None and (rows > development_rows or not certificate.strength_pairs):
        raise ValueError("T was fitted on more rows than there are, or on none")


def check_choice(state: FittedState) -> None:
    """Refuse a state of open questions whose τ or settings are not those that its counts lead to."""
    if state.certificate is not None:
        return  # it counts harms, and is checked by itself
    fits = (state, *state.other_clips)
    if any(each.outcomes is None for each in fits):
        raise _not_chosen("it does not hold what every setting does to open questions")
    again = state.reselect(state.parameters.epsilon_cs)
    if _choices(again) != _choices(state):
        raise _not_chosen("τ and the settings for open questions are not those that its counts lead to")


def _choices(state: FittedState) -> list[object]:
    return [(each.scale, each.selection) for each in (state, *state.other_clips)]


def _not_chosen(reason: str) -> UnpriorError:
    return UnpriorError(f"not a valid calibrator: {reason}. Fit it again with `unprior fit`.")
