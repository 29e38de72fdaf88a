"""A prior that survives the wording of a question about two claims.

A yes/no question about two claims can be asked in many forms and in both claim orders, and a model's prior may follow
the form instead of the claims. ``symmetric`` takes the half difference of the prior between both claim orders of the
asked form. ``canonical`` asks one fixed form in both claim orders, with and without the image, and believes its prior
only where the prior between the two claims as options A and B has the same sign. With d(a, b) the log-odds of yes when
claim a comes first, x the claim that is asked about first and y the other:

    I = ½ [d_I(x, y) − d_I(y, x)],  P = ½ [d_P(x, y) − d_P(y, x)],  m = ½ [δ(x, y) − δ(y, x)]

The candidates yes (x) and no (y) get the image scores ±I/2 and the prior scores ±P/2. A constant that is added to both
claim orders, such as a preference for the word yes, cancels.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from unprior.errors import UnpriorError, did_you_mean, format_option, warn
from unprior.scores import ScoreTable
from unprior.scores.schema import BoolArray, IntArray
from unprior.scores.table import FloatArray

Prior = Literal["plain", "symmetric", "canonical"]
"""How the prior of two-claim questions is taken: as asked, over both claim orders, or in one form and both orders."""
PRIORS: tuple[Prior, ...] = get_args(Prior)
MOST_STRENGTH = 1.0
"""Cap of λ on canonical scores; a larger strength subtracts more than the prior."""
SWAPPED = "swapped"
CANONICAL_VIEWS = tuple(
    f"{kind}-{order}" for kind in ("canonical-image", "canonical-text", "options-text") for order in ("first", "second")
)
_YES_NO = ("yes", "no")


@dataclass(frozen=True, slots=True)
class StableRows:
    """Rows with the scores that a calibrator works on."""

    table: ScoreTable
    """With the stable scores in place of the asked ones, and in strict mode the answers that follow from them."""
    claims: BoolArray | None = None
    """Rows with stable scores; None if the prior is plain."""
    trusted: BoolArray | None = None
    """Rows whose prior may be subtracted; None if all may be."""
    most_strength: float | None = None
    """The cap of the strength of rows with stable scores; None without one of their own."""
    asked: IntArray | None = None
    """Positions of the answers to the questions as they were asked, where the table has others."""
    lacking: BoolArray | None = None
    """Rows that nothing is learned from: yes/no rows without what the prior needs, which are never revised either, and
    open rows that miss the right answer or have one candidate."""

    def take(self, rows: BoolArray) -> StableRows:
        """Some of the rows."""
        marks = (None if each is None else each[rows] for each in (self.claims, self.trusted, self.lacking))
        claims, trusted, lacking = marks
        asked = None if self.asked is None else self.asked[rows]
        return StableRows(self.table.take(rows), claims, trusted, self.most_strength, asked, lacking)

    def to_learn_from(self) -> StableRows:
        """The rows that a strength may be fitted on."""
        return self if self.lacking is None or not self.lacking.any() else self.take(~self.lacking)

    def limits(self, rows: IntArray) -> FloatArray | None:
        """The cap of the strength of some rows; None without one of their own."""
        if self.claims is None or self.most_strength is None:
            return None
        return np.where(self.claims[rows], self.most_strength, np.inf)

    def may_revise(self, rows: IntArray) -> BoolArray | None:
        """Which of some rows may be revised."""
        return None if self.trusted is None else self.trusted[rows]


def stabilise(table: ScoreTable, prior: Prior, *, strict: bool = False, complete: bool = False) -> StableRows:
    """The scores of a table as a calibrator with this prior works on them.

    Parameters
    ----------
    table
        Rows whose ``views`` hold what the prior needs, see `unprior score --prior`.
    prior
        ``plain``, ``symmetric`` or ``canonical``.
    strict
        With ``canonical``: start from the answer that the image supports in the canonical form, not from the one to the
        question as it was asked.
    complete
        Refuse a table whose yes/no rows all lack what the prior needs, and warn of some that do. Such rows are never
        revised.
    """
    if prior == "plain":
        return StableRows(table)
    needed = (SWAPPED,) if prior == "symmetric" else CANONICAL_VIEWS
    views = [dict(entry or ()) for entry in table.column("views")]
    asked = [
        tuple(candidates) in (_YES_NO, _YES_NO[::-1]) and not is_open
        for candidates, is_open in zip(table.candidate_lists.to_pylist(), table.is_open.tolist(), strict=True)
    ]
    has = np.array(
        [yes_no and all(name in entry for name in needed) for yes_no, entry in zip(asked, views, strict=True)]
    )
    lacking = np.array(asked) & ~has
    if complete and lacking.any():
        told = (
            f"{int(lacking.sum()):,} of {sum(asked):,} yes/no rows were not scored for {format_option('prior', prior)}"
        )
        if not has.any():
            raise UnpriorError(
                f"{told}; score questions that name their two claims with `unprior score --prior {prior}`"
            )
        warn(f"{told}, because they do not name two claims; nothing is learned from them, and they are never revised")
    scored = {name: _log_odds(views, has, name) for name in needed}
    image, weight = table.image_scores.copy(), table.prior_scores.copy()
    cells = table.offsets[:-1][has]
    # Candidates may stand in either order; +1 where yes comes first.
    sign = np.array([1.0 if candidates[0] == "yes" else -1.0 for candidates in table.candidate_lists.to_pylist()])[has]
    own = sign * (weight[cells] - weight[cells + 1])
    if prior == "symmetric":
        _place(weight, cells, sign * (own - scored[SWAPPED]) / 2)
        return StableRows(table.with_prior_scores(weight), has, ~lacking, lacking=lacking)
    evidence, preference, options = (
        (scored[f"{kind}-first"] - scored[f"{kind}-second"]) / 2
        for kind in ("canonical-image", "canonical-text", "options-text")
    )
    _place(image, cells, sign * evidence)
    _place(weight, cells, sign * preference)
    trusted = ~lacking
    trusted[has] = np.sign(preference) * np.sign(options) > 0
    stable = table.with_image_scores(image).with_prior_scores(weight)
    if strict:
        answers = list(table.original)
        for row, yes in zip(np.flatnonzero(has).tolist(), (evidence > 0).tolist(), strict=True):
            answers[row] = "yes" if yes else "no"
        stable = stable.with_column("original", answers)
    return StableRows(stable, has, trusted, MOST_STRENGTH, table.original_positions if strict else None, lacking)


def _log_odds(views: Sequence[Mapping[str, Sequence[float]]], rows: BoolArray, name: str) -> FloatArray:
    """First minus second score of a view: yes against no, or option A against B."""
    chosen = [views[row][name] for row in np.flatnonzero(rows).tolist()]
    return np.array([first - second for first, second in chosen], dtype=np.float64)


def _place(scores: FloatArray, cells: IntArray, difference: FloatArray) -> None:
    """Put ±difference/2 where the two scores of some rows stand."""
    scores[cells], scores[cells + 1] = difference / 2, -difference / 2


def check_prior(prior: object) -> str:
    """Refuse a prior that is none.

    >>> check_prior("median")
    Traceback (most recent call last):
        ...
    unprior.errors.UnpriorError: prior='median' (command line: --prior median): choose plain, symmetric or canonical
    """
    if not isinstance(prior, str) or prior not in PRIORS:
        like = did_you_mean(str(prior), PRIORS)
        known = f"{', '.join(PRIORS[:-1])} or {PRIORS[-1]}"
        raise UnpriorError(f"{format_option('prior', prior)}: choose {known}{like}")
    return prior


def check_strict(strict: object, prior: str) -> None:
    """Refuse to be strict without canonical scores.

    >>> check_strict(True, "plain")
    Traceback (most recent call last):
        ...
    unprior.errors.UnpriorError: strict=True (command line: --strict) goes with prior='canonical' (command line: ...
    """
    if not isinstance(strict, bool | np.bool_):
        raise UnpriorError(f"strict is {strict!r}, it must be True or False")
    if strict and prior != "canonical":
        raise UnpriorError(f"{format_option('strict', True)} goes with {format_option('prior', 'canonical')}")
