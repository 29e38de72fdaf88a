from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from statsmodels.stats.contingency_tables import mcnemar as reference_mcnemar
from statsmodels.stats.multitest import multipletests

from unprior import UnpriorError, holm, mcnemar, pair_bootstrap
from unprior.evaluation import PAPER_FAMILIES, holm_over_models


@given(st.integers(0, 200), st.integers(0, 200))
def test_mcnemar_equals_statsmodels(repairs: int, harms: int) -> None:
    expected = reference_mcnemar([[10, repairs], [harms, 10]], exact=True).pvalue if repairs + harms else 1.0
    result = mcnemar(repairs, harms)
    assert (result.repairs, result.harms) == (repairs, harms)
    assert result.p_value == pytest.approx(min(1.0, expected), rel=1e-9)


@settings(max_examples=20)  # statsmodels collects garbage in every call
@given(st.lists(st.floats(0, 1), min_size=1, max_size=30))
def test_holm_equals_statsmodels(p_values: list[float]) -> None:
    expected = multipletests(p_values, method="holm")[1]
    np.testing.assert_allclose(holm(p_values).adjusted, expected, rtol=1e-12, atol=0)


def test_the_paper_s_primary_tests() -> None:
    """Repairs and harms that the paper reports give its p-values, and its Holm values but for one slip."""
    assert mcnemar(21, 3).p_value == pytest.approx(0.000277, abs=5e-7)  # Qwen3-VL-32B, MC CF
    assert mcnemar(17, 1).p_value == pytest.approx(0.000145, abs=5e-7)  # LLaVA-1.6-34B, MC CF
    assert mcnemar(53, 2).p_value == pytest.approx(8.55e-14, rel=1e-3)  # Qwen3-VL-32B, QA CF
    assert mcnemar(57, 2).p_value == pytest.approx(6.14e-15, rel=1e-3)  # LLaVA-1.6-34B, QA CF
    assert mcnemar(24, 2).p_value == pytest.approx(1.05e-5, rel=1e-2)  # Qwen3-VL-30B-A3B, MC CF
    raw = [0.000277, 1, 8.55e-14, 0.125, 0.000145, 1, 6.14e-15, 0.000977, 1.05e-5, 0.030884]
    published = [0.001662, 1, 7.70e-13, 0.375, 0.000870, 1, 6.14e-14, 0.004885, 8.39e-5, 0.123535]
    adjusted = holm(raw).adjusted
    for index, (ours, theirs) in enumerate(zip(adjusted, published, strict=True)):
        if index == 4:
            assert ours == pytest.approx(0.001015, rel=1e-3)  # the paper prints 0.000870
        else:
            assert ours == pytest.approx(theirs, rel=2e-3)


def test_mcnemar_type_one_rate_stays_below_its_level() -> None:
    generator = np.random.default_rng(0)
    discordant = generator.integers(1, 60, 20_000)
    repairs = generator.binomial(discordant, 0.5)
    p_values = {(n, k): mcnemar(k, n - k).p_value for n in range(1, 60) for k in range(n + 1)}
    drawn = np.array([p_values[int(n), int(k)] for n, k in zip(discordant, repairs, strict=True)])
    for level in (0.01, 0.05, 0.2):
        assert (drawn <= level).mean() <= level + 0.005
    assert (drawn <= 0.2).mean() > 0.08  # and it is not vacuous


def test_bootstrap_equals_drawing_pairs_one_by_one() -> None:
    """The multinomial shortcut is the same distribution as resampling row by row."""
    generator = np.random.default_rng(3)
    values = generator.choice([-1.0, 0.0, 0.0, 1.0], size=(230, 2))
    result = pair_bootstrap(values, resamples=20_000, seed=1)
    rows = generator.integers(0, 230, size=(20_000, 230))
    low, high = np.quantile(values[rows].mean(axis=1), [0.025, 0.975], axis=0)
    np.testing.assert_allclose(result.estimate, values.mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(result.low, low, atol=0.006)
    np.testing.assert_allclose(result.high, high, atol=0.006)


def test_bootstrap_of_distinct_values_works_the_same() -> None:
    values = np.random.default_rng(0).normal(size=(100, 1))
    result = pair_bootstrap(values, resamples=4000, seed=2)
    half_width = 1.96 * values.std() / 10
    assert result.high[0] - result.low[0] == pytest.approx(2 * half_width, rel=0.08)


def test_bootstrap_interval_covers_the_truth() -> None:
    """Simulated coverage of the 95 % interval of a mean difference over 230 pairs."""
    generator = np.random.default_rng(7)
    truth, covered, trials = 0.15 - 0.05, 0, 600
    for trial in range(trials):
        values = generator.choice([1.0, -1.0, 0.0], p=[0.15, 0.05, 0.80], size=(230, 1))
        result = pair_bootstrap(values, resamples=1000, seed=trial)
        covered += result.low[0] <= truth <= result.high[0]
    assert 0.92 <= covered / trials <= 0.98


def test_a_pair_moves_as_a_whole() -> None:
    """Perfectly opposed sides cancel in every resample, which independent sides would not."""
    side = np.random.default_rng(0).choice([-1.0, 1.0], size=(60, 1))
    result = pair_bootstrap(np.hstack([side, -side]), lambda totals: totals.sum(axis=1, keepdims=True))
    assert result.low == result.high == (0.0,)


def test_the_same_seed_gives_the_same_interval() -> None:
    values = np.random.default_rng(0).choice([0.0, 1.0], size=(50, 1))
    assert pair_bootstrap(values, seed=5) == pair_bootstrap(values, seed=5)
    assert pair_bootstrap(values, seed=5) != pair_bootstrap(values, seed=6)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: mcnemar(-1, 2), "not negative"),
        (lambda: mcnemar(2.5, 2), "whole numbers"),
        (lambda: holm([0.5, 1.5]), "between 0 and 1"),
        (lambda: holm([float("nan")]), "between 0 and 1"),
        (lambda: pair_bootstrap([]), "at least one pair"),
        (lambda: pair_bootstrap([[1.0]], level=1.0), "level"),
        (lambda: pair_bootstrap([[1.0]], resamples=0), "resamples"),
    ],
)
def test_bad_arguments_are_named(call: object, message: str) -> None:
    with pytest.raises(UnpriorError, match=message):
        call()  # type: ignore[operator]


def test_a_family_over_several_models_is_one_family() -> None:
    """The paper's ten tests of three models; LLaVA's MC CF value is its slip, two others come from rounded ones."""
    raw = {
        "Qwen3-VL-32B": {"MC CF": (21, 3), "MC CS": (5, 4), "QA CF": (53, 2), "QA CS": (0, 4)},
        "LLaVA-1.6-34B": {"MC CF": (17, 1), "MC CS": (3, 4), "QA CF": (57, 2), "QA CS": (0, 11)},
        "Qwen3-VL-30B-A3B": {"MC CF": (24, 2), "MC CS": (3, 13)},
    }
    tests = {model: {name: mcnemar(*counts).p_value for name, counts in each.items()} for model, each in raw.items()}
    adjusted = holm_over_models(tests, size=PAPER_FAMILIES["primary"])
    assert {model: list(each) for model, each in adjusted.items()} == {model: list(each) for model, each in raw.items()}
    flat = [p for each in tests.values() for p in each.values()]
    assert [p for each in adjusted.values() for p in each.values()] == list(holm(flat).adjusted)
    assert adjusted["Qwen3-VL-32B"]["MC CF"] == pytest.approx(0.001663, abs=5e-7)
    assert adjusted["LLaVA-1.6-34B"]["QA CS"] == pytest.approx(0.004883, abs=5e-7)
    alone = holm(list(tests["Qwen3-VL-32B"].values())).adjusted
    assert adjusted["Qwen3-VL-32B"]["MC CF"] > alone[0], "a model by itself is adjusted too little"


def test_a_part_of_a_declared_family_is_refused() -> None:
    with pytest.raises(UnpriorError, match=r"the family has 16 tests, 3 are here \(one has 2, two has 1\)"):
        holm_over_models({"one": {"CF": 0.1, "CS": 0.2}, "two": {"CF": 0.1}}, size=PAPER_FAMILIES["option orders"])
    assert holm_over_models({}) == {}
