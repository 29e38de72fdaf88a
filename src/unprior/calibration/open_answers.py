"""Scores of open answers, brought to the scale of the method: a clipped prior, and one temperature for both scores.

The scores of whole answers spread far wider than those of options. Two steps bring them into range. The prior is
clipped at τ nats below its top: subtracting −30 would promote a string that nobody would write, only because it is
improbable without the image. After it, a candidate whose image score trails the best one by more than λ_max · τ can
never win. Then image and prior scores are divided by one constant T, so that the softmax of the image scores says how
often the model is right; entropies, margins and strengths then mean what they mean for options.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from unprior.calibration.stable import StableRows
from unprior.calibration.strength import most_probable
from unprior.errors import UnpriorError
from unprior.scores import ScoreTable
from unprior.scores.schema import BoolArray
from unprior.scores.table import FloatArray

TEMPERATURE = 2.0
"""T where none can be fitted, and the centre of what is expected before any row is seen: log T ~ N(log 2, 1)."""
_LIMITS = 1e-3, 1e3


@dataclass(frozen=True, slots=True)
class OpenAnswers:
    """How the scores of open answers are brought to the scale of the method.

    >>> from unprior import SelectivePriorCalibrator
    >>> SelectivePriorCalibrator(open_answers=OpenAnswers(clips=(5.0,), temperature=3.0))
    SelectivePriorCalibrator(open_answers=OpenAnswers(clips=(5.0,), temperature=3.0))
    """

    clips: tuple[float, ...] = (3.0, 5.0, 7.0)
    """Values of τ to choose from, in nats below the top of the prior; ``math.inf`` does not clip."""
    temperature: float | None = None
    """T; None fits it."""

    def check(self) -> None:
        """Refuse what cannot be fitted with.

        >>> OpenAnswers(clips=(5.0, 3.0)).check()
        Traceback (most recent call last):
            ...
        unprior.errors.UnpriorError: open_answers.clips is (5.0, 3.0), it must hold increasing positive numbers; ...
        """
        clips, given = self.clips, self.temperature
        fit = isinstance(clips, tuple) and len(clips) > 0 and all(map(_is_number, clips))
        if not fit or min(clips) <= 0 or list(clips) != sorted(set(clips)):
            raise UnpriorError(
                f"open_answers.clips is {clips!r}, it must hold increasing positive numbers; math.inf does not clip"
            )
        if given is not None and (not _is_number(given) or not _LIMITS[0] <= given <= _LIMITS[1]):
            raise UnpriorError(
                f"open_answers.temperature is {given!r}, it must be a number from {_LIMITS[0]:g} to {_LIMITS[1]:g}, or "
                f"None to fit it"
            )

    @property
    def middle(self) -> float:
        """The τ to take where none is chosen on data."""
        return self.clips[len(self.clips) // 2]

    def record(self) -> dict[str, Any]:
        """Plain values, for files; null in the place of infinity."""
        return {"clips": [_finite(clip) for clip in self.clips], "temperature": self.temperature}


DEFAULT = OpenAnswers()
"""Three τ to choose from, and a fitted T."""


@dataclass(frozen=True, slots=True)
class OpenScale:
    """The scale of open answers that was chosen: τ and T."""

    clip: float
    """τ: how far below its top the prior may lie, in nats; infinite where it is not clipped."""
    temperature: float
    """T: what both scores are divided by."""
    rows: int = 0
    """Rows that T was fitted on; 0 where it was given."""

    def apply(self, table: ScoreTable) -> ScoreTable:
        """The table with the scores of its open rows on this scale; other rows stay as they are.

        >>> rows = [{"pair_id": 1, "task": "open", "candidates": ["six", "five", "pear"], "original": "five",
        ...          "image_scores": [-1.0, -0.5, -4.0], "prior_scores": [-2.0, -0.5, -30.0]}]
        >>> scaled = OpenScale(clip=5.0, temperature=2.0).apply(ScoreTable.from_rows(rows, require_answers=False))
        >>> scaled.image_scores.tolist(), scaled.prior_scores.tolist()
        ([-0.5, -0.25, -2.0], [-1.0, -0.25, -2.75])
        """
        counts, starts = table.candidate_counts, table.offsets[:-1]
        own = np.repeat(table.is_open, counts)
        lowest = np.repeat(np.maximum.reduceat(table.prior_scores, starts) - self.clip, counts)
        prior = np.where(own, np.maximum(table.prior_scores, lowest) / self.temperature, table.prior_scores)
        image = np.where(own, table.image_scores / self.temperature, table.image_scores)
        return table.with_image_scores(image).with_prior_scores(prior)

    def record(self) -> dict[str, Any]:
        """Plain values, for files; null in the place of infinity."""
        return {"clip": _finite(self.clip), "temperature": self.temperature, "rows": self.rows}


def learnable(table: ScoreTable) -> BoolArray:
    """Rows of open questions that something can be learned from: two candidates or more, one of them right."""
    return table.is_open & table.is_covered & (table.candidate_counts > 1)


def refuse_unlearnable(rows: BoolArray, is_cf: BoolArray) -> None:
    """Refuse open questions of which nothing can be learned from any on one side: no harm, or no repair, could be seen.

    >>> refuse_unlearnable(np.array([True, False]), np.array([True, False]))
    Traceback (most recent call last):
        ...
    unprior.errors.UnpriorError: none of 1 open questions about commonsense images to fit on has its right answer ...
    """
    for side, name in ((is_cf, "counterfactual"), (~is_cf, "commonsense")):
        if rows[side].any():
            continue
        raise UnpriorError(
            f"none of {int(side.sum()):,} open questions about {name} images to fit on has its right answer among two "
            f"candidates or more. "
            f"Score with more candidates, check the answers, name other texts that are right as aliases, or leave the "
            f"open questions out (command line: score with --task closed)."
        )


def scaled_rows(table: ScoreTable, scale: OpenScale) -> StableRows:
    """Open rows as a calibrator works on them; nothing is learned from those that miss the right answer."""
    return StableRows(scale.apply(table), lacking=~learnable(table))


def fit_temperature(table: ScoreTable, rows: BoolArray, given: float | None) -> tuple[float, int]:
    """T, and how many rows it was fitted on: as given, or the most probable one for some rows of a table.

    It minimises the cross-entropy of the right answers under softmax(s_I / T), plus the weak expectation that T is
    about 2, without which three pairs that the model answers right would call for T = 0. Only image scores have a part
    in it, so it is the same for every τ.
    """
    if given is not None:
        return given, 0
    chosen = table.take(np.flatnonzero(rows & learnable(table)))
    if len(chosen) == 0:
        return TEMPERATURE, 0
    leads = [block.image - block.image[block.answer, np.arange(len(block.rows))] for block in chosen.blocks()]

    def losses(logs: FloatArray) -> FloatArray:
        total = 0.5 * logs**2
        for lead in leads:
            scaled = lead[:, :, None] / (TEMPERATURE * np.exp(logs))
            peak = scaled.max(axis=0)
            total = total + (peak + np.log(np.exp(scaled - peak).sum(axis=0))).sum(axis=0)
        return total

    return TEMPERATURE * most_probable(losses)[0], len(chosen)


def _is_number(value: Any) -> bool:
    if not isinstance(value, int | float) or isinstance(value, bool):
        return False
    return not math.isnan(value) if isinstance(value, float) else abs(value) < 10**9


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
