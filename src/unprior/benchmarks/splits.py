"""Development and test pairs: by rule, by seed, nested, and with a category held out.

A pair is never torn apart, and pairs (or questions) that share an image stay together.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping
from dataclasses import replace

from unprior.benchmarks.schema import Benchmark, Example
from unprior.benchmarks.taxonomy import DEV_PAIRS_PER_SUBCATEGORY
from unprior.errors import UnpriorError

DEV, TEST, UNUSED = "dev", "test", "unused"
Unit = int | str
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
    groups = _by_subcategory(benchmark, _units(benchmark))
    return _with_development(benchmark, (unit for units in groups.values() for unit in units[:per_subcategory]))


def split_by_seed(benchmark: Benchmark, seed: int, per_subcategory: int = DEV_PAIRS_PER_SUBCATEGORY) -> Benchmark:
    """Pairs drawn at random from every subcategory are for development; the same seed draws the same pairs."""
    chosen = [
        unit
        for name, units in _by_subcategory(benchmark, _units(benchmark)).items()
        for unit in _shuffled(units, seed, name)[:per_subcategory]
    ]
    split = _with_development(benchmark, chosen)
    return _with_both(
        split, f"{per_subcategory} pairs or images of every subcategory are drawn for development, the others are test"
    )


def repeated_splits(benchmark: Benchmark, seeds: Iterable[int] = REPEATED_SEEDS) -> dict[int, Benchmark]:
    """The paper's repeated splits: ten seeds, five pairs per subcategory."""
    return {seed: split_by_seed(benchmark, seed) for seed in seeds}


def nested_development(
    benchmark: Benchmark, seed: int, sizes: Iterable[int] = range(1, DEV_PAIRS_PER_SUBCATEGORY + 1)
) -> dict[int, Benchmark]:
    """Smaller development sets inside the benchmark's own, by pairs per subcategory; the test pairs stay the same.

    Each set holds the smaller ones of its seed. Development pairs that a set leaves out have split ``unused``.
    """
    units = _units(benchmark)
    own = {units[example.example_id] for example in benchmark if example.split == DEV}
    if not own:
        raise UnpriorError(f"benchmark {benchmark.name} has no development pairs to make smaller sets of")
    order = {name: _shuffled(each, seed, name) for name, each in _by_subcategory(benchmark, units, only=own).items()}
    nested = {}
    for size in sizes:
        kept = {unit for each in order.values() for unit in each[:size]}
        nested[size] = _assign(benchmark, units, {unit: UNUSED for unit in own if unit not in kept})
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
    units = _units(benchmark)
    left_out = {
        units[e.example_id]: UNUSED
        for e in benchmark
        if (e.split == DEV and inside(e)) or (e.split == TEST and not inside(e))
    }
    return _with_both(
        _assign(benchmark, units, left_out),
        f"development is what its own development split has outside {category or subcategory!r}, test what its own "
        f"test split has inside, without images that occur on both sides; it may have to be split first",
    )


def hold_outs(benchmark: Benchmark, by: str = "category") -> dict[str, Benchmark]:
    """One benchmark for every category (or ``by="subcategory"``), developed without it and tested on it."""
    names = dict.fromkeys(str(getattr(example, by)) for example in benchmark)
    return {name: hold_out(benchmark, **{by: name}) for name in names}


def _with_development(benchmark: Benchmark, chosen: Iterable[Unit]) -> Benchmark:
    development, units = set(chosen), _units(benchmark)
    return _assign(benchmark, units, {unit: DEV if unit in development else TEST for unit in units.values()})


def _with_both(benchmark: Benchmark, why: str) -> Benchmark:
    """The benchmark, unless there is nothing to develop on or nothing to test."""
    there = {example.split for example in benchmark}
    for split, name in ((DEV, "development"), (TEST, "test")):
        if split not in there:
            raise UnpriorError(f"benchmark {benchmark.name}: no {name} examples would be left: {why}")
    return benchmark


def _assign(benchmark: Benchmark, units: Mapping[str, Unit], split: Mapping[Unit, str]) -> Benchmark:
    """Splits by unit; what is not named keeps its own."""
    return benchmark.with_examples(
        [replace(example, split=split.get(units[example.example_id], example.split)) for example in benchmark]
    )


def _by_subcategory(
    benchmark: Benchmark, units: Mapping[str, Unit], only: Iterable[Unit] | None = None
) -> dict[str, list[Unit]]:
    """Units of every subcategory, by number where they have one."""
    wanted = None if only is None else set(only)
    groups: dict[str, set[Unit]] = {}
    for example in benchmark:
        unit = units[example.example_id]
        if wanted is None or unit in wanted:
            groups.setdefault(example.subcategory or "", set()).add(unit)
    return {name: sorted(members, key=_rank) for name, members in groups.items()}


def _shuffled(units: list[Unit], seed: int, name: str) -> list[Unit]:
    """By subcategory, so that other subcategories do not change the draw."""
    return random.Random(f"split/{seed}/{name}").sample(units, len(units))


def _units(examples: Iterable[Example]) -> dict[str, Unit]:
    """By example, what must stay together: all that is connected by pairs, groups and images, called by its first."""
    parent: dict[tuple[str, Unit], tuple[str, Unit]] = {}

    def root(node: tuple[str, Unit]) -> tuple[str, Unit]:
        parent.setdefault(node, node)
        while parent[node] != node:
            parent[node] = node = parent[parent[node]]
        return node

    nodes: dict[str, tuple[str, Unit]] = {}
    names: dict[str, Unit] = {}
    for example in examples:
        node: tuple[str, Unit] = ("image", str(example.image))
        nodes[example.example_id] = node
        names[example.example_id] = example.unit
        for kind, value in (("pair", example.pair_id), ("group", example.group)):
            if value is not None:
                parent[root((kind, value))] = root(node)
        root(node)
    first: dict[tuple[str, Unit], Unit] = {}
    for name, node in nodes.items():
        first[root(node)] = min(first.get(root(node), names[name]), names[name], key=_rank)
    return {name: first[root(node)] for name, node in nodes.items()}


def _rank(unit: Unit) -> tuple[bool, Unit]:
    return isinstance(unit, str), unit
