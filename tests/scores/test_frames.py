"""Score tables as data frames and back."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pandas as pd
import pytest

from random_tables import random_rows
from unprior import InvalidScoresError, ScoreTable, UnpriorError, synthesize
from unprior.scores.provenance import Provenance

ROW: dict[str, Any] = {
    "model": "m", "pair_id": 1, "side": "cf", "task": "qa", "candidates": ["yes", "no"], "original": None,
    "image_scores": [-0.1, -2.5], "prior_scores": [-0.3, -1.0], "answer": "no",
}  # fmt: skip


def tables() -> list[ScoreTable]:
    rows = [
        ROW
        | {
            "views": {"white": [0.1, 0.2], "black": [0.0, -1.0]},
            "token_counts": [1, 2],
            "censored": [True, False],
            "claims": ["five", "six"],
        },
        ROW | {"side": "cs", "original": "yes", "answer": "yes", "original_text": "Yes, it is.", "example_id": "a"},
    ]
    return [
        synthesize(seed=1),
        ScoreTable.from_rows(random_rows(seed=2, pairs=6)),
        ScoreTable.from_rows(rows, provenance=[Provenance(model="m", precision="float32")]),
        ScoreTable.from_rows([row | {"pair_id": f"p{row['pair_id']}"} for row in rows]),
    ]  # fmt: skip


@pytest.mark.parametrize("table", tables(), ids=["synthetic", "random", "every column", "text ids"])
def test_the_round_trip_is_exact(table: ScoreTable) -> None:
    again = ScoreTable.from_pandas(table.to_pandas())
    assert again.arrow.equals(table.arrow)
    assert again.provenance == table.provenance


def test_cells_are_labels_and_python_lists() -> None:
    frame = ScoreTable.from_rows([ROW]).to_pandas()
    assert frame["answer"].tolist() == ["no"]
    assert frame["candidates"].tolist() == [["yes", "no"]]
    assert type(frame["image_scores"][0]) is list
    assert "views" not in frame.columns, "no row has other views"
    assert "original" in frame.columns, "the column must be there, even if nothing could be parsed"


@pytest.mark.parametrize("missing", [None, float("nan"), pd.NA, pd.NaT], ids=repr)
def test_every_kind_of_missing_value_counts_as_not_given(missing: object) -> None:
    frame = pd.DataFrame([ROW | {"original": missing, "side": missing, "token_counts": missing}], dtype=object)
    table = ScoreTable.from_pandas(frame)
    assert table.original.tolist() == [None]
    assert not table.is_paired.any()
    assert table.column("token_counts") == [None]


def test_arrays_tuples_and_numbers_of_numpy_are_read() -> None:
    row = ROW | {"image_scores": np.array([-0.1, -2.5]), "candidates": ("yes", "no"), "pair_id": np.int64(7)}
    table = ScoreTable.from_pandas(pd.DataFrame([row]))
    assert table.column("pair_id") == [7]
    assert table.image_scores.tolist() == [-0.1, -2.5]


def test_mistakes_are_named() -> None:
    good = pd.DataFrame([ROW, ROW | {"side": "cs"}])
    with pytest.raises(UnpriorError, match="data frame has no column task, original; a score table needs"):
        ScoreTable.from_pandas(good.drop(columns=["task", "original"]))
    with pytest.raises(InvalidScoresError, match=r"data frame: 1 of 2 rows is invalid\n  line 2: .*image_scores"):
        ScoreTable.from_pandas(pd.DataFrame([ROW, ROW | {"image_scores": [0.0, float("nan")]}]))
    with pytest.raises(UnpriorError, match=r"row 1 of the data frame has text in candidates: .*Parquet"):
        ScoreTable.from_pandas(good.assign(candidates="['yes', 'no']"))
    with pytest.raises(UnpriorError, match="column task more than once"):
        ScoreTable.from_pandas(pd.concat([good, good[["task"]]], axis=1))
    with pytest.raises(InvalidScoresError, match="answer"):
        ScoreTable.from_pandas(good.drop(columns=["answer"]))
    assert len(ScoreTable.from_pandas(good.drop(columns=["answer"]), require_answers=False)) == 2
    bad = pd.DataFrame([ROW, ROW | {"candidates": ["yes"]}])
    assert len(ScoreTable.from_pandas(bad, skip_invalid=True)) == 1


def test_without_pandas_the_message_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(UnpriorError, match=r"pip install 'unprior\[pandas\]'"):
        ScoreTable.from_rows([ROW]).to_pandas()


def test_a_notebook_shows_size_models_and_first_rows() -> None:
    shown = synthesize(seed=0)._repr_html_()
    for part in ("1,200 examples", "2 or 4 candidates", "model: synthetic (1,200)", "tasks: mc (600), qa (600)"):
        assert part in shown
    assert "splits: dev (280), test (920)" in shown
    assert shown.count("<tr>") == 1 + 5


def test_text_in_a_notebook_is_escaped() -> None:
    row = ROW | {"model": "<script>alert(1)</script>", "candidates": ["<b>", "no"], "original": "<b>"}
    shown = ScoreTable.from_rows([row])._repr_html_()
    assert "<script>" not in shown
    assert "&lt;script&gt;" in shown
    assert "<b>," not in shown
