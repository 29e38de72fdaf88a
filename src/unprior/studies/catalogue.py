"""All studies by name, in the order of the paper."""

from __future__ import annotations

from collections.abc import Sequence

from unprior.errors import UnpriorError, did_you_mean
from unprior.studies import (
    alternative_priors,
    answer_directions,
    answer_shifts,
    attraction,
    claim_order,
    components,
    cost,
    development_size,
    external,
    frontier,
    held_out,
    image_free,
    joint_fitting,
    less_or_shifted,
    main,
    method_versions,
    option_orders,
    paired_fitting,
    prior_agreement,
    prior_controls,
    prior_direction,
    prior_favours,
    question_forms,
    ranges,
    repairs,
    repeated_splits,
    revision_rules,
    settings,
    significance,
    strengths,
    sum_or_mean,
    support_conditions,
    transfer,
)
from unprior.studies.study import QUESTIONS, Study

STUDIES: dict[str, Study] = {
    study.name: study
    for study in (
        attraction.STUDY,
        main.STUDY,
        method_versions.STUDY,
        answer_shifts.STUDY,
        significance.STUDY,
        settings.STUDY,
        cost.STUDY,
        components.STUDY,
        prior_controls.STUDY,
        alternative_priors.STUDY,
        prior_agreement.STUDY,
        paired_fitting.STUDY,
        sum_or_mean.STUDY,
        repairs.STUDY,
        frontier.STUDY,
        revision_rules.STUDY,
        less_or_shifted.STUDY,
        strengths.STUDY,
        support_conditions.STUDY,
        development_size.STUDY,
        joint_fitting.STUDY,
        ranges.STUDY,
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
        prior_favours.STUDY,
        image_free.STUDY,
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
