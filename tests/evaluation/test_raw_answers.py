"""Raw answers: a real model's on CDH-Bench to the counts that are known, and every mistake in a file."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from real_data import real_data
from unprior import ScoreTable, UnpriorError
from unprior.benchmarks import cdh_bench
from unprior.benchmarks.schema import LETTERS, Benchmark, Example
from unprior.evaluation import Share
from unprior.evaluation.raw_answers import evaluate_answers
from unprior.prompts import YES_NO, parse_answer
from unprior.scores.judge import judge_answers


def test_a_real_model_s_answers_give_the_known_counts() -> None:
    folder = real_data("cdh-bench")
    benchmark = cdh_bench.load(folder)
    answers = folder / "answers.Qwen3-VL-32B-Instruct.jsonl"
    result = evaluate_answers(answers, benchmark, split="test")
    choice, claim = (task.metrics for task in result.tasks)
    assert choice is not None
    assert claim is not None
    assert (choice.cf, choice.cs, choice.ccr) == (Share(115, 230), Share(213, 230), Share(96, 115))
    assert (claim.cf, claim.cs, claim.ccr) == (Share(136, 230), Share(214, 230), Share(94, 94))
    rounded = [
        f"{value:.3f}" for each in (choice, claim) for value in (each.cf.value, each.cs.value, each.cfad, each.rpd)
    ]
    assert rounded == ["0.500", "0.926", "0.426", "0.460", "0.591", "0.930", "0.339", "0.364"]
    assert result.disagreeing == 0, "the file's own right answers are ours"
    assert [task.unparsed for task in result.tasks] == [0, 0]
    for task in result.tasks:
        assert len(task.groups) == 14
        assert sum(group.cf.count for group in task.groups) == {"mc": 115, "qa": 136}[task.task]
    # With the fifteen exchanged labels set right, twelve of them in the test split:
    relabelled = cdh_bench.ENTRY.variants["qa-relabelled"].make(benchmark)
    claim = evaluate_answers(answers, relabelled, split="test").tasks[1].metrics
    assert claim is not None
    assert (claim.cf, claim.cs, claim.ccr) == (Share(142, 230), Share(224, 230), Share(88, 88))


def test_all_pairs_of_a_real_model_s_answers() -> None:
    """The first letter counts even where options are listed before the answer: pair 77, which is a development pair."""
    folder = real_data("cdh-bench")
    answers = folder / "answers.Qwen3-VL-32B-Instruct.jsonl"
    choice, claim = (task.metrics for task in evaluate_answers(answers, cdh_bench.load(folder)).tasks)
    assert choice is not None
    assert claim is not None
    assert (choice.cf, choice.ccr) == (Share(138, 300), Share(137, 162))
    texts = [json.loads(line) for line in answers.read_text(encoding="utf-8").splitlines()]
    listed = [row["text"] for row in texts if str(row["pair_id"]).endswith("77") and len(row["text"] or "") > 20]
    assert any("(A. 6 wheels" in text and parse_answer(text, LETTERS) == "A" for text in listed)


@pytest.fixture
def benchmark() -> Benchmark:
    pair = [
        Example(f"1-{side}", Path("a.png"), "?", "mc", LETTERS, tuple("pqrs"), answer, 1, side, split="test")
        for side, answer in (("cf", "B"), ("cs", "A"))
    ]
    return Benchmark("mine", pair)


def write(folder: Path, *lines: dict[str, Any] | str) -> Path:
    path = folder / "answers.jsonl"
    path.write_text("\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines), encoding="utf-8")
    return path


CF = {"pair_id": "Pair 1", "side": "cf", "task": "mc", "text": "The answer is (A)."}
CS = {"example_id": "1-cs", "text": "I cannot say."}


def test_by_name_or_by_place(tmp_path: Path, benchmark: Benchmark) -> None:
    (task,) = evaluate_answers(write(tmp_path, CF, "", CS | {"answer": "B"}), benchmark).tasks
    assert task.metrics is not None
    assert (task.metrics.cf, task.metrics.cs, task.metrics.ccr, task.unparsed) == (
        Share(0, 1),
        Share(0, 1),
        Share(1, 1),
        1,
    )
    assert evaluate_answers(write(tmp_path, CF, CS | {"answer": "B"}), benchmark).disagreeing == 1
    assert evaluate_answers(write(tmp_path, CF, CS | {"text": None}), benchmark).tasks[0].unparsed == 1


def test_without_pairs_accuracy_and_f1(tmp_path: Path) -> None:
    answers = ("yes", "yes", "no", "no")
    examples = [
        Example(str(n), Path("a.png"), "?", "qa", YES_NO, answer=a, category="random") for n, a in enumerate(answers)
    ]
    lines = [{"example_id": str(n), "text": text} for n, text in enumerate(("Yes.", "no", "Yes", "hm"))]
    (task,) = evaluate_answers(write(tmp_path, *lines), Benchmark("pope", examples)).tasks
    assert task.metrics is None
    assert (task.right, task.f1, task.said_yes) == (Share(1, 4), 0.5, Share(2, 4))


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([CF], r"no answer to 1 of 2 examples of mine \(1-cs\); add them.*--skip-missing"),
        ([CF, CF], "line 2: a second answer to 1-cf"),
        ([CF | {"pair_id": 9}], "line 1: 9, cf, mc: no example of that name"),
        ([CS | {"example_id": "nobody"}], "line 1: nobody: no example of that name"),
        ([{"example_id": "1-cs"}], "line 1: no text"),
        (["[1]"], "line 1: not a JSON object"),
        (['{"text'], "line 1: not a JSON object"),
    ],
)
def test_mistakes_are_named(tmp_path: Path, benchmark: Benchmark, lines: list[Any], message: str) -> None:
    with pytest.raises(UnpriorError, match=message):
        evaluate_answers(write(tmp_path, *lines), benchmark)


def test_what_is_missing_can_be_left_out(tmp_path: Path, benchmark: Benchmark) -> None:
    result = evaluate_answers(write(tmp_path, CF), benchmark, skip_missing=True)
    assert result.missing == ("1-cs",)
    assert result.tasks[0].right == Share(0, 1)
    with pytest.raises(UnpriorError, match="no example of split 'dev'; it has test"):
        evaluate_answers(write(tmp_path, CF), benchmark, split="dev")
    with pytest.raises(
        UnpriorError, match="no answer to any of the 2 examples of mine, which has mc questions; is the file of"
    ):
        evaluate_answers(write(tmp_path, ""), benchmark, skip_missing=True)


def test_lines_of_a_task_that_is_not_asked_are_counted(tmp_path: Path, benchmark: Benchmark) -> None:
    result = evaluate_answers(write(tmp_path, CF, CF | {"task": "qa", "text": "no"}, CS), benchmark)
    assert (result.other_tasks, result.tasks[0].right.total) == (1, 2)


def test_several_questions_of_one_place_need_names(tmp_path: Path, benchmark: Benchmark) -> None:
    asked = cdh_bench.ENTRY.variants["forms"].make(benchmark)
    with pytest.raises(UnpriorError, match="several examples fit it; name one by example_id"):
        evaluate_answers(write(tmp_path, CF | {"task": "qa"}), asked)


def test_thinking_that_was_cut_off_is_counted_and_not_read(tmp_path: Path) -> None:
    texts = (
        "<think>no</think>Yes",
        "A hand. yes</think>no",
        "A hand with yes",
        "<think>yes or",
        "x</think>maybe",
        None,
    )
    examples = [Example(str(n), Path("a.png"), "?", "qa", YES_NO, answer="yes") for n in range(len(texts))]
    lines = [{"example_id": str(n), "text": text} for n, text in enumerate(texts)]
    (task,) = evaluate_answers(write(tmp_path, *lines), Benchmark("mine", examples)).tasks
    assert (task.right, task.said_yes, task.unparsed, task.cut_off) == (Share(1, 6), Share(1, 6), 2, 2)
    # The third text alone is an answer like any other.
    (task,) = evaluate_answers(write(tmp_path, lines[2]), Benchmark("mine", examples[2:3])).tasks
    assert (task.right, task.cut_off) == (Share(1, 1), 0)


def test_lines_that_are_not_evaluated_also_tell_that_the_model_thinks(tmp_path: Path, benchmark: Benchmark) -> None:
    other = CF | {"task": "qa", "text": "It has six.</think>no"}
    (task,) = evaluate_answers(write(tmp_path, CF, other, CS), benchmark).tasks
    assert (task.right.count, task.unparsed, task.cut_off) == (0, 0, 2)


def asked(number: int, side: str | None, answer: str, *aliases: str) -> Example:
    place = {} if side is None else {"pair_id": number, "side": side}
    name = f"{number}-{side}" if side else str(number)
    return Example(name, Path("a.png"), "How many legs?", "open", (), answer=answer, aliases=aliases, **place)  # type: ignore[arg-type]


@pytest.fixture
def legs() -> Benchmark:
    sides = [
        asked(n, side, *right) for n in (1, 2, 3) for side, right in (("cf", ("6 legs", "6")), ("cs", ("4 legs",)))
    ]
    return Benchmark("legs", sides)


def lines_of(*texts: str | None) -> list[dict[str, Any]]:
    names = [f"{n}-{side}" for n in (1, 2, 3) for side in ("cf", "cs")]
    return [{"example_id": name, "text": text} for name, text in zip(names, texts, strict=True)]


def test_open_answers_are_right_in_every_form(tmp_path: Path, legs: Benchmark) -> None:
    texts = ("Six!", "It\u2019s four", "Four legs.", "the 4 Legs\nbecause I see them", "5 legs", "")
    result = evaluate_answers(write(tmp_path, *lines_of(*texts)), legs)
    (task,) = result.tasks
    assert task.metrics is not None
    assert (task.right, task.metrics.cf, task.metrics.cs) == (Share(2, 6), Share(1, 3), Share(1, 3))
    assert task.metrics.ccr == Share(1, 2), "four is what the other image shows, five is not"
    assert (task.unparsed, task.cut_off, task.f1, task.said_yes, task.judged) == (1, 0, None, None, None)
    caption = result.table.caption
    assert "6 OPEN answers; 1 empty (counted as wrong)" in caption
    assert "exact match after normalisation, with aliases" in caption
    assert "judge" not in result.record()
    assert "judged" not in result.record()["tasks"][0]


def test_empty_missing_and_cut_off_open_answers_are_wrong(tmp_path: Path, legs: Benchmark) -> None:
    texts = ("<think>six</think> 6", "<think>4", None, " \n", "six", "</think>")
    (task,) = evaluate_answers(write(tmp_path, *lines_of(*texts)), legs).tasks
    assert (task.right, task.unparsed, task.cut_off) == (Share(1, 6), 2, 3)


def test_without_pairs_open_answers_have_an_accuracy(tmp_path: Path) -> None:
    single = Benchmark("single", [asked(1, None, "yes"), asked(2, None, "no", "none"), asked(3, None, "no")])
    lines = [{"example_id": str(n), "text": text} for n, text in enumerate(("Yes.", "none", "yes"), start=1)]
    (task,) = evaluate_answers(write(tmp_path, *lines), single).tasks
    assert (task.right, task.metrics, task.f1, task.said_yes) == (Share(2, 3), None, None, None)


def test_a_judge_is_asked_about_the_rest_and_named(tmp_path: Path, legs: Benchmark) -> None:
    seen: list[tuple[str, str, tuple[str, ...], str | None]] = []

    def by_number(text: str, answer: str, aliases: tuple[str, ...], question: str | None) -> bool:
        seen.append((text, answer, aliases, question))
        return answer.split(maxsplit=1)[0] in text

    texts = ("6", "It has 4 of them", "  It has 6 of them ", "4 legs", "4 legs", None)
    result = evaluate_answers(write(tmp_path, *lines_of(*texts)), legs, judge=by_number)
    assert [text for text, *_ in seen] == ["It has 4 of them", "It has 6 of them", "4 legs"], "no exact match, no gap"
    assert seen[1] == ("It has 6 of them", "6 legs", ("6",), "How many legs?")
    (task,) = result.tasks
    assert task.metrics is not None
    assert (task.right, task.judged, task.metrics.ccr) == (Share(4, 6), Share(2, 3), Share(1, 1))
    assert "the other 3 judged by by_number: 2 right" in result.table.caption
    record = result.record()
    assert (record["judge"], record["tasks"][0]["judged"]) == ("by_number", {"count": 2, "total": 3})


def test_a_judge_must_be_a_function_that_gives_a_truth_value(tmp_path: Path, legs: Benchmark) -> None:
    path = write(tmp_path, *lines_of(*["five"] * 6))
    with pytest.raises(UnpriorError, match=r"judge <lambda> gave 'yes' for 'five' \(right: '6 legs'\); let it return"):
        evaluate_answers(path, legs, judge=lambda *_: "yes")  # type: ignore[arg-type,return-value]
    with pytest.raises(UnpriorError, match="judge: give a function"):
        evaluate_answers(path, legs, judge="exact")  # type: ignore[arg-type]
    with pytest.raises(UnpriorError, match=r"must take four arguments: \(text, answer, aliases, question\)"):
        evaluate_answers(path, legs, judge=lambda text, answer: True)  # type: ignore[arg-type,misc]


def test_one_judge_serves_tables_and_raw_answers(tmp_path: Path, legs: Benchmark) -> None:
    """The same function, called the same way; only the question is not known to a score table."""
    seen: list[tuple[str, str, tuple[str, ...], str | None]] = []

    def about_six(text: str, answer: str, aliases: tuple[str, ...], question: str | None) -> bool:
        seen.append((text, answer, aliases, question))
        return text == "half a dozen" and answer == "6 legs"

    texts = ("half a dozen", *["4 legs"] * 5)
    (task,) = evaluate_answers(write(tmp_path, *lines_of(*texts)), legs, judge=about_six).tasks
    raw = seen[0]
    seen.clear()
    row = {"pair_id": 1, "side": "cf", "task": "open", "candidates": ["half a dozen", "four"], "original": "four",
           "image_scores": [-1.0, -2.0], "prior_scores": [-2.0, -1.0], "answer": "6 legs",
           "aliases": ["6"]}  # fmt: skip
    judged = judge_answers(ScoreTable.from_rows([row]), about_six)
    assert raw == ("half a dozen", "6 legs", ("6",), "How many legs?")
    assert seen == [("half a dozen", "6 legs", ("6",), None), ("four", "6 legs", ("6",), None)]
    assert (task.judged is not None and task.judged.count, judged.is_covered.tolist()) == (1, [True])


def test_a_judge_has_no_say_about_choices(tmp_path: Path, benchmark: Benchmark) -> None:
    result = evaluate_answers(write(tmp_path, CF, CS), benchmark, judge=lambda *_: True)
    assert (result.judge, result.tasks[0].judged, result.tasks[0].right) == (None, None, Share(0, 2))


def test_open_and_closed_questions_in_one_file(tmp_path: Path, benchmark: Benchmark, legs: Benchmark) -> None:
    both = Benchmark("both", [*benchmark, *(replace(each, pair_id=9) for each in legs.examples[2:4])])
    lines = [{"pair_id": 9, "side": side, "task": "open", "text": "6", "answer": "six"} for side in ("cf", "cs")]
    result = evaluate_answers(write(tmp_path, CF, CS, *lines), both)
    assert [(task.task, task.right) for task in result.tasks] == [("mc", Share(0, 2)), ("open", Share(1, 2))]
    assert result.disagreeing == 1, "six is right on one side only"
    closed = evaluate_answers(write(tmp_path, CF, CS, *lines), benchmark)
    assert closed.other_tasks == 2
