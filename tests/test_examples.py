"""The examples run as they stand."""

from __future__ import annotations

import runpy
import shutil
import tempfile
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"


def test_from_model_to_answer(
    default_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(default_run / "images", tmp_path / "images")  # drawn already
    monkeypatch.setattr(tempfile, "mkdtemp", lambda: str(tmp_path))
    names = runpy.run_path(str(EXAMPLES / "from_model_to_answer.py"))
    answer, example = names["answer"], names["example"]
    assert answer.original != answer.final
    assert "Changed" in answer.explanation
    assert example.side in {"cf", "cs"}
    assert all(task.cf.change.delta >= 0 for task in names["evaluation"].tasks)
    assert "counterfactual +" in capsys.readouterr().out
