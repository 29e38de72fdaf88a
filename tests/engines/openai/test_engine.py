"""The HTTP engine against a server on this machine whose answers a real small model computes."""

from __future__ import annotations

import logging
import random
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from faulty_server import FAULTS, FaultyServer
from hand_questions import PAIRS, write_benchmark
from replayed_vllm import MODEL, ReplayedVllm
from served_engines import CHAT, HASTY, LONG, QUESTION, SHORT, TimeLimits, assert_right, served
from unprior import UnpriorError
from unprior.benchmarks.user_file import read_questions
from unprior.engines.openai.client import RetryPolicy
from unprior.engines.openai.engine import HttpEngine
from unprior.engines.openai.replies import written_text
from unprior.engines.protocol import CandidateScores, Engine, Query, QueryFailure
from unprior.engines.transformers.engine import TransformersEngine
from unprior.prompts import is_cut_off, parse_answer
from unprior.scoring.run import ScoringRun
from unprior.scoring.store import ScoreStore


@pytest.fixture
def queries(images: list[Image.Image]) -> list[Query]:
    images = [*images, None]
    return [Query(image, f"{index}: {QUESTION}", SHORT) for index, image in enumerate(images)] + [
        Query(image, QUESTION, LONG) for image in (images[0], None)
    ]


def test_scores_and_answers_are_those_of_the_model(llava: TransformersEngine, queries: list[Query]) -> None:
    with served(ReplayedVllm(llava)) as (engine, _):
        assert isinstance(engine, Engine)
        assert engine.capabilities.exact_scores
        assert_right(llava, queries, engine.answer_batch(queries))
        assert_right(llava, queries, engine.score_batch(queries))
        one = queries[0]
        assert engine.original_answer(one.image, one.text) == llava.original_answer(one.image, one.text)
        assert_right(llava, [one], [engine.score_candidates(one.image, one.text, one.candidates)])


def test_every_chat_template_is_continued_as_here(engine: TransformersEngine, images: list[Image.Image]) -> None:
    queries = [Query(image, QUESTION, candidates) for image in (images[1], None) for candidates in (SHORT, LONG)]
    with served(ReplayedVllm(engine)) as (client, _):
        assert_right(engine, queries, client.score_batch(queries))


def test_what_candidates_share_is_asked_once(llava: TransformersEngine, queries: list[Query]) -> None:
    with served(ReplayedVllm(llava)) as (engine, server):
        engine.score_batch(queries)
        before = server.paths.copy()
        engine.score_candidates(None, QUESTION, SHORT)
        assert server.paths - before == {CHAT: 1}
        before = server.paths.copy()
        tokens = llava.encoder.encode(queries[-1]).candidates
        branches = {tuple(candidate[:depth]) for candidate in tokens for depth in range(len(candidate))}
        engine.score_candidates(None, QUESTION, LONG)
        assert server.paths - before == {CHAT: len(branches)}
        assert len(branches) < sum(len(candidate) for candidate in tokens)


def test_a_server_that_does_not_repeat_the_prompt_tokenises_every_prompt(
    llava: TransformersEngine, queries: list[Query]
) -> None:
    with served(ReplayedVllm(llava, tells_prompt=False)) as (engine, server):
        assert_right(llava, queries, engine.score_batch(queries))
        before = server.paths["/tokenize"]
        engine.score_candidates(None, QUESTION, SHORT)
        assert server.paths["/tokenize"] > before


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_that_passes_changes_nothing(
    llava: TransformersEngine, queries: list[Query], fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits = TimeLimits(monkeypatch) if fault == "late" else None
    chance = random.Random(0)
    plan = lambda *_: fault if chance.random() < 0.3 else None  # noqa: E731
    with served(ReplayedVllm(llava), plan, concurrency=1 if limits else 4) as (engine, server):
        server.hang = limits and limits.end
        asked = [queries[0], queries[4]]
        assert_right(llava, asked, engine.answer_batch(asked))
        assert server.faults[fault] >= 2


@pytest.mark.parametrize("fault", ["strange tokens", "missing token", "not a number", "no logprobs", "raw logits"])
def test_a_wrong_answer_never_becomes_a_score(llava: TransformersEngine, queries: list[Query], fault: str) -> None:
    def wrong_about_the_second(number: int, path: str, body: dict[str, Any] | None) -> str | None:
        return fault if body and "1: Is" in str(body.get("messages")) and path == CHAT else None

    with served(ReplayedVllm(llava), wrong_about_the_second) as (engine, server):
        first, second, third = engine.score_batch(queries[:3])
        assert_right(llava, [queries[0], queries[2]], [first, third])
        assert isinstance(second, QueryFailure)
        assert "a wrong answer" in second.reason
        assert server.faults[fault] == HASTY.max_attempts


def test_a_server_s_wish_to_wait_is_honoured(llava: TransformersEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []

    async def pause(seconds: float) -> None:
        pauses.append(seconds)

    monkeypatch.setattr("unprior.engines.openai.client._sleep", pause)
    once = iter(["429", "503"])
    with served(ReplayedVllm(llava), retry_after="17") as (engine, server):
        engine.score_candidates(None, QUESTION, SHORT)
        server.plan = lambda *_: next(once, None)
        engine.score_candidates(None, QUESTION, SHORT)
        assert pauses == [17.0, 17.0]
        once, server.retry_after = iter(["429"]), "9" * 400
        engine.score_candidates(None, QUESTION, SHORT)
        assert pauses[2:] == [HASTY.max_wait]


def test_a_request_that_is_refused_is_not_repeated(llava: TransformersEngine, queries: list[Query]) -> None:
    replayed = ReplayedVllm(llava)

    def too_long(path: str, body: dict[str, Any] | None) -> tuple[int, Any]:
        if body and "0: Is" in str(body.get("messages")):
            return 400, {"error": {"message": "the prompt is longer than max_model_len"}}
        return replayed(path, body)

    with served(too_long) as (engine, server):
        engine.score_batch(queries[1:2])
        before = server.requests
        refused, done = engine.score_batch(queries[:2])
        assert isinstance(refused, QueryFailure)
        assert "status 400: the prompt is longer than max_model_len" in refused.reason
        assert isinstance(done, CandidateScores)
        assert server.requests - before == 2


def test_a_server_that_is_gone_ends_the_run(llava: TransformersEngine, queries: list[Query]) -> None:
    gone = pytest.raises(UnpriorError, match="the server is gone; what was scored so far is stored")
    with served(ReplayedVllm(llava), lambda *_: "drop") as (engine, _), gone:
        engine.score_batch(queries)


def test_no_more_queries_are_in_flight_than_allowed(llava: TransformersEngine, queries: list[Query]) -> None:
    replayed, together, waiting = ReplayedVllm(llava), threading.Barrier(3), iter(range(3))

    def answer(path: str, body: dict[str, Any] | None) -> tuple[int, Any]:
        if path == CHAT and next(waiting, None) is not None:
            together.wait(timeout=60)
        time.sleep(0.002)  # so that one more would be noticed
        return replayed(path, body)

    with served(replayed, concurrency=3) as (engine, server):
        server.answer, server.most_in_flight = answer, 0
        engine.answer_batch(queries * 3)
        assert (server.most_in_flight, together.broken) == (3, False)


def test_connections_are_used_again(llava: TransformersEngine, queries: list[Query]) -> None:
    chance = random.Random(0)
    plan = lambda *_: "drop" if chance.random() < 0.1 else None  # noqa: E731
    with served(ReplayedVllm(llava), plan, concurrency=3) as (engine, _):
        assert_right(llava, queries, engine.answer_batch(queries))
        engine.answer_batch(queries)
        assert len(engine._client._clients) == 3


def test_candidates_behind_different_ends_are_tokenised_at_once_and_few_are_kept(
    llava: TransformersEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("unprior.engines.openai.asking._MAX_ENDS", 2)
    asked = [Query(None, f"Is this zebra {number}?", SHORT) for number in range(5)]
    replayed, together = ReplayedVllm(llava), threading.Barrier(5)

    def answer(path: str, body: dict[str, Any] | None) -> tuple[int, Any]:
        if path == "/tokenize" and server.paths[path] <= before + 5:
            together.wait(timeout=60)  # breaks, and the requests with it, when one waits for another
        return replayed(path, body)

    with served(replayed, concurrency=5) as (engine, server):
        before = server.paths["/tokenize"]
        server.answer = answer
        assert_right(llava, asked, engine.score_batch(asked))
        assert not together.broken
        assert len(engine._asking._encoded) <= 2
        each = (server.paths["/tokenize"] - before) / 5
        server.answer, before = replayed, server.paths["/tokenize"]
        alike = [Query(None, f"{number}: and is this the last zebra?", SHORT) for number in range(5)]
        assert_right(llava, alike, engine.score_batch(alike))
        assert server.paths["/tokenize"] - before == each


def test_equal_servers_take_turns_and_others_are_refused(llava: TransformersEngine, queries: list[Query]) -> None:
    replayed = ReplayedVllm(llava)
    with FaultyServer(replayed) as first, FaultyServer(replayed) as second:
        engine = HttpEngine(MODEL, [first.url + "/v1", second.url + "/"], retry_policy=HASTY)
        assert_right(llava, queries, engine.score_batch(queries))
        assert min(first.requests, second.requests) > len(queries) // 2
        engine.close()
        refused = pytest.raises(UnpriorError, match="the servers differ for tiny")
        with FaultyServer(ReplayedVllm(llava, version="0.31.0")) as other, refused:
            HttpEngine(MODEL, [first.url, other.url], retry_policy=HASTY)


@contextmanager
def two_servers(
    llava: TransformersEngine, retry_policy: RetryPolicy = HASTY, concurrency: int = 4
) -> Iterator[tuple[HttpEngine, tuple[FaultyServer, FaultyServer]]]:
    replayed = ReplayedVllm(llava)
    with FaultyServer(replayed) as first, FaultyServer(replayed) as second:
        engine = HttpEngine(MODEL, [first.url, second.url], concurrency=concurrency, retry_policy=retry_policy)
        try:
            yield engine, (first, second)
        finally:
            engine.close()


def test_all_requests_of_a_query_go_to_one_server(llava: TransformersEngine, images: list[Image.Image]) -> None:
    places: dict[str, list[int]] = {}
    queries = [Query(images[0], f"{index}: {QUESTION}", LONG) for index in range(6)]
    with two_servers(llava) as (engine, servers):
        for index, server in enumerate(servers):
            server.plan = lambda _number, path, body, index=index: (
                (path == CHAT and places.setdefault(body["messages"][0]["content"][-1]["text"][0], []).append(index))
                or None
            )
        assert_right(llava, queries, engine.answer_batch(queries))
    assert all(len(where) > 2 and len(set(where)) == 1 for where in places.values())
    assert sorted(where[0] for where in places.values()) == [0, 0, 0, 1, 1, 1]


def test_a_retry_goes_to_the_other_server(llava: TransformersEngine, queries: list[Query]) -> None:
    with two_servers(llava) as (engine, (bad, good)):
        engine.score_batch(queries)
        bad.plan = lambda *_: "503"
        before = good.requests
        assert_right(llava, queries, engine.score_batch(queries))
        assert 0 < bad.faults["503"] < good.requests - before  # never twice in a row


def test_a_server_that_refuses_leaves_its_questions_to_the_other(
    llava: TransformersEngine, queries: list[Query]
) -> None:
    with two_servers(llava) as (engine, (strict, willing)):
        strict.answer = lambda *_: (401, {"error": {"message": "who are you?"}})
        assert_right(llava, queries, engine.score_batch(queries))
        willing.answer = strict.answer
        assert all("who are you?" in result.reason for result in engine.score_batch(queries))


def test_a_server_that_hangs_rests(
    llava: TransformersEngine, queries: list[Query], monkeypatch: pytest.MonkeyPatch
) -> None:
    limits, retry_policy = (
        TimeLimits(monkeypatch),
        RetryPolicy(max_attempts=9, first_delay=0.001, timeout=7.0, cooldown=1e6),
    )
    with two_servers(llava, retry_policy, concurrency=1) as (engine, (hanging, _)):
        hanging.hang, hanging.plan = limits.end, lambda *_: "late"
        assert_right(llava, queries, engine.score_batch(queries))
        assert hanging.faults["late"] == 1
        before = hanging.requests
        assert_right(llava, queries, engine.score_batch(queries))
        assert hanging.requests == before
    assert set(limits.asked) == {7.0}


def test_half_a_character_in_an_answer_becomes_a_replacement() -> None:
    assert written_text({"choices": [{"message": {"content": "B \ud83d"}}]}) == "B ?"


@pytest.mark.parametrize("field", ["reasoning", "reasoning_content"])
@pytest.mark.parametrize(
    ("content", "reason", "expected", "cut_off"),
    [
        ("B", "stop", "B", False),
        ("B", "length", "B", False),
        (None, "length", None, True),
        ("", "length", None, True),  # some servers write an empty text instead of none
        ("\n", None, None, True),
        ("", "stop", None, False),  # the model ended its thinking and said nothing
    ],
)
def test_thinking_that_a_server_takes_apart(
    field: str, content: str | None, reason: str | None, expected: str | None, cut_off: bool
) -> None:
    text = written_text({"choices": [{"message": {"content": content, field: "A or"}, "finish_reason": reason}]})
    assert (parse_answer(text, ["A", "B"]), is_cut_off(text)) == (expected, cut_off)


@pytest.mark.parametrize("opening", ["<think>", "[THINK]"])
def test_a_thinking_block_that_a_served_template_opens(llava: TransformersEngine, opening: str) -> None:
    with served(ReplayedVllm(llava)) as (engine, _):
        engine._asking.served = replace(engine.served, opened_block=opening)
        text = engine.original_answer(None, QUESTION)
    assert text.startswith(opening)
    assert is_cut_off(text)


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("http://127.0.0.1:99999", "give an address such as"),
        ("http://127.0.0.1:8000/#key=secret", "leave passwords and keys out of the address"),
    ],
)
def test_addresses_are_checked_and_keep_no_secrets(url: str, message: str) -> None:
    with pytest.raises(UnpriorError, match=message) as refused:
        HttpEngine(MODEL, [url])
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize("key", ["schlüssel", "key\n"])
def test_a_key_that_cannot_be_one_is_named_and_not_shown(key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UNPRIOR_API_KEY", key)
    with pytest.raises(UnpriorError, match="UNPRIOR_API_KEY holds characters") as refused:
        HttpEngine(MODEL, ["http://127.0.0.1:1"])
    assert key not in str(refused.value)


@pytest.mark.parametrize("cooldown", [1e6, 0.0])
def test_when_a_server_dies_the_other_takes_over(
    llava: TransformersEngine, queries: list[Query], cooldown: float
) -> None:
    retry_policy = RetryPolicy(max_attempts=9, first_delay=0.001, max_delay=0.01, timeout=60.0, cooldown=cooldown)
    with two_servers(llava, retry_policy) as (engine, (dying, other)):
        engine.score_batch(queries)
        last = dying.requests + 5
        dying.plan = lambda number, *_: dying.die() if number >= last else None
        assert_right(llava, queries * 2, engine.answer_batch(queries * 2))
        assert dying.faults["drop"] >= 1
        before = engine.requests - other.requests
        assert_right(llava, queries, engine.answer_batch(queries))
        in_vain = engine.requests - other.requests - before
        assert in_vain == 0 if cooldown else in_vain >= len(queries) // 2  # a server that cools down is not asked


def test_the_key_is_sent_and_never_told(
    llava: TransformersEngine, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    key = "sk-very-secret"
    monkeypatch.setenv("OPENAI_API_KEY", "another")
    monkeypatch.setenv("UNPRIOR_API_KEY", key)
    caplog.set_level(logging.DEBUG)
    with served(ReplayedVllm(llava)) as (engine, server):
        engine.score_candidates(None, QUESTION, SHORT)
        assert server.keys == {f"Bearer {key}"}
        assert key not in repr(engine.identity)
        server.answer = lambda path, body: (401, {"error": {"message": f"unknown key {key}"}})
        with pytest.raises(UnpriorError, match=r"status 401: unknown key \*\*\*"):
            engine.score_candidates(None, QUESTION, SHORT)
    assert caplog.text
    assert key not in caplog.text


def test_the_fingerprint_covers_what_the_server_tells(llava: TransformersEngine) -> None:
    prints = []
    for version in ("0.32.0", "0.32.0", "0.33.0"):
        with served(ReplayedVllm(llava, version=version)) as (engine, _):
            prints.append(engine.fingerprint)
    assert prints[0] == prints[1] != prints[2]


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("localhost:8000", "give an address such as"),
        ("ftp://localhost", "give an address such as"),
        ("http://me:secret@localhost", "leave passwords and keys out"),
        ("http://localhost?key=secret", "leave passwords and keys out"),
    ],
)
def test_addresses_are_checked(url: str, message: str) -> None:
    with pytest.raises(UnpriorError, match=message) as caught:
        HttpEngine(MODEL, [url])
    assert "secret" not in str(caught.value)


def test_a_wrong_address_or_model_is_named(llava: TransformersEngine) -> None:
    refused = pytest.raises(UnpriorError, match="does not serve other; the model must be one of: tiny")
    with FaultyServer(ReplayedVllm(llava)) as server, refused:
        HttpEngine("other", [server.url], retry_policy=HASTY)
    with pytest.raises(UnpriorError, match="the connection failed"):
        HttpEngine(MODEL, [server.url], retry_policy=HASTY)


def test_a_server_without_log_probabilities_is_refused(llava: TransformersEngine) -> None:
    refused = pytest.raises(UnpriorError, match="gives no log-probabilities for tiny")
    with FaultyServer(ReplayedVllm(llava, logprobs=False)) as server, refused:
        HttpEngine(MODEL, [server.url], retry_policy=HASTY)


@pytest.mark.parametrize("tokenizes", [True, False])
def test_candidates_outside_the_top_tokens_are_marked_and_bounded(llava: TransformersEngine, tokenizes: bool) -> None:
    with served(ReplayedVllm(llava, named=False, tokenizes=tokenizes)) as (engine, _):
        assert (engine.capabilities.exact_scores, engine.capabilities.top_k) == (False, 20)
        candidates = tuple(f" {word}" for word in ("A", "B", "C", "D", "yes", "no", "the", "flag", "image", "bird"))
        scored = engine.score_candidates(None, QUESTION, candidates)
    truth = llava.score_candidates(None, QUESTION, candidates)
    assert scored.censored is not None
    assert any(scored.censored)
    for value, exact, hidden in zip(scored.scores, truth.scores, scored.censored, strict=True):
        assert value > exact - 1e-4 if hidden else value == pytest.approx(exact, abs=1e-4)
    visible = [exact for exact, hidden in zip(truth.scores, scored.censored, strict=True) if not hidden]
    assert scored.mass == pytest.approx(sum(np.exp(visible)), abs=1e-4)


def run_table(engine: Any, folder: Path, name: str, **options: Any) -> tuple[Any, Any]:
    with ScoreStore(folder / name) as store:
        run = ScoringRun(engine, read_questions(folder / "hands.jsonl"), store, **options)
        summary = run.run()
        return summary, run.table() if len(summary.failures) < summary.examples else None


def test_a_run_over_http_gives_the_same_table(llava: TransformersEngine, tmp_path: Path) -> None:
    write_benchmark(tmp_path)
    _, expected = run_table(llava, tmp_path, "transformers.sqlite")
    with served(ReplayedVllm(llava)) as (engine, server):
        summary, table = run_table(engine, tmp_path, "http.sqlite")
        assert (summary.computed, summary.failures, summary.censored) == (6 * PAIRS, (), 0)
        before = server.requests
        assert run_table(engine, tmp_path, "http.sqlite")[0].reused == 6 * PAIRS
        assert server.requests == before
    for name in ("original_text", "original", "example_id", "token_counts"):
        assert table.column(name) == expected.column(name)
    for name in ("image_scores", "prior_scores"):
        np.testing.assert_allclose(table._flat(name), expected._flat(name), atol=1e-4)


def test_censored_examples_are_refused_unless_allowed(llava: TransformersEngine, tmp_path: Path) -> None:
    write_benchmark(tmp_path)
    with served(ReplayedVllm(llava, named=False)) as (engine, server):
        refused, table = run_table(engine, tmp_path, "http.sqlite")
        assert refused.censored == len(refused.failures) > 0
        assert "not among the 20 tokens that the server shows" in refused.failures[0].reason
        assert "--allow-censored" in refused.failures[0].reason
        before = server.requests
        allowed, table = run_table(engine, tmp_path, "http.sqlite", allow_censored=True)
        assert (allowed.censored, allowed.failures) == (refused.censored, ())
        assert len(table) == 4 * PAIRS
        assert server.requests == before  # nothing is asked again
