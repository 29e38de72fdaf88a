"""The command that asks one question about one image."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from unprior.cli.calibrate import Force
from unprior.cli.console import AsJson, flag, output, print_json, warn
from unprior.cli.lazy import examples
from unprior.cli.options import takes_config
from unprior.cli.progress import reporting
from unprior.errors import UnpriorError
from unprior.runs.config import RunConfig

if TYPE_CHECKING:
    from unprior.scoring.ask import Answer


@examples(
    'unprior ask photo.jpg "How many fingers?" --options "four|five|six"',
    'unprior ask photo.jpg "How many fingers?" --open --model Qwen/Qwen3-VL-8B-Instruct --calibrator calibrator.json',
)
@takes_config(
    "model", "engine", "prompt", "resize", "candidates",
    leave_out=("concurrency", "batch_size"),
)  # fmt: skip
def ask(
    image: Annotated[Path, typer.Argument(help="The image.")],
    question: Annotated[str, typer.Argument(help="What to ask.")],
    *,
    config: RunConfig,
    options: Annotated[
        str | None, flag("Benchmark", "Answers to choose from, separated by | (or commas); without: yes or no.")
    ] = None,
    open_ended: Annotated[
        bool, flag("Benchmark", "Let the model answer in its own words, and propose the candidates.", "--open")
    ] = False,
    claims: Annotated[
        str | None,
        flag("Benchmark", "The two answers that a yes/no question is about, that of yes first, separated by |."),
    ] = None,
    open_question: Annotated[
        str | None, flag("Benchmark", "With --claims: the question without a claim in it, such as “How many fingers?”.")
    ] = None,
    calibrator: Annotated[
        str | None,
        flag(
            "Method",
            "Calibrator of this model: a file or folder made by `unprior fit`, or a repository of the hub, owner/name; "
            "the embedded model brings one.",
        ),
    ] = None,
    no_calibrator: Annotated[
        bool, flag("Method", "Leave the answer as it is, also where the model brings a calibrator.", "--no-calibrator")
    ] = False,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Ask one question about one image, and show how the candidates score with and without it."""
    from unprior.engines.load import load_engine
    from unprior.scoring.ask import ask_about, check_claims, check_options, kind_of_question, read_image
    from unprior.scoring.packaged import packaged_calibrator

    config.check()
    fitted = None
    if calibrator is not None and no_calibrator:
        raise UnpriorError("--calibrator and --no-calibrator exclude each other; give one of them")
    if calibrator is not None:
        from unprior.calibration import SelectivePriorCalibrator

        fitted = SelectivePriorCalibrator.from_pretrained(calibrator)
    texts = None
    if options is not None:
        parts = options.split("|" if "|" in options else ",")
        texts = check_options([text.strip() for text in parts if text.strip()])
    if open_ended and (options is not None or claims is not None):
        raise UnpriorError("--open goes without --options and --claims: the model proposes the answers itself")
    pair = None
    if claims is not None:
        pair = [text.strip() for text in claims.split("|")]
        check_claims(pair, texts)
    elif open_question is not None:
        raise UnpriorError("--open-question goes with --claims, which name what yes and no stand for")
    shown, side = read_image(image, fitted, config.benchmark.resize)
    kind = kind_of_question(texts, open_ended=open_ended)
    with reporting() as report:
        engine = load_engine(**config.loading, few_threads=True, report=report)
        packaged = (
            None if calibrator is not None or no_calibrator else packaged_calibrator(engine, side, [kind], force=force)
        )
        answer = ask_about(
            engine, shown, question, options=texts, open_ended=open_ended, claims=pair, open_question=open_question,
            calibrator=fitted or packaged, side=side, force=force, allow_censored=config.engine.allow_censored,
            candidates=config.benchmark.candidates, name=str(image), calibrator_name=str(calibrator or "the package's"),
        )  # fmt: skip
    if as_json:
        named = "packaged" if packaged is not None else None if calibrator is None else str(calibrator)
        print_json(answer.record() | {"calibrator": named})
        return
    _print_answer(answer)
    if packaged is not None:
        output.print(
            f"Decided by the packaged calibrator ({packaged.parameters.version}, ε = {packaged.epsilon_cs:g}), whose "
            f"promise is about drawings of the microworld; --calibrator takes another, --no-calibrator none.",
            style="dim", soft_wrap=True,
        )  # fmt: skip


def _print_answer(answer: Answer) -> None:
    from rich.text import Text

    from unprior.engines.protocol import MIN_MASS
    from unprior.tables.terminal import plain_table

    numbers = ("with image", "without", "corrected")
    table = plain_table(None, ("Candidate", *numbers), right=numbers)
    for each in answer.candidates:
        corrected = "–" if each.corrected_score is None else f"{each.corrected_score:+.3f}"
        style = "bold" if each.label == answer.final else ""
        table.add_row(Text(str(each)), f"{each.image_score:.3f}", f"{each.prior_score:.3f}", corrected, style=style)
    output.print(table)
    named = {each.label: str(each) for each in answer.candidates}.get(answer.original or "")
    words = f"The model answered {named or 'nothing that names a candidate'} ({answer.original_text.strip()!r})."
    output.print(words, soft_wrap=True)
    uncalibrated = "No calibrator was used, so the answer stays as it is; `unprior run` and `unprior fit` make one."
    output.print(answer.explanation or uncalibrated, soft_wrap=True)
    if answer.mass < MIN_MASS:
        warn(f"the candidates hold only {answer.mass:.1%} of the model's probability with the image")
