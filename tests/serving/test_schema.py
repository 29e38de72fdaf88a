"""The published schema is true: generated requests get what it says, and never an error of the server."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from PIL import Image
from schemathesis import Case, GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    negative_data_rejection,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from tests.serving.conftest import Serve, data_url

CHECKS = [
    not_a_server_error, status_code_conformance, content_type_conformance, response_headers_conformance,
    response_schema_conformance,
]  # fmt: skip
# What a schema cannot say: how many images there are in all messages, that candidates differ, what a model reads.
BEYOND = {
    "no_image", "too_many_images", "invalid_image", "duplicate_candidates", "control_token", "question_refused",
    "text_too_long", "empty_text", "hidden_character", "candidates", "no_candidates", "text",
}  # fmt: skip
IMAGES = [data_url(Image.new("RGB", size, colour)) for size, colour in (((72, 72), "grey"), ((30, 100), "red"))]
POSTS = ("/v1/decisions", "/v1/chat/completions")


def options(count: int) -> Any:
    """Of hypothesis: the same requests every time."""
    return settings(
        max_examples=count, derandomize=True, database=None, deadline=None, phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip


@pytest.fixture(scope="module")
def schema(server: str) -> Any:
    return schemathesis.openapi.from_url(f"{server}/openapi.json", config=schemathesis.Config())


@pytest.fixture(scope="module")
def plain_schema(server: str) -> Any:
    """The same, of which texts are made of letters that everybody can see: more of them get as far as the model."""
    config = schemathesis.Config()
    config.projects.default.generation.update(codec="ascii", allow_extra_parameters=False)
    return schemathesis.openapi.from_url(f"{server}/openapi.json", config=config)


def show_image(body: dict[str, Any], url: str) -> dict[str, Any]:
    """Put one real image into a request of either route, in the place of whatever it shows."""
    name = "input" if "input" in body else "messages"
    part = (
        {"type": "input_image", "image_url": url}
        if name == "input"
        else {"type": "image_url", "image_url": {"url": url}}
    )
    kept = [_without_images(message) for message in body[name]]
    return body | {name: [*kept, {"role": "user", "content": [part]}]}


def _without_images(message: dict[str, Any]) -> dict[str, Any]:
    content = message["content"]
    if isinstance(content, str):
        return message
    return message | {"content": [part for part in content if part["type"] in {"text", "input_text"}]}


def fuzz(schema: Any, path: str, mode: GenerationMode, count: int, *, with_image: bool = False) -> Counter[str]:
    """Send generated requests to a route; statuses and codes of the replies."""
    method = "POST" if path in POSTS else "GET"
    seen: Counter[str] = Counter()
    checks = [*CHECKS, negative_data_rejection] if mode is GenerationMode.NEGATIVE else CHECKS

    @options(count)
    @given(case=schema[path][method].as_strategy(generation_mode=mode), url=st.sampled_from(IMAGES))
    def send(case: Case, url: str) -> None:
        if with_image:
            case.body = show_image(case.body, url)
        reply = case.call_and_validate(checks=checks)
        code = "" if reply.status_code < 400 else reply.json()["error"]["code"]
        if mode is GenerationMode.POSITIVE:
            assert reply.status_code == 200 or code in BEYOND, (reply.status_code, reply.text, case.body)
        seen[f"{reply.status_code} {code}"] += 1

    send()
    return seen


def fuzz_all(schema: Any, plain_schema: Any, count: int) -> Counter[str]:
    seen: Counter[str] = Counter()
    for path in schema:
        if path not in POSTS:
            seen += fuzz(schema, path, GenerationMode.POSITIVE, count)
    for path in POSTS:
        answered = fuzz(plain_schema, path, GenerationMode.POSITIVE, 2 * count, with_image=True)
        assert answered["200 "] > count / 4, answered
        seen += answered
        seen += fuzz(schema, path, GenerationMode.POSITIVE, count)
        seen += fuzz(schema, path, GenerationMode.NEGATIVE, count)
    return seen


def test_generated_requests_get_what_the_schema_says(schema: Any, plain_schema: Any) -> None:
    assert fuzz_all(schema, plain_schema, 12).total() > 90


@pytest.mark.slow
def test_thousands_of_generated_requests_get_what_the_schema_says(schema: Any, plain_schema: Any) -> None:
    seen = fuzz_all(schema, plain_schema, 280)
    print(seen)
    assert seen.total() > 2_000


@pytest.mark.slow
def test_the_edges_of_the_schema_are_those_of_the_server(server: str, tmp_path: Path) -> None:
    checks = "not_a_server_error,status_code_conformance,content_type_conformance,response_headers_conformance," \
             "response_schema_conformance,negative_data_rejection,unsupported_method"  # fmt: skip
    command = [sys.executable, "-m", "schemathesis.cli", "run", f"{server}/openapi.json", "--checks", checks]
    command += ["--phases", "examples,coverage", "--generation-deterministic", "--request-timeout", "300"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, env=os.environ)
    assert done.returncode == 0, done.stdout
    assert "Tested: 11" in done.stdout or "Tested: 12" in done.stdout, done.stdout


def test_the_examples_can_be_sent_as_they_are(server: str) -> None:
    paths = httpx.get(f"{server}/openapi.json").json()["paths"]
    for path in POSTS:
        content = paths[path]["post"]["requestBody"]["content"]["application/json"]
        for example in content["examples"].values():
            assert httpx.post(f"{server}{path}", json=example["value"], timeout=60).status_code == 200


def test_every_route_is_described(server: str, start: Serve) -> None:
    described = httpx.get(f"{server}/openapi.json").json()
    assert described["components"]["securitySchemes"] == {}
    assert described["components"]["schemas"]["DecisionRequest"]["properties"]["model"]["enum"] == ["embedded"]
    assert {"enum": ["packaged", None]} in described["components"]["schemas"]["Extras"]["properties"]["calibrator"][
        "anyOf"
    ]
    for each in described["components"]["schemas"].values():
        Draft202012Validator.check_schema(each)
    key = "0123456789abcdef"
    with start(key=key) as address:
        told = httpx.get(f"{address}/openapi.json", headers={"Authorization": f"Bearer {key}"}).json()
        for path, methods in told["paths"].items():
            for method, operation in methods.items():
                reply = httpx.request(method, f"{address}{path.format(name='page.js', place=0)}")
                assert ("security" in operation) == ("401" in operation["responses"]) == (reply.status_code == 401)
        assert told["components"]["securitySchemes"] == {"key": {"type": "http", "scheme": "bearer"}}


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/nothing", 404), ("GET", "/assets/other.js", 404), ("GET", "/assets/..%2fpage.py", 404),
        ("GET", "/examples/99.png", 404), ("GET", f"/examples/{'9' * 5_000}.png", 404), ("GET", "/v1/decisions", 405),
        ("DELETE", "/v1/models", 405), ("PUT", "/", 405),
    ],
)  # fmt: skip
def test_errors_have_one_shape(server: str, method: str, path: str, status: int) -> None:
    reply = httpx.request(method, f"{server}{path}")
    assert reply.status_code == status
    described = httpx.get(f"{server}/openapi.json").json()["components"]["schemas"]
    Draft202012Validator({"$ref": "#/$defs/ErrorReply", "$defs": _local(described)}).validate(reply.json())
    assert status != 405 or reply.headers["allow"]


def _local(schemas: dict[str, Any]) -> Any:
    import json

    return json.loads(json.dumps(schemas).replace("#/components/schemas/", "#/$defs/"))


Post = Callable[..., httpx.Response]
