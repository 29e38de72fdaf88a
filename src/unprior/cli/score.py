"""Commands that ask a model: score a benchmark, ask one question."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from unprior.cli.console import AsJson, errors, output, print_json, warn
from unprior.errors import UnpriorError

if TYPE_CHECKING:
    from unprior.benchmarks.schema import Benchmark
    from unprior.calibration import Decision
    from unprior.engines.scoring import Progress
    from unprior.engines.transformers import TransformersEngine
    from unprior.scores import ScoreTable

ModelName = Annotated[str, typer.Option("--model", help="Local folder or hub id of an image-text-to-text model.")]
Revision = Annotated[str | None, typer.Option(help="Branch, tag or commit on the hub.")]
DType = Annotated[str, typer.Option(help="auto (as stored), float32, bfloat16 or float16; never quantised.")]
Device = Annotated[str | None, typer.Option(help="cpu, cuda, cuda:1, …; by default the first accelerator there is.")]
DeviceMap = Annotated[str | None, typer.Option(help="Spread the model over devices, e.g. auto (needs accelerate).")]
Attention = Annotated[str | None, typer.Option(help="Attention implementation, e.g. sdpa or eager.")]
Resize = Annotated[int | None, typer.Option(help="Bring images to this square size first, e.g. 512.", min=1)]

_PLAIN_SECONDS = 10.0
_LEAST_MASS = 0.5


def score(
    model: ModelName,
    benchmark: Annotated[Path, typer.Option(help="File of questions (JSON lines; see the README).")],
    out: Annotated[Path, typer.Option(help="Folder for the store and the score table.")],
    views: Annotated[str, typer.Option(help="Further prior views, separated by commas: white, black, mean.")] = "",
    limit: Annotated[int | None, typer.Option(help="Only the first examples.", min=1)] = None,
    shard: Annotated[str | None, typer.Option(help="Only part i of n, as i/n with i from 1.")] = None,
    batch_size: Annotated[int, typer.Option(help="Questions in one pass; results do not depend on it.", min=1)] = 8,
    resize: Resize = None,
    revision: Revision = None,
    dtype: DType = "auto",
    device: Device = None,
    device_map: DeviceMap = None,
    attention: Attention = None,
    as_json: AsJson = False,
) -> None:
    """Ask a model every question and score its candidate answers with and without the image.

    Results are stored as they come; the same command again computes only what is missing.
    """
    from unprior.benchmarks.user_file import read_questions
    from unprior.engines.scoring import ScoringRun
    from unprior.engines.store import ScoreStore

    whole = read_questions(benchmark)
    questions = _part(whole, limit, shard)
    engine = _load(model, revision, dtype, device, device_map, attention)
    chosen = tuple(view.strip() for view in views.split(",") if view.strip())
    with ScoreStore(out / "store.sqlite") as store:
        options: dict[str, Any] = {"views": chosen, "resize_to": resize, "whole": whole}
        run = ScoringRun(engine, questions, store, batch_size=batch_size, **options)
        store.set_info(engine.identity)
        with _progress() as report:
            summary = run.run(report)
        written = None
        if len(summary.failures) < summary.examples:
            # Everything that is stored for this benchmark, so that parts of a run add up to one table.
            written = out / "scores.parquet"
            table = run.table() if len(questions) == len(whole) else ScoringRun(engine, whole, store, **options).table()
            table.write(written)
            _warn_about_mass(table)
    failures = [{"example": failure.example_id, "reason": failure.reason} for failure in summary.failures]
    if as_json:
        print_json(
            {
                "examples": summary.examples,
                "computed": summary.computed,
                "reused": summary.reused,
                "failures": failures,
                "out": None if written is None else str(written),
            }
        )
    else:
        done = summary.examples - len(failures)
        where = "no score table" if written is None else str(written)
        work = f"{summary.computed:,} results computed now, {summary.reused:,} stored before"
        output.print(f"{done:,} of {summary.examples:,} examples scored ({work}) → {where}", soft_wrap=True)
        for failure in summary.failures:
            errors.print(f"  failed: {failure.example_id}: {failure.reason}", soft_wrap=True)
    if failures:
        raise typer.Exit(1)


def ask(
    image: Annotated[Path, typer.Argument(help="The picture.")],
    question: Annotated[str, typer.Argument(help="What to ask.")],
    model: ModelName,
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
    picture = to_square(open_image(image), resize)
    engine = _load(model, revision, dtype, device, device_map, attention)
    text = engine.layout.user_text(question, labels, texts)
    continuations = engine.layout.continuations(labels)
    answered = engine.answer_batch([Query(picture, text, continuations)])[0]
    if isinstance(answered, QueryFailure):
        raise UnpriorError(f"{image}: {answered.reason}")
    prior = engine.score_candidates(None, text, continuations)
    original = parse_answer(answered.text, labels)
    decision = None
    if fitted is not None:
        warn_about_other_models(fitted, [engine.name])
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


def _load(
    model: str, revision: str | None, dtype: str, device: str | None, device_map: str | None, attention: str | None
) -> TransformersEngine:
    from unprior.engines.transformers import TransformersEngine

    with errors.status(f"Loading {model} …"):
        engine = TransformersEngine(
            model, revision=revision, dtype=dtype, device=device, device_map=device_map, attention=attention
        )
    if not engine.shares_prefix:
        warn(
            f"{model}: reusing the read part of a prompt does not give the same scores as reading it whole, so every "
            f"prompt is read whole; results are right but slower"
        )
    return engine


def _part(benchmark: Benchmark, limit: int | None, shard: str | None) -> Benchmark:
    from unprior.benchmarks.schema import Benchmark

    examples = list(benchmark)[:limit]
    if shard is not None:
        part, _, parts = shard.partition("/")
        if not (part.isdigit() and parts.isdigit() and 1 <= int(part) <= int(parts)):
            raise UnpriorError(f"--shard {shard}: give part and number of parts as i/n with i from 1 to n, e.g. 2/4")
        examples = examples[int(part) - 1 :: int(parts)]
        if not examples:
            raise UnpriorError(f"--shard {shard}: there are fewer examples than parts, this part is empty")
    return Benchmark(benchmark.name, examples)


def _split_options(options: str) -> tuple[str, ...]:
    separator = "|" if "|" in options else ","
    texts = tuple(text.strip() for text in options.split(separator) if text.strip())
    if not 2 <= len(texts) <= 26 or len(set(texts)) < len(texts):
        raise UnpriorError(f"--options {options!r}: give 2 to 26 different answers separated by |")
    return texts


@contextmanager
def _progress() -> Iterator[Callable[[Progress], None]]:
    """A bar with rate and time left in a terminal, a plain line now and then elsewhere."""
    if not errors.is_terminal:
        yield _plain_progress()
        return
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    columns = (
        TextColumn("Scoring"), BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[rate]}"),
        TimeRemainingColumn(), TextColumn("[red]{task.fields[failed]}"),
    )  # fmt: skip
    with Bar(*columns, console=errors, transient=True) as bar:
        task = bar.add_task("", total=None, rate="", failed="")
        start = time.monotonic()
        stored: list[int] = []

        def report(progress: Progress) -> None:
            stored.append(progress.done)  # the first report counts what was stored before
            rate = (progress.done - stored[0]) / max(time.monotonic() - start, 1e-9)
            failed = f"{progress.failed} failed" if progress.failed else ""
            bar.update(task, completed=progress.done, total=progress.total, rate=f"{rate:.1f}/s", failed=failed)

        yield report


def _plain_progress() -> Callable[[Progress], None]:
    start = time.monotonic()
    stored: list[int] = []
    said = [start]

    def report(progress: Progress) -> None:
        now = time.monotonic()
        stored.append(progress.done)  # the first report counts what was stored before
        if now - said[0] >= _PLAIN_SECONDS:
            said[0] = now
            rate = (progress.done - stored[0]) / (now - start)
            left = f", {(progress.total - progress.done) / rate:,.0f} s left" if rate > 0 else ""
            failed = f", {progress.failed} failed" if progress.failed else ""
            errors.print(f"scored {progress.done:,} of {progress.total:,} ({rate:.1f}/s{left}{failed})", soft_wrap=True)

    return report


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
        output.print("Without --calibrator the answer stays as it is; `unprior fit` makes one.")
    else:
        output.print(decision.explain(), soft_wrap=True)
