"""Other right answers: short forms, synonyms, and what must not be taken for one."""

from __future__ import annotations

import pytest

from unprior.answer_forms import is_accepted
from unprior.benchmarks.aliases import aliases_of, with_synonyms

COUNT = "How many fingers are there?"


@pytest.mark.parametrize(
    ("question", "answer", "options", "expected"),
    [
        (COUNT, "5 fingers", ["5 fingers", "6 fingers"], ("5",)),
        (COUNT, "Six fingers", [], ("6",)),
        (COUNT, "twenty-one fingers", [], ("21",)),
        (COUNT, "5", ["6"], ()),  # nothing shorter
        (COUNT, "0 fingers", ["1 finger"], ("0", "none", "no fingers")),
        (COUNT, "many fingers", [], ()),
        ("Count the flowers.", "3 flowers", [], ("3",)),
        ("Pick the number of trunks.", "2 trunks", [], ("2",)),
        # The number alone is no answer where none is asked for, or where it may be another option.
        ("What is about the thumbs?", "One hand has 3 thumbs", [], ()),
        (COUNT, "5 fingers", ["5 thumbs"], ()),
        ("Which shape?", "Cubic (square-shaped)", ["Round"], ("cubic",)),
        ("Which shape?", "Cubic (square-shaped)", ["Cubic (with holes)"], ()),
        ("Which shape?", "(square)", [], ()),
        ("Can it be eaten?", "No, inedible", ["Yes, edible"], ("no",)),
        ("Can it be eaten?", "No, inedible", ["No, it is poison"], ()),
        ("Who is it?", "Nobody, yes", [], ()),
    ],
)
def test_short_forms(question: str, answer: str, options: list[str], expected: tuple[str, ...]) -> None:
    assert aliases_of(question, answer, options) == expected
    assert aliases_of(question, answer, [*options, answer, answer.upper()]) == expected, "an option for itself"


def test_synonyms_exchange_whole_words_in_any_order() -> None:
    groups = [("gray", "grey"), ("see-through", "transparent", "clear")]
    assert with_synonyms("Grey", groups) == ("grey", "gray")
    assert with_synonyms("Greyhound", groups) == ("greyhound",)
    assert set(with_synonyms("a clear, gray bottle", groups)) == {
        f"{look} {colour} bottle" for look in ("clear", "see through", "transparent") for colour in ("gray", "grey")
    }
    assert with_synonyms("Red", ()) == ("red",)


def test_a_synonym_that_is_another_option_is_no_alias() -> None:
    groups = [("clear", "transparent")]
    assert aliases_of("How does it look?", "Clear", ["Opaque"], groups) == ("transparent",)
    assert aliases_of("How does it look?", "Clear", ["Transparent", "Opaque"], groups) == ()


def test_aliases_are_accepted_in_every_form() -> None:
    found = aliases_of(COUNT, "6 fingers", ["5 fingers"], [("fingers", "digits")])
    assert found == ("6 digits", "6")
    for text in ("Six", "6.", "the six digits", "Six Fingers!"):
        assert is_accepted(text, "6 fingers", found)
    assert not is_accepted("5 digits", "6 fingers", found)
