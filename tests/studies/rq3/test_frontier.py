from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.text import Text

import straightforward
from small_tables import (
    corrected_winner,
    count_changes,
    few_pairs,
    hopeless_table,
    synthetic,
    twelve_pairs,
    with_other_answers,
)
from unprior import ScoreTable, SelectivePriorCalibrator
from unprior.baselines.controls import STRENGTHS, run_controls
from unprior.calibration import Constant
from unprior.evaluation import Change
from unprior.plots.style import DARK, LIGHT, FigureStyle
from unprior.studies.common.trade_off import TradeOff
from unprior.studies.inputs import StudyInputs
from unprior.studies.rq3.frontier import EPSILONS, STUDY, Frontier, FrontierPoint, study_frontier


def test_every_point_against_plain_loops() -> None:
    table = twelve_pairs()
    development, test = table.where(split="dev"), table.where(split="test")
    rows = test.arrow.to_pylist()
    calibrator = SelectivePriorCalibrator(epsilon_cs=0.04).fit(development)
    result = study_frontier(calibrator, development, test)
    finals: dict[tuple[str, float], list[str | None]] = {}
    for epsilon in EPSILONS:
        model = straightforward.fit(development.arrow.to_pylist(), epsilon_cs=epsilon)
        finals["spc", epsilon] = [straightforward.decide(model, row)["final"] for row in rows]
    for strength in STRENGTHS:
        finals["fixed", strength] = [corrected_winner(row, strength) for row in rows]
    seen = 0
    for point in result.points:
        if point.method not in ("spc", "fixed"):
            continue
        key = point.epsilon if point.method == "spc" else point.strength
        assert key is not None
        for side, change in (("cf", point.result.cf), ("cs", point.result.cs)):
            expected = count_changes(rows, finals[point.method, key], point.result.task, side)
            assert (change.repairs, change.harms, change.total) == expected
            seen += 1
    assert seen == 2 * 2 * (len(EPSILONS) + len(STRENGTHS))


def test_the_marked_limit_is_the_calibrators() -> None:
    table = twelve_pairs()
    development, test = table.where(split="dev"), table.where(split="test")
    calibrator = SelectivePriorCalibrator(epsilon_cs=0.1).fit(development)
    result = study_frontier(calibrator, development, test, epsilons=(0.0,))
    last = result.of("mc", "fixed_selected")[-1]
    assert last.epsilon == result.epsilon == 0.1
    assert last.strength is not None
    assert calibrator.epsilon_cs == 0.1, "the calibrator is left as it is"
    assert result.tasks == ("mc", "qa")


def test_what_abstains_stays_where_it_is() -> None:
    test = twelve_pairs().where(split="test", task="mc")
    calibrator = SelectivePriorCalibrator().fit(hopeless_table())
    result = study_frontier(calibrator, hopeless_table(), test, epsilons=(0.0, 0.1))
    points = (*result.of("mc", "spc"), *result.of("mc", "fixed_selected"))
    assert [point.epsilon for point in points] == 2 * [0.0, 0.04, 0.1], "the calibrator's own ε is among them"
    for point in points:
        assert point.abstains
        assert point.strength is None
        assert point.result.cf.changed == point.result.cs.changed == 0
    assert not any(point.abstains for point in result.of("mc", "fixed"))
    curves = result.curves("mc")
    assert curves["spc"] == curves["fixed_selected"] == ((0.0, 0.0, "0, .04, .10"),)


def everything(table: ScoreTable, **settings: bool) -> Frontier:
    development, test = table.where(split="dev"), table.where(split="test")
    calibrator = SelectivePriorCalibrator(**settings).fit(development)
    return study_frontier(calibrator, development, test, epsilons=(0.0, 0.1))


def test_every_control_is_chosen_again_for_every_limit() -> None:
    table = few_pairs(development=3, test=1)
    development, test = table.where(split="dev"), table.where(split="test")
    rows = test.arrow.to_pylist()
    result = everything(table, uncertainty=True)
    for epsilon in (0.0, 0.04, 0.1):
        learned, direct = run_controls(
            development, test, epsilon_cs=epsilon, names=["learned-rule-fixed", "learned-rule-direct"]
        )
        aware = SelectivePriorCalibrator(epsilon_cs=epsilon, uncertainty=True)
        selected = SelectivePriorCalibrator(epsilon_cs=epsilon, uncertainty=True, strength=Constant())
        standard = straightforward.fit(development.arrow.to_pylist(), epsilon_cs=epsilon)
        finals = {
            "spc": [decision.final for decision in aware.fit(development).predict(test)],
            "spc_other": [straightforward.decide(standard, row)["final"] for row in rows],
            "fixed_selected": [decision.final for decision in selected.fit(development).predict(test)],
            "learned_fixed": test.candidate_names(learned.answers),
            "learned_direct": test.candidate_names(direct.answers),
        }
        for method, given in finals.items():
            for task in ("mc", "qa"):
                (point,) = (each for each in result.of(task, method) if each.epsilon == epsilon)
                for side, change in (("cf", point.result.cf), ("cs", point.result.cs)):
                    expected = count_changes(rows, given, task, side)
                    assert (change.repairs, change.harms, change.total) == expected, (method, task, side)


def test_answers_of_test_rows_choose_nothing() -> None:
    table = few_pairs(development=3, test=1)
    mine, theirs = everything(table), everything(with_other_answers(table, split="test"))
    for one, other in zip(mine.points, theirs.points, strict=True):
        assert (one.strength, one.result.cf.changed) == (other.strength, other.result.cf.changed)
    assert everything(table) == mine, "the same twice"


def test_sections_have_every_method() -> None:
    result = everything(few_pairs(development=3, test=1), uncertainty=True)
    assert [section.heading for section in result.table.sections][:2] == ["SPC (uncertainty-aware)", "SPC (standard)"]
    assert [len(section.rows) for section in result.table.sections] == [3, 3, 3, 3, 3, 8]
    assert [row.cells[0] for row in result.table.rows if row.bold] == ["ε = 0.04"] * 2, "of both versions"


@pytest.fixture(scope="module")
def result() -> Frontier:
    found = STUDY.run(StudyInputs(synthetic(seed=3)))
    assert isinstance(found, Frontier)
    return found


def axes_of(result: Frontier, task: str, style: FigureStyle = LIGHT) -> Axes:
    return result.plot(style=style)[result.tasks.index(task)]


def test_the_study_is_the_papers_whatever_version_is_under_study(result: Frontier) -> None:
    assert result.uncertainty
    assert STUDY.run(StudyInputs(synthetic(seed=3), uncertainty=True)) == result


@pytest.mark.parametrize("style", [LIGHT, DARK], ids=["light", "dark"])
@pytest.mark.parametrize("task", ["mc", "qa"])
def test_curves_are_the_points(result: Frontier, task: str, style: FigureStyle) -> None:
    curves, axes = result.curves(task), axes_of(result, task, style)
    for method, curve in curves.items():
        points = result.of(task, method)
        assert {(cs, cf) for cs, cf, _ in curve} == {
            (100 * point.result.cs.delta, 100 * point.result.cf.delta) for point in points
        }
        assert sum(len(label.split(", ")) for _, _, label in curve) == len(points)
    labels = ", ".join(label for _, _, label in curves["spc"]).split(", ")
    assert sorted(labels, key=float) == ["0", ".02", ".04", ".06", ".10"]
    drawn = {line.get_label(): line for line in axes.lines}
    for label, method in (("SPC (standard)", "spc_other"), ("SPC (uncertainty-aware)", "spc")):
        np.testing.assert_allclose(drawn[label].get_xdata(), [cs for cs, _, _ in curves[method]])
        np.testing.assert_allclose(drawn[label].get_ydata(), [cf for _, cf, _ in curves[method]])
    for name in ("uncertainty-aware", "standard"):
        assert f"SPC ({name}, ε = 0.04)" in drawn
    assert result.figure(style) is not None


def test_fixed_strengths_do_not_squeeze_the_rest(result: Frontier) -> None:
    axes = axes_of(result, "mc")
    (left, right), (bottom, top) = axes.get_xlim(), axes.get_ylim()
    texts = [text.get_text() for text in axes.texts]
    for method, curve in result.curves("mc").items():
        inside = [left <= cs <= right and bottom <= cf <= top for cs, cf, _ in curve]
        assert all(inside) or method == "fixed"
        if method == "fixed":
            assert [label in texts for _, _, label in curve] == inside, "what is outside has no label"


@pytest.mark.parametrize("narrow", [False, True], ids=["wide", "narrow"])
@pytest.mark.parametrize("seed", [0, 1, 4])
def test_labels_do_not_cover_each_other(seed: int, narrow: bool) -> None:
    result = STUDY.run(StudyInputs(synthetic(seed=seed)))
    assert isinstance(result, Frontier)
    figure = result.figure(narrow=narrow)
    assert figure is not None
    figure.draw_without_rendering()
    for task, axes in zip(result.tasks, figure.axes, strict=True):
        curves = result.curves(task)
        boxes = [Text.get_window_extent(text) for text in axes.texts]  # without the line to its point
        (left, right), (bottom, top) = axes.get_xlim(), axes.get_ylim()
        inside = [left <= cs <= right and bottom <= cf <= top for cs, cf, _ in curves["fixed"]]
        assert len(boxes) == len(curves["spc"]) + sum(inside)
        for one, other in combinations(boxes, 2):
            assert not one.overlaps(other)


def test_sentences_follow_the_numbers() -> None:
    def point(method: str, epsilon: float, repairs: int, harms: int) -> FrontierPoint:
        result = TradeOff("mc", Change(repairs, 0, repairs, 100), Change(0, harms, harms, 100))
        return FrontierPoint(method, epsilon, None, False, result)

    points = (point("spc", 0.0, 2, 0), point("spc", 0.04, 5, 4), point("fixed_selected", 0.04, 3, 1))
    assert Frontier(points, 0.04, uncertainty=False).sentences == (
        "On MC SPC (standard) goes from +2.0/+0.0 points at ε = 0.00 to +5.0/-4.0 points at ε = 0.04; 2 limits give 2 "
        "different results.",
        "The loss of SPC (standard) on the test pairs exceeds its limit in 0 of 2 cases.",
        "SPC (standard, ε = 0.04) gives +5.0/-4.0 (+3.0/-1.0 with one selected strength) on MC.",
    )
    beyond = (point("spc", 0.0, 2, 1), *points[1:])
    flat = (point("spc", 0.0, 5, 4), *points[1:])
    assert "2 limits give the same result" in Frontier(flat, 0.04).sentences[0]
    assert "in 1 of 2 cases" in Frontier(beyond, 0.04).sentences[1]
