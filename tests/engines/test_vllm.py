"""The in-process vLLM engine: how it is missed, and, where there is a vLLM, that it agrees with transformers."""

from __future__ import annotations

import importlib.util
import json
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pydantic
import pytest

import in_process_vllm
from embedded_queries import embedded_queries
from enumerated_answers import most_probable_answers
from unprior import UnpriorError
from unprior.embedded import FOLDER
from unprior.engines.protocol import Query
from unprior.engines.transformers.engine import TransformersEngine
from unprior.engines.transformers.load_errors import explaining
from unprior.engines.transformers.loading import stores_single_precision
from unprior.engines.transformers.source import Source
from unprior.engines.vllm import VllmEngine
from vllm_models import MODELS, NEW_TOKENS, build_for_vllm, queries_for
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


def asked_in_process(folder: Path, queries: dict[Path, list[Query]], **variables: str) -> dict[Path, dict[str, Any]]:
    """What the engine says to the queries for each model, all in one process of the Python that has vLLM."""
    python = vllm_python()
    for model, asked in queries.items():
        entries = []
        for index, query in enumerate(asked):
            name = None if query.image is None else f"{model.name}-{index}.png"
            if query.image is not None and name is not None:
                query.image.save(folder / name)
            entries.append({"image": name, "text": query.text, "candidates": query.candidates})
        (folder / f"{model.name}.json").write_text(json.dumps(entries), encoding="utf-8")
    command = [python, in_process_vllm.__file__, *map(str, queries), str(folder)]
    settings = vllm_variables() | variables
    done = subprocess.run(command, env=settings, capture_output=True, timeout=580, check=False, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    return {model: json.loads((folder / f"{model.name}.results.json").read_text(encoding="utf-8")) for model in queries}


def largest_difference(engine: TransformersEngine, queries: Sequence[Query], told: dict[str, Any]) -> float:
    """From transformers; answers and tokens must be the same."""
    largest = 0.0
    for query, result in zip(queries, told["results"], strict=True):
        expected = engine.score_candidates(query.image, query.text, query.candidates)
        largest = max(largest, float(np.abs(np.subtract(result["scores"], expected.scores)).max()))
        assert tuple(result["counts"]) == expected.token_counts
        assert result["text"] == engine.original_answer(query.image, query.text)
    assert told["answer"] == told["results"][0]["text"]
    for alone, together in zip(told["alone"], told["results"], strict=False):
        np.testing.assert_allclose(alone, together["scores"], atol=1e-3)
    print(f"{engine.model_type} in process: {largest:.2g} from transformers")
    return largest


def check_proposals(engine: TransformersEngine, queries: Sequence[Query], told: dict[str, Any]) -> float:
    """Of what was proposed, the original answers must be those of transformers; the largest difference of scores."""
    largest = 0.0
    ordered = sorted(queries, key=lambda query: query.image is None)
    for query, result in zip(ordered, told["proposed"], strict=True):
        first, texts = list(query.candidates), result["candidates"]
        if query.image is not None:
            assert result["text"] == engine.original_answer(query.image, query.text)
        assert texts[: len(first)] == first
        assert len(set(texts)) == len(texts)
        expected = engine.score_in_full(Query(query.image, query.text, tuple(texts), whole=True))
        assert tuple(result["counts"]) == expected.token_counts
        largest = max(largest, float(np.abs(np.subtract(result["scores"], expected.scores)).max()))
    print(f"{engine.model_type} in process: proposals {largest:.2g} from transformers")
    return largest


@pytest.mark.engines
def test_in_process_scores_and_answers_equal_those_of_transformers(tmp_path: Path) -> None:
    queries = [*embedded_queries()]
    # One question that cannot be asked must not spoil the others.
    told = asked_in_process(tmp_path, {FOLDER: [*queries, Query(None, "why " * 600, (" yes", " no"))]})[FOLDER]
    engine = TransformersEngine(FOLDER, device="cpu", image_backend="pil")
    assert "failure" in told["results"].pop()
    assert "failure" in told["proposed"].pop()
    assert largest_difference(engine, queries, told) < 1e-3
    assert check_proposals(engine, queries, told) < 1e-4
    for query, result in zip(queries[::3], told["proposed"][::3], strict=True):
        best = most_probable_answers(engine, query.image, query.text, 2, engine.encoder.end or 0)
        assert set(best) <= set(result["candidates"])
    assert told["model_type"] == "llava"
    assert told["identity"]["dtype"] == "torch.float32"  # as stored, where vLLM by itself takes half precision
    assert set(told["statuses"].values()) == {"ok"}, told["statuses"]
    assert told["identity"]["weights"] == engine.identity["weights"]


@pytest.mark.engines
def test_in_process_other_architectures_equal_transformers(tmp_path: Path) -> None:
    queries = {build_for_vllm(name, tmp_path / name): queries_for(name) for name in MODELS}
    # Without processes of its own vLLM starts in seconds; with them, it is tried on the embedded model.
    told = asked_in_process(tmp_path, queries, VLLM_ENABLE_V1_MULTIPROCESSING="0")
    for model, asked in queries.items():
        engine = TransformersEngine(model, device="cpu", image_backend="pil", max_new_tokens=NEW_TOKENS)
        assert largest_difference(engine, asked, told[model]) < 1e-3
        assert check_proposals(engine, asked, told[model]) < 1e-3
        assert "failed" not in told[model]["statuses"].values(), told[model]["statuses"]
