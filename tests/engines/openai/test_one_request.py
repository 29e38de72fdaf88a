"""Where answer and scores are asked for with the same words, one request gives both."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from PIL import Image

from faulty_server import FaultyServer
from replayed_vllm import MODEL, ReplayedVllm
from served_engines import HASTY
from unprior.engines.load import load_engine
from unprior.engines.openai.engine import HttpEngine
from unprior.engines.protocol import Answered, CandidateScores, Query
from unprior.engines.transformers.engine import TransformersEngine
from unprior.prompts import PromptLayout

LAYOUT = PromptLayout(scoring_suffix="")
CHAT = "/v1/chat/completions"


@pytest.fixture(scope="module")
def reference() -> TransformersEngine:
    engine = load_engine("embedded", layout=LAYOUT)
    assert isinstance(engine, TransformersEngine)
    return engine


def queries(image: Image.Image) -> list[Query]:
    asked = [("How many legs?", ("A", "B"), ("four", "five")), ("Is there a cat?", ("yes", "no"), None)]
    return [
        Query(image, LAYOUT.user_text(question, labels, texts), LAYOUT.continuations(labels))
        for question, labels, texts in asked
    ]


def test_answer_and_scores_come_with_one_request(reference: TransformersEngine) -> None:
    asked = queries(Image.effect_noise((72, 72), 90).convert("RGB"))
    with FaultyServer(ReplayedVllm(reference)) as server:
        engine = HttpEngine(MODEL, [server.url], retry_policy=HASTY, layout=LAYOUT)
        engine.answer_batch(asked)  # tokens of the candidates are known from here on
        before = server.paths[CHAT]
        found = engine.answer_batch(asked)
        assert server.paths[CHAT] - before == len(asked)
        engine.close()
    for query, result in zip(asked, found, strict=True):
        assert isinstance(result, Answered), result
        expected = reference.score_candidates(query.image, query.text, query.candidates)
        assert result.text == reference.original_answer(query.image, query.text)
        assert result.scored.token_counts == expected.token_counts
        assert np.allclose(result.scored.scores, expected.scores, atol=1e-5)


def test_candidates_of_several_tokens_take_more_requests(reference: TransformersEngine) -> None:
    query = Query(None, "Which?", (" seventeen zebras", " six"))
    with FaultyServer(ReplayedVllm(reference)) as server:
        engine = HttpEngine(MODEL, [server.url], retry_policy=HASTY, layout=LAYOUT)
        (found,) = engine.answer_batch([query])
        engine.close()
    assert isinstance(found, Answered), found
    expected = reference.score_candidates(None, query.text, query.candidates)
    assert max(expected.token_counts) > 1
    assert np.allclose(found.scored.scores, expected.scores, atol=1e-5)


def test_without_scores_the_answer_is_asked_for_alone(reference: TransformersEngine) -> None:
    image = Image.effect_noise((72, 72), 90).convert("RGB")
    (query, _) = queries(image)
    replayed = ReplayedVllm(reference)

    def answer(path: str, body: dict[str, Any] | None) -> tuple[int, Any]:
        status, content = replayed(path, body)
        if body and body.get("max_tokens", 0) > 1 and "logprob_token_ids" in body:
            content["choices"][0]["logprobs"] = None
        return status, content

    with FaultyServer(replayed) as server:
        engine = HttpEngine(MODEL, [server.url], retry_policy=HASTY, layout=LAYOUT)
        server.answer = answer
        work = engine.awaited(engine.answer_apart(image, [query], 60.0))
        with ThreadPoolExecutor(1) as thread:  # the browser of other tests has a loop in this one
            ((text, scored),) = thread.submit(asyncio.run, work).result()  # type: ignore[misc]
        engine.close()
    assert text == reference.original_answer(image, query.text)
    assert not isinstance(scored, CandidateScores)
