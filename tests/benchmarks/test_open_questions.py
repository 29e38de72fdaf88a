"""Open questions: in files, as variants of choices, and in everything that walks over examples."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from real_data import real_data
from unprior import UnpriorError
from unprior.benchmarks import cdh_bench
from unprior.benchmarks.card import Card
from unprior.benchmarks.pairs import check_questions, development_pairs
from unprior.benchmarks.registry import load_benchmark
from unprior.benchmarks.schema import LETTERS, Benchmark, Example
from unprior.benchmarks.user_file import read_questions, write_questions
from unprior.benchmarks.variants import Claims, ask_openly
from unprior.prompts import PromptLayout
from unprior.runs.questions import check_questions as check_for_a_run

CLOSED = {"image": "a.png", "question": "Is it red?"}
CHOICE = CLOSED | {"options": ["five", "six"]}
OPEN = {"image": "a.png", "question": "How many fingers?", "task": "open"}
ANSWERED = OPEN | {"answer": "6 fingers", "aliases": ["6", "half a dozen"]}


def write(folder: Path, *rows: dict[str, Any]) -> Path:
    path = folder / "mine.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    return path


def test_an_open_question_is_read_and_written(tmp_path: Path) -> None:
    more = {"pair": 1, "side": "cf", "split": "dev", "instruction": "In one word."}
    benchmark = read_questions(write(tmp_path, OPEN, ANSWERED | more, OPEN | {"answer": 6}, CLOSED))
    bare, answered, number, closed = benchmark
    assert (bare.task, bare.labels, bare.texts, bare.answer, bare.aliases) == ("open", (), None, None, ())
    assert (answered.answer, answered.aliases, answered.pair_id) == ("6 fingers", ("6", "half a dozen"), 1)
    assert answered.user_text(PromptLayout()) == "How many fingers?\nIn one word."
    assert bare.user_text(PromptLayout()) == "How many fingers?\nAnswer with a short phrase."
    assert (number.answer, closed.task, closed.aliases) == ("6", "qa", ())
    write_questions(tmp_path / "again.jsonl", benchmark)
    again = read_questions(tmp_path / "again.jsonl")
    assert list(again) == list(benchmark)
    write_questions(tmp_path / "third.jsonl", again)
    assert (tmp_path / "third.jsonl").read_bytes() == (tmp_path / "again.jsonl").read_bytes()


def test_a_task_may_be_told_where_it_agrees_with_the_options(tmp_path: Path) -> None:
    letters = CLOSED | {"letters": ["A", "B"]}
    plain = read_questions(write(tmp_path, CLOSED, CHOICE, letters))
    told = read_questions(write(tmp_path, CLOSED | {"task": "qa"}, CHOICE | {"task": "mc"}, letters | {"task": "mc"}))
    assert list(told) == list(plain)
    write_questions(tmp_path / "told.jsonl", told)
    assert '"task"' not in (tmp_path / "told.jsonl").read_text(), "as files of 0.1.0"


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (OPEN | {"options": ["five", "six"]}, "options and task open exclude each other"),
        (OPEN | {"letters": ["A", "B"]}, "letters and task open exclude each other"),
        (OPEN | {"task": "opne"}, r"no task 'opne' \(did you mean open\?\); tasks are mc, qa, open"),
        (OPEN | {"task": ""}, "no task ''; tasks are mc, qa, open"),
        (OPEN | {"task": 7}, "task: must be text, not 7"),
        (CHOICE | {"task": "qa"}, "task qa is answered by yes or no: leave out the options"),
        (CLOSED | {"task": "mc"}, "task mc needs options, or letters"),
        (CLOSED | {"aliases": ["sure"], "answer": "yes"}, "aliases are for open questions, this one is qa"),
        (CHOICE | {"aliases": []}, "aliases are for open questions, this one is mc"),
        (OPEN | {"aliases": ["6"]}, "aliases are further right answers: give answer, too"),
        (ANSWERED | {"aliases": ["6", " "]}, "alias ' ' is empty: write the text of a right answer"),
        (ANSWERED | {"aliases": ["\u200b"]}, "alias .* is empty"),
        (ANSWERED | {"answer": "\u200b "}, "answer .* is empty"),
        (ANSWERED | {"aliases": "6"}, "aliases: must be a list"),
        (OPEN | {"claims": ["red", "blue"]}, "claims are for yes/no questions: .* and of open questions"),
    ],
)
def test_wrong_open_questions_are_named(tmp_path: Path, row: dict[str, Any], reason: str) -> None:
    with pytest.raises(UnpriorError, match=f"line 2: {reason}"):
        read_questions(write(tmp_path, CLOSED, row))


ONE = Example("1", Path("a.png"), "How many?", "open", (), answer="6 fingers", aliases=("6",))


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"labels": ("A", "B")}, "is open and has options"),
        ({"texts": ("five", "six")}, "is open and has options"),
        ({"answer": None}, "has aliases and no answer"),
        ({"aliases": ("6", "")}, "has an empty right answer, ''"),
        ({"answer": " "}, "has an empty right answer, ' '"),
        ({"task": "qa", "labels": ("yes", "no"), "answer": "yes"}, "has aliases, which are for open questions"),
    ],
)
def test_examples_made_in_python_are_checked(changes: dict[str, Any], reason: str) -> None:
    assert len(Benchmark("mine", [ONE, replace(ONE, example_id="2", answer=None, aliases=())])) == 2
    with pytest.raises(UnpriorError, match=f"benchmark mine: example 1 {reason}"):
        Benchmark("mine", [replace(ONE, **changes)])


def test_the_digest_tells_aliases_apart_and_closed_questions_keep_theirs() -> None:
    def digest(example: Example) -> str:
        return Benchmark("mine", [example]).digest()

    assert digest(ONE) != digest(replace(ONE, aliases=("six of them",))) != digest(replace(ONE, aliases=()))
    closed = Example("1", Path("a.png"), "Is it red?", "qa", ("yes", "no"))
    assert digest(closed).startswith("1c11624edff5"), "as in 0.1.0"


TEXTS = ("2 legs", "4 legs", "5 legs", "6 legs")


def pair(number: int, question: str, texts: tuple[str, ...] = TEXTS, **more: Any) -> list[Example]:
    return [
        Example(f"{number}-{side}-mc", Path(f"{side}.png"), question, "mc", LETTERS[: len(texts)], texts, answer,
                number, side, split="dev", **more)
        for side, answer in (("cf", "A"), ("cs", "B"))
    ]  # fmt: skip


def test_choices_are_asked_without_their_options() -> None:
    choices = Benchmark("mine", pair(1, "How many legs? Choose one.", instruction="A, B, C or D?"))
    cf, cs = ask_openly(choices)
    assert (cf.example_id, cf.question, cf.task, cf.labels, cf.texts) == (
        "1-cf-open",
        "How many legs?",
        "open",
        (),
        None,
    )
    assert (cf.answer, cf.aliases, cf.instruction) == ("2 legs", ("2",), None)
    assert (cs.answer, cs.pair_id, cs.side, cs.split, cs.image) == ("4 legs", 1, "cs", "dev", Path("cs.png"))


@pytest.mark.parametrize(
    "question",
    [
        "Which of the following is shown?", "Which option fits?", "Which statement is right?",
        "Choose the best description of the scene.", "Choose what is true about a wall.", "Look at the choices.",
    ],
)  # fmt: skip
def test_questions_that_speak_of_options_are_left_out(question: str) -> None:
    kept = pair(2, "Choose the right number of legs.")
    asked = ask_openly(Benchmark("mine", [*pair(1, question), *kept]))
    assert [example.pair_id for example in asked] == [2, 2]
    with pytest.raises(UnpriorError, match="mine: all questions speak of their options"):
        ask_openly(Benchmark("mine", pair(1, question)))


def test_options_inside_the_question_cannot_be_left_out() -> None:
    inside = [replace(each, texts=None) for each in pair(1, "2 (A) or 4 (B) legs?")]
    assert len(ask_openly(Benchmark("mine", [*inside, *pair(2, "How many legs?")]))) == 2
    with pytest.raises(UnpriorError, match="no multiple-choice questions"):
        ask_openly(Benchmark("mine", [ONE]))


def test_synonyms_of_the_card_and_given_claims() -> None:
    card = Card("mine", "", synonyms=(("gray", "grey"),))
    colours = Benchmark("mine", pair(1, "Which colour?", ("Gray", "Red", "Blue")), card)
    cf, cs = ask_openly(colours)
    assert (cf.answer, cf.aliases, cs.aliases) == ("Gray", ("grey",), ())
    cf, cs = ask_openly(colours, {1: Claims(ordinary="dark gray", atypical="purple")})
    assert [(each.answer, each.aliases) for each in (cf, cs)] == [("purple", ()), ("dark gray", ("dark grey",))]


def test_open_pairs_are_checked_like_others(tmp_path: Path) -> None:
    rows = [
        ANSWERED | {"pair": number, "side": side, "split": split, "image": f"{number}-{side}.png"}
        for number, split in ((1, "dev"), (2, "dev"), (3, "test"))
        for side in ("cf", "cs")
    ]
    benchmark = read_questions(write(tmp_path, *rows))
    assert check_questions(benchmark).problems == ()
    assert development_pairs(benchmark) == {"open": 2}
    (told,) = check_for_a_run(benchmark)
    assert "task open has only 2 pairs" in told
    alone = read_questions(write(tmp_path, *rows[:-1]))
    assert [str(each) for each in check_questions(alone).problems] == [
        "line 5: pair 3 (open): has no commonsense (cs) side"
    ]
    with pytest.raises(UnpriorError, match="1 examples have no answer"):
        check_for_a_run(read_questions(write(tmp_path, *rows[1:], OPEN | {"pair": 1, "side": "cf", "split": "dev"})))


def test_cdh_bench_as_open_questions() -> None:
    folder = real_data("cdh-bench")
    real = cdh_bench.load(folder)
    asked = load_benchmark("cdh-bench", variant="open", data_dir=folder.parent)
    assert asked.name == "cdh-bench-open"
    counts = asked.counts()
    assert [counts[name] for name in ("examples", "pairs", "dev", "test")] == [576, 288, 70, 218]
    assert {each.pair_id for each in real} - {each.pair_id for each in asked} == set(cdh_bench.NOT_OPEN)
    assert check_questions(asked).problems == ()
    by_name = {each.example_id: each for each in asked}
    assert (by_name["1-cf-open"].answer, by_name["1-cf-open"].aliases) == ("6 fingers", ("6",))
    assert by_name["222-cf-open"].answer == "purple", "no option says what the image shows"
    assert by_name["9-cf-open"].aliases == (), "“One hand has 3 thumbs” is not “1”"
    assert by_name["243-cs-open"].answer == "No, inedible", "the options as they were repaired"
    assert (sum(bool(each.aliases) for each in asked), sum(len(each.aliases) for each in asked)) == (229, 238)
    shortened = [each for each in real if each.question.endswith("Choose one.")]
    assert len(shortened) == 38
    assert not any("choose one" in each.question.lower() for each in asked)
    for each in asked:
        other = by_name[each.example_id.replace("-cf-", "-cs-")]
        assert not {each.answer, *each.aliases} & {other.answer, *other.aliases} or each is other
    assert f"({len(cdh_bench.NOT_OPEN)} of 300 pairs)" in cdh_bench.ENTRY.variants["open"].about
    by_task = Counter(each.task for each in asked)
    assert by_task == {"open": 576}
