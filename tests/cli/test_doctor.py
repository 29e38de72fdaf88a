"""`unprior doctor`: the table, the record, and the exit code."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from PIL import Image

import tiny_models
from broken_engines import MixesUpImages, Wrapped
from unprior.embedded import FOLDER
from unprior.engines.transformers.engine import TransformersEngine


@pytest.fixture
def loads(monkeypatch: pytest.MonkeyPatch) -> Callable[[type[Wrapped]], None]:
    """Have the command load a broken engine."""

    def replace_engine(kind: type[Wrapped]) -> None:
        engine = TransformersEngine(FOLDER, device="cpu", name="embedded", self_test=False)
        monkeypatch.setattr("unprior.engines.load.load_engine", lambda **options: kind(engine))

    return replace_engine


def test_a_sound_model_passes(run: Callable, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    result = run("doctor", "--device", "cpu")
    assert result.code == 0
    assert "Examination of embedded" in result.out
    assert result.out.rstrip().endswith("16 ok")
    assert "→" not in result.out
    assert max(len(line.rstrip()) for line in result.out.splitlines()) <= 80


def test_what_failed_has_a_remedy_below_and_ends_with_one(
    run: Callable, loads: Callable, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    loads(MixesUpImages)
    result = run("doctor")
    assert result.code == 1
    lines = [line.strip() for line in result.out.splitlines()]
    place = next(index for index, line in enumerate(lines) if line.startswith("image order"))
    assert "failed" in lines[place]
    assert any(line.startswith("→ Score with --batch-size 1") for line in lines[place : place + 4])
    assert lines[-1] == "12 ok, 1 failed, 2 skipped"


def test_json_holds_every_finding_and_the_same_exit_code(run: Callable, loads: Callable) -> None:
    loads(MixesUpImages)
    result = run("doctor", "--json")
    assert (result.code, result.json["failed"], result.json["model"]) == (1, True, "embedded")
    findings = {finding["name"]: finding for finding in result.json["findings"]}
    assert findings["image order"]["status"] == "failed"
    assert findings["scoring"]["remedy"] is None
    assert len(findings) == 15


def test_a_folder_to_compare_with(run: Callable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    result = run("doctor", "--device", "cpu", "--against", str(FOLDER))
    assert result.code == 0
    lines = {line[:24].strip(): line[24:] for line in result.out.splitlines()}
    for name in ("same prompts", "same scores", "image resizing"):
        assert lines[name].split()[0] == "ok", name
    assert max(len(line.rstrip()) for line in result.out.splitlines()) <= 80
    run("doctor", "--against", str(tmp_path / "nowhere")).refused("cannot be loaded")


def test_a_model_equals_itself_whatever_its_options(run: Callable, tmp_path: Path) -> None:
    model = str(tiny_models.build("llava_next", tmp_path / "model"))
    options = ("--scoring-suffix", " So:", "--image-backend", "pil")
    result = run("doctor", "--model", model, "--device", "cpu", *options, "--against", model, "--json")
    found = {each["name"]: each["status"] for each in result.json["findings"]}
    assert [found[name] for name in ("same prompts", "same scores", "image resizing")] == ["ok"] * 3


def test_an_image_of_ones_own(run: Callable, tmp_path: Path) -> None:
    Image.radial_gradient("L").save(tmp_path / "mine.png")
    result = run("doctor", "--device", "cpu", "--image", "mine.png", "--question", "Is it round?", "--json")
    assert (result.code, result.json["failed"]) == (0, False)
    run("doctor", "--image", "nothing.png").refused("nothing.png: no such image")
    run("doctor", "--model", str(tmp_path / "nowhere")).refused("cannot be loaded")
