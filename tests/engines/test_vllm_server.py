"""The HTTP engine against a real vLLM server with the embedded model, also through a proxy that breaks much."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from embedded_queries import embedded_queries
from enumerated_answers import most_probable_answers, open_queries
from faulty_server import FAULTS, STATUS_FAULTS, FaultyServer
from unprior import ScoreTable, SelectivePriorCalibrator
from unprior.benchmarks.registry import load_benchmark
from unprior.benchmarks.schema import Benchmark
from unprior.embedded import FOLDER, NAME
from unprior.engines.doctor import examine
from unprior.engines.doctor.trial import Trial
from unprior.engines.openai.client import RetryPolicy
from unprior.engines.openai.endings import AnswerEnd
from unprior.engines.openai.engine import HttpEngine
from unprior.engines.protocol import Answered, Proposed
from unprior.engines.transformers.engine import TransformersEngine
from unprior.scoring.run import ScoringRun
from unprior.scoring.store import ScoreStore
from vllm_server import Forwarding, running_vllm

pytestmark = pytest.mark.engines
TOLERANCE = 1e-3
MAX_FAULTS = 8


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with running_vllm(FOLDER, NAME, tmp_path_factory.mktemp("vllm") / "server.log") as address:
        yield address


@pytest.fixture(scope="module")
def reference() -> TransformersEngine:
    return TransformersEngine(FOLDER, device="cpu", image_backend="pil", name=NAME)


def compare(table: ScoreTable, expected: ScoreTable) -> float:
    """The same rows and answers; the largest difference of scores."""
    for name in ("example_id", "original_text", "original", "candidates", "token_counts", "model"):
        assert list(table.column(name)) == list(expected.column(name)), name
    columns = ("image_scores", "prior_scores")
    return max(float(np.abs(table._flat(name) - expected._flat(name)).max()) for name in columns)


def test_scores_and_answers_equal_those_of_transformers(url: str, reference: TransformersEngine) -> None:
    engine = HttpEngine(NAME, [url])
    assert engine.capabilities.exact_scores
    queries = embedded_queries()
    largest = 0.0
    for query, result in zip(queries, engine.answer_batch(queries), strict=True):
        assert isinstance(result, Answered), result.reason
        expected = reference.score_candidates(query.image, query.text, query.candidates)
        assert result.scored.token_counts == expected.token_counts
        assert result.text == reference.original_answer(query.image, query.text)
        largest = max(largest, float(np.abs(np.subtract(result.scored.scores, expected.scores)).max()))
    engine.close()
    print(f"largest difference to transformers: {largest:.2g}")
    assert largest < TOLERANCE


def test_proposals_are_the_most_probable_whole_answers(url: str, reference: TransformersEngine) -> None:
    own = (" six fingers", " no")
    queries = [replace(query, candidates=own[: number % 3]) for number, query in enumerate(open_queries())]
    found, largest = [], 0.0
    # By vLLM's own search, alone and together; and step by step, as for models that end with another token.
    for concurrency, ends_beams in ((1, True), (16, True), (16, False)):
        engine = HttpEngine(NAME, [url], concurrency=concurrency)
        assert engine._asking.end == AnswerEnd(reference.encoder.end or 0, ends_beams=True)
        engine._asking.end = AnswerEnd(engine._asking.end.token, ends_beams=ends_beams)
        before, started = engine.requests, time.perf_counter()
        found.append(engine.propose_batch(queries, 4))
        took = (time.perf_counter() - started) / len(queries)
        print(f"{(engine.requests - before) / len(queries):.0f} requests and {1000 * took:.0f} ms per question")
        engine.close()
    for query, *results in zip(queries, *found, strict=True):
        best = most_probable_answers(reference, query.image, query.text, 2, reference.encoder.end or 0)
        for result in results:
            assert isinstance(result, Proposed), result
            assert result.text == (query.image and reference.original_answer(query.image, query.text))
            assert result.candidates[: len(query.candidates)] == query.candidates
            assert set(best) <= set(result.candidates)
            assert result.candidates == results[0].candidates
            expected = reference.score_in_full(replace(query, candidates=result.candidates, whole=True))
            assert result.scored.token_counts == expected.token_counts
            largest = max(largest, float(np.abs(np.subtract(result.scored.scores, expected.scores)).max()))
    print(f"largest difference of whole answers to transformers: {largest:.2g}")
    assert largest < 1e-4


def test_a_server_with_top_tokens_only_proposes_with_exact_scores_or_bounds(
    url: str, reference: TransformersEngine
) -> None:
    query = replace(open_queries()[0], candidates=(" seventeen zebras",))
    with Forwarding(url, without=("logprob_token_ids",)) as older, FaultyServer(older) as proxy:
        engine = HttpEngine(NAME, [proxy.url])
        assert (engine.capabilities.proposes, engine.capabilities.exact_scores) == (True, False)
        result = engine.propose_batch([query], 4)[0]
        engine.close()
    assert isinstance(result, Proposed), result
    assert result.scored.censored is not None
    assert result.scored.censored[:2] == (True, False)
    truth = reference.score_in_full(replace(query, candidates=result.candidates, whole=True))
    for value, exact, hidden in zip(result.scored.scores, truth.scores, result.scored.censored, strict=True):
        assert value > exact - TOLERANCE if hidden else abs(value - exact) < TOLERANCE


def cached_tokens(url: str) -> float:
    """Prompt tokens that the server has found in its cache so far."""
    lines = httpx.get(f"{url}/metrics").text.splitlines()
    return sum(float(line.split()[-1]) for line in lines if line.startswith("vllm:prefix_cache_hits_total"))


def test_doctor_passes_it_and_compares_with_scores_past_the_cache(url: str, reference: TransformersEngine) -> None:
    engine = HttpEngine(NAME, [url])
    examination = examine(engine, against=reference)
    trial = Trial.from_engine(engine)
    query = trial.long(trial.image, ("A", "B", "seventeen zebras"))
    assert engine.score_in_full is not None
    counts = [cached_tokens(url)]
    for score in (lambda asked: engine.score_batch([asked]), engine.score_in_full):
        score(query)
        counts.append(cached_tokens(url))
    engine.close()
    assert [(finding.name, finding.detail) for finding in examination.findings if finding.status != "ok"] == []
    assert "vllm 0." in examination.finding("versions").detail
    assert "in full" in examination.finding("prefix reuse").detail
    assert counts[0] < counts[1] == counts[2]


def test_commands_ask_and_doctor_take_the_server(url: str, tmp_path: Path) -> None:
    command, served = str(Path(sys.executable).parent / "unprior"), ("--engine", "openai", "--base-url", url, "--json")
    embedded_queries()[0].image.save(tmp_path / "noise.png")
    told = []
    for arguments in (
        ("doctor", *served),
        ("ask", "noise.png", "Is it red?", *served),
        ("ask", "noise.png", "Is it red?", "--json"),
    ):
        done = subprocess.run(
            [command, *arguments], capture_output=True, timeout=300, check=False, text=True, cwd=tmp_path
        )
        assert done.returncode == 0, done.stderr
        told.append(json.loads(done.stdout))
    assert told[0]["failed"] is False
    assert told[1]["answer"] == told[2]["answer"]
    for mine, theirs in zip(told[1]["candidates"], told[2]["candidates"], strict=True):
        assert mine["image_score"] == pytest.approx(theirs["image_score"], abs=TOLERANCE)
        assert mine["prior_score"] == pytest.approx(theirs["prior_score"], abs=TOLERANCE)


def test_a_whole_run_gives_the_same_scores_answers_and_decisions(url: str, default_run: Path, tmp_path: Path) -> None:
    command = [str(Path(sys.executable).parent / "unprior"), "run", "--engine", "openai", "--base-url", url]
    done = subprocess.run([*command, "--out", str(tmp_path)], capture_output=True, timeout=600, check=False, text=True)
    assert done.returncode == 0, done.stderr
    tables = [ScoreTable.read(folder / "scores.parquet") for folder in (tmp_path, default_run)]
    largest = compare(*tables)
    print(f"largest difference to transformers on {len(tables[0])} examples: {largest:.2g}")
    assert largest < TOLERANCE
    calibrator = SelectivePriorCalibrator.load(default_run / "calibrator.json")
    finals = [[decision.final for decision in calibrator.predict(table)] for table in tables]
    assert finals[0] == finals[1]
    own = SelectivePriorCalibrator.load(tmp_path / "calibrator.json")
    assert [decision.final for decision in own.predict(tables[0])] == finals[1]


def test_through_a_faulty_proxy_nothing_is_wrong_lost_or_doubled(url: str, default_run: Path, tmp_path: Path) -> None:
    chance = random.Random(0)
    burst: list[str] = []
    failed: Counter[str] = Counter()

    def plan(number: int, path: str, body: dict[str, Any] | None) -> str | None:
        # A request that is alone meets all of a burst. No request fails as often as it is tried, so all must succeed.
        request = f"{path} {json.dumps(body)}"
        if failed[request] == MAX_FAULTS:
            return None
        if not burst and chance.random() < 0.01:
            burst.extend([chance.choice([*STATUS_FAULTS])] * 12)
        fault = burst.pop() if burst else chance.choice(FAULTS) if chance.random() < 0.25 else None
        failed[request] += fault is not None
        return fault

    expected = ScoreTable.read(default_run / "scores.parquet")
    whole = load_benchmark("microworld", tmp_path)
    part = Benchmark(whole.name, list(whole)[::6])
    retry_policy = RetryPolicy(max_attempts=12, first_delay=0.02, max_delay=0.5, timeout=10.0)
    with Forwarding(url) as real, FaultyServer(real, plan, late=12.0) as proxy:
        engine = HttpEngine(NAME, [proxy.url], concurrency=8, retry_policy=retry_policy)
        with ScoreStore(tmp_path / "store.sqlite") as store:
            run = ScoringRun(engine, part, store)
            summary = run.run()
            assert summary.failures == ()
            table = run.table()
            asked = proxy.requests
            assert ScoringRun(engine, part, store).run().computed == 0
            assert proxy.requests == asked
        engine.close()
    print(f"{proxy.requests} requests, {proxy.requests - proxy.faults['none']} faults: {dict(proxy.faults)}")
    assert proxy.requests >= 500
    assert set(FAULTS) <= set(proxy.faults)
    assert (summary.examples, summary.reused) == (len(part), 0)
    names = [example.example_id for example in part]
    assert list(table.column("example_id")) == names
    assert len(set(names)) == len(names) == len(table)
    rows = {name: row for row, name in enumerate(expected.column("example_id"))}
    subset = ScoreTable(expected.arrow.take([rows[name] for name in names]))
    assert compare(table, subset) < TOLERANCE


def test_a_server_that_shows_only_the_top_tokens_censors_the_rest(url: str, reference: TransformersEngine) -> None:
    with Forwarding(url, without=("logprob_token_ids",)) as older, FaultyServer(older) as proxy:
        engine = HttpEngine(NAME, [proxy.url])
        assert (engine.capabilities.exact_scores, engine.capabilities.top_k) == (False, 20)
        candidates = (" yes", " no", " seventeen zebras", " cloud")
        query = embedded_queries()[0]
        scored = engine.score_candidates(query.image, query.text, candidates)
        engine.close()
    truth = reference.score_candidates(query.image, query.text, candidates)
    assert scored.censored is not None
    assert scored.censored[:3] == (False, False, True)
    for value, exact, hidden in zip(scored.scores, truth.scores, scored.censored, strict=True):
        assert value > exact - TOLERANCE if hidden else abs(value - exact) < TOLERANCE
