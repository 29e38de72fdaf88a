"""A run with a promise about new pairs: its calibrator, its notes and its report."""

from __future__ import annotations

import json
from html import escape
from pathlib import Path

import pytest

from claim_tables import with_claim_views
from unprior import ScoreTable, SelectivePriorCalibrator, UnpriorError
from unprior.runs.promise import plan_promise
from unprior.runs.result import RunResult, refresh_report
from unprior.studies.beyond.promises import Promises
from unprior.studies.registry import PRESETS
from unprior.synthetic import synthesize_claims


@pytest.fixture
def _promises_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """Drawing takes most of the time, and one study is about promises."""
    monkeypatch.setitem(PRESETS, "run", ("promises",))


@pytest.mark.usefixtures("_promises_only")
def test_a_run_keeps_its_promise_in_all_its_files(table: ScoreTable, tmp_path: Path) -> None:
    given = SelectivePriorCalibrator(retention="certified", epsilon_cs=0.06, delta=0.2)
    result = RunResult.from_table(table, given)
    fitted = given.clone().fit(table)
    assert fitted.certificate_ is not None
    sentence = fitted.certificate_.sentence
    assert "80 % confidence" in sentence
    assert result.calibrator.certificate_ == fitted.certificate_
    assert result.decisions.promise == result.notes[0] == sentence
    assert "SPC (certified, ε = 0.06)" in result.headline
    assert "use its own rule, SPC (standard, ε = 0.06). The calibrator of this run is SPC (certified" in result.notes[1]
    assert not any("its own rule" in note for note in RunResult.from_table(table).notes)
    result.write(tmp_path)
    saved = SelectivePriorCalibrator.load(tmp_path / "calibrator.json")
    assert saved.certificate_ == fitted.certificate_
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert f'<p class="note">{escape(sentence)}</p>' in page
    harms = " and ".join(f"{each.harms} of {each.pairs} on {each.task.upper()}" for each in fitted.certificate_.tasks)
    assert f"harms on the pairs that set the thresholds: {harms}" in page
    record = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))
    assert sentence in record["notes"]
    assert sentence in json.dumps(record["calibrator"], ensure_ascii=False)
    assert {each["retention"] for each in record["studies"]["promises"]} == {"paper", "certified", "expected"}
    study = result.study("promises")
    assert isinstance(study, Promises)
    assert (study.delta, study.rules[1].promise) == (0.2, sentence)

    again = refresh_report(tmp_path)
    assert again.calibrator.get_params() == result.calibrator.get_params()
    assert (again.calibrator.certificate_, again.notes) == (fitted.certificate_, result.notes)
    assert json.loads((tmp_path / "report.json").read_text(encoding="utf-8")) == record
    assert (tmp_path / "report.html").read_text(encoding="utf-8").count(f'<p class="note">{escape(sentence)}</p>') == 1


@pytest.mark.usefixtures("_promises_only")
def test_a_run_that_can_promise_nothing_says_so(table: ScoreTable, tmp_path: Path) -> None:
    result = RunResult.from_table(table, SelectivePriorCalibrator(retention="certified", epsilon_cs=0.02))
    assert not result.decisions.revised.any()
    assert result.notes[0].startswith("70 pairs cannot promise ε = 0.02 with 90 % confidence")
    result.write(tmp_path)
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "none; 70 development pairs are too few" in page


@pytest.mark.usefixtures("_promises_only")
@pytest.mark.parametrize("strict", [False, True])
def test_a_run_with_a_stable_prior_shows_promises_about_it(strict: bool) -> None:
    claims = with_claim_views(synthesize_claims(seed=2, pairs=90)).where(
        form="contrastive", claim_order="ordinary-first"
    )
    given = SelectivePriorCalibrator(prior="canonical", strict=strict, epsilon_cs=0.2)
    result = RunResult.from_table(claims, given)
    expected = given.clone().fit(claims).predict(claims.where(split="test"))
    assert result.decisions.to_arrow() == expected.to_arrow()
    assert f"SPC (standard, {'strict ' * strict}canonical prior, ε = 0.20)" in result.headline
    study = result.study("promises")
    assert isinstance(study, Promises)
    prior = f"{'strict ' * strict}canonical prior, ε = 0.20)"
    assert [rule.method for rule in study.rules] == [
        "SPC (standard, ε = 0.20)", f"SPC (standard, {prior}", f"SPC (certified, {prior}", f"SPC (expected, {prior}",
    ]  # fmt: skip


def test_plans_say_what_cannot_be_promised() -> None:
    planned = plan_promise(0.04, 35)
    assert planned.plan_for(35) == (None, False)
    assert planned.words == (
        "35 pairs cannot promise ε = 0.04: a calibrator fitted on them would change nothing. The smallest ε that they "
        "can promise is 0.064.",
        "ε = 0.04 needs at least 57 pairs.",
    )
    assert [row.cells[-1] for row in planned.table.rows] == ["abstains", ""]
    fixed, split = plan_promise(0.04, 58).plan_for(58)
    assert fixed is not None
    assert not split
    assert plan_promise(0.04, 58).table.rows[0].cells[-1] == "0, stop of 57, λ = 1"


@pytest.mark.parametrize("epsilon", [0.0, -0.1, 1.1, "much", None])
def test_an_epsilon_that_is_no_rate_is_refused(epsilon: float) -> None:
    with pytest.raises(UnpriorError, match="a rate of harm is above 0 and at most 1"):
        plan_promise(epsilon)
