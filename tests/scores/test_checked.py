"""Reading for fitting and evaluation from Python: what cannot be used is refused, or left out with a warning."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from small_tables import synthetic
from unprior import InvalidScoresError, ScoreTable, UnpriorError, UnpriorWarning
from unprior.scores.checked import count_cut_off, labelled_rows, read_checked, sound_rows

PATH = Path("scores.jsonl")


def changed(**values: Any) -> ScoreTable:
    """A small table whose first row has other values."""
    rows = synthetic(seed=0).take(np.arange(8)).arrow.to_pylist()
    return ScoreTable.from_rows([rows[0] | values, *rows[1:]], require_answers=False)


def test_a_row_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    path = tmp_path / "scores.jsonl"
    synthetic(seed=0).write(path)
    lines = path.read_text(encoding="utf-8").splitlines()
    path.write_text("\n".join([json.dumps(json.loads(lines[0]) | {"side": "x"}), *lines[1:]]), encoding="utf-8")
    with pytest.raises(InvalidScoresError, match="line 1"):
        read_checked(path)
    with pytest.warns(UnpriorWarning, match=r"left out 1 invalid rows, 1199 remain\n  line 1: "):
        assert len(read_checked(path, skip_invalid=True)) == 1199


def test_rows_without_an_answer() -> None:
    table = changed(answer=None)
    everything = np.ones(len(table), dtype=np.bool_)
    with pytest.raises(InvalidScoresError, match="answer is missing"):
        labelled_rows(table, everything, PATH)
    with pytest.warns(UnpriorWarning, match="left out 1 invalid rows, 7 remain"):
        assert labelled_rows(table, everything, PATH, skip_invalid=True).tolist() == [False] + [True] * 7
    only = np.arange(len(table)) == 0
    with pytest.warns(UnpriorWarning), pytest.raises(UnpriorError, match="no row with a correct answer is left"):
        labelled_rows(table, only, PATH, skip_invalid=True)


def test_pairs_that_are_not_sound() -> None:
    table = synthetic(seed=0).take(np.arange(8))
    rows = np.ones(len(table), dtype=np.bool_)
    rows[0] = False
    with pytest.raises(UnpriorError, match="side"):
        sound_rows(table, rows, PATH)
    with pytest.warns(UnpriorWarning, match="left out 1 pair that is not sound"):
        sound, kept = sound_rows(table, rows, PATH, skip_invalid=True)
    assert len(sound) == int(kept.sum()) < int(rows.sum())
    assert sound.pairs_are_sound


def test_answers_cut_off_while_thinking_are_counted() -> None:
    assert count_cut_off(synthetic(seed=0)) == (0, 0)
    assert count_cut_off(changed(original_text="<think>It may be", original=None)) == (1, 0)
    assert count_cut_off(changed(original_text="<think>It may be")) == (0, 1)
