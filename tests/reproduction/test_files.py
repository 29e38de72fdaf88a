from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from unprior import InvalidScoresError, ScoreTable, UnpriorError, UnpriorWarning, synthesize
from unprior.reproduction import MODELS, find_scores, recognise_model, write_published
from unprior.scores.published import published_from_row

QWEN, LLAVA, MOE = MODELS
Change = Callable[[dict[str, Any]], dict[str, Any]]


def write(path: Path, table: ScoreTable, **changes: Any) -> None:
    """Rows in the published layout; a change to None takes the field out."""
    path.parent.mkdir(parents=True, exist_ok=True)
    records = [published_from_row(row | {"model": None}) | changes for row in table.arrow.to_pylist()]
    kept = [{name: value for name, value in record.items() if value is not None} for record in records]
    path.write_text("".join(json.dumps(record) + "\n" for record in kept), encoding="utf-8")


@pytest.fixture(scope="module")
def table() -> ScoreTable:
    return synthesize(seed=4)


@pytest.mark.parametrize(
    ("name", "model"),
    [
        ("Qwen3-VL-32B", QWEN), ("Qwen/Qwen3-VL-32B-Instruct", QWEN), ("qwen3vl32b", QWEN), ("qwen_mc_dev", QWEN),
        ("LLaVA-1.6-34B", LLAVA), ("llava-hf/llava-v1.6-34b-hf", LLAVA), ("LLaVA", LLAVA), ("llava1634b", LLAVA),
        ("Qwen3-VL-30B-A3B", MOE), ("qwen3_vl_30b_a3b_mc", MOE), ("Qwen3-VL-8B", None), ("llava-v1.5-7b", None),
        ("synthetic", None), ("InternVL-32B", None),
    ],
)  # fmt: skip
def test_models_are_recognised_by_family_and_size(name: str, model: str | None) -> None:
    assert recognise_model(name) == model


def test_written_files_read_back_as_the_same_table(tmp_path: Path, table: ScoreTable) -> None:
    for model in MODELS:
        assert len(write_published(table, tmp_path, model)) == 4
    found = find_scores(tmp_path)
    assert list(found) == list(MODELS)
    key = ("split", "task", "pair_id", "side")
    expected = sorted(table.with_columns(model=LLAVA).arrow.to_pylist(), key=lambda row: [str(row[k]) for k in key])
    given = sorted(found[LLAVA].table.arrow.to_pylist(), key=lambda row: [str(row[k]) for k in key])
    assert given == expected
    assert [path.name for path in found[LLAVA].files][:2] == [
        "llava-1.6-34b_mc_dev.jsonl",
        "llava-1.6-34b_mc_test.jsonl",
    ]


@pytest.mark.parametrize("test", ["test", "unseen", "Unseen230"])
@pytest.mark.parametrize(
    "layout",
    [
        "{model}/{task}/{split}.jsonl",
        "{model}_{task}_{split}.jsonl",
        "{task}/{split}_{model}.json",
        "{model}_{split}/{task}.jsonl",
        "{model}_{split}/{task}/scores.jsonl",
        "{model}/{task}_{split}/rows.jsonl",
        "results/{model}_cdh_{task}_{split}/cp_vbc_scores.jsonl",
        "CDH-Bench-scores_{split}/{model}/{task}/a.jsonl",
    ],
)
def test_model_task_and_split_may_stand_in_names_only(
    tmp_path: Path, table: ScoreTable, layout: str, test: str
) -> None:
    for task in ("mc", "qa"):
        for split in ("dev", "test"):
            name = test if split == "test" else split
            path = tmp_path / layout.format(model="Qwen3-VL-32B", task=task.upper(), split=name)
            write(path, table.where(task=task, split=split), task=None, split=None)
    found = find_scores(tmp_path)[QWEN].table
    assert len(found) == 1200
    assert len(found.where(task="mc", split="dev")) == 140


def test_unseen_folders_of_several_models_beside_each_other(tmp_path: Path, table: ScoreTable) -> None:
    """Rows that say their own split in the authors' word agree with the folder."""
    for name, split in (("dev", "dev"), ("unseen", "test")):
        for model in ("qwen3vl32b", "llava_v1.6_34b"):
            write(tmp_path / f"{model}_{name}" / "scores.jsonl", table.where(split=split), split=name)
    found = find_scores(tmp_path)
    assert list(found) == [QWEN, LLAVA]
    assert all(len(each.table.where(split="test")) == 920 for each in found.values())


def test_everything_may_stand_in_the_rows_of_one_file(tmp_path: Path, table: ScoreTable) -> None:
    write(tmp_path / "scores.jsonl", table, model="llava-v1.6-34b")
    (tmp_path / "summary.json").write_text('{"accuracy": 0.5}\n')  # not scores: left alone
    (tmp_path / "notes.jsonl").write_text("no JSON\n")
    assert len(find_scores(tmp_path)[LLAVA].table) == 1200


def test_the_folder_itself_may_name_the_model(tmp_path: Path, table: ScoreTable) -> None:
    write(tmp_path / "llava-34b" / "scores.jsonl", table)
    assert list(find_scores(tmp_path / "llava-34b")) == [LLAVA]


def test_the_third_model_needs_multiple_choice_only(tmp_path: Path, table: ScoreTable) -> None:
    write(tmp_path / "qwen3-vl-30b-a3b.jsonl", table.where(task="mc"))
    assert find_scores(tmp_path)[MOE].table.codes("task")[1] == [("mc",)]


def test_without_files_it_says_where_they_are_published(tmp_path: Path) -> None:
    (tmp_path / "README.json").write_text("{}")
    for folder in (tmp_path / "absent", tmp_path):
        with pytest.raises(
            UnpriorError, match=r"published as a hub data set \(cks19999/CDH-Bench, https://huggingface"
        ):
            find_scores(folder)


def test_a_missing_file_is_named_with_those_found(tmp_path: Path, table: ScoreTable) -> None:
    for path in write_published(table, tmp_path, QWEN):
        if path.name.endswith("qa_dev.jsonl"):
            path.unlink()
    with pytest.raises(UnpriorError, match="Qwen3-VL-32B lacks qa dev; it has mc dev, mc test, qa test"):
        find_scores(tmp_path)


def test_a_row_that_contradicts_the_name_is_refused(tmp_path: Path, table: ScoreTable) -> None:
    write(tmp_path / "qwen_mc_dev.jsonl", table.where(task="mc", split="dev"), split="test")
    with pytest.raises(InvalidScoresError, match="split is 'test', but the name of the file says dev"):
        find_scores(tmp_path)


@pytest.mark.parametrize(
    ("name", "changes", "message"),
    [
        ("scores.jsonl", {}, "the model is named neither in the row nor by the file"),
        ("qwen.jsonl", {"split": None}, "the split is named neither in the row"),
        ("scores.jsonl", {"model": "GPT-5"}, "model is 'GPT-5', it must be Qwen3-VL-32B, LLaVA"),
        ("qwen.jsonl", {"split": "train"}, "split is 'train', it must be dev or test"),
    ],
)
def test_what_nobody_says_or_nobody_knows_is_refused(
    tmp_path: Path, table: ScoreTable, name: str, changes: dict[str, Any], message: str
) -> None:
    write(tmp_path / name, table, **changes)
    with pytest.raises(InvalidScoresError, match=message):
        find_scores(tmp_path)


def test_an_example_in_two_files_is_refused_with_both_names(tmp_path: Path, table: ScoreTable) -> None:
    write_published(table, tmp_path, QWEN)
    write(tmp_path / "copy" / "qwen_mc_dev.jsonl", table.where(task="mc", split="dev"))
    with pytest.raises(UnpriorError, match=r"140 examples occur more than once .*copy.qwen_mc_dev.* and .*mc_dev"):
        find_scores(tmp_path)


def test_a_pair_in_both_splits_is_refused(tmp_path: Path, table: ScoreTable) -> None:
    write_published(table, tmp_path, QWEN)
    path = tmp_path / "qwen3-vl-32b_qa_test.jsonl"
    leaked = (tmp_path / "qwen3-vl-32b_qa_dev.jsonl").read_text().splitlines()[0].replace('"dev"', '"test"')
    path.write_text(path.read_text() + leaked + "\n")
    with pytest.raises(UnpriorError, match="1 examples occur more than once"):
        find_scores(tmp_path)


def test_failed_rows_can_be_left_out(tmp_path: Path, table: ScoreTable) -> None:
    write_published(table, tmp_path, QWEN)
    with (tmp_path / "qwen3-vl-32b_qa_test.jsonl").open("a") as stream:
        stream.write('{"status": "error"}\n')
    with pytest.raises(InvalidScoresError, match="status is 'error'"):
        find_scores(tmp_path)
    with pytest.warns(UnpriorWarning, match="left out 1 invalid rows"):
        found = find_scores(tmp_path, skip_invalid=True)[QWEN]
    assert len(found.table) == 1200
    assert [(path.name, len(rows)) for path, rows in found.skipped.items()] == [("qwen3-vl-32b_qa_test.jsonl", 1)]
