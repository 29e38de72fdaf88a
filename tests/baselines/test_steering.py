"""Reading and steering hidden states by hand, and that no hook is left behind."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from unprior import UnpriorError
from unprior.baselines.activity import GateActivity
from unprior.baselines.method import IMAGE, Pass
from unprior.baselines.revis.method import REVIS
from unprior.baselines.steering import recorded, steered
from unprior.baselines.trial import try_method
from unprior.engines.protocol import Query
from unprior.engines.transformers.engine import TransformersEngine


class Doubling(torch.nn.Module):
    def __init__(self, as_tuple: bool) -> None:
        super().__init__()
        self.as_tuple = as_tuple

    def forward(self, hidden: torch.Tensor) -> Any:
        return (2 * hidden, "beside") if self.as_tuple else 2 * hidden


class Stack(torch.nn.Module):
    """A decoder of layers that double what they are given."""

    def __init__(self, as_tuple: bool = False) -> None:
        super().__init__()
        self.layers = torch.nn.ModuleList([Doubling(as_tuple), Doubling(as_tuple)])

    def get_decoder(self) -> Stack:
        return self

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            output = layer(hidden)
            hidden = output[0] if isinstance(output, tuple) else output
        return hidden


# Two positions: along the direction (risk −1) and against it (risk 0.6).
HIDDEN = torch.tensor([[[2.0, 0.0], [-3.0, 4.0]]])
DIRECTION = np.array([0.5, 0.0])


@pytest.mark.parametrize("as_tuple", [False, True])
def test_states_after_every_layer_are_recorded_at_the_chosen_position(as_tuple: bool) -> None:
    model = Stack(as_tuple)
    with recorded(model) as states:
        model(HIDDEN)
    assert [state.tolist() for state in states] == [[[-6.0, 8.0]], [[-12.0, 16.0]]]
    with recorded(model, position=0) as states:
        model(HIDDEN)
    assert states[0].tolist() == [[4.0, 0.0]]


def test_a_layer_that_is_left_out_has_the_state_before_it() -> None:
    """Cross-attention is left out where there is no image."""
    model = Stack()
    with recorded(model) as states:
        model(HIDDEN)
        model.layers[0](HIDDEN)
    assert [state.tolist() for state in states] == [[[-6.0, 8.0]], [[-6.0, 8.0]]]


@pytest.mark.parametrize("as_tuple", [False, True])
def test_only_positions_above_the_threshold_are_steered(as_tuple: bool) -> None:
    model = Stack(as_tuple)
    with steered(model, layer=0, direction=DIRECTION, strength=2.0, threshold=0.59):
        # (−6, 8) + 2·(0.5, 0), doubled by the second layer.
        assert model(HIDDEN).tolist() == [[[8.0, 0.0], [-10.0, 16.0]]]
    with steered(model, layer=1, direction=DIRECTION, strength=2.0, threshold=0.61):
        assert model(HIDDEN).tolist() == [[[8.0, 0.0], [-12.0, 16.0]]]
    with steered(model, layer=1, direction=DIRECTION, strength=2.0, threshold=-2.0):
        assert model(HIDDEN).tolist() == [[[9.0, 0.0], [-11.0, 16.0]]]


def test_open_positions_are_counted_by_question_without_padding() -> None:
    model = Stack()
    hidden = HIDDEN.repeat(3, 1, 1)  # in every row the second position is at risk
    real = torch.tensor([[True, True], [False, True], [True, False]])
    with steered(model, layer=0, direction=DIRECTION, strength=2.0, threshold=0.59) as counter:
        model(hidden)
        assert counter.activity == {}, "nobody said what this pass reads"
        counter(Pass(IMAGE, None, range(3), real, from_start=True))
        model(hidden)
        assert counter.activity == {0: GateActivity(2, 1), 1: GateActivity(1, 1), 2: GateActivity(1, 0)}
        counter(Pass(IMAGE, None, [0, 2]))  # the second question has its answer
        model(hidden[:2, 1:])
        assert counter.activity == {0: GateActivity(3, 2), 1: GateActivity(1, 1), 2: GateActivity(2, 1)}
        counter(Pass(IMAGE, None, [2], from_start=True))  # read again: not counted twice
        model(hidden[:1])
        assert counter.activity[2] == GateActivity(2, 1)


def test_half_precision_stays_half_precision() -> None:
    model = Stack()
    with steered(model, layer=1, direction=DIRECTION, strength=1.0, threshold=0.0):
        assert model(HIDDEN.bfloat16()).dtype == torch.bfloat16


def test_hooks_are_gone_at_the_end_also_after_an_exception() -> None:
    model = Stack()
    with pytest.raises(RuntimeError), steered(model, layer=0, direction=DIRECTION, strength=1.0, threshold=-2.0):
        raise RuntimeError
    with pytest.raises(RuntimeError), recorded(model):
        raise RuntimeError
    assert not any(layer._forward_hooks for layer in model.layers)
    assert torch.equal(model(HIDDEN), 4 * HIDDEN)


def test_every_architecture_is_recorded_and_steered_and_is_the_same_afterwards(
    deep_engine: TransformersEngine, images: list[Image.Image]
) -> None:
    prompts = [
        deep_engine.encoder.encode(Query(image, text, ()))
        for image, text in zip(images, ("Is it red?", "What is it? Describe it."), strict=False)
    ]
    together = deep_engine.original_inputs(prompts)
    with recorded(deep_engine.model) as states:
        plain = deep_engine.reader.read(together).logits
    assert [state.shape for state in states] == [(2, 64)] * 4
    for row, prompt in enumerate(prompts):  # padding on the left does not matter
        with recorded(deep_engine.model) as alone:
            deep_engine.reader.read(deep_engine.original_inputs([prompt]))
        for layer in range(4):
            assert torch.allclose(states[layer][row], alone[layer][0], atol=1e-3)
    with (
        steered(deep_engine.model, layer=2, direction=np.ones(64), strength=0.5, threshold=-2.0),
        recorded(deep_engine.model) as moved,
    ):
        steered_logits = deep_engine.reader.read(together).logits
    assert torch.allclose(moved[2], states[2] + 0.5, atol=1e-5)
    assert torch.equal(moved[1], states[1])
    assert not torch.allclose(steered_logits, plain, atol=1e-2)
    assert torch.equal(deep_engine.reader.read(together).logits, plain)


@pytest.mark.parametrize(
    ("model", "missing"),
    [
        (torch.nn.Linear(2, 2), "Linear cannot be edited: it has no get_decoder"),
        (SimpleNamespace(get_decoder=lambda: torch.nn.Linear(2, 2)), "its decoder Linear has no layers"),
    ],
)
def test_a_model_without_layers_is_refused_with_what_is_missing(model: Any, missing: str) -> None:
    with pytest.raises(UnpriorError, match=missing), recorded(model):
        pass
    with (
        pytest.raises(UnpriorError, match=missing),
        steered(model, layer=0, direction=DIRECTION, strength=1.0, threshold=0.0),
    ):
        pass


def test_a_layer_that_is_not_there_and_a_direction_of_another_model_are_refused() -> None:
    with (
        pytest.raises(UnpriorError, match="layer 2 cannot be steered: the decoder has layers 0 to 1"),
        steered(Stack(), layer=2, direction=DIRECTION, strength=1.0, threshold=0.0),
    ):
        pass
    model = Stack()
    with (
        pytest.raises(UnpriorError, match="3 numbers, hidden states have 2"),
        steered(model, layer=0, direction=np.ones(3), strength=1.0, threshold=0.0),
    ):
        model(HIDDEN)


def test_the_trial_of_revis_has_the_width_that_layers_pass_on(
    deep_llava: TransformersEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Decoders with several residual streams pass on more numbers than ``hidden_size`` says."""
    config = deep_llava.model.config.get_text_config()
    width = config.hidden_size
    monkeypatch.setattr(config, "hidden_size", width // 2)
    trial = REVIS.for_trial(deep_llava)
    assert trial.vectors.visual.shape == (config.num_hidden_layers, width)
    try_method(deep_llava, trial)
