"""Whole answers over HTTP: their scores, the search for them, and servers that cannot do it."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from chat_templates import TRIMMING, with_template
from enumerated_answers import most_probable_answers, open_queries
from faulty_server import FAULTS, FaultyServer
from lying_server import InFront
from replayed_vllm import MODEL, ReplayedVllm
from served_engines import CHAT, HASTY, served
from unprior import UnpriorError
from unprior.answer_forms import read_open_answer
from unprior.embedded import FOLDER
from unprior.engines.openai.engine import HttpEngine
from unprior.engines.protocol import CandidateScores, Proposed, ProposingEngine, Query, QueryFailure
from unprior.engines.transformers.engine import TransformersEngine

COUNT = 4
STRINGS = (" no", " yes", " seventeen zebras", " six fingers")


@pytest.fixture(scope="module")
def embedded() -> TransformersEngine:
    return TransformersEngine(FOLDER, device="cpu", name="embedded", max_new_tokens=12)


@pytest.fixture(scope="module")
def queries() -> list[Query]:
    every = open_queries()
    return [every[0], every[5], every[-2], every[-1]]  # two with an image, two without


def assert_sound(truth: TransformersEngine, query: Query, proposed: Proposed | QueryFailure) -> None:
    """Own candidates first, then the original answer, then answers that were found, all with exact scores."""
    assert isinstance(proposed, Proposed), proposed
    first = list(query.candidates)
    if query.image is None:
        assert proposed.text is None
    else:
        assert proposed.text == truth.original_answer(query.image, query.text)
        original = read_open_answer(proposed.text)
        first += [original] if original not in first else []
    assert list(proposed.candidates[: len(first)]) == first
    assert len(set(proposed.candidates)) == len(proposed.candidates)
    expected = truth.score_in_full(replace(query, candidates=proposed.candidates, whole=True))
    np.testing.assert_allclose(proposed.scored.scores, expected.scores, atol=1e-4)
    assert proposed.scored.token_counts == expected.token_counts
    found = proposed.scored.scores[len(first) :]
    assert list(found) == sorted(found, reverse=True)
    best = most_probable_answers(truth, query.image, query.text, 2, truth.encoder.end or 0)
    assert set(best) <= set(proposed.candidates)


@pytest.mark.parametrize("own_end", [True, False], ids=["by the server", "step by step"])
def test_proposals_are_the_most_probable_whole_answers(
    embedded: TransformersEngine, queries: list[Query], own_end: bool
) -> None:
    found = []
    for concurrency in (1, 4):
        with served(ReplayedVllm(embedded, own_end=own_end), concurrency=concurrency) as (engine, _):
            assert isinstance(engine, ProposingEngine)
            assert engine.capabilities.proposes
            found.append(engine.propose_batch(queries, COUNT))
    for query, alone, together in zip(queries, *found, strict=True):
        assert_sound(embedded, query, alone)
        assert alone == together
        assert len(alone.candidates) >= COUNT


def test_the_query_s_own_candidates_are_scored_beside_what_is_found(
    embedded: TransformersEngine, queries: list[Query]
) -> None:
    asked = [replace(query, candidates=(" six fingers", " no")) for query in queries]
    with served(ReplayedVllm(embedded)) as (engine, _):
        for query, proposed in zip(asked, engine.propose_batch(asked, COUNT), strict=True):
            assert_sound(embedded, query, proposed)


def test_whole_answers_have_the_end_in_their_scores(embedded: TransformersEngine, queries: list[Query]) -> None:
    begun = [replace(query, candidates=STRINGS) for query in queries]
    whole = [replace(query, whole=True) for query in begun]
    with served(ReplayedVllm(embedded)) as (engine, _):
        for query, score, longer in zip(whole, engine.score_batch(begun), engine.score_batch(whole), strict=True):
            assert isinstance(score, CandidateScores)
            assert isinstance(longer, CandidateScores)
            expected = embedded.score_in_full(query)
            np.testing.assert_allclose(longer.scores, expected.scores, atol=1e-4)
            assert longer.token_counts == expected.token_counts == tuple(count + 1 for count in score.token_counts)
            assert all(np.less(longer.scores, score.scores))


def test_what_was_tokenised_for_the_image_is_not_asked_again_for_the_prior(
    embedded: TransformersEngine, queries: list[Query]
) -> None:
    with served(ReplayedVllm(embedded)) as (engine, server):
        proposed = engine.propose_batch(queries[:1], COUNT)[0]
        assert isinstance(proposed, Proposed)
        before = server.paths.copy()
        prior = Query(None, queries[0].text, proposed.candidates, whole=True)
        assert isinstance(engine.score_batch([prior])[0], CandidateScores)
        assert set(server.paths - before) == {CHAT}


def test_top_tokens_are_enough_to_search_and_scores_outside_are_bounds(
    embedded: TransformersEngine, queries: list[Query]
) -> None:
    asked = replace(queries[0], candidates=(" seventeen zebras",))
    with served(ReplayedVllm(embedded, named=False)) as (engine, _):
        assert (engine.capabilities.proposes, engine.capabilities.exact_scores) == (True, False)
        proposed = engine.propose_batch([asked], COUNT)[0]
    assert isinstance(proposed, Proposed)
    assert proposed.scored.censored is not None
    assert proposed.scored.censored[:2] == (True, False)
    expected = embedded.score_in_full(replace(asked, candidates=proposed.candidates, whole=True))
    for value, right, hidden in zip(proposed.scored.scores, expected.scores, proposed.scored.censored, strict=True):
        assert value > right - 1e-4 if hidden else value == pytest.approx(right, abs=1e-4)


def test_without_an_end_in_the_template_the_one_the_server_writes_is_taken(tmp_path: Path) -> None:
    engine = TransformersEngine(with_template(FOLDER, TRIMMING, tmp_path), device="cpu", max_new_tokens=12)
    query = replace(open_queries()[0], candidates=(" no", " yes yes"), whole=True)
    with served(ReplayedVllm(engine)) as (client, _):
        scored = client.score_batch([query])[0]
    assert isinstance(scored, CandidateScores)
    np.testing.assert_allclose(scored.scores, engine.score_in_full(query).scores, atol=1e-4)


@pytest.mark.parametrize("abilities", [{"tokenizes": False}, {"tells_prompt": False}, {"chooses": False}], ids=str)
def test_a_server_that_does_not_tell_the_end_cannot_propose(tmp_path: Path, abilities: dict[str, bool]) -> None:
    template = TRIMMING if "chooses" in abilities else (FOLDER / "chat_template.jinja").read_text(encoding="utf-8")
    engine = TransformersEngine(with_template(FOLDER, template, tmp_path), device="cpu")
    query = Query(None, "What is this?", (" no", " yes"))
    with served(ReplayedVllm(engine, named="chooses" in abilities, **abilities)) as (client, _):
        assert not client.capabilities.proposes
        with pytest.raises(UnpriorError, match=r"does not tell which token ends an answer of tiny.*vLLM 0\.26"):
            client.propose_batch([query], COUNT)
        begun, whole = client.score_batch([query, replace(query, whole=True)])
    assert isinstance(begun, CandidateScores)
    assert isinstance(whole, QueryFailure)
    assert "which token ends an answer" in whole.reason


@pytest.mark.parametrize("count", [0, 11, True])
def test_a_number_of_answers_that_cannot_be_searched_for_is_refused(embedded: TransformersEngine, count: int) -> None:
    with (
        served(ReplayedVllm(embedded)) as (engine, _),
        pytest.raises(UnpriorError, match=rf"count={count}: search for 1 to 10 answers"),
    ):
        engine.propose_batch([], count)


@pytest.mark.parametrize("own_end", [True, False], ids=["by the server", "step by step"])
def test_faults_change_no_proposal(embedded: TransformersEngine, queries: list[Query], own_end: bool) -> None:
    with served(ReplayedVllm(embedded, own_end=own_end)) as (engine, _):
        right = engine.propose_batch(queries, COUNT)
    whole = faulty = 0
    for faults in (("drop", "500", "cut", "strange tokens"), [fault for fault in FAULTS if fault != "late"]):
        for seed in range(3):
            chance = random.Random(seed)
            plan = lambda *_, chance=chance, faults=faults: chance.choice(faults) if chance.random() < 0.3 else None  # noqa: E731
            with served(ReplayedVllm(embedded, own_end=own_end), plan) as (engine, server):
                found = engine.propose_batch(queries, COUNT)
                faulty += server.requests - server.faults["none"]
            for expected, proposed in zip(right, found, strict=True):
                assert isinstance(proposed, QueryFailure) or proposed == expected
                whole += isinstance(proposed, Proposed)
    assert faulty > 100
    assert whole > 12


class OtherBeams(InFront):
    """Changes what a server's own search finds."""

    def __init__(self, answer: Any, change: Callable[[dict[str, Any], list[dict[str, Any]]], None]) -> None:
        super().__init__(answer)
        self.change = change

    def __call__(self, path: str, body: dict[str, Any] | None) -> tuple[int, Any]:
        status, content = super().__call__(path, body)
        if body and body.get("use_beam_search"):
            self.change(content, content["choices"])
        return status, content


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda _, choices: choices.extend(choices), "not up to 4 choices"),
        (lambda content, _: content.update(choices=[]), "not up to 4 choices"),
        (lambda _, choices: choices[1].update(token_ids=[3] * 99), "longer than what was asked for"),
        (lambda _, choices: choices[1].update(token_ids=["no"]), "does not tell the tokens"),
        (lambda _, choices: choices[1].pop("token_ids"), "does not tell the tokens"),
        (lambda _, choices: choices[1].update(stop_reason=None), "did not end with the token that ends answers"),
        (lambda _, choices: choices[1].update(finish_reason="abort"), "or how it ended"),
        (lambda _, choices: choices[1].update(message=None), "no message"),
        (
            lambda content, _: content.update(prompt_token_ids=[*content["prompt_token_ids"], 3]),
            "a prompt with another end",
        ),
        (lambda content, _: content.pop("prompt_token_ids"), "does not repeat the prompt"),
    ],
)
def test_a_wrong_reply_of_the_search_fails_its_query_only(
    embedded: TransformersEngine, queries: list[Query], change: Any, told: str
) -> None:
    lying = OtherBeams(ReplayedVllm(embedded), change)
    sound = ReplayedVllm(embedded)

    def answer(path: str, body: dict[str, Any] | None) -> tuple[int, Any]:
        about_first = body is not None and queries[0].text.splitlines()[0] in str(body.get("messages"))
        return (lying if about_first else sound)(path, body)

    with served(answer) as (engine, _):
        wrong, right = engine.propose_batch([queries[0], queries[3]], COUNT)
    assert isinstance(wrong, QueryFailure)
    assert "a wrong answer: " in wrong.reason
    assert told in wrong.reason
    assert_sound(embedded, queries[3], right)


def test_beams_that_are_no_answers_are_left_out(embedded: TransformersEngine, queries: list[Query]) -> None:
    encode = embedded.encoder.tokenizer

    def as_found(tokens: Sequence[int], *, ended: bool) -> dict[str, Any]:
        text = encode.decode(tokens, skip_special_tokens=True)
        reason = {"finish_reason": "stop", "stop_reason": 1} if ended else {"finish_reason": "length"}
        return {"message": {"content": text}, "token_ids": list(tokens), **reason}

    def change(_: dict[str, Any], choices: list[dict[str, Any]]) -> None:
        yes, space, image = (encode(text, add_special_tokens=False)["input_ids"] for text in (" yes", " ", "<image>"))
        choices[:] = [
            as_found([], ended=True),  # empty
            as_found(space, ended=True),  # without words
            as_found([*image, *yes], ended=True),  # with a special token
            as_found([*yes, *yes], ended=False),  # unfinished
        ]

    with served(OtherBeams(ReplayedVllm(embedded), change)) as (engine, _):
        with_image, without = engine.propose_batch([queries[0], queries[2]], COUNT)
    assert isinstance(with_image, Proposed)
    assert isinstance(without, Proposed)
    assert with_image.candidates == (read_open_answer(with_image.text or ""),)
    assert (without.candidates, without.scored.scores) == ((), ())


def test_a_key_in_an_answer_becomes_no_candidate(
    embedded: TransformersEngine, queries: list[Query], monkeypatch: pytest.MonkeyPatch
) -> None:
    with served(ReplayedVllm(embedded)) as (engine, _):
        proposed = engine.propose_batch([queries[2]], COUNT)[0]
    assert isinstance(proposed, Proposed)
    key = "five fin"
    assert [text for text in proposed.candidates if key in text] == [" five fingers"]
    monkeypatch.setenv("UNPRIOR_API_KEY", key)
    with served(ReplayedVllm(embedded)) as (engine, _):
        again = engine.propose_batch([queries[2]], COUNT)[0]
    assert isinstance(again, Proposed)
    assert set(again.candidates) == set(proposed.candidates) - {" five fingers"}


def test_all_requests_of_a_proposal_go_to_one_server(embedded: TransformersEngine, queries: list[Query]) -> None:
    replayed, places = ReplayedVllm(embedded), dict[str, set[int]]()
    asked = [replace(queries[0], text=f"{number}: {queries[0].text}") for number in range(4)]
    with FaultyServer(replayed) as first, FaultyServer(replayed) as second:
        engine = HttpEngine(MODEL, [first.url, second.url], retry_policy=HASTY)

        def noting(index: int) -> Callable[..., None]:
            def note(_: int, path: str, body: dict[str, Any] | None) -> None:
                if path == CHAT and body is not None:
                    places.setdefault(body["messages"][0]["content"][-1]["text"][0], set()).add(index)

            return note

        first.plan, second.plan = noting(0), noting(1)
        assert all(isinstance(result, Proposed) for result in engine.propose_batch(asked, 2))
        engine.close()
    assert sorted(map(len, places.values())) == [1, 1, 1, 1]
    assert set.union(*places.values()) == {0, 1}
