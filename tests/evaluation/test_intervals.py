"""The figure of the changes by its data: what is drawn is what was found out."""

from __future__ import annotations

import sys

import pytest

from small_tables import hand_made_rows
from unprior import Evaluation, ScoreTable, SelectivePriorCalibrator, evaluate
from unprior.evaluation.intervals import IntervalsDisplay
from unprior.plots.style import DARK, LIGHT, FigureStyle


@pytest.fixture(scope="module")
def evaluation(table: ScoreTable) -> Evaluation:
    test = table.where(split="test")
    return evaluate(test, SelectivePriorCalibrator().fit(table).predict(test), resamples=500)


@pytest.mark.parametrize("style", [LIGHT, DARK], ids=["light", "dark"])
def test_intervals(evaluation: Evaluation, style: FigureStyle) -> None:
    display = IntervalsDisplay.from_results(evaluation, style=style)
    first = evaluation.tasks[0].cf
    assert display.lines[0].delta == pytest.approx(100 * first.change.delta)
    assert (display.lines[0].low, display.lines[0].high) == pytest.approx((100 * first.low, 100 * first.high))
    assert [label.get_text() for label in display.axes_.get_yticklabels()] == ["MC ΔCF", "MC ΔCS", "QA ΔCF", "QA ΔCS"]
    words = [text.get_text() for text in display.axes_.texts]
    assert f"{first.change.repairs} repaired, {first.change.harms} harmed" in words


def test_drawing_on_given_axes(evaluation: Evaluation) -> None:
    axes = LIGHT.new_axes(3, 2)
    display = IntervalsDisplay.from_results(evaluation, ax=axes)
    assert display.axes_ is axes


def test_no_global_state_is_left_behind(evaluation: Evaluation) -> None:
    import matplotlib

    names = [name for name in matplotlib.rcParams if "backend" not in name]  # asking for the backend loads pyplot
    before = {name: matplotlib.rcParams[name] for name in names}
    IntervalsDisplay.from_results(evaluation, style=DARK)
    assert {name: matplotlib.rcParams[name] for name in names} == before
    assert "matplotlib.pyplot" not in sys.modules


def test_an_undefined_interval_leaves_the_point() -> None:
    rows = [row for row in hand_made_rows() if row["task"] == "qa"][:2]
    table = ScoreTable.from_rows(rows)
    display = IntervalsDisplay.from_results(evaluate(table, table.answer_positions, resamples=50))
    assert [line.delta for line in display.lines] == [100.0, 0.0]
