"""Prompts with and without an image differ by the image alone, keep the whole question, and have one date."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

import pytest
from PIL import Image

from unprior import UnpriorError
from unprior.engines.doctor.probes import PROBES
from unprior.engines.doctor.trial import Trial
from unprior.engines.probe import probe_texts, prompt_digest
from unprior.engines.protocol import Answered, CandidateScores, Query, QueryFailure
from unprior.engines.transformers import chat_template as _chat_template
from unprior.engines.transformers.chat_template import ChatTemplate, check_prompts
from unprior.engines.transformers.engine import TransformersEngine
from unprior.engines.transformers.loading import load_processor
from unprior.engines.transformers.source import Source
from unprior.prompts import PromptLayout

FolderOf = Callable[[str], Path]
USER = "{%- for message in messages -%}{{- 'USER: ' -}}{%- for item in message['content'] -%}"
IMAGE = "{%- if item['type'] == 'image' -%}{{- '<image>\n' -}}"
TEXT = "{%- else -%}{{- item['text'] -}}{%- endif -%}{%- endfor -%}{%- endfor -%}"
END = "{{- ' ASSISTANT:' -}}"
PLAIN = USER + IMAGE + TEXT + END
PICTURED = "messages[0]['content'][0]['type'] == 'image'"
DATED = "{{- 'Today is ' + strftime_now('%d %b %Y') + '.\n' -}}" + PLAIN


def with_template(folder: Path, to: Path, template: str) -> Path:
    shutil.copytree(folder, to)
    (to / "chat_template.jinja").write_text(template, encoding="utf-8")
    return to


def load(folder: Path) -> TransformersEngine:
    return TransformersEngine(folder, device="cpu", self_test=False)


def test_every_architecture_lays_out_both_prompts_alike(engine: TransformersEngine) -> None:
    check_prompts(engine.encoder.render, engine.layout, engine.encoder._special_tokens())


@pytest.mark.parametrize(
    ("template", "told"),
    [
        (
            PLAIN.replace("{%- else -%}", "{%- elif not " + PICTURED + " -%}"),
            "leaves out or changes a part of the question beside an image: 'How many stripes does the zebra have?'",
        ),
        (
            PLAIN.replace("item['text']", "item['text'].split('\n')[0] if " + PICTURED + " else item['text']"),
            "leaves out or changes a part of the question beside an image: 'A. twelve & a <half>'",
        ),
        (PLAIN.replace("{{- item['text'] -}}", ""), "leaves out or changes a part of the question without an image"),
        (PLAIN.replace("item['text']", "item['text'] | e"), "changes a part of the question without an image: 'A."),
        (PLAIN.replace("' ASSISTANT:'", "' ASSISTANT: <think>\nOkay, '"), "opens a block for thinking (<think>)"),
        (PLAIN.replace("'<image>\n'", "''"), "has no place for an image"),
        (
            "{%- if not " + PICTURED + " -%}{{- 'Today is 26 Jul 2024.\n' -}}{%- endif -%}" + PLAIN,
            r"writes 'USER: <image>\n' with an image, where it writes 'Today is 26 Jul 2024.\nUSER: ' without one",
        ),
        (
            "{%- if " + PICTURED + " -%}{{- 'You see an image.\n' -}}{%- endif -%}" + PLAIN,
            r"writes 'You see an image.\nUSER: <image>\n' with an image, where it writes 'USER: ' without one",
        ),
        (
            PLAIN.replace("' ASSISTANT:'", "' ASSISTANT:' if " + PICTURED + " else ' ASSISTANT: Well,'"),
            "where it writes",
        ),
        ("{{ raise_exception('Only system messages, please.') }}", "TemplateError: Only system messages, please."),
        (PLAIN + "{% if %}", "TemplateSyntaxError"),
        ("{{ messages[0]['content'] + 1 }}", "cannot lay out a question without an image (TypeError"),
        (
            "{% if " + PICTURED + " %}{{ raise_exception('No images.') }}{% endif %}" + PLAIN,
            "cannot lay out a question with an image (TemplateError: No images.)",
        ),
    ],
)  # fmt: skip
def test_a_template_that_cannot_be_scored_is_refused_with_what_is_wrong(
    model_folder: FolderOf, tmp_path: Path, template: str, told: str
) -> None:
    folder = with_template(model_folder("llava"), tmp_path / "m", template)
    with pytest.raises(UnpriorError) as caught:
        TransformersEngine(folder, device="cpu")
    assert told in str(caught.value)
    assert str(folder) in str(caught.value)
    assert "chat_template.jinja" in str(caught.value)


@pytest.mark.parametrize(
    ("plain", "block"),
    [
        ("USER: {}", "USER: <image>\n{}"),
        ("User: {}", "User:<image>{}"),  # the space comes with a text that stands first
        ("<s>[INST]{}[/INST]", "<s>[INST][IMG]{}[/INST]"),
        ("<|user|>\n{}", "<|user|>\n<|begin_of_image|><|image|><|end_of_image|>{}"),
        ("user\n{}", "user\nPicture 1: <|vision_start|><|image_pad|><|vision_end|>{}"),
        ("user\n{}", "user\n<|media_start|>image<|media_content|><|media_pad|><|media_end|>{}"),
        ("user\n\n{}", "user\n\n<start of image>{}"),
    ],
)
def test_placeholders_labels_and_white_space_belong_to_the_image(plain: str, block: str) -> None:
    special = ["<start of image>", "<|image_pad|>"]
    check_prompts(lambda with_image, text: (block if with_image else plain).format(text), PromptLayout(), special)


def test_a_question_with_the_placeholder_is_told_from_a_template_with_too_many(
    model_folder: FolderOf, images: list[Image.Image], tmp_path: Path
) -> None:
    twice = with_template(model_folder("llava"), tmp_path / "m", PLAIN.replace("<image>", "<image><image>"))
    with pytest.raises(UnpriorError, match="renders 2 image placeholders \\(<image>\\) for one image"):
        load(twice)
    usual = load(model_folder("llava"))
    result = usual.score_batch([Query(images[0], "What is <image>?", (" yes",))])[0]
    assert isinstance(result, QueryFailure)
    assert "the question contains <image>, which this model reads as a control token" in result.reason


def on_day(monkeypatch: pytest.MonkeyPatch, day: int) -> None:
    monkeypatch.setattr(_chat_template, "_now", lambda: datetime(2030, 5, day, 23, 59))


def test_another_date_in_the_prompt_is_another_fingerprint(
    model_folder: FolderOf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dated, plain = (
        with_template(model_folder("llava"), tmp_path / name, template)
        for name, template in (("dated", DATED), ("plain", PLAIN))
    )
    on_day(monkeypatch, 4)
    first, undated = load(dated), load(plain)
    rendered = first.encoder.render(False, "Is it red?")
    assert rendered.startswith("Today is 04 May 2030.")
    assert load(dated).fingerprint == first.fingerprint
    on_day(monkeypatch, 5)
    assert first.encoder.render(False, "Is it red?") == rendered  # a run that goes on past midnight
    assert first.encoder.render(True, "Is it red?").startswith("Today is 04 May 2030.")
    next_day = load(dated)
    assert next_day.fingerprint != first.fingerprint
    for name in ("prompt", "image_prompt"):
        assert next_day.identity[name] != first.identity[name]
    assert load(plain).fingerprint == undated.fingerprint


def test_a_changed_template_is_another_fingerprint(model_folder: FolderOf, tmp_path: Path) -> None:
    one, two = (
        load(with_template(model_folder("llava"), tmp_path / name, template))
        for name, template in (("a", PLAIN), ("b", PLAIN.replace("'<image>\n'", "'<image>'")))
    )
    assert one.fingerprint != two.fingerprint
    assert one.identity["prompt"] == two.identity["prompt"]
    assert one.identity["image_prompt"] != two.identity["image_prompt"]


def test_the_identity_holds_the_digest_of_the_probe(llava: TransformersEngine) -> None:
    encoder = llava.encoder
    tokens = [encoder.tokenize(encoder.render(False, text)) for text in probe_texts(llava.layout)]
    assert llava.identity["prompt"] == prompt_digest(tokens)
    assert llava.identity["engine"] == "transformers"


def test_a_template_kept_with_the_tokenizer_is_used(model_folder: FolderOf, tmp_path: Path) -> None:
    folder = tmp_path / "m"
    shutil.copytree(model_folder("llava"), folder)
    engine = load(folder)
    encoder = engine.encoder
    before = encoder.render(True, "Is it red?")
    encoder.tokenizer.chat_template = {"default": encoder.processor.chat_template, "tools": "{{ 1 }}"}
    encoder.processor.chat_template = None
    assert encoder.render(True, "Is it red?") == before


def test_of_several_templates_the_default_one_is_taken(model_folder: FolderOf) -> None:
    processor = load_processor(Source(str(model_folder("llava"))))
    processor.tokenizer.chat_template, processor.chat_template = None, {"rag": "{{ 2 }}", "default": PLAIN}
    assert ChatTemplate(processor).render(False, "Is it red?") == "USER: Is it red? ASSISTANT:"
    processor.chat_template = {"rag": PLAIN, "tool_use": "{{ 1 }}"}
    with pytest.raises(UnpriorError, match=r"by name \(rag, tool_use\) and none of them is called 'default'"):
        ChatTemplate(processor)
    processor.tokenizer.chat_template = PLAIN
    assert ChatTemplate(processor).render(False, "Is it red?") == "USER: Is it red? ASSISTANT:"
    processor.tokenizer.chat_template = processor.chat_template = None
    assert ChatTemplate(processor).is_plain


@pytest.mark.parametrize(
    "name",
    ["messages", "add_generation_prompt", "continue_final_message", "tokenize", "chat_template", "eos_token",
     "bos_token", "image_token", "strftime_now", "namespace"],
)  # fmt: skip
def test_what_rendering_sets_itself_cannot_be_given(model_folder: FolderOf, tmp_path: Path, name: str) -> None:
    template = f"{{{{- '' if {name} is defined else '' -}}}}" + PLAIN
    processor = load_processor(Source(str(with_template(model_folder("llava"), tmp_path / "m", template))))
    processor.tokenizer.add_special_tokens({"image_token": "<image>"})
    with pytest.raises(UnpriorError, match=f"template argument '{name}': this is set"):
        ChatTemplate(processor, {name: "zz"})
    with pytest.raises(UnpriorError, match="no argument 'date'; it knows: none"):
        ChatTemplate(processor, {"date": "zz"})


def test_the_doctor_warns_of_a_date(model_folder: FolderOf, tmp_path: Path) -> None:
    versions = next(probe for probe in PROBES if probe.name == "versions")
    found = versions(Trial.from_engine(load(with_template(model_folder("llava"), tmp_path / "m", DATED))))
    assert found.status == "warning"
    assert "the chat template writes the date" in found.detail
    assert "strftime_now" in str(found.remedy)
    unread = "{%- if strftime_now is defined -%}{%- set date = strftime_now('%d %b %Y') -%}{%- endif -%}" + PLAIN
    assert (
        versions(Trial.from_engine(load(with_template(model_folder("llava"), tmp_path / "n", unread)))).status == "ok"
    )


def test_a_template_that_shortens_long_questions_is_noticed_at_the_question(
    model_folder: FolderOf, tmp_path: Path
) -> None:
    engine = load(
        with_template(model_folder("llava"), tmp_path / "m", PLAIN.replace("item['text']", "item['text'][:300]"))
    )
    good, bad = engine.score_batch(
        [Query(None, text, (" yes",)) for text in ("Red?", "Is it red? " * 40 + "\nOr blue?")]
    )
    assert isinstance(good, CandidateScores)
    assert isinstance(bad, QueryFailure)
    assert "leaves out or changes a part of the question without an image" in bad.reason


@pytest.mark.parametrize("joined", ["+", "~"])  # the first fails with a list of parts, the second prints it
def test_a_template_of_texts_gets_the_placeholder_before_the_question(
    model_folder: FolderOf, images: list[Image.Image], tmp_path: Path, joined: str
) -> None:
    said = f"m.role {joined} ': ' {joined} m.content {joined} '\\n'"
    source = "{%- for m in messages -%}{{- " + said + " -}}{%- endfor -%}assistant:"
    engine = load(with_template(model_folder("llava"), tmp_path / "m", source))
    assert engine.encoder.render(True, "Red?") == "user: <image>\nRed?\nassistant:"
    assert engine.encoder.render(False, "Red?") == "user: Red?\nassistant:"
    assert isinstance(engine.answer_batch([Query(images[0], "Red?", (" yes",))])[0], Answered)


def test_a_template_that_needs_a_system_message_gets_one(model_folder: FolderOf, tmp_path: Path) -> None:
    first = "{%- if messages[0].role != 'system' -%}{{ raise_exception('no system message') }}{%- endif -%}"
    folder = with_template(model_folder("llava"), tmp_path / "m", first + PLAIN)
    with pytest.raises(UnpriorError, match="no system message"):
        load(folder)
    engines = [
        TransformersEngine(folder, device="cpu", self_test=False, layout=PromptLayout(system=system))
        for system in ("Look closely.", "Be brief.")
    ]
    assert all("Look closely." in engines[0].encoder.render(shown, "Red?") for shown in (True, False))
    assert engines[0].fingerprint != engines[1].fingerprint
