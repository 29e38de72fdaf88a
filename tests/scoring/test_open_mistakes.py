"""Bad input about open questions: a message that names the thing, and nothing believed that is not so."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from unprior import ScoreTable, SelectivePriorCalibrator, load_engine, synthesize
from unprior.benchmarks.microworld import microworld
from unprior.benchmarks.schema import Benchmark, Example
from unprior.benchmarks.tasks import of_task
from unprior.benchmarks.variants import ask_openly
from unprior.calibration import OpenAnswers
from unprior.engines.answer_search import check_count
from unprior.errors import InvalidScoresError, UnpriorError
from unprior.prompts import PromptLayout
from unprior.runs.config import RunConfig
from unprior.scores.judge import judge_answers
from unprior.scores.open_rows import merge_forms
from unprior.scoring.ask import ask
from unprior.scoring.plan import ScoringPlan

ROW = {"pair_id": 1, "side": "cf", "task": "open", "candidates": ["six", "five"], "image_scores": [-1.0, -2.0],
       "prior_scores": [-2.0, -1.0], "original": "six", "answer": "five"}  # fmt: skip


def choice(name: str, **more: Any) -> Example:
    return Example(name, Path("a.png"), "How many?", "mc", ("A", "B"), ("two", "four"), "B", **more)


@pytest.mark.parametrize("verdict", ["no", 1, None])
def test_a_judge_says_true_or_false(verdict: Any) -> None:
    with pytest.raises(UnpriorError, match="let it return True or False"):
        judge_answers(ScoreTable.from_rows([ROW]), lambda *_: verdict)


def test_a_judge_is_a_function_and_judges_tables() -> None:
    with pytest.raises(UnpriorError, match="judge: give a function"):
        judge_answers(ScoreTable.from_rows([ROW]), "gpt")  # type: ignore[arg-type]
    with pytest.raises(UnpriorError, match=r"must take four arguments: \(text, answer, aliases, question\)"):
        judge_answers(ScoreTable.from_rows([ROW]), lambda given, right: True)  # type: ignore[arg-type,misc]
    with pytest.raises(UnpriorError, match="score table"):
        judge_answers([1], lambda *_: True)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"answer": "  "}, "answer is empty"),
        ({"candidates": ["six", ""]}, "a candidate is empty"),
        ({"sources": ["image"]}, "sources has 1 values for 2 candidates"),
        ({"aliases": [" "]}, "an alias is empty"),
        ({"original": "seven"}, "original"),
    ],
)
def test_rows_that_cannot_be_are_refused(changes: dict[str, Any], told: str) -> None:
    with pytest.raises(InvalidScoresError, match=told):
        ScoreTable.from_rows([ROW | changes])


def test_words_that_differ_in_a_mark_are_two_answers() -> None:
    table = ScoreTable.from_rows([ROW | {"candidates": ["दिन", "दान"], "original": "दिन", "answer": "दान"}])
    assert table.candidate_counts.tolist() == [2]
    assert table.answer.tolist() == ["दान"]


@pytest.mark.parametrize("count", [0, 11, True, 1.5, 10**6, "4"])
def test_a_number_of_answers_that_cannot_be_searched_for(count: Any) -> None:
    with pytest.raises(UnpriorError, match="search for 1 to 10 answers"):
        check_count(count)


@pytest.mark.parametrize(
    "rule", [OpenAnswers(clips=(10**400,)), OpenAnswers(temperature=10**400), OpenAnswers(clips=())]
)
def test_scales_that_cannot_be(rule: OpenAnswers) -> None:
    with pytest.raises(UnpriorError, match="open_answers"):
        SelectivePriorCalibrator(open_answers=rule).fit(synthesize(seed=0))


def test_lists_of_scores_fit_the_candidates() -> None:
    with pytest.raises(UnpriorError, match="there are 2 candidates"):
        merge_forms(["six", "6"], [-1.0])


def test_an_open_question_needs_a_last_line() -> None:
    with pytest.raises(UnpriorError, match="open_instruction"):
        PromptLayout(open_instruction=" ").check()
    assert PromptLayout().user_text("How many?", (), None, "").endswith("Answer with a short phrase.")


def test_names_of_open_questions_are_new() -> None:
    mine = Benchmark("mine", [choice("1"), choice("1-mc"), choice("1-open")])
    both = of_task(mine, "both", lambda: ask_openly(mine))
    assert len({example.example_id for example in both}) == 6


def test_tasks_that_cannot_be_asked() -> None:
    with pytest.raises(UnpriorError, match="choose closed, open or both"):
        RunConfig.from_options(task="opened").check()
    with pytest.raises(UnpriorError, match="exclude each other"):
        RunConfig.from_options(task="open", variant="forms").check()
    with pytest.raises(UnpriorError, match="--candidates 1"):
        RunConfig.from_options(candidates=1).check()
    yes_no = Benchmark("mine", [Example("1", Path("a.png"), "Is it red?", "qa", ("yes", "no"))])
    with pytest.raises(UnpriorError, match="add questions with options"):
        of_task(yes_no, "open", lambda: ask_openly(yes_no))
    alone = ask_openly(Benchmark("mine", [choice("1")]))
    with pytest.raises(UnpriorError, match="has no questions with options"):
        of_task(alone, "closed", lambda: alone)
    assert of_task(alone, None, lambda: alone) is alone


def test_answers_that_would_be_cut_off_are_refused(drawn_world: Path) -> None:
    engine = load_engine("embedded", max_new_tokens=4)
    benchmark = microworld(drawn_world, 3, variant="open")
    with pytest.raises(UnpriorError, match=r"max_new_tokens=4 .* would be cut off; give at least 24"):
        ScoringPlan(engine, benchmark)
    with pytest.raises(UnpriorError, match="would be cut off"):
        ask(engine, benchmark.examples[0].image, "How many?", open_ended=True)


def test_half_a_character_in_an_option_is_refused(drawn_world: Path) -> None:
    image = microworld(drawn_world, 3).examples[0].image
    for given in ({"options": ["a\ud800", "b"]}, {"claims": ["a\ud800", "b"]}):
        with pytest.raises(UnpriorError, match="not valid Unicode"):
            ask(load_engine("embedded"), image, "Which?", **given)
