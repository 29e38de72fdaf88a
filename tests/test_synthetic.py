from __future__ import annotations

import pytest

from unprior import UnpriorError, measure, synthesize
from unprior.evaluation.comparison import group_rows
from unprior.synthetic import SUBCATEGORIES


def test_structure_is_that_of_cdh_bench() -> None:
    table = synthesize(seed=1)
    assert len(table) == 1200
    assert len(SUBCATEGORIES) == 14
    for (subcategory, task, side), rows in group_rows(table, "subcategory", "task", "side").items():
        pairs = next(number for _, name, number in SUBCATEGORIES if name == subcategory)
        part = table.take(rows)
        assert (len(part), len(part.where(split="dev"))) == (pairs, 5), (subcategory, task, side)
    assert len(table.where(split="test", task="mc", side="cf", category="Counting Anomalies")) == 80
    assert set(table.candidate_counts.tolist()) == {2, 4}


def test_a_pair_shares_its_prior_and_never_straddles_the_split() -> None:
    table = synthesize(seed=2)
    for rows in group_rows(table, "pair_id", "task").values():
        part = table.take(rows)
        assert len(part) == 2
        assert len({tuple(scores) for scores in part.column("prior_scores")}) == 1
        assert len(set(part.column("split"))) == 1
        assert len(set(part.column("answer"))) == 2


def test_the_same_seed_gives_the_same_table() -> None:
    assert synthesize(seed=3).arrow.equals(synthesize(seed=3).arrow)
    assert not synthesize(seed=3).arrow.equals(synthesize(seed=4).arrow)


def test_errors_are_directed_as_in_the_paper() -> None:
    table = synthesize(seed=5, repeats=4).where(task="mc")
    metrics = measure(table, table.original_positions)
    assert metrics.cs.value > 0.9
    assert 0.4 < metrics.cf.value < 0.75
    assert metrics.attraction.value > 0.7


def test_repeats_make_larger_tables() -> None:
    table = synthesize(seed=0, repeats=2)
    assert len(table) == 2400
    assert len(table.where(split="dev")) == 560
    with pytest.raises(UnpriorError, match="at least 1"):
        synthesize(repeats=0)


def test_open_questions_come_beside_the_others() -> None:
    table, closed = synthesize(seed=6, open_questions=True), synthesize(seed=6)
    assert table.take(~table.is_open).arrow.equals(closed.arrow)
    opened = table.where(task="open")
    assert len(opened) == 600
    assert len(opened.where(split="dev")) == 140
    assert set(opened.candidate_counts.tolist()) >= {1, 3, 4}
    assert 0.95 < opened.is_covered.mean() < 1.0
    junk = [max(scores) - min(scores) for scores in opened.column("prior_scores")]
    assert sum(gap > 15 for gap in junk) > 100
    metrics = measure(opened, opened.original)
    assert metrics.cs.value > 0.95
    assert 0.4 < metrics.cf.value < 0.7
    assert table.arrow.equals(synthesize(seed=6, open_questions=True).arrow)
