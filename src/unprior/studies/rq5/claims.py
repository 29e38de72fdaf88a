"""Questions about two claims: both orders of every pair side by side, and what is fitted on them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from unprior.baselines.controls import ControlResult, run_controls
from unprior.benchmarks.forms import CLAIM_ORDERS, FORMS
from unprior.calibration import SelectivePriorCalibrator
from unprior.errors import UnpriorError
from unprior.evaluation.metrics import correct
from unprior.evaluation.statistics import BOOTSTRAP_SEED
from unprior.scores import ScoreTable
from unprior.scores.schema import BoolArray, IntArray
from unprior.studies.inputs import StudyInputs

CLAIM_SEED = 20260715
"""The paper's bootstrap seed for claims."""
FITTED_FORM = "contrastive"
"""The only form that development rows are used of."""
SIDES = ("cf", "cs")
ABSTAINS = "SPC abstains: no setting is feasible on the development rows."
CELLS = tuple((order, side) for order in CLAIM_ORDERS for side in SIDES)
"""Claim orders and sides: the four questions about a pair in one form."""


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
            if set(cells) != set(CELLS):
                raise UnpriorError(
                    f"pair {pair} does not have both images in both claim orders of the {form} form; score the variant "
                    f"`forms` of all pairs"
                )
    return {
        form: ClaimForm(
            form,
            table,
            tuple(pairs),
            {cell: np.array([cells[cell] for cells in pairs.values()], np.int64) for cell in CELLS},
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
    return FittedOnClaims(test, calibrator, calibrator.predict(test).final_positions, cfg)


def claim_seed(inputs: StudyInputs) -> int:
    """The paper's seed for claims, unless the user gave another than the paper's seed for everything else."""
    return CLAIM_SEED if inputs.seed == BOOTSTRAP_SEED else inputs.seed
