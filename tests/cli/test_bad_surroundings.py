"""What a command says when its arguments, paths or records are impossible."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from small_tables import twelve_pairs
from unprior import UnpriorError
from unprior.runs.config import RunConfig


def test_names_that_are_too_long(run: Callable, files: Any) -> None:
    long = "x" * 300
    run("fit", files.scores, "--out", long).refused(long, "File name too long")
    run("apply", long, files.scores, "--out", "d.jsonl").refused(long)
    run("study", "all", "--run", long).refused(long)
    run("reproduce", long).refused(long)


def test_arguments_that_are_not_utf8(run: Callable, files: Any) -> None:
    run("fit", files.scores, "--out", "cal.json", "--model", "\udcff").refused("not valid UTF-8")


@pytest.mark.parametrize(
    "change",
    [
        {"model": "x"},
        {"model": None},
        {"model": {"model": 5}},
        {"benchmark": 5},
        {"benchmark": None},
        {"data_dir": 5},
        {"resize": "x"},
        {"seed": "x"},
    ],
)
def test_a_record_of_a_run_is_checked(tmp_path: Path, change: dict[str, Any]) -> None:
    model = dict.fromkeys(("revision", "device", "device_map", "attention")) | {"model": "embedded", "dtype": "auto"}
    record = {"model": model, "benchmark": "microworld", "variant": None, "seed": 3, "data_dir": None, "resize": 512}
    path = tmp_path / "run.json"  # of version 0.1.0
    path.write_text(json.dumps(record))
    assert RunConfig.read(tmp_path) == RunConfig.from_options(seed=3, resize=512, out=tmp_path)
    path.write_text(json.dumps(record | change))
    with pytest.raises(UnpriorError, match=r"run\.json: not a record of a run .*delete it and run again"):
        RunConfig.read(tmp_path)


def test_a_record_without_an_end(tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text("[" * 200_000)
    with pytest.raises(UnpriorError, match="not a record of a run"):
        RunConfig.read(tmp_path)


@pytest.mark.parametrize("kind", [pa.bool_(), pa.string()])
def test_scores_that_are_no_numbers(run: Callable, tmp_path: Path, kind: pa.DataType) -> None:
    arrow = twelve_pairs().arrow
    values = [[kind == pa.bool_() or "1"] * len(row) for row in arrow.column("candidates").to_pylist()]
    column = pa.array(values, pa.list_(kind))
    pq.write_table(arrow.set_column(arrow.column_names.index("image_scores"), "image_scores", column), "scores.parquet")
    run("fit", "scores.parquet", "--out", "cal.json").refused("column image_scores is list", "lists of numbers")


def test_one_pair_under_two_spellings(run: Callable) -> None:
    row = {"image": "a.png", "question": "Is it red?", "answer": "yes", "split": "dev"}
    rows = [row | {"pair": pair, "side": side} for pair in (1, "1") for side in ("cf", "cs")]
    Path("mine.jsonl").write_text("\n".join(json.dumps(row) for row in rows))
    run("data", "check", "mine.jsonl").refused("line 3: pair '1' is pair 1 in line 1")


def test_decisions_of_another_model(run: Callable, rewrite: Callable, files: Any) -> None:
    def rename(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        rows[0]["provenance"] = {"scores": [{"model": "other"}], "calibrator": {}}
        return rows

    decisions = rewrite(files.decisions, "decisions.jsonl", rename)
    run("evaluate", files.scores, decisions).refused(
        "not made from these scores: model other, here synthetic", "--force"
    )
