from __future__ import annotations

import pytest

from unprior import UnpriorError
from unprior.engines.prompts import PromptLayout, parse_answer

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


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("A", "A"),
        (" B", "B"),
        ("C.", "C"),
        ("(D)", "D"),
        ("**B**", "B"),
        ("B. six", "B"),
        ("B) six fingers are visible, so not A", "B"),
        ("b", "B"),
        ("b.", "B"),
        ("a. five", "A"),
        ("The answer is b", "B"),
        ("The answer is a dog", None),
        ("\n\nC\n", "C"),
        ("The answer is B.", "B"),
        ("The correct answer is (C), since the hand has six fingers.", "C"),
        ("Final answer: D", "D"),
        ("**Final Answer:** A", "A"),
        ("answer: option B", "B"),
        ("I considered A, but the answer is C", "C"),
        ("Looking at the hand, six fingers: B", "B"),
        ("It must be option D here", "D"),
        ("<think>It could be A.</think>\n\nB", "B"),
        ("<think>one</think> A <think>two</think> C", "C"),
        ("reasoning without a start tag</think>D", "D"),
        ("<think>It is A, no wait", None),  # never closes its block
        ("", None),
        ("E", None),
        ("Six fingers", None),
        ("a dog and a cat", None),
        ("Don't know", None),  # the D of a word is no answer
        ("Because of the colour", None),
        ("I see DNA strands", None),
        ("B's claim is wrong", None),
    ],
)
def test_letters(text: str, expected: str | None) -> None:
    assert parse_answer(text, LETTERS) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("yes", "yes"),
        ("Yes.", "yes"),
        ("NO", "no"),
        ("No, the hand has six fingers. Yes, really.", "no"),
        ("**Yes**", "yes"),
        ("The answer is no.", "no"),
        ("I would say yes, not no.", "yes"),
        ("There is no doubt: yes", "yes"),
        ("<think>yes</think>No", "no"),
        ("<think>yes yes", None),
        ("Nothing", None),
        ("yesterday", None),
        ("know", None),
        ("", None),
        ("?!", None),
    ],
)
def test_yes_no(text: str, expected: str | None) -> None:
    assert parse_answer(text, ["yes", "no"]) == expected


def test_only_the_question_s_letters_count() -> None:
    assert parse_answer("C", ["A", "B"]) is None
    assert parse_answer("E", ["A", "B", "C", "D", "E"]) == "E"


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
