"""Calibrators and decisions in notebooks, as data frames and as plots."""

from __future__ import annotations

from dataclasses import replace

import pytest
from matplotlib.figure import Figure

from unprior import ScoreTable, SelectivePriorCalibrator
from unprior.calibration import Selection
from unprior.calibration.show import limit_in_words
from unprior.plots.style import DARK


@pytest.fixture(scope="module", params=[False, True], ids=["standard", "uncertainty"])
def fitted(request: pytest.FixtureRequest, table: ScoreTable) -> SelectivePriorCalibrator:
    return SelectivePriorCalibrator(epsilon_cs=0.1, uncertainty=request.param).fit(table)


def test_a_calibrator_shows_parameters_settings_and_outcome(fitted: SelectivePriorCalibrator) -> None:
    unfitted = fitted.clone()._repr_html_()
    assert "epsilon_cs=0.1" in unfitted
    assert "Not fitted yet" in unfitted
    shown = fitted._repr_html_()
    version = "uncertainty-aware" if fitted.uncertainty else "standard"
    assert f"SPC ({version}, ε = 0.10), fitted on 280 rows of synthetic: {fitted.selection_.feasible} of" in shown
    assert "at most 10 points of commonsense accuracy" in shown
    assert ("max distance" in shown) == fitted.uncertainty
    assert fitted.settings_ is not None
    assert f">{fitted.settings_.min_margin:.4g}</td>" in shown
    assert "<td>MC</td>" in shown
    change = fitted.selection_.changes[0]
    assert f"{change.cf_net:+d} of {change.cf_total}" in shown


def test_without_commonsense_rows_there_is_no_commonsense_limit(table: ScoreTable) -> None:
    shown = SelectivePriorCalibrator(select_on="cf").fit(table)._repr_html_()
    assert "lose no counterfactual accuracy on every" in shown
    assert "commonsense" not in shown


def test_an_abstaining_calibrator_says_so(table: ScoreTable) -> None:
    state = replace(SelectivePriorCalibrator().fit(table).state_, selection=Selection(None, (), 0, 0, 80))
    assert "it abstains, because none of 80 settings would lose no" in limit_in_words(state)
    assert "abstains" in SelectivePriorCalibrator.from_state(state)._repr_html_()


def test_text_is_escaped(table: ScoreTable) -> None:
    fitted = SelectivePriorCalibrator().fit(table.with_columns(model="<i>m</i>"))
    assert "<i>" not in fitted._repr_html_()
    row = {"pair_id": 1, "task": "qa", "candidates": ["<u>", "no"], "original": "<u>",
           "image_scores": [0.0, -1.0], "prior_scores": [0.0, -1.0]}  # fmt: skip
    shown = fitted.predict(ScoreTable.from_rows([row], require_answers=False))._repr_html_()
    assert "<u>" not in shown
    assert "&lt;u&gt;" in shown


def test_decisions_show_reasons_and_explanations(fitted: SelectivePriorCalibrator, table: ScoreTable) -> None:
    decisions = fitted.predict(table)
    shown = decisions._repr_html_()
    assert f"{decisions.revised.sum():,} of 1,200 answers revised" in shown
    for reason, count in decisions.count_reasons().items():
        assert f"<td>{reason}</td>" in shown
        assert f">{count:,}</td>" in shown
    assert decisions.explain(4).split(":")[0] in shown


def test_decisions_become_a_data_frame_of_labels(fitted: SelectivePriorCalibrator, table: ScoreTable) -> None:
    decisions = fitted.predict(table)
    frame = decisions.to_pandas(explanations=True)
    labels = frame.astype(object).where(frame.notna(), None)
    assert labels["final"].tolist() == decisions.final.tolist()
    assert labels["proposal"].tolist() == decisions.proposal.tolist()
    assert frame["strength"].tolist() == decisions.strength.tolist()
    assert frame["explanation"][7] == decisions.explain(7)
    assert not [name for name in frame.columns if "position" in name]
    assert "explanation" not in decisions.to_pandas().columns


def test_reasons_are_drawn_on_given_axes(fitted: SelectivePriorCalibrator, table: ScoreTable) -> None:
    decisions = fitted.predict(table)
    axes = Figure().add_subplot()
    assert decisions.plot(ax=axes, style=DARK) is axes
    assert [bar.get_width() for bar in axes.patches] == list(decisions.count_reasons().values())
    assert axes.get_title(loc="left") == decisions.method
