from __future__ import annotations

import pytest

from unprior import UnpriorError
from unprior.prompts import PromptLayout

LETTERS = ["A", "B", "C", "D"]


def test_the_multiple_choice_prompt_is_the_paper_s() -> None:
    text = PromptLayout().user_text("How many fingers?", LETTERS, ["four", "five", "six", "seven"])
    assert text == (
        "How many fingers?\nA. four\nB. five\nC. six\nD. seven\nAnswer with a single letter (A, B, C, or D)."
    )


def test_the_yes_no_prompt_is_the_paper_s() -> None:
    assert PromptLayout().user_text("Is it red?", ["yes", "no"], None) == "Is it red?\nAnswer with yes or no."


def test_every_part_of_the_layout_can_be_replaced() -> None:
    layout = PromptLayout(
        option_line="({label}) {text}", choice_instruction="Pick {labels}:", instruction_before="Look closely.",
        continuation="{label}",
    )  # fmt: skip
    assert layout.user_text("Which?", ["A", "B"], ["x", "y"]) == "Look closely.\nWhich?\n(A) x\n(B) y\nPick A or B:"
    assert layout.continuations(["A", "B"]) == ("A", "B")
    assert PromptLayout().continuations(["yes", "no"]) == (" yes", " no")


def test_one_option_is_not_a_question() -> None:
    with pytest.raises(UnpriorError, match="at least two options"):
        PromptLayout().user_text("Which?", ["A"], ["x"])


def test_options_in_the_question_and_the_benchmark_s_own_last_line() -> None:
    layout = PromptLayout()
    assert (
        layout.user_text("(A) x or (B) y?", ["A", "B"], None)
        == "(A) x or (B) y?\nAnswer with a single letter (A or B)."
    )
    assert layout.user_text("Which?", ["A", "B"], ["x", "y"], "Answer with A or B.").endswith(
        "B. y\nAnswer with A or B."
    )
    assert layout.user_text("Is it?", ["yes", "no"], None, "Say yes or no.") == "Is it?\nSay yes or no."


@pytest.mark.parametrize(
    "wording", ["{label:>999999999} {text}", "{label!r} {text}", "{label.x} {text}", "{label}", "{", ""]
)
def test_only_plain_places_are_filled_in(wording: str) -> None:
    with pytest.raises(UnpriorError, match=r"write \{label\} and \{text\} where it is filled in"):
        PromptLayout(option_line=wording).check()
    PromptLayout(option_line="{{{label}}} {text}", choice_instruction="A letter.").check()
