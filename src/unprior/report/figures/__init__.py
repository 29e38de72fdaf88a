"""Figures of the studies, each a ``…Display.from_results`` that draws on axes and returns them."""

from unprior.plots.display import Display, side_by_side, task_name
from unprior.report.figures.attraction import AttractionDisplay
from unprior.report.figures.frontier import FrontierDisplay
from unprior.report.figures.intervals import IntervalsDisplay
from unprior.report.figures.methods import MethodsDisplay
from unprior.report.figures.prior_agreement import PriorAgreementDisplay
from unprior.report.figures.prior_controls import PriorControlsDisplay
from unprior.report.figures.ranges import RangesDisplay
from unprior.report.figures.sizes import SizesDisplay
from unprior.report.figures.strengths import StrengthsDisplay
from unprior.report.figures.trade_offs import TradeOffsDisplay
from unprior.report.figures.variants import VariantsDisplay

__all__ = [
    "AttractionDisplay",
    "Display",
    "FrontierDisplay",
    "IntervalsDisplay",
    "MethodsDisplay",
    "PriorAgreementDisplay",
    "PriorControlsDisplay",
    "RangesDisplay",
    "SizesDisplay",
    "StrengthsDisplay",
    "TradeOffsDisplay",
    "VariantsDisplay",
    "side_by_side",
    "task_name",
]
