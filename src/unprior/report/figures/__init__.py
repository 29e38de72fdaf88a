"""Figures of the studies, each a ``…Display.from_results`` that draws on axes and returns them."""

from unprior.plots.display import Display, side_by_side, task_name
from unprior.report.figures.claim_orders import ClaimOrdersDisplay
from unprior.report.figures.intervals import IntervalsDisplay
from unprior.report.figures.methods import MethodsDisplay
from unprior.report.figures.splits import SplitsDisplay

__all__ = [
    "AttractionDisplay",
    "ClaimOrdersDisplay",
    "Display",
    "IntervalsDisplay",
    "MethodsDisplay",
    "SplitsDisplay",
    "side_by_side",
    "task_name",
]
