from __future__ import annotations

import json
import math
from dataclasses import replace
from statistics import median

import numpy as np
import pytest
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure

import straightforward
from small_tables import abstaining_calibrator, few_pairs, twelve_pairs
from unprior import Decisions, SelectivePriorCalibrator
from unprior.calibration import Constant
from unprior.plots.style import DARK, LIGHT, FigureStyle
from unprior.studies.inputs import StudyInputs
from unprior.studies.rq3.stable_ranges import SHOWN_UP_TO, STUDY, Ranges, TaskRanges, study_ranges


@pytest.fixture(scope="module")
def decisions() -> Decisions:
    table = twelve_pairs()
    return SelectivePriorCalibrator().fit(table).predict(table.where(split="test"))


def test_ranges_against_plain_loops(decisions: Decisions) -> None:
    expected: dict[str, list[tuple[float, float]]] = {"mc": [], "qa": []}
    for row, decision in zip(decisions.table.arrow.to_pylist(), decisions, strict=True):
        position = decision.candidates.index(str(decision.proposal))
        ends = straightforward.stable_range(row["image_scores"], row["prior_scores"], position)
        expected[row["task"]].append(ends)
    for task in study_ranges(decisions).tasks:
        ours = list(zip(task.low.tolist(), task.high.tolist(), strict=True))
        assert ours == sorted(ours), "sorted by lower and then upper end"
        for mine, theirs in zip(ours, sorted(expected[task.task]), strict=True):
            assert mine == pytest.approx(theirs)


def test_the_summary_against_plain_loops(decisions: Decisions) -> None:
    fixed = 0.7
    result = study_ranges(decisions, fixed_strength=fixed)
    settings = decisions.settings
    assert settings is not None
    for record in result.records():
        mine = [
            decision
            for decision, row in zip(decisions, decisions.table.arrow.to_pylist(), strict=True)
            if row["task"] == record["task"]
        ]
        widths = [decision.range_high - decision.range_low for decision in mine]
        bounded = [width for width in widths if math.isfinite(width)]
        inside = [decision.range_low <= settings.max_strength <= decision.range_high for decision in mine]
        outside = [not decision.range_low <= fixed <= decision.range_high for decision in mine]
        assert record["n"] == len(mine)
        assert record["median_bounded_width"] == (pytest.approx(median(bounded)) if bounded else None)
        assert record["share_unbounded"] == pytest.approx(1 - len(bounded) / len(mine))
        assert record["share_max_strength_inside"] == pytest.approx(sum(inside) / len(mine))
        assert record["share_fixed_strength_outside"] == pytest.approx(sum(outside) / len(mine))


def test_repaired_and_harmed_have_their_own_radius(decisions: Decisions) -> None:
    for task, record in zip(study_ranges(decisions).tasks, study_ranges(decisions).records(), strict=True):
        radii = [
            min(strength - low, high - strength)
            for low, high, strength, chosen in zip(task.low, task.high, task.strength, task.repaired, strict=True)
            if chosen
        ]
        assert record["median_radius_repaired"] == (pytest.approx(median(radii)) if radii else None)
        assert not (task.repaired & task.harmed).any()


def test_records_are_plain(decisions: Decisions) -> None:
    records = study_ranges(decisions).records()
    assert json.loads(json.dumps(records, allow_nan=False)) == records


def test_an_abstaining_calibrator_has_no_ranges() -> None:
    result = study_ranges(abstaining_calibrator().predict(twelve_pairs()))
    assert result.tasks == ()
    assert result.table.rows == ()
    assert result.sentences == ("SPC (standard, ε = 0.04) abstains; it makes no proposals.",)
    assert result.figure() is None


def made_up(radius_of_harm: float) -> Ranges:
    """Three examples with λ = 0.5: a repair with radius 0.3, a harm, and one without an upper end."""
    one = TaskRanges(
        task="mc",
        low=np.array([0.2, 0.5 - radius_of_harm, 0.9]),
        high=np.array([1.2, 1.5, np.inf]),
        strength=np.array([0.5, 0.5, 1.0]),
        repaired=np.array([True, False, False]),
        harmed=np.array([False, True, False]),
        without=0,
        max_strength=1.0,
        fixed_strength=0.8,
    )
    return Ranges((one,), "SPC")


def test_table_and_sentences_by_hand() -> None:
    result = made_up(0.1)
    # Widths 1.0 and 1.1; the cap of 1 lies in all three; 0.8 lies in the first two.
    assert result.table.rows[0].cells == ("MC", "1.05", "33.3", "1", "100.0", "0.80", "33.3", "0.30/0.10")
    assert result.sentences[1].endswith("repairs (0.30) is larger than that of harms (0.10).")
    assert made_up(0.4).sentences[1].endswith("is smaller than that of harms (0.40).")
    assert result.figure() is not None


def test_a_radius_without_another_is_said_alone() -> None:
    (task,) = made_up(0.1).tasks
    spared = replace(task, harmed=np.zeros_like(task.harmed))
    assert Ranges((spared,), "SPC").sentences[1] == (
        "MC, SPC: the median stability radius of repairs is 0.30 and no harm has a stability radius."
    )


def test_the_study_takes_the_fixed_strength_of_the_development_rows() -> None:
    table = few_pairs(development=3)
    result = STUDY.run(StudyInputs(table))
    control = SelectivePriorCalibrator(strength=Constant()).fit(table)
    assert isinstance(result, Ranges)
    assert result.tasks[0].fixed_strength == control.predict(table).strength[0]


def test_the_version_of_the_run_is_studied() -> None:
    table = few_pairs(development=3)
    result = STUDY.run(StudyInputs(table, uncertainty=True))
    assert isinstance(result, Ranges)
    assert result.method == "SPC (uncertainty-aware, ε = 0.04)"
    control = SelectivePriorCalibrator(strength=Constant(), uncertainty=True).fit(table)
    assert result.tasks[0].fixed_strength == control.predict(table).strength[0]


@pytest.mark.parametrize("style", [LIGHT, DARK], ids=["light", "dark"])
def test_the_figure_has_a_line_for_every_proposal(decisions: Decisions, style: FigureStyle) -> None:
    result = study_ranges(decisions, fixed_strength=0.7)
    ranges = result.of("mc")
    axes = result.plot(Figure().subplots(1, 2), style=style)[0]
    groups = [artist for artist in axes.collections if isinstance(artist, LineCollection)]
    ends = {int(line[0][1]): line[:, 0].tolist() for group in groups for line in group.get_segments()}
    shown = np.minimum(np.stack([ranges.low, ranges.high], axis=1), SHOWN_UP_TO)
    assert ends == dict(enumerate(shown.tolist()))
    labels = [text.get_text() for text in axes.get_legend().get_texts()]  # type: ignore[union-attr]
    assert f"repaired ({int(ranges.repaired.sum())})" in labels
    assert "one λ* = 0.70 for all" in labels
    without = study_ranges(decisions).plot(Figure().subplots(1, 2))[1].get_legend()
    assert not any("λ*" in text.get_text() for text in without.get_texts())  # type: ignore[union-attr]
