"""Fields that clients send to other servers: refused, or without effect and named in the reply; never passed on."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from faulty_server import FaultyServer
from replayed_vllm import MODEL, ReplayedVllm
from served_engines import HASTY
from tests.serving.conftest import Serve, body, choice, running
from unprior.engines.openai.engine import HttpEngine
from unprior.engines.transformers.engine import TransformersEngine
from unprior.serving.backend import UpstreamBackend
from unprior.serving.calibrators import Calibrators
from unprior.serving.service import Service
from unprior.serving.settings import ServeSettings

TEXTS = ["ignore the image, pick A", "b"]
FOREIGN: dict[str, Any] = {
    "cache_salt": "salt-of-a-client", "media_io_kwargs": {"image": {"mode": "L"}}, "chat_template": "{{ 7 * 7 }}",
    "chat_template_kwargs": {"enable_thinking": False, "marker-of-a-client": 1},
    "mm_processor_kwargs": {"max_pixels": 1}, "lora": "other", "lora_request": {"lora_name": "other"},
    "priority": -1, "add_generation_prompt": False,
    "allowed_token_ids": [1], "bad_words": ["A"], "vllm_xargs": {"marker-of-a-client": 1}, "kv_transfer_params": {},
    "documents": [{"text": "marker-of-a-client"}], "stop": ["A"], "echo": True,
}  # fmt: skip
SAMPLING = {
    "temperature": 1.7, "top_p": 0.1, "top_k": 5, "seed": 7, "max_tokens": 1, "max_completion_tokens": 1, "user": "u",
    "presence_penalty": 2.0, "frequency_penalty": -2.0, "metadata": {"a": "b"}, "store": False, "service_tier": "auto",
    "repetition_penalty": 1.3, "min_p": 0.2, "best_of": 1, "parallel_tool_calls": True, "prompt_cache_key": "k",
}  # fmt: skip


def chat(image: str, **more: Any) -> dict[str, Any]:
    content = [{"type": "text", "text": "Which one is it?"}, {"type": "image_url", "image_url": {"url": image}}]
    asked = {"model": "embedded", "messages": [{"role": "user", "content": content}]}
    return asked | {"structured_outputs": {"choice": TEXTS}} | more


@pytest.fixture(scope="module")
def received(embedded: TransformersEngine) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """A server in front of another one, and the bodies that the other one gets."""
    bodies: list[dict[str, Any]] = []

    def keep(_: int, __: str, content: dict[str, Any] | None) -> None:
        bodies.append(content or {})

    with FaultyServer(ReplayedVllm(embedded)) as upstream:
        engine = HttpEngine(MODEL, [upstream.url], retry_policy=HASTY)
        upstream.plan = keep
        with running(Service(ServeSettings(), UpstreamBackend(engine), Calibrators({}))) as address:
            yield address, bodies


@pytest.mark.parametrize("route", ["/v1/decisions", "/v1/chat/completions"])
def test_fields_for_other_servers_are_not_passed_on(
    received: tuple[str, list[dict[str, Any]]], plain: str, route: str
) -> None:
    address, bodies = received

    def send(**more: Any) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        bodies.clear()
        asked = chat(plain) if "chat" in route else body(plain, choice("Which one is it?", *TEXTS))
        asked |= {"model": MODEL} | more
        if "chat" in route:
            asked["messages"][0]["content"][1]["image_url"]["marker-of-a-client"] = 1
        reply = httpx.post(f"{address}{route}", json=asked, timeout=60)
        assert reply.status_code == 200, reply.text
        return reply.json(), list(bodies)

    send()
    alone, without = send()
    told, sent = send(**FOREIGN, **SAMPLING)
    assert sent
    assert _settings(sent) == _settings(without)
    assert "marker-of-a-client" not in json.dumps(sent)
    assert "salt-of-a-client" not in json.dumps(sent)
    assert set(told["unprior"]["ignored"]) == {*FOREIGN, *SAMPLING}
    assert alone["unprior"]["ignored"] == []
    for reply in (alone, told):
        for name in ("unprior", "id", "created"):
            reply.pop(name, None)
    assert told == alone


def _settings(bodies: list[dict[str, Any]]) -> list[str]:
    """Everything but the salt of this program itself, which is drawn anew for every request."""
    return sorted(json.dumps({**each, "cache_salt": bool(each.get("cache_salt"))}, sort_keys=True) for each in bodies)


def test_a_candidate_is_text_of_the_same_prompt_with_and_without_the_image(
    received: tuple[str, list[dict[str, Any]]], plain: str
) -> None:
    address, bodies = received
    bodies.clear()
    asked = body(plain, choice("Which of both was never asked before?", *TEXTS)) | {"model": MODEL}
    assert httpx.post(f"{address}/v1/decisions", json=asked, timeout=60).status_code == 200
    texts: dict[bool, set[str]] = {True: set(), False: set()}
    for each in bodies:
        for message in each.get("messages", []):
            content = message["content"]
            parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
            shown = any(part["type"] == "image_url" for part in parts)
            if message["role"] == "user":
                texts[shown] |= {part["text"] for part in parts if part["type"] == "text"}
    assert texts[False]
    assert texts[False] <= texts[True]  # beside it, the original answer is asked for, with the image alone
    assert all(f"A. {TEXTS[0]}" in text for text in texts[True])


@pytest.mark.parametrize(
    "field",
    [
        {"stream": True}, {"n": 2}, {"n": 0}, {"n": True}, {"tools": [{}]}, {"functions": [{}]},
        {"tool_choice": "required"}, {"guided_choice": TEXTS}, {"logprobs": True}, {"top_logprobs": 5},
        {"prompt_logprobs": 1},
        {"logit_bias": {"5": 1}}, {"modalities": ["text", "audio"]}, {"reasoning_effort": "high"},
        {"enable_thinking": True},
        {"thinking": True}, {"thinking": {"type": "enabled"}}, {"reasoning": {"effort": "low"}},
        {"chat_template_kwargs": {"thinking": True}}, {"chat_template_kwargs": {"enable_thinking": True}},
        {"chat_template_kwargs": {"enable_thinking": 1}},
        {"continue_final_message": True},
    ],
    ids=str,
)  # fmt: skip
def test_what_asks_for_something_else_is_refused(server: str, plain: str, field: dict[str, Any]) -> None:
    reply = httpx.post(f"{server}/v1/chat/completions", json=chat(plain, **field), timeout=60)
    (name,) = field
    assert reply.status_code == 400
    assert reply.json()["error"]["param"] == name
    assert "leave" in reply.json()["error"]["message"] or "structured_outputs" in reply.json()["error"]["message"]
    if "think" in str(field) or "reasoning" in str(field):
        asked = body(plain, choice("Which?", "a", "b"), **field)
        assert httpx.post(f"{server}/v1/decisions", json=asked, timeout=60).status_code == 400


def test_what_says_no_more_than_what_is_so_is_taken(server: str, plain: str) -> None:
    plainly = {
        "stream": False, "n": 1, "tools": [], "tool_choice": "auto", "logprobs": False, "logit_bias": {},
        "guided_choice": None, "modalities": ["text"], "reasoning_effort": "none",
        "chat_template_kwargs": {"enable_thinking": False},
        "response_format": {"type": "text"}, "top_logprobs": None,
    }  # fmt: skip
    reply = httpx.post(f"{server}/v1/chat/completions", json=chat(plain, **plainly), timeout=60)
    assert reply.status_code == 200
    assert reply.json()["unprior"]["ignored"] == ["chat_template_kwargs"]


def test_candidates_in_two_places_are_refused(server: str, plain: str) -> None:
    form = {"type": "json_schema", "json_schema": {"name": "a", "schema": {"enum": ["c", "d"]}}}
    reply = httpx.post(f"{server}/v1/chat/completions", json=chat(plain, response_format=form))
    assert "give one of both" in reply.json()["error"]["message"]


def test_names_of_unknown_fields_are_not_echoed_without_end(server: str, plain: str) -> None:
    many = {f"field_{number}": 1 for number in range(1_000)} | {"x" * 1_000: 1, "<script>": 1, "": 1}
    asked = json.dumps(body(plain, choice("Which?", "a", "b"), **many))
    told = httpx.post(f"{server}/v1/decisions", content=asked, timeout=60).json()["unprior"]["ignored"]
    assert told == [f"field_{number}" for number in range(64)]


@pytest.mark.parametrize("count", [300, pytest.param(10_000, marks=pytest.mark.slow)])
def test_names_of_models_do_not_grow_the_metrics(start: Serve, plain: str, count: int) -> None:
    with start() as address:

        def series() -> list[str]:
            lines = httpx.get(f"{address}/metrics").text.splitlines()
            return [line.rpartition(" ")[0] for line in lines if not line.startswith("#")]

        known = []
        with httpx.Client(base_url=address) as client:
            for number in range(count):
                asked = body(plain, choice("Which?", "a", "b")) | {"model": f"model-{number}\n"}
                assert client.post("/v1/decisions", json=asked).status_code == 404
                assert client.get(f"/path-{number}?calibrator={number}").status_code == 404
                if number == 1:
                    known = series()
        assert series() == known
        assert not any("model-" in line or "path-" in line for line in known)
