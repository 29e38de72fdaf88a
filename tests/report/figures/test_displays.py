"""The figures by their data: what is drawn is what was found out."""

from __future__ import annotations

import sys

import pytest
    IntervalsDisplay,
)


@pytest.fixture(params=[LIGHT, DARK], ids=["light", "dark"])
def style(request: pytest.FixtureRequest) -> FigureStyle:
    chosen: FigureStyle = request.param
    return chosen




def test_intervals(finished: Finished, style: FigureStyle) -> None:
    display = IntervalsDisplay.from_results(finished.evaluation, style=style)
    first = finished.evaluation.tasks[0].cf
    assert display.lines[0].delta == pytest.approx(100 * first.change.delta)
    assert (display.lines[0].low, display.lines[0].high) == pytest.approx((100 * first.low, 100 * first.high))
    assert [label.get_text() for label in display.axes_.get_yticklabels()] == ["MC ΔCF", "MC ΔCS", "QA ΔCF", "QA ΔCS"]
    words = [text.get_text() for text in display.axes_.texts]
    assert f"{first.change.repairs} repaired, {first.change.harms} harmed" in words


def test_drawing_on_given_axes(finished: Finished) -> None:
    axes = LIGHT.new_axes(3, 2)
    display = IntervalsDisplay.from_results(finished.evaluation, ax=axes)
    assert display.axes_ is axes
    assert display.figure_ is axes.figure


def test_no_global_state_is_left_behind(finished: Finished) -> None:
    import matplotlib

    names = [name for name in matplotlib.rcParams if "backend" not in name]  # asking for the backend loads pyplot
    before = {name: matplotlib.rcParams[name] for name in names}
    IntervalsDisplay.from_results(finished.evaluation, style=DARK)
    assert {name: matplotlib.rcParams[name] for name in names} == before
    assert "matplotlib.pyplot" not in sys.modules


def test_an_undefined_interval_leaves_the_point(finished: Finished) -> None:
    rows = [row for row in hand_made_rows() if row["task"] == "qa"][:2]
    table = ScoreTable.from_rows(rows)
    display = IntervalsDisplay.from_results(evaluate(table, table.answer_positions, resamples=50))
    assert [line.delta for line in display.lines] == [100.0, 0.0]
