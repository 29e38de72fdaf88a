"""What the commands say about models that must not be used, and about code that comes with a model."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from PIL import Image
from safetensors.torch import load_file, save_file

import tiny_models
from unprior.runs.config import RunConfig

COMMIT = "0123456789abcdef0123456789abcdef01234567"
CODE = """
from pathlib import Path
Path({mark!r}).touch()
from transformers import LlavaConfig, LlavaForConditionalGeneration

class OwnConfig(LlavaConfig):
    model_type = "llava_of_its_own"

class OwnModel(LlavaForConditionalGeneration):
    config_class = OwnConfig
"""


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return tiny_models.build("llava", tmp_path / "model")


@pytest.fixture
def image_file(tmp_path: Path) -> Path:
    Image.radial_gradient("L").resize((40, 40)).save(tmp_path / "image.png")
    return tmp_path / "image.png"


def change_weights(model: Path, lost: str, renamed: dict[str, str] | None = None) -> None:
    tensors = {name: tensor for name, tensor in load_file(model / "model.safetensors").items() if name != lost}
    named = {(renamed or {}).get(name, name): tensor for name, tensor in tensors.items()}
    save_file(named, model / "model.safetensors", metadata={"format": "pt"})


def test_a_model_without_all_its_weights_is_refused(run: Callable, model: Path, image_file: Path) -> None:
    change_weights(model, "language_model.model.norm.weight")
    asked = run("ask", image_file, "Is it red?", "--model", model, "--device", "cpu")
    asked.refused("its files lack 1 tensor: model.language_model.norm.weight", "Download the model again")


def test_code_from_the_hub_needs_a_commit(run: Callable, image_file: Path) -> None:
    for revision in ((), ("--revision", "main")):
        asked = run("ask", image_file, "Is it red?", "--model", "some/model", "--trust-remote-code", *revision)
        asked.refused("--trust-remote-code", "--revision, all 40 digits")


def test_a_server_runs_its_own_code(run: Callable, image_file: Path) -> None:
    server = ("--engine", "openai", "--base-url", "http://localhost:1", "--trust-remote-code")
    asked = run("ask", image_file, "Is it red?", "--model", "m", *server)
    asked.refused("--trust-remote-code: the engine openai decides that itself")


def test_a_record_of_a_run_gives_no_leave_to_run_code(tmp_path: Path) -> None:
    RunConfig.from_options(model="some/model", revision=COMMIT, trust_remote_code=True, out=tmp_path).write()
    assert "trust_remote_code = true" in (tmp_path / "run.toml").read_text()
    for read in (RunConfig.read(tmp_path), RunConfig.from_file(tmp_path), RunConfig.from_file(tmp_path / "run.toml")):
        assert (read.model.revision, read.model.trust_remote_code) == (COMMIT, False)


def test_saying_yes_to_everything_runs_no_code(
    run: Callable, model: Path, image_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mark = tmp_path / "it-ran"
    (model / "own.py").write_text(CODE.format(mark=str(mark)))
    config = json.loads((model / "config.json").read_text())
    names = {"AutoConfig": "own.OwnConfig", "AutoModelForImageTextToText": "own.OwnModel"}
    (model / "config.json").write_text(json.dumps(config | {"model_type": "llava_of_its_own", "auto_map": names}))
    change_weights(model, "", {"language_model.lm_head.weight": "lm_head.weight"})
    asked = ["ask", str(image_file), "Is it red?", "--model", str(model), "--device", "cpu"]
    monkeypatch.setattr("transformers.dynamic_module_utils.HF_MODULES_CACHE", str(tmp_path / "modules"))
    monkeypatch.setattr(sys, "stdin", io.StringIO("y\n" * 9))
    run(*asked).refused("--trust-remote-code")
    assert not mark.exists()
    trusted = run(*asked, "--trust-remote-code")
    assert trusted.code == 0, trusted.err
    assert mark.exists()
