"""Every shortcut of the engine against plain full passes through the official path of the library."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from PIL import Image

from engine_fixtures import official_inputs
from unprior import UnpriorError
from unprior.engines.protocol import Answered, CandidateScores, Engine, Query, QueryFailure
from unprior.engines.transformers import forward as _forward
from unprior.engines.transformers import loading as _loading
from unprior.engines.transformers.cache_fork import CacheForks
from unprior.engines.transformers.engine import TransformersEngine
from unprior.engines.transformers.levels import LEVELS
from unprior.engines.transformers.loading import load_processor
from unprior.engines.transformers.self_test import SelfTest, Trial
from unprior.engines.transformers.source import Source
from unprior.engines.transformers.tokens import PromptEncoder
from unprior.prompts import PromptLayout, is_cut_off, parse_answer

# One, two and five tokens in the test tokenizer.
CANDIDATES = (" A", " thirteen", " elephant")
QUESTIONS = (
    "How many fingers does the hand have?\nA. five\nB. six\nAnswer with a single letter (A or B).",
    "Is it red?\nAnswer with yes or no.",
    "Look at the image and count the legs of the animal. How many legs are there?\nAnswer with one number.",
)


@torch.inference_mode()
def brute_force(engine: TransformersEngine, image: Image.Image | None, text: str, candidate: str) -> float:
    """One whole pass over prompt and candidate, no cache, no padding, the library's own positions."""
    inputs = official_inputs(engine, image, text + "\nFinal answer:")
    tail = torch.tensor([engine.encoder.tokenizer(candidate, add_special_tokens=False)["input_ids"]])
    length = tail.shape[1]
    inputs["input_ids"] = torch.cat([inputs["input_ids"], tail], dim=1)
    inputs["attention_mask"] = torch.ones_like(inputs["input_ids"])
    if "mm_token_type_ids" in inputs:
        zeros = torch.zeros_like(tail)
        inputs["mm_token_type_ids"] = torch.cat([inputs["mm_token_type_ids"], zeros], dim=1)
    if hasattr(engine.model.model, "rope_deltas"):
        engine.model.model.rope_deltas = None
    logits = engine.model(**inputs, use_cache=False).logits[0].float()
    distribution = torch.log_softmax(logits[-length - 1 : -1], dim=-1)
    return float(distribution.gather(1, tail.T).sum())


def expected_scores(engine: TransformersEngine, image: Image.Image | None, text: str) -> list[float]:
    return [brute_force(engine, image, text, candidate) for candidate in CANDIDATES]


def queries_with(images: list[Image.Image]) -> list[Query]:
    return [Query(image, text, CANDIDATES) for image, text in zip(images, QUESTIONS, strict=False)]


def test_it_is_an_engine_that_shares_prefixes(engine: TransformersEngine) -> None:
    assert isinstance(engine, Engine)
    assert engine.shares_prefix
    assert engine.capabilities.exact_scores


def test_a_ragged_batch_equals_full_passes(engine: TransformersEngine, images: list[Image.Image]) -> None:
    results = engine.answer_batch(queries_with(images))
    for result, image, text in zip(results, images, QUESTIONS, strict=False):
        assert isinstance(result, Answered)
        assert result.scored.token_counts[0] == 1
        assert max(result.scored.token_counts) >= 4
        assert result.scored.scores == pytest.approx(expected_scores(engine, image, text), abs=1e-4)


def test_images_and_no_images_in_turn_do_not_disturb_each_other(
    engine: TransformersEngine, images: list[Image.Image]
) -> None:
    text = QUESTIONS[0]
    for image in (images[1], None, images[2], None, None, images[1]):
        scored = engine.score_candidates(image, text, CANDIDATES)
        assert scored.scores == pytest.approx(expected_scores(engine, image, text), abs=1e-4)


def test_a_batch_without_images_equals_full_passes(engine: TransformersEngine) -> None:
    results = engine.score_batch([Query(None, text, CANDIDATES) for text in QUESTIONS])
    for result, text in zip(results, QUESTIONS, strict=True):
        assert isinstance(result, CandidateScores)
        assert result.scores == pytest.approx(expected_scores(engine, None, text), abs=1e-4)


def test_images_matter(engine: TransformersEngine, images: list[Image.Image]) -> None:
    """Otherwise the equalities above would prove little."""
    scores = [engine.score_candidates(image, QUESTIONS[0], CANDIDATES).scores for image in (*images[:2], None)]
    for first, second in ((0, 1), (1, 2), (0, 2)):
        assert max(abs(a - b) for a, b in zip(scores[first], scores[second], strict=True)) > 0.05


@pytest.fixture
def _long_answers(engine: TransformersEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "max_new_tokens", 64)


@pytest.mark.usefixtures("_long_answers")
def test_the_original_answer_is_what_generate_writes(engine: TransformersEngine, images: list[Image.Image]) -> None:
    for image, text in ((images[0], QUESTIONS[0]), (images[1], QUESTIONS[1]), (None, QUESTIONS[2])):
        inputs = official_inputs(engine, image, text)
        if hasattr(engine.model.model, "rope_deltas"):
            engine.model.model.rope_deltas = None
        generated = engine.model.generate(**inputs, max_new_tokens=64, do_sample=False)
        expected = generated[0, inputs["input_ids"].shape[1] :]
        text_written = engine.encoder.tokenizer.decode(expected, skip_special_tokens=True)
        assert engine.original_answer(image, text) == text_written


def test_batch_size_changes_nothing(engine: TransformersEngine, images: list[Image.Image]) -> None:
    queries = [Query(images[index % 4], QUESTIONS[index % 3], CANDIDATES) for index in range(8)]
    together = engine.answer_batch(queries)
    for query, result in zip(queries, together, strict=True):
        alone = engine.answer_batch([query])[0]
        assert isinstance(result, Answered)
        assert isinstance(alone, Answered)
        assert result.text == alone.text
        assert result.scored.scores == pytest.approx(alone.scored.scores, abs=1e-4)


def test_every_image_is_encoded_once(engine: TransformersEngine, images: list[Image.Image]) -> None:
    before = engine.encoded_images
    engine.answer_batch(queries_with(images))
    engine.score_batch([Query(None, text, CANDIDATES) for text in QUESTIONS])
    assert engine.encoded_images - before == len(QUESTIONS)


def test_one_bad_query_does_not_spoil_the_others(llava: TransformersEngine, images: list[Image.Image]) -> None:
    good = Query(images[0], QUESTIONS[0], CANDIDATES)
    results = llava.answer_batch([good, Query(images[0], QUESTIONS[1], (" A", "")), good])
    assert isinstance(results[0], Answered)
    assert results[1] == QueryFailure("candidate '' tokenises to nothing")
    assert isinstance(results[2], Answered)
    with pytest.raises(UnpriorError, match="tokenises to nothing"):
        llava.score_candidates(None, "What?", ["", " A"])


def test_a_batch_is_halved_when_memory_runs_out(
    llava: TransformersEngine, images: list[Image.Image], monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes: list[int] = []
    work = TransformersEngine._answer

    def short_of_memory(self: TransformersEngine, prompts: list[Any]) -> list[Answered]:
        sizes.append(len(prompts))
        if len(prompts) > 2 or any(len(prompt.original_text) > 400 for prompt in prompts):
            raise torch.OutOfMemoryError("CUDA out of memory")
        return work(self, prompts)

    queries = [Query(images[0], QUESTIONS[1], CANDIDATES)] * 5
    expected = llava.answer_batch(queries)
    monkeypatch.setattr(TransformersEngine, "_answer", short_of_memory)
    assert [result.text for result in llava.answer_batch(queries)] == [result.text for result in expected]
    assert sizes == [5, 2, 3, 1, 2]
    long = Query(images[0], "word " * 80, CANDIDATES)
    results = llava.answer_batch([queries[0], long])
    assert isinstance(results[0], Answered)
    assert results[1] == QueryFailure("out of memory, even alone")


def test_an_image_that_the_model_refuses_fails_alone(
    model_folder: Callable[[str], Path], images: list[Image.Image]
) -> None:
    engine = TransformersEngine(model_folder("qwen3_vl"), device="cpu", self_test=False)
    thin = Query(Image.new("RGB", (1, 900)), QUESTIONS[1], CANDIDATES)
    dot = Query(Image.new("RGB", (1, 1)), QUESTIONS[1], CANDIDATES)
    results = engine.answer_batch([Query(images[0], QUESTIONS[1], CANDIDATES), thin, dot])
    assert [type(result) for result in results] == [Answered, QueryFailure, Answered]
    assert isinstance(results[1], QueryFailure)
    assert "aspect ratio" in results[1].reason


def test_whatever_goes_wrong_with_one_query_is_its_own_failure(
    llava: TransformersEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    work = TransformersEngine._score

    def touchy(self: TransformersEngine, prompts: list[Any]) -> list[CandidateScores]:
        if any("red" in prompt.scoring_text for prompt in prompts):
            raise RuntimeError("shapes do not match")
        return work(self, prompts)

    monkeypatch.setattr(TransformersEngine, "_score", touchy)
    results = llava.score_batch([Query(None, text, CANDIDATES) for text in QUESTIONS])
    assert [type(result) for result in results] == [CandidateScores, QueryFailure, CandidateScores]
    assert results[1] == QueryFailure("RuntimeError: shapes do not match")


def test_a_question_may_not_contain_the_image_placeholder(
    engine: TransformersEngine, images: list[Image.Image]
) -> None:
    token = engine.encoder.tokenizer.convert_ids_to_tokens(engine.encoder.placeholder)
    good, bad = (Query(images[0], text, CANDIDATES) for text in (QUESTIONS[1], f"What does {token} mean?"))
    results = engine.answer_batch([good, bad])
    assert isinstance(results[0], Answered)
    assert isinstance(results[1], QueryFailure)
    assert f"the question contains {token}, which this model reads as a control token" in results[1].reason


@pytest.mark.usefixtures("_long_answers")
def test_answers_stop_where_generate_stops(engine: TransformersEngine, images: list[Image.Image]) -> None:
    """Random models hardly ever stop, so a token that they do write is made the end of the answer."""
    expected, queries = [], [Query(images[index], QUESTIONS[index], CANDIDATES) for index in (0, 1)]
    before, configured = engine.stop_tokens, engine.model.generation_config.eos_token_id
    prompt = engine.encoder.encode(queries[0])
    stop = engine.scorer.answer(LEVELS[-1], [prompt], set(), 4)[0].tokens[3]
    engine.stop_tokens = {stop}
    engine.model.generation_config.eos_token_id = stop
    try:
        for query in queries:
            inputs = official_inputs(engine, query.image, query.text)
            if hasattr(engine.model.model, "rope_deltas"):
                engine.model.model.rope_deltas = None
            generated = engine.model.generate(**inputs, max_new_tokens=64, do_sample=False)
            written = [token for token in generated[0, inputs["input_ids"].shape[1] :].tolist() if token != stop]
            expected.append(engine.encoder.tokenizer.decode(written, skip_special_tokens=True))
        together = [result.text for result in engine.answer_batch(queries) if isinstance(result, Answered)]
        assert together == expected
        assert [engine.original_answer(query.image, query.text) for query in queries] == expected
        assert all(len(engine.scorer.answer(level, [prompt], {stop}, 64)[0].tokens) <= 3 for level in LEVELS)
    finally:
        engine.stop_tokens, engine.model.generation_config.eos_token_id = before, configured


def test_ends_of_different_length_are_masked(model_folder: Callable[[str], Path], images: list[Image.Image]) -> None:
    """A suffix that melts into the last word makes the parts that follow the shared beginning ragged."""
    layout = PromptLayout(scoring_suffix="s of the elephant:")
    for architecture in ("llava", "qwen3_vl"):
        engine = TransformersEngine(model_folder(architecture), device="cpu", layout=layout)
        queries = [
            Query(image, text, CANDIDATES)
            for image, text in zip(images, ("Count the finger", "How many leg", "Is it red?"), strict=False)
        ]
        prompts = [engine.encoder.encode(query) for query in queries]
        texts = [(prompt.scoring_text, prompt.original_text) for prompt in prompts]
        assert len({len(engine.encoder.tokenize(a)) - len(engine.encoder.tokenize(b)) for a, b in texts}) > 1
        for query, result in zip(queries, engine.answer_batch(queries), strict=True):
            assert isinstance(result, Answered)
            assert result.scored.scores == pytest.approx(engine.score_in_full(query).scores, abs=1e-4)


THINKING = (
    b"'ASSISTANT:' + ('<think></think>' if think_less | default(not enable_thinking | default(true)) else '<think>')"
)


def test_thinking_is_switched_off(model_folder: Callable[[str], Path], tmp_path: Path) -> None:
    folder = changed_copy(
        model_folder("llava"), tmp_path / "thinking", "chat_template.jinja",
        lambda data: data.replace(b"'ASSISTANT:'", THINKING),
    )  # fmt: skip
    assert TransformersEngine(folder, device="cpu").encoder.render(True, "Red?").endswith("<think></think>")
    told = TransformersEngine(folder, device="cpu", template_arguments={"enable_thinking": True, "think_less": True})
    assert told.encoder.render(True, "Red?").endswith("<think></think>")
    with pytest.raises(UnpriorError, match=r"no argument 'think_les'.*did you mean think_less"):
        TransformersEngine(folder, device="cpu", template_arguments={"think_les": True})


def test_a_thinking_block_that_stays_open_is_refused(model_folder: Callable[[str], Path], tmp_path: Path) -> None:
    folder = changed_copy(
        model_folder("llava"), tmp_path / "thinking", "chat_template.jinja",
        lambda data: data.replace(b"'ASSISTANT:'", b"'ASSISTANT:<think>\\n'"),
    )  # fmt: skip
    with pytest.raises(UnpriorError, match=r"opens a block for thinking.*--template-arg"):
        TransformersEngine(folder, device="cpu")


def test_tags_of_thinking_that_are_special_tokens_stay(model_folder: Callable[[str], Path]) -> None:
    encoder = PromptEncoder(load_processor(Source(str(model_folder("llava")))), PromptLayout())
    tokenizer = encoder.tokenizer
    tokenizer.add_special_tokens({"additional_special_tokens": ["◁think▷", "◁/think▷", "<|box|>"]})
    encoder = PromptEncoder(encoder.processor, PromptLayout())
    text = "◁think▷ yes or no ◁/think▷<|box|> no"
    tokens = tokenizer(text, add_special_tokens=False)["input_ids"]
    assert "think" not in tokenizer.decode(tokens, skip_special_tokens=True)
    written = encoder.written([*tokens, tokenizer.eos_token_id])
    assert parse_answer(written, ["yes", "no"]) == "no"
    assert "box" not in written
    assert tokenizer.eos_token not in written
    cut = encoder.written(tokens[:3])
    assert is_cut_off(cut)
    plain = tokenizer(" no<|box|>", add_special_tokens=False)["input_ids"]
    assert encoder.written(plain) == tokenizer.decode(plain, skip_special_tokens=True)


def test_a_model_whose_cache_lies_is_read_in_full(
    model_folder: Callable[[str], Path], images: list[Image.Image], monkeypatch: pytest.MonkeyPatch
) -> None:
    honest = _forward.Reader.follow

    def lying(self: Any, branch: Any, ids: Any, *arguments: Any, **options: Any) -> Any:
        result = honest(self, branch, ids, *arguments, **options)
        return replace(result, logits=result.logits + torch.linspace(0, 3, result.logits.shape[-1]))

    monkeypatch.setattr(_forward.Reader, "follow", lying)
    engine = TransformersEngine(model_folder("llava"), device="cpu")
    assert not engine.level.caches
    result = engine.answer_batch([Query(images[0], QUESTIONS[0], CANDIDATES)])[0]
    assert isinstance(result, Answered)
    inputs = official_inputs(engine, images[0], QUESTIONS[0])
    generated = engine.model.generate(**inputs, max_new_tokens=64, do_sample=False)[0, inputs["input_ids"].shape[1] :]
    written = engine.encoder.tokenizer.decode(generated, skip_special_tokens=True)
    assert result.text == engine.original_answer(images[0], QUESTIONS[0]) == written
    assert result.scored.scores == pytest.approx(expected_scores(engine, images[0], QUESTIONS[0]), abs=1e-4)
    scored = engine.score_candidates(None, QUESTIONS[0], CANDIDATES)
    assert scored.scores == pytest.approx(expected_scores(engine, None, QUESTIONS[0]), abs=1e-4)


def test_a_cache_of_another_kind_is_not_used(
    model_folder: Callable[[str], Path], images: list[Image.Image], monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_layers(forks: Any, cache: Any) -> Any:
        raise AttributeError("'StateCache' object has no attribute 'layers'")

    monkeypatch.setattr(CacheForks, "fork", no_layers)
    engine = TransformersEngine(model_folder("llava"), device="cpu")
    assert not engine.shares_prefix
    assert "StateCache" in str(engine.self_test.trials[0])
    engine.max_new_tokens = 3
    result = engine.answer_batch([Query(images[0], QUESTIONS[0], CANDIDATES)])[0]
    assert isinstance(result, Answered)
    assert result.scored.scores == pytest.approx(expected_scores(engine, images[0], QUESTIONS[0]), abs=1e-4)


def test_a_model_that_half_precision_sets_against_itself_is_taken_with_its_noise(
    llava: TransformersEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    differences = dict(zip(LEVELS, (2.7, 1.2, 0.29, 1.3, 1.3), strict=True))
    monkeypatch.setattr(SelfTest, "_try", lambda test, level, *_: Trial(level, differences[level]))
    half, single = (SelfTest(llava.reader, llava.encoder, llava.scorer, limit) for limit in (0.25, 1e-3))
    assert half.choose() is LEVELS[1]
    assert half.noise == 1.3
    with pytest.raises(UnpriorError, match=r"no way of scoring agrees.*whole prompts: 0.29 nats"):
        single.choose()
    assert llava.self_test.noise is None


def test_the_layout_can_be_replaced(model_folder: Callable[[str], Path], images: list[Image.Image]) -> None:
    layout = PromptLayout(scoring_suffix="\nThe answer is:", continuation=" ({label})")
    engine = TransformersEngine(model_folder("llava"), device="cpu", layout=layout)
    continuations = engine.layout.continuations(["A", "B"])
    scored = engine.score_candidates(images[0], "Which?", continuations)
    assert continuations == (" (A)", " (B)")
    assert min(scored.token_counts) >= 2


def changed_copy(folder: Path, to: Path, name: str, change: Callable[[bytes], bytes]) -> Path:
    shutil.copytree(folder, to)
    path = to / name
    path.write_bytes(change(path.read_bytes()))
    return to


def test_the_fingerprint_notices_what_may_change_a_result(
    model_folder: Callable[[str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = model_folder("llava")

    def fingerprint(folder: Path, **options: Any) -> str:
        return TransformersEngine(folder, device="cpu", self_test=False, **options).fingerprint

    reference = fingerprint(folder)
    assert fingerprint(folder) == reference
    weights = changed_copy(folder, tmp_path / "a", "model.safetensors", lambda data: data[:-1] + bytes([data[-1] ^ 1]))
    template = changed_copy(
        folder, tmp_path / "b", "chat_template.jinja", lambda data: data.replace(b"USER: ", b"HUMAN: ")
    )
    others = {
        fingerprint(weights),
        fingerprint(template),
        fingerprint(folder, dtype="bfloat16"),
        fingerprint(folder, attention="eager"),
        fingerprint(folder, layout=PromptLayout(scoring_suffix="\nAnswer:")),
    }
    monkeypatch.setattr(_loading.transformers, "__version__", "99.0")  # the module that the loader sees
    others.add(fingerprint(folder))
    assert len(others) == 6
    assert reference not in others


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"dtype": "int4"},
            r"dtype='int4' .*: no such precision; choose one of auto, float32",
        ),
        ({"device": "cpu", "device_map": "auto"}, "either device or device_map"),
        ({"attention": "telepathy"}, "cannot be loaded"),
    ],
)
def test_wrong_options_are_named(model_folder: Callable[[str], Path], options: dict[str, Any], message: str) -> None:
    with pytest.raises(UnpriorError, match=message):
        TransformersEngine(model_folder("llava"), **options)


def test_what_is_not_a_model_is_named(tmp_path: Path, model_folder: Callable[[str], Path]) -> None:
    with pytest.raises(UnpriorError, match=r"cannot be loaded.*check the folder or hub id"):
        TransformersEngine(tmp_path)


def test_a_model_without_a_template_gets_the_plain_layout(
    tmp_path: Path, model_folder: Callable[[str], Path], images: list[Image.Image]
) -> None:
    mute = tmp_path / "mute"
    shutil.copytree(model_folder("llava"), mute)
    (mute / "chat_template.jinja").unlink()
    engine = TransformersEngine(mute, device="cpu")
    assert engine.encoder.template.is_plain
    assert engine.encoder.render(True, "Is it red?") == "<image>Is it red?\nAnswer:"
    assert engine.encoder.render(False, "Is it red?") == "Is it red?\nAnswer:"
    query = Query(images[0], "Is it red?", CANDIDATES)
    assert engine.score_batch([query])[0].scores == pytest.approx(engine.score_in_full(query).scores, abs=1e-4)


def test_without_torch_the_remedy_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(UnpriorError, match=r"pip install 'unprior\[hf\]'"):
        TransformersEngine("any/model")


def test_qwen_loads_without_torchvision(
    model_folder: Callable[[str], Path], images: list[Image.Image], tmp_path: Path
) -> None:
    """A published folder names a video processor that needs torchvision; images do not need it."""
    folder = tmp_path / "published"
    shutil.copytree(model_folder("qwen3_vl"), folder)
    for name in ("processor_config.json", "tokenizer_config.json"):
        content = json.loads((folder / name).read_text())
        (folder / name).write_text(json.dumps(content | {"processor_class": "Qwen3VLProcessor"}))
    (folder / "video_preprocessor_config.json").write_text('{"video_processor_type": "Qwen3VLVideoProcessor"}')
    engine, reference = (TransformersEngine(path, device="cpu") for path in (folder, model_folder("qwen3_vl")))
    assert type(engine.encoder.processor).__name__ == "Qwen3VLProcessor"
    scored = [each.score_candidates(images[1], QUESTIONS[0], CANDIDATES).scores for each in (engine, reference)]
    assert scored[0] == pytest.approx(scored[1], abs=1e-5)
