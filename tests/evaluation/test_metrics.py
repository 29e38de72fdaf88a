"""Metrics on a table small enough to count by hand."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from unprior import ScoreTable, SelectivePriorCalibrator, UnpriorError, evaluate, measure
from unprior.evaluation import compare, prior_winners, utility


def example(
    pair: int, side: str | None, answer: str, original: str | None, favourite: str = "A", **more: Any
) -> dict[str, Any]:
    candidates = ["A", "B", "C", "D"]
    return {
        "pair_id": pair, "side": side, "task": "mc", "split": "test", "candidates": candidates,
        "image_scores": [0.0, 0.0, 0.0, 0.0],
        "prior_scores": [0.0 if name == favourite else -2.0 for name in candidates],
        "original": original, "answer": answer,
    } | more  # fmt: skip


# Four pairs: the ordinary answer is A in all, the atypical one B.
ROWS = [
    example(1, "cf", "B", "A"),  # wrong, attracted, equals the cs answer
    example(1, "cs", "A", "A"),
    example(2, "cf", "B", "C"),  # wrong, neither
    example(2, "cs", "A", "A"),
    example(3, "cf", "B", None),  # wrong: no answer
    example(3, "cs", "A", "B"),  # wrong
    example(4, "cf", "B", "B"),
    example(4, "cs", "A", "A"),
]


@pytest.fixture
def small() -> ScoreTable:
    return ScoreTable.from_rows(ROWS)


def positions(*names: str | None) -> np.ndarray:
    return np.array([-1 if name is None else "ABCD".index(name) for name in names])


def test_metrics_counted_by_hand(small: ScoreTable) -> None:
    metrics = measure(small, small.original_positions)
    assert (metrics.cf.count, metrics.cf.total) == (1, 4)
    assert (metrics.cs.count, metrics.cs.total) == (3, 4)
    assert metrics.cfad == pytest.approx(0.5)
    assert metrics.rpd == pytest.approx(0.5 / 0.75)
    assert (metrics.ccr.count, metrics.ccr.total) == (1, 3)
    assert (metrics.attraction.count, metrics.attraction.total) == (1, 3)


def test_attraction_and_ccr_differ_when_the_prior_favours_another_answer() -> None:
    rows = [example(1, "cf", "B", "A", favourite="C"), example(1, "cs", "A", "A", favourite="C"),
            example(2, "cf", "B", "C", favourite="C"), example(2, "cs", "A", "A", favourite="C")]  # fmt: skip
    table = ScoreTable.from_rows(rows)
    metrics = measure(table, table.original_positions)
    assert metrics.ccr.value == 0.5
    assert metrics.attraction.value == 0.5
    assert prior_winners(table).tolist() == [2, 2, 2, 2]


def test_ccr_compares_candidates_by_name_when_sides_list_them_differently() -> None:
    rows = [example(1, "cf", "B", "A"), example(1, "cs", "A", "A", candidates=["D", "C", "B", "A"])]
    table = ScoreTable.from_rows(rows)
    assert measure(table, table.original_positions).ccr.value == 1.0


def test_changes_counted_by_hand(small: ScoreTable) -> None:
    final = positions("B", "C", "B", "A", "D", "A", "A", "A")
    cf, cs = compare(small, final, side="cf"), compare(small, final, side="cs")
    assert (cf.repairs, cf.harms, cf.changed, cf.total) == (2, 1, 4, 4)
    assert (cs.repairs, cs.harms, cs.changed, cs.total) == (1, 1, 2, 4)
    assert cf.delta == pytest.approx(0.25)
    assert cs.delta == 0.0


def test_no_answer_is_wrong_before_and_after(small: ScoreTable) -> None:
    nothing = np.full(len(small), -1)
    metrics = measure(small, nothing)
    assert (metrics.cf.count, metrics.cs.count) == (0, 0)
    assert metrics.ccr.count == 0
    assert math.isnan(metrics.rpd)


def test_evaluation_puts_the_numbers_together(small: ScoreTable) -> None:
    final = positions("B", "C", "B", "A", "D", "A", "A", "A")
    result = evaluate(small, final, resamples=500, seed=3)
    task = result.tasks[0]
    assert task.original == measure(small, small.original_positions)
    assert task.method == measure(small, final)
    assert task.utility == pytest.approx(utility(0.25, 0.0))
    assert (task.cf.test.repairs, task.cf.test.harms, task.cf.test.p_value) == (2, 1, 1.0)
    assert task.cf.low <= task.cf.change.delta <= task.cf.high
    assert result.family == 2


def test_the_holm_family_is_every_side_of_every_task() -> None:
    rows = [row | {"task": task} for task in ("mc", "qa") for row in ROWS]
    table = ScoreTable.from_rows(rows)
    final = np.where(table.is_cf, table.answer_positions, table.original_positions)
    result = evaluate(table, final)
    assert result.family == 4
    assert [task.task for task in result.tasks] == ["mc", "qa"]
    assert result.tasks[0].cf.holm_p == pytest.approx(min(1.0, 4 * result.tasks[0].cf.test.p_value))


def test_models_and_benchmarks_are_kept_apart() -> None:
    rows = [row | {"model": model} for model in ("small", "large") for row in ROWS]
    table = ScoreTable.from_rows(rows)
    result = evaluate(table, table.original_positions)
    assert [task.model for task in result.tasks] == ["large", "small"]
    assert all(task.original.cf.total == 4 for task in result.tasks)


def test_unpaired_rows_count_for_accuracy_but_not_for_ccr() -> None:
    table = ScoreTable.from_rows([*ROWS, example(9, "cf", "B", "A")])
    metrics = measure(table, table.original_positions)
    assert metrics.cf.total == 5
    assert (metrics.ccr.count, metrics.ccr.total) == (1, 3)
    assert evaluate(table, table.original_positions).tasks[0].cf.change.total == 5


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([row for row in ROWS if row["side"] == "cf"], r"no commonsense \(cs\) row"),
        ([row for row in ROWS if row["side"] == "cs"], r"no counterfactual \(cf\) row"),
        (
            [*ROWS, example(1, "cs", "A", "A")],
            r"lines 1, 2, 9: pair 1 \(mc\): the same example stands there more than once",
        ),
        (
            [*ROWS, example(1, "cs", "C", "A", example_id="again") | {"image_scores": [-0.7, -0.8, -0.9, -1.0]}],
            "pair 1 .* two commonsense examples",
        ),
        ([*ROWS, example(9, None, "C", "A")], r"1 of 9 rows do not say their side"),
        ([row | {"answer": None} for row in ROWS], "no correct answer"),
    ],
)
def test_what_cannot_be_evaluated_is_refused(rows: list[dict[str, Any]], message: str) -> None:
    table = ScoreTable.from_rows(rows, require_answers=False)
    with pytest.raises(UnpriorError, match=message):
        evaluate(table, table.original_positions)


@pytest.mark.parametrize(
    ("answers", "message"),
    [
        ([0, 0, 0], "3 answers for 8 rows"),
        ([0] * 7 + [4], "candidate positions"),
        ([0] * 7 + [-2], "candidate positions"),
        ([0.5] * 8, "candidate positions"),
        (["A"] * 7 + ["Z"], "answer 'Z' of row 7 is not one of its candidates"),
        ([None] * 7 + [1], "of several types"),
    ],
)
def test_answers_must_be_labels_or_positions_one_per_row(small: ScoreTable, answers: list[Any], message: str) -> None:
    for function in (evaluate, measure):
        with pytest.raises(UnpriorError, match=message):
            function(small, answers)


def test_decisions_and_plain_lists_are_answers_too(table: ScoreTable) -> None:
    decisions = SelectivePriorCalibrator().fit(table).predict(table)
    assert evaluate(table, decisions) == evaluate(table, decisions.final_positions.tolist())
    assert measure(table, decisions) == measure(table, decisions.final_positions)
    assert measure(table, decisions) == measure(table, decisions.final)
    accuracy = measure(table, decisions)
    assert (decisions.final == table.answer).sum() == accuracy.cf.count + accuracy.cs.count


def test_intervals_resample_pairs_and_not_sides() -> None:
    """Against drawing pairs one by one, on a table where some pairs lack a side."""
    generator = np.random.default_rng(5)
    rows = []
    for pair in range(60):
        for side, answer in (("cf", "B"), ("cs", "A")):
            if pair % 7 == 0 and side == "cs":
                continue
            rows.append(example(pair, side, answer, "A"))
    table = ScoreTable.from_rows(rows)
    repaired = generator.random(60) < 0.4  # where the cf image is repaired, the cs image is harmed
    pair_of_row = np.array(table.column("pair_id"))
    final = np.where(repaired[pair_of_row], 1, table.original_positions)
    result = evaluate(table, final, resamples=20_000).tasks[0]
    gain = (final == table.answer_positions).astype(float) - (table.original_positions == table.answer_positions)
    deltas = []
    for _ in range(4000):
        weight = np.bincount(generator.integers(0, 60, 60), minlength=60)[pair_of_row]
        deltas.append([np.average(gain[side], weights=weight[side]) for side in (table.is_cf, ~table.is_cf)])
    low, high = np.quantile(deltas, [0.025, 0.975], axis=0)
    np.testing.assert_allclose([result.cf.low, result.cs.low], low, atol=0.02)
    np.testing.assert_allclose([result.cf.high, result.cs.high], high, atol=0.02)


def test_another_reference_takes_the_place_of_the_original_answers(small: ScoreTable) -> None:
    before = positions("B", "A", None, "A", "B", "C", "A", "A")
    after = positions("B", "A", "B", "B", "B", "A", "B", "B")
    cf = compare(small, after, side="cf", reference=before)
    assert (cf.repairs, cf.harms, cf.changed, cf.total) == (2, 0, 2, 4)  # rows 3 and 7
    cs = compare(small, after, side="cs", reference=before.tolist())
    assert (cs.repairs, cs.harms, cs.changed, cs.total) == (1, 2, 3, 4)
    task = evaluate(small, after, reference=before, resamples=200).tasks[0]
    assert (task.cf.change, task.cs.change) == (cf, cs)
    assert task.original == measure(small, before)
    assert task.method == measure(small, after)
    assert task.cf.test.p_value == 0.5
    assert (task.cf.low, task.cf.high) != (0.0, 0.0)
    nothing = evaluate(small, after, reference=after, resamples=50).tasks[0]
    assert (nothing.cf.low, nothing.cf.high, nothing.utility) == (0.0, 0.0, 0.0)


def test_the_original_answers_are_the_default_reference(small: ScoreTable) -> None:
    final = positions("B", "C", "B", "A", "D", "A", "A", "A")
    assert evaluate(small, final, reference=small.original_positions) == evaluate(small, final)
    with pytest.raises(UnpriorError, match="3 answers for 8 rows"):
        evaluate(small, final, reference=[0, 0, 0])


def test_decisions_about_other_rows_are_refused(table: ScoreTable) -> None:
    calibrator = SelectivePriorCalibrator().fit(table)
    test = table.where(split="test")
    decisions = calibrator.predict(test)
    other = test.take(np.arange(len(test))[::-1])
    for rows in (other, table):
        with pytest.raises(UnpriorError, match="made for other rows"):
            evaluate(rows, decisions)
    again = table.where(split="test")  # the same rows once more
    assert measure(again, decisions) == measure(test, decisions)


def test_rows_without_a_value_are_a_group_of_their_own(table: ScoreTable) -> None:
    test = table.where(split="test", task="mc")
    pairs = sorted(test.values_of("pair_id"))
    names = {pair: [None, "not given"][place % 2] for place, pair in enumerate(pairs)}
    rows = [row | {"subcategory": names[row["pair_id"]], "views": None} for row in test.arrow.to_pylist()]
    renamed = ScoreTable.from_rows(rows)
    groups = evaluate(renamed, renamed.answer, by="subcategory", resamples=10).tasks
    assert sorted((task.group, task.cf.change.total) for task in groups) == [("(not given)", 115), ("not given", 115)]
