"""The experiments of the paper and what goes beyond it; ``unprior.studies.registry`` lists them.

A study is a module such as ``unprior.studies.rq1.attraction``: import its functions, results and figure from there.
"""

from typing import Any

from unprior.studies.by_model import ByModel
from unprior.studies.finished import FinishedStudy, run_studies
from unprior.studies.inputs import StudyInputs
from unprior.studies.registry import STUDIES, choose_studies
from unprior.studies.result import StudyResult
from unprior.studies.study import Study

__all__ = [
    "STUDIES",
    "ByModel",
    "FinishedStudy",
    "Study",
    "StudyInputs",
    "StudyResult",
    "choose_studies",
    "run_studies",
]

_MOVED = {
    "AlternativePriors": "rq3.alternative_priors", "AnswerDirections": "rq5.answer_directions",
    "Attraction": "rq1.attraction", "ClaimOrder": "rq5.claim_order", "Components": "rq3.components",
    "DevelopmentSize": "rq3.development_size", "Frontier": "rq3.frontier", "HeldOut": "rq4.held_out",
    "ImageFreePolicies": "rq5.image_free_policies", "JointFitting": "rq3.joint_fitting",
    "LessOrShifted": "rq3.less_or_shifted", "MainComparison": "rq2.main_comparison", "MethodRow": "rq2.methods",
    "Methods": "rq2.methods", "OptionOrders": "rq4.option_orders", "PairedFitting": "rq3.paired_fitting",
    "PriorAgreement": "rq3.prior_agreement", "PriorControls": "rq3.prior_controls",
    "PriorDirection": "rq5.prior_direction", "PriorFavours": "rq5.prior_favours_ordinary",
    "QuestionForms": "rq5.question_forms", "Ranges": "rq3.stable_ranges", "Repairs": "rq3.repairs",
    "RepeatedSplits": "rq4.repeated_splits", "RevisionRules": "rq3.revision_rules", "Strengths": "rq3.strengths",
    "SubsetTransfer": "rq4.transfer", "SumOrMean": "rq3.score_normalization",
    "SupportConditions": "rq3.support_conditions", "TradeOff": "common.trade_off", "Transfers": "rq4.external",
    "Variant": "common.variants", "Variants": "common.variants", "study_alternative_priors": "rq3.alternative_priors",
    "study_answer_directions": "rq5.answer_directions", "study_attraction": "rq1.attraction",
    "study_claim_order": "rq5.claim_order", "study_components": "rq3.components",
    "study_development_size": "rq3.development_size", "study_external": "rq4.external",
    "study_frontier": "rq3.frontier", "study_held_out": "rq4.held_out",
    "study_image_free_policies": "rq5.image_free_policies", "study_joint_fitting": "rq3.joint_fitting",
    "study_less_or_shifted": "rq3.less_or_shifted", "study_main": "rq2.main_comparison",
    "study_methods": "rq2.methods", "study_option_orders": "rq4.option_orders",
    "study_paired_fitting": "rq3.paired_fitting", "study_prior_agreement": "rq3.prior_agreement",
    "study_prior_controls": "rq3.prior_controls", "study_prior_direction": "rq5.prior_direction",
    "study_prior_favours": "rq5.prior_favours_ordinary", "study_question_forms": "rq5.question_forms",
    "study_ranges": "rq3.stable_ranges", "study_repairs": "rq3.repairs",
    "study_repeated_splits": "rq4.repeated_splits", "study_revision_rules": "rq3.revision_rules",
    "study_strengths": "rq3.strengths", "study_sum_or_mean": "rq3.score_normalization",
    "study_support_conditions": "rq3.support_conditions", "study_transfer": "rq4.transfer",
    "trade_offs": "common.trade_off",
}  # fmt: skip


def __getattr__(name: str) -> Any:
    """Names that callers still import from here, until all of them name the module."""
    from importlib import import_module

    if name not in _MOVED:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"unprior.studies.{_MOVED[name]}"), name)
