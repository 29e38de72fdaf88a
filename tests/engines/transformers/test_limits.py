"""Prompts past a limit of the model: a window, positions that are spread out, the longest prompt it takes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from PIL import Image

from tiny_models.checkpoint import SHAPES
from tiny_models.llava import llava
from unprior.engines.protocol import Answered, CandidateScores, Query, QueryFailure
from unprior.engines.transformers.engine import TransformersEngine

CANDIDATES = (" yes", " no", " seventeen zebras")
SHORT, LONG = "Is it red?", "The zebra stands on the grass. " * 30 + "Is it red?"
_SPREAD = {"rope_type": "longrope", "rope_theta": 10000.0, "factor": 32.0,
           "short_factor": [1.0] * 16, "long_factor": [4.0] * 16}  # fmt: skip


def spread_positions(folder: Path, limit: int) -> TransformersEngine:
    """A decoder that spreads all positions of a batch as soon as one of its prompts is longer than the limit."""
    text = {
        "original_max_position_embeddings": limit,
        "rope_parameters": {**_SPREAD, "original_max_position_embeddings": limit},
    }
    llava(
        SHAPES["tiny"], model_type="phi3", hidden_size=128, num_key_value_heads=4, max_position_embeddings=4096, **text
    ).save(folder, 0)
    return TransformersEngine(folder, device="cpu")


def brute_force(engine: TransformersEngine, query: Query) -> list[float]:
    """Whole passes through the library alone."""
    processor, scores = engine.encoder.processor, []
    text = engine.encoder.render(query.image is not None, query.text + engine.layout.scoring_suffix)
    for candidate in query.candidates:
        lengths = []
        for ending in ("", candidate):
            made = {
                "text": [text + ending],
                "return_tensors": "pt",
                "add_special_tokens": engine.encoder._adds_start(text),
            }
            made |= {"images": [query.image]} if query.image is not None else {}
            inputs = processor(**made)
            lengths.append(inputs["input_ids"].shape[1])
        with torch.inference_mode():
            logits = torch.log_softmax(engine.model(**inputs).logits[0].float(), dim=-1)
        ids = inputs["input_ids"][0]
        scores.append(sum(float(logits[place - 1, ids[place]]) for place in range(lengths[0], lengths[1])))
    return scores


@pytest.mark.parametrize("limit", [128, 2100])  # tested at load, and at the first longer prompt
def test_a_long_prompt_does_not_change_a_short_one_beside_it(
    tmp_path: Path, images: list[Image.Image], limit: int
) -> None:
    engine = spread_positions(tmp_path, limit)
    long = LONG if limit == 128 else LONG * 5
    queries = [Query(image, text, CANDIDATES) for image in (images[0], None) for text in (SHORT, long)]
    for part in (queries[:2], queries[2:]):
        for query, result in zip(part, engine.score_batch(part), strict=True):
            assert isinstance(result, CandidateScores), result
            assert result.scores == pytest.approx(brute_force(engine, query), abs=1e-4)
    engine.max_new_tokens = 2
    for query, result in zip(queries[:2], engine.answer_batch(queries[:2]), strict=True):
        assert isinstance(result, Answered), result
        assert result.scored.scores == pytest.approx(brute_force(engine, query), abs=1e-4)


def test_the_longest_prompt_is_tested_once_with_and_once_without_an_image(
    tmp_path: Path, images: list[Image.Image], monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = spread_positions(tmp_path, 2100)
    tested: list[Any] = []
    own = engine.self_test.choose_for
    monkeypatch.setattr(
        engine.self_test, "choose_for", lambda batches, levels: tested.append(batches) or own(batches, levels)
    )
    dense, sparse = "\u4e2d" * 800, "answer " * 600  # many tokens in few letters, and few tokens in many letters
    for image in (None, images[0], None, images[0]):
        engine.score_batch([Query(image, text, (" A",)) for text in (dense, sparse)])
    assert [(batches[0][0].image is None, batches[0][1].text) for batches in tested] == [(True, dense), (False, dense)]
    assert [len(batch) for batch in tested[0]] == [2, 1]


def test_a_prompt_that_the_model_cannot_take_fails_alone(llava: TransformersEngine, images: list[Image.Image]) -> None:
    most = llava.model.config.get_text_config().max_position_embeddings
    queries = [Query(images[0], text, CANDIDATES) for text in (SHORT, "zebra " * most, SHORT)]
    first, second, third = llava.answer_batch(queries)
    assert isinstance(first, Answered)
    assert isinstance(third, Answered)
    assert isinstance(second, QueryFailure)
    assert f"tokens or more, and the model takes {most:,}" in second.reason
    assert "resize" in second.reason


def test_control_tokens_are_not_words(model_folder: Callable[[str], Path], images: list[Image.Image]) -> None:
    engine = TransformersEngine(model_folder("qwen3_vl"), device="cpu", self_test=False)
    for word in ("<|video_pad|>", "<|im_end|>"):
        if word not in engine.encoder.tokenizer.get_vocab():
            continue
        for image in (images[0], None):
            (failed,) = engine.score_batch([Query(image, f"What is {word}?", (" A",))])
            assert isinstance(failed, QueryFailure)
            assert f"the question contains {word}" in failed.reason
