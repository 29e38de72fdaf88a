"""Development and test pairs: by rule, by seed, nested, and with a category held out. A pair is never torn apart."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping
from dataclasses import replace

from unprior.benchmarks.schema import Benchmark, Example
from unprior.benchmarks.taxonomy import DEV_PAIRS_PER_SUBCATEGORY
from unprior.errors import UnpriorError

DEV, TEST, UNUSED = "dev", "test", "unused"
REPEATED_SEEDS = tuple(range(10))
"""Seeds of the ten repeated splits."""
NESTED_SEEDS = tuple(range(5))
"""Seeds of the nested development sets."""


def split_by_rule(benchmark: Benchmark, per_subcategory: int = DEV_PAIRS_PER_SUBCATEGORY) -> Benchmark:
    """The lowest-numbered pairs of every subcategory are for development, the others for the test.

    >>> from unprior.benchmarks.splits import split_by_rule
    >>> split_by_rule(Benchmark("empty", ())).counts()
    {'examples': 0, 'images': 0}
    """
    groups = _by_subcategory(benchmark)
    return _with_development(benchmark, (unit for units in groups.values() for unit in units[:per_subcategory]))


def split_by_seed(benchmark: Benchmark, seed: int, per_subcategory: int = DEV_PAIRS_PER_SUBCATEGORY) -> Benchmark:
    """Pairs drawn at random from every subcategory are for development; the same seed draws the same pairs."""
    chosen = [
        unit
        for name, units in _by_subcategory(benchmark).items()
        for unit in _shuffled(units, seed, name)[:per_subcategory]
    ]
    return _with_development(benchmark, chosen)


def repeated_splits(benchmark: Benchmark, seeds: Iterable[int] = REPEATED_SEEDS) -> dict[int, Benchmark]:
    """The paper's repeated splits: ten seeds, five pairs per subcategory."""
    return {seed: split_by_seed(benchmark, seed) for seed in seeds}


def nested_development(
    benchmark: Benchmark, seed: int, sizes: Iterable[int] = range(1, DEV_PAIRS_PER_SUBCATEGORY + 1)
) -> dict[int, Benchmark]:
    """Smaller development sets inside the benchmark's own, by pairs per subcategory; the test pairs stay the same.

    Each set holds the smaller ones of its seed. Development pairs that a set leaves out have split ``unused``.
    """
    own = _units(example for example in benchmark if example.split == DEV)
    if not own:
        raise UnpriorError(f"benchmark {benchmark.name} has no development pairs to make smaller sets of")
    order = {name: _shuffled(units, seed, name) for name, units in _by_subcategory(benchmark, only=own).items()}
    nested = {}
    for size in sizes:
        kept = {unit for units in order.values() for unit in units[:size]}
        nested[size] = _assign(benchmark, {unit: UNUSED for unit in own if unit not in kept})
    return nested


def hold_out(benchmark: Benchmark, *, category: str | None = None, subcategory: str | None = None) -> Benchmark:
    """Develop without a category (or subcategory) and test on it alone; all other pairs have split ``unused``."""
    if (category is None) == (subcategory is None):
        raise UnpriorError("hold out either a category or a subcategory")

    def inside(example: Example) -> bool:
        return example.category == category if subcategory is None else example.subcategory == subcategory

    known = sorted({str(example.category if subcategory is None else example.subcategory) for example in benchmark})
    if not any(inside(example) for example in benchmark):
        raise UnpriorError(f"benchmark {benchmark.name} has no {category or subcategory!r}; it has {', '.join(known)}")
    left_out = {
        e.unit: UNUSED for e in benchmark if (e.split == DEV and inside(e)) or (e.split == TEST and not inside(e))
    }
    return _assign(benchmark, left_out)


def hold_outs(benchmark: Benchmark, by: str = "category") -> dict[str, Benchmark]:
    """One benchmark for every category (or ``by="subcategory"``), developed without it and tested on it."""
    names = dict.fromkeys(str(getattr(example, by)) for example in benchmark)
    return {name: hold_out(benchmark, **{by: name}) for name in names}


def _with_development(benchmark: Benchmark, chosen: Iterable[int | str]) -> Benchmark:
    development = set(chosen)
    return _assign(benchmark, {unit: DEV if unit in development else TEST for unit in _units(benchmark)})


def _assign(benchmark: Benchmark, split: Mapping[int | str, str]) -> Benchmark:
    """Splits by pair; what is not named keeps its own."""
    return benchmark.with_examples(
        [replace(example, split=split.get(example.unit, example.split)) for example in benchmark]
    )


def _by_subcategory(benchmark: Benchmark, only: Iterable[int | str] | None = None) -> dict[str, list[int | str]]:
    """Pairs of every subcategory, by number where they have one."""
    wanted = None if only is None else set(only)
    groups: dict[str, set[int | str]] = {}
    for example in benchmark:
        if wanted is None or example.unit in wanted:
            groups.setdefault(example.subcategory or "", set()).add(example.unit)
    return {name: sorted(units, key=lambda unit: (isinstance(unit, str), unit)) for name, units in groups.items()}


def _shuffled(units: list[int | str], seed: int, name: str) -> list[int | str]:
    """By subcategory, so that other subcategories do not change the draw."""
    return random.Random(f"split/{seed}/{name}").sample(units, len(units))


def _units(examples: Iterable[Example]) -> list[int | str]:
    return list(dict.fromkeys(example.unit for example in examples))
