"""Decisions over HTTP are those of the library, for a client that nobody here wrote."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from openai import BadRequestError, NotFoundError, OpenAI

from tests.serving.conftest import Serve, body, choice, data_url
from unprior.benchmarks.microworld import microworld
from unprior.benchmarks.schema import Benchmark
from unprior.embedded import CALIBRATOR
from unprior.engines.protocol import Engine
from unprior.scoring.ask import ask


@pytest.fixture(scope="module")
def client(server: str) -> OpenAI:
    return OpenAI(base_url=f"{server}/v1", api_key="none", max_retries=0)


def test_the_openai_client_gets_the_decisions_of_the_library(
    client: OpenAI, embedded: Engine, choices: Benchmark
) -> None:
    revised = 0
    for example in [each for each in choices if each.side == "cf"][:24]:
        assert example.texts is not None
        expected = ask(embedded, example.image, example.question, options=example.texts, calibrator=CALIBRATOR)
        reply = client.decisions.create(
            **body(data_url(example.image), choice(example.question, *example.texts, name="asked"))
        )
        (answer,) = reply.answers
        assert answer.type == "choice"
        texts = dict(zip("ABCDEF", example.texts, strict=False))
        assert answer.choice == texts[str(expected.final)]
        assert answer.name == "asked"
        told = answer.unprior  # type: ignore[attr-defined]
        assert told["original"] == texts[str(expected.original)]
        assert told["decision"] == ("revised" if expected.final != expected.original else "kept")
        assert expected.decision is not None
        assert told["explanation"] == expected.explanation
        assert told["strength"] == pytest.approx(expected.decision.strength)
        scores = [(each["with_image"], each["without_image"]) for each in told["candidates"]]
        assert scores == [
            (pytest.approx(each.image_score, abs=1e-4), pytest.approx(each.prior_score, abs=1e-4))
            for each in expected.candidates
        ]
        shares = {each.value: each.probability for each in answer.probabilities}
        assert answer.choice == max(shares, key=lambda value: shares[value])
        assert sum(shares.values()) == pytest.approx(1)
        first, second = sorted(shares.values(), reverse=True)[:2]
        assert answer.confidence == pytest.approx(first - second)
        assert reply.usage.input_tokens_details.cached_tokens == 0
        revised += told["decision"] == "revised"
    assert revised > 0


def test_several_questions_of_all_kinds_about_one_image(client: OpenAI, choices: Benchmark) -> None:
    example = choices.examples[0]
    asked = [
        choice(example.question, *(example.texts or ()), name="one"),
        {"type": "predicate", "instructions": "Is there a cat in the image?"},
        {"type": "score", "instructions": "How good is it?", "levels": [{"label": "bad"}, {"label": "good"}]},
        choice("Is it a face?", True, False),
        choice("Is it a face?", "No", "Yes"),
        {"type": "open", "instructions": example.question},
    ]
    answers = client.decisions.create(**body(data_url(example.image), *asked)).answers
    assert [each.type for each in answers] == ["choice", "predicate", "refusal", "choice", "choice", "choice"]
    assert answers[0].name == "one"
    assert 0 <= answers[1].probability <= 1  # type: ignore[union-attr]
    assert isinstance(answers[3].choice, bool)  # type: ignore[union-attr]
    assert answers[4].choice == ("Yes" if answers[3].choice else "No")  # type: ignore[union-attr]
    assert len(answers[5].probabilities) >= 2  # type: ignore[union-attr]


def test_an_open_question_is_decided_as_in_the_library(client: OpenAI, embedded: Engine, drawn_world: Path) -> None:
    for example in [each for each in microworld(drawn_world, 3, variant="open") if each.side == "cf"][:40:5]:
        expected = ask(embedded, example.image, example.question, open_ended=True, calibrator=CALIBRATOR)
        question = {"type": "open", "instructions": example.question}
        (answer,) = client.decisions.create(**body(data_url(example.image), question)).answers
        assert answer.choice == expected.final  # type: ignore[union-attr]
        assert answer.unprior["explanation"] == expected.explanation  # type: ignore[union-attr]
        assert answer.unprior["clip"] == 5  # type: ignore[union-attr]


def test_chat_completions_choose_from_texts(client: OpenAI, choices: Benchmark) -> None:
    example = choices.examples[0]
    url = data_url(example.image)
    content: list[Any] = [
        {"type": "text", "text": example.question}, {"type": "image_url", "image_url": {"url": url}},
    ]  # fmt: skip
    texts = list(example.texts or ())
    (answer,) = client.decisions.create(**body(url, choice(example.question, *texts))).answers

    def chat(**more: Any) -> str:
        reply = client.chat.completions.create(
            model="embedded", messages=[{"role": "user", "content": content}], **more
        )
        return str(reply.choices[0].message.content)

    assert chat(extra_body={"structured_outputs": {"choice": texts}}) == answer.choice  # type: ignore[union-attr]
    schema: dict[str, Any] = {"type": "string", "enum": texts}
    form = {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema}}
    assert json.loads(chat(response_format=form)) == answer.choice  # type: ignore[union-attr]
    form["json_schema"]["schema"] = {"type": "object", "properties": {"legs": schema}}  # type: ignore[index]
    assert json.loads(chat(response_format=form)) == {"legs": answer.choice}  # type: ignore[union-attr]
    for refused in (
        {}, {"stream": True, "extra_body": {"structured_outputs": {"choice": texts}}},
        {"n": 2, "extra_body": {"structured_outputs": {"choice": texts}}}, {"extra_body": {"guided_choice": texts}},
        {"tools": [{"type": "function", "function": {"name": "f"}}],
         "extra_body": {"structured_outputs": {"choice": texts}}},
    ):  # fmt: skip
        with pytest.raises(BadRequestError):
            chat(**refused)


def test_observing_lets_the_original_answer_out(start: Serve, client: OpenAI, choices: Benchmark) -> None:
    with start(mode="observe") as address:
        observing = OpenAI(base_url=f"{address}/v1", api_key="none")
        for example in [each for each in choices if each.side == "cf"][:24]:
            asked = body(data_url(example.image), choice(example.question, *(example.texts or ())))
            (enforced,), (observed,) = (
                client.decisions.create(**asked).answers,
                observing.decisions.create(**asked).answers,
            )
            told = observed.unprior  # type: ignore[union-attr]
            assert observed.choice == told["original"]  # type: ignore[union-attr]
            if enforced.unprior["decision"] == "revised":  # type: ignore[union-attr]
                assert told["decision"] == "would_revise"
                assert told["proposal"] == enforced.choice  # type: ignore[union-attr]
                return
    raise AssertionError("nothing was revised")


def test_another_model_is_not_found(client: OpenAI, plain: str) -> None:
    with pytest.raises(NotFoundError, match="this server has embedded only"):
        client.decisions.create(**body(plain, choice("Which?", "a", "b")) | {"model": "gpt"})


def test_a_repeated_question_finds_its_prior(post: Callable[..., httpx.Response], plain: str) -> None:
    asked = body(plain, choice("Which of them was not asked before?", "a", "b"))
    assert [post(asked).json()["unprior"]["prior_cache"] for _ in range(2)] == ["miss", "hit"]


def test_what_else_there_is(server: str) -> None:
    assert httpx.get(f"{server}/health").json() == {"status": "ok"}
    assert httpx.get(f"{server}/ready").json() == {"status": "ok"}
    assert httpx.get(f"{server}/v1/models").json()["data"][0]["id"] == "embedded"
    (known,) = httpx.get(f"{server}/v1/calibrators").json()["data"]
    assert known["id"] == "packaged"
    assert "90 % confidence" in known["promise"]
    assert httpx.get(f"{server}/version").json()["version"]
    assert "unprior_requests_total" in httpx.get(f"{server}/metrics").text
    assert httpx.get(f"{server}/openapi.json").json()["openapi"] == "3.1.0"


def test_decisions_are_logged_without_image_and_key(start: Serve, plain: str, tmp_path: Path) -> None:
    log, key = tmp_path / "decisions.jsonl", "0123456789abcdef-secret"
    with start(log=log, key=key) as address:
        asked = body(plain, choice("Which?", "a", "b", name="it"), {"type": "predicate", "instructions": "Is it so?"})
        reply = httpx.post(f"{address}/v1/decisions", json=asked, headers={"Authorization": f"Bearer {key}"})
        assert reply.status_code == 200
    header, *records = [json.loads(line) for line in log.read_text().splitlines()]
    assert header["provenance"][0]["model"] == "embedded"
    assert {record["made"] for record in records} == {header["made"]}
    assert [record["task"] for record in records] == ["mc", "qa"]
    assert records[0]["candidates"] == ["a", "b"]
    assert [each["example_id"] for each in records] == [f"{reply.headers['x-request-id']}/{n}" for n in (0, 1)]
    assert len(records[0]["image_scores"]) == len(records[0]["prior_scores"]) == 2
    text = log.read_text()
    assert key not in text
    assert "base64" not in text
