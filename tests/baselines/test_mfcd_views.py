"""The two filters, against a plain transform and on images that can be judged."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image

from unprior.baselines.mfcd import high_pass, low_pass


def _plain(pixels: np.ndarray, cutoff: float, high: bool) -> np.ndarray:
    """The definition, frequency by frequency."""
    height, width = pixels.shape[:2]
    largest = np.hypot(height // 2, width // 2)
    result = np.empty(pixels.shape)
    for channel in range(3):
        spectrum = np.fft.fftshift(np.fft.fft2(pixels[:, :, channel]))
        for row in range(height):
            for column in range(width):
                distance = np.hypot(row - height // 2, column - width // 2) / largest
                response = np.exp(-(distance**2) / (2 * cutoff**2))
                spectrum[row, column] *= 1 - response if high else response
        result[:, :, channel] = np.fft.ifft2(np.fft.ifftshift(spectrum)).real
    return np.rint(result).clip(0, 255)


@pytest.mark.parametrize("size", [(8, 8), (12, 6), (7, 9)])
def test_filters_equal_the_plain_definition(size: tuple[int, int]) -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (size[1], size[0], 3), dtype=np.uint8)
    image = Image.fromarray(pixels)
    for filtered, expected in (
        (low_pass(image, 0.9), _plain(pixels.astype(float), 0.9, False)),
        (high_pass(image, 0.1), _plain(pixels.astype(float), 0.1, True)),
    ):
        assert filtered.size == size
        assert np.abs(np.asarray(filtered, dtype=float) - expected).max() <= 1.0


def test_high_pass_shows_edges_on_black_and_low_pass_softens_them() -> None:
    pixels = np.zeros((64, 64, 3), dtype=np.uint8)
    pixels[:, 32:] = 200
    high, low = (np.asarray(view, dtype=float)[:, :, 0] for view in (
        high_pass(Image.fromarray(pixels), 0.1), low_pass(Image.fromarray(pixels), 0.9)
    ))  # fmt: skip
    assert high[:, 32].mean() > 60
    assert high[:, 16].mean() < 10
    step = np.abs(np.diff(low[32]))
    assert 0 < step[31] < 200
    assert low[:, 48].mean() == pytest.approx(200, abs=3)
