from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from unprior import InvalidScoresError, ScoreTable, read_scores
from unprior.errors import UnpriorError
from unprior.scores.published import is_published, row_from_published

ORDINARY = {
    "pair_id": 9, "side": "cs", "task": "qa", "candidates": ["yes", "no"], "image_scores": [-0.3, -1.4],
    "prior_scores": [-0.1, -2.4], "original": "yes", "answer": "yes",
}  # fmt: skip


def published(scored: dict[str, Any] | None = None, **changes: Any) -> dict[str, Any]:
    record = {
        "status": "ok", "task": "qa", "side": "counterfactual", "pair_id": 7, "category": "Counting",
        "subcategory": "Body Parts", "gt": "No", "prompt": "How many?",
        "cp_vbc": {
            "baseline_key": "YES", "baseline_pred": "Yes.",
            "candidates": [
                {"key": "yes", "logp_image": -0.2, "logp_prior": -0.1, "rank": 1},
                {"key": "no", "logp_image": -1.7, "logp_prior": -2.4, "rank": 2},
            ],
        } | (scored or {}),
    }  # fmt: skip
    return record | changes


def read(path: Path, *records: dict[str, Any], **options: Any) -> ScoreTable:
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return read_scores(path, **options)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "published.jsonl"


def test_a_published_row_becomes_an_ordinary_one(path: Path) -> None:
    (row,) = read(path, published()).arrow.to_pylist()
    assert {name: value for name, value in row.items() if value is not None} == {
        "pair_id": 7,
        "side": "cf",
        "task": "qa",
        "category": "Counting",
        "subcategory": "Body Parts",
        "candidates": ["yes", "no"],
        "image_scores": [-0.2, -1.7],
        "prior_scores": [-0.1, -2.4],
        "original": "yes",
        "answer": "no",
        "original_text": "Yes.",
    }


@pytest.mark.parametrize(
    ("change", "name", "expected"),
    [
        ({"side": "commonsense"}, "side", "cs"),
        ({"side": "Counterfactual"}, "side", "cf"),
        ({"side": "cs"}, "side", "cs"),
        ({"task": "MC"}, "task", "mc"),
        ({"gt": " NO "}, "answer", "no"),
        ({"gt": "yes"}, "answer", "yes"),
        ({"pair_id": "p7"}, "pair_id", "p7"),
        ({"split": "dev"}, "split", "dev"),
        ({"model": "m"}, "model", "m"),
    ],
)
def test_keys_are_compared_without_regard_to_case(path: Path, change: dict[str, Any], name: str, expected: Any) -> None:
    assert read(path, published(**change)).column(name) == [expected]


@pytest.mark.parametrize(
    ("scored", "original"),
    [
        ({"baseline_key": "No"}, "no"),
        ({"baseline_key": None, "baseline_pred": None}, None),
        ({"baseline_key": "maybe", "baseline_pred": "no"}, None),  # an answer that is no candidate is no answer
        ({"baseline_key": None, "baseline_pred": "I cannot tell"}, None),
        ({"baseline_key": None, "baseline_pred": "NO"}, "no"),
    ],
)
def test_original_answer(path: Path, scored: dict[str, Any], original: str | None) -> None:
    assert read(path, published(scored)).column("original") == [original]


def test_a_candidate_keeps_its_spelling(path: Path) -> None:
    candidates = [
        {"key": key, "logp_image": score, "logp_prior": -score} for key, score in (("B", -1.0), ("a", -2.0), ("C", 0))
    ]
    table = read(path, published({"candidates": candidates, "baseline_key": "b"}, gt="A", task="mc"))
    assert table.column("candidates") == [["B", "a", "C"]]
    assert (table.original_positions.tolist(), table.answer_positions.tolist()) == ([0], [1])


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        (published(status="error"), "status is 'error', only rows with status 'ok' hold scores"),
        (published(status=None), "status is None"),
        ({"status": "ok", "pair_id": 1}, "cp_vbc.candidates is missing or not a list"),
        (published(cp_vbc=None), "cp_vbc.candidates is missing or not a list"),
        (published(cp_vbc=[1]), "cp_vbc.candidates is missing or not a list"),
        (published({"candidates": {"yes": -0.1}}), "cp_vbc.candidates is missing or not a list"),
        (published({"candidates": ["yes", "no"]}), "an entry without a key"),
        (published({"candidates": [{"logp_image": 0.0, "logp_prior": 0.0}]}), "an entry without a key"),
        (published({"candidates": [{"key": "yes", "logp_image": 0.0}]}), "candidate 'yes' has no logp_prior"),
        (published({"candidates": [{"key": "yes", "logp_prior": 0.0}]}), "candidate 'yes' has no logp_image"),
        (
            published({"candidates": [{"key": key, "logp_image": 0.0, "logp_prior": 0.0} for key in ("Yes", "yes")]}),
            "a candidate appears twice in ['Yes', 'yes'] (upper and lower case are the same here)",
        ),
        (published({"candidates": [{"key": "no", "logp_image": 0.0, "logp_prior": 0.0}]}), "K is 1"),
        (
            published({"candidates": [{"key": key, "logp_image": float("nan"), "logp_prior": 0} for key in "ab"]}),
            "image_scores has a value that is not a finite number",
        ),
        (
            published({"candidates": [{"key": key, "logp_image": 0, "logp_prior": None} for key in "ab"]}),
            "prior_scores.0: must be a number",
        ),
        (published(gt="maybe"), "answer 'maybe' is not one of the candidates"),
        (published(gt=None), "answer is missing"),
        (published(side="both"), "side: must be 'cf' or 'cs'"),
        (published(task="V QA"), "task"),
        (published(pair_id=None), "pair_id: "),
        ({name: value for name, value in published().items() if name != "side"}, "side: must be 'cf' or 'cs'"),
    ],
)
def test_an_invalid_row_is_refused_or_skipped(path: Path, record: dict[str, Any], reason: str) -> None:
    with pytest.raises(InvalidScoresError) as raised:
        read(path, published(), record)
    (problem,) = raised.value.problems
    assert problem.line == 2
    assert reason in problem.reason
    table = read(path, record, published(), skip_invalid=True)
    assert table.column("pair_id") == [7]
    assert [skipped.line for skipped in table.skipped] == [1]


def test_published_rows_need_no_answer_where_it_is_not_needed(path: Path) -> None:
    assert read(path, published(gt=None), require_answers=False).answer_positions.tolist() == [-1]


def test_both_layouts_in_one_file(path: Path) -> None:
    table = read(path, published(), ORDINARY, published(pair_id=8, side="commonsense", gt="yes"))
    assert table.column("pair_id") == [7, 9, 8]
    assert table.column("side") == ["cf", "cs", "cs"]
    assert table.column("answer") == ["no", "yes", "yes"]


@pytest.mark.parametrize(
    ("record", "expected"),
    [
        (published(), True),
        ({"status": "failed", "pair_id": 1}, True),
        (ORDINARY, False),
        (ORDINARY | {"status": "ok"}, False),
        ({}, False),
    ],
)
def test_layouts_are_told_apart(record: dict[str, Any], expected: bool) -> None:
    assert is_published(record) is expected


def test_translation_alone_raises_the_errors_of_the_package() -> None:
    with pytest.raises(UnpriorError, match="status is 'timeout'"):
        row_from_published(published(status="timeout"))


def test_an_answer_without_a_key_is_read_as_everywhere(path: Path) -> None:
    scored = {"baseline_key": None, "baseline_pred": "It is no, not yes."}
    assert read(path, published(scored)).column("original") == ["no"]


def test_thinking_that_was_cut_off_is_no_answer(path: Path) -> None:
    texts = ("It is yes.</think>No", "It is no or", "<think>no", None)
    records = [
        published({"baseline_key": "no", "baseline_pred": text}, pair_id=number) for number, text in enumerate(texts)
    ]
    assert read(path, *records).column("original") == ["no", None, None, "no"]
    # Nothing shows that this model thinks, and rows of another layout say themselves what was answered.
    assert read(path, records[1], ORDINARY | {"original_text": "</think>"}).column("original") == ["no", "yes"]
