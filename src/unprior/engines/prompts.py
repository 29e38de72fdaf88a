"""What the model is asked, and how its answer is read."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from unprior.errors import UnpriorError

YES_NO = ("yes", "no")


@dataclass(frozen=True, slots=True)
class PromptLayout:
    """The wording around a question; every part can be replaced.

    >>> print(PromptLayout().user_text("How many fingers?", ["A", "B"], ["five", "six"]))
    How many fingers?
    A. five
    B. six
    Answer with a single letter (A or B).
    """

    option_line: str = "{label}. {text}"
    """One line per option of a multiple-choice question."""
    choice_instruction: str = "Answer with a single letter ({labels})."
    """Closes a multiple-choice question; ``{labels}`` becomes “A, B, C, or D”."""
    yes_no_instruction: str = "Answer with yes or no."
    """Closes a yes/no question."""
    scoring_suffix: str = "\nFinal answer:"
    """Added to the user's text when candidates are scored."""
    continuation: str = " {label}"
    """How a candidate starts the assistant's turn."""
    instruction_before: str = ""
    """Text before the question, such as a grounding instruction."""

    def user_text(
        self, question: str, labels: Sequence[str], texts: Sequence[str] | None, instruction: str | None = None
    ) -> str:
        """Text of the user's turn: question, options, instruction.

        Without ``texts`` no options are listed: the question is answered by yes or no, or lists them itself. An
        ``instruction`` of the benchmark's own takes the place of the last line.
        """
        lines = [self.instruction_before] if self.instruction_before else []
        lines.append(question)
        if texts is not None:
            lines += [
                self.option_line.format(label=label, text=text) for label, text in zip(labels, texts, strict=True)
            ]
        if instruction is None and texts is None and set(labels) == set(YES_NO):
            instruction = self.yes_no_instruction
        lines.append(instruction or self.choice_instruction.format(labels=_enumeration(labels)))
        return "\n".join(lines)

    def continuations(self, labels: Sequence[str]) -> tuple[str, ...]:
        """The texts that are scored."""
        return tuple(self.continuation.format(label=label) for label in labels)


def _enumeration(labels: Sequence[str]) -> str:
    if len(labels) < 2:
        raise UnpriorError(f"a question needs at least two options, got {len(labels)}")
    return f"{labels[0]} or {labels[1]}" if len(labels) == 2 else ", ".join(labels[:-1]) + f", or {labels[-1]}"


def parse_answer(text: str, labels: Sequence[str]) -> str | None:
    """Find the answer in what a model wrote; None when there is none.

    A completed thinking block is dropped; one that never closes leaves nothing to parse. For letters: one at the
    start, else after “(final) answer”, else one standing alone. For yes/no: the first word, else “yes” anywhere,
    else “no” anywhere.

    >>> parse_answer("<think>Maybe A.</think> The answer is (B).", ["A", "B", "C", "D"])
    'B'
    >>> parse_answer("Well, no.", ["yes", "no"])
    'no'
    """
    visible = text.rpartition("</think>")[2] if "</think>" in text else text
    if "<think>" in visible:
        return None
    return _parse_yes_no(visible) if set(labels) == set(YES_NO) else _parse_letter(visible, labels)


def _parse_yes_no(text: str) -> str | None:
    words = re.findall(r"[a-z]+", text.lower())
    if not words:
        return None
    return next((answer for answer in (words[0], *YES_NO) if answer in YES_NO and answer in words), None)


def _parse_letter(text: str, labels: Sequence[str]) -> str | None:
    by_letter = {label.lower(): label for label in labels}
    letter = "(" + "|".join(re.escape(label) for label in labels) + ")"
    end = r"(?![\w'’])"
    after_answer = r"(?i:answer)\W*(?i:is|would be)?\W*(?i:option|choice|letter)?\W*"
    patterns = (
        # A lower-case letter counts at the start only when nothing but punctuation follows it: “a dog” is no answer.
        rf"^\W*{letter}{end}",
        rf"^\W*(?i:{letter})(?:[.):]|\W*$)",
        rf"{after_answer}{letter}{end}",
        rf"{after_answer}(?i:{letter})\W*$",
        rf"(?<![\w'’]){letter}{end}",
    )
    for pattern in patterns:
        found = re.search(pattern, text)
        if found:
            return by_letter[found[1].lower()]
    return None
