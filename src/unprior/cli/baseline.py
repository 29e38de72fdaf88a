"""The command of the methods that SPC is compared with."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from unprior.cli.benchmarks import (
    BenchmarkName,
    DataDir,
    Resize,
    VariantName,
    WorldSeed,
    image_side,
    prepare,
    report_missing_images,
)
from unprior.cli.calibrate import print_methods, warn_about_abstaining
from unprior.cli.console import AsJson, errors, output, print_json, warn
from unprior.cli.model import (
    Attention,
    BatchSize,
    Device,
    DeviceMap,
    DType,
    ModelName,
    ModelOptions,
    Revision,
    TrustRemoteCode,
)
from unprior.cli.progress import progress
from unprior.cli.score import print_failures, score_benchmark
from unprior.errors import UnpriorError
from unprior.runs.folder import RunRecord

if TYPE_CHECKING:
    from unprior.baselines.method import Method
    from unprior.baselines.revis.data import RevisData
    from unprior.benchmarks.schema import Benchmark
    from unprior.engines.transformers.engine import TransformersEngine
    from unprior.scores import ScoreTable
    from unprior.scoring.rows import Failure
    from unprior.studies.rq2.changes import Changes
    from unprior.studies.rq2.methods import Methods

ANSWERS = "baselines.parquet"
VECTORS = "revis.safetensors"
_NO_DATA = (
    "REVIS needs captions, hallucinated captions and presence questions to find its directions; give them with "
    "--revis-data FILE (docs/baselines.md describes it)"
)

RevisFile = Annotated[
    Path | None,
    typer.Option("--revis-data", help="What REVIS learns from (JSON lines); the embedded model brings its own."),
]
RevisStrength = Annotated[
    float | None, typer.Option("--revis-strength", help="α of REVIS; by default 1.6 for Qwen and 1.1 for others.")
]
CostExamples = Annotated[
    int, typer.Option("--cost-examples", help="Examples on which the cost of every method is measured.", min=1)
]


@dataclass(frozen=True)
class MethodOptions:
    """What the methods are told; checked before anything is computed."""

    names: tuple[str, ...]
    revis_data: RevisData | None
    revis_strength: float | None
    cost_examples: int

    @classmethod
    def of(
        cls, names: Sequence[str], revis_data: Path | None, revis_strength: float | None, cost_examples: int
    ) -> MethodOptions:
        """Read the data of REVIS and refuse what cannot be used."""
        from unprior.baselines.names import RELEASED_REVIS_NAME, REVIS_NAME, choose_methods, split_names
        from unprior.baselines.revis.data import read_revis_data

        chosen = choose_methods(names)
        if revis_strength is not None and not (math.isfinite(revis_strength) and revis_strength >= 0):
            raise UnpriorError(f"--revis-strength {revis_strength}: give a number that is not negative, e.g. 1.1")
        asked = {REVIS_NAME, RELEASED_REVIS_NAME} & set(chosen.decoded)
        if not asked and (revis_data is not None or revis_strength is not None):
            warn("--revis-data and --revis-strength are about revis, which is not among the methods")
        data = None if revis_data is None else read_revis_data(revis_data)
        return cls(split_names(names), data, revis_strength, cost_examples)


def baseline(
    names: Annotated[list[str], typer.Argument(metavar="NAME…", help="Methods, or all.", show_default=False)],
    model: ModelName = "embedded",
    benchmark: BenchmarkName = "microworld",
    out: Annotated[Path, typer.Option(help="Folder for the store, the scores and the answers.")] = Path("unprior-run"),
    epsilon_cs: Annotated[
        float, typer.Option(help="Permitted loss of commonsense accuracy, for SPC and the controls.")
    ] = 0.04,
    revis_data: RevisFile = None,
    revis_strength: RevisStrength = None,
    cost_examples: CostExamples = 16,
    variant: VariantName = None,
    seed: WorldSeed = 0,
    data_dir: DataDir = None,
    batch_size: BatchSize = 16,
    resize: Resize = None,
    revision: Revision = None,
    trust_remote_code: TrustRemoteCode = False,
    dtype: DType = "auto",
    device: Device = None,
    device_map: DeviceMap = None,
    attention: Attention = None,
    as_json: AsJson = False,
) -> None:
    """Let other methods answer a benchmark, and compare them with SPC and with the original answers.

    Methods that ask the model: focus-on-vision, vcd, mfcd, pai, revis, revis-2.5, nolan. Controls on its scores:
    no-subtraction, fixed-strength, fixed-strength-gated, selected-strength, selected-strength-gated,
    direct-subtraction, cfg-score, learned-rule-fixed, learned-rule-direct, ungated-adaptive.

    What is missing is scored first. Answers are stored as they come; the same command again computes only what is
    missing, and another one with the same --out adds its methods to the comparison.
    """
    from unprior.baselines.names import choose_methods
    from unprior.calibration import SelectivePriorCalibrator

    options = MethodOptions.of(names, revis_data, revis_strength, cost_examples)
    SelectivePriorCalibrator(epsilon_cs=epsilon_cs).check_parameters()
    whole = prepare(benchmark, out, seed, variant, data_dir)
    report_missing_images(whole)
    loading = ModelOptions(model, revision, dtype, device, device_map, attention, trust_remote_code=trust_remote_code)
    engine = loading.load_transformers()
    RunRecord.of(loading, benchmark, variant, seed, data_dir, resize).write(out)
    side = image_side(whole, engine.model_type, resize)
    scored = score_benchmark(engine, whole, whole, out, resize=side, batch_size=batch_size)
    print_failures(scored.summary.failures)
    table = scored.table("compare with")
    failures = answer_with_methods(engine, whole, out, options, resize=side, batch_size=batch_size)
    lost = without_answer(table, failures)
    print_failures(lost)
    if lost:
        raise UnpriorError(
            f"{len(lost):,} answers are missing, so the methods cannot be compared; the reasons stand above"
        )
    with errors.status("Comparing …"):
        compared = compare(table, out / ANSWERS, choose_methods(names).controls, epsilon_cs)
    if as_json:
        print_json(compared.records())
    else:
        print_comparison(compared)
        output.print(f"Answers: {out / ANSWERS}", soft_wrap=True)
    if scored.summary.failures:
        raise typer.Exit(1)


def without_answer(table: ScoreTable, failures: Sequence[Failure]) -> list[Failure]:
    """Failures of examples that were scored; those that have no scores are not compared anyway."""
    scored = {str(name) for name in table.column("example_id")}
    return [failure for failure in failures if failure.example_id in scored]


def fitting_answers(path: Path, table: ScoreTable) -> Path | None:
    """The file of answers if it is about the model and benchmark of the table; a file of anything else is no use."""
    from unprior.baselines.answers import described_methods

    if not path.exists():
        return None
    model, benchmark = (str(table.column(name)[0]) for name in ("model", "benchmark"))
    if described_methods(path, model=model, benchmark=benchmark):
        return path
    warn(f"{path} holds answers of another model or to another benchmark; it is left aside")
    return None


def compare(table: ScoreTable, answers: Path, controls: Sequence[str], epsilon_cs: float) -> Methods | Changes:
    """Compare methods with SPC on the test pairs; without development rows or pairs with the original answers alone."""
    from unprior.baselines.answers import read_answers, read_references
    from unprior.calibration import SelectivePriorCalibrator
    from unprior.studies.rq2.changes import study_changes
    from unprior.studies.rq2.methods import compare_methods, study_methods

    judged = table.where(split="test") if "test" in table.column("split") else table
    path = fitting_answers(answers, table)
    found, references = ([], {}) if path is None else (read_answers(path, judged), read_references(path))
    paired = bool(table.is_paired.all())
    if not paired or not {"dev", "test"} <= set(table.column("split")):
        if controls:
            warn("controls are chosen on development pairs, which this benchmark does not have; they are left out")
        if not paired:
            return study_changes(judged, found)
        return compare_methods(judged, None, found, references=references)
    development = table.where(split="dev")
    calibrator = SelectivePriorCalibrator(epsilon_cs=epsilon_cs).fit(development, split=None)
    warn_about_abstaining(calibrator)
    decisions = calibrator.predict(judged)
    return study_methods(decisions, calibrator, development, found, references=references, controls=controls)


def print_comparison(compared: Methods | Changes) -> None:
    """The tables of a comparison."""
    from unprior.report.method_tables import accuracy_table
    from unprior.studies.rq2.methods import Methods

    if isinstance(compared, Methods):
        print_methods(compared)
    else:
        output.print(accuracy_table(compared))


def answer_with_methods(
    engine: TransformersEngine,
    whole: Benchmark,
    out: Path,
    options: MethodOptions,
    *,
    resize: int | None,
    batch_size: int,
    path: Path | None = None,
) -> Sequence[Failure]:
    """Let the methods answer the judged part of a benchmark and write their answers; those of earlier runs stay.

    All costs are measured anew, because only what was measured together can be compared.
    """
    from unprior.baselines.names import ALL, choose_methods
    from unprior.baselines.suite import answer_benchmark, available_methods, evaluation_split
    from unprior.scoring.run import Progress
    from unprior.scoring.store import ScoreStore

    path = path or out / ANSWERS
    before = _answered_before(path, engine, whole)
    names = choose_methods([*options.names, *before]).decoded
    if not names:
        return ()
    # Asked for by name, a method must run; of `all`, and of those from before, what the model permits.
    forgiven = names if ALL in options.names else [name for name in before if name not in options.names]
    found = available_methods(
        engine, names, lambda name: _revis(name, engine, out, options, batch_size), forgiven=forgiven
    )
    for name, reason in found.left_out.items():
        warn(f"{name} is left out: {reason}")
    with ScoreStore(out / "store.sqlite") as store, progress("Answering", "answered") as report:
        return answer_benchmark(
            engine, evaluation_split(whole), found.methods, store, path, resize_to=resize, batch_size=batch_size,
            cost_examples=options.cost_examples, report=report,
            report_costs=lambda done, total: report(Progress(done, total, 0, "Measuring costs")),
        )  # fmt: skip


def _answered_before(path: Path, engine: TransformersEngine, whole: Benchmark) -> list[str]:
    """Methods of an earlier run of the same model on the same benchmark; a file of anything else is replaced."""
    from unprior.baselines.answers import described_methods

    try:
        found = described_methods(path, model=engine.name, benchmark=whole.name) if path.exists() else []
    except UnpriorError:
        return []
    return [info.name for info in found]


def _revis(name: str, engine: TransformersEngine, out: Path, options: MethodOptions, batch_size: int) -> Method:
    """Vectors of an earlier run, unless other data or another strength is asked for; else new ones, which are kept."""
    from unprior.baselines.revis.fit import fit_revis
    from unprior.baselines.revis.method import REVIS, ReleasedREVIS
    from unprior.baselines.revis.vectors import RevisVectors

    path, data = out / VECTORS, options.revis_data
    vectors = None
    with errors.status("Preparing REVIS …") as status:
        if path.exists():
            with suppress(UnpriorError):  # of another model: made anew
                vectors = RevisVectors.load(path, engine)
        if vectors is None or (data is not None and vectors.recipe["data_digest"] != data.digest):
            vectors = fit_revis(
                engine, data or _own_data(engine), strength=options.revis_strength, batch_size=batch_size,
                report=lambda done, total: status.update(f"Fitting REVIS: {done:,} of {total:,} prompts …"),
            )  # fmt: skip
            vectors.save(path)
        elif options.revis_strength not in (None, vectors.strength):
            vectors = replace(vectors, strength=options.revis_strength)
            vectors.save(path)
    if vectors.choice.layer is None:
        warn(f"REVIS stays inactive: {vectors.choice.reason}")
    return ReleasedREVIS.from_vectors(vectors) if name == ReleasedREVIS.name else REVIS(vectors)


def _own_data(engine: TransformersEngine) -> RevisData:
    from unprior.baselines.revis.data import microworld_data
    from unprior.embedded import NAME

    if engine.name != NAME:
        raise UnpriorError(_NO_DATA)
    return microworld_data()
