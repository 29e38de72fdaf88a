"""The support matrix: complete, the same in the docs, and printed; and what happens without torchvision."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import tiny_models
from tools.support import LEFT_OUT, PAGE, markdown_table
from unprior.cli import main
from unprior.cli.console import output
from unprior.engines.support import known_architectures, support_table
from unprior.engines.transformers.engine import TransformersEngine
from unprior.errors import UnpriorError

WITHOUT = """
import importlib.util, sys
found, absent = importlib.util.find_spec, ("torchvision", "num2words")
importlib.util.find_spec = lambda name, *rest: None if name.partition(".")[0] in absent else found(name, *rest)
sys.modules["num2words"] = None
from unprior.engines.transformers.engine import require_torch
require_torch()
from unprior.engines.transformers.loading import image_backend, load_processor, quiet
from unprior.engines.transformers.source import Source
for folder in sys.argv[1:]:
    try:
        with quiet():
            print(image_backend(load_processor(Source(folder))))
    except Exception as error:
        print(str(error).splitlines()[0])
"""


def test_every_architecture_of_the_tests_is_in_the_matrix() -> None:
    assert {each.name for each in known_architectures()} == set(tiny_models.REGISTRY) - set(LEFT_OUT)
    assert all(each.refused or (each.level and each.methods) for each in known_architectures())


def test_the_docs_show_the_matrix() -> None:
    assert markdown_table(support_table()) in PAGE.read_text(encoding="utf-8")


@pytest.mark.parametrize("width", [60, 80, 120, 400])
def test_every_fact_is_whole_at_every_width(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    monkeypatch.setattr(output, "_width", width)  # a terminal is asked for its width only once
    with pytest.raises(SystemExit, match="0"):
        main(["models"])
    out = capsys.readouterr().out
    assert max(map(len, out.splitlines())) <= width
    for each in known_architectures():
        assert any(line.split() and line.split()[0] == each.name for line in out.splitlines())
        assert each.example in out
    words = " ".join(out.split())
    if width < 400:  # a list
        assert "cohere2_vision Exact: yes, shared in batches · Images: 1 · Window: 64 · bfloat16: 0.0" in words
        assert "mfcd: yes · pai: no · revis: yes" in words
        assert words.count("Thinking: enable_thinking=false") == sum(
            each.thinking == "enable_thinking=false" for each in known_architectures()
        )
    else:
        assert "focus-on-vision vcd mfcd pai revis revis-2.5 nolan" in words
        assert re.search(r"mllama yes, shared in batches 1 – 0\.\d+ – yes yes yes no yes yes yes", words)


def test_one_architecture_is_shown_in_words(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="0"):
        main(["models", "mllama"])
    out = capsys.readouterr().out
    lines = {line.split()[0]: " ".join(line.split()[1:]) for line in out.splitlines() if not line.startswith(" ")}
    assert (lines["vcd"], lines["bfloat16"], lines["Window"]) == ("yes", "0.046", "–")
    assert lines["pai"].startswith("no: PAI cannot run on mllama: ")
    assert not {"None", "{", "Mapping"} & set(out.split())


def test_the_command_shows_the_matrix(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="0"):
        main(["models"])
    assert "qwen3_5_moe" in "".join(capsys.readouterr().out.split())
    with pytest.raises(SystemExit, match="0"):
        main(["models", "mllama", "--json"])
    (row,) = json.loads(capsys.readouterr().out)
    assert row["methods"]["vcd"] is None
    assert "cross-attention" in row["methods"]["pai"]
    with pytest.raises(SystemExit, match="0"):
        main(["models", "blip-2"])
    assert "cannot read a question without an image" in capsys.readouterr().out
    with pytest.raises(SystemExit, match="2"):
        main(["models", "qwen3-vl"])
    told = " ".join(capsys.readouterr().err.split())
    assert "did you mean qwen3_vl" in told
    assert "unprior doctor" in told


def test_without_torchvision_pillow_prepares_images_or_the_extra_is_named(model_folder: Callable[[str], Path]) -> None:
    """Video processors need torchvision where images do not; some image processors need it, too."""
    known = [each for each in known_architectures() if not each.refused]
    folders = [str(model_folder(each.name)) for each in known]
    command = [sys.executable, "-W", "ignore", "-c", WITHOUT, *folders]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    told = dict(zip((each.name for each in known), done.stdout.strip().splitlines(), strict=True))
    remedies = {"torchvision": "pip install 'unprior[torchvision]'", "num2words": "pip install num2words"}
    for each in known:
        expected = [remedies[package] for package in each.needs] or ["pil"]
        assert all(part in told[each.name] for part in expected), (each.name, told[each.name])


@pytest.mark.skipif(bool(tiny_models.REGISTRY["llama4"].missing()), reason="torchvision is not installed")
def test_what_prepares_images_can_be_chosen(tmp_path: Path) -> None:
    folder = tiny_models.build("qwen3_vl", tmp_path / "qwen3_vl")
    engines = {
        backend: TransformersEngine(folder, device="cpu", image_backend=backend, self_test=False)
        for backend in ("auto", "pil", "torchvision")
    }
    told = {backend: engine.identity["image_backend"] for backend, engine in engines.items()}
    assert told == {"auto": "torchvision", "pil": "pil", "torchvision": "torchvision"}
    assert engines["pil"].fingerprint != engines["torchvision"].fingerprint
    with pytest.raises(UnpriorError, match="needs torchvision: leave image_backend='pil'"):
        TransformersEngine(tiny_models.build("llama4", tmp_path / "llama4"), device="cpu", image_backend="pil")
    with pytest.raises(UnpriorError, match="did you mean pil"):
        TransformersEngine(folder, device="cpu", image_backend="pill")
