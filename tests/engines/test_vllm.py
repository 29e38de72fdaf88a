"""The in-process vLLM engine: how it is missed, and, where there is a vLLM, that it agrees with transformers."""

from __future__ import annotations

import importlib.util
import json
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pydantic
import pytest

import in_process_vllm
from embedded_queries import embedded_queries
from unprior import UnpriorError
from unprior.embedded import FOLDER
from unprior.engines.transformers.engine import TransformersEngine
from unprior.engines.transformers.load_errors import explaining
from unprior.engines.transformers.loading import stores_single_precision
from unprior.engines.transformers.source import Source
from unprior.engines.vllm import VllmEngine
from vllm_server import vllm_python, vllm_variables


@pytest.mark.skipif(importlib.util.find_spec("vllm") is not None, reason="vLLM is installed here")
def test_without_vllm_the_command_that_installs_it_is_named() -> None:
    with pytest.raises(UnpriorError, match=r"pip install 'vllm>=0\.26'"):
        VllmEngine(FOLDER)


@pytest.mark.parametrize(
    ("told", "single"),
    [
        ({"dtype": "float32"}, True),
        ({"dtype": "bfloat16"}, False),
        ({"text_config": {"dtype": "float32"}}, True),
        ({}, False),
    ],
)
def test_the_stored_precision_is_read_from_the_configuration(
    tmp_path: Path, told: dict[str, Any], single: bool
) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "llava", **told}), encoding="utf-8")
    assert stores_single_precision(Source(str(tmp_path))) is single


def test_what_goes_wrong_while_loading_is_said_in_one_line() -> None:
    class Settings(pydantic.BaseModel):
        gpus: int = pydantic.Field(le=2)

    with pytest.raises(UnpriorError) as caught, explaining("m", "look there"):
        Settings(gpus=3)
    assert str(caught.value) == "model m cannot be loaded: Input should be less than or equal to 2 (look there)"
    with pytest.raises(UnpriorError) as caught, explaining("m", "look there"):
        raise RuntimeError("no memory\nat all")
    assert str(caught.value) == "model m cannot be loaded: no memory (look there)"


@pytest.mark.engines
def test_in_process_scores_and_answers_equal_those_of_transformers(tmp_path: Path) -> None:
    python = vllm_python()
    queries = [*embedded_queries()]
    entries = []
    for index, query in enumerate(queries):
        name = None if query.image is None else f"{index}.png"
        if query.image is not None:
            query.image.save(tmp_path / f"{index}.png")
        entries.append({"image": name, "text": query.text, "candidates": query.candidates})
    # One question that cannot be asked must not spoil the others.
    entries.append({"image": None, "text": "why " * 600, "candidates": [" yes", " no"]})
    asked, results = tmp_path / "queries.json", tmp_path / "results.json"
    asked.write_text(json.dumps(entries), encoding="utf-8")
    command = [python, in_process_vllm.__file__, str(FOLDER), str(asked), str(results)]
    done = subprocess.run(command, env=vllm_variables(), capture_output=True, timeout=400, check=False, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    told = json.loads(results.read_text(encoding="utf-8"))
    engine = TransformersEngine(FOLDER, device="cpu")
    largest = 0.0
    for query, result in zip(queries, told["results"][:-1], strict=True):
        expected = engine.score_candidates(query.image, query.text, query.candidates)
        largest = max(largest, float(np.abs(np.subtract(result["scores"], expected.scores)).max()))
        assert tuple(result["counts"]) == expected.token_counts
        assert result["text"] == engine.original_answer(query.image, query.text)
    print(f"largest difference to transformers: {largest:.2g}")
    assert largest < 1e-3
    assert "failure" in told["results"][-1]
    assert told["alone"]["text"] == told["results"][0]["text"]
    np.testing.assert_allclose(told["alone"]["scores"], told["results"][0]["scores"], atol=1e-3)
    assert told["model_type"] == "llava"
    assert told["identity"]["dtype"] == "torch.float32"  # as stored, where vLLM by itself takes half precision
    assert set(told["statuses"].values()) == {"ok"}, told["statuses"]
    assert told["identity"]["weights"] == engine.identity["weights"]
