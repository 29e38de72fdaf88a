"""Every method's equation on a tiny vocabulary, against numbers worked out by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from unprior.baselines.decoding import choose
from unprior.baselines.focus_on_vision import FocusOnVision
from unprior.baselines.method import Method
from unprior.baselines.mfcd import MFCD
from unprior.baselines.nolan import NoLan
from unprior.baselines.pai import PAI
from unprior.baselines.plain import Plain
from unprior.baselines.vcd import VCD, diffuse, diffusion_coefficients
from unprior.prompts import PromptLayout

DECODERS: tuple[Method, ...] = (VCD(), MFCD(), PAI(), NoLan())


def logits(*rows: list[float]) -> list[torch.Tensor]:
    return [torch.tensor([row]) for row in rows]


def log(*probabilities: float) -> list[float]:
    return [math.log(value) for value in probabilities]


def test_vcd_doubles_the_image_and_subtracts_the_noise() -> None:
    combined = VCD().combine(logits([2.0, 1.0, 0.0], [2.5, 0.0, 0.0]))
    assert combined.tolist() == [[1.5, 2.0, 0.0]]


def test_vcd_keeps_tokens_of_at_least_a_tenth_of_the_largest_probability() -> None:
    assert VCD().plausible(torch.tensor([[0.0, math.log(0.11), math.log(0.09)]])).tolist() == [[True, True, False]]
    # The contrast alone prefers the last token by far; the filter rules it out.
    assert choose(VCD(), logits([2.0, 1.0, -1.0], [2.5, 0.0, -30.0])).tolist() == [1]


def test_mfcd_trebles_the_image_and_subtracts_both_views() -> None:
    combined = MFCD().combine(logits([2.0, 1.0, 0.0], [1.0, 0.5, 0.0], [3.0, 0.25, 0.0]))
    assert combined.tolist() == [[2.0, 2.25, 0.0]]


def test_mfcd_keeps_tokens_of_at_least_three_tenths_of_the_largest_probability() -> None:
    assert MFCD().plausible(torch.tensor([[0.0, math.log(0.31), math.log(0.29)]])).tolist() == [[True, True, False]]


def test_pai_contrasts_log_probabilities_with_scale_1_1() -> None:
    # Constants added to logits must not matter: the rule is about log-probabilities.
    shifted = [value + 7.0 for value in log(0.6, 0.3, 0.1)]
    combined = PAI().combine(logits(shifted, log(0.7, 0.2, 0.1)))[0].tolist()
    assert combined == pytest.approx(
        [1.1 * math.log(0.6) - 0.1 * math.log(0.7), 1.1 * math.log(0.3) - 0.1 * math.log(0.2), math.log(0.1)], abs=1e-5
    )
    assert PAI().plausible(torch.tensor([[0.0, math.log(0.11), math.log(0.09)]])).tolist() == [[True, True, False]]


def test_nolan_on_two_tokens_by_hand() -> None:
    # γ = ½[(.8−.5)(ln .8 − ln .5) + (.2−.5)(ln .2 − ln .5)] = .15·ln 4 = .2079442; tanh(1/γ) = .9998669
    image, prior = logits(log(0.8, 0.2), log(0.5, 0.5))
    alpha = NoLan().strength(image, prior)
    assert alpha.tolist() == [[pytest.approx(1.5998936, abs=1e-6)]]
    combined = NoLan().combine([image, prior])[0].tolist()
    assert combined == pytest.approx(
        [2.5998936 * math.log(value) - 1.5998936 * math.log(0.5) for value in (0.8, 0.2)], abs=1e-5
    )


def test_nolan_subtracts_two_beta_where_streams_agree_and_beta_where_they_are_far_apart() -> None:
    same = torch.tensor([[1.0, 2.0, 3.0]])
    assert NoLan().strength(same, same.clone()).item() == pytest.approx(1.6)
    far = NoLan().strength(torch.tensor([[60.0, 0.0]]), torch.tensor([[0.0, 60.0]])).item()
    assert far == pytest.approx(0.8 * (1.0 + math.tanh(1.0 / 60.0)), abs=1e-6)
    farther = NoLan().strength(torch.tensor([[1e6, 0.0]]), torch.tensor([[0.0, 1e6]])).item()
    assert farther == pytest.approx(0.8, abs=1e-5)


def test_nolan_filters_nothing_and_has_a_strength_for_every_row() -> None:
    image = torch.tensor([[0.0, 1.0], [5.0, 0.0]])
    prior = torch.tensor([[0.0, 1.0], [0.0, 5.0]])
    assert NoLan().plausible(image) is None
    first, second = NoLan().strength(image, prior)[:, 0].tolist()
    assert first == pytest.approx(1.6)
    assert 0.8 < second < 1.6


def test_a_token_that_the_model_excludes_stays_out() -> None:
    image, prior = logits([-math.inf, 1.0, 0.5], [-math.inf, 0.0, 3.0])
    assert choose(NoLan(), [image, prior]).tolist() == [1]
    assert choose(Plain(), [image]).tolist() == [1]
    # One that only another stream excludes would gain without bound; it stays out, too.
    image, prior = logits([3.0, 1.0, 0.5], [-math.inf, 0.0, 3.0])
    assert choose(NoLan(), [image, prior]).tolist() == [1]
    assert choose(NoLan(beta=0.0), [image, prior]).tolist() == [1]


@pytest.mark.parametrize("method", DECODERS, ids=lambda method: method.name)
@given(seed=st.integers(0, 10_000))
def test_without_its_correction_a_decoder_takes_the_most_probable_token(method: Method, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    streams = [torch.randn(3, 50, generator=generator) * 4 for _ in method.views]
    matched = method.matched()
    assert matched is not None
    assert choose(matched, streams).tolist() == streams[0].argmax(dim=-1).tolist()


@pytest.mark.parametrize("method", DECODERS, ids=lambda method: method.name)
def test_with_its_correction_a_decoder_often_takes_another(method: Method) -> None:
    generator = torch.Generator().manual_seed(0)
    streams = [torch.randn(200, 50, generator=generator) for _ in method.views]
    assert (choose(method, streams) != streams[0].argmax(dim=-1)).float().mean() > 0.02


def test_the_noise_has_the_published_coefficients_at_step_500() -> None:
    image, noise = diffusion_coefficients(500)
    assert (round(image, 5), round(noise, 5)) == (0.86302, 0.50517)
    assert image**2 + noise**2 == pytest.approx(1.0)
    pixels = np.full((200, 200), 2.0)
    noisy = diffuse(pixels, np.random.default_rng(0), step=500)
    assert noisy.mean() == pytest.approx(2 * image, abs=0.01)
    assert noisy.std() == pytest.approx(noise, abs=0.01)


def test_focus_on_vision_stands_before_the_prompt_and_changes_nothing_else() -> None:
    plain, grounded = PromptLayout(), FocusOnVision().layout(PromptLayout())
    asked = ("How many?", ["A", "B"], ["five", "six"])
    before, _, rest = grounded.user_text(*asked).partition("\n")
    assert before.startswith("Ground your answer in this single image only.")
    assert before.endswith("outside the task prompt and image.")
    assert rest == plain.user_text(*asked)
    assert FocusOnVision().matched() is None
