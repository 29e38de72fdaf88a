"""Metrics of repair and retention, and the paired statistics behind them."""

from unprior.evaluation.comparison import Evaluation, SideResult, TaskResult, evaluate
from unprior.evaluation.metrics import Change, Metrics, Share, compare, measure, prior_winners, utility
from unprior.evaluation.statistics import (
    PAPER_FAMILIES,
    BootstrapResult,
    HolmResult,
    McNemarResult,
    holm,
    holm_over_models,
    mcnemar,
    pair_bootstrap,
)

__all__ = [
    "PAPER_FAMILIES",
    "BootstrapResult",
    "Change",
    "Evaluation",
    "HolmResult",
    "McNemarResult",
    "Metrics",
    "Share",
    "SideResult",
    "TaskResult",
    "compare",
    "evaluate",
    "holm",
    "holm_over_models",
    "mcnemar",
    "measure",
    "pair_bootstrap",
    "prior_winners",
    "utility",
]
