"""Probes of prompts: whether the chat template writes the same with and without an image, and leaves room to answer."""

from __future__ import annotations

from unprior.engines.doctor.finding import Verdict
from unprior.engines.doctor.trial import Trial
from unprior.engines.transformers.chat_template import beyond_the_image
from unprior.prompts import opened_block, thinks

_QUESTION = "Which picture?"
_UNSEEN = Verdict("skipped", "the engine does not show its prompts")


def chat_template(trial: Trial) -> Verdict:
    """The image stands before the text, and everything else is the same without it."""
    prompts = _prompts(trial)
    return _UNSEEN if prompts is None else template_fault(*prompts) or Verdict("ok", "alike but for the image")


def thinking(trial: Trial) -> Verdict:
    """No block for thinking is open where candidates are scored."""
    served = getattr(trial.engine, "served", None)
    prompts = _prompts(trial) or ()
    opened = getattr(served, "opened_block", "") or next((tag for tag in map(_opened_behind, prompts) if tag), "")
    if opened:
        return Verdict(
            "failed",
            f"the chat template opens {opened}: candidates are scored as the first words of a thought",
            trial.advice(
                "Switch thinking off with an argument of the chat template, or correct chat_template.jinja beside the "
                "model.",
                openai="Serve the model with a chat template that opens no such block, or none when it is told "
                "enable_thinking=false (vllm serve --chat-template FILE).",
            ),
        )
    if thinks([trial.answers(trial.choice(trial.image))[0].text]):
        remedy = "Candidates are scored as answers without a thought before them: switch the model's thinking off."
        return Verdict("warning", "the model thinks before it answers, though no prompt asks for it", remedy)
    left_out = "; the template would open one, and is told not to" if getattr(served, "thinking", "") else ""
    return Verdict("ok", f"no thinking block{left_out}") if prompts or served else _UNSEEN


def _opened_behind(prompt: str) -> str:
    return opened_block(prompt.rpartition(_QUESTION)[2])


def _prompts(trial: Trial) -> tuple[str, str] | None:
    """The prompts of a question without and with an image as the model reads them, where they can be seen."""
    if (encoder := getattr(trial.engine, "encoder", None)) is not None:
        return encoder.render(False, _QUESTION), encoder.render(True, _QUESTION)
    read = getattr(trial.engine, "prompt_as_read", None)
    seen = [] if read is None else [read(image, _QUESTION) for image in (None, trial.image)]
    return (seen[0], seen[1]) if seen and all(seen) else None


def template_fault(plain: str, with_image: str, text: str = _QUESTION) -> Verdict | None:
    """What is wrong with the prompts of a text without and with an image; None if nothing is."""
    if plain == with_image:  # whether that matters, the scores tell
        return Verdict("skipped", "the prompt shows no trace of the image; see image dropped")
    lines = [line.strip() for line in text.splitlines()]
    lost = [line for prompt in (plain, with_image) for line in lines if line not in prompt]
    if lost:
        detail = f"no text ({lost[0]!r} is missing)"
    elif plain.rpartition(lines[-1])[2] != with_image.rpartition(lines[-1])[2]:  # something stands behind the text
        detail = "the text before the image"
    else:
        difference = beyond_the_image(plain, with_image)
        if difference is None:
            return None
        remedy = "Scores and priors would belong to different prompts: correct chat_template.jinja beside the model."
        return Verdict("failed", f"the chat template {difference}", remedy)
    remedy = "Give the model a chat template that renders the image, then the text (chat_template.jinja beside it)."
    return Verdict("failed", f"the chat template renders {detail}", remedy)
