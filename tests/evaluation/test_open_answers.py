"""Judging open answers: any written form and any alias is right, wherever answers are compared."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from unprior import ScoreTable, SelectivePriorCalibrator, UnpriorError, evaluate, synthesize
from unprior.errors import UnpriorWarning
from unprior.evaluation.metrics import Share, as_answers, compare, correct, coverage, measure
from unprior.evaluation.monitor import Monitor, monitor_file
from unprior.evaluation.promise import check_promise, harmed_pairs


def row(pair: int, side: str, candidates: list[str], original: str | None, answer: str, **more: Any) -> dict[str, Any]:
    scores = [-float(place) for place in range(len(candidates))]
    return {
        "pair_id": pair, "side": side, "task": "open", "candidates": candidates, "image_scores": scores,
        "prior_scores": scores, "original": original, "answer": answer, **more,
    }  # fmt: skip


TABLE = ScoreTable.from_rows(
    [
        row(1, "cf", ["Five fingers", "six fingers"], "Five fingers", "6 fingers"),
        row(1, "cs", ["5 fingers", "4 fingers"], "5 fingers", "five fingers"),
        row(2, "cf", ["pink", "blue"], "pink", "red", aliases=["crimson"]),
        row(2, "cs", ["green", "olive"], "green", "olive", aliases=["green"]),
        row(3, "cf", ["one"], None, "1"),
        row(3, "cs", ["two"], "two", "2"),
    ]
)


def test_answers_in_any_form_are_found_and_other_answers_are_judged_by_their_text() -> None:
    given = as_answers(TABLE, ["SIX fingers!", "the 4 fingers", "Crimson", "Olive", None, "three"])
    assert given.tolist() == [1, 1, -3, 1, -1, -2]
    assert correct(TABLE, given).tolist() == [True, False, True, True, False, False]
    assert compare(TABLE, given, side=None).repairs == 2
    assert compare(TABLE, given, side=None).harms == 2
    with pytest.raises(UnpriorError, match="answers are labels"):
        as_answers(TABLE, np.array([-5, 0, 0, 0, 0, 0]))


def test_an_answer_to_a_question_with_options_is_one_of_them() -> None:
    closed = TABLE.with_columns(task="mc")
    with pytest.raises(UnpriorError, match="not one of its candidates"):
        as_answers(closed, ["SIX fingers!", None, None, None, None, None])
    with pytest.raises(UnpriorError, match="answers are labels"):
        as_answers(closed, np.array([-2, 0, 0, 0, 0, 0]))


def test_metrics_compare_by_text_across_the_pair() -> None:
    metrics = measure(TABLE, TABLE.original)
    assert (metrics.cf, metrics.cs) == (Share(0, 3), Share(3, 3))
    # Wrong CF answers: “Five fingers” is the CS answer of its pair in another form, “pink” is not; one has none.
    assert metrics.ccr == Share(1, 3)
    # “olive” is no candidate of its row, and the CS answer of its pair all the same.
    both = measure(TABLE, ["five FINGERS", None, "olive", None, None, None])
    assert both.ccr == Share(2, 3)
    mixed = ScoreTable.from_rows([each | {"task": task} for task in ("open", "free") for each in _closed_rows()])
    assert measure(mixed, mixed.original).ccr == Share(2, 2)


def _closed_rows() -> list[dict[str, Any]]:
    return [row(1, "cf", ["a", "b"], "a", "b"), row(1, "cs", ["a", "b"], "b", "a")]


def test_answers_that_clash_are_refused() -> None:
    rows = [row(1, "cs", ["a", "b"], "a", answer, example_id=answer) for answer in ("a", "b")]
    with pytest.raises(UnpriorError, match="two commonsense examples with different answers"):
        measure(ScoreTable.from_rows([*rows, row(1, "cf", ["a", "b"], "a", "b")]), np.zeros(3, dtype=np.int64))


def test_coverage_by_task_and_side() -> None:
    found = coverage(TABLE)
    assert found == {("open", "cf"): Share(2, 3), ("open", "cs"): Share(3, 3)}


def test_uncovered_rows_count_as_wrong_and_harm_nothing() -> None:
    wrong = np.array([0, 1, 1, 1, 0, 0])
    assert harmed_pairs(TABLE, wrong, "open") == (3, 1)
    result = evaluate(synthesize(seed=1, open_questions=True), synthesize(seed=1, open_questions=True).original)
    assert [task.task for task in result.tasks] == ["mc", "open", "qa"]


def test_a_promise_about_open_answers_is_checked_and_watched(tmp_path: Path) -> None:
    table = synthesize(seed=2, open_questions=True)
    fitted = SelectivePriorCalibrator(retention="certified", epsilon_cs=0.06).fit(table)
    test = table.where(split="test")
    decisions = fitted.predict(test)
    assert fitted.certificate_ is not None
    check = check_promise(fitted.certificate_, test, decisions.final_positions)
    assert check is not None
    assert [each.task for each in check.tasks] == ["mc", "open", "qa"]
    fitted.save(tmp_path / "calibrator.json")
    decisions.write(tmp_path / "decisions.jsonl")
    lines = (tmp_path / "decisions.jsonl").read_text().splitlines()
    records = [json.loads(line) for line in lines]
    for index, record in enumerate(records):
        answer = str(test.answer[index])
        record["answer"] = f"{answer.upper()}." if record["task"] == "open" else answer
        record["aliases"] = test.column("aliases")[index]
    (tmp_path / "labelled.jsonl").write_text("\n".join(map(json.dumps, records)))
    watched = monitor_file(tmp_path / "calibrator.json", tmp_path / "labelled.jsonl")
    assert {each.task: int(each.harms[-1]) for each in watched.tasks} == {each.task: each.harms for each in check.tasks}
    assert next(each.harms for each in check.tasks if each.task == "open") > 0
    records[0] |= {"aliases": "six"}
    (tmp_path / "labelled.jsonl").write_text("\n".join(map(json.dumps, records)))
    with pytest.raises(UnpriorError, match="aliases must be a list of texts"):
        monitor_file(tmp_path / "calibrator.json", tmp_path / "labelled.jsonl")


OPEN_ROW = {"task": "open", "side": "cs", "original": "five fingers", "final": "Six fingers", "proposal": "six fingers"}


def _watched(folder: Path, *rows: dict[str, Any]) -> Monitor:
    calibrator = SelectivePriorCalibrator(retention="certified", epsilon_cs=0.06)
    calibrator.fit(synthesize(seed=2, open_questions=True)).save(folder / "calibrator.json")
    (folder / "labelled.jsonl").write_text("\n".join(json.dumps(OPEN_ROW | row) for row in rows))
    return monitor_file(folder / "calibrator.json", folder / "labelled.jsonl")


def test_labels_of_open_questions_that_match_nothing_are_told(tmp_path: Path) -> None:
    told = (
        r"labelled\.jsonl: the answers to 3 of 5 open questions match nothing that was given or proposed there "
        r'\(lines 1, 2, 4\).*write them as the model does, or add other texts that are right as "aliases"'
    )
    lost = {"answer": "a handful"}
    with pytest.warns(UnpriorWarning, match=told):
        watched = _watched(tmp_path, lost, lost, {"answer": "5 fingers."}, lost, {"answer": "6 fingers"})
    assert watched.record()["unmatched"] == watched.unmatched == 3
    assert watched.tasks[0].harms.tolist() == [0.0, 0.0, 1.0, 1.0, 1.0]
    assert watched.table.caption.endswith(" Open answers that nobody gave or proposed: 3.")
    with pytest.warns(UnpriorWarning, match="match nothing"):
        blind = _watched(tmp_path, lost, lost)
    assert "nothing can be told" in blind.words[1]


def test_labels_that_match_a_form_an_alias_or_the_proposal_bring_no_warning(tmp_path: Path) -> None:
    matched = [
        {"answer": "A handful", "aliases": ["5 fingers"]},
        {"answer": "THE six fingers", "final": "five fingers"},  # what was proposed and not adopted
        {"answer": "seven"},  # a wrong model is no mistake in the labels
        {"answer": "seven", "side": "cf"},
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        watched = _watched(tmp_path, *matched)
    assert (watched.unmatched, watched.counterfactual) == (1, 1)
    assert watched.tasks[0].harms.tolist() == [1.0, 1.0, 1.0]
