"""What a method changes in both claim orders, what becomes of pairs whose claims change places, and its figure."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from textwrap import fill
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from unprior.benchmarks.forms import CLAIM_ORDERS
from unprior.evaluation import Change, Share, mcnemar, pair_bootstrap
from unprior.evaluation.metrics import correct
from unprior.evaluation.statistics import BOOTSTRAP_RESAMPLES
from unprior.plots.display import Display
from unprior.plots.panels import Draw, Panels
from unprior.plots.style import LIGHT, FigureStyle
from unprior.scores.files import finite_or_none
from unprior.scores.schema import SIDES, BoolArray, IntArray
from unprior.scores.table import FloatArray
from unprior.studies.rq5.claims import CELLS, CLAIM_SEED, ClaimForm, share_of
from unprior.tables.format import format_changes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_APART = 0.17
_MAX_NAME = 28  # letters of a row's name on one line


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
        change = self.change
        return {
            "order": self.order, "side": self.side, "delta": finite_or_none(change.delta),
            "low": finite_or_none(self.low), "high": finite_or_none(self.high), "repairs": change.repairs,
            "harms": change.harms, "changed": change.changed, "total": change.total, "p": self.p,
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class Exchange:
    """Before and after correction on one side: what becomes of a pair when the claims change places."""

    side: str
    consistent: tuple[Share, Share]
    right_twice: tuple[Share, Share]

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
    members = np.ones(len(form.pairs), np.bool_) if chosen is None else chosen
    count = int(members.sum())
    before, after = correct(form.table, form.table.original_positions), correct(form.table, answers)
    rows = {cell: form.rows[cell][members] for cell in CELLS}
    changes = {
        cell: Change(
            repairs=int((~before & after)[at].sum()),
            harms=int((before & ~after)[at].sum()),
            changed=int((answers != form.table.original_positions)[at].sum()),
            total=count,
        )
        for cell, at in rows.items()
    }
    low, high = (np.full(len(CELLS) + len(SIDES), np.nan) for _ in range(2))
    if count:
        gains = np.stack([after[at].astype(np.float64) - before[at] for at in rows.values()], axis=1)

        def deltas(totals: FloatArray) -> FloatArray:
            both = totals[:, : len(SIDES)] + totals[:, len(SIDES) :]
            return np.concatenate([totals / count, both / (2 * count)], axis=1)

        found = pair_bootstrap(gains, deltas, resamples=resamples, seed=seed)
        low, high = np.array(found.low), np.array(found.high)
    intervals = zip(low.tolist(), high.tolist(), strict=True)
    effects = [
        ClaimEffect(*cell, change, *next(intervals), mcnemar(change.repairs, change.harms).p_value)
        for cell, change in changes.items()
    ]
    for side in SIDES:
        total = _sum([changes[order, side] for order in CLAIM_ORDERS])
        effects.append(ClaimEffect(None, side, total, *next(intervals), None))
    return tuple(effects)


def _sum(changes: Sequence[Change]) -> Change:
    names = ("repairs", "harms", "changed", "total")
    return Change(**{name: sum(getattr(change, name) for change in changes) for name in names})


def exchanges(form: ClaimForm, answers: IntArray) -> tuple[Exchange, ...]:
    """Consistency and joint accuracy before and after, by side."""

    def shares(measure: str, side: str) -> tuple[Share, Share]:
        before, after = (
            share_of(getattr(form, measure)(given, side)) for given in (form.table.original_positions, answers)
        )
        return before, after

    return tuple(Exchange(side, shares("consistent", side), shares("right_twice", side)) for side in SIDES)


def effect_of(effects: Sequence[ClaimEffect], order: str | None, side: str) -> ClaimEffect:
    """One of the effects."""
    return next(effect for effect in effects if (effect.order, effect.side) == (order, side))


def by_order(effects: Sequence[ClaimEffect], side: str) -> str:
    """Δ in points with the ordinary and with the atypical claim first, separated by a slash."""
    first, second = (effect_of(effects, order, side).change.delta for order in CLAIM_ORDERS)
    return format_changes(first, second)


@dataclass(frozen=True, slots=True)
class ClaimLine:
    """One dot with its interval, in points; NaN where there are no pairs."""

    label: str
    order: str
    delta: float
    low: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimOrdersDisplay(Display):
    """Rows such as question forms or methods; in each a dot per claim order.

    >>> from unprior.studies.rq5.question_forms import study_question_forms
    >>> from unprior.synthetic import synthesize_claims
    >>> rows = study_question_forms(synthesize_claims(), resamples=100).of("spc")
    >>> display = ClaimOrdersDisplay.from_results({row.label: row.effects for row in rows})
    >>> [(line.label, line.order) for line in display.lines[:2]]
    [('Contrastive', 'ordinary-first'), ('Contrastive', 'atypical-first')]
    """

    lines: tuple[ClaimLine, ...]

    @classmethod
    def from_results(
        cls,
        results: Mapping[str, Sequence[ClaimEffect]],
        *,
        side: str = "cf",
        method: str = "",
        title: str = "",
        ax: Axes | None = None,
        style: FigureStyle = LIGHT,
    ) -> Self:
        """Draw effects by row label on ``ax``, or on a new figure; ``method`` is named if it is that of all rows."""
        lines = tuple(
            ClaimLine(label, order, 100 * effect.change.delta, 100 * effect.low, 100 * effect.high)
            for label, effects in results.items()
            for order in CLAIM_ORDERS
            for effect in [effect_of(effects, order, side)]
        )
        with style.applied():
            axes = ax or style.new_axes(*_size(len(results)))
            display = cls(axes_=axes, style=style, lines=lines)
            display._draw(list(results), f"Δ{side.upper()}{f' of {method}' if method else ''} (points)", title)
        return display

    def _draw(self, labels: list[str], quantity: str, title: str) -> None:
        axes, style = self.axes_, self.style
        axes.axvline(0, color=style.quiet, linewidth=0.8)
        looks = {CLAIM_ORDERS[0]: (style.method, "o", -_APART), CLAIM_ORDERS[1]: (style.control, "D", _APART)}
        for line in self.lines:
            colour, marker, shift = looks[line.order]
            height = labels.index(line.label) + shift
            if math.isnan(line.delta):
                if line.order == CLAIM_ORDERS[0]:
                    axes.annotate("no pairs", (0, height + _APART), (6, 0), textcoords="offset points", va="center",
                                  color=style.quiet, fontsize=8)  # fmt: skip
                continue
            axes.plot([line.low, line.high], [height, height], color=colour, linewidth=2.2)
            axes.plot(line.delta, height, marker, color=colour, markersize=6.5, markeredgecolor=style.paper)
        for order, (colour, marker, _) in looks.items():
            name = order.replace("-first", " claim first")
            axes.plot([], [], marker, color=colour, markersize=6.5, linestyle="-", label=name)
        axes.set_yticks(range(len(labels)), [fill(label, _MAX_NAME) for label in labels])
        axes.set(ylim=(len(labels) - 0.5, -0.5), xlabel=quantity, title=title)
        axes.tick_params(axis="y", length=0)
        axes.grid(visible=False, axis="y")
        axes.spines["left"].set_visible(False)
        axes.margins(x=0.08)
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.6 / _size(len(labels))[1]), ncols=2)


def _size(rows: int) -> tuple[float, float]:
    return 4.5, 1.25 + 0.42 * rows


def claim_panels(panels: Sequence[tuple[str, str, Mapping[str, Sequence[ClaimEffect]]]], method: str = "") -> Panels:
    """Panels (title, side, effects by row) on the same scale; ``method`` is named if it is that of all panels."""

    def panel(title: str, side: str, effects: Mapping[str, Sequence[ClaimEffect]]) -> Draw:
        return lambda axes, style: ClaimOrdersDisplay.from_results(
            effects, side=side, method=method, title=title, ax=axes, style=style
        )

    rows = max(len(effects) for _, _, effects in panels)
    return Panels(tuple(panel(*each) for each in panels), *_size(rows), same_scale=True)
