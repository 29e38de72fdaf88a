from __future__ import annotations

from pathlib import Path

import pytest

from small_tables import example, few_pairs
from unprior import ScoreTable, UnpriorError
from unprior.benchmarks.schema import Benchmark, Example
from unprior.benchmarks.splits import hold_out, nested_development, split_by_rule, split_by_seed
from unprior.studies.common.resplit import fold, held_out_folds, outline


def benchmark_and_table() -> tuple[Benchmark, ScoreTable]:
    """The same 24 pairs as questions and as scores; the rows of the table stand in another order."""
    kinds = [("Counting", "Hands"), ("Counting", "Hats"), ("Colours", "Red")]
    examples, rows = [], []
    for pair in range(1, 25):
        category, subcategory = kinds[pair % 3]
        for side in ("cf", "cs"):
            more = {"category": category, "subcategory": subcategory}
            image = Path(f"{pair}-{side}.png")
            examples.append(
                Example(f"{pair}-{side}", image, "How?", "qa", ("yes", "no"), pair_id=pair, side=side, **more)
            )
            rows.append(example(pair, side, [-1.0, -2.0], [-1.0, -2.0], "yes", "no", **more))
    split = split_by_rule(Benchmark("small", examples))
    splits = {each.pair_id: each.split for each in split}
    return split, ScoreTable.from_rows([row | {"split": splits[row["pair_id"]]} for row in reversed(rows)])


def pairs_of(split: Benchmark, part: str) -> set[object]:
    return {each.pair_id for each in split if each.split == part}


@pytest.mark.parametrize("seed", [0, 7])
def test_a_table_is_split_as_its_benchmark_is(seed: int) -> None:
    benchmark, table = benchmark_and_table()
    for rule in (
        lambda whole: split_by_seed(whole, seed),
        lambda whole: nested_development(whole, seed)[2],
        lambda whole: hold_out(whole, category="Counting"),
    ):
        drawn, expected = fold(table, rule(outline(table))), rule(benchmark)
        assert set(drawn.development.column("pair_id")) == pairs_of(expected, "dev")
        assert set(drawn.test.column("pair_id")) == pairs_of(expected, "test")
        assert drawn.development_pairs == len(pairs_of(expected, "dev"))


def test_held_out_folds_cover_the_test_rows_once() -> None:
    table = few_pairs()
    seen: list[object] = []
    for name, each in held_out_folds(table, "category"):
        assert set(each.test.column("category")) == {name}
        assert name not in each.development.column("category")
        assert set(each.test.column("split")) == {"test"}
        assert set(each.development.column("split")) == {"dev"}
        seen += each.test.column("pair_id")
    assert sorted(map(str, seen)) == sorted(map(str, table.where(split="test").column("pair_id")))


def test_without_categories_nothing_can_be_held_out() -> None:
    rows = [row | {"category": None} for row in few_pairs().arrow.to_pylist()]
    with pytest.raises(UnpriorError, match="'category'"):
        list(held_out_folds(ScoreTable.from_rows(rows), "category"))
