"""In front of a server: the same decisions as in process, and the original answer where only the scores fail."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest

from faulty_server import FaultyServer
from replayed_vllm import MODEL, ReplayedVllm
from served_engines import HASTY
from tests.serving.conftest import body, choice, data_url, running
from unprior.benchmarks.schema import Benchmark
from unprior.engines.openai.engine import HttpEngine
from unprior.engines.transformers.engine import TransformersEngine
from unprior.serving.backend import UpstreamBackend
from unprior.serving.calibrators import Calibrators
from unprior.serving.service import Service
from unprior.serving.settings import ServeSettings


@pytest.fixture(scope="module")
def upstream(embedded: TransformersEngine) -> Iterator[FaultyServer]:
    with FaultyServer(ReplayedVllm(embedded)) as server:
        yield server


@pytest.fixture(scope="module")
def address(upstream: FaultyServer) -> Iterator[str]:
    engine = HttpEngine(MODEL, [upstream.url], retry_policy=HASTY)
    with running(Service(ServeSettings(), UpstreamBackend(engine), Calibrators({}))) as served:
        yield served


def test_scores_are_those_of_the_model_in_process(server: str, address: str, choices: Benchmark) -> None:
    for example in choices.examples[:4]:
        asked = body(
            data_url(example.image),
            choice(example.question, *(example.texts or ())),
            {"type": "predicate", "instructions": "Is there a cat in the image?"},
            {"type": "open", "instructions": example.question},
        )
        replies = [
            httpx.post(f"{place}/v1/decisions", json=asked | {"model": name}, timeout=60).json()
            for place, name in ((server, "embedded"), (address, MODEL))
        ]
        for here, there in zip(*(reply["answers"] for reply in replies), strict=True):
            assert here["unprior"]["original"] == there["unprior"]["original"]
            assert there["unprior"]["reason"] == "no_calibrator"
            pairs = zip(here["unprior"]["candidates"], there["unprior"]["candidates"], strict=True)
            for one, other in pairs:
                assert one["value"] == other["value"]
                for side in ("with_image", "without_image"):
                    assert one[side] == pytest.approx(other[side], abs=1e-4)


def test_a_server_that_is_gone_gives_no_answer(address: str, upstream: FaultyServer, plain: str) -> None:
    asked = body(plain, choice("Which one is it?", "a", "b")) | {"model": MODEL}
    upstream.plan = lambda *_: "500"
    try:
        reply = httpx.post(f"{address}/v1/decisions", json=asked, timeout=60)
    finally:
        upstream.plan = None
    assert reply.status_code == 502
    assert httpx.post(f"{address}/v1/decisions", json=asked, timeout=60).status_code == 200
