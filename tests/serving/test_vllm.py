"""`unprior serve` in front of a real vLLM: decisions as in process, for many clients at once, and whatever breaks."""

from __future__ import annotations

import random
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest
from openai import OpenAI

from faulty_server import FaultyServer
from load import serving
from tests.serving.conftest import body, choice, data_url
from unprior.benchmarks.microworld import microworld
from unprior.benchmarks.schema import Benchmark
from unprior.embedded import CALIBRATOR, FOLDER, NAME
from unprior.engines.transformers.engine import TransformersEngine
from unprior.scoring.ask import ClosedQuestion
from vllm_models import NEW_TOKENS, build_for_vllm, queries_for
from vllm_server import Forwarding, running_vllm

pytestmark = pytest.mark.engines
TOLERANCE = 1e-3
ENFORCE = ("--model", NAME, "--calibrator", f"packaged={CALIBRATOR}", "--mode", "enforce")
Reply = dict[str, Any]


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with running_vllm(FOLDER, NAME, tmp_path_factory.mktemp("vllm") / "server.log") as address:
        yield address


@pytest.fixture(scope="module")
def served(url: str) -> Iterator[str]:
    with serving("--upstream", url, *ENFORCE) as server:
        yield server.url


@pytest.fixture(scope="module")
def requests(choices: Benchmark, drawn_world: Path) -> list[Reply]:
    """Questions of all kinds; some answers are revised."""
    openly = {each.pair_id: each for each in microworld(drawn_world, 3, variant="open") if each.side == "cf"}
    found = []
    for example in [each for each in choices if each.side == "cf"][:24]:
        asked = [
            choice(example.question, *(example.texts or ())),
            {"type": "predicate", "instructions": "Is there a cat in the image?"},
        ]
        if example.pair_id in openly and len(found) % 6 == 0:
            asked.append({"type": "open", "instructions": openly[example.pair_id].question})
        found.append(body(data_url(example.image), *asked))
    return found


def ask(address: str, content: Reply) -> httpx.Response:
    return httpx.post(f"{address}/v1/decisions", json=content, timeout=120)


def told(reply: httpx.Response) -> list[Reply]:
    assert reply.status_code == 200, reply.text
    answers: list[Reply] = reply.json()["answers"]
    return answers


@pytest.fixture(scope="module")
def expected(server: str, requests: list[Reply]) -> list[list[Reply]]:
    """Decisions of the same model in process."""
    return [told(ask(server, request)) for request in requests]


def compare(here: list[Reply], there: list[Reply]) -> float:
    """The same decisions; the largest difference of scores."""
    largest = 0.0
    for one, other in zip(here, there, strict=True):
        for name in ("decision", "original", "proposal", "reason"):
            assert one["unprior"][name] == other["unprior"][name], name
        assert one.get("choice") == other.get("choice")
        for mine, theirs in zip(one["unprior"]["candidates"], other["unprior"]["candidates"], strict=True):
            assert mine["value"] == theirs["value"]
            largest = max(largest, *(abs(mine[side] - theirs[side]) for side in ("with_image", "without_image")))
    assert largest < TOLERANCE
    return largest


def test_decisions_are_those_in_process(served: str, requests: list[Reply], expected: list[list[Reply]]) -> None:
    replies = [ask(served, request) for request in requests]
    largest = max(compare(told(reply), right) for reply, right in zip(replies, expected, strict=True))
    revised = sum(each["unprior"]["decision"] == "revised" for answers in expected for each in answers)
    print(f"{len(requests)} requests, {revised} answers revised, scores {largest:.2g} from those in process")
    assert revised >= 3
    first, again = replies[1].json(), ask(served, requests[1]).json()
    assert (first["unprior"]["upstream_calls"], again["unprior"]["upstream_calls"]) == (5, 4)
    assert again["unprior"]["prior_cache"] == "hit"  # the second question was asked before the first reply, too
    assert first["usage"]["input_tokens"] > first["usage"]["output_tokens"] > 0
    assert httpx.get(f"{served}/ready").json() == {"status": "ok"}


def test_the_openai_client_chooses_by_chat(served: str, choices: Benchmark) -> None:
    client = OpenAI(base_url=f"{served}/v1", api_key="none", max_retries=0)
    example = choices.examples[0]
    content: list[Any] = [
        {"type": "text", "text": example.question},
        {"type": "image_url", "image_url": {"url": data_url(example.image)}},
    ]
    texts = list(example.texts or ())
    reply = client.chat.completions.create(
        model=NAME,
        messages=[{"role": "user", "content": content}],
        extra_body={"structured_outputs": {"choice": texts}},
    )
    (answer,) = client.decisions.create(**body(data_url(example.image), choice(example.question, *texts))).answers
    assert reply.choices[0].message.content == answer.choice  # type: ignore[union-attr]
    assert reply.usage is not None
    assert reply.usage.prompt_tokens > 0


def test_a_repeated_question_is_one_call_where_answer_and_scores_share_their_prompt(url: str, plain: str) -> None:
    asked = body(plain, choice("Which of them is it?", "a dog", "a cat"))
    with serving("--upstream", url, "--model", NAME, "--scoring-suffix", "") as server:
        calls = [ask(server.url, asked).json()["unprior"]["upstream_calls"] for _ in range(2)]
    assert calls == [2, 1]


@pytest.mark.parametrize("concurrency", [16, 64, 256])
def test_many_at_once_get_their_own_decisions(
    served: str, requests: list[Reply], expected: list[list[Reply]], concurrency: int
) -> None:
    closed = [place for place, request in enumerate(requests) if len(request["questions"]) == 2]
    places = [closed[number % len(closed)] for number in range(2 * concurrency)]
    with ThreadPoolExecutor(concurrency) as pool:
        replies = list(pool.map(lambda place: ask(served, requests[place]), places))
    for place, reply in zip(places, replies, strict=True):
        compare(told(reply), expected[place])


def test_faults_give_the_same_decision_or_the_original_answer(
    url: str, requests: list[Reply], expected: list[list[Reply]]
) -> None:
    chance = random.Random(0)

    def plan(number: int, path: str, content: Reply | None) -> str | None:
        return (
            chance.choice(("drop", "500", "cut", "strange tokens")) if number > 60 and chance.random() < 0.3 else None
        )

    with (
        Forwarding(url) as real,
        FaultyServer(real, plan) as proxy,
        serving("--upstream", proxy.url, *ENFORCE) as server,
        ThreadPoolExecutor(8) as pool,
    ):
        replies = list(pool.map(lambda request: ask(server.url, request), requests))
    whole = 0
    for reply, right in zip(replies, expected, strict=True):
        if reply.status_code == 502:
            continue
        for answer, other in zip(told(reply), right, strict=True):
            if answer["type"] == "refusal":
                continue
            if answer["unprior"]["reason"] in {"prior_unavailable", "scores_unavailable"}:
                assert answer["unprior"]["decision"] == "kept"
                assert answer["unprior"]["original"] == other["unprior"]["original"]
            else:
                compare([answer], [other])
                whole += 1
    print(f"{dict(proxy.faults)}: {whole} whole answers")
    assert sum(proxy.faults.values()) - proxy.faults["none"] > 20
    assert whole > 20


def test_a_server_behind_that_is_ended_and_started_again(
    tmp_path: Path, requests: list[Reply], expected: list[list[Reply]]
) -> None:
    with ExitStack() as first, ExitStack() as rest:
        address = first.enter_context(running_vllm(FOLDER, NAME, tmp_path / "first.log"))
        server = rest.enter_context(serving("--upstream", address, *ENFORCE))
        compare(told(ask(server.url, requests[1])), expected[1])
        first.close()
        assert ask(server.url, requests[1]).status_code == 502
        assert httpx.get(f"{server.url}/ready").status_code == 503
        port = int(address.rpartition(":")[2])
        rest.enter_context(running_vllm(FOLDER, NAME, tmp_path / "second.log", port=port))
        compare(told(ask(server.url, requests[1])), expected[1])


@pytest.mark.parametrize("architecture", ["qwen3_vl", "idefics3"])
def test_other_architectures_have_the_scores_of_transformers(architecture: str, tmp_path: Path) -> None:
    folder = build_for_vllm(architecture, tmp_path / "model")
    reference = TransformersEngine(folder, device="cpu", image_backend="pil", max_new_tokens=NEW_TOKENS)
    image = next(query.image for query in queries_for(architecture) if query.image is not None)
    form = ClosedQuestion.from_options(reference.layout, "What is shown?", ["a tree", "a house", "nothing"])
    with (
        running_vllm(folder, "small", tmp_path / "server.log") as address,
        serving("--upstream", address, "--model", "small", "--max-new-tokens", str(NEW_TOKENS)) as server,
    ):
        asked = body(data_url(image), choice("What is shown?", *(form.texts or ()))) | {"model": "small"}
        reply = ask(server.url, asked)
    (answer,), largest = told(reply), 0.0
    for side, shown in (("with_image", image), ("without_image", None)):
        right = reference.score_candidates(shown, form.text, form.continuations).scores
        pairs = zip(answer["unprior"]["candidates"], right, strict=True)
        largest = max(largest, *(abs(each[side] - score) for each, score in pairs))
    print(f"{architecture}: {largest:.2g} from transformers")
    assert largest < TOLERANCE
