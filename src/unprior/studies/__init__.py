"""The experiments of the paper: each a function from decisions or a score table to a small frozen result."""

from unprior.baselines.controls.proposals import fixed_strength_answers
from unprior.studies.answer_shifts import AnswerShifts, study_answer_shifts
from unprior.studies.attraction import Attraction, study_attraction
from unprior.studies.components import Components, study_components
from unprior.studies.cost import Costs, study_cost
from unprior.studies.frontier import Frontier, study_frontier
from unprior.studies.main import MainComparison, study_main
from unprior.studies.method_versions import study_method_versions
from unprior.studies.methods import MethodRow, Methods, study_methods
from unprior.studies.ranges import Ranges, study_ranges
from unprior.studies.significance import Significance, study_significance
from unprior.studies.strengths import Strengths, study_strengths
from unprior.studies.suite import Studies, StudyResult, run_studies
from unprior.studies.trade_off import TradeOff, trade_offs

__all__ = [
    "AnswerShifts",
    "Attraction",
    "Components",
    "Costs",
    "Frontier",
    "MainComparison",
    "MethodRow",
    "Methods",
    "Ranges",
    "Significance",
    "Strengths",
    "Studies",
    "StudyResult",
    "TradeOff",
    "fixed_strength_answers",
    "run_studies",
    "study_answer_shifts",
    "study_attraction",
    "study_components",
    "study_cost",
    "study_frontier",
    "study_main",
    "study_method_versions",
    "study_methods",
    "study_ranges",
    "study_significance",
    "study_strengths",
    "trade_offs",
]
