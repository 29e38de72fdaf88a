"""Figures of the studies, each a ``…Display.from_results`` that draws on axes and returns them."""

from unprior.evaluation.intervals import IntervalsDisplay
from unprior.plots.display import Display, side_by_side, task_name
from unprior.report.figures.attraction import AttractionDisplay
from unprior.report.figures.claim_orders import ClaimOrdersDisplay
from unprior.report.figures.frontier import FrontierDisplay
from unprior.report.figures.methods import MethodsDisplay
from unprior.report.figures.prior_agreement import PriorAgreementDisplay
from unprior.report.figures.prior_controls import PriorControlsDisplay
from unprior.report.figures.ranges import RangesDisplay
from unprior.report.figures.sizes import SizesDisplay
from unprior.report.figures.splits import SplitsDisplay
from unprior.report.figures.strengths import StrengthsDisplay
from unprior.report.figures.trade_offs import TradeOffsDisplay
from unprior.report.figures.variants import VariantsDisplay

__all__ = [
    "AttractionDisplay",
    "ClaimOrdersDisplay",
    "Display",
    "FrontierDisplay",
    "IntervalsDisplay",
    "MethodsDisplay",
    "PriorAgreementDisplay",
    "PriorControlsDisplay",
    "RangesDisplay",
    "SizesDisplay",
    "SplitsDisplay",
    "StrengthsDisplay",
    "TradeOffsDisplay",
    "VariantsDisplay",
    "side_by_side",
    "task_name",
]
