"""Answers in the model's own words, and scores of whole answers, against plain full passes."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import torch
from PIL import Image

import tiny_models
from unprior import UnpriorError
from unprior.engines.protocol import Answered, CandidateScores, Proposed, ProposingEngine, Query, QueryFailure
from unprior.engines.transformers import proposals
from unprior.engines.transformers.engine import TransformersEngine
from unprior.engines.transformers.forward import Reader
from unprior.engines.transformers.levels import LEVELS

QUESTIONS = (
    "How many fingers does the hand have?\nAnswer with a short phrase.",
    "Look at the image and count the legs of the animal. How many legs are there?\nAnswer with a short phrase.",
)
KINDS = (
    "llava",  # a plain cache
    "gemma3",  # a sliding window
    "qwen3_5",  # recurrent layers, which write into their state
    "qwen3_vl",  # positions that depend on the image
    "mllama",  # cross-attention
    "llama4",  # shared, one example at a time
    "paligemma",  # whole prompts
    "granite4_vision",  # full passes
)
SHORT = 3
"""Longest answer of most searches: random models hardly ever end."""

pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation doesn't accept a copy:DeprecationWarning")


@pytest.fixture(autouse=True)
def _short_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proposals, "MAX_ANSWER_TOKENS", SHORT)


@pytest.fixture(scope="module", params=KINDS)
def kind(request: pytest.FixtureRequest, model_folder: Callable[[str], Path]) -> TransformersEngine:
    missing = tiny_models.REGISTRY[request.param].missing()
    if missing:
        pytest.skip(f"the processor of {request.param} needs {' and '.join(missing)}")
    return TransformersEngine(model_folder(request.param), device="cpu", max_new_tokens=4)


@contextmanager
def at_level(engine: TransformersEngine, level: Any) -> Iterator[None]:
    before, engine.level = engine.level, level
    try:
        yield
    finally:
        engine.level = before


def proposed(engine: TransformersEngine, queries: list[Query], count: int = 4) -> list[Proposed]:
    results = engine.propose_batch(queries, count)
    for result in results:
        assert isinstance(result, Proposed), result
    return results  # type: ignore[return-value]


def check_equal(one: Proposed, other: Proposed) -> None:
    assert one.text == other.text
    assert one.candidates == other.candidates
    assert one.scored.scores == pytest.approx(other.scored.scores, abs=1e-4)
    assert one.scored.token_counts == other.scored.token_counts


def first_tokens(engine: TransformersEngine, words: tuple[str, ...]) -> list[int]:
    tokens = [engine.encoder.tokenizer(word, add_special_tokens=False)["input_ids"] for word in words]
    assert all(len(each) == 1 for each in tokens)
    return [each[0] for each in tokens]


def test_every_kind_of_model_proposes_exactly(kind: TransformersEngine, images: list[Image.Image]) -> None:
    """In a ragged batch and alone; scores are those of plain full passes, and an image is encoded once."""
    queries = [Query(image, text, (" six fingers",)) for image, text in zip(images, QUESTIONS, strict=False)]
    before = kind.encoded_images
    results = proposed(kind, queries)
    assert kind.encoded_images - before == len(queries)
    for query, result in zip(queries, results, strict=True):
        assert result.candidates[0] == " six fingers"
        assert len(result.candidates) == len(set(result.candidates)) > 2
        assert result.text == kind.original_answer(query.image, query.text)
        full = kind.score_in_full(Query(query.image, query.text, result.candidates, whole=True))
        assert result.scored.scores == pytest.approx(full.scores, abs=1e-4)
        assert result.scored.token_counts == full.token_counts
        check_equal(result, proposed(kind, [query])[0])


def test_every_kind_of_model_proposes_without_an_image(kind: TransformersEngine) -> None:
    queries = [Query(None, text, ()) for text in QUESTIONS]
    for query, result in zip(queries, proposed(kind, queries), strict=True):
        assert result.text is None
        assert len(result.candidates) == 4
        assert list(result.scored.scores) == sorted(result.scored.scores, reverse=True)
        asked = Query(None, query.text, result.candidates, whole=True)
        both_ways = kind.level.name == "whole prompts"  # full passes would read the answer like a part of the prompt
        scored = kind.score_batch([asked])[0] if both_ways else kind.score_in_full(asked)
        assert isinstance(scored, CandidateScores)
        assert result.scored.scores == pytest.approx(scored.scores, abs=1e-4)
        check_equal(result, proposed(kind, [query])[0])


@pytest.mark.parametrize("architecture", ["llava", "qwen3_5"])
def test_the_best_answers_are_those_of_exhaustive_enumeration(
    architecture: str, model_folder: Callable[[str], Path], images: list[Image.Image], monkeypatch: pytest.MonkeyPatch
) -> None:
    """All answers of up to three of three words, by one full pass each."""
    engine = TransformersEngine(model_folder(architecture), device="cpu", max_new_tokens=4)
    words = (" A", " yes", " five")
    usable = first_tokens(engine, words)
    monkeypatch.setattr(engine, "_answer_tokens", [token in usable for token in range(len(engine.encoder.tokenizer))])
    answers = tuple("".join(each) for length in (1, 2, 3) for each in itertools.product(words, repeat=length))
    count = len(words) ** SHORT
    for image in (images[1], None):
        result = proposed(engine, [Query(image, QUESTIONS[0], ())], count)[0]
        scores = engine.score_in_full(Query(image, QUESTIONS[0], answers, whole=True)).scores
        best = sorted(zip(scores, answers, strict=True), reverse=True)[:count]
        start = len(result.candidates) - count  # behind the original answer
        assert result.candidates[start:] == tuple(answer for _, answer in best)
        assert result.scored.scores[start:] == pytest.approx([score for score, _ in best], abs=1e-4)


def test_all_levels_agree(llava: TransformersEngine, images: list[Image.Image]) -> None:
    for image in (images[0], None):
        queries = [Query(image, text, (" B", " yes")) for text in QUESTIONS]
        results = {}
        for level in LEVELS:
            with at_level(llava, level):
                results[level.name] = proposed(llava, queries)
        first = results[LEVELS[0].name]
        for others in results.values():
            for one, other in zip(first, others, strict=True):
                check_equal(one, other)


def test_the_end_is_part_of_a_whole_answer(llava: TransformersEngine, images: list[Image.Image]) -> None:
    """At every level: the score of an answer is that of its words, and then that of the end token."""
    encoder, candidates = llava.encoder, (" A", " elephant")
    for image in (images[0], None):
        prompt = encoder.encode(Query(image, QUESTIONS[0], candidates))
        inputs = encoder.inputs([prompt.scoring_text], [image])
        expected = []
        for tokens in prompt.candidates:
            read = llava.reader.read(llava.reader.with_tail(inputs, torch.tensor([tokens])), cached=False)
            ends = float(torch.log_softmax(read.logits[0, -1], dim=-1)[encoder.end])
            alone = llava.score_in_full(Query(image, QUESTIONS[0], candidates)).scores[len(expected)]
            expected.append(alone + ends)
        query = Query(image, QUESTIONS[0], candidates, whole=True)
        counts = tuple(len(tokens) + 1 for tokens in prompt.candidates)
        for level in LEVELS:
            with at_level(llava, level):
                scored = llava.score_candidates(image, QUESTIONS[0], candidates, whole=True)
                answered = llava.answer_batch([query])[0]
            assert isinstance(answered, Answered)
            for each in (scored, answered.scored):
                assert each.scores == pytest.approx(expected, abs=1e-4)
                assert each.token_counts == counts
    assert llava.score_candidates(None, QUESTIONS[0], candidates).token_counts == tuple(n - 1 for n in counts)


def test_the_end_is_the_token_that_the_template_writes(model_folder: Callable[[str], Path]) -> None:
    engine = TransformersEngine(model_folder("qwen3_vl"), device="cpu", self_test=False)
    encoder, known = engine.encoder, engine.encoder.tokenizer.convert_tokens_to_ids
    closing, other, another = known("<|im_end|>"), known("<|vision_start|>"), known("<|vision_end|>")
    assert encoder.template.behind_answer() == "<|im_end|>\n"
    assert encoder.end == closing
    encoder.choose_end([other, closing])
    assert encoder.end == closing
    encoder.choose_end([another, other])
    assert encoder.end == another
    encoder.choose_end([])
    results = engine.propose_batch([Query(None, QUESTIONS[0], ())], 2)
    assert isinstance(results[0], QueryFailure)
    assert "eos_token_id in generation_config.json" in results[0].reason


def test_an_answer_is_found_by_any_end_and_scored_with_the_usual_one(
    llava: TransformersEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A word that random models often write ends answers, too; it is no part of them any more."""
    query = Query(None, QUESTIONS[0], ())
    usual = proposed(llava, [query], 8)[0]
    word = llava.encoder.tokenizer(usual.candidates[0], add_special_tokens=False)["input_ids"][-1]
    monkeypatch.setattr(llava, "stop_tokens", {*llava.stop_tokens, word})
    result = proposed(llava, [query], 8)[0]
    full = llava.score_in_full(Query(None, QUESTIONS[0], result.candidates, whole=True))
    assert result.scored.scores == pytest.approx(full.scores, abs=1e-4)
    tokens = [llava.encoder.tokenizer(text, add_special_tokens=False)["input_ids"] for text in result.candidates]
    assert all(word not in each for each in tokens)
    assert result.candidates != usual.candidates


def test_the_original_answer_and_own_candidates_are_scored_once(
    llava: TransformersEngine, images: list[Image.Image]
) -> None:
    bare = proposed(llava, [Query(images[0], QUESTIONS[0], ())])[0]
    own = (bare.candidates[1], " six", bare.candidates[1])
    result = proposed(llava, [Query(images[0], QUESTIONS[0], own)])[0]
    assert result.candidates == (bare.candidates[1], " six", bare.candidates[0], *bare.candidates[2:])
    assert result.text == bare.text
    assert result.candidates[2].strip() in (result.text or "")


def test_a_beam_that_was_scored_is_not_read_again(
    llava: TransformersEngine, images: list[Image.Image], monkeypatch: pytest.MonkeyPatch
) -> None:
    """With whole words of one token each, every beam has the usual tokens of its text."""
    usable = first_tokens(llava, (" A", " B", " yes", " no", " five", " dog"))
    monkeypatch.setattr(llava, "_answer_tokens", [token in usable for token in range(640)])
    monkeypatch.setattr(proposals, "MAX_ANSWER_TOKENS", 2)
    monkeypatch.setattr(llava, "max_new_tokens", 1)
    first = proposed(llava, [Query(None, QUESTIONS[0], ())], 5)[0]
    before = llava.reader.passes
    assert proposed(llava, [Query(None, QUESTIONS[0], first.candidates)], 5)[0] == first
    assert llava.reader.passes - before == 1 + 5 + 5  # the prompt, and two steps
    before = llava.reader.passes
    result = proposed(llava, [Query(images[0], QUESTIONS[0], ())], 5)[0]
    assert len(result.candidates) == 6
    # What both prompts share, their ends, two steps, and the original answer.
    assert llava.reader.passes - before == 1 + 2 + 5 + 5 + 1


def test_control_tokens_are_never_proposed(llava: TransformersEngine) -> None:
    usable, known = llava._answer_tokens, llava.encoder.tokenizer
    assert not any(usable[token] for token in known.all_special_ids)
    assert not usable[llava.encoder.placeholder]
    assert usable[first_tokens(llava, (" five",))[0]]


@pytest.mark.parametrize("text", ["", "  \n", "<think>", "yes</think>", "caf\N{REPLACEMENT CHARACTER}", "a <image>"])
def test_what_is_no_answer_is_dropped(
    llava: TransformersEngine, images: list[Image.Image], monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    """If that is all that the model writes, the query has its own candidates, and the answer is still told."""
    prompt = llava.encoder.encode(Query(images[0], QUESTIONS[0], ()))
    assert llava.encoder.whole_answer(prompt, text, []) is None
    monkeypatch.setattr(llava.encoder.tokenizer, "decode", lambda *_, **__: text)
    result = proposed(llava, [Query(images[0], QUESTIONS[0], (" A",))])[0]
    assert result.text == text
    assert result.candidates == (" A",)


def test_a_space_that_decoding_loses_is_put_back(llava: TransformersEngine) -> None:
    encoder = llava.encoder
    prompt = encoder.encode(Query(None, QUESTIONS[0], ()))
    written = encoder.tokenizer(" five legs", add_special_tokens=False)["input_ids"]
    assert encoder.whole_answer(prompt, "five legs", written) == (" five legs", [*written, encoder.end])
    assert encoder.whole_answer(prompt, " five legs", written) == (" five legs", [*written, encoder.end])
    other = encoder.tokenizer("five legs", add_special_tokens=False)["input_ids"]
    assert encoder.whole_answer(prompt, "five legs", other) == ("five legs", [*other, encoder.end])


def test_a_text_with_unusual_tokens_is_scored_with_its_usual_ones(
    llava: TransformersEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only single letters may be written, so every word is spelled; the prior would be scored on its usual tokens."""
    letters = [token for token, name in enumerate(llava.encoder.tokenizer.convert_ids_to_tokens(range(640)))
               if len(name) == 1 and name.isalpha() and name.isascii()]  # fmt: skip
    monkeypatch.setattr(llava, "_answer_tokens", [token in letters for token in range(640)])
    result = proposed(llava, [Query(None, QUESTIONS[0], ())], 40)[0]
    full = llava.score_in_full(Query(None, QUESTIONS[0], result.candidates, whole=True))
    assert result.scored.token_counts == full.token_counts
    assert any(count < 1 + len(text) for count, text in zip(full.token_counts, result.candidates, strict=True))
    assert result.scored.scores == pytest.approx(full.scores, abs=1e-4)
    assert list(result.scored.scores) == sorted(result.scored.scores, reverse=True)


def test_one_bad_query_does_not_spoil_the_others(llava: TransformersEngine, images: list[Image.Image]) -> None:
    good = Query(images[0], QUESTIONS[0], ())
    results = llava.propose_batch([good, Query(images[0], "What is <image>?", ()), good, Query(None, "?", ("",))], 3)
    assert [type(result) for result in results] == [Proposed, QueryFailure, Proposed, QueryFailure]
    for count in (0, "three"):
        with pytest.raises(UnpriorError, match="count"):
            llava.propose_batch([good], count)  # type: ignore[arg-type]


def test_a_long_prompt_leaves_less_room_for_answers(llava: TransformersEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beams end at the last position of the model, also beside a prompt that is shorter."""
    queries = [Query(None, text, ()) for text in QUESTIONS]
    lengths = [llava.encoder.length(llava.encoder.encode(query)) for query in queries]
    assert lengths[0] < lengths[1]
    free = proposed(llava, queries[:1])[0]
    monkeypatch.setattr(llava.reader, "_most_tokens", lengths[1] + 1)
    results = proposed(llava, queries)
    check_equal(results[0], free)
    assert max(results[1].scored.token_counts) <= 2


def test_searches_are_bounded_and_forget_nothing(
    llava: TransformersEngine, images: list[Image.Image], monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes = []
    own = Reader.follow

    def counted(self: Reader, branch: Any, ids: Any, *arguments: Any, **options: Any) -> Any:
        sizes.append(len(ids))
        return own(self, branch, ids, *arguments, **options)

    monkeypatch.setattr(Reader, "follow", counted)
    proposed(llava, [Query(image, QUESTIONS[0], ()) for image in images[:3]], 4)
    assert max(sizes) == 3 * 4


def test_it_says_that_it_proposes(llava: TransformersEngine) -> None:
    assert isinstance(llava, ProposingEngine)
    assert llava.capabilities.proposes


def test_the_embedded_model_proposes_answers(images: list[Image.Image], monkeypatch: pytest.MonkeyPatch) -> None:
    from unprior.engines.load import load_engine

    monkeypatch.setattr(proposals, "MAX_ANSWER_TOKENS", 24)
    engine = load_engine("embedded")
    assert isinstance(engine, TransformersEngine)
    query = Query(images[3], "Is there a cat in the image?\nAnswer with yes or no.", ())
    image, text = (proposed(engine, [each], 6)[0] for each in (query, Query(None, query.text, ())))
    assert {" yes", " no"} <= {*image.candidates, *text.candidates}
    for result, shown in ((image, query.image), (text, None)):
        full = engine.score_in_full(Query(shown, query.text, result.candidates, whole=True))
        assert isinstance(full, CandidateScores)
        assert result.scored.scores == pytest.approx(full.scores, abs=1e-4)
