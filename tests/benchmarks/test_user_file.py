from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from unprior import UnpriorError
from unprior.benchmarks.schema import Benchmark, Example
from unprior.benchmarks.user_file import read_questions, write_questions

MINIMAL = {"image": "a.png", "question": "Is it red?"}
CHOICE = {"image": "b.png", "question": "How many?", "options": ["five", "six"], "answer": "six"}


def write(folder: Path, *rows: dict[str, Any] | str) -> Path:
    path = folder / "mine.jsonl"
    path.write_text("\n".join(row if isinstance(row, str) else json.dumps(row) for row in rows), encoding="utf-8")
    return path


def test_questions_become_examples(tmp_path: Path) -> None:
    pair = {"pair": 7, "side": "cf", "split": "dev", "id": "seven", "category": "Counting"}
    benchmark = read_questions(write(tmp_path, MINIMAL, "", CHOICE | pair))
    assert benchmark.name == "mine"
    yes_no, choice = benchmark
    assert (yes_no.task, yes_no.labels, yes_no.texts, yes_no.answer) == ("qa", ("yes", "no"), None, None)
    assert (yes_no.example_id, yes_no.image, yes_no.side) == ("1", tmp_path / "a.png", None)
    assert (choice.task, choice.labels, choice.texts, choice.answer) == ("mc", ("A", "B"), ("five", "six"), "B")
    assert (choice.example_id, choice.pair_id, choice.side, choice.split) == ("seven", 7, "cf", "dev")


def test_questions_about_one_image_share_its_path(tmp_path: Path) -> None:
    first, other, second = read_questions(write(tmp_path, MINIMAL, CHOICE, MINIMAL))
    assert first.image is second.image
    assert (first.image, other.image) == (tmp_path / "a.png", tmp_path / "b.png")


CLAIMS = MINIMAL | {"claims": ["red", "blue"]}


def test_claims_of_yes_no_questions(tmp_path: Path) -> None:
    given = [MINIMAL, CLAIMS, CLAIMS | {"open_question": "What color is it?"}, MINIMAL | {"claims": [5, 6]}]
    benchmark = read_questions(write(tmp_path, *given))
    assert [example.claims for example in benchmark] == [None, ("red", "blue"), ("red", "blue"), ("5", "6")]
    assert [example.open_question for example in benchmark] == [None, None, "What color is it?", None]
    write_questions(tmp_path / "again.jsonl", benchmark)
    again = read_questions(tmp_path / "again.jsonl")
    assert list(again) == list(benchmark)
    assert again.digest() == benchmark.digest() == read_questions(write(tmp_path, *[MINIMAL] * 4)).digest()


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (MINIMAL | {"claims": ["red"]}, "claims has 1 answers: give two that exclude each other"),
        (MINIMAL | {"claims": ["red", "blue", "green"]}, "claims has 3 answers"),
        (MINIMAL | {"claims": ["red", " "]}, "a claim is empty"),
        (MINIMAL | {"claims": ["red", "red "]}, "both claims are 'red'"),
        (MINIMAL | {"claims": "red"}, "claims: must be a list"),
        (CHOICE | {"claims": ["five", "six"]}, "claims are for yes/no questions"),
        (MINIMAL | {"letters": ["A", "B"], "claims": ["five", "six"]}, "claims are for yes/no questions"),
        (MINIMAL | {"open_question": "What color is it?"}, "open_question is what the claims answer"),
        (CLAIMS | {"open_question": " "}, "open_question must not be empty"),
    ],
)
def test_wrong_claims_are_named(tmp_path: Path, row: dict[str, Any], reason: str) -> None:
    with pytest.raises(UnpriorError, match=f"line 2: {reason}"):
        read_questions(write(tmp_path, MINIMAL, row))


def test_claims_of_examples_made_in_python_are_checked() -> None:
    example = Example("1", Path("a.png"), "Is it red?", "qa", ("yes", "no"), claims=("red", "blue"))
    assert len(Benchmark("mine", [example])) == 1
    letters = {"task": "mc", "labels": ("A", "B"), "texts": ("red", "blue")}
    for changes in ({"claims": ("red", "red")}, {"claims": ("red", "")}, letters):
        with pytest.raises(UnpriorError, match=r"benchmark mine: example 1 has the claims .* give two different texts"):
            Benchmark("mine", [replace(example, **changes)])


@pytest.mark.parametrize(
    ("row", "label"),
    [
        (CHOICE | {"options": ["A", "b"], "answer": "b"}, "B"),
        (CHOICE | {"answer": "b"}, "B"),
        (CHOICE | {"answer": "five"}, "A"),
        (MINIMAL | {"answer": "Yes"}, "yes"),
    ],
)
def test_an_answer_may_be_an_option_or_its_letter(tmp_path: Path, row: dict[str, Any], label: str) -> None:
    assert read_questions(write(tmp_path, row)).examples[0].answer == label


@pytest.mark.parametrize(
    ("row", "label"),
    [
        (CHOICE | {"options": ["4", "5"], "answer": 5}, "B"),
        (CHOICE | {"options": [4, 5], "answer": "4"}, "A"),
        (CHOICE | {"options": [2.5, 3.5], "answer": 3.5}, "B"),
    ],
)
def test_a_number_is_the_answer_that_is_written_so(tmp_path: Path, row: dict[str, Any], label: str) -> None:
    (example,) = read_questions(write(tmp_path, row | {"id": 7}))
    assert (example.answer, example.example_id) == (label, "7")


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"question": "?"}, "line 2: image: missing"),
        (MINIMAL | {"options": ["one"]}, "line 2: options"),
        (MINIMAL | {"options": ["a", "a"]}, "two options are the same"),
        (CHOICE | {"answer": "seven"}, "answer 'seven' is neither an option nor its letter"),
        (MINIMAL | {"answer": "maybe"}, "answer 'maybe'"),
        (MINIMAL | {"pair": 1}, "pair and side belong together"),
        (MINIMAL | {"side": "left"}, "line 2: side"),
        (MINIMAL | {"options": ["a", "a"], "answer": "a?"}, "answer 'a\\?' is neither an option nor its letter"),
        (CHOICE | {"letters": ["A", "B"]}, "options and letters exclude each other"),
        (MINIMAL | {"letters": ["A", "A"]}, "two letters are the same"),
        (MINIMAL | {"opitons": ["a", "b"]}, "there is no field opitons .did you mean options"),
        (CHOICE | {"answer": 7}, "answer '7' is neither an option nor its letter"),
        (CHOICE | {"answer": True}, "line 2: answer: must be text, not true"),
        (CHOICE | {"options": ["five", " "]}, "an option is empty"),
        (MINIMAL | {"question": "\u200b"}, "question must not be empty"),
        (MINIMAL | {"options": ["\u00e9", "e\u0301"]}, "two options are the same"),
        (CHOICE | {"options": ["six", "six\u00a0"]}, "two options are the same"),
        (CHOICE | {"options": ["six", "six\u200b"]}, "two options are the same"),
        (CHOICE | {"options": ["B", "A"], "answer": "A"}, "answer 'A' is the text of one option and the letter of"),
        (MINIMAL | {"question": " "}, "question must not be empty"),
        (MINIMAL | {"letters": ["a", "A"]}, "two letters are the same"),
        (MINIMAL | {"pair": 1.5, "side": "cf"}, "line 2: pair: must be a whole number or text, not 1.5"),
        ("[" * 100_000, "line 2"),
        ('{"image": "a.png", "question": "\\ud800"}', "line 2"),
        ("{broken", "line 2"),
        ('"text"', "line 2"),
    ],
)
def test_invalid_lines_are_named(tmp_path: Path, row: dict[str, Any] | str, message: str) -> None:
    with pytest.raises(UnpriorError, match=message):
        read_questions(write(tmp_path, MINIMAL, row))


def test_empty_missing_and_doubled(tmp_path: Path) -> None:
    with pytest.raises(UnpriorError, match="no questions"):
        read_questions(write(tmp_path, ""))
    with pytest.raises(UnpriorError, match="no such file"):
        read_questions(tmp_path / "nothing.jsonl")
    with pytest.raises(UnpriorError, match="two examples are called 'x'"):
        read_questions(write(tmp_path, MINIMAL | {"id": "x"}, CHOICE | {"id": "x"}))


def test_a_byte_order_mark_is_no_part_of_the_first_question(tmp_path: Path) -> None:
    path = write(tmp_path, MINIMAL, CHOICE)
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    assert len(read_questions(path)) == 2


def test_doubled_options_need_a_letter(tmp_path: Path) -> None:
    doubled = CHOICE | {"options": ["five", "six", "six"], "answer": "C"}
    assert read_questions(write(tmp_path, doubled)).examples[0].answer == "C"
    with pytest.raises(UnpriorError, match="name the right one by its letter"):
        read_questions(write(tmp_path, doubled | {"answer": "five"}))


def test_options_inside_the_question_and_an_instruction_of_its_own(tmp_path: Path) -> None:
    row = MINIMAL | {"question": "Red (A) or blue (B)?", "letters": ["A", "B"], "answer": "b", "instruction": "A or B?"}
    (example,) = read_questions(write(tmp_path, row))
    assert (example.task, example.labels, example.texts, example.answer) == ("mc", ("A", "B"), None, "B")
    assert example.instruction == "A or B?"


def test_a_pair_in_two_splits_is_refused(tmp_path: Path) -> None:
    rows = [MINIMAL | {"pair": 1, "side": side, "split": split} for side, split in (("cf", "dev"), ("cs", "test"))]
    with pytest.raises(UnpriorError, match="pair 1 stands in two splits, dev and test"):
        read_questions(write(tmp_path, *rows))
