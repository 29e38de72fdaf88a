"""Figures of the studies, each a ``…Display.from_results`` that draws on axes and returns them."""

from unprior.evaluation.intervals import IntervalsDisplay
from unprior.plots.display import Display, side_by_side, task_name
from unprior.report.figures.claim_orders import ClaimOrdersDisplay
from unprior.report.figures.intervals import IntervalsDisplay
from unprior.report.figures.methods import MethodsDisplay

__all__ = [
    "AttractionDisplay",
    "Display",
    "IntervalsDisplay",
    "MethodsDisplay",
    "side_by_side",
    "task_name",
]
