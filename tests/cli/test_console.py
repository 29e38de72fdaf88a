from __future__ import annotations

import json
from pathlib import Path

import pytest

from unprior import UnpriorError
from unprior.cli.console import print_json, refuse_overwriting, warn


def test_json_is_strict_and_keeps_letters(capsys: pytest.CaptureFixture[str]) -> None:
    print_json({"name": "modèle", "value": 0.1 + 0.2, "long": "x" * 500})
    printed = capsys.readouterr().out
    assert "modèle" in printed
    assert json.loads(printed) == {"name": "modèle", "value": 0.1 + 0.2, "long": "x" * 500}
    with pytest.raises(ValueError, match="JSON compliant"):
        print_json({"value": float("nan")})


def test_warnings_go_to_standard_error_as_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    warn("[bold]model[/bold] " + "x" * 200)
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == "warning: [bold]model[/bold] " + "x" * 200 + "\n"


def test_an_input_is_recognised_under_another_name(tmp_path: Path) -> None:
    source = tmp_path / "scores.jsonl"
    source.touch()
    (tmp_path / "link.jsonl").symlink_to(source)
    for name in ("scores.jsonl", "link.jsonl", "../" + tmp_path.name + "/scores.jsonl"):
        with pytest.raises(UnpriorError, match="would overwrite its own input; choose another name"):
            refuse_overwriting(tmp_path / name, tmp_path / "other.json", source)
    refuse_overwriting(tmp_path / "new.jsonl", source)
    refuse_overwriting(tmp_path / "new.jsonl", tmp_path / "missing.jsonl")
