"""Questions about two claims: both orders of every pair side by side, and what a method changes in each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from unprior.baselines.controls import ControlResult, run_controls
from unprior.benchmarks.forms import CLAIM_ORDERS, FORMS
from unprior.calibration import SelectivePriorCalibrator
from unprior.errors import UnpriorError
from unprior.evaluation import Change, Share, mcnemar, pair_bootstrap
from unprior.evaluation.metrics import correct
from unprior.evaluation.statistics import BOOTSTRAP_RESAMPLES, BOOTSTRAP_SEED
from unprior.scores import ScoreTable
from unprior.scores.schema import BoolArray, IntArray
from unprior.scores.table import FloatArray
from unprior.studies.inputs import StudyInputs
from unprior.studies.result import listed, percent

CLAIM_SEED = 20260715
"""The paper's bootstrap seed for claims."""
FITTED_FORM = "contrastive"
"""The only form that development rows are used of."""
SIDES = ("cf", "cs")
ABSTAINS = "SPC abstains: no setting is feasible on the development rows."
_CELLS = tuple((order, side) for order in CLAIM_ORDERS for side in SIDES)


@dataclass(frozen=True, slots=True, eq=False)
class ClaimForm:
    """One question form: the rows of every pair in both claim orders and on both sides."""

    form: str
    table: ScoreTable
    """Perhaps with rows of other forms."""
    pairs: tuple[Any, ...]
    rows: dict[tuple[str, str], IntArray]
    """Positions in the table by claim order and side, all in the order of the pairs."""

    def consistent(self, answers: IntArray, side: str) -> BoolArray:
        """For every pair: does exchanging the claims turn yes into no, or no into yes?"""
        said = np.array(self.table.candidate_names(answers), dtype=object)
        first, second = (said[self.rows[order, side]] for order in CLAIM_ORDERS)
        return np.array([{one, other} == {"yes", "no"} for one, other in zip(first, second, strict=True)], np.bool_)

    def right_twice(self, answers: IntArray, side: str) -> BoolArray:
        """For every pair: is the answer right in both claim orders?"""
        right = correct(self.table, answers)
        first, second = (right[self.rows[order, side]] for order in CLAIM_ORDERS)
        return np.asarray(first & second)

    def says(self, word: str, answers: IntArray, order: str, side: str) -> BoolArray:
        """For every pair: is this the answer in one claim order?"""
        said = np.array(self.table.candidate_names(answers), dtype=object)
        return np.asarray(said[self.rows[order, side]] == word, np.bool_)


def parse_claim(example_id: str | None) -> tuple[str, str]:
    """Question form and claim order from the name of an example.

    >>> parse_claim("12-cf-reject-second-atypical-first")
    ('reject-second', 'atypical-first')
    """
    for form in FORMS:
        for order in CLAIM_ORDERS:
            if example_id is not None and example_id.endswith(f"-{form}-{order}"):
                return form, order
    raise UnpriorError(
        f"example {example_id!r} does not tell its question form and claim order; `unprior score --variant forms` "
        f"names examples such as 12-cf-contrastive-ordinary-first"
    )


def claim_forms(table: ScoreTable) -> dict[str, ClaimForm]:
    """Sort the rows of a table into question forms, in the order of the paper."""
    places: dict[str, dict[Any, dict[tuple[str, str], int]]] = {}
    columns = (table.column(name) for name in ("example_id", "pair_id", "side"))
    for row, (name, pair, side) in enumerate(zip(*columns, strict=True)):
        form, order = parse_claim(name)
        places.setdefault(form, {}).setdefault(pair, {})[order, side] = row
    for form, pairs in places.items():
        for pair, cells in pairs.items():
            if set(cells) != set(_CELLS):
                raise UnpriorError(
                    f"pair {pair} does not have both images in both claim orders of the {form} form; score the variant "
                    f"`forms` of all pairs"
                )
    return {
        form: ClaimForm(
            form,
            table,
            tuple(pairs),
            {cell: np.array([cells[cell] for cells in pairs.values()], np.int64) for cell in _CELLS},
        )
        for form in FORMS
        for pairs in [places.get(form, {})]
        if pairs
    }


def fitted_form(table: ScoreTable) -> ClaimForm:
    """The rows of the fitted form."""
    forms = claim_forms(table)
    if FITTED_FORM not in forms:
        raise UnpriorError(f"no test row has the {FITTED_FORM} form; score the variant `forms` of all pairs")
    return forms[FITTED_FORM]


def form_development(table: ScoreTable) -> ScoreTable:
    """Development rows of the fitted form, in both claim orders."""
    development = table.where(split="dev")
    names = development.column("example_id")
    rows = np.array([parse_claim(name)[0] == FITTED_FORM for name in names], np.bool_)
    if not rows.any():
        raise UnpriorError(
            f"no development row has the {FITTED_FORM} form, which fitting needs; score the variant `forms`"
        )
    return development.take(rows)


@dataclass(frozen=True, slots=True, eq=False)
class FittedOnClaims:
    """SPC and the control, both chosen on the same development rows, and what they answer to test rows of all forms."""

    test: ScoreTable
    calibrator: SelectivePriorCalibrator
    spc: IntArray
    cfg: ControlResult


def fit_on_claims(table: ScoreTable, epsilon: float) -> FittedOnClaims:
    """Fit on both claim orders of the fitted form, and answer all forms of the test pairs."""
    development, test = form_development(table), table.where(split="test")
    calibrator = SelectivePriorCalibrator(epsilon_cs=epsilon).fit(development, split=None)
    (cfg,) = run_controls(development, test, calibrator=calibrator, names=["cfg-score"])
    return FittedOnClaims(test, calibrator, calibrator.predict(test).final, cfg)


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


@dataclass(frozen=True, slots=True)
class Exchange:
    """Before and after correction on one side: what becomes of a pair when the claims change places."""

    side: str
    consistent: tuple[Share, Share]
    right_twice: tuple[Share, Share]


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
    before, after = correct(form.table, form.table.original), correct(form.table, answers)
    rows = {cell: form.rows[cell][members] for cell in _CELLS}
    changes = {
        cell: Change(
            repairs=int((~before & after)[at].sum()),
            harms=int((before & ~after)[at].sum()),
            changed=int((answers != form.table.original)[at].sum()),
            total=count,
        )
        for cell, at in rows.items()
    }
    low, high = (np.full(len(_CELLS) + len(SIDES), np.nan) for _ in range(2))
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
    for index, side in enumerate(SIDES, start=len(_CELLS)):
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

    both = (form.table.original, answers)
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


def claim_seed(inputs: StudyInputs) -> int:
    """The paper's seed for claims, unless the user gave another than the paper's seed for everything else."""
    return CLAIM_SEED if inputs.seed == BOOTSTRAP_SEED else inputs.seed


def extremes(shares: Mapping[str, float]) -> str:
    """Where shares are highest and lowest, in words that are right for ties.

    >>> extremes({"a": 0.5, "b": 1.0, "c": 1.0})
    'is highest for b and c (100.0 %) and lowest for a (50.0 %)'
    >>> extremes({"a": 0.5, "b": 0.5})
    'is 50.0 % for a and b'
    """
    high, low = max(shares.values()), min(shares.values())
    highest, lowest = ([name for name, share in shares.items() if share == value] for value in (high, low))
    if high == low:
        return f"is {percent(high)} % for {listed(highest)}"
    return f"is highest for {listed(highest)} ({percent(high)} %) and lowest for {listed(lowest)} ({percent(low)} %)"


def before_after(shares: tuple[Share, Share]) -> str:
    """Two shares as the paper writes them.

    >>> before_after((Share(103, 230), Share(176, 230)))
    '0.448→0.765'
    """
    return "→".join(f"{share.value:.3f}" for share in shares)
