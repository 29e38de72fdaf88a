"""The whole way in one command: benchmark, scores, calibrator, decisions, report."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from unprior.cli.baseline import (
    ANSWERS,
    CostExamples,
    MethodOptions,
    RevisFile,
    RevisStrength,
    answer_with_methods,
    fitting_answers,
    without_answer,
)
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
from unprior.cli.calibrate import print_tables, warn_about, warn_about_abstaining
from unprior.cli.console import AsJson, errors, output, print_json_text
from unprior.cli.model import (
    DEFAULT_CONCURRENCY,
    DEFAULT_NEW_TOKENS,
    ENGINES,
    AllowCensored,
    Attention,
    BaseUrls,
    BatchSize,
    Concurrency,
    Device,
    DeviceMap,
    DType,
    EngineName,
    MaxNewTokens,
    ModelName,
    ModelOptions,
    Revision,
    TensorParallel,
    TrustRemoteCode,
    looking_inside,
)
from unprior.cli.score import print_failures, score_benchmark
from unprior.runs.folder import RunRecord

if TYPE_CHECKING:
    from unprior.runs.result import RunResult


def run(
    model: ModelName = "embedded",
    benchmark: BenchmarkName = "microworld",
    out: Annotated[Path, typer.Option(help="Folder for everything that is made.")] = Path("unprior-run"),
    epsilon_cs: Annotated[
        float, typer.Option(help="Largest loss of commonsense accuracy to accept on a development task.")
    ] = 0.04,
    uncertainty: Annotated[bool, typer.Option("--uncertainty", help="Fit the uncertainty-aware version.")] = False,
    baselines: Annotated[
        str, typer.Option(help="Also let these methods answer, separated by commas, or all; see `unprior baseline`.")
    ] = "",
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
    engine: EngineName = ENGINES[0],
    base_url: BaseUrls = None,
    concurrency: Concurrency = DEFAULT_CONCURRENCY,
    tensor_parallel: TensorParallel = 1,
    allow_censored: AllowCensored = False,
    max_new_tokens: MaxNewTokens = DEFAULT_NEW_TOKENS,
    as_json: AsJson = False,
) -> None:
    """Ask a model every question of a benchmark, calibrate it on the development pairs, judge it on the rest.

    Without options: the embedded model on the microworld, no download needed. The same command again computes only
    what is missing.
    """
    from unprior.baselines.names import choose_methods
    from unprior.calibration import SelectivePriorCalibrator
    from unprior.runs.result import RunResult, scoring_notes
    from unprior.runs.run import check_benchmark

    options = MethodOptions.of([baselines], revis_data, revis_strength, cost_examples)
    urls = tuple(base_url or ())
    loading = ModelOptions(
        model, revision, dtype, device, device_map, attention, engine, urls, concurrency, tensor_parallel,
        most_new_tokens=max_new_tokens, trust_remote_code=trust_remote_code,
    )  # fmt: skip
    loading.check(needs_internals=bool(choose_methods(options.names).decoded))
    SelectivePriorCalibrator(epsilon_cs=epsilon_cs).check_parameters()
    whole = prepare(benchmark, out, seed, variant, data_dir)
    report_missing_images(whole)
    warn_about(check_benchmark(whole, epsilon_cs))
    asked = loading.load()
    RunRecord.of(loading, benchmark, variant, seed, data_dir, resize, allow_censored=allow_censored).write(out)
    side = image_side(whole, asked.model_type, resize)
    scored = score_benchmark(
        asked, whole, whole, out, resize=side, batch_size=batch_size, allow_censored=allow_censored
    )
    print_failures(scored.summary.failures)
    table = scored.table("calibrate")
    answers, lost = None, []
    if options.names and asked.capabilities.hidden_states:
        failures = answer_with_methods(looking_inside(asked), whole, out, options, resize=side, batch_size=batch_size)
        lost = without_answer(table, failures)
        print_failures(lost)
        answers = None if lost else fitting_answers(out / ANSWERS, table)
    with errors.status("Fitting, deciding and running the studies …"):
        result = RunResult.from_table(
            table, epsilon_cs=epsilon_cs, uncertainty=uncertainty, baselines=answers, folder=out
        )
    warn_about_abstaining(result.calibrator)
    with errors.status("Writing the report …"):
        notes = scoring_notes(scored.summary, table, len(lost))
        result.write(out, whole, note=" ".join(notes) or None)
    if as_json:
        warn_about(result.cautions)
        print_json_text((out / "report.json").read_text(encoding="utf-8").rstrip())
    else:
        print_run(result)
        for note in (*notes, *result.notes):
            output.print(note)
            output.print()
        output.print(f"Report: {out / 'report.html'}", soft_wrap=True)
    if scored.summary.failures or lost:
        raise typer.Exit(1)


def print_run(result: RunResult) -> None:
    """The headline, and the table of every study of the run."""
    from rich.padding import Padding

    output.print(Padding(result.headline, (0, 0, 1, 0)))
    for each in result.studies:
        if each.result is None:
            output.print(Padding(f"Left out: {each.lacks}", (0, 0, 1, 0)))
            continue
        print_tables(each.result.table, *each.result.further_tables)
