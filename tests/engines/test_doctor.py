"""Sound engines pass; an engine that is wrong in one way is caught by the probe that is meant for it, and no other."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
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
from unprior.embedded import FOLDER
from unprior.engines.doctor import Examination, Finding, examine
from unprior.engines.doctor.probes import PROBES
from unprior.engines.doctor.trial import Trial
from unprior.engines.prompts import PromptLayout
from unprior.engines.protocol import Answered, CandidateScores, Capabilities, Engine, Query, QueryFailure
from unprior.engines.transformers import TransformersEngine

EQUALITIES = ("prefix reuse", "text-only after image", "batch invariance")


@pytest.fixture(scope="module")
def embedded() -> TransformersEngine:
    return TransformersEngine(FOLDER, device="cpu", name="embedded")


@pytest.fixture(scope="module")
def random(model_folder: Callable[[str], Path]) -> TransformersEngine:
    """Random weights write on and on; a few tokens show as much as many."""
    engine = TransformersEngine(model_folder("llava"), device="cpu", self_test=False)
    engine.most_new_tokens = 3
    return engine


def probed(engine: Engine, name: str) -> Finding:
    """One probe alone."""
    return next(probe for probe in PROBES if probe.name == name)(Trial.of(engine))


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
    engine.most_new_tokens, before = 3, engine.most_new_tokens
    found = statuses(examine(engine))
    engine.most_new_tokens = before
    assert "failed" not in found.values()
    for name in ("exact scores", "tokenisation", *EQUALITIES, "image order", "versions"):
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
    assert failed(examination) == [CAUGHT_BY[kind]]
    assert examination.finding(CAUGHT_BY[kind]).remedy


@pytest.mark.parametrize("kind", [MeanOfTokens, Renormalised, RemembersImage, MixesUpImages, Blind])
def test_scores_of_a_trained_model_show_it_too(kind: type[Wrapped], embedded: TransformersEngine) -> None:
    assert failed(examine(kind(embedded))) == [CAUGHT_BY[kind]]


def test_a_dead_engine_is_asked_once_and_its_message_shown(random: TransformersEngine) -> None:
    examination = examine(RaisesAlways(random))
    assert examination.finding("scoring").detail == "ConnectionError: nobody listens on port 8000"
    assert {status for name, status in statuses(examination).items() if name not in ("scoring", "versions")} == {
        "skipped"
    }


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
        "only the top 20 tokens are visible; other candidates are censored",
    )
    assert failed(examination) == []


def test_unshared_prefixes_are_a_warning(model_folder: Callable[[str], Path]) -> None:
    engine = TransformersEngine(model_folder("llava"), device="cpu", self_test=False)
    engine.shares_prefix = False
    found = probed(engine, "prefix reuse")
    assert (found.status, found.detail) == (
        "warning",
        "fails its self-test, so prompts are read whole: right but slower",
    )


def test_a_shortcut_that_differs_from_full_passes_is_caught(model_folder: Callable[[str], Path]) -> None:
    class WrongFromTheStart(TransformersEngine):
        """Consistently wrong: only the full pass shows it."""

        def _score(self, prompts: Any) -> list[CandidateScores]:
            return [shifted(scored, -0.01) for scored in super()._score(prompts)]

        def _answer(self, prompts: Any) -> list[Answered]:
            return [replace(each, scored=shifted(each.scored, -0.01)) for each in super()._answer(prompts)]

    engine = WrongFromTheStart(model_folder("llava"), device="cpu", self_test=False)
    engine.most_new_tokens = 3
    assert failed(examine(engine)) == ["prefix reuse", "text-only after image"]


def test_a_template_that_puts_the_text_first_is_caught(model_folder: Callable[[str], Path]) -> None:
    engine = TransformersEngine(model_folder("qwen3_vl"), device="cpu", self_test=False)
    engine.most_new_tokens = 3
    template = engine.encoder.processor.chat_template
    engine.encoder.processor.chat_template = template.replace(
        "for item in message['content'] -", "for item in message['content'] | reverse -"
    )
    examination = examine(engine)
    assert failed(examination) == ["image order"]
    assert examination.finding("image order").detail == "the chat template renders the text before the picture"


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


def test_the_users_picture_and_question_are_asked(random: TransformersEngine) -> None:
    asked: list[Query] = []

    class Listening(Wrapped):
        def score_batch(self, queries: Sequence[Query]) -> list[CandidateScores]:
            asked.extend(queries)
            return super().score_batch(queries)

    picture = Image.radial_gradient("L").resize((50, 30))
    assert failed(examine(Listening(random), picture, "Is this a gradient?")) == []
    assert any("Is this a gradient?" in query.text for query in asked)
    sizes = {query.image.size for query in asked if query.image is not None}
    assert sizes == {(50, 30)}
    assert {query.image.mode for query in asked if query.image is not None} == {"RGB"}


def test_the_record_is_plain_json(random: TransformersEngine) -> None:
    steps: list[tuple[int, int]] = []
    record = examine(RaisesAlways(random), report=lambda done, count: steps.append((done, count))).record()
    assert steps == [(place, 10) for place in range(10)]
    assert json.loads(json.dumps(record)) == record
    assert (record["failed"], record["findings"][0]["status"]) == (True, "failed")
    assert set(record["findings"][0]) == {"name", "status", "detail", "remedy"}
