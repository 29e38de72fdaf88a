"""PAI's edit against attention computed by hand, and that nothing of it is left behind."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from PIL import Image
from transformers.masking_utils import ALL_MASK_ATTENTION_FUNCTIONS
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS
from transformers.models.llama import modeling_llama

from unprior import UnpriorError
from unprior.baselines.attention_edit import attend, edited_attention, image_columns
from unprior.engines.protocol import Query
from unprior.engines.transformers.engine import TransformersEngine

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
            second = deep_engine.reader.follow(first, tokens[rows.start : rows.stop], torch.ones(len(rows), 1).long())
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
    assert "_supports_attention_backend is not set" in refuse(SimpleNamespace(get_decoder=lambda: plain))
    plain._supports_attention_backend = True
    assert "layer 0 has no attention module with layer_idx" in refuse(SimpleNamespace(get_decoder=lambda: plain))


def test_another_attention_implementation_is_refused_with_the_remedy(
    deep_folder: Callable[[str], Path],
) -> None:
    engine = TransformersEngine(deep_folder("llava"), device="cpu", self_test=False)
    engine.model.config.get_text_config()._attn_implementation = "flex_attention"
    assert "the model uses flex_attention; load it with attention='sdpa'" in refuse(engine.model)


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


def test_image_tokens_are_found_and_unknown_ones_refused(
    deep_engine: TransformersEngine, images: list[Image.Image]
) -> None:
    inputs = inputs_of(deep_engine, images, range(2))
    found = image_columns(deep_engine, inputs["input_ids"])
    assert torch.equal(found, inputs["input_ids"] == deep_engine.encoder.placeholder)
    assert found.any(dim=1).all()
    assert torch.equal(image_columns(deep_engine.model, inputs["input_ids"]), found)
    unknown = SimpleNamespace(config=SimpleNamespace(model_type="odd"))
    with pytest.raises(UnpriorError, match="image tokens of odd are unknown: its configuration has neither"):
        image_columns(unknown, inputs["input_ids"])
