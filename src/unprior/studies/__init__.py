"""The experiments of the paper: each a function from decisions or a score table to a small frozen result."""

from unprior.baselines.controls.proposals import fixed_strength_answers
from unprior.studies.alternative_priors import AlternativePriors, study_alternative_priors
from unprior.studies.answer_directions import AnswerDirections, study_answer_directions
from unprior.studies.answer_shifts import AnswerShifts, study_answer_shifts
from unprior.studies.attraction import Attraction, study_attraction
from unprior.studies.catalogue import STUDIES, choose_studies
from unprior.studies.claim_order import ClaimOrder, study_claim_order
from unprior.studies.components import Components, study_components
from unprior.studies.cost import Costs, study_cost
from unprior.studies.development_size import DevelopmentSize, study_development_size
from unprior.studies.external import Transfers, study_external
from unprior.studies.frontier import Frontier, study_frontier
from unprior.studies.held_out import HeldOut, study_held_out
from unprior.studies.image_free import ImageFreePolicies, study_image_free_policies
from unprior.studies.inputs import StudyInputs
from unprior.studies.joint_fitting import JointFitting, study_joint_fitting
from unprior.studies.less_or_shifted import LessOrShifted, study_less_or_shifted
from unprior.studies.main import MainComparison, study_main
from unprior.studies.method_versions import study_method_versions
from unprior.studies.methods import MethodRow, Methods, study_methods
from unprior.studies.option_orders import OptionOrders, study_option_orders
from unprior.studies.paired_fitting import PairedFitting, study_paired_fitting
from unprior.studies.prior_agreement import PriorAgreement, study_prior_agreement
from unprior.studies.prior_controls import PriorControls, study_prior_controls
from unprior.studies.prior_direction import PriorDirection, study_prior_direction
from unprior.studies.prior_favours import PriorFavours, study_prior_favours
from unprior.studies.question_forms import QuestionForms, study_question_forms
from unprior.studies.ranges import Ranges, study_ranges
from unprior.studies.repairs import Repairs, study_repairs
from unprior.studies.repeated_splits import RepeatedSplits, study_repeated_splits
from unprior.studies.result import ResultTable, StudyResult
from unprior.studies.revision_rules import RevisionRules, study_revision_rules
from unprior.studies.settings import SelectedSettings, study_settings
from unprior.studies.significance import Significance, study_significance
from unprior.studies.strengths import Strengths, study_strengths
from unprior.studies.study import Study
from unprior.studies.suite import Studies, run_studies
from unprior.studies.sum_or_mean import SumOrMean, study_sum_or_mean
from unprior.studies.support_conditions import SupportConditions, study_support_conditions
from unprior.studies.trade_off import TradeOff, trade_offs
from unprior.studies.transfer import SubsetTransfer, study_transfer
from unprior.studies.variants import Variant, Variants

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
    "ResultTable",
    "RevisionRules",
    "SelectedSettings",
    "Significance",
    "Strengths",
    "Studies",
    "Study",
    "StudyInputs",
    "StudyResult",
    "SubsetTransfer",
    "SumOrMean",
    "SupportConditions",
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
