from __future__ import annotations

from dataclasses import replace
from statistics import mean, median

import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.patches import StepPatch

from small_tables import abstaining_calibrator, twelve_pairs
from unprior import SelectivePriorCalibrator
from unprior.plots.style import DARK, LIGHT, FigureStyle
from unprior.studies.rq3.strengths import StrengthGroup, Strengths, study_strengths


def test_groups_against_plain_loops() -> None:
    table = twelve_pairs()
    decisions = SelectivePriorCalibrator().fit(table).predict(table.where(split="test"))
    settings = decisions.settings
    assert settings is not None
    groups: dict[tuple[str, str], list[float]] = {}
    for row, decision in zip(decisions.table.arrow.to_pylist(), decisions, strict=True):
        groups.setdefault((row["task"], row["side"]), []).append(decision.strength)
    result = study_strengths(decisions)
    for (task, _), values in list(groups.items()):
        groups.setdefault((task, "both"), []).extend(values)
    assert {(record["task"], record["side"]) for record in result.records()} == set(groups)
    for record in result.records():
        values = groups[record["task"], record["side"]]
        assert record["n"] == len(values)
        assert record["mean"] == pytest.approx(mean(values))
        assert record["median"] == pytest.approx(median(values))
        at_cap = sum(value == settings.max_strength for value in values)
        assert record["share_at_cap"] == pytest.approx(at_cap / len(values))
    assert result.tasks == ("mc", "qa")
    assert [group.side for group in result.of("qa")] == ["cf", "cs"]


def test_an_abstaining_calibrator_gives_none() -> None:
    result = study_strengths(abstaining_calibrator().predict(twelve_pairs()))
    assert (result.groups, result.max_strength, result.records()) == ((), None, [])
    assert result.sentences == ("SPC (standard, ε = 0.04) abstains; it gives no strengths.",)
    assert result.table.rows == ()
    assert result.figure() is None


def test_table_and_sentences_by_hand() -> None:
    groups = (
        StrengthGroup("mc", "cf", np.array([0.4, 0.8, 0.8]), 2),
        StrengthGroup("mc", "cs", np.array([0.0, 0.2]), 0),
    )
    result = Strengths(groups, 0.8, "SPC")
    assert [row.cells for row in result.table.rows] == [
        ("MC", "CF and CS", "5", "0.200", "0.400", "0.800", "40.0"),
        ("MC", "CF", "3", "0.600", "0.800", "0.800", "66.7"),
        ("MC", "CS", "2", "0.050", "0.100", "0.150", "0.0"),
    ]
    assert result.sentences == (
        "The middle half of the MC strengths of SPC lies between 0.200 and 0.800; 40.0 % reach the cap of 0.8.",
        "On MC the median strength of SPC on CF images (0.800) is higher than on CS images (0.100).",
    )
    swapped = (replace(groups[0], side="cs"), replace(groups[1], side="cf"))
    assert "is lower than on CS images" in Strengths(swapped, 0.8, "SPC").sentences[1]
    assert result.figure() is not None


@pytest.mark.parametrize("style", [LIGHT, DARK], ids=["light", "dark"])
def test_the_histogram_counts_every_example(style: FigureStyle) -> None:
    table = twelve_pairs()
    result = study_strengths(SelectivePriorCalibrator().fit(table).predict(table))
    axes = result.plot(Figure().subplots(1, 2), style=style)[0]
    steps = [patch for patch in axes.patches if isinstance(patch, StepPatch)]
    for group, filled, outline in zip(result.of("mc"), steps[::2], steps[1::2], strict=True):
        expected, _ = np.histogram(group.values, filled.get_data().edges)
        for step in (filled, outline):
            np.testing.assert_array_equal(step.get_data().values, expected)
            assert step.get_data().values.sum() == len(group.values)
            assert step.get_data().edges[-1] == result.max_strength
