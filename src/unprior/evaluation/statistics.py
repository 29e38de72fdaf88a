"""Paired statistics: exact McNemar test, Holm adjustment, bootstrap over pairs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral

import numpy as np
from numpy.typing import ArrayLike

from unprior.errors import UnpriorError, require_type
from unprior.scores.table import FloatArray

BOOTSTRAP_RESAMPLES = 10_000
BOOTSTRAP_SEED = 20260712
"""The paper's number of resamples and seed."""

_ROWS_AT_ONCE = 1 << 22


@dataclass(frozen=True, slots=True)
class McNemarResult:
    """Exact two-sided test of repairs against harms."""

    repairs: int
    harms: int
    p_value: float


def mcnemar(repairs: int, harms: int) -> McNemarResult:
    """Test whether repairs and harms are equally likely; without either, p is 1.

    >>> mcnemar(21, 3).p_value.__round__(6)
    0.000277
    """
    from scipy.special import bdtr  # scipy takes as long to import as all the rest

    if repairs != int(repairs) or harms != int(harms) or repairs < 0 or harms < 0:
        raise UnpriorError(f"repairs ({repairs}) and harms ({harms}) must be counts: whole numbers, not negative")
    tail = float(bdtr(min(repairs, harms), repairs + harms, 0.5))
    return McNemarResult(repairs, harms, min(1.0, 2.0 * tail))


@dataclass(frozen=True, slots=True)
class HolmResult:
    """Family-wise adjusted p-values, in the order given."""

    p_values: tuple[float, ...]
    adjusted: tuple[float, ...]


def holm(p_values: Sequence[float]) -> HolmResult:
    """Holm's step-down adjustment with the running maximum, over a declared family of tests.

    >>> [round(p, 3) for p in holm([0.01, 0.04, 0.03]).adjusted]
    [0.03, 0.06, 0.06]
    """
    raw = np.asarray(p_values, dtype=np.float64)
    if raw.ndim != 1 or not ((raw >= 0) & (raw <= 1)).all():
        raise UnpriorError("p-values must be numbers between 0 and 1")
    order = np.argsort(raw, kind="stable")
    scaled = raw[order] * np.arange(len(raw), 0, -1)
    adjusted = np.empty_like(raw)
    adjusted[order] = np.minimum(1.0, np.maximum.accumulate(scaled))
    return HolmResult(tuple(raw.tolist()), tuple(adjusted.tolist()))


PAPER_FAMILIES = {"primary": 10, "option orders": 16, "question forms": 32, "visual-counterfact": 4}
"""Tests in the paper's families, each over all its models: tasks and sides of three (the third has multiple choice
only); of two, four option orders and both sides, four forms, two claim orders and both sides, or both sides alone."""


def holm_over_models(
    tests: Mapping[str, Mapping[str, float]], *, size: int | None = None
) -> dict[str, dict[str, float]]:
    """Holm's adjustment over one family that spans several models; adjusted p by model and name of the test.

    Parameters
    ----------
    tests
        Raw p-values by model and name.
    size
        How many tests the family was declared to have, such as one of ``PAPER_FAMILIES``; another number is refused,
        because p-values adjusted over a part of a family are too small.

    >>> holm_over_models({"one": {"CF": 0.01, "CS": 0.5}, "two": {"CF": 0.02, "CS": 1.0}}, size=4)["two"]
    {'CF': 0.06, 'CS': 1.0}
    """
    names = [(model, name) for model, each in tests.items() for name in each]
    if size is not None and len(names) != size:
        counts = ", ".join(f"{model} has {len(each)}" for model, each in tests.items())
        raise UnpriorError(f"the family has {size} tests, {len(names)} are here ({counts or 'no model'})")
    adjusted = holm([tests[model][name] for model, name in names]).adjusted
    found: dict[str, dict[str, float]] = {model: {} for model in tests}
    for (model, name), p in zip(names, adjusted, strict=True):
        found[model][name] = p
    return found


@dataclass(frozen=True, slots=True)
class BootstrapResult:
    """Percentile intervals of one or more statistics, resampling pairs."""

    estimate: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    level: float
    resamples: int
    seed: int


def pair_bootstrap(
    contributions: ArrayLike,
    statistic: Callable[[FloatArray], FloatArray] | None = None,
    *,
    resamples: int = BOOTSTRAP_RESAMPLES,
    seed: int = BOOTSTRAP_SEED,
    level: float = 0.95,
) -> BootstrapResult:
    """Percentile intervals over resamples of pairs; everything that belongs to a pair moves together.

    Parameters
    ----------
    contributions
        One row per pair, one column per quantity that adds up over pairs.
    statistic
        From totals of shape (resamples, columns) to statistics of shape (resamples, statistics); by
        default the mean of every column.

    >>> result = pair_bootstrap([[1.0], [0.0], [1.0], [1.0]], resamples=1000, seed=1)
    >>> result.estimate, result.low[0] < 0.75 < result.high[0]
    ((0.75,), True)
    """
    if not 0 < level < 1:
        raise UnpriorError("level must lie between 0 and 1")
    samples = resample_pairs(contributions, statistic, resamples=resamples, seed=seed)
    values = np.asarray(contributions, dtype=np.float64)
    totals = values.sum(axis=0, keepdims=True)
    estimate = (totals / len(values) if statistic is None else statistic(totals))[0]
    tail = (1.0 - level) / 2.0
    low, high = np.full_like(estimate, np.nan), np.full_like(estimate, np.nan)
    for column in np.flatnonzero(np.isfinite(samples).any(axis=0)):  # a statistic may be undefined in some resamples
        low[column], high[column] = np.nanquantile(samples[:, column], [tail, 1.0 - tail])
    return BootstrapResult(tuple(estimate.tolist()), tuple(low.tolist()), tuple(high.tolist()), level, resamples, seed)


def resample_pairs(
    contributions: ArrayLike,
    statistic: Callable[[FloatArray], FloatArray] | None = None,
    *,
    resamples: int = BOOTSTRAP_RESAMPLES,
    seed: int = BOOTSTRAP_SEED,
) -> FloatArray:
    """Statistics of every resample of :func:`pair_bootstrap`, shape (resamples, statistics).

    Pairs with equal contributions are interchangeable, so instead of drawing pairs one by one, the
    number of draws of each distinct contribution is drawn from the multinomial distribution. This is
    the same bootstrap and costs as much as there are distinct contributions, not pairs.

    >>> resample_pairs([[1.0, 2.0], [1.0, 2.0]], resamples=2).tolist()
    [[1.0, 2.0], [1.0, 2.0]]
    """
    values = np.asarray(contributions, dtype=np.float64)
    if values.ndim != 2 or len(values) == 0:
        raise UnpriorError("contributions must have one row per pair and at least one pair")
    require_type("resamples", resamples, Integral, "a whole number")
    if resamples < 1:
        raise UnpriorError("resamples must be at least 1")
    pairs = len(values)
    compute = statistic or (lambda totals: totals / pairs)
    distinct, counts = np.unique(values, axis=0, return_counts=True)
    generator = np.random.default_rng(seed)
    portion = max(1, _ROWS_AT_ONCE // len(distinct))
    draws = [
        compute(generator.multinomial(pairs, counts / pairs, size=min(portion, resamples - start)) @ distinct)
        for start in range(0, resamples, portion)
    ]
    return np.concatenate(draws)
