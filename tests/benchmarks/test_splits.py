"""Splits are functions of a benchmark, and no pair is ever torn apart, in any variant."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from unprior import UnpriorError
from unprior.benchmarks.registry import find_entry
from unprior.benchmarks.schema import LETTERS, Benchmark, Example
from unprior.benchmarks.splits import (
    NESTED_SEEDS,
    REPEATED_SEEDS,
    hold_out,
    hold_outs,
    nested_development,
    repeated_splits,
    split_by_rule,
    split_by_seed,
)
from unprior.benchmarks.taxonomy import SUBCATEGORIES
from unprior.prompts import YES_NO


def pairs() -> Iterator[Example]:
    number = 0
    for category, subcategory, quota in SUBCATEGORIES:
        for _ in range(quota):
            number += 1
            for side, letter, answer in (("cf", "B", "no"), ("cs", "A", "yes")):
                common = {"image": Path(f"{number}-{side}.png"), "pair_id": number, "side": side, "category": category,
                          "subcategory": subcategory}  # fmt: skip
                yield Example(f"{number}-{side}-mc", question="?", task="mc", labels=LETTERS, texts=tuple("pqrs"),
                              answer=letter, **common)  # type: ignore[arg-type]  # fmt: skip
                yield Example(f"{number}-{side}-qa", question="p?", task="qa", labels=YES_NO, answer=answer, **common)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def benchmark() -> Benchmark:
    return split_by_rule(Benchmark("pairs", tuple(pairs())))


def members(benchmark: Benchmark) -> dict[str | None, set[object]]:
    splits: dict[str | None, set[object]] = {}
    for example in benchmark:
        splits.setdefault(example.split, set()).add(example.pair_id)
    return splits


def assert_no_leak(benchmark: Benchmark) -> None:
    """Neither a pair nor an image stands in two splits."""
    for unit in ("pair_id", "image"):
        splits: dict[object, set[str | None]] = {}
        for example in benchmark:
            splits.setdefault(getattr(example, unit), set()).add(example.split)
        assert all(len(found) == 1 for found in splits.values())


def test_by_rule(benchmark: Benchmark) -> None:
    split = members(benchmark)
    assert (len(split["dev"]), len(split["test"])) == (70, 230)
    assert {1, 2, 3, 4, 5, 26, 290} <= split["dev"]
    assert not {6, 25, 291} & split["dev"]


def test_by_seed_keeps_five_of_each_subcategory(benchmark: Benchmark) -> None:
    repeated = repeated_splits(benchmark)
    assert tuple(repeated) == REPEATED_SEEDS
    assert len(REPEATED_SEEDS) == 10
    seen = set()
    for seed, split in repeated.items():
        assert_no_leak(split)
        development = {example.pair_id: example.subcategory for example in split if example.split == "dev"}
        assert set(Counter(development.values()).values()) == {5}
        assert len(development) == 70
        assert members(split) == members(split_by_seed(benchmark, seed))
        seen.add(frozenset(development))
    assert len(seen) == 10


def test_a_draw_does_not_depend_on_the_order_or_on_other_subcategories(benchmark: Benchmark) -> None:
    turned = benchmark.with_examples(benchmark.examples[::-1])
    assert members(split_by_seed(turned, 3)) == members(split_by_seed(benchmark, 3))
    colors = benchmark.with_examples([example for example in benchmark if example.subcategory == "Color"])
    assert members(split_by_seed(colors, 3))["dev"] <= members(split_by_seed(benchmark, 3))["dev"]


@pytest.mark.parametrize("seed", NESTED_SEEDS)
def test_development_sizes_are_nested(benchmark: Benchmark, seed: int) -> None:
    nested = nested_development(benchmark, seed)
    development = [members(each)["dev"] for each in nested.values()]
    assert [len(each) for each in development] == [14, 28, 42, 56, 70]
    assert all(small < large for small, large in pairwise(development))
    assert development[-1] == members(benchmark)["dev"]
    for each in nested.values():
        assert_no_leak(each)
        assert members(each)["test"] == members(benchmark)["test"]
    if seed:
        assert development[0] != members(nested_development(benchmark, 0)[1])["dev"]


def test_held_out_categories(benchmark: Benchmark) -> None:
    for by, number in (("category", 3), ("subcategory", 14)):
        folds = hold_outs(benchmark, by)
        assert len(folds) == number
        tested: set[object] = set()
        for name, fold in folds.items():
            assert_no_leak(fold)
            assert {getattr(example, by) for example in fold if example.split == "test"} == {name}
            assert name not in {getattr(example, by) for example in fold if example.split == "dev"}
            tested |= members(fold)["test"]
        assert tested == members(benchmark)["test"]


def test_mistakes_are_named(benchmark: Benchmark) -> None:
    with pytest.raises(UnpriorError, match="has no 'Smell'; it has Animal Behavior"):
        hold_out(benchmark, subcategory="Smell")
    with pytest.raises(UnpriorError, match="either a category or a subcategory"):
        hold_out(benchmark)
    with pytest.raises(UnpriorError, match="no development pairs"):
        nested_development(Benchmark("none", ()), 0)


def test_a_pair_in_two_splits_is_refused_everywhere(benchmark: Benchmark) -> None:
    first, *rest = benchmark
    with pytest.raises(UnpriorError, match="pair 1 stands in two splits, test and dev"):
        benchmark.with_examples([replace(first, split="test"), *rest])


def test_an_image_in_two_splits_is_refused() -> None:
    examples = [Example(name, Path("a.png"), "?", "qa", YES_NO, split=name) for name in ("dev", "test")]
    with pytest.raises(UnpriorError, match=r"image a\.png stands in two splits, dev and test"):
        Benchmark("images", examples)


def test_pairs_that_share_an_image_stay_together() -> None:
    # Pairs 0-1-2 are a chain, 3-4-5 the next, and so on.
    examples = [
        Example(f"{n}-{side}", Path(f"{image}.png"), "?", "qa", YES_NO, pair_id=n, side=side, subcategory="one")
        for n in range(30)
        for side, image in (
            ("cf", f"cf{n // 3}" if n % 3 else f"x{n}"),
            ("cs", f"cs{n // 3}" if n % 3 < 2 else f"y{n}"),
        )
    ]
    for seed in range(5):
        split = split_by_seed(Benchmark("chains", examples), seed)
        assert_no_leak(split)
        assert split.counts()["dev"] == 15
        for nested in nested_development(split, seed).values():
            assert_no_leak(nested)


def test_an_empty_part_is_refused(benchmark: Benchmark) -> None:
    few = benchmark.with_examples([example for example in benchmark if example.pair_id in (1, 2, 3)], name="few")
    with pytest.raises(UnpriorError, match="benchmark few: no test examples would be left: 5 pairs"):
        split_by_seed(few, 0)
    with pytest.raises(UnpriorError, match="benchmark few: no development examples would be left"):
        hold_outs(few)
    images = [Example(f"{n}-{c}", Path(f"{n}.png"), "?", "qa", YES_NO, category=c) for n in range(20) for c in "ab"]
    with pytest.raises(UnpriorError, match="without images that occur on both sides"):
        hold_outs(split_by_seed(Benchmark("images", images), 0))


def test_all_questions_about_one_image_stay_together() -> None:
    examples = [Example(f"{n}", Path(f"{n % 20}.png"), "?", "qa", YES_NO) for n in range(100)]
    split = split_by_seed(Benchmark("images", examples), 1)
    assert split.counts() == {"examples": 100, "images": 20, "dev": 5, "test": 15}
    by_image: dict[Path, set[str | None]] = {}
    for example in split:
        by_image.setdefault(example.image, set()).add(example.split)
    assert all(len(splits) == 1 for splits in by_image.values())


@pytest.mark.parametrize("variant", list(find_entry("microworld").variants))
def test_no_variant_tears_a_pair_apart(benchmark: Benchmark, variant: str) -> None:
    make = find_entry("microworld").variants[variant].make
    for split in (benchmark, split_by_seed(benchmark, 4), hold_out(benchmark, category="Attribute Anomalies")):
        changed = make(split)
        assert_no_leak(changed)
        assert members(changed) == members(split)
        assert members(make(benchmark)) == members(benchmark)
    # Splitting before or after makes no difference.
    assert members(split_by_seed(make(benchmark), 4)) == members(split_by_seed(benchmark, 4))
