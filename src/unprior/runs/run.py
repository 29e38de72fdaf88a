"""What is checked before a run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from unprior.benchmarks.pairs import development_pairs, refuse_unsound_questions
from unprior.runs.result import FILES, RunResult, check_splits
from unprior.scores.pairs import few_pairs

if TYPE_CHECKING:
    from unprior.benchmarks.schema import Benchmark

__all__ = ["FILES", "RunResult", "check_benchmark"]


def check_benchmark(benchmark: Benchmark, epsilon_cs: float | None = None) -> list[str]:
    """Refuse a benchmark that cannot be calibrated and judged, before anything is computed; returns what to mind."""
    check_splits({example.split for example in benchmark}, {example.side for example in benchmark})
    refuse_unsound_questions(benchmark)
    pairs = development_pairs(benchmark)
    return [sentence for task, count in pairs.items() for sentence in few_pairs(task, count, epsilon_cs)]
