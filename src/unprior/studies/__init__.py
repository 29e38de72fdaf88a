"""The experiments of the paper: each a function from decisions or a score table to a small frozen result."""

from unprior.baselines.controls.proposals import fixed_strength_answers
from unprior.studies.attraction import Attraction, study_attraction
from unprior.studies.components import Components, study_components
from unprior.studies.frontier import Frontier, study_frontier
from unprior.studies.methods import MethodRow, Methods, study_methods
from unprior.studies.ranges import Ranges, study_ranges
from unprior.studies.strengths import Strengths, study_strengths
from unprior.studies.suite import Studies, StudyResult, run_studies
from unprior.studies.trade_off import TradeOff, trade_offs

__all__ = [
    "Attraction",
    "Components",
    "Frontier",
    "MethodRow",
    "Methods",
    "Ranges",
    "Strengths",
    "Studies",
    "StudyResult",
    "TradeOff",
    "fixed_strength_answers",
    "run_studies",
    "study_attraction",
    "study_components",
    "study_frontier",
    "study_methods",
    "study_ranges",
    "study_strengths",
    "trade_offs",
]
