"""All studies by name, in the order of the paper."""

from __future__ import annotations

from collections.abc import Sequence

from unprior.errors import UnpriorError, did_you_mean
from unprior.studies.rq1 import attraction
from unprior.studies.rq2 import cost, main_comparison, method_versions, revis_direction, settings, significance
from unprior.studies.rq3 import (
    alternative_priors,
    components,
    development_size,
    frontier,
    joint_fitting,
    less_or_shifted,
    paired_fitting,
    prior_agreement,
    prior_controls,
    repairs,
    revision_rules,
    score_normalization,
    stable_ranges,
    strengths,
    support_conditions,
)
from unprior.studies.rq4 import external, held_out, option_orders, repeated_splits, transfer
from unprior.studies.rq5 import (
    answer_directions,
    claim_order,
    image_free_policies,
    prior_direction,
    prior_favours_ordinary,
    question_forms,
)
from unprior.studies.study import QUESTIONS, Study

STUDIES: dict[str, Study] = {
    study.name: study
    for study in (
        attraction.STUDY,
        main_comparison.STUDY,
        method_versions.STUDY,
        revis_direction.STUDY,
        significance.STUDY,
        settings.STUDY,
        cost.STUDY,
        components.STUDY,
        prior_controls.STUDY,
        alternative_priors.STUDY,
        prior_agreement.STUDY,
        paired_fitting.STUDY,
        score_normalization.STUDY,
        repairs.STUDY,
        frontier.STUDY,
        revision_rules.STUDY,
        less_or_shifted.STUDY,
        strengths.STUDY,
        support_conditions.STUDY,
        development_size.STUDY,
        joint_fitting.STUDY,
        stable_ranges.STUDY,
        held_out.CATEGORIES,
        held_out.SUBCATEGORIES,
        repeated_splits.STUDY,
        option_orders.STUDY,
        external.STUDY,
        transfer.STUDY,
        answer_directions.STUDY,
        claim_order.STUDY,
        prior_direction.STUDY,
        question_forms.STUDY,
        prior_favours_ordinary.STUDY,
        image_free_policies.STUDY,
    )
}
"""Every study."""


def choose_studies(names: Sequence[str]) -> tuple[Study, ...]:
    """Studies by name, by research question, or all; in the order of the paper.

    >>> [study.name for study in choose_studies(["rq1"])]
    ['attraction']
    """
    known = ("all", *QUESTIONS, *STUDIES)
    for name in names:
        if name not in known:
            like = did_you_mean(name, known)
            raise UnpriorError(
                f"no study {name!r}{like}; choose all, {', '.join(QUESTIONS)}, or some of {', '.join(STUDIES)}"
            )
    return tuple(study for study in STUDIES.values() if {"all", study.question, study.name} & set(names))
