"""Questions and candidates: what a model would not read as words is refused, all else is plain text."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable

import httpx
import pytest

from tests.serving.conftest import body, choice
from unprior.engines.protocol import CandidateScores, Query, QueryFailure
from unprior.engines.transformers.engine import TransformersEngine
from unprior.serving.errors import RequestError
from unprior.serving.texts import FILLED_PATTERN, check_candidates, check_text, check_tokens

Post = Callable[..., httpx.Response]
TOKENS = [
    "<|im_start|>", "<|im_end|>", "<|endoftext|>", "<|vision_start|>", "<|image_pad|>", "<|video_pad|>", "<|eot_id|>",
    "<|begin_of_text|>", "<|start_header_id|>", "<|image|>", "<|user|>", "<|assistant|>", "<|end|>", "<|image_1|>",
    "<start_of_turn>", "<end_of_turn>", "<start_of_image>", "<image_soft_token>", "<bos>", "<eos>", "<pad>", "<unk>",
    "<mask>", "<s>", "</s>", "[INST]", "[/INST]", "[IMG]", "[IMG_BREAK]", "[IMG_END]", "[SYSTEM_PROMPT]",
    "[AVAILABLE_TOOLS]", "[TOOL_CALLS]", "[gMASK]", "[CLS]", "[SEP]", "<<SYS>>", "<</SYS>>", "<｜User｜>",
    "<｜Assistant｜>", "<｜begin▁of▁sentence｜>", "<｜▁pad▁｜>", "<image>", "</image>", "<image_placeholder>",
    "<IMG_CONTEXT>", "<img>", "</img>", "<video>", "<end_of_utterance>", "<fake_token_around_image>", "<global-img>",
    "<row_1_col_2>", "<unused7>", "<extra_id_0>", "<loc0001>", "<seg001>", "<im_patch>", "<image_newline>", "<think>",
    "</think>", "<tool_call>", "<box>", "<ref>", "<fim_prefix>", "<|tool▁calls▁begin|>",
    "<|reserved_special_token_0|>", "<SPECIAL_10>", "<boi>", "<eoi>", "<cls>", "<sep>", "<obj>", "<point>", "<image/>",
    "<image\u200d>", "<im\u200cage>", "<|im_st\ufe0fart|>", "[IN\u200dST]",
]  # fmt: skip


@pytest.mark.parametrize("token", TOKENS)
def test_control_tokens_of_many_models_are_refused(token: str) -> None:
    for text in (token, f"What is {token} here?", f"a{token}b", token.upper(), token.lower()):
        with pytest.raises(RequestError) as told:
            check_tokens(text, "questions[0]")
        assert told.value.code == "control_token"
    with pytest.raises(RequestError):
        check_candidates_and_tokens(["a", token])


def check_candidates_and_tokens(texts: list[str]) -> None:
    check_candidates(texts, "choices")
    for text in texts:
        check_tokens(text, "choices")


@pytest.mark.parametrize(
    "text",
    [
        "is 3 < 4 or 5 > 4?", "a <b> c", "x <- y -> z", "[a]", "[1]", "List[int]", "<html>", "a|b|c", "<3",
        "if (a < b && c > d)", "<a href='x'>", "What does </div> close?", "A [sic] B",
        "<br>", "one<br/>two", "<object>", "<select>", "<sub>2</sub>", "<pre>", "100 <= x", "¿Qué?",
        "‹ab›", "«ab»", "می‌خواهم",
        "👩‍👩‍👧", "ignore the image, pick A", "Final answer: B", "\tindented\n\nlines", "数は？", "नमस्ते", "ελληνικά",
    ],
)  # fmt: skip
def test_ordinary_texts_are_taken(text: str) -> None:
    check_tokens(check_text(text, "question", 500), "question")


@pytest.mark.parametrize(
    "code",
    [
        0x00, 0x01, 0x07, 0x08, 0x0B, 0x0C, 0x0D, 0x1B, 0x7F, 0x85, 0x9F, 0xAD, 0x034F, 0x061C, 0x115F, 0x180E, 0x200B,
        0x200E, 0x200F, 0x2028, 0x2029, *range(0x202A, 0x202F), *range(0x2060, 0x2070), 0x3164, 0xFE00 + 0xFF, 0xFFA0,
        0xFFF9, 0xFFFE, 0xE000, 0xF8FF, 0x10FFFF, 0xE0001, 0xE0041, 0xE01EF, 0x0378,
        0x13430, 0x13438, 0x1BCA0, 0x1BCA3, 0x1D173, 0x1D17A,
    ],
)  # fmt: skip
def test_characters_that_cannot_be_seen_are_refused(code: int) -> None:
    for text in (chr(code) + "a", f"a{chr(code)}b", f"a{chr(code)}"):
        with pytest.raises(RequestError, match=f"U\\+{code:04X} cannot be seen"):
            check_text(text, "question", 500)
    with pytest.raises(RequestError):
        check_text("\u200dab", "question", 500)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("five", "five"), ("five", " five"), ("five", "five "), ("a b", "a  b"), ("a b", "a\u00a0b"),
        ("a b", "a\u3000b"),
        ("caf\u00e9", "cafe\u0301"), ("\u212b", "\u00c5"), ("\u1e9b\u0323", "\u017f\u0323\u0307"), ("한", "한"),
        ("cat", "ca\u200dt"), ("cat", "c\u200cat"), ("\u2764", "\u2764\ufe0f"), ("cat", "cat\ufe00"),
        ("caf\u00e9", "cafe\u200d\u0301"), ("a b", "a\u2800b"), ("five", "five\u2800"), ("5", "\u06005"),
    ],
)  # fmt: skip
def test_candidates_that_look_the_same_are_named(one: str, other: str) -> None:
    with pytest.raises(RequestError) as told:
        check_candidates(["first", one, "between", other], "choices")
    assert told.value.code == "duplicate_candidates"
    assert "choices[1] and choices[3] are the same text" in told.value.message


def test_candidates_that_may_be_meant_are_taken() -> None:
    check_candidates(["cat", "CAT", "c\u0430t", "cats", "ca t", "cat."], "choices")


@pytest.mark.parametrize("text", ["", " ", "\n", "\u3000", "\u2800", " \u2800\u2800 ", "\ufe0f", "\u2800\u200d\u2800"])
def test_a_text_that_shows_nothing_is_empty_by_schema_too(text: str) -> None:
    with pytest.raises(RequestError) as told:
        check_text(text, "question", 500)
    assert told.value.code == "empty_text"
    assert re.search(FILLED_PATTERN, text) is None
    assert re.search(FILLED_PATTERN, f"{text}a{text}")


def test_all_format_characters_are_left_out_of_comparisons() -> None:
    everything = "".join(chr(code) for code in range(0x110000) if unicodedata.category(chr(code)) == "Cf")
    with pytest.raises(RequestError, match="control token"):
        check_tokens(f"<ima{everything}ge>", "question")


def test_the_count_is_checked_before_the_lengths() -> None:
    with pytest.raises(RequestError, match="100,000 candidates are more than 26"):
        check_candidates(["a" * 10] * 100_000, "choices")
    with pytest.raises(RequestError, match=r"choices\[1\]: 1,000,000 characters are more than 500"):
        check_candidates(["a", "b" * 1_000_000], "choices")


def test_the_tokenizer_of_a_model_in_this_process_is_asked(
    post: Post, plain: str, embedded: TransformersEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = sorted(embedded.encoder._reserved)
    assert own
    monkeypatch.setattr("unprior.serving.questions.check_tokens", lambda *_: None)  # as if nobody knew its form
    for token in own:
        for place, asked in (
            ("questions[0].instructions", choice(f"Is it {token}?", "a", "b")),
            ("questions[0].instructions", choice("Which?", "a", f"b {token}")),
            ("questions[0].instructions", {"type": "open", "instructions": f"What is {token}?"}),
            ("questions[0].instructions", {"type": "predicate", "instructions": f"{token}"}),
        ):
            reply = post(body(plain, asked))
            assert reply.status_code == 400, reply.text
            error = reply.json()["error"]
            assert (error["code"], error["param"]) == ("question_refused", place)
            assert f"contains {token}, which this model reads as a control token" in error["message"]
    good, bad = choice("Which one?", "a", "b"), choice(f"Is it {own[0]}?", "a", "b")
    reply = post(body(plain, good, bad, good))
    assert reply.status_code == 400
    assert reply.json()["error"]["param"] == "questions[1].instructions"


def test_a_control_token_is_found_by_the_tokenizer_alone(
    embedded: TransformersEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = embedded.encoder._reserved[0]
    monkeypatch.setattr(embedded.encoder, "_reserved", [])  # as if the text had it in another spelling
    (good, bad) = embedded.score_batch([Query(None, f"Which {word} is it?", (" A",)) for word in ("one", token)])
    assert isinstance(good, CandidateScores)
    assert isinstance(bad, QueryFailure)
    assert bad.refused
    assert token in bad.reason


def test_a_question_that_is_too_long_for_the_model_is_the_clients_to_change(post: Post, plain: str) -> None:
    reply = post(body(plain, choice("word " * 1_500, "a", "b")))
    assert reply.status_code == 400
    assert "the model takes 1,024; shorten the question" in reply.json()["error"]["message"]


def test_candidates_that_begin_alike_are_told_apart(post: Post, plain: str) -> None:
    texts = ["twenty", "twenty one", "twenty two", "twenty two and a half"]
    told = {}
    for order in (texts, texts[::-1]):
        (answer,) = post(body(plain, choice("How many?", *order))).json()["answers"]
        assert [each["value"] for each in answer["probabilities"]] == order
        scores = [each["with_image"] for each in answer["unprior"]["candidates"]]
        assert len(set(scores)) == len(texts)
        shares = {each["value"]: each["probability"] for each in answer["probabilities"]}
        assert sum(shares.values()) == pytest.approx(1)
        assert answer["choice"] == max(shares, key=lambda value: shares[value])
        told[order[0]] = shares
    assert told[texts[0]].keys() == told[texts[-1]].keys()


@pytest.mark.parametrize("role", ["system", "developer", "assistant", "tool", "root", None, 3, ["user"]])
def test_other_roles_are_refused_with_what_to_do(post: Post, server: str, plain: str, role: object) -> None:
    remedy = {"system": "message of the user", "developer": "message of the user", "assistant": "messages of the user"}
    words = remedy.get(str(role), "role")
    asked = body(plain, choice("Which?", "a", "b"))
    asked["input"].insert(0, {"role": role, "content": "You are a judge."})
    content = [{"type": "text", "text": "Which?"}, {"type": "image_url", "image_url": {"url": plain}}]
    chatted = {
        "model": "embedded", "structured_outputs": {"choice": ["a", "b"]},
        "messages": [{"role": role, "content": "You are a judge."}, {"role": "user", "content": content}],
    }  # fmt: skip
    for reply in (post(asked), httpx.post(f"{server}/v1/chat/completions", json=chatted)):
        assert reply.status_code == 400
        assert words in reply.json()["error"]["message"]
