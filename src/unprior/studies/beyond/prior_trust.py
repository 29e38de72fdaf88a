"""Beyond the paper: does the prior follow the claims of a question, as far as text alone can tell?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from unprior.benchmarks.forms import CLAIM_ORDERS
from unprior.evaluation.prior_trust import PriorTrust, measure_trust
from unprior.scores import ScoreTable
from unprior.scores.schema import IntArray
from unprior.scores.table import FloatArray
from unprior.studies.result import StudyResult
from unprior.studies.rq5.claims import claim_forms
from unprior.studies.study import Study
from unprior.tables.model import Table


@dataclass(frozen=True, slots=True)
class PriorTrustStudy(StudyResult):
    """The prior of every form, from the text-only scores of test pairs.

    >>> from unprior.synthetic import synthesize_claims
    >>> [each.trusted for each in study_prior_trust(synthesize_claims().where(split="test")).trust.forms]
    [True, True, False, False]
    """

    trust: PriorTrust

    @property
    def table(self) -> Table:
        """Measures by question form."""
        return self.trust.table

    @property
    def sentences(self) -> tuple[str, ...]:
        """Which forms are to be trusted."""
        return self.trust.words

    def records(self) -> list[dict[str, Any]]:
        """One record per form."""
        return self.trust.records()


def study_prior_trust(test: ScoreTable) -> PriorTrustStudy:
    """Measure the prior of all forms; the image has no part in it."""
    prior = test.prior_scores
    yes = np.array([1.0 if candidates[0] == "yes" else -1.0 for candidates in test.candidate_lists.to_pylist()])
    odds = yes * (prior[test.offsets[:-1]] - prior[test.offsets[:-1] + 1])
    forms: dict[str, tuple[FloatArray, FloatArray]] = {}
    rows: IntArray = np.zeros(0, dtype=np.int64)
    for name, form in claim_forms(test).items():
        first, second = (form.rows[order, "cf"] for order in CLAIM_ORDERS)
        forms[name], rows = (odds[first], odds[second]), first
    views = [dict(entry or ()) for entry in test.column("views")]
    names = ("options-text-first", "options-text-second")
    options = None
    if all(name in views[row] for row in rows.tolist() for name in names):
        scored = np.array([[views[row][name] for name in names] for row in rows.tolist()])
        options = (scored[:, 0, 0] - scored[:, 0, 1] - scored[:, 1, 0] + scored[:, 1, 1]) / 2
    return PriorTrustStudy(measure_trust(forms, options=options, ordinary_first=np.ones(len(rows))))


STUDY = Study(
    name="prior-trust",
    title="Trust in the prior, from text alone",
    asks="Does the prior of a question about two claims follow the claims, or its wording?",
    how="Text-only scores of the test questions in every form and both claim orders; with canonical scores also the "
    "prior between the two claims as options. `unprior doctor --prior` measures the same before anything is scored.",
    needs=("forms",),
    wants=("canonical",),
    run=lambda inputs: study_prior_trust(inputs.variants["forms"].where(split="test")),
)
