"""Sound engines pass; an engine that is wrong in one way is caught by the probe that is meant for it, and no other."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from PIL import Image

from broken_engines import (
    CAUGHT_BY,
    Blind,
    DependsOnBatch,
    MeanOfTokens,
    MixesUpImages,
    RaisesAlways,
    RemembersImage,
    Renormalised,
    Wrapped,
    shifted,
)
from faulty_server import FaultyServer
from replayed_vllm import MODEL, ReplayedVllm
from unprior.embedded import FOLDER
from unprior.engines.doctor import Examination, Finding, examine
from unprior.engines.doctor.probes import PROBES
from unprior.engines.doctor.trial import Trial
from unprior.engines.openai.engine import HttpEngine
from unprior.engines.protocol import Answered, CandidateScores, Capabilities, Engine, Query, QueryFailure
from unprior.engines.transformers.engine import TransformersEngine
from unprior.engines.transformers.levels import LEVELS
from unprior.engines.transformers.self_test import Trial as SelfTestTrial
from unprior.prompts import PromptLayout

IMAGES = ("image dropped", "image swapped", "image order")
EQUALITIES = ("prefix reuse", "text-only after image", "batch invariance")


@pytest.fixture(scope="module")
def embedded() -> TransformersEngine:
    return TransformersEngine(FOLDER, device="cpu", name="embedded")


@pytest.fixture(scope="module")
def random(model_folder: Callable[[str], Path]) -> TransformersEngine:
    """Random weights write on and on; a few tokens show as much as many."""
    engine = TransformersEngine(model_folder("llava"), device="cpu", self_test=False)
    engine.max_new_tokens = 3
    return engine


def probed(engine: Engine, name: str) -> Finding:
    """One probe alone."""
    found = next(probe for probe in PROBES if probe.name == name)(Trial.from_engine(engine))
    assert found is not None
    return found


def statuses(examination: Examination) -> dict[str, str]:
    return {finding.name: finding.status for finding in examination.findings}


def failed(examination: Examination) -> list[str]:
    return [name for name, status in statuses(examination).items() if status == "failed"]


def test_the_embedded_model_passes_every_probe(embedded: TransformersEngine) -> None:
    examination = examine(embedded)
    assert set(statuses(examination).values()) == {"ok"}
    assert not examination.failed
    assert all(finding.remedy is None for finding in examination.findings)
    assert examination.finding("tokenisation").detail == "␣A, ␣B, ␣C, ␣D, ␣yes, ␣no"
    assert "transformers 5" in examination.finding("versions").detail


def test_every_architecture_passes_what_weights_do_not_decide(engine: TransformersEngine) -> None:
    engine.max_new_tokens, before = 3, engine.max_new_tokens
    found = statuses(examine(engine))
    engine.max_new_tokens = before
    assert "failed" not in found.values()
    for name in (
        "exact scores",
        "rounding",
        "tokenisation",
        "chat template",
        "thinking",
        *EQUALITIES,
        *IMAGES,
        "versions",
    ):
        assert found[name] == "ok", name
    assert found["candidate mass"] == "warning"  # random weights do not answer


def test_the_protocol_alone_is_enough(random: TransformersEngine) -> None:
    wrapped = Wrapped(random)
    assert isinstance(wrapped, Engine)
    examination = examine(wrapped)
    assert failed(examination) == []
    assert examination.finding("tokenisation").detail == "tokens of each: A 1, B 1, C 1, D 1, yes 1, no 1"
    assert "in full" not in examination.finding("prefix reuse").detail


@pytest.mark.parametrize("kind", CAUGHT_BY, ids=lambda kind: kind.__name__)
def test_a_fault_is_caught_by_its_probe_and_no_other(kind: type[Wrapped], random: TransformersEngine) -> None:
    examination = examine(kind(random))
    assert failed(examination) == CAUGHT_BY[kind]
    assert all(examination.finding(name).remedy for name in CAUGHT_BY[kind])


@pytest.mark.parametrize("kind", [MeanOfTokens, Renormalised, RemembersImage, MixesUpImages, Blind])
def test_scores_of_a_trained_model_show_it_too(kind: type[Wrapped], embedded: TransformersEngine) -> None:
    assert failed(examine(kind(embedded))) == CAUGHT_BY[kind]


def test_a_dead_engine_is_asked_once_and_its_message_shown(random: TransformersEngine) -> None:
    examination = examine(RaisesAlways(random))
    assert examination.finding("scoring").detail == "ConnectionError: nobody listens on port 8000"
    others = {status for name, status in statuses(examination).items() if name not in ("scoring", "versions")}
    assert others == {"skipped"}


def test_failed_queries_and_missing_results_are_findings(random: TransformersEngine) -> None:
    class Fails(Wrapped):
        def answer_batch(self, queries: Sequence[Query]) -> list[Any]:
            return [QueryFailure("out of memory, even alone")]

    class Loses(Wrapped):
        def score_batch(self, queries: Sequence[Query]) -> list[CandidateScores]:
            return super().score_batch(queries)[:3]

    assert probed(Fails(random), "prefix reuse").detail == "out of memory, even alone"
    lost = examine(Loses(random))
    assert failed(lost) == ["batch invariance"]
    assert lost.finding("batch invariance").detail == "3 results for 4 queries"


def test_small_differences_of_unknown_precision_are_a_warning(random: TransformersEngine) -> None:
    unknown = DependsOnBatch(random)
    unknown.tolerance = None  # type: ignore[assignment]
    found = probed(unknown, "batch invariance")
    assert found.status == "warning"
    assert "at most 3.0e-02 apart" in found.detail
    assert "Half precision" in str(found.remedy)
    known = DependsOnBatch(random)
    known.tolerance = 0.25
    assert probed(known, "batch invariance").status == "ok"


def test_only_visible_top_tokens_are_a_warning(random: TransformersEngine) -> None:
    class TopTwenty(Wrapped):
        capabilities = Capabilities(exact_scores=False, top_k=20)  # type: ignore[assignment]

    examination = examine(TopTwenty(random))
    found = examination.finding("exact scores")
    assert (found.status, found.detail) == (
        "warning",
        "only the top 20 tokens are visible; other candidates are censored (here: none)",
    )
    assert failed(examination) == []


@contextmanager
def served(engine: TransformersEngine, answer: Any = None, **abilities: bool) -> Iterator[HttpEngine]:
    with FaultyServer(answer or ReplayedVllm(engine, **abilities)) as server:
        client = HttpEngine(MODEL, [server.url])
        try:
            yield client
        finally:
            client.close()


def test_a_served_model_passes_every_probe(embedded: TransformersEngine) -> None:
    with served(embedded) as engine:
        examination = examine(engine)
    assert set(statuses(examination).values()) == {"ok"}
    assert examination.finding("tokenisation").detail == "␣A, ␣B, ␣C, ␣D, ␣yes, ␣no"
    assert "in full" in examination.finding("prefix reuse").detail
    told = examination.finding("versions").detail
    assert "vllm 0.32.0, loaded from folder/tiny, longest prompt 512; fingerprint" in told


def test_a_server_that_shows_the_top_tokens_gets_warnings_with_what_to_do(random: TransformersEngine) -> None:
    with served(random, named=False, tokenizes=False) as engine:
        examination = examine(engine)
    found = examination.finding("exact scores")
    assert (found.status, found.detail) == (
        "warning",
        "only the top 20 tokens are visible; other candidates are censored (here: A, B, C, D, yes, no)",
    )
    assert "vLLM 0.26" in str(found.remedy)
    assert "--allow-censored" in str(found.remedy)
    mass, tokens = examination.finding("candidate mass"), examination.finding("tokenisation")
    assert mass.detail.startswith("choice 0.0% to ")
    assert (tokens.status, tokens.detail) == ("warning", "the server does not tell how it tokenises")
    assert failed(examination) == []
    assert all(finding.remedy for finding in examination.findings if finding.status == "warning")


def test_what_hidden_candidates_may_hold_decides_the_advice(random: TransformersEngine) -> None:
    class HalfHidden(Wrapped):
        def score_batch(self, queries: Sequence[Query]) -> list[CandidateScores]:
            return [
                CandidateScores((-1.2, *(-0.9,) * (len(query.candidates) - 1)), (1,) * len(query.candidates), hidden)
                for query in queries
                for hidden in [(False, *(True,) * (len(query.candidates) - 1))]
            ]

    found = probed(HalfHidden(random), "candidate mass")
    # exp(-1.2) = 30.1%; three bounds of exp(-0.9) = 40.7% could fill the rest, one brings it to 70.8%
    assert (found.status, found.detail) == ("warning", "choice 30.1% to 100.0%, yes/no 30.1% to 70.8%")
    assert "may be enough" in str(found.remedy)


def test_a_server_s_cache_is_compared_with_scores_past_it(embedded: TransformersEngine) -> None:
    replayed = ReplayedVllm(embedded)
    seen: Counter[str] = Counter()

    def stale(path: str, body: dict[str, Any] | None) -> tuple[int, Any]:
        status, content = replayed(path, body)
        if body and "logprob_token_ids" in body:
            seen[body.get("cache_salt", "")] += 1
            if "cache_salt" not in body:
                for entry in content["choices"][0]["logprobs"]["content"][0]["top_logprobs"]:
                    entry["logprob"] -= 0.5
        return status, content

    with served(embedded, stale) as engine:
        found = probed(engine, "prefix reuse")
        assert (found.status, found.detail[-21:]) == ("failed", "at most 5.0e-01 apart")
    assert "--no-enable-prefix-caching" in str(found.remedy)
    assert [count for salt, count in seen.items() if salt] == [1]


def test_a_server_whose_template_puts_the_text_first_is_caught(embedded: TransformersEngine) -> None:
    class TextFirst(ReplayedVllm):
        def _render(self, body: dict[str, Any]) -> tuple[Image.Image | None, str]:
            image, text = super()._render(body)
            return image, text if image is None else text.replace("<image>", "").replace("\nASS", "<image>\nASS")

    with served(embedded, TextFirst(embedded)) as engine:
        found = probed(engine, "chat template")
    assert (found.status, found.detail) == ("failed", "the chat template renders the text before the image")


def test_a_server_whose_template_adds_a_header_without_an_image_is_caught(embedded: TransformersEngine) -> None:
    class Headed(ReplayedVllm):
        def _render(self, body: dict[str, Any]) -> tuple[Image.Image | None, str]:
            image, text = super()._render(body)
            return image, text if image is not None else "Today is 26 Jul 2024.\n" + text

    with served(embedded, Headed(embedded)) as engine:
        found = probed(engine, "chat template")
    assert found.status == "failed"
    assert "where it writes 'Today is 26 Jul 2024." in found.detail


@pytest.mark.parametrize(
    ("engine", "remedy"), [("openai", "--concurrency 1"), ("vllm", "max_num_seqs"), ("other", "--batch-size 1")]
)
def test_the_remedy_is_one_that_the_engine_knows(random: TransformersEngine, engine: str, remedy: str) -> None:
    wrapped = DependsOnBatch(random)
    wrapped.identity = {"engine": engine}
    assert remedy in str(probed(wrapped, "batch invariance").remedy)


def test_what_the_engine_found_out_at_load_is_told(
    llava: TransformersEngine, model_folder: Callable[[str], Path]
) -> None:
    found = probed(llava, "self-test")
    assert found.status == "ok"
    assert found.detail.startswith("shared in batches: ")
    assert found.detail.endswith("nats from generate(); " + llava.level.about)
    engine = TransformersEngine(model_folder("llava"), device="cpu", self_test=False)
    assert probed(engine, "self-test").detail == f"was not run; {LEVELS[0].about}"
    engine.level = LEVELS[-1]
    engine.self_test.trials = [SelfTestTrial(LEVELS[0], 0.2), SelfTestTrial(LEVELS[-1], 1e-6)]
    found = probed(engine, "self-test")
    assert (found.status, found.detail) == (
        "warning",
        f"shared in batches: 0.2 nats; plain full passes: 1e-06 nats from generate(); {LEVELS[-1].about}",
    )
    assert "slower" in str(found.remedy)


def test_a_shortcut_that_differs_from_full_passes_is_caught(model_folder: Callable[[str], Path]) -> None:
    class WrongFromTheStart(TransformersEngine):
        """Consistently wrong: only the full pass shows it."""

        def _score(self, prompts: Any) -> list[CandidateScores]:
            return [shifted(scored, -0.01) for scored in super()._score(prompts)]

        def _answer(self, prompts: Any) -> list[Answered]:
            return [replace(each, scored=shifted(each.scored, -0.01)) for each in super()._answer(prompts)]

    engine = WrongFromTheStart(model_folder("llava"), device="cpu", self_test=False)
    engine.max_new_tokens = 3
    assert failed(examine(engine)) == ["text-only after image", "prefix reuse"]


def test_a_template_that_puts_the_text_first_is_caught(model_folder: Callable[[str], Path]) -> None:
    engine = TransformersEngine(model_folder("qwen3_vl"), device="cpu", self_test=False)
    engine.max_new_tokens = 3
    template = engine.encoder.template
    template._source = template._source.replace(
        "for item in message['content'] -", "for item in message['content'] | reverse -"
    )
    examination = examine(engine)
    assert failed(examination) == ["chat template"]
    assert examination.finding("chat template").detail == "the chat template renders the text before the image"


def test_uneven_and_unknown_candidates_are_told(
    random: TransformersEngine, model_folder: Callable[[str], Path]
) -> None:
    layout = PromptLayout(continuation=" elephant {label}")
    even = TransformersEngine(model_folder("llava"), device="cpu", layout=layout)
    assert probed(even, "tokenisation").status == "ok"

    class Uneven(Wrapped):
        def score_batch(self, queries: Sequence[Query]) -> list[CandidateScores]:
            return [
                replace(scored, token_counts=(2, *scored.token_counts[1:])) for scored in super().score_batch(queries)
            ]

    found = probed(Uneven(random), "tokenisation")
    assert found.status == "warning"
    assert "1 and 2 tokens" in str(found.remedy)

    unknown = Wrapped(random)
    tokens = SimpleNamespace(candidates=[[7], [8], [0], [9]])
    unknown.encoder = SimpleNamespace(  # type: ignore[attr-defined]
        encode=lambda query: tokens, tokenizer=SimpleNamespace(decode=str, unk_token_id=0)
    )
    assert probed(unknown, "tokenisation").detail == "candidate 'C' holds a token that the tokenizer does not know"
    tokens.candidates[2] = [8]
    assert probed(unknown, "tokenisation").detail == "candidate 'B' has the same tokens as another"


def test_old_versions_are_named(random: TransformersEngine) -> None:
    old = Wrapped(random)
    old.identity = {"vllm": "0.9.2", "torch": "2.13.0+cpu"}  # type: ignore[attr-defined]
    found = probed(old, "versions")
    assert (found.status, found.remedy) == ("failed", "Needs vllm 0.26 or later.")
    assert "vllm 0.9.2" in found.detail
    # A server as old as that still shows its top tokens.
    old.identity = {"software": "vllm", "version": "0.9.2"}
    assert "vllm 0.9.2" in probed(old, "versions").detail
    with served(random, ReplayedVllm(random, named=False, version="0.9.2")) as engine:
        assert probed(engine, "versions").status == "warning"


def test_precision_and_image_backend_are_shown(random: TransformersEngine) -> None:
    known = Wrapped(random)
    known.identity = {"engine": "vllm", "dtype": "torch.float32", "image_backend": "pil"}
    assert "precision float32, images by pil" in probed(known, "versions").detail


def test_the_users_image_and_question_are_asked(random: TransformersEngine) -> None:
    asked: list[Query] = []

    class Listening(Wrapped):
        def score_batch(self, queries: Sequence[Query]) -> list[CandidateScores]:
            asked.extend(queries)
            return super().score_batch(queries)

    image = Image.radial_gradient("L").resize((50, 30))
    assert failed(examine(Listening(random), image, "Is this a gradient?")) == []
    assert any("Is this a gradient?" in query.text for query in asked)
    sizes = {query.image.size for query in asked if query.image is not None}
    assert sizes == {(50, 30)}
    assert {query.image.mode for query in asked if query.image is not None} == {"RGB"}


def test_the_record_is_plain_json(random: TransformersEngine) -> None:
    steps: list[tuple[int, int]] = []
    record = examine(RaisesAlways(random), report=lambda done, count: steps.append((done, count))).record()
    assert steps == [(place, len(PROBES)) for place in range(len(PROBES))]
    assert json.loads(json.dumps(record)) == record
    assert (record["failed"], record["findings"][0]["status"]) == (True, "failed")
    assert set(record["findings"][0]) == {"name", "status", "detail", "remedy"}
