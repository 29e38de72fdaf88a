"""Questions about two claims: both orders of every pair side by side, and what is fitted on them."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from unprior.baselines.controls import ControlResult, run_controls
from unprior.benchmarks.forms import CLAIM_ORDERS, FITTED_FORM, FORMS
from unprior.calibration import Decisions, SelectivePriorCalibrator
from unprior.errors import UnpriorError
from unprior.evaluation import Share
from unprior.evaluation.metrics import correct
from unprior.evaluation.statistics import BOOTSTRAP_SEED
from unprior.scores import ScoreTable
from unprior.scores.schema import SIDES, BoolArray, IntArray
from unprior.studies.inputs import StudyInputs
from unprior.tables.format import format_limit

CLAIM_SEED = 20260715
"""The paper's bootstrap seed for claims."""
CELLS = tuple(product(CLAIM_ORDERS, SIDES))
"""Claim orders and sides: the four questions about a pair in one form."""


@dataclass(frozen=True, slots=True, eq=False)
class ClaimForm:
    """One question form: the rows of every pair in both claim orders and on both sides."""

    form: str
    table: ScoreTable
    """May also hold rows of other forms."""
    pairs: tuple[Any, ...]
    rows: dict[tuple[str, str], IntArray]
    """Positions in the table by claim order and side, all in the order of the pairs."""

    def consistent(self, answers: IntArray, side: str) -> BoolArray:
        """For every pair: does exchanging the claims turn yes into no, or no into yes?"""
        words = np.array(self.table.candidate_names(answers), dtype=object)
        first, second = (words[self.rows[order, side]] for order in CLAIM_ORDERS)
        return np.array([{one, other} == {"yes", "no"} for one, other in zip(first, second, strict=True)], np.bool_)

    def right_twice(self, answers: IntArray, side: str) -> BoolArray:
        """For every pair: is the answer right in both claim orders?"""
        right = correct(self.table, answers)
        first, second = (right[self.rows[order, side]] for order in CLAIM_ORDERS)
        return np.asarray(first & second)

    def says(self, word: str, answers: IntArray, order: str, side: str) -> BoolArray:
        """For every pair: is this the answer in one claim order?"""
        words = np.array(self.table.candidate_names(answers), dtype=object)
        return np.asarray(words[self.rows[order, side]] == word, np.bool_)


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
    return [
        read_claim(*row)
        for row in zip(*(table.column(name) for name in ("form", "claim_order", "example_id")), strict=True)
    ]


def claim_forms(table: ScoreTable) -> dict[str, ClaimForm]:
    """Sort the rows of a table into question forms, in the order of the paper."""
    places: dict[str, dict[Any, dict[tuple[str, str], int]]] = {form: {} for form in FORMS}
    rows = zip(_claims(table), table.column("pair_id"), table.column("side"), strict=True)
    for row, ((form, order), pair, side) in enumerate(rows):
        places[form].setdefault(pair, {})[order, side] = row
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
        for form, pairs in places.items()
        if pairs
    }


def in_fitted_form(table: ScoreTable, split: str) -> ScoreTable:
    """The rows of one split that have the form that SPC is fitted on, in both claim orders."""
    part = table.where(split=split)
    chosen = np.array([form == FITTED_FORM for form, _ in _claims(part)], np.bool_)
    if not chosen.any():
        raise _no_fitted_form(split)
    return part.take(chosen)


def fitted_form(test: ScoreTable) -> ClaimForm:
    """The form that SPC is fitted on, in test rows."""
    forms = claim_forms(test)
    if FITTED_FORM not in forms:
        raise _no_fitted_form("test")
    return forms[FITTED_FORM]


def _no_fitted_form(split: str) -> UnpriorError:
    return UnpriorError(
        f"no row of split {split} has the {FITTED_FORM} form, which SPC is fitted on; score the variant `forms` of all "
        f"pairs"
    )


@dataclass(frozen=True, slots=True, eq=False)
class FittedOnClaims:
    """SPC and the control, both chosen on the same development rows, and what they answer to test rows of all forms."""

    calibrator: SelectivePriorCalibrator
    decisions: Decisions
    cfg: ControlResult

    @property
    def test(self) -> ScoreTable:
        """Test rows of all forms."""
        return self.decisions.table

    @property
    def spc(self) -> IntArray:
        """What SPC answers."""
        return self.decisions.final_positions

    @property
    def names(self) -> dict[str, str]:
        """SPC and the control as tables and sentences name them, by method."""
        epsilon = format_limit(self.calibrator.epsilon_cs)
        return {"spc": self.decisions.method, "cfg-score": f"{self.cfg.label} (ε = {epsilon})"}

    @property
    def warnings(self) -> tuple[str, ...]:
        """A sentence that SPC abstains, if it does."""
        abstains = self.decisions.settings is None
        return (f"{self.decisions.method} abstains: no setting is feasible on the development rows.",) * abstains


def fit_on_claims(table: ScoreTable, epsilon: float) -> FittedOnClaims:
    """Fit on both claim orders of the fitted form, and answer all forms of the test pairs."""
    development, test = in_fitted_form(table, "dev"), table.where(split="test")
    calibrator = SelectivePriorCalibrator(epsilon_cs=epsilon).fit(development, split=None)
    (cfg,) = run_controls(development, test, calibrator=calibrator, names=["cfg-score"])
    return FittedOnClaims(calibrator, calibrator.predict(test), cfg)


def claim_options(inputs: StudyInputs) -> dict[str, Any]:
    """Limit, resamples and seed of a study of claims.

    The seed is the paper's for claims, unless the user gave another than the paper's seed for everything else.
    """
    seed = CLAIM_SEED if inputs.seed == BOOTSTRAP_SEED else inputs.seed
    return {"epsilon": inputs.wide_epsilon, "resamples": inputs.resamples, "seed": seed}
