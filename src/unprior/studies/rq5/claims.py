"""Questions about two claims: both orders of every pair, what is fitted on them, what it changes, and its figure."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from itertools import product
from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np

from unprior.baselines.controls import ControlResult, run_controls
from unprior.benchmarks.forms import CLAIM_ORDERS, FITTED_FORM, FORMS
from unprior.calibration import SelectivePriorCalibrator
from unprior.errors import UnpriorError
from unprior.evaluation import Change, Share, compare, mcnemar, pair_bootstrap
from unprior.evaluation.metrics import correct
from unprior.evaluation.statistics import BOOTSTRAP_RESAMPLES, BOOTSTRAP_SEED
from unprior.plots.display import draw_zero, name_rows
from unprior.plots.panels import Panels
from unprior.plots.style import FigureStyle
from unprior.scores import ScoreTable
from unprior.scores.files import finite_or_none
from unprior.scores.schema import SIDES, BoolArray, IntArray
from unprior.scores.table import FloatArray
from unprior.studies.inputs import StudyInputs
from unprior.tables.format import format_changes, format_limit

if TYPE_CHECKING:
    from matplotlib.axes import Axes

CLAIM_SEED = 20260715
"""The paper's bootstrap seed for claims."""
CELLS = tuple(product(CLAIM_ORDERS, SIDES))
"""Claim orders and sides: the four questions about a pair in one form."""


_APART = 0.17
_MAX_NAME = 28  # letters of a row's name on one line


@dataclass(frozen=True, slots=True, eq=False)
class ClaimForm:
    """One question form: the rows of every pair in both claim orders and on both sides."""

    table: ScoreTable
    """May also hold rows of other forms."""
    pairs: tuple[Any, ...]
    rows: dict[tuple[str, str], IntArray]
    """Positions in the table by claim order and side, all in the order of the pairs."""

    def says(self, word: str, answers: IntArray, order: str, side: str) -> BoolArray:
        """For every pair: is this the answer in one claim order?"""
        words = np.array(self.table.candidate_names(answers), dtype=object)
        return np.asarray(words[self.rows[order, side]] == word, np.bool_)

    def consistent(self, answers: IntArray, side: str) -> BoolArray:
        """For every pair: does exchanging the claims turn yes into no, or no into yes?"""
        yes, no = ([self.says(word, answers, order, side) for order in CLAIM_ORDERS] for word in ("yes", "no"))
        return np.asarray((yes[0] & no[1]) | (no[0] & yes[1]))

    def right_twice(self, answers: IntArray, side: str) -> BoolArray:
        """For every pair: is the answer right in both claim orders?"""
        right = correct(self.table, answers)
        return np.asarray(np.logical_and(*(right[self.rows[order, side]] for order in CLAIM_ORDERS)))


def share_of(which: BoolArray) -> Share:
    """How many of the pairs are marked."""
    return Share(int(which.sum()), len(which))


def form_label(form: str) -> str:
    """The name of a question form for people.

    >>> form_label("reject-second")
    'Reject second'
    """
    return form.replace("-", " ").capitalize()


def read_claim(form: str | None, claim_order: str | None, example_id: str | None) -> tuple[str, str]:
    """Question form and claim order of one row.

    Tables of version 0.1.0 lack both columns. Their examples are named after form and order instead.

    >>> read_claim("choice", "ordinary-first", "12")
    ('choice', 'ordinary-first')
    >>> read_claim(None, None, "12-cf-reject-second-atypical-first")
    ('reject-second', 'atypical-first')
    """
    known = {f"-{name}-{order}": (name, order) for name, order in product(FORMS, CLAIM_ORDERS)}
    found = (form, claim_order)
    if found == (None, None) and example_id is not None:
        found = next((claim for end, claim in known.items() if example_id.endswith(end)), found)
    if found not in known.values():
        raise UnpriorError(
            f"example {example_id!r} has form {found[0]!r} and claim_order {found[1]!r}; the study needs one of "
            f"{', '.join(FORMS)} and one of {', '.join(CLAIM_ORDERS)}. `unprior score --variant forms` makes such rows"
        )
    return found  # type: ignore[return-value]  # it is one of the known ones


def _claims(table: ScoreTable) -> list[tuple[str, str]]:
    return [read_claim(*row) for row in zip(*map(table.column, ("form", "claim_order", "example_id")), strict=True)]


def claim_forms(table: ScoreTable) -> dict[str, ClaimForm]:
    """Sort the rows of a table into question forms, in the order of the paper."""
    places: dict[str, dict[Any, dict[tuple[str, str], int]]] = {form: {} for form in FORMS}
    rows = zip(_claims(table), table.column("pair_id"), table.column("side"), strict=True)
    for row, ((form, order), pair, side) in enumerate(rows):
        places[form].setdefault(pair, {})[order, side] = row
    found = {}
    for form, pairs in places.items():
        for pair, cells in pairs.items():
            if set(cells) != set(CELLS):
                raise UnpriorError(
                    f"pair {pair} does not have both images in both claim orders of the {form} form; score the variant "
                    f"`forms` of all pairs"
                )
        if pairs:
            at = {cell: np.array([cells[cell] for cells in pairs.values()], np.int64) for cell in CELLS}
            found[form] = ClaimForm(table, tuple(pairs), at)
    return found


def in_fitted_form(table: ScoreTable, split: str) -> ScoreTable:
    """The rows of one split that have the form that SPC is fitted on, in both claim orders."""
    part = table.where(split=split)
    chosen = np.array([form == FITTED_FORM for form, _ in _claims(part)], np.bool_)
    _check_fitted_form(chosen.any(), split)
    return part.take(chosen)


def fitted_form(test: ScoreTable) -> ClaimForm:
    """The form that SPC is fitted on, in test rows."""
    forms = claim_forms(test)
    _check_fitted_form(FITTED_FORM in forms, "test")
    return forms[FITTED_FORM]


def _check_fitted_form(found: bool | np.bool_, split: str) -> None:
    if not found:
        raise UnpriorError(
            f"no row of split {split} has the {FITTED_FORM} form, which SPC is fitted on; score the variant `forms` of "
            f"all pairs"
        )


@dataclass(frozen=True, slots=True, eq=False)
class FittedOnClaims:
    """SPC and the control, both chosen on the same development rows, and what they answer to test rows of all forms."""

    calibrator: SelectivePriorCalibrator
    test: ScoreTable
    spc: IntArray
    """What SPC answers to the test rows."""
    cfg: ControlResult
    names: dict[str, str]
    """SPC and the control as tables and sentences name them, by method."""
    warnings: tuple[str, ...]
    """A sentence that SPC abstains, if it does."""


def fit_on_claims(table: ScoreTable, epsilon: float) -> FittedOnClaims:
    """Fit on both claim orders of the fitted form, and answer all forms of the test pairs."""
    development, test = in_fitted_form(table, "dev"), table.where(split="test")
    calibrator = SelectivePriorCalibrator(epsilon_cs=epsilon).fit(development, split=None)
    (cfg,) = run_controls(development, test, calibrator=calibrator, names=["cfg-score"])
    decisions = calibrator.predict(test)
    names = {"spc": decisions.method, "cfg-score": f"{cfg.label} (ε = {format_limit(epsilon)})"}
    warnings = (f"{decisions.method} abstains: no setting is feasible on the development rows.",)
    abstains = decisions.settings is None
    return FittedOnClaims(calibrator, test, decisions.final_positions, cfg, names, warnings if abstains else ())


def claim_options(inputs: StudyInputs) -> dict[str, Any]:
    """Limit, resamples and seed of a study of claims.

    The seed is the paper's for claims, unless the user gave another than the paper's seed for everything else.
    """
    seed = CLAIM_SEED if inputs.seed == BOOTSTRAP_SEED else inputs.seed
    return {"epsilon": inputs.wide_epsilon, "resamples": inputs.resamples, "seed": seed}


@dataclass(frozen=True, slots=True)
class ClaimEffect:
    """Change of accuracy on one side, in one claim order or both together."""

    order: str | None
    """None for both together."""
    side: str
    change: Change
    low: float
    """Lower end of the interval of Δ, resampling pairs."""
    high: float
    p: float | None
    """Of the exact test; None for both orders together, where a pair counts twice."""

    @property
    def clear(self) -> bool:
        """Whether the interval excludes zero."""
        return self.low > 0 or self.high < 0

    def record(self) -> dict[str, Any]:
        """Plain numbers; what is undefined is None."""
        return {
            "order": self.order, "side": self.side, "delta": finite_or_none(self.change.delta),
            "low": finite_or_none(self.low), "high": finite_or_none(self.high), **asdict(self.change), "p": self.p,
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class Exchange:
    """Before and after correction on one side: what becomes of a pair when the claims change places."""

    side: str
    consistent: tuple[Share, ...]
    right_twice: tuple[Share, ...]

    def record(self) -> dict[str, Any]:
        """Plain shares."""
        return {
            f"{name}_{when}": finite_or_none(share.value)
            for name, shares in (("consistent", self.consistent), ("both_orders_right", self.right_twice))
            for when, share in zip(("before", "after"), shares, strict=True)
        }


def claim_effects(
    form: ClaimForm,
    answers: IntArray,
    chosen: BoolArray | None = None,
    *,
    resamples: int = BOOTSTRAP_RESAMPLES,
    seed: int = CLAIM_SEED,
) -> tuple[ClaimEffect, ...]:
    """Effects of answers on the chosen pairs: each claim order and side, then both orders together."""
    rows = {cell: at if chosen is None else at[chosen] for cell, at in form.rows.items()}
    count = len(rows[CELLS[0]])
    intervals = [(math.nan, math.nan)] * (len(CELLS) + len(SIDES))
    if count:

        def deltas(totals: FloatArray) -> FloatArray:
            both = totals[:, : len(SIDES)] + totals[:, len(SIDES) :]
            return np.concatenate([totals / count, both / (2 * count)], axis=1)

        gain = correct(form.table, answers).astype(np.float64) - correct(form.table, form.table.original_positions)
        gains = np.stack([gain[at] for at in rows.values()], axis=1)
        found = pair_bootstrap(gains, deltas, resamples=resamples, seed=seed)
        intervals = list(zip(found.low, found.high, strict=True))
    both = {(None, side): np.concatenate([rows[order, side] for order in CLAIM_ORDERS]) for side in SIDES}
    effects = []
    for ((order, side), at), interval in zip([*rows.items(), *both.items()], intervals, strict=True):
        change = compare(form.table.take(at), answers[at], side=None)
        p = None if order is None else mcnemar(change.repairs, change.harms).p_value
        effects.append(ClaimEffect(order, side, change, *interval, p))
    return tuple(effects)


def exchanges(form: ClaimForm, answers: IntArray) -> tuple[Exchange, ...]:
    """Consistency and joint accuracy before and after, by side."""
    given, measures = (form.table.original_positions, answers), (form.consistent, form.right_twice)
    return tuple(
        Exchange(side, *(tuple(share_of(measure(each, side)) for each in given) for measure in measures))
        for side in SIDES
    )


def effect_of(effects: Sequence[ClaimEffect], order: str | None, side: str) -> ClaimEffect:
    """One of the effects."""
    return next(effect for effect in effects if (effect.order, effect.side) == (order, side))


def by_order(effects: Sequence[ClaimEffect], side: str) -> str:
    """Δ in points with the ordinary and with the atypical claim first, separated by a slash."""
    first, second = (effect_of(effects, order, side).change.delta for order in CLAIM_ORDERS)
    return format_changes(first, second)


def draw_claim_orders(
    axes: Axes, style: FigureStyle, rows: Mapping[str, Sequence[ClaimEffect]], side: str, *, method: str, title: str
) -> None:
    """Rows such as question forms or methods; in each a dot per claim order with its interval."""
    looks = {CLAIM_ORDERS[0]: (style.method, "o", -_APART), CLAIM_ORDERS[1]: (style.control, "D", _APART)}
    draw_zero(axes, style, across=False)
    for place, effects in enumerate(rows.values()):
        for order, (colour, marker, shift) in looks.items():
            effect = effect_of(effects, order, side)
            if not math.isnan(effect.change.delta):
                axes.plot([100 * effect.low, 100 * effect.high], [place + shift] * 2, color=colour, linewidth=2.2)
                axes.plot(100 * effect.change.delta, place + shift, marker, color=colour, markersize=6.5,
                          markeredgecolor=style.paper)  # fmt: skip
            elif order == CLAIM_ORDERS[0]:
                axes.annotate("no pairs", (0, place), (6, 0), textcoords="offset points", va="center",
                              color=style.quiet, fontsize=8)  # fmt: skip
    for order, (colour, marker, _) in looks.items():
        name = order.replace("-first", " claim first")
        axes.plot([], [], marker, color=colour, markersize=6.5, linestyle="-", label=name)
    name_rows(axes, [fill(label, _MAX_NAME) for label in rows])
    axes.set(xlabel=f"Δ{side.upper()}{f' of {method}' if method else ''} (points)", title=title)
    axes.spines["left"].set_visible(False)
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.6 / _size(len(rows))[1]), ncols=2)


def _size(rows: int) -> tuple[float, float]:
    return 4.5, 1.25 + 0.42 * rows


def claim_panels(panels: Sequence[tuple[str, str, Mapping[str, Sequence[ClaimEffect]]]], method: str = "") -> Panels:
    """Panels (title, side, effects by row) on the same scale; ``method`` is named if it is that of all panels."""
    draws = [
        partial(draw_claim_orders, rows=effects, side=side, method=method, title=title)
        for title, side, effects in panels
    ]
    rows = max(len(effects) for _, _, effects in panels)
    return Panels(tuple(draws), *_size(rows), same_scale=True)
