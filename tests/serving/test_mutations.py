"""Right requests with something wrong in them: any field dropped, doubled or replaced by hostile values."""

from __future__ import annotations

import copy
import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from PIL import Image

from tests.serving.conftest import body, choice, data_url
from unprior.serving.chat import ChatReply
from unprior.serving.schemas import DecisionReply, ErrorReply

URL = data_url(Image.new("RGB", (72, 72), "grey"))
ASKED = body(
    URL,
    choice("How many fingers?", "four", "five", name="fingers"),
    {"type": "predicate", "instructions": [{"type": "input_text", "text": "Is it a hand?"}]},
    {"type": "score", "instructions": "How good?", "levels": [{"label": "bad"}, {"label": "good"}]},
    {"type": "open", "instructions": "What is it?"},
    choice("Is it so?", True, False),
    unprior={"calibrator": "packaged", "explain": True},
    temperature=0.5,
)
CONTENT = [{"type": "text", "text": "How many?"}, {"type": "image_url", "image_url": {"url": URL, "detail": "low"}}]
ENUM = {"type": "object", "properties": {"n": {"$ref": "#/$defs/N"}}, "$defs": {"N": {"enum": ["four", "five"]}}}
CHAT = {
    "model": "embedded",
    "messages": [{"role": "user", "content": CONTENT}],
    "structured_outputs": {"choice": ["four", "five"]},
    "unprior": {"explain": False},
    "stream": False,
    "chat_template_kwargs": {"enable_thinking": False},
}
FORMAT = {name: value for name, value in CHAT.items() if name != "structured_outputs"} | {
    "response_format": {"type": "json_schema", "json_schema": {"name": "answer", "schema": ENUM}}
}
REQUESTS = [("/v1/decisions", ASKED), ("/v1/chat/completions", CHAT), ("/v1/chat/completions", FORMAT)]
REPLIES = {"/v1/decisions": DecisionReply, "/v1/chat/completions": ChatReply}
NESTED = json.loads("[" * 300 + "]" * 300)
HOSTILE: list[Any] = [
    None, True, False, 0, 1, -1, 1.5, 1e308, 10**400, "", " ", "\n", "\x00", "\ud800", "a" * 9_000, "<|im_end|>",
    "<image>", "\u202e", "\u200b", "cafe\u0301", "😀", "yes", "No", "true", [], {}, [None], [{}], [[]], {"": ""},
    {"\ud800": 1}, {"$ref": "#/$defs/N"}, {"$ref": "#"}, ["four", "five"], ["four"] * 30, {"enum": ["\ud800", "b"]},
    {"enum": [[], {}]}, {"\ud800": {"enum": ["a", "b"]}}, {"properties": {"\ud800": {"enum": ["a", "b"]}}}, NESTED,
    "http://127.0.0.1/a.png", "file:///etc/passwd", "data:image/png;base64,", "data:image/png;base64,AAAA", URL,
    "system", "assistant", "embedded", "__proto__", "%s%n", "{{7*7}}", "../..", "user", "input_text", "text",
    "json_schema", 2**63, {"type": "text"},
]  # fmt: skip


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where something stands in a request."""
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in pairs:
        yield (*path, key)
        yield from places(inner, (*path, key))


@st.composite
def mutations(draw: Any) -> tuple[str, str]:
    """A route, and the body of a request with one to three changes."""
    route, right = draw(st.sampled_from(REQUESTS))
    request = json.loads(json.dumps(right))
    double: list[str] = []
    hostile = st.sampled_from(HOSTILE).map(copy.deepcopy)
    for _ in range(draw(st.integers(1, 3))):
        path = draw(st.sampled_from(list(places(request))))
        owner = request
        for key in path[:-1]:
            owner = owner[key]
        kind = draw(st.sampled_from(("drop", "replace", "replace", "replace", "repeat", "add")))
        if kind == "drop":
            del owner[path[-1]]
        elif kind == "replace":
            owner[path[-1]] = draw(hostile)
        elif kind == "add" and isinstance(owner, dict):
            owner[draw(st.sampled_from(("x", "", "\ud800", "temperature", "n", "tools", "type", "enum")))] = draw(
                hostile
            )
        elif isinstance(owner, list):
            owner.insert(0, owner[path[-1]])
        else:
            double.append(json.dumps(str(path[-1])))
    text = json.dumps(request)
    for name in double:
        text = text.replace(f"{name}:", f"{name}: 1, {name}:", 1)
    if draw(st.integers(0, 19)) == 0:
        text = text.replace(
            draw(st.sampled_from(("true", '"four"', "{", "]"))), draw(st.sampled_from(("NaN", "", "[")))
        )
    return route, text


def send_mutated(server: str, count: int) -> Counter[int]:
    seen: Counter[int] = Counter()
    with httpx.Client(base_url=server, timeout=60) as client:

        @settings(
            max_examples=count, derandomize=True, database=None, deadline=None, phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )  # fmt: skip
        @given(mutations())
        def send(request: tuple[str, str]) -> None:
            route, text = request
            reply = client.post(route, content=text.encode())
            assert reply.status_code in {200, 400, 404}, (reply.text, text[-3_000:])
            assert reply.headers["content-type"] == "application/json"
            (REPLIES[route] if reply.status_code == 200 else ErrorReply).model_validate(reply.json())
            assert len(reply.content) < 100_000
            assert "Traceback" not in reply.text
            seen[reply.status_code] += 1

        send()
    return seen


def test_changed_requests_are_answered_or_refused(server: str) -> None:
    seen = send_mutated(server, 250)
    assert seen[200] > 20
    assert seen[400] > 100


@pytest.mark.slow
def test_thousands_of_changed_requests_are_answered_or_refused(server: str) -> None:
    seen = send_mutated(server, 3_000)
    print(seen)
    assert seen.total() >= 2_500
