"""What a method changes in both claim orders, and what becomes of pairs whose claims change places."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from unprior.benchmarks.forms import CLAIM_ORDERS
from unprior.evaluation import Change, Share, mcnemar, pair_bootstrap
from unprior.evaluation.metrics import correct
from unprior.evaluation.statistics import BOOTSTRAP_RESAMPLES
from unprior.scores.files import finite_or_none
from unprior.scores.schema import BoolArray, IntArray
from unprior.scores.table import FloatArray
from unprior.studies.rq5.claims import CELLS, CLAIM_SEED, SIDES, ClaimForm


@dataclass(frozen=True, slots=True)
class Effect:
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
        """Whether the interval leaves zero out."""
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
) -> tuple[Effect, ...]:
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
    effects = [
        Effect(
            order, side, change, float(low[index]), float(high[index]), mcnemar(change.repairs, change.harms).p_value
        )
        for index, ((order, side), change) in enumerate(changes.items())
    ]
    for index, side in enumerate(SIDES, start=len(CELLS)):
        total = _sum([changes[order, side] for order in CLAIM_ORDERS])
        effects.append(Effect(None, side, total, float(low[index]), float(high[index]), None))
    return tuple(effects)


def _sum(changes: Sequence[Change]) -> Change:
    names = ("repairs", "harms", "changed", "total")
    return Change(**{name: sum(getattr(change, name) for change in changes) for name in names})


def exchanges(form: ClaimForm, answers: IntArray) -> tuple[Exchange, ...]:
    """Consistency and joint accuracy before and after, by side."""

    def share(which: BoolArray) -> Share:
        return Share(int(which.sum()), len(which))

    both = (form.table.original_positions, answers)
    return tuple(
        Exchange(
            side,
            (share(form.consistent(both[0], side)), share(form.consistent(both[1], side))),
            (share(form.right_twice(both[0], side)), share(form.right_twice(both[1], side))),
        )
        for side in SIDES
    )


def effect_of(effects: Sequence[Effect], order: str | None, side: str) -> Effect:
    """One of the effects."""
    return next(effect for effect in effects if (effect.order, effect.side) == (order, side))


def before_after(shares: tuple[Share, Share]) -> str:
    """Two shares as the paper writes them.

    >>> before_after((Share(103, 230), Share(176, 230)))
    '0.448→0.765'
    """
    return "→".join(f"{share.value:.3f}" for share in shares)
