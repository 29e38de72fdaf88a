"""The figures by their data: what is drawn is what was found out."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from matplotlib.collections import LineCollection

from finished_run import Finished
from small_tables import hand_made_rows, hopeless_table, twelve_pairs
from unprior import ScoreTable, SelectivePriorCalibrator, evaluate
from unprior.plots.style import DARK, LIGHT, FigureStyle
from unprior.report.figures import (
    FrontierDisplay,
    IntervalsDisplay,
    RangesDisplay,
    StrengthsDisplay,
)
from unprior.report.figures.ranges import SHOWN_UP_TO
from unprior.studies import study_frontier, study_ranges


@pytest.fixture(params=[LIGHT, DARK], ids=["light", "dark"])
def style(request: pytest.FixtureRequest) -> FigureStyle:
    chosen: FigureStyle = request.param
    return chosen


def test_frontier_curves(finished: Finished, style: FigureStyle) -> None:
    results = finished.studies.frontier
    assert results is not None
    display = FrontierDisplay.from_results(results, task="qa", style=style)
    places = {(100 * point.result.cs.delta, 100 * point.result.cf.delta): point for point in results.of("qa", "spc")}
    assert {(cs, cf) for cs, cf, _ in display.spc} == set(places)
    assert sorted(", ".join(label for _, _, label in display.spc).split(", "), key=float) == ["0", "2", "4", "6", "10"]
    assert len(display.own) == 1
    assert len(display.selected) == 1
    drawn = {line.get_label(): line for line in display.axes_.lines}
    np.testing.assert_allclose(drawn["SPC by ε"].get_xdata(), [cs for cs, _, _ in display.spc])
    np.testing.assert_allclose(drawn["fixed λ, no gate"].get_ydata(), [cf for _, cf, _ in display.fixed])


def test_frontier_leaves_out_what_would_squeeze_the_rest(finished: Finished) -> None:
    results = finished.studies.frontier
    assert results is not None
    display = FrontierDisplay.from_results(results, task="mc")
    left = display.axes_.get_xlim()[0]
    assert display.outside == tuple(label for cs, _, label in display.fixed if cs < left)
    assert all(cs >= left for cs, _, _ in (*display.spc, *display.selected))


def test_frontier_of_a_control_that_abstains() -> None:
    test = twelve_pairs().where(split="test", task="mc")
    results = study_frontier(SelectivePriorCalibrator(), hopeless_table(), test)
    display = FrontierDisplay.from_results(results, task="mc")
    assert display.spc == ((0.0, 0.0, "0, 2, 4, 6, 10"),)
    assert display.selected == ((0.0, 0.0, "abstains"),)


def test_intervals(finished: Finished, style: FigureStyle) -> None:
    display = IntervalsDisplay.from_results(finished.evaluation, style=style)
    first = finished.evaluation.tasks[0].cf
    assert display.lines[0].delta == pytest.approx(100 * first.change.delta)
    assert (display.lines[0].low, display.lines[0].high) == pytest.approx((100 * first.low, 100 * first.high))
    assert [label.get_text() for label in display.axes_.get_yticklabels()] == ["MC ΔCF", "MC ΔCS", "QA ΔCF", "QA ΔCS"]
    words = [text.get_text() for text in display.axes_.texts]
    assert f"{first.change.repairs} repaired, {first.change.harms} harmed" in words


def test_ranges(finished: Finished, style: FigureStyle) -> None:
    results = finished.studies.ranges.tasks[0]
    display = RangesDisplay.from_results(results, style=style)
    assert float(display.high.max()) == SHOWN_UP_TO
    np.testing.assert_array_equal(display.low, np.minimum(results.low, SHOWN_UP_TO))
    groups = [artist for artist in display.axes_.collections if isinstance(artist, LineCollection)]
    assert sum(len(group.get_segments()) for group in groups) == len(results.low)
    labels = [text.get_text() for text in display.axes_.get_legend().get_texts()]  # type: ignore[union-attr]
    assert f"repaired ({int(results.repaired.sum())})" in labels
    assert f"one λ* = {results.fixed_strength:.2f} for all" in labels


def test_ranges_without_a_fixed_strength(finished: Finished) -> None:
    results = study_ranges(finished.decisions).tasks[1]
    display = RangesDisplay.from_results(results)
    labels = [text.get_text() for text in display.axes_.get_legend().get_texts()]  # type: ignore[union-attr]
    assert not any("λ*" in label for label in labels)


def test_strengths(finished: Finished, style: FigureStyle) -> None:
    results = finished.studies.strengths
    display = StrengthsDisplay.from_results(results, task="mc", style=style)
    for group in results.of("mc"):
        expected, _ = np.histogram(group.values, display.edges)
        np.testing.assert_array_equal(display.counts[group.side], expected)
        assert display.counts[group.side].sum() == len(group.values) == 230
    assert display.edges[-1] == results.max_strength


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
