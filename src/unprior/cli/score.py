"""Commands that ask a model: score a benchmark, ask one question."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

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
from unprior.cli.console import AsJson, errors, output, print_json, warn
from unprior.cli.model import (
    DEFAULT_CONCURRENCY,
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
    ModelName,
    ModelOptions,
    Revision,
)
from unprior.cli.progress import progress
from unprior.cli.run_record import RunRecord
from unprior.errors import UnpriorError

if TYPE_CHECKING:
    from unprior.benchmarks.schema import Benchmark
    from unprior.calibration import Decision
    from unprior.engines.protocol import Engine
    from unprior.engines.scoring import Failure, Summary
    from unprior.scores import ScoreTable

_LEAST_MASS = 0.5


@dataclass(frozen=True)
class Scored:
    """What scoring gave: a summary, and the table if anything could be scored."""

    summary: Summary
    table: ScoreTable | None
    path: Path


def score(
    model: ModelName,
    benchmark: BenchmarkName,
    out: Annotated[Path, typer.Option(help="Folder for the store and the score table.")],
    views: Annotated[str, typer.Option(help="Further prior views, separated by commas: white, black, mean.")] = "",
    limit: Annotated[int | None, typer.Option(help="Only the first examples.", min=1)] = None,
    shard: Annotated[str | None, typer.Option(help="Only part i of n, as i/n with i from 1.")] = None,
    variant: VariantName = None,
    seed: WorldSeed = 0,
    data_dir: DataDir = None,
    batch_size: BatchSize = 8,
    resize: Resize = None,
    revision: Revision = None,
    dtype: DType = "auto",
    device: Device = None,
    device_map: DeviceMap = None,
    attention: Attention = None,
    engine: EngineName = ENGINES[0],
    base_url: BaseUrls = None,
    concurrency: Concurrency = DEFAULT_CONCURRENCY,
    allow_censored: AllowCensored = False,
    as_json: AsJson = False,
) -> None:
    """Ask a model every question and score its candidate answers with and without the image.

    Results are stored as they come; the same command again computes only what is missing.
    """
    urls = tuple(base_url or ())
    options = ModelOptions(model, revision, dtype, device, device_map, attention, engine, urls, concurrency)
    options.check()
    whole = prepare(benchmark, out, seed, variant, data_dir)
    questions = _part(whole, limit, shard)
    report_missing_images(questions)
    asked = options.load()
    RunRecord.of(options, benchmark, variant, seed, data_dir, resize).write(out)
    chosen = tuple(view.strip() for view in views.split(",") if view.strip())
    side = image_side(whole, asked.model_type, resize)
    scored = score_benchmark(
        asked, whole, questions, out, views=chosen, resize=side, batch_size=batch_size, allow_censored=allow_censored
    )
    summary, written = scored.summary, None if scored.table is None else scored.path
    failures = [{"example": failure.example_id, "reason": failure.reason} for failure in summary.failures]
    if as_json:
        print_json(
            {
                "examples": summary.examples,
                "computed": summary.computed,
                "reused": summary.reused,
                "failures": failures,
                "censored": summary.censored,
                "out": None if written is None else str(written),
            }
        )
    else:
        done = summary.examples - len(failures)
        where = "no score table" if written is None else str(written)
        work = f"{summary.computed:,} results computed now, {summary.reused:,} stored before"
        output.print(f"{done:,} of {summary.examples:,} examples scored ({work}) → {where}", soft_wrap=True)
        if summary.censored:
            verdict = "taken as bounds" if allow_censored else "refused"
            output.print(f"{summary.censored:,} examples with censored candidates: {verdict}", soft_wrap=True)
        print_failures(summary.failures)
    if failures:
        raise typer.Exit(1)


def score_benchmark(
    engine: Engine,
    whole: Benchmark,
    questions: Benchmark,
    out: Path,
    *,
    views: tuple[str, ...] = (),
    resize: int | None = None,
    batch_size: int = 8,
    path: Path | None = None,
    allow_censored: bool = False,
) -> Scored:
    """Score questions, a part of the whole benchmark, and write the table of all that is stored by now.

    The store lies in ``out``, and so does the table unless it has a ``path`` of its own.
    """
    from unprior.engines.scoring import ScoringRun
    from unprior.engines.store import ScoreStore

    path = path or out / "scores.parquet"
    with ScoreStore(out / "store.sqlite") as store:
        options: dict[str, Any] = {
            "views": views, "resize_to": resize, "whole": whole, "allow_censored": allow_censored
        }  # fmt: skip
        run = ScoringRun(engine, questions, store, batch_size=batch_size, **options)
        store.set_info(engine.identity)
        with progress("Scoring", "scored") as report:
            summary = run.run(report)
        if len(summary.failures) == summary.examples:
            return Scored(summary, None, path)
        # Everything that is stored for this benchmark, so that parts of a run add up to one table.
        table = run.table() if len(questions) == len(whole) else ScoringRun(engine, whole, store, **options).table()
    table.write(path)
    _warn_about_mass(table)
    return Scored(summary, table, path)


def print_failures(failures: Iterable[Failure]) -> None:
    """Name every example that could not be done, and why."""
    for failure in failures:
        errors.print(f"  failed: {failure.example_id}: {failure.reason}", soft_wrap=True)


def ask(
    image: Annotated[Path, typer.Argument(help="The picture.")],
    question: Annotated[str, typer.Argument(help="What to ask.")],
    model: ModelName = "embedded",
    options: Annotated[
        str | None, typer.Option(help="Answers to choose from, separated by | (or commas); without: yes or no.")
    ] = None,
    calibrator: Annotated[Path | None, typer.Option(help="Calibrator of this model, made by `unprior fit`.")] = None,
    resize: Resize = None,
    revision: Revision = None,
    dtype: DType = "auto",
    device: Device = None,
    device_map: DeviceMap = None,
    attention: Attention = None,
    engine: EngineName = ENGINES[0],
    base_url: BaseUrls = None,
    allow_censored: AllowCensored = False,
    as_json: AsJson = False,
) -> None:
    """Ask one question about one picture, and show how the candidates score with and without it."""
    from unprior.calibration import SelectivePriorCalibrator
    from unprior.cli.calibrate import warn_about_other_models
    from unprior.engines.images import open_image
    from unprior.engines.images import resize as to_square
    from unprior.engines.prompts import YES_NO, parse_answer
    from unprior.engines.protocol import Query, QueryFailure

    fitted = None if calibrator is None else SelectivePriorCalibrator.load(calibrator)
    texts = None if options is None else _split_options(options)
    labels = YES_NO if texts is None else tuple("ABCDEFGHIJKLMNOPQRSTUVWXYZ"[: len(texts)])
    picture = to_square(open_image(image), resize or None)
    urls = tuple(base_url or ())
    asked = ModelOptions(model, revision, dtype, device, device_map, attention, engine, urls).load()
    text = asked.layout.user_text(question, labels, texts)
    continuations = asked.layout.continuations(labels)
    answered = asked.answer_batch([Query(picture, text, continuations)])[0]
    if isinstance(answered, QueryFailure):
        raise UnpriorError(f"{image}: {answered.reason}")
    prior = asked.score_candidates(None, text, continuations)
    if any((*(answered.scored.censored or ()), *(prior.censored or ()))):
        if fitted is not None and not allow_censored:
            raise UnpriorError(
                "a candidate is not among the tokens that the server shows; --allow-censored takes a bound"
            )
        warn("a candidate is not among the tokens that the server shows; its score is only an upper bound")
    original = parse_answer(answered.text, labels)
    decision = None
    if fitted is not None:
        warn_about_other_models(fitted, [asked.name])
        decision = fitted.decide(labels, answered.scored.scores, prior.scores, original)
    rows = [
        {
            "candidate": label,
            "text": None if texts is None else texts[index],
            "image_score": answered.scored.scores[index],
            "prior_score": prior.scores[index],
            "corrected_score": None if decision is None else decision.corrected_scores[index],
        }
        for index, label in enumerate(labels)
    ]
    if as_json:
        final = original if decision is None else decision.final
        explanation = None if decision is None else decision.explain()
        print_json(
            {"answer": final, "original": original, "original_text": answered.text, "candidates": rows,
             "explanation": explanation}
        )  # fmt: skip
        return
    _print_answer(rows, original, answered.text, decision)
    if answered.scored.mass < _LEAST_MASS:
        warn(f"the candidates hold only {answered.scored.mass:.1%} of the model's probability with the image")


def _warn_about_mass(table: ScoreTable) -> None:
    """Candidates that the model hardly considers have scores that mean little."""
    import numpy as np

    mass = np.add.reduceat(np.exp(table.image_scores), table.offsets[:-1])
    if np.median(mass) < _LEAST_MASS:
        warn(
            f"the candidates hold only {np.median(mass):.1%} of the model's probability (median): it would rather say "
            f"something else; check the prompt layout and the chat template"
        )


def _part(benchmark: Benchmark, limit: int | None, shard: str | None) -> Benchmark:
    examples = list(benchmark)[:limit]
    if shard is not None:
        part, _, parts = shard.partition("/")
        if not (part.isdigit() and parts.isdigit() and 1 <= int(part) <= int(parts)):
            raise UnpriorError(f"--shard {shard}: give part and number of parts as i/n with i from 1 to n, e.g. 2/4")
        examples = examples[int(part) - 1 :: int(parts)]
        if not examples:
            raise UnpriorError(f"--shard {shard}: there are fewer examples than parts, this part is empty")
    return benchmark.with_examples(examples)


def _split_options(options: str) -> tuple[str, ...]:
    separator = "|" if "|" in options else ","
    texts = tuple(text.strip() for text in options.split(separator) if text.strip())
    if not 2 <= len(texts) <= 26 or len(set(texts)) < len(texts):
        raise UnpriorError(f"--options {options!r}: give 2 to 26 different answers separated by |")
    return texts


def _print_answer(rows: list[dict[str, Any]], original: str | None, text: str, decision: Decision | None) -> None:
    from rich.text import Text

    from unprior.report import plain_table

    table = plain_table()
    table.add_column("Candidate")
    for name in ("with image", "without", "corrected"):
        table.add_column(name, justify="right")
    final = original if decision is None else decision.final
    for row in rows:
        name = row["candidate"] if row["text"] is None else f"{row['candidate']}. {row['text']}"
        corrected = "–" if row["corrected_score"] is None else f"{row['corrected_score']:+.3f}"
        style = "bold" if row["candidate"] == final else ""
        cells = (f"{row['image_score']:.3f}", f"{row['prior_score']:.3f}", corrected)
        table.add_row(Text(name), *cells, style=style)
    output.print(table)
    said = "nothing that names a candidate" if original is None else original
    output.print(f"The model answered {said} ({text.strip()!r}).", soft_wrap=True)
    if decision is None:
        output.print(
            "Without --calibrator the answer stays as it is; `unprior run` and `unprior fit` make one.", soft_wrap=True
        )
    else:
        output.print(decision.explain(), soft_wrap=True)
