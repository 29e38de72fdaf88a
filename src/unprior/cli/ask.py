"""The command that asks one question about one picture."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from unprior.cli.benchmarks import Resize
from unprior.cli.console import AsJson, errors, output, print_json, warn
from unprior.cli.model import (
    DEFAULT_NEW_TOKENS,
    ENGINES,
    AllowCensored,
    Attention,
    BaseUrls,
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
)
from unprior.cli.provenance import Force, tell_differences
from unprior.errors import UnpriorError

if TYPE_CHECKING:
    from unprior.calibration import Decision, SelectivePriorCalibrator


def ask(
    image: Annotated[Path, typer.Argument(help="The picture.")],
    question: Annotated[str, typer.Argument(help="What to ask.")],
    model: ModelName = "embedded",
    options: Annotated[
        str | None, typer.Option(help="Answers to choose from, separated by | (or commas); without: yes or no.")
    ] = None,
    calibrator: Annotated[Path | None, typer.Option(help="Calibrator of this model, made by `unprior fit`.")] = None,
    resize: Resize = None,
    force: Force = False,
    revision: Revision = None,
    trust_remote_code: TrustRemoteCode = False,
    dtype: DType = "auto",
    device: Device = None,
    device_map: DeviceMap = None,
    attention: Attention = None,
    engine: EngineName = ENGINES[0],
    base_url: BaseUrls = None,
    tensor_parallel: TensorParallel = 1,
    allow_censored: AllowCensored = False,
    max_new_tokens: MaxNewTokens = DEFAULT_NEW_TOKENS,
    as_json: AsJson = False,
) -> None:
    """Ask one question about one picture, and show how the candidates score with and without it."""
    from unprior.calibration import SelectivePriorCalibrator
    from unprior.engines.protocol import MIN_MASS, Query, QueryFailure
    from unprior.images import open_image
    from unprior.images import resize as to_square
    from unprior.prompts import YES_NO, is_cut_off, parse_answer
    from unprior.scoring.plan import engine_provenance

    fitted = None if calibrator is None else SelectivePriorCalibrator.load(calibrator)
    texts = None if options is None else _split_options(options)
    labels = YES_NO if texts is None else tuple("ABCDEFGHIJKLMNOPQRSTUVWXYZ"[: len(texts)])
    side = (_fitted_size(fitted) if resize is None else resize) or None
    picture = to_square(open_image(image), side)
    urls = tuple(base_url or ())
    asked = ModelOptions(
        model, revision, dtype, device, device_map, attention, engine, urls, tensor_parallel=tensor_parallel,
        most_new_tokens=max_new_tokens, trust_remote_code=trust_remote_code,
    ).load()  # fmt: skip
    if fitted is not None:
        differences = fitted.differences([engine_provenance(asked, side)])
        tell_differences(
            f"the answer would not be scored as those that {calibrator} was fitted on", differences, force=force
        )
    text = asked.layout.user_text(question, labels, texts)
    continuations = asked.layout.continuations(labels)
    answered = asked.answer_batch([Query(picture, text, continuations)])[0]
    if isinstance(answered, QueryFailure):
        raise UnpriorError(f"{image}: {answered.reason}")
    prior = asked.score_candidates(None, text, continuations)
    if not all(math.isfinite(score) for score in (*answered.scored.scores, *prior.scores)):
        raise UnpriorError(f"{model} gave a score that is not finite; try another precision, e.g. --dtype float32")
    if any((*(answered.scored.censored or ()), *(prior.censored or ()))):
        if fitted is not None and not allow_censored:
            raise UnpriorError(
                "a candidate is not among the tokens that the server shows; --allow-censored takes a bound"
            )
        warn("a candidate is not among the tokens that the server shows; its score is only an upper bound")
    original = final = parse_answer(answered.text, labels)
    from unprior.scores.checked import warn_about_cut_off

    warn_about_cut_off(int(is_cut_off(answered.text)), 1)
    decision = None
    if fitted is not None:
        # Options by their own words, so that the explanation needs no key.
        names = labels if texts is None else [f"{label}. {text}" for label, text in zip(labels, texts, strict=True)]
        named = None if original is None else names[labels.index(original)]
        decision = fitted.decide(names, answered.scored.scores, prior.scores, named)
        final = None if decision.final is None else labels[names.index(decision.final)]
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
        explanation = None if decision is None else decision.explain()
        print_json(
            {"answer": final, "original": original, "original_text": answered.text, "candidates": rows,
             "explanation": explanation}
        )  # fmt: skip
        return
    _print_answer(rows, original, final, answered.text, decision)
    if answered.scored.mass < MIN_MASS:
        warn(f"the candidates hold only {answered.scored.mass:.1%} of the model's probability with the image")


def _fitted_size(calibrator: SelectivePriorCalibrator | None) -> int | None:
    """Side of the images that a calibrator was fitted at, which is said where it is not the usual one."""
    sizes = set() if calibrator is None else {record.image_size for record in calibrator.provenance_} - {None}
    if len(sizes) != 1:
        return None
    side = sizes.pop()
    if side:
        errors.print(
            f"The image is brought to {side}×{side}, as those that the calibrator was fitted on; --resize chooses "
            f"another size.",
            soft_wrap=True,
        )
    return side


def _split_options(options: str) -> tuple[str, ...]:
    separator = "|" if "|" in options else ","
    texts = tuple(text.strip() for text in options.split(separator) if text.strip())
    if not 2 <= len(texts) <= 26 or len(set(texts)) < len(texts):
        raise UnpriorError(f"--options {options!r}: give 2 to 26 different answers separated by |")
    return texts


def _print_answer(
    rows: list[dict[str, Any]], original: str | None, final: str | None, text: str, decision: Decision | None
) -> None:
    from rich.text import Text

    from unprior.tables.terminal import plain_table

    table = plain_table()
    table.add_column("Candidate")
    for name in ("with image", "without", "corrected"):
        table.add_column(name, justify="right")
    for row in rows:
        name = _candidate(row)
        corrected = "–" if row["corrected_score"] is None else f"{row['corrected_score']:+.3f}"
        style = "bold" if row["candidate"] == final else ""
        cells = (f"{row['image_score']:.3f}", f"{row['prior_score']:.3f}", corrected)
        table.add_row(Text(name), *cells, style=style)
    output.print(table)
    named = next((_candidate(row) for row in rows if row["candidate"] == original), "nothing that names a candidate")
    output.print(f"The model answered {named} ({text.strip()!r}).", soft_wrap=True)
    if decision is None:
        output.print(
            "Without --calibrator the answer stays as it is; `unprior run` and `unprior fit` make one.", soft_wrap=True
        )
    else:
        output.print(decision.explain(), soft_wrap=True)


def _candidate(row: dict[str, Any]) -> str:
    """A candidate as a person reads it: letter and text."""
    return str(row["candidate"]) if row["text"] is None else f"{row['candidate']}. {row['text']}"
