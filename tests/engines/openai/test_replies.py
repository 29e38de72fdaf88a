"""What the HTTP engine makes of replies that are too large, too slow, from another model, or hold the key."""

from __future__ import annotations

import gzip
import itertools
import json
import random
import tracemalloc
import zlib
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from faulty_server import Raw
from hand_questions import write_benchmark
from replayed_vllm import MODEL, ReplayedVllm
from served_engines import CHAT, HASTY, QUESTION, SHORT, TimeLimits, assert_right, served
from unprior import UnpriorError
from unprior.benchmarks.user_file import read_questions
from unprior.engines.openai.client import _asked_to_wait
from unprior.engines.openai.secrets import Mask
from unprior.engines.probe import probe_texts, prompt_digest
from unprior.engines.protocol import CandidateScores, Query, QueryFailure
from unprior.engines.transformers.engine import TransformersEngine
from unprior.scoring.run import ScoringRun
from unprior.scoring.store import ScoreStore

MEGABYTE = 2**20
KEY = "sk-" + "".join(random.Random(0).choices("abcdefghijklmnopqrstuvwxyz0123456789/+", k=47))


@pytest.fixture
def queries(images: list[Image.Image]) -> list[Query]:
    return [Query(image, f"{index}: {QUESTION}", SHORT) for index, image in enumerate([*images, None])]


def test_the_model_that_replies_name_is_recorded_and_an_alias_is_remarked(llava: TransformersEngine) -> None:
    prints = []
    for name, remarks in ((MODEL, 0), ("folder/tiny", 1), (None, 0)):
        with served(ReplayedVllm(llava, replies_as=name)) as (engine, _):
            assert engine.identity["served_model"] == (name or "")
            assert (engine.identity["engine"], engine.identity["model"]) == ("openai", MODEL)
            assert ["the server answers as 'folder/tiny'" in remark for remark in engine.remarks] == [True] * remarks
            engine.score_candidates(None, QUESTION, SHORT)
            prints.append(engine.fingerprint)
    assert len(set(prints)) == 3


def test_another_model_s_reply_never_becomes_a_score_and_ends_the_run(
    llava: TransformersEngine, queries: list[Query]
) -> None:
    first, other = ReplayedVllm(llava), ReplayedVllm(llava, replies_as="other")

    def answer(path: str, body: dict[str, Any] | None) -> tuple[int, Any]:
        return (other if "2: Is" in str(body) else first)(path, body)

    with served(answer) as (engine, _):
        results = engine.answer_batch(queries)
        assert_right(llava, queries[:2] + queries[3:], results[:2] + results[3:])  # what was right is kept
        assert isinstance(results[2], QueryFailure)
        assert "answered as 'tiny' before and now as 'other'" in results[2].reason
        with pytest.raises(UnpriorError, match="scores of two models must not be mixed"):
            engine.answer_batch(queries[:1])


def test_a_run_that_meets_another_model_stops_and_keeps_what_it_has(llava: TransformersEngine, tmp_path: Path) -> None:
    write_benchmark(tmp_path)
    replayed = ReplayedVllm(llava)
    with served(replayed, concurrency=1) as (engine, server):
        replaced = server.paths[CHAT] + 20
        server.plan = lambda *_: setattr(replayed, "replies_as", MODEL if server.paths[CHAT] < replaced else "other")
        with ScoreStore(tmp_path / "store.sqlite") as store:
            run = ScoringRun(engine, read_questions(tmp_path / "hands.jsonl"), store)
            with pytest.raises(UnpriorError, match="now as 'other'"):
                run.run()
            stored = sum(
                bool(part.jobs) and len(part.jobs) - len(store.missing(part.jobs)) for part in run.plan.chunks()
            )
        assert stored > 5


def test_the_prompt_in_the_identity_is_that_of_the_transformers_engine(llava: TransformersEngine) -> None:
    encoder = llava.encoder
    expected = prompt_digest([encoder.tokenize(encoder.render(False, text)) for text in probe_texts(llava.layout)])
    with served(ReplayedVllm(llava)) as (engine, _):
        assert engine.identity["prompt"] == expected
    with served(ReplayedVllm(llava, tokenizes=False, named=False)) as (engine, _):
        assert "prompt" not in engine.identity


@pytest.fixture
def refusing(llava: TransformersEngine, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Any], str]]:
    """Gives what is said about a reply of status 401 that holds something."""
    monkeypatch.setenv("UNPRIOR_API_KEY", KEY)
    with served(ReplayedVllm(llava)) as (engine, server):

        def reason(content: Any) -> str:
            server.answer = lambda *_: (401, content)
            (failed,) = engine.score_batch([Query(None, QUESTION, SHORT)])
            assert isinstance(failed, QueryFailure)
            return failed.reason

        yield reason


def longest_part(text: str) -> int:
    """Characters of the longest part of the key that a text holds."""
    parts = (KEY[start:end] for start in range(len(KEY)) for end in range(start + 1, len(KEY) + 1))
    return max((len(part) for part in parts if part.lower() in text.lower()), default=0)


@pytest.mark.parametrize("before", [0, 100, 250, 254, 260, 290, 299])
def test_the_key_is_masked_before_a_message_is_cut(refusing: Callable[[Any], str], before: int) -> None:
    assert longest_part(refusing({"error": {"message": "x" * before + f" key {KEY} is unknown"}})) < 8


@pytest.mark.parametrize(
    "quoted",
    [
        KEY,
        KEY[:46] + "…",
        KEY[4:30],
        KEY.replace("/", "%2F").replace("+", "%2B"),
        KEY.replace("/", "%2f").replace("+", "%2b"),
        KEY.upper(),
    ],
)
@pytest.mark.parametrize("shape", ["{}", "http://proxy/?key={}", "\x1b[31m{}\x1b[0m"])
def test_no_part_of_the_key_is_told(refusing: Callable[[Any], str], quoted: str, shape: str) -> None:
    for content in (
        {"error": {"message": shape.format(quoted)}},
        {"detail": [shape.format(quoted)]},
        Raw([shape.format(quoted).encode()]),
    ):
        told = refusing(content)
        assert longest_part(told) < 8
        assert "***" in told
        assert told.isprintable()


def test_the_key_is_masked_in_redirects_model_names_and_answers(
    llava: TransformersEngine, refusing: Callable[[Any], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("UNPRIOR_API_KEY", KEY)
    replayed = ReplayedVllm(llava)

    def answer(path: str, body: dict[str, Any] | None) -> tuple[int, Any]:
        status, content = replayed(path, body)
        text = json.dumps(content).replace("folder/tiny", f"folder/{KEY}")
        told = json.loads(text)
        if body and body.get("max_tokens") == 64:
            told["choices"][0]["message"]["content"] = f"B, and {KEY}"
        return status, told

    with served(answer) as (engine, server):
        assert KEY not in str(engine.identity)
        assert engine.original_answer(None, QUESTION) == "B, and ***"
        server.answer = lambda *_: (302, Raw([b""], {"Location": f"http://elsewhere/?key={KEY}"}))
        with pytest.raises(UnpriorError, match=r"it sends requests on to http://elsewhere/\?key=\*\*\*"):
            engine.score_candidates(None, QUESTION, SHORT)


def test_a_key_as_short_as_a_word_is_masked_in_messages_only() -> None:
    hide = Mask("yes")
    assert hide("the key yes is unknown") == "the key *** is unknown"
    assert hide.in_answer("yes") == "yes"


@cache
def deflated(megabytes: int) -> list[bytes]:
    packer = zlib.compressobj(1, wbits=zlib.MAX_WBITS | 16)
    return [*(packer.compress(b" " * MEGABYTE) for _ in range(megabytes)), packer.flush()]


def deep(depth: int) -> bytes:
    return b"[" * depth + b"]" * depth


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (lambda: Raw(deflated(400), {"Content-Encoding": "gzip"}), "larger than 16 MB"),
        (lambda: Raw(itertools.repeat(b" " * MEGABYTE, 400)), "larger than 16 MB"),
        (lambda: Raw([b"not packed at all"], {"Content-Encoding": "gzip"}), "cannot be unpacked"),
        (lambda: Raw([gzip.compress(b"{}")[:9]], {"Content-Encoding": "gzip"}), "not whole or not JSON"),
        (lambda: Raw([b"\x0b\x02\x80{}\x03"], {"Content-Encoding": "br"}), "packed in a way that was not asked for"),
        (lambda: Raw([deep(100_000)]), "not whole or not JSON"),
        (lambda: Raw([deep(900)]), "a wrong answer"),
        (lambda: Raw(["{}".encode("utf-16")], {"Content-Type": "application/json; charset=base64"}), "a wrong answer"),
        (lambda: Raw([b"\xff\xfe\xfa"], {"Content-Type": "text/html; charset=zip"}), "not whole or not JSON"),
        (lambda: Raw([b"1" * 5000]), "not whole or not JSON"),
    ],
)
def test_a_strange_reply_is_asked_for_again_and_then_named(
    llava: TransformersEngine, reply: Callable[[], Raw], reason: str
) -> None:
    with served(ReplayedVllm(llava)) as (engine, server):
        engine.score_candidates(None, QUESTION, SHORT)
        good, strange = server.answer, iter([True, True])
        server.answer = lambda path, body: (200, reply()) if next(strange, False) else good(path, body)
        assert_right(llava, [Query(None, QUESTION, SHORT)], [engine.score_candidates(None, QUESTION, SHORT)])
        server.answer = lambda *_: (200, reply())
        tracemalloc.start()
        with pytest.raises(UnpriorError, match=reason) as caught:
            engine.score_candidates(None, QUESTION, SHORT)
        assert tracemalloc.get_traced_memory()[1] < 100 * MEGABYTE
        tracemalloc.stop()
        assert f"try {HASTY.max_attempts} of {HASTY.max_attempts}" in str(caught.value)


@pytest.mark.parametrize("content", [deep(100_000), deep(900), b"\xff" * 100, b"\x1b]0;title\x07", b""])
def test_a_strange_refusal_is_told_in_one_printable_line(refusing: Callable[[Any], str], content: bytes) -> None:
    told = refusing(Raw([content], {"Content-Type": "text/plain; charset=hex"}))
    assert "status 401" in told
    assert told.isprintable()
    assert len(told) < 400


def test_a_reply_packed_by_a_proxy_is_unpacked(llava: TransformersEngine) -> None:
    replayed = ReplayedVllm(llava)

    def answer(path: str, body: dict[str, Any] | None) -> tuple[int, Any]:
        status, content = replayed(path, body)
        return status, Raw([gzip.compress(json.dumps(content).encode())], {"Content-Encoding": "gzip"})

    with served(answer) as (engine, _):
        assert isinstance(engine.score_candidates(None, QUESTION, SHORT), CandidateScores)


def test_an_answer_of_megabytes_is_no_answer(llava: TransformersEngine) -> None:
    with served(ReplayedVllm(llava)) as (engine, server):
        server.answer = lambda *_: (200, {"choices": [{"message": {"content": "yes " * MEGABYTE}}]})
        with pytest.raises(UnpriorError, match="more than the tokens that were asked for can have"):
            engine.original_answer(None, QUESTION)


def test_a_reply_that_trickles_in_ends_with_the_time_limit(
    llava: TransformersEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits, replayed, trickles = TimeLimits(monkeypatch), ReplayedVllm(llava), iter([True, True])

    def trickle() -> Iterator[bytes]:
        yield b"{"
        limits.end()
        yield from itertools.repeat(b" ", 20_000_000)  # until the client hangs up, long before it is too large

    with served(replayed, concurrency=1) as (engine, server):
        server.answer = lambda path, body: (200, Raw(trickle())) if next(trickles, False) else replayed(path, body)
        before = server.requests
        assert_right(llava, [Query(None, QUESTION, SHORT)], [engine.score_candidates(None, QUESTION, SHORT)])
        assert server.requests - before > 2
    assert set(limits.asked) == {HASTY.timeout}


def test_any_wish_to_wait_is_a_number() -> None:
    chance = random.Random(0)
    for _ in range(2000):
        header = "".join(chance.choices("0123456789 ,:+-GMTonSuJanFeb\x00é", k=chance.randrange(30)))
        assert _asked_to_wait(header) >= 0.0


@pytest.mark.parametrize(
    "url", ["http://me:secret@localhost:99999", "me:secret@localhost:8000", "ftp://x/?key=secret", "x#secret"]
)
def test_an_address_that_is_refused_is_shown_without_its_secrets(url: str) -> None:
    from unprior.engines.openai.engine import HttpEngine

    with pytest.raises(UnpriorError, match="give an address such as") as caught:
        HttpEngine(MODEL, [url])
    assert "secret" not in str(caught.value)
