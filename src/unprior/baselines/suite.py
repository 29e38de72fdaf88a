"""The chosen methods on one benchmark: which the model can run, their answers, their costs, one file for all."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from unprior.baselines.answers import Cost, MethodInfo, described_methods, write_answers
from unprior.baselines.method import Method
from unprior.baselines.names import RELEASED_REVIS_NAME, REVIS_NAME, WRITING, choose_methods, split_names
from unprior.baselines.revis.data import RevisData, microworld_data, read_revis_data
from unprior.benchmarks.schema import Benchmark
from unprior.engines.load import BATCH_SIZE
from unprior.engines.transformers.engine import TransformersEngine
from unprior.errors import UnpriorError, format_option, warn
from unprior.progress import Progress, Report, silent
from unprior.scores import ScoreTable
from unprior.scoring.rows import Failure
from unprior.scoring.store import ScoreStore

ANSWERS = "baselines.parquet"
VECTORS = "revis.safetensors"
_NO_DATA = (
    "REVIS needs captions, hallucinated captions and presence questions to find its directions; give them with "
    f"{format_option('revis_data', 'FILE')}, which docs/explanation/baselines.md describes"
)


@dataclass(frozen=True, slots=True)
class MethodOptions:
    """What the methods are told; checked before anything is computed."""

    names: tuple[str, ...]
    revis_data: RevisData | None = None
    revis_strength: float | None = None
    cost_examples: int = 16

    @classmethod
    def from_names(
        cls,
        names: Sequence[str],
        revis_data: Path | None = None,
        revis_strength: float | None = None,
        cost_examples: int = 16,
    ) -> MethodOptions:
        """Read the data of REVIS and refuse what cannot be used."""
        chosen = choose_methods(names)
        if revis_strength is not None and not (math.isfinite(revis_strength) and revis_strength >= 0):
            raise UnpriorError(
                f"{format_option('revis_strength', revis_strength)}: give a number that is not negative, e.g. 1.1"
            )
        asked = {REVIS_NAME, RELEASED_REVIS_NAME} & set(chosen.decoded)
        if not asked and (revis_data is not None or revis_strength is not None):
            warn("data and strength of REVIS have no effect, because it is not among the methods")
        data = None if revis_data is None else read_revis_data(revis_data)
        return cls(split_names(names), data, revis_strength, cost_examples)


@dataclass(frozen=True, slots=True)
class PreparedMethods:
    """Methods that a model can run, and why others cannot."""

    methods: tuple[Method, ...]
    left_out: Mapping[str, str]
    """Reasons by name."""


def try_methods(
    engine: TransformersEngine, names: Sequence[str], make_revis: Callable[[str], Method]
) -> PreparedMethods:
    """Make the methods, and let each answer a small question; those that cannot are left out.

    ``names`` are of methods that write their own answers; REVIS alone needs more than its name.
    """
    from unprior.baselines.trial import first_line, try_method

    methods, left_out = [], {}
    written: dict[str, list[int]] = {}
    for name in names:
        kind = WRITING[name]
        try:
            method = make_revis(name) if kind is None else kind()
            try_method(engine, method, written)
            methods.append(method)
        except Exception as error:  # a model's own code may raise anything
            left_out[name] = first_line(error)
    return PreparedMethods(tuple(methods), left_out)


def prepare_methods(
    engine: TransformersEngine,
    benchmark: Benchmark,
    out: Path,
    options: MethodOptions,
    *,
    path: Path | None = None,
    batch_size: int = 8,
    required: bool = False,
    report: Report = silent,
) -> PreparedMethods:
    """Find out which methods the model can run, before it is asked the first question of the benchmark.

    Those of an earlier run in the same file of answers are prepared, too. The vectors of REVIS lie in ``out``.
    ``required``: refuse the model if nothing that was asked for is left to compare.
    """
    before = _answered_before(path or out / ANSWERS, engine, benchmark)
    asked = choose_methods(options.names)
    found = try_methods(
        engine,
        choose_methods([*options.names, *before]).decoded,
        lambda name: _prepare_revis(name, engine, out, options, batch_size, report),
    )
    if required and not asked.controls and found.left_out.keys() >= set(asked.decoded):
        reasons = dict.fromkeys(found.left_out[name] for name in asked.decoded)
        raise UnpriorError("\n".join(reasons))
    for name, reason in found.left_out.items():
        warn(f"{name} is left out: {reason}")
    return found


class AnsweredBenchmark(NamedTuple):
    """What is missing when all methods have answered."""

    failures: tuple[Failure, ...] = ()
    """Answers without which the methods cannot be compared."""
    left_out: Mapping[str, str] = MappingProxyType({})
    """Methods that are not compared, with the reasons."""


def evaluation_split(benchmark: Benchmark) -> Benchmark:
    """The examples to answer: those of split ``test`` where there are splits; no setting is chosen on the others."""
    test = [example for example in benchmark if example.split == "test"]
    return benchmark.with_examples(test) if test else benchmark


def answer_benchmark(
    engine: TransformersEngine,
    benchmark: Benchmark,
    prepared: PreparedMethods,
    store: ScoreStore,
    path: Path,
    *,
    resize_to: int | None = None,
    batch_size: int = BATCH_SIZE,
    cost_examples: int = 16,
    report: Report = silent,
) -> AnsweredBenchmark:
    """Let every method answer, measure what each costs, and write it all to one file.

    A method with a missing answer is left out if others have all of theirs, which can be compared without it.
    """
    from unprior.baselines.cost import measure_costs
    from unprior.baselines.run import BaselineRun

    methods, left_out = prepared.methods, dict(prepared.left_out)
    run = BaselineRun(engine, benchmark, store, methods, resize_to=resize_to, batch_size=batch_size)
    run.run(report)
    missing = {method.name: run.unanswered(method) for method in methods}
    kept = [method for method in methods if not missing[method.name]] or list(methods)
    names = {method.name for method in kept}
    for name, lost in missing.items():
        if name not in names:
            left_out[name] = (
                f"{len(lost):,} of its answers are missing (first: {lost[0].example_id}, {lost[0].reason}); the same "
                f"command again computes only these"
            )
            warn(f"{name} is left out: {left_out[name]}")
    lost_answers = (failure for method in kept for failure in missing[method.name])
    failures = tuple(dict.fromkeys([*run.unreadable(), *lost_answers]))  # matched references are shared
    rows = [row for row in run.rows() if row["method"] in names]
    failed = {failure.example_id for failure in failures}
    answered = benchmark.with_examples([example for example in benchmark if example.example_id not in failed])
    costs: dict[str, Cost] = {}
    if len(answered):
        costs = measure_costs(engine, answered, kept, examples=cost_examples, resize_to=resize_to, report=report)
    infos = [
        MethodInfo(method.name, method.label, method.kind, method.settings(), costs.get(method.name)) for method in kept
    ]
    references = {name: cost for name, cost in costs.items() if name in ("original", "spc")}
    if kept:
        write_answers(path, infos, rows, references=references, left_out=left_out)
    else:
        path.unlink(missing_ok=True)  # nothing is left to compare; what was answered stays in the store
    return AnsweredBenchmark(failures, left_out)


def answer_with_methods(
    engine: TransformersEngine,
    benchmark: Benchmark,
    out: Path,
    prepared: PreparedMethods,
    *,
    table: ScoreTable | None = None,
    resize: int | None = None,
    batch_size: int = BATCH_SIZE,
    cost_examples: int = 16,
    path: Path | None = None,
    report: Report = silent,
) -> AnsweredBenchmark:
    """Let the methods answer the evaluation split of a benchmark and write their answers; those of earlier runs stay.

    Examples without scores in the ``table`` are not asked: there is nothing to compare.

    The store lies in ``out``, and so do the answers unless they have a ``path`` of their own. All costs are measured
    anew, because only what was measured together can be compared.
    """
    if not (prepared.methods or prepared.left_out):
        return AnsweredBenchmark()
    asked = evaluation_split(benchmark)
    if table is not None:
        scored = set(map(str, table.column("example_id")))
        asked = asked.with_examples([example for example in asked if example.example_id in scored])
    with ScoreStore(out / "store.sqlite") as store:
        return answer_benchmark(
            engine, asked, prepared, store, path or out / ANSWERS, resize_to=resize, batch_size=batch_size,
            cost_examples=cost_examples, report=report,
        )  # fmt: skip


def fitting_answers(path: Path, table: ScoreTable) -> Path | None:
    """The file of answers if it is about the model and benchmark of the table; a file of anything else is no use."""
    if not path.exists():
        return None
    model, benchmark = (str(table.column(name)[0]) for name in ("model", "benchmark"))
    if described_methods(path, model=model, benchmark=benchmark):
        return path
    warn(f"{path} holds answers of another model or to another benchmark; it is left aside")
    return None


def _answered_before(path: Path, engine: TransformersEngine, benchmark: Benchmark) -> list[str]:
    """Methods of an earlier run of the same model on the same benchmark; a file of anything else is replaced."""
    try:
        found = described_methods(path, model=engine.name, benchmark=benchmark.name) if path.exists() else []
    except UnpriorError:
        return []
    return [info.name for info in found]


def _prepare_revis(
    name: str, engine: TransformersEngine, out: Path, options: MethodOptions, batch_size: int, report: Report
) -> Method:
    """Vectors of an earlier run, unless other data or another strength is asked for; else new ones, which are kept."""
    from unprior.baselines.revis.fit import fit_revis
    from unprior.baselines.revis.method import REVIS, ReleasedREVIS
    from unprior.baselines.revis.vectors import RevisVectors
    from unprior.baselines.trial import try_method

    path, data = out / VECTORS, options.revis_data
    vectors = None
    report(Progress("Preparing REVIS"))
    if path.exists():
        with suppress(UnpriorError):  # of another model: made anew
            vectors = RevisVectors.load(path, engine)
    try_method(engine, REVIS.for_trial(engine))  # before time is spent on learning
    if vectors is None or (data is not None and vectors.recipe["data_digest"] != data.digest):
        vectors = fit_revis(
            engine, data or _own_data(engine), strength=options.revis_strength, batch_size=batch_size,
            report=lambda done, total: report(Progress("Fitting REVIS", done, total)),
        )  # fmt: skip
        vectors.save(path)
    elif options.revis_strength not in (None, vectors.strength):
        vectors = replace(vectors, strength=options.revis_strength)
        vectors.save(path)
    if vectors.choice.layer is None:
        warn(f"REVIS stays inactive: {vectors.choice.reason}")
    return ReleasedREVIS.from_vectors(vectors) if name == ReleasedREVIS.name else REVIS(vectors)


def _own_data(engine: TransformersEngine) -> RevisData:
    from unprior.embedded import NAME

    if engine.name != NAME:
        raise UnpriorError(_NO_DATA)
    return microworld_data()
