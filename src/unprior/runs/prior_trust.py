"""What `unprior doctor --prior` does: is the prior of a model trustworthy for the questions of a benchmark?"""

from __future__ import annotations

from tempfile import TemporaryDirectory

from unprior.evaluation.prior_trust import PriorTrust
from unprior.progress import Report, silent
from unprior.runs.config import RunConfig
from unprior.scoring.prior_trust import QUESTIONS, probe_prior

_VARIANT = "claim-order"


def examine_prior(config: RunConfig, *, questions: int = QUESTIONS, report: Report = silent) -> PriorTrust:
    """Ask the model of a configuration about the claims of its benchmark, without images."""
    from unprior.benchmarks.registry import BENCHMARKS, load_benchmark
    from unprior.engines.load import load_engine

    benchmark = config.benchmark.name
    entry = BENCHMARKS.get(benchmark)
    variant = _VARIANT if entry is not None and _VARIANT in entry.variants else None
    with TemporaryDirectory() as folder:  # a drawn benchmark draws its images, which nobody looks at here
        asked = load_benchmark(
            benchmark, folder, config.benchmark.seed, variant=variant, columns=config.benchmark.columns,
            data_dir=config.benchmark.data_dir,
        )  # fmt: skip
    engine = load_engine(**config.loading, few_threads=True, report=report)
    return probe_prior(engine, asked, questions=questions, batch_size=config.engine.batch_size, report=report)
