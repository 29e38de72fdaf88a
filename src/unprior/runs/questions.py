"""The questions of a run: loading its benchmark, and what it must have to be calibrated and judged."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from unprior.errors import UnpriorError, format_names, format_option
from unprior.progress import Progress, Report, silent
from unprior.runs.config import RunConfig

if TYPE_CHECKING:
    from unprior.benchmarks.schema import Benchmark


def load_questions(config: RunConfig, report: Report = silent, *, variant: str | None = None) -> Benchmark:
    """The benchmark of a run, or another variant of it; a drawn one is drawn into the folder of the run."""
    from unprior.benchmarks.registry import load_benchmark
    from unprior.benchmarks.tasks import OPEN_VARIANT, of_task

    report(Progress("Preparing the benchmark"))
    asked = config.benchmark

    def load(variant: str | None) -> Benchmark:
        return load_benchmark(
            asked.name, config.output.folder, asked.seed, variant=variant, columns=asked.columns,
            data_dir=asked.data_dir, report=drawing(report),
        )  # fmt: skip

    if variant is not None:
        return load(variant)
    return of_task(load(asked.variant), asked.task, lambda: load(OPEN_VARIANT))


def drawing(report: Report) -> Callable[[int, int], None]:
    """Tells a report how many images of a benchmark are drawn."""
    return lambda done, total: report(Progress("Drawing images", done, total))


def check_questions(benchmark: Benchmark, epsilon_cs: float | None = None) -> list[str]:
    """Refuse a benchmark that cannot be calibrated and judged, before anything is computed; returns what to mind."""
    from unprior.benchmarks.pairs import development_pairs, refuse_unsound_questions
    from unprior.scores.pairs import few_pairs

    _check_columns(benchmark)
    check_splits({example.split for example in benchmark}, {example.side for example in benchmark})
    refuse_unsound_questions(benchmark)
    open_ones = [each.example_id for each in benchmark if each.answer is None and each.split in ("dev", "test")]
    if open_ones:
        raise UnpriorError(
            f"{len(open_ones):,} examples have no answer ({format_names(open_ones)}); fitting and judging need the "
            f"right one of every example (`unprior score` alone needs none)"
        )
    pairs = development_pairs(benchmark)
    return [sentence for task, count in pairs.items() for sentence in few_pairs(task, count, epsilon_cs)]


def _check_columns(benchmark: Benchmark) -> None:
    """Refuse a table that says nothing about pairs or splits, and tell how to name their columns."""
    lacking = [name for name in ("pair", "side", "split") if name in benchmark.unmapped]
    if lacking:
        names = format_option("column", [f"{name}=NAME" for name in lacking])
        raise UnpriorError(
            f"{benchmark.source}: no column for {', '.join(lacking)}. Fitting and judging need pairs of a "
            f"counterfactual (cf) and a commonsense (cs) image, some for development (dev), some for the test. Name "
            f"the columns by {names}, or add them. Without them, `unprior score` scores the questions, and `unprior "
            f"apply` decides about them with a calibrator that is there already."
        )


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
