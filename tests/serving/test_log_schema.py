"""What a server logs is what the documentation publishes as a schema."""

from __future__ import annotations

import json
from pathlib import Path

import httpx
from jsonschema import Draft202012Validator

import doc_pages  # noqa: F401  # knows where the site's own modules are
from tests.serving.conftest import Serve, body, choice, data_url
from unprior.benchmarks.schema import Benchmark


def test_lines_of_a_log_follow_the_schema(start: Serve, choices: Benchmark, tmp_path: Path) -> None:
    from site_formats import schema_text

    path = tmp_path / "log.jsonl"
    example = choices.examples[0]
    asked = choice(example.question, *(example.texts or ()))
    with start(log=path) as address:
        reply = httpx.post(f"{address}/v1/decisions", json=body(data_url(example.image), asked), timeout=60)
    assert reply.status_code == 200, reply.text
    lines = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    assert len(lines) == 2
    validator = Draft202012Validator(json.loads(schema_text("decision-log-line")))
    for line in lines:
        validator.validate(line)
    assert not validator.is_valid(lines[1] | {"image": "data:"})
