from __future__ import annotations

import math

import pytest

from unprior.studies.common.spread import Spread


def test_the_deviation_is_that_of_a_sample() -> None:
    spread = Spread.from_values([0.01, 0.03, 0.05])
    assert (spread.mean, spread.low, spread.high) == (pytest.approx(0.03), 0.01, 0.05)
    assert spread.deviation == pytest.approx(math.sqrt((0.02**2 + 0 + 0.02**2) / 2))
    assert (spread.shown(), spread.shown_range()) == ("+3.0 ± 2.0", "[+1.0, +5.0]")


def test_one_value_has_no_deviation() -> None:
    spread = Spread.from_values([-0.02])
    assert spread.shown() == "-2.0"
    assert math.isnan(spread.deviation)
