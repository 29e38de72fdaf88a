"""Written forms of one answer: what is the same, and what must not be."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from num2words import num2words

from unprior.answer_forms import group_forms, is_accepted, normalize_answer, read_open_answer

SAME = [
    ("The Six Fingers.", "6 fingers"), ("see-through", "See through!"), ("a hundred", "100"), ("a cat", "the cat"),
    ("1,000 cats", "1000 cats"), ("3.50 m", "3.5 m"), ("６ fingers", "six fingers"), ("**blue**", "Blue"),
    ("“blue”", "blue"), ("it's red", "its red"), ("twenty one", "21"), ("Cafe\N{COMBINING ACUTE ACCENT}", "café"),
]  # fmt: skip
DIFFERENT = [
    ("5", "6"), ("type A", "type"), ("10²", "102"), ("C++", "C"), ("> 5", "< 5"), ("5-6", "5 6"), ("-5", "5"),
    ("5:2", "5 2"), ("काला", "कीला"), ("दिन", "दान"), ("1.5", "15"), ("no", ""), ("yes", "no"), ("left", "right"),
    ("50 %", "50"), ("A", "the"),
]  # fmt: skip


@pytest.mark.parametrize(("one", "other"), SAME)
def test_forms_of_one_answer(one: str, other: str) -> None:
    assert normalize_answer(one) == normalize_answer(other)
    assert is_accepted(one, "something else", [other])


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_different_answers_stay_different(one: str, other: str) -> None:
    assert normalize_answer(one) != normalize_answer(other)


@given(st.integers(0, 999))
def test_numbers_in_words_are_numbers(number: int) -> None:
    assert normalize_answer(f"{num2words(number)} legs") == f"{number} legs"


@given(st.text(max_size=60))
def test_normalising_twice_changes_nothing(text: str) -> None:
    once = normalize_answer(text)
    assert normalize_answer(once) == once
    assert group_forms([text, once]) == [[0, 1]]


@pytest.mark.parametrize("text", ["7" * 100_000, "-" * 100_000, "a\N{COMBINING ACUTE ACCENT}" * 50_000, "٣" * 10, "\0"])
def test_strange_texts_are_read(text: str) -> None:
    assert isinstance(normalize_answer(text), str)


def test_the_first_line_is_the_answer() -> None:
    assert read_open_answer("\n 6 fingers \nor so") == " 6 fingers"
    assert read_open_answer("<think>five?</think>\nsix") == "six"
    assert read_open_answer("six", thinking=True) is None
    assert read_open_answer("   ") is None
