"""What a benchmark must have to be calibrated and judged."""

from __future__ import annotations

from unprior.benchmarks.pairs import development_pairs, refuse_unsound_questions
from unprior.benchmarks.schema import Benchmark
from unprior.errors import UnpriorError
from unprior.scores.pairs import few_pairs


def check_benchmark(benchmark: Benchmark, epsilon_cs: float | None = None) -> list[str]:
    """Refuse a benchmark that cannot be calibrated and judged, before anything is computed; returns what to mind."""
    check_splits({example.split for example in benchmark}, {example.side for example in benchmark})
    refuse_unsound_questions(benchmark)
    pairs = development_pairs(benchmark)
    return [sentence for task, count in pairs.items() for sentence in few_pairs(task, count, epsilon_cs)]


def check_splits(splits: set[str | None], sides: set[str | None]) -> None:
    """Refuse rows without development and test pairs, or with rows that belong to no pair."""
    for split, purpose in (("dev", "to fit on"), ("test", "to judge on")):
        if split not in splits:
            raise UnpriorError(
                f"no example has split {split!r}, so there is nothing {purpose}; mark pairs of the benchmark as dev "
                f"and test (`unprior score` alone needs no splits)"
            )
    if None in sides:
        raise UnpriorError(
            "the benchmark has examples that belong to no pair of a cf and a cs image; repair and retention are judged "
            "on pairs (`unprior score` alone needs none)"
        )
