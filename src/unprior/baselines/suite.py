"""The chosen methods on one benchmark: which the model can run, their answers, their costs, one file for all."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from unprior.baselines.answers import Cost, MethodInfo, write_answers
from unprior.baselines.cost import measure_costs
from unprior.baselines.method import Method
from unprior.baselines.names import DECODED
from unprior.baselines.run import BaselineRun
from unprior.benchmarks.schema import Benchmark
from unprior.engines.transformers.engine import TransformersEngine
from unprior.errors import UnpriorError
from unprior.scoring.rows import Failure
from unprior.scoring.run import Progress
from unprior.scoring.store import ScoreStore


@dataclass(frozen=True, slots=True)
class Available:
    """Methods that a model can run, and why others cannot."""

    methods: tuple[Method, ...]
    left_out: dict[str, str]
    """Reasons by name."""


def available_methods(
    engine: TransformersEngine, names: Sequence[str], make_revis: Callable[[str], Method], *, forgiven: Collection[str]
) -> Available:
    """Make the methods, and see that the model can be changed the way they need.

    Parameters
    ----------
    names
        Of methods that write their own answers.
    make_revis
        Fits or loads REVIS by its name; it alone needs more than that.
    forgiven
        Names to leave out when the model does not permit them, instead of refusing.
    """
    methods, left_out = [], {}
    for name in names:
        kind = DECODED[name]
        try:
            method = make_revis(name) if kind is None else kind()
            with method.applied(engine):
                pass
            methods.append(method)
        except UnpriorError as error:
            if name not in forgiven:
                raise
            left_out[name] = str(error)
    return Available(tuple(methods), left_out)


def evaluation_split(benchmark: Benchmark) -> Benchmark:
    """The examples to answer: those of split ``test`` where there are splits; no setting is chosen on the others."""
    test = [example for example in benchmark if example.split == "test"]
    return benchmark.with_examples(test) if test else benchmark


def answer_benchmark(
    engine: TransformersEngine,
    benchmark: Benchmark,
    methods: Sequence[Method],
    store: ScoreStore,
    path: Path,
    *,
    resize_to: int | None = None,
    batch_size: int = 8,
    cost_examples: int = 16,
    report: Callable[[Progress], None] | None = None,
    report_costs: Callable[[int, int], None] | None = None,
) -> tuple[Failure, ...]:
    """Let every method answer, measure what each costs, and write it all to one file; returns what failed."""
    run = BaselineRun(engine, benchmark, store, methods, resize_to=resize_to, batch_size=batch_size)
    failures = run.run(report)
    rows = run.rows()
    failed = {failure.example_id for failure in failures}
    answered = benchmark.with_examples([example for example in benchmark if example.example_id not in failed])
    costs: dict[str, Cost] = {}
    if len(answered):
        costs = measure_costs(
            engine, answered, methods, examples=cost_examples, resize_to=resize_to, report=report_costs
        )
    infos = [
        MethodInfo(method.name, method.label, method.kind, method.settings(), costs.get(method.name))
        for method in methods
    ]
    references = {name: cost for name, cost in costs.items() if name in ("original", "spc")}
    write_answers(path, infos, rows, references=references)
    return failures
