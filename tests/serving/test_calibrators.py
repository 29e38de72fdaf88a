"""Calibrator files of a server: one that was changed, is no calibrator, or belongs to other scores is refused."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from unprior.calibration import storage
from unprior.embedded import CALIBRATOR
from unprior.engines.protocol import Engine
from unprior.errors import UnpriorError
from unprior.serving.calibrators import Calibrators


class Trap:
    """Writes a file when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return (Path.write_text, (self.path, "caught"))


def changed(folder: Path, change: Callable[[dict[str, Any]], Any], *, honest: bool = True) -> Path:
    """The packaged file with a change, and with a checksum that fits."""
    content = json.loads(CALIBRATOR.read_text())
    checksum = content.pop("checksum")
    change(content)
    path = folder / "changed.json"
    path.write_text(json.dumps(content | {"checksum": storage._checksum(content) if honest else checksum}))
    return path


def test_a_pickle_is_not_opened(embedded: Engine, tmp_path: Path) -> None:
    trap, path = tmp_path / "caught", tmp_path / "calibrator.json"
    path.write_bytes(pickle.dumps(Trap(trap)))
    with pytest.raises(UnpriorError, match=r"calibrator\.json"):
        Calibrators.load([f"line4={path}"], embedded)
    assert not trap.exists()
    pickle.loads(path.read_bytes())
    assert trap.exists()  # the trap works


def set_strengths(content: Any, value: float) -> None:
    """Replace every limit of strengths in a document."""
    for key, inner in content.items() if isinstance(content, dict) else enumerate(content):
        if key == "max_strength" and isinstance(inner, float | int):
            content[key] = value
        elif isinstance(inner, dict | list):
            set_strengths(inner, value)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -1.0])
def test_strengths_that_are_none_are_refused(embedded: Engine, tmp_path: Path, value: float) -> None:
    path = changed(tmp_path, lambda content: set_strengths(content, value))
    assert path.read_text() != CALIBRATOR.read_text()
    with pytest.raises(UnpriorError, match=r"changed\.json"):
        Calibrators.load([str(path)], embedded)


def test_a_changed_file_is_refused(embedded: Engine, tmp_path: Path) -> None:
    path = changed(tmp_path, lambda content: content.update(development_rows=1), honest=False)
    with pytest.raises(UnpriorError, match="changed after the file was saved"):
        Calibrators.load([str(path)], embedded)


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("weights", "0" * 64, "weights"), ("prompt", "0" * 64, "prompt"), ("precision", "bfloat16", "precision"),
        ("model", "another", "another"),
    ],
)  # fmt: skip
def test_a_calibrator_of_other_scores_is_refused(
    embedded: Engine, tmp_path: Path, name: str, value: str, words: str
) -> None:
    def change(content: dict[str, Any]) -> None:
        for record in content["provenance"]:
            record[name] = value
            if name == "model":  # otherwise the same weights under another name
                record["weights"] = None

    with pytest.raises(UnpriorError, match=words):
        Calibrators.load([str(changed(tmp_path, change))], embedded)
