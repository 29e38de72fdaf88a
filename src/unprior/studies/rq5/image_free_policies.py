"""RQ5: could a rule that never looks at the image do the same?"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np

from unprior.baselines.controls.control import ControlContext
from unprior.benchmarks.forms import FITTED_FORM
from unprior.calibration import SelectivePriorCalibrator
from unprior.scores import ScoreTable
from unprior.scores.schema import IntArray
from unprior.studies.common.trade_off import TradeOff, trade_offs
from unprior.studies.result import StudyResult
from unprior.studies.rq5.claims import in_fitted_form
from unprior.studies.study import Study
from unprior.tables.format import format_limit, format_list, format_points, highest
from unprior.tables.model import Table

POLICIES = {
    "keep": "Keep the original answer",
    "always-yes": "Always yes",
    "always-no": "Always no",
    "reverse": "Reverse yes and no",
}
"""Rules that look at neither image nor scores, by name."""
_PLACES = {"development": "development", "test": "test", "all_forms": "test, all forms"}


@dataclass(frozen=True, slots=True)
class Policy:
    """One rule on development and test rows."""

    name: str
    development: TradeOff
    test: TradeOff
    """Test pairs in the fitted form."""
    all_forms: TradeOff
    """Test pairs in all forms."""
    feasible: bool
    """Whether it keeps ΔCF ≥ 0 and ΔCS ≥ −ε on the development rows."""
    selected: bool

    @property
    def label(self) -> str:
        """The name for people."""
        return POLICIES[self.name]


@dataclass(frozen=True, slots=True)
class ImageFreePolicies(StudyResult):
    """Four rules without image, and which of them the development rows select.

    >>> from unprior.synthetic import synthesize_claims
    >>> study_image_free_policies(synthesize_claims()).selected.name
    'keep'
    """

    policies: tuple[Policy, ...]
    epsilon: float

    @property
    def selected(self) -> Policy:
        """The rule of choice."""
        return next(policy for policy in self.policies if policy.selected)

    @property
    def table(self) -> Table:
        """Rules by ΔCF/ΔCS and U on development and test."""
        rows = []
        for policy in self.policies:
            results: list[TradeOff] = [getattr(policy, place) for place in _PLACES]
            cells = chain(*((result.changes, format_points(result.utility)) for result in results))
            rows.append((policy.label, *cells, "yes" if policy.feasible else "no"))
        headers = [part for place in _PLACES.values() for part in (f"ΔCF/ΔCS {place}", f"U {place}")]
        return Table.plain(
            "Rules that do not look at the image",
            ("Rule", *headers, "Feasible"),
            rows,
            f"Both claim orders of the {FITTED_FORM} form, then of all forms; feasible: ΔCF ≥ 0 and ΔCS ≥ −ε "
            f"on the development rows, ε = {format_limit(self.epsilon)}. U = ΔCF + 0.5 ΔCS in points. Bold: selected.",
            bold=[index for index, policy in enumerate(self.policies) if policy.selected],
        )

    @property
    def sentences(self) -> tuple[str, ...]:
        """What is selected, and what every other rule would have given on the test pairs."""
        utility = {policy.label.lower(): policy.test.utility for policy in self.policies}
        own, best = self.selected.label.lower(), [f"“{label}”" for label in highest(utility)]
        others = [f"{format_points(value)} with “{label}”" for label, value in utility.items() if label != own]
        return (
            f"With ε = {format_limit(self.epsilon)} the development rows select “{own}”, which changes CF/CS accuracy "
            f"on the test pairs by {self.selected.test.changes} points (U {format_points(utility[own])}).",
            f"U on the test pairs is {format_list(others)}; it is highest with {format_list(best)}.",
        )

    def records(self) -> list[dict[str, Any]]:
        """One record per rule and place."""
        return [
            {"policy": policy.name, "rows": place, "feasible": policy.feasible, "selected": policy.selected}
            | getattr(policy, place).record()
            for policy in self.policies
            for place in _PLACES
        ]


def policy_answers(table: ScoreTable, policy: str) -> IntArray:
    """What a rule answers to yes/no questions, as candidate positions.

    >>> row = {"pair_id": 1, "side": "cf", "task": "qa", "candidates": ["yes", "no"], "answer": "no",
    ...        "image_scores": [-0.6, -0.9], "prior_scores": [-0.1, -2.4], "original": "yes"}
    >>> table = ScoreTable.from_rows([row, row | {"original": None, "pair_id": 2}])
    >>> {policy: policy_answers(table, policy).tolist() for policy in POLICIES}
    {'keep': [0, -1], 'always-yes': [0, 0], 'always-no': [1, 1], 'reverse': [1, -1]}
    """
    yes = np.array([labels.index("yes") for labels in table.column("candidates")], np.int64)
    rules = {
        "keep": table.original_positions,
        "always-yes": yes,
        "always-no": 1 - yes,
        "reverse": np.where(table.original_positions < 0, -1, 1 - table.original_positions),
    }
    return rules[policy]


def study_image_free_policies(forms: ScoreTable, *, epsilon: float = 0.10) -> ImageFreePolicies:
    """Choose between rules without image by SPC's objective and constraint, on the rows that SPC is fitted on."""
    parts = in_fitted_form(forms, "dev"), in_fitted_form(forms, "test"), forms.where(split="test")
    data = ControlContext(*parts[:2], SelectivePriorCalibrator(epsilon_cs=epsilon))
    answers = [[policy_answers(part, name) for part in parts] for name in POLICIES]
    chosen, _, _ = data.adopt([given[0] for given in answers])
    policies = []
    for index, (name, given) in enumerate(zip(POLICIES, answers, strict=True)):
        known, new, every = (trade_offs(*each)[0] for each in zip(parts, given, strict=True))
        _, feasible, _ = data.adopt(given[:1])
        policies.append(Policy(name, known, new, every, feasible, index == chosen))
    return ImageFreePolicies(tuple(policies), epsilon)


STUDY = Study(
    name="image-free-policies",
    title="Rules that do not look at the image",
    asks="Could a rule based only on the answer word reproduce the gain?",
    how="Keep the original answer, always yes, always no, or reverse yes and no; chosen on both claim orders of the "
    "contrastive form of the development pairs by SPC's objective and constraint (ε = {wide_epsilon}).",
    needs=("forms",),
    run=lambda inputs: study_image_free_policies(inputs.variants["forms"], epsilon=inputs.wide_epsilon),
)
