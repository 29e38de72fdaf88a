from __future__ import annotations

import json
from typing import Any

import pytest
from matplotlib.figure import Figure

import straightforward
from small_tables import count_changes, few_pairs, with_other_answers
from unprior import ScoreTable
from unprior.evaluation import Change
from unprior.plots.style import DARK
from unprior.studies.common.trade_off import TradeOff
from unprior.studies.rq4.held_out import HeldOut, HeldOutFold, study_held_out


@pytest.fixture(scope="module")
def table() -> ScoreTable:
    return few_pairs(development=3, test=1)


@pytest.fixture(scope="module")
def result(table: ScoreTable) -> HeldOut:
    return study_held_out(table, epsilon=0.1)


def test_every_fold_against_plain_loops(table: ScoreTable, result: HeldOut) -> None:
    rows: list[dict[str, Any]] = table.arrow.to_pylist()
    pooled: dict[tuple[str, str], list[int]] = {}
    assert [fold.name for fold in result.folds] == list(dict.fromkeys(row["category"] for row in rows))
    for fold in result.folds:
        outside = [row for row in rows if row["split"] == "dev" and row["category"] != fold.name]
        inside = [row for row in rows if row["split"] == "test" and row["category"] == fold.name]
        model = straightforward.fit(outside, epsilon_cs=0.1, uncertainty=True)
        finals = [straightforward.decide(model, row)["final"] for row in inside]
        assert fold.development_pairs == 6
        for task in fold.tasks:
            for side, change in (("cf", task.cf), ("cs", task.cs)):
                expected = count_changes(inside, finals, task.task, side)
                assert (change.repairs, change.harms, change.total) == expected
                sums = pooled.setdefault((task.task, side), [0, 0, 0])
                pooled[task.task, side] = [one + more for one, more in zip(sums, expected, strict=True)]
    for task in result.pooled:
        for side, change in (("cf", task.cf), ("cs", task.cs)):
            assert [change.repairs, change.harms, change.total] == pooled[task.task, side]


def test_test_answers_are_not_looked_at(table: ScoreTable, result: HeldOut) -> None:
    other = study_held_out(with_other_answers(table, split="test"), epsilon=0.1)
    for mine, theirs in zip(result.folds, other.folds, strict=True):
        assert [(task.cf.changed, task.cs.changed) for task in mine.tasks] == [
            (task.cf.changed, task.cs.changed) for task in theirs.tasks
        ]
    assert study_held_out(table, epsilon=0.1) == result, "the same twice"


def trade_off(task: str, repairs: int, harms: int) -> TradeOff:
    return TradeOff(task, Change(repairs, harms, repairs + harms, 10), Change(0, 1, 1, 10))


def made_up(*changes: tuple[int, int]) -> HeldOut:
    folds = tuple(HeldOutFold(f"kind {place}", 5, False, (trade_off("mc", *change),))
                  for place, change in enumerate(changes))  # fmt: skip
    return HeldOut("subcategory", 0.04, "SPC (uncertainty-aware, ε = 0.04)", folds, (trade_off("mc", 3, 1),))


def test_sentences_count_improved_unchanged_and_declined() -> None:
    first, second = made_up((2, 0), (1, 1), (0, 1)).sentences
    assert first == (
        "Fitted without the subcategory it is tested on, SPC (uncertainty-aware, ε = 0.04) changes CF/CS accuracy by "
        "+20.0/-10.0 on MC (points) over 3 subcategories."
    )
    assert second.endswith(" rises in 1, does not change in 1 and falls in 1 of 3 subcategories.")
    assert (
        made_up((0, 0), (2, 1), (3, 1))
        .sentences[1]
        .endswith(" rises in 2 and does not change in 1 of 3 subcategories.")
    )
    assert made_up((2, 0), (2, 1)).sentences[1].endswith(" rises in all 2 subcategories.")


def test_table_and_records_have_the_pooled_row(result: HeldOut) -> None:
    assert result.table.rows[-1].bold
    assert len(result.table.rows) == 4
    records = json.loads(json.dumps(result.records(), allow_nan=False))
    assert [record["held_out"] for record in records[:2]] == [None, None]
    assert len(records) == 8
    assert made_up((2, 1)).table.rows[0].cells == ("kind 0", "+10.0/-10.0", "2/1; 0/1")


def test_a_task_that_a_fold_lacks_is_a_dash() -> None:
    one = made_up((2, 1))
    both = HeldOut("category", 0.04, one.method, one.folds, (*one.pooled, trade_off("qa", 1, 0)))
    assert both.table.rows[0].cells[-2:] == ("–", "–")
    assert both.figure() is not None


def test_the_figure_shows_every_fold(result: HeldOut) -> None:
    axes = result.plot(Figure().subplots(1, 2), style=DARK)[1]
    assert [label.get_text() for label in axes.get_yticklabels()][:-1] == [fold.name for fold in result.folds]
    drawn = {line.get_label(): list(line.get_xdata())[:-1] for line in axes.lines}
    assert drawn["ΔCF: repair"] == [100 * fold.tasks[1].cf.delta for fold in result.folds]
    assert drawn["ΔCS: retention"] == [100 * fold.tasks[1].cs.delta for fold in result.folds]
    figure = result.figure(DARK)
    assert figure is not None
    assert [label.get_text() for label in figure.axes[0].get_yticklabels()][-1] == "All together"
