"""Clients that nobody here wrote: the openai package as it is, and curl."""

from __future__ import annotations

import asyncio
import enum
import json
import shutil
import subprocess
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Literal

import httpx
import openai
import pytest
from openai import OpenAI
from openai.types import Decision
from pydantic import BaseModel

from tests.serving.conftest import Serve, body, choice
from tests.serving.test_faults import Faulty
from unprior.engines.protocol import Engine

KEY = "0123456789abcdef"
ASKED = choice("How many fingers?", "four", "five", name="fingers")


class Count(enum.Enum):
    FOUR = "four"
    FIVE = "five"


class Named(BaseModel):
    fingers: Count


class Literally(BaseModel):
    fingers: Literal["four", "five"]


@pytest.fixture(scope="module")
def client(server: str) -> OpenAI:
    return OpenAI(base_url=f"{server}/v1", api_key="none", max_retries=0)


def message(image: str) -> Any:
    content = [{"type": "text", "text": "How many fingers?"}, {"type": "image_url", "image_url": {"url": image}}]
    return {"role": "user", "content": content}


def test_replies_are_what_the_client_expects_strictly(client: OpenAI, plain: str) -> None:
    asked = [
        ASKED, choice("Is it so?", True, False), choice("Is it so?", "yes", "no"),
        {"type": "predicate", "instructions": "Is it a hand?", "name": "hand"},
        {"type": "score", "instructions": "How good?", "levels": [{"label": "bad"}, {"label": "good"}]},
    ]  # fmt: skip
    reply = client.decisions.create(**body(plain, *asked))
    # The client is lenient when it reads a reply; its own types are not.
    Decision.model_validate(reply.model_dump(), strict=True)
    first, truth, yes, hand, refused = reply.answers
    assert first.type == "choice"
    assert first.choice in {"four", "five"}
    assert truth.type == "choice"
    assert {each.value for each in truth.probabilities} == {True, False}
    assert isinstance(truth.choice, bool)
    assert yes.type == "choice"
    assert yes.choice == ("yes" if truth.choice else "no")
    assert hand.type == "predicate"
    assert 0 <= hand.probability <= 1
    assert hand.name == "hand"
    assert refused.type == "refusal"
    assert reply.usage.input_tokens_details.cached_tokens == 0
    assert reply.usage.output_tokens_details.reasoning_tokens == 0
    alone = client.decisions.create(**body(plain, asked[-1]))
    assert [answer.type for answer in alone.answers] == ["refusal"]


def test_choices_keep_their_order_and_type(client: OpenAI, plain: str) -> None:
    (answer,) = client.decisions.create(**body(plain, choice("Is it so?", False, True))).answers
    assert answer.type == "choice"
    assert [each.value for each in answer.probabilities] == [False, True]
    (answer,) = client.decisions.create(**body(plain, choice("Is it so?", "No", "Yes"))).answers
    assert answer.type == "choice"
    assert [each.value for each in answer.probabilities] == ["No", "Yes"]


def test_chat_replies_are_what_the_client_expects(client: OpenAI, plain: str) -> None:
    reply = client.chat.completions.create(
        model="embedded", messages=[message(plain)], temperature=0.2, max_tokens=5, seed=1, top_p=0.9,
        extra_body={"structured_outputs": {"choice": ["four", "five"]}},
    )  # fmt: skip
    type(reply).model_validate(reply.model_dump(), strict=True)
    assert reply.usage is not None
    assert reply.usage.prompt_tokens_details is not None
    assert reply.usage.completion_tokens_details is not None
    assert reply.choices[0].finish_reason == "stop"
    answer = reply.choices[0].message.content
    assert reply.unprior["answer"]["choice"] == answer  # type: ignore[attr-defined]
    assert reply.unprior["ignored"] == ["max_tokens", "seed", "temperature", "top_p"]  # type: ignore[attr-defined]
    for form in (Named, Literally):  # one names a definition, the other holds the texts itself
        parsed = client.chat.completions.parse(
            model="embedded", messages=[message(plain)], response_format=form
        ).choices[0].message.parsed  # fmt: skip
        assert parsed is not None
        assert parsed.fingers in {answer, Count(answer)}


def test_the_models_are_listed(client: OpenAI) -> None:
    assert [model.id for model in client.models.list()] == ["embedded"]


def test_errors_are_the_exceptions_of_the_client(start: Serve, embedded: Engine, client: OpenAI, plain: str) -> None:
    with pytest.raises(openai.BadRequestError) as wrong:
        client.decisions.create(**body(plain, choice("Which?", "a", "a")))
    assert (wrong.value.code, wrong.value.param) == ("duplicate_candidates", "questions[0].choices")
    assert wrong.value.type == "invalid_request_error"
    assert wrong.value.request_id
    with pytest.raises(openai.NotFoundError):
        client.decisions.create(**body(plain, ASKED) | {"model": "gpt"})
    with start(key=KEY) as address:
        with pytest.raises(openai.AuthenticationError):
            OpenAI(base_url=f"{address}/v1", api_key="other", max_retries=0).models.list()
        assert OpenAI(base_url=f"{address}/v1", api_key=KEY, max_retries=0).models.list().data
    with start(Faulty(embedded, "answer")) as address, pytest.raises(openai.InternalServerError):
        OpenAI(base_url=f"{address}/v1", api_key="none", max_retries=0).decisions.create(**body(plain, ASKED))


def test_the_client_comes_back_when_it_is_told_to(start: Serve, embedded: Engine, plain: str) -> None:
    slow = Faulty(embedded, "slow")
    refused, waits = threading.Event(), []

    def watch(reply: Any) -> None:
        if reply.status_code == 429:
            waits.append(reply.headers["retry-after"])
            refused.set()

    def ask(address: str, retries: int) -> Decision:
        with OpenAI(base_url=f"{address}/v1", api_key="none", max_retries=retries, http_client=_watched(watch)) as own:
            return own.decisions.create(**body(plain, ASKED))

    with start(slow, concurrency=1, queue=0) as address, ThreadPoolExecutor(2) as pool:
        first = pool.submit(ask, address, 0)
        while slow.entered == 0:
            threading.Event().wait(0.01)
        with pytest.raises(openai.RateLimitError) as told:
            ask(address, 0)
        assert told.value.code == "queue_full"
        refused.clear()
        second = pool.submit(ask, address, 5)
        refused.wait(30)
        slow.fault = ""
        slow.go_on._loop.call_soon_threadsafe(slow.go_on.set)  # type: ignore[attr-defined]
        assert first.result().answers
        assert second.result().answers
        assert waits == ["1"] * len(waits)
        assert len(waits) >= 2


def test_a_client_that_leaves_is_no_fault_of_the_server(
    start: Serve, embedded: Engine, plain: str, caplog: pytest.LogCaptureFixture
) -> None:
    slow = Faulty(embedded, "slow")
    with start(slow) as address:
        own = OpenAI(base_url=f"{address}/v1", api_key="none", max_retries=0, timeout=1.0)
        with pytest.raises(openai.APITimeoutError):
            own.decisions.create(**body(plain, ASKED))
        own.close()
        while 'status="499"' not in httpx.get(f"{address}/metrics").text:
            threading.Event().wait(0.01)
    assert caplog.records == []


def _watched(watch: Any) -> Any:
    from openai import DefaultHttpxClient

    return DefaultHttpxClient(event_hooks={"response": [watch]})


def test_the_asynchronous_client(server: str, plain: str) -> None:
    async def ask() -> list[Any]:
        async with openai.AsyncOpenAI(base_url=f"{server}/v1", api_key="none") as own:
            replies = await asyncio.gather(*(own.decisions.create(**body(plain, ASKED)) for _ in range(4)))
        return [each.answers[0].unprior["candidates"][0]["with_image"] for each in replies]  # type: ignore

    with ThreadPoolExecutor(1) as pool:  # the browser of other tests has an event loop in this thread
        told = pool.submit(lambda: asyncio.run(ask())).result()
    assert told == pytest.approx([told[0]] * 4)


@pytest.mark.skipif(shutil.which("curl") is None, reason="there is no curl")
def test_curl(start: Serve, plain: str, tmp_path: Path) -> None:
    def curl(path: str, content: dict[str, Any] | None, *more: str) -> tuple[int, Any]:
        command = ["curl", "-s", "-w", "\n%{http_code}", f"{address}{path}", *more]
        if content is not None:
            (tmp_path / "body.json").write_text(json.dumps(content))
            command += ["-d", f"@{tmp_path / 'body.json'}", "-H", "Content-Type: application/json"]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        text, _, status = done.stdout.rpartition("\n")
        return int(status), json.loads(text)

    key = ("-H", f"Authorization: Bearer {KEY}")
    with start(key=KEY) as address:
        status, told = curl("/v1/decisions", body(plain, ASKED), *key)
        assert status == 200
        assert told["answers"][0]["choice"] in {"four", "five"}
        asked = {"model": "embedded", "messages": [message(plain)], "structured_outputs": {"choice": ["four", "five"]}}
        status, chatted = curl("/v1/chat/completions", asked, *key)
        assert status == 200
        assert chatted["choices"][0]["message"]["content"] == told["answers"][0]["choice"]
        assert curl("/v1/decisions", body(plain, ASKED))[0] == 401
        assert curl("/v1/decisions", body(plain), *key)[0] == 400
        assert curl("/health", None)[0] == 200
        assert curl("/v1/decisions", None, *key)[0] == 405
