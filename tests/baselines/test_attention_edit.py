"""PAI's edit against attention computed by hand, and that nothing of it is left behind."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from PIL import Image
from transformers.masking_utils import ALL_MASK_ATTENTION_FUNCTIONS
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS
from transformers.models.llama import modeling_llama

import tiny_models
from unprior import UnpriorError
from unprior.baselines import attention_edit
from unprior.baselines.attention_edit import attend, check_edit, edited_attention, image_columns
from unprior.baselines.decoder import find_decoder
from unprior.baselines.decoding import Question, decode, view_inputs
from unprior.baselines.method import IMAGE
from unprior.baselines.pai import PAI
from unprior.engines.protocol import Query
from unprior.engines.transformers.engine import TransformersEngine
from unprior.engines.transformers.levels import LEVELS

QUESTIONS = ("Is it red?", "How many legs does the animal in the image have? Count them and answer with one number.")


def inputs_of(engine: TransformersEngine, images: list[Image.Image], rows: range) -> dict[str, Any]:
    prompts = [engine.encoder.encode(Query(images[row], QUESTIONS[row], ())) for row in rows]
    return engine.original_inputs(prompts)


def text_inputs(engine: TransformersEngine) -> dict[str, Any]:
    return engine.original_inputs([engine.encoder.encode(Query(None, question, ())) for question in QUESTIONS])


def logits(engine: TransformersEngine, inputs: dict[str, Any], **options: Any) -> torch.Tensor:
    """Next-token logits, with the attention edited when options are given."""
    if not options:
        return engine.reader.read(inputs).logits
    with edited_attention(engine.model, **options) as edit:
        edit.columns = image_columns(engine, inputs["input_ids"])
        return engine.reader.read(inputs).logits


def by_hand(
    query: Any, key: Any, value: Any, hidden: list[bool], image: list[bool], scale: float, weight: float
) -> Any:
    """One query of one head."""
    scores = [float(query @ row) * scale for row in key]
    scores = [score + weight * abs(score) if seen else score for score, seen in zip(scores, image, strict=True)]
    exponentials = torch.tensor(
        [
            0.0 if blocked else torch.exp(torch.tensor(score)).item()
            for score, blocked in zip(scores, hidden, strict=True)
        ]
    )
    return (exponentials / exponentials.sum()) @ value


def test_scores_at_image_tokens_grow_by_their_size_before_the_softmax() -> None:
    # Scores 1, −1, 0 at three tokens, of which the first two show the image, become 1.5, −0.5, 0.
    key = torch.tensor([[1.0], [-1.0], [0.0]])[None, None]
    _, weights = attend(
        torch.ones(1, 1, 1), key, key, scaling=1.0, mask=None, columns=torch.tensor([[True, True]]), weight=0.5
    )
    expected = torch.tensor([1.5, -0.5, 0.0]).exp()
    assert torch.allclose(weights[0, 0], expected / expected.sum())


@pytest.mark.parametrize("kind", ["bool", "additive"])
def test_the_edited_row_is_the_one_computed_by_hand_with_grouped_heads_and_padding(kind: str) -> None:
    generator = torch.Generator().manual_seed(0)
    query, key, value = (torch.randn(2, *shape, generator=generator) for shape in ((4, 3), (2, 5, 3), (2, 5, 3)))
    hidden = torch.tensor([[True, False, False, False, False], [False] * 5])
    columns = torch.tensor([[False, True, True], [True, False, True]])
    mask = ~hidden if kind == "bool" else hidden * torch.finfo(torch.float32).min
    output, _ = attend(query, key, value, scaling=0.7, mask=mask[:, None], columns=columns, weight=0.2)
    for row in range(2):
        for head in range(4):
            shared = head // 2
            image = [*columns[row].tolist(), False, False]
            wanted = by_hand(
                query[row, head], key[row, shared], value[row, shared], hidden[row].tolist(), image, 0.7, 0.2
            )
            assert torch.allclose(output[row, head], wanted, atol=1e-6)


@pytest.fixture
def edited_by_hand(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """LLaMA's eager attention rewritten in the test: every score of the last query, edited in the given layers."""
    settings: dict[str, Any] = {"layers": (), "columns": None}

    def eager(module: Any, query: Any, key: Any, value: Any, attention_mask: Any, scaling: float, **_: Any) -> Any:
        key = key.repeat_interleave(module.num_key_value_groups, dim=1)
        value = value.repeat_interleave(module.num_key_value_groups, dim=1)
        scores = query @ key.transpose(2, 3) * scaling
        if module.layer_idx in settings["layers"]:
            for row, column in settings["columns"].nonzero().tolist():
                scores[row, :, -1, column] += 0.2 * scores[row, :, -1, column].abs()
        weights = torch.softmax(scores + attention_mask, dim=-1)
        return (weights @ value).transpose(1, 2).contiguous(), weights

    monkeypatch.setattr(modeling_llama, "eager_attention_forward", eager)
    return settings


@pytest.mark.parametrize("implementation", ["sdpa", "eager"])
def test_a_whole_model_gives_what_attention_edited_by_hand_gives(
    deep_folder: Callable[[str], Path],
    images: list[Image.Image],
    implementation: str,
    edited_by_hand: dict[str, Any],
) -> None:
    folder = deep_folder("llava")
    hand = TransformersEngine(folder, device="cpu", attention="eager", self_test=False)
    inputs = inputs_of(hand, images, range(2))
    edited_by_hand.update(layers=(2, 3), columns=image_columns(hand, inputs["input_ids"]))
    expected = logits(hand, inputs)
    edited_by_hand.update(layers=())
    unedited = logits(hand, inputs)

    engine = TransformersEngine(folder, device="cpu", attention=implementation, self_test=False)
    assert torch.allclose(logits(engine, inputs, weight=0.2), expected, atol=1e-4)
    assert not torch.allclose(unedited, expected, atol=1e-2)


def test_the_edit_changes_every_architecture_and_no_weight_changes_nothing(
    deep_engine: TransformersEngine, images: list[Image.Image]
) -> None:
    inputs = inputs_of(deep_engine, images, range(2))
    plain = logits(deep_engine, inputs)
    assert torch.allclose(logits(deep_engine, inputs, weight=0.0), plain, atol=1e-4)
    assert not torch.allclose(logits(deep_engine, inputs, weight=0.2), plain, atol=1e-2)


def test_half_precision_stays_half_precision(deep_folder: Callable[[str], Path], images: list[Image.Image]) -> None:
    engine = TransformersEngine(deep_folder("llava"), device="cpu", dtype="bfloat16", self_test=False)
    inputs = inputs_of(engine, images, range(1))
    plain = logits(engine, inputs)
    assert torch.allclose(logits(engine, inputs, weight=0.0), plain, atol=0.3)
    assert not torch.allclose(logits(engine, inputs, weight=0.5), plain, atol=0.3)


def test_only_the_last_token_is_edited(deep_engine: TransformersEngine, images: list[Image.Image]) -> None:
    inputs = inputs_of(deep_engine, images, range(1))
    plain = deep_engine.reader.read(inputs, keep=4).logits
    with edited_attention(deep_engine.model, weight=0.5) as edit:
        edit.columns = image_columns(deep_engine, inputs["input_ids"])
        edited = deep_engine.reader.read(inputs, keep=4).logits
    assert torch.equal(edited[:, :3], plain[:, :3])
    assert not torch.allclose(edited[:, 3], plain[:, 3], atol=1e-2)


def test_a_left_padded_batch_gives_what_single_rows_give_also_after_the_prompt(
    deep_engine: TransformersEngine, images: list[Image.Image]
) -> None:
    tokens = torch.tensor([[20], [30]])

    def two_steps(rows: range) -> torch.Tensor:
        inputs = inputs_of(deep_engine, images, rows)
        with edited_attention(deep_engine.model, weight=0.3) as edit:
            edit.columns = image_columns(deep_engine, inputs["input_ids"])
            first = deep_engine.reader.read(inputs)
            second = deep_engine.reader.follow(first, tokens[rows.start : rows.stop])
        return torch.cat([first.logits, second.logits], dim=1)

    together = two_steps(range(2))
    alone = torch.cat([two_steps(range(1)), two_steps(range(1, 2))])
    assert torch.allclose(together, alone, atol=1e-3)


def test_a_later_token_is_edited_too(deep_llava: TransformersEngine, images: list[Image.Image]) -> None:
    inputs = inputs_of(deep_llava, images, range(1))
    prompt, token = deep_llava.reader.read(inputs), torch.tensor([[20]])
    plain = deep_llava.reader.follow(prompt, token, torch.ones_like(token)).logits
    with edited_attention(deep_llava.model, weight=0.2) as edit:
        edit.columns = image_columns(deep_llava, inputs["input_ids"])
        edited = deep_llava.reader.follow(prompt, token, torch.ones_like(token)).logits
    assert not torch.allclose(edited, plain, atol=1e-2)


def test_a_pass_without_an_image_is_left_alone(deep_engine: TransformersEngine) -> None:
    inputs = text_inputs(deep_engine)
    plain = deep_engine.reader.read(inputs).logits
    with edited_attention(deep_engine.model, weight=0.5):
        assert torch.equal(deep_engine.reader.read(inputs).logits, plain)


def test_the_vision_tower_is_left_alone(deep_engine: TransformersEngine, images: list[Image.Image]) -> None:
    inputs = inputs_of(deep_engine, images, range(1))
    before = deep_engine.model.config.vision_config._attn_implementation
    with edited_attention(deep_engine.model, weight=0.5, first_layer=3):
        assert deep_engine.model.config.vision_config._attn_implementation == before
        assert deep_engine.model.config.get_text_config()._attn_implementation != before
        deep_engine.reader.read(inputs)


def test_only_the_chosen_layers_are_edited(deep_llava: TransformersEngine, images: list[Image.Image]) -> None:
    inputs = inputs_of(deep_llava, images, range(1))
    both = logits(deep_llava, inputs, weight=0.4)
    assert torch.equal(logits(deep_llava, inputs, weight=0.4, first_layer=2, last_layer=3), both)
    assert not torch.allclose(logits(deep_llava, inputs, weight=0.4, last_layer=2), both, atol=1e-3)
    assert not torch.allclose(logits(deep_llava, inputs, weight=0.4, first_layer=3), both, atol=1e-3)


def state_of(engine: TransformersEngine) -> tuple[Any, ...]:
    """Everything that an edit could leave behind."""
    return (
        copy.deepcopy(engine.model.config.to_dict()),
        engine.model.config._attn_implementation,
        engine.model.config.get_text_config()._attn_implementation,
        engine.model.config.vision_config._attn_implementation,
        set(ALL_ATTENTION_FUNCTIONS),
        set(ALL_MASK_ATTENTION_FUNCTIONS),
    )


def test_everything_is_as_before_at_the_end_also_after_an_exception(
    deep_engine: TransformersEngine, images: list[Image.Image]
) -> None:
    inputs = inputs_of(deep_engine, images, range(2))
    weights = {name: value.clone() for name, value in deep_engine.model.state_dict().items()}
    state, plain = state_of(deep_engine), logits(deep_engine, inputs)
    logits(deep_engine, inputs, weight=0.5)
    assert state_of(deep_engine) == state
    assert torch.equal(logits(deep_engine, inputs), plain)
    with pytest.raises(RuntimeError, match="in between"), edited_attention(deep_engine.model, weight=0.5):
        raise RuntimeError("in between")
    assert state_of(deep_engine) == state
    assert torch.equal(logits(deep_engine, inputs), plain)
    assert all(torch.equal(value, weights[name]) for name, value in deep_engine.model.state_dict().items())


def test_columns_of_another_batch_are_refused(deep_llava: TransformersEngine, images: list[Image.Image]) -> None:
    inputs = inputs_of(deep_llava, images, range(2))
    with edited_attention(deep_llava.model, weight=0.2) as edit:
        edit.columns = image_columns(deep_llava, inputs["input_ids"])[:1]
        with pytest.raises(UnpriorError, match=r"1 prompts .* 2 rows"):
            deep_llava.reader.read(inputs)


@pytest.mark.parametrize(("first", "last"), [(4, None), (2, 4), (3, 2), (-1, None)])
def test_layers_that_are_not_there_are_refused(deep_llava: TransformersEngine, first: int, last: int | None) -> None:
    with (
        pytest.raises(UnpriorError, match="the decoder has layers 0 to 3"),
        edited_attention(deep_llava.model, weight=0.2, first_layer=first, last_layer=last),
    ):
        pass


def refuse(model: Any) -> str:
    with pytest.raises(UnpriorError) as caught, edited_attention(model, weight=0.2):
        pass
    return str(caught.value)


def test_an_unknown_architecture_is_refused_with_what_is_missing(deep_folder: Callable[[str], Path]) -> None:
    assert "Linear cannot be edited: it has no get_decoder()" in refuse(torch.nn.Linear(2, 2))
    assert "its decoder Linear has no layers" in refuse(SimpleNamespace(get_decoder=lambda: torch.nn.Linear(2, 2)))
    plain = torch.nn.Module()
    plain.layers = torch.nn.ModuleList([torch.nn.Linear(2, 2)])
    assert "the decoder has layers 0 to 0" in refuse(SimpleNamespace(get_decoder=lambda: plain))
    plain.layers.extend([torch.nn.Linear(2, 2)] * 2)
    assert "layers 2 to 2 have no self-attention" in refuse(SimpleNamespace(get_decoder=lambda: plain))


def test_the_decoder_is_found_inside_what_the_model_calls_its_decoder() -> None:
    text, tower, whole = torch.nn.Module(), torch.nn.Module(), torch.nn.Module()
    for part in (text, tower):
        part.layers = torch.nn.ModuleList([torch.nn.Linear(2, 2)])
    whole.vision, whole.language = tower, torch.nn.Module()
    whole.language.model = text
    model = SimpleNamespace(get_decoder=lambda: whole, get_encoder=lambda kind: tower)
    assert find_decoder(model) is text


def test_another_attention_implementation_is_refused_with_the_remedy(
    deep_folder: Callable[[str], Path],
) -> None:
    engine = TransformersEngine(deep_folder("llava"), device="cpu", self_test=False)
    engine.model.config.get_text_config()._attn_implementation = "flex_attention"
    assert "the model uses flex_attention; load it with attention='sdpa'" in refuse(engine.model)


def test_soft_capped_scores_are_capped_before_they_grow() -> None:
    key = torch.tensor([[1.0], [-1.0], [0.0]])[None, None]
    options = {"scaling": 1.0, "mask": None, "columns": torch.tensor([[True, False]]), "weight": 0.5}
    _, weights = attend(torch.ones(1, 1, 1), key, key, **options, softcap=2.0)
    capped = 2.0 * torch.tanh(torch.tensor([0.5, -0.5, 0.0]))
    capped[0] *= 1.5
    assert torch.allclose(weights[0, 0], capped.softmax(dim=-1))


def test_a_sink_takes_its_share_and_gives_nothing() -> None:
    key = torch.tensor([[1.0], [-1.0]])[None, None]
    options = {"scaling": 1.0, "mask": None, "columns": torch.tensor([[True, False]]), "weight": 0.5}
    output, weights = attend(torch.ones(1, 1, 1), key, key, **options, sinks=torch.tensor([0.3]))
    expected = torch.tensor([1.5, -1.0, 0.3]).softmax(dim=-1)[:2]
    assert torch.allclose(weights[0, 0], expected)
    assert torch.allclose(output[0, 0], expected @ torch.tensor([[1.0], [-1.0]]))


@pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")  # of its processor
def test_a_model_with_soft_capped_scores_can_be_edited(
    images: list[Image.Image], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = tiny_models.REGISTRY["paligemma"].make(tiny_models.SHAPES["deep"])
    config = made.config.to_dict()
    config["text_config"] |= {"model_type": "gemma2", "attn_logit_softcapping": 1.0, "layer_types": None}
    replace(made, config=type(made.config)(**config)).save(tmp_path, 0)
    engine = TransformersEngine(tmp_path, device="cpu", self_test=False)
    inputs = inputs_of(engine, images, range(1))
    check_edit(engine, inputs)
    monkeypatch.setattr(attention_edit, "_formula", lambda options, implementation: {})
    with pytest.raises(UnpriorError, match="another formula"):
        check_edit(engine, inputs)


def test_attention_that_goes_another_way_is_noticed(
    deep_llava: TransformersEngine, images: list[Image.Image], monkeypatch: pytest.MonkeyPatch
) -> None:
    inputs = inputs_of(deep_llava, images, range(1))
    own = modeling_llama.LlamaAttention.forward

    def forward(self: Any, *arguments: Any, **options: Any) -> Any:
        name, self.config._attn_implementation_internal = self.config._attn_implementation, "sdpa"
        try:
            return own(self, *arguments, **options)
        finally:
            self.config._attn_implementation_internal = name

    check_edit(deep_llava, inputs)
    monkeypatch.setattr(modeling_llama.LlamaAttention, "forward", forward)
    monkeypatch.setattr(attention_edit, "_source", lambda module: modeling_llama)
    with pytest.raises(UnpriorError, match="nothing is edited"):
        check_edit(deep_llava, inputs)


def test_layers_that_forget_are_edited_where_they_remember(
    deep_folder: Callable[[str], Path], images: list[Image.Image]
) -> None:
    engine = TransformersEngine(deep_folder("gemma3"), device="cpu")
    engine.max_new_tokens = 5
    question = Question(images[0], QUESTIONS[0], "one")
    prompt = view_inputs(engine, IMAGE, [question])["input_ids"]
    assert engine.level.caches
    assert prompt.shape[1] > engine.model.config.text_config.sliding_window
    method = PAI(attention=2.0, gamma=1.0, first_layer=0)
    written = decode(engine, method, [question])
    engine.level = LEVELS[-1]  # reads everything anew
    assert decode(engine, method, [question]) == written
    assert decode(engine, method.matched(), [question]) != written


@pytest.mark.parametrize("option", ["softcap", "s_aux", "position_bias"])
def test_attention_by_another_formula_is_refused(deep_llava: TransformersEngine, option: str) -> None:
    module = deep_llava.model.get_decoder().layers[3].self_attn
    with edited_attention(deep_llava.model, weight=0.2) as edit:
        function = ALL_ATTENTION_FUNCTIONS[module.config._attn_implementation]
        edit.columns = torch.tensor([[True]])
        states = torch.zeros(1, 4, 1, 32), torch.zeros(1, 2, 1, 32), torch.zeros(1, 2, 1, 32)
        # The library's sdpa refuses soft-capping itself; what matters is that nothing else is computed in silence.
        with pytest.raises(ValueError, match=option):
            function(module, *states, None, scaling=1.0, **{option: torch.ones(1, 4, 1, 1)})


def test_image_tokens_are_found(deep_engine: TransformersEngine, images: list[Image.Image]) -> None:
    inputs = inputs_of(deep_engine, images, range(2))
    found = image_columns(deep_engine, inputs["input_ids"])
    assert torch.equal(found, inputs["input_ids"] == deep_engine.encoder.placeholder)
    assert found.any(dim=1).all()


def test_image_tokens_that_nobody_names_are_those_that_an_image_adds(
    deep_engine: TransformersEngine, images: list[Image.Image], monkeypatch: pytest.MonkeyPatch
) -> None:
    inputs = inputs_of(deep_engine, images, range(2))
    named = image_columns(deep_engine, inputs["input_ids"])
    monkeypatch.setattr(attention_edit, "image_tokens", lambda engine: [])
    assert torch.equal(image_columns(deep_engine, inputs["input_ids"]), named)
    plain = text_inputs(deep_engine)
    monkeypatch.setattr(deep_engine, "original_inputs", lambda prompts: plain)
    with pytest.raises(UnpriorError, match=r"no token of .* stands for the image"):
        image_columns(deep_engine, inputs["input_ids"])
