"""The experiments of the paper: each a function from decisions or a score table to a small frozen result."""

from unprior.baselines.controls.proposals import fixed_strength_answers
from unprior.studies.common.trade_off import TradeOff, trade_offs
from unprior.studies.common.variants import Variant, Variants
from unprior.studies.finished import FinishedStudy, run_studies
from unprior.studies.inputs import StudyInputs
from unprior.studies.registry import STUDIES, choose_studies
from unprior.studies.result import StudyResult
from unprior.studies.rq1.attraction import Attraction, study_attraction
from unprior.studies.rq2.cost import Costs, study_cost
from unprior.studies.rq2.main_comparison import MainComparison, study_main
from unprior.studies.rq2.method_versions import study_method_versions
from unprior.studies.rq2.methods import MethodRow, Methods, study_methods
from unprior.studies.rq2.revis_direction import AnswerShifts, study_answer_shifts
from unprior.studies.rq2.settings import SelectedSettings, study_settings
from unprior.studies.rq2.significance import Significance, study_significance
from unprior.studies.rq3.alternative_priors import AlternativePriors, study_alternative_priors
from unprior.studies.rq3.components import Components, study_components
from unprior.studies.rq3.development_size import DevelopmentSize, study_development_size
from unprior.studies.rq3.frontier import Frontier, study_frontier
from unprior.studies.rq3.joint_fitting import JointFitting, study_joint_fitting
from unprior.studies.rq3.less_or_shifted import LessOrShifted, study_less_or_shifted
from unprior.studies.rq3.paired_fitting import PairedFitting, study_paired_fitting
from unprior.studies.rq3.prior_agreement import PriorAgreement, study_prior_agreement
from unprior.studies.rq3.prior_controls import PriorControls, study_prior_controls
from unprior.studies.rq3.repairs import Repairs, study_repairs
from unprior.studies.rq3.revision_rules import RevisionRules, study_revision_rules
from unprior.studies.rq3.score_normalization import SumOrMean, study_sum_or_mean
from unprior.studies.rq3.stable_ranges import Ranges, study_ranges
from unprior.studies.rq3.strengths import Strengths, study_strengths
from unprior.studies.rq3.support_conditions import SupportConditions, study_support_conditions
from unprior.studies.rq4.external import Transfers, study_external
from unprior.studies.rq4.held_out import HeldOut, study_held_out
from unprior.studies.rq4.option_orders import OptionOrders, study_option_orders
from unprior.studies.rq4.repeated_splits import RepeatedSplits, study_repeated_splits
from unprior.studies.rq4.transfer import SubsetTransfer, study_transfer
from unprior.studies.rq5.answer_directions import AnswerDirections, study_answer_directions
from unprior.studies.rq5.claim_order import ClaimOrder, study_claim_order
from unprior.studies.rq5.image_free_policies import ImageFreePolicies, study_image_free_policies
from unprior.studies.rq5.prior_direction import PriorDirection, study_prior_direction
from unprior.studies.rq5.prior_favours_ordinary import PriorFavours, study_prior_favours
from unprior.studies.rq5.question_forms import QuestionForms, study_question_forms
from unprior.studies.study import Study
from unprior.tables.model import Table

__all__ = [
    "STUDIES",
    "AlternativePriors",
    "AnswerDirections",
    "AnswerShifts",
    "Attraction",
    "ClaimOrder",
    "Components",
    "Costs",
    "DevelopmentSize",
    "FinishedStudy",
    "Frontier",
    "HeldOut",
    "ImageFreePolicies",
    "JointFitting",
    "LessOrShifted",
    "MainComparison",
    "MethodRow",
    "Methods",
    "OptionOrders",
    "PairedFitting",
    "PriorAgreement",
    "PriorControls",
    "PriorDirection",
    "PriorFavours",
    "QuestionForms",
    "Ranges",
    "Repairs",
    "RepeatedSplits",
    "RevisionRules",
    "SelectedSettings",
    "Significance",
    "Strengths",
    "Study",
    "StudyInputs",
    "StudyResult",
    "SubsetTransfer",
    "SumOrMean",
    "SupportConditions",
    "Table",
    "TradeOff",
    "Transfers",
    "Variant",
    "Variants",
    "choose_studies",
    "fixed_strength_answers",
    "run_studies",
    "study_alternative_priors",
    "study_answer_directions",
    "study_answer_shifts",
    "study_attraction",
    "study_claim_order",
    "study_components",
    "study_cost",
    "study_development_size",
    "study_external",
    "study_frontier",
    "study_held_out",
    "study_image_free_policies",
    "study_joint_fitting",
    "study_less_or_shifted",
    "study_main",
    "study_method_versions",
    "study_methods",
    "study_option_orders",
    "study_paired_fitting",
    "study_prior_agreement",
    "study_prior_controls",
    "study_prior_direction",
    "study_prior_favours",
    "study_question_forms",
    "study_ranges",
    "study_repairs",
    "study_repeated_splits",
    "study_revision_rules",
    "study_settings",
    "study_significance",
    "study_strengths",
    "study_sum_or_mean",
    "study_support_conditions",
    "study_transfer",
    "trade_offs",
]
