"""The HTTP engine behind chat templates that do not let an assistant's turn be continued just so."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from PIL import Image

import chat_templates
from faulty_server import FaultyServer
from lying_server import OpenThinking, OtherTemplate
from replayed_vllm import MODEL, ReplayedVllm
from served_engines import CHAT, HASTY, LONG, QUESTION, SHORT, assert_right, served
from unprior import UnpriorError
from unprior.engines.candidate_tree import branch_points
from unprior.engines.load import load_engine
from unprior.engines.openai.engine import HttpEngine
from unprior.engines.protocol import CandidateScores, Query, QueryFailure
from unprior.engines.transformers.engine import TransformersEngine
from unprior.prompts import PromptLayout

MANY_TOKENS = (" seventeen zebras", " seventeen", " seventeenth", " seven cats", " no")


@pytest.fixture(scope="module")
def with_template(
    model_folder: Callable[[str], Path], tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str], TransformersEngine]:
    loaded: dict[str, TransformersEngine] = {}

    def load(template: str) -> TransformersEngine:
        if template not in loaded:
            folder = tmp_path_factory.mktemp("template")
            chat_templates.with_template(model_folder("llava"), template, folder)
            loaded[template] = TransformersEngine(folder, device="cpu")
        return loaded[template]

    return load


def test_what_a_template_changes_in_an_answer_goes_on_after_the_question(
    with_template: Callable[[str], TransformersEngine], images: list[Image.Image]
) -> None:
    truth = with_template(chat_templates.TRIMMING)
    queries = [Query(image, QUESTION, asked) for image in (images[0], None) for asked in (SHORT, MANY_TOKENS)]
    assert max(truth.score_candidates(None, QUESTION, MANY_TOKENS).token_counts) > 3
    with served(ReplayedVllm(truth)) as (engine, server):
        assert not any("thinking block" in remark for remark in engine.remarks)
        results = engine.score_batch(queries)
        assert_right(truth, queries, results)
        before = server.paths.copy()
        engine.score_batch(queries)
        assert set(server.paths - before) == {CHAT}  # how the template behaves is not asked again


def test_a_template_that_leaves_words_as_they_are_needs_no_remark(llava: TransformersEngine) -> None:
    with served(ReplayedVllm(llava)) as (engine, _):
        assert engine.remarks == ()


@pytest.mark.parametrize("tells_prompt", [True, False])
def test_servers_with_top_tokens_only_read_behind_the_right_beginning(
    with_template: Callable[[str], TransformersEngine], images: list[Image.Image], tells_prompt: bool
) -> None:
    truth = with_template(chat_templates.TRIMMING)
    replayed = ReplayedVllm(truth, named=False, tells_prompt=tells_prompt)
    with served(replayed) as (engine, _):
        assert engine.capabilities.top_k == 20
        seen = 0
        for image in (images[0], None):
            candidates = (*likely_pairs(replayed, image), " seventeen zebras", " no")
            exact = truth.score_candidates(image, QUESTION, candidates)
            scored = engine.score_candidates(image, QUESTION, candidates)
            assert scored.token_counts == exact.token_counts
            assert scored.censored is not None
            for value, right, hidden in zip(scored.scores, exact.scores, scored.censored, strict=True):
                assert value > right - 1e-4 if hidden else value == pytest.approx(right, abs=1e-4)
            seen += sum(
                count > 1 and not hidden for count, hidden in zip(exact.token_counts, scored.censored, strict=True)
            )
        assert seen > 2  # candidates of several tokens that are exact


def likely_pairs(replayed: ReplayedVllm, image: Image.Image | None) -> tuple[str, ...]:
    """Candidates of two tokens that are among the most probable ones, one after the other."""
    engine = replayed.engine
    tokenizer, prompt = engine.encoder.tokenizer, engine.encoder.encode(Query(image, QUESTION, ())).scoring_text
    pairs = []
    for first in map(int, next_tokens(engine, image, prompt).topk(20).indices):
        start = tokenizer.decode([first])
        second = int(next_tokens(engine, image, prompt + start).argmax())
        text = start + tokenizer.decode([second])
        if start.startswith(" ") and tokenizer(text, add_special_tokens=False)["input_ids"] == [first, second]:
            pairs.append(text)
    return tuple(pairs)


def next_tokens(engine: TransformersEngine, image: Image.Image | None, text: str) -> Any:
    if image is not None:
        inputs = engine.encoder.inputs([text], [image])
    else:
        ids = torch.tensor([engine.encoder.tokenize(text)])
        inputs = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
    return engine.reader.read(inputs, keep=1).logits[0, -1]


@pytest.mark.parametrize("named", [True, False])
def test_probabilities_after_a_request_s_own_rule_are_noticed(
    with_template: Callable[[str], TransformersEngine], named: bool
) -> None:
    truth, candidates = with_template(chat_templates.TRIMMING), (" seventeen zebras", " no")
    exact = truth.score_candidates(None, QUESTION, candidates).scores
    with served(ReplayedVllm(truth, named=named, processed=True)) as (engine, _):
        scored, one_token = engine.score_batch([Query(None, QUESTION, asked) for asked in (candidates, SHORT)])
    assert isinstance(one_token, CandidateScores)
    if named:
        assert isinstance(scored, QueryFailure)
        assert "a wrong answer: " in scored.reason
    else:
        assert isinstance(scored, CandidateScores)
        assert scored.censored is not None
        for value, right, hidden in zip(scored.scores, exact, scored.censored, strict=True):
            assert value > right - 1e-4 if hidden else value == pytest.approx(right, abs=1e-4)


@pytest.mark.parametrize("failing", [400, 500])
def test_a_template_that_fails_on_answers_costs_no_row(
    with_template: Callable[[str], TransformersEngine], images: list[Image.Image], failing: int
) -> None:
    truth = with_template(chat_templates.WORDS_ONLY)
    queries = [Query(image, QUESTION, asked) for image in (images[0], None) for asked in (SHORT, LONG)]
    with served(ReplayedVllm(truth, parts=True, failing=failing)) as (engine, _):
        assert_right(truth, queries, engine.answer_batch(queries))


def test_a_template_that_acts_otherwise_with_an_image_is_noticed(
    llava: TransformersEngine, with_template: Callable[[str], TransformersEngine], images: list[Image.Image]
) -> None:
    behind_image = chat_templates.TRIMMING
    without = behind_image.replace(" | trim", "")
    truth = with_template(without)
    trimming = ReplayedVllm(with_template(behind_image))
    plain = ReplayedVllm(truth)
    candidates = (" seventeen", " seventeenth", " no")
    queries = [Query(image, QUESTION, candidates) for image in (images[0], images[1], None)]
    tokens = [tuple(found) for found in truth.encoder.encode(queries[-1]).candidates]
    with served(lambda path, body: (trimming if "image_url" in str(body) else plain)(path, body)) as (engine, server):
        assert engine.remarks == ()
        assert_right(truth, queries[:1], engine.score_batch(queries[:1]))
        before = server.paths[CHAT]
        engine.score_batch(queries[1:2])
        assert server.paths[CHAT] - before == len(branch_points(tokens))  # none in vain
        assert_right(truth, queries, engine.score_batch(queries))


def test_a_thinking_block_is_left_out_where_the_template_can(
    with_template: Callable[[str], TransformersEngine],
) -> None:
    truth = with_template(chat_templates.HYBRID)
    with served(ReplayedVllm(truth)) as (engine, server):
        assert engine.served.opened_block == ""
        bodies = []
        server.plan = lambda _number, _path, body: bodies.append(body)
        engine.score_candidates(None, QUESTION, SHORT)
        assert all(body["chat_template_kwargs"]["enable_thinking"] is False for body in bodies if "messages" in body)
        assert engine.prompt_as_read(None, QUESTION).endswith("<think>\n\n</think>\n\n")


def test_a_template_that_closes_a_block_only_when_told_is_told_as_in_process(
    with_template: Callable[[str], TransformersEngine],
) -> None:
    truth = with_template(chat_templates.CLOSING)
    with served(ReplayedVllm(truth)) as (engine, _):
        assert engine.prompt_as_read(None, QUESTION).endswith(truth.encoder.render(False, QUESTION))
        assert engine.identity["prompt"] == truth.identity["prompt"]


def test_a_system_message_opens_every_conversation(model_folder: Callable[[str], Path]) -> None:
    layout = PromptLayout(system="Look closely.")
    truth = TransformersEngine(model_folder("qwen3_vl"), device="cpu", layout=layout)
    with FaultyServer(ReplayedVllm(truth)) as server:
        engine = HttpEngine(MODEL, [server.url], retry_policy=HASTY, layout=layout)
        assert engine.prompt_as_read(None, QUESTION) == truth.encoder.render(False, QUESTION)
        assert_right(truth, [Query(None, QUESTION, LONG)], engine.score_batch([Query(None, QUESTION, LONG)]))


def test_prompts_of_a_server_are_checked_at_load(llava: TransformersEngine) -> None:
    with FaultyServer(OtherTemplate(llava)) as server:
        with pytest.raises(UnpriorError, match="where it writes 'Today is 26 Jul 2024"):
            load_engine(MODEL, engine="openai", base_urls=[server.url])
        load_engine(MODEL, engine="openai", base_urls=[server.url], permissive=True)


def test_a_server_passes_on_what_the_template_is_told(model_folder: Callable[[str], Path], tmp_path: Path) -> None:
    folder, told = (
        chat_templates.with_template(model_folder("llava"), chat_templates.STYLED, tmp_path),
        {"style": "short"},
    )
    truth = TransformersEngine(folder, device="cpu", template_arguments=told)
    with FaultyServer(ReplayedVllm(truth)) as server:
        plain = HttpEngine(MODEL, [server.url], retry_policy=HASTY)
        styled = HttpEngine(MODEL, [server.url], retry_policy=HASTY, template_arguments=told)
        assert styled.prompt_as_read(None, QUESTION).endswith("assistant:\n[short] ")
        assert_right(truth, [Query(None, QUESTION, LONG)], styled.score_batch([Query(None, QUESTION, LONG)]))
        assert styled.fingerprint != plain.fingerprint
        assert "template_arguments" not in plain.identity  # so that results of earlier runs are found


def test_a_server_whose_thinking_block_stays_open_is_refused(llava: TransformersEngine) -> None:
    with FaultyServer(OpenThinking(llava)) as server:
        with pytest.raises(UnpriorError, match=r"opens a thinking block \(<think>\).*--template-arg.*--chat-template"):
            load_engine(MODEL, engine="openai", base_urls=[server.url])
        assert load_engine(MODEL, engine="openai", base_urls=[server.url], permissive=True).name == MODEL


def test_template_arguments_that_nobody_can_check_are_refused(llava: TransformersEngine) -> None:
    with (
        FaultyServer(ReplayedVllm(llava, named=False, tokenizes=False)) as server,
        pytest.raises(UnpriorError, match="passes template arguments on"),
    ):
        load_engine(MODEL, engine="openai", base_urls=[server.url], template_args=["style=short"])


def test_the_fingerprint_changes_with_the_chat_template(
    with_template: Callable[[str], TransformersEngine], llava: TransformersEngine
) -> None:
    identities, prints = [], []
    for template in (chat_templates.TRIMMING, chat_templates.TRIMMING.replace("assistant:", "model:")):
        with served(ReplayedVllm(with_template(template))) as (engine, _):
            identities.append(engine.identity)
            prints.append(engine.fingerprint)
    assert prints[0] != prints[1]
    assert [key for key in identities[0] if identities[0][key] != identities[1][key]] == ["prompt"]
    other = FaultyServer(ReplayedVllm(with_template(chat_templates.TRIMMING)))
    with FaultyServer(ReplayedVllm(llava)) as first, other as second, pytest.raises(UnpriorError, match="lay out"):
        HttpEngine(MODEL, [first.url, second.url], retry_policy=HASTY)
