from __future__ import annotations

import json

import numpy as np
import pytest

import straightforward
from small_tables import count_changes, few_pairs, with_other_answers
from unprior import ScoreTable, UnpriorError
from unprior.benchmarks.splits import split_by_seed
from unprior.evaluation import Change
from unprior.plots.style import DARK
from unprior.studies.common.resplit import outline
from unprior.studies.common.trade_off import TradeOff
from unprior.studies.rq4.repeated_splits import RepeatedSplits, SplitResult, study_repeated_splits


@pytest.fixture(scope="module")
def table() -> ScoreTable:
    return few_pairs(development=5, test=1)


def test_a_split_against_plain_loops(table: ScoreTable) -> None:
    (split,) = study_repeated_splits(table, seeds=(4,), epsilon=0.1).splits
    chosen = {each.pair_id for each in split_by_seed(outline(table), 4) if each.split == "dev"}
    rows = table.arrow.to_pylist()
    model = straightforward.fit([row for row in rows if row["pair_id"] in chosen], epsilon_cs=0.1, uncertainty=True)
    judged = [row for row in rows if row["pair_id"] not in chosen]
    finals = [straightforward.decide(model, row)["final"] for row in judged]
    assert split.development_pairs == len(chosen) == 15
    for task in split.tasks:
        for side, change in (("cf", task.cf), ("cs", task.cs)):
            assert (change.repairs, change.harms, change.total) == count_changes(judged, finals, task.task, side)


def test_answers_of_the_drawn_test_pairs_are_not_looked_at(table: ScoreTable) -> None:
    (mine,) = study_repeated_splits(table, seeds=(4,)).splits
    held = next(each.pair_id for each in split_by_seed(outline(table), 4) if each.split == "test")
    (theirs,) = study_repeated_splits(with_other_answers(table, pair_id=held), seeds=(4,)).splits
    assert [task.cf.changed for task in mine.tasks] == [task.cf.changed for task in theirs.tasks]
    assert (mine,) == study_repeated_splits(table, seeds=(4,)).splits, "the same twice"


def made_up(*gains: int) -> RepeatedSplits:
    lost = Change(0, 1, 1, 10)
    return RepeatedSplits(
        0.04,
        "SPC (uncertainty-aware, ε = 0.04)",
        5,
        1,
        tuple(
            SplitResult(seed, 5, False, (TradeOff("mc", Change(max(gain, 0), max(-gain, 0), 3, 10), lost),))
            for seed, gain in enumerate(gains)
        ),
    )  # fmt: skip


def test_the_summary_is_mean_deviation_and_range() -> None:
    result = made_up(1, 3)
    assert result.table.rows[0].cells == ("MC", "+20.00 ± 14.14 [+10.00, +30.00]", "-10.00 ± 0.00 [-10.00, -10.00]")
    assert result.sentences[0].startswith(
        "All 2 CF changes of SPC (uncertainty-aware, ε = 0.04) over 2 splits are positive"
    )
    assert made_up(1, -1, 0).sentences[0].startswith("1 of 3 CF changes")
    assert len(json.loads(json.dumps(result.records(), allow_nan=False))) == 2


def test_every_split_is_a_point() -> None:
    (axes,) = made_up(1, 3).plot(style=DARK)
    points = next(line for line in axes.lines if str(line.get_label()).endswith("one split"))
    np.testing.assert_allclose(points.get_xydata(), [(-10.0, 10.0), (-10.0, 30.0)])
    (mean,) = axes.containers
    np.testing.assert_allclose(mean.get_children()[0].get_xydata(), [(-10.0, 20.0)])
    assert made_up(1).figure() is not None, "one split has no deviation to draw"


def test_as_many_pairs_are_drawn_as_the_own_split_has() -> None:
    result = study_repeated_splits(few_pairs(development=2, test=2), seeds=(0,))
    assert (result.per_subcategory, result.splits[0].development_pairs) == (2, 6)
    assert "For every split 2 pairs of each subcategory are drawn" in result.table.caption


def test_the_caption_is_true_where_a_subcategory_has_fewer_pairs() -> None:
    rows = few_pairs(development=2, test=2).arrow.to_pylist()
    single = next(row["pair_id"] for row in rows if row["subcategory"] == "Color")
    fewer = [row for row in rows if row["subcategory"] != "Color" or row["pair_id"] == single]
    result = study_repeated_splits(ScoreTable.from_rows(fewer), seeds=(0,))
    assert result.splits[0].development_pairs == 2 + 2 + 1
    assert "up to 2 pairs of each subcategory" in result.table.caption


def test_a_table_without_subcategories_is_refused() -> None:
    rows = [row | {"subcategory": None} for row in few_pairs().arrow.to_pylist()]
    with pytest.raises(UnpriorError, match="column 'subcategory'"):
        study_repeated_splits(ScoreTable.from_rows(rows), seeds=(0,))
