from __future__ import annotations

from typing import Any

import pytest

import straightforward
from random_tables import random_rows
from small_tables import twelve_pairs
from unprior import ScoreTable, SelectivePriorCalibrator
from unprior.calibration.one_sided import OneSidedCalibrator
from unprior.calibration.strength import StrengthFit


def _cf_only_choice(
    rows: list[dict[str, Any]], fit_rows: list[dict[str, Any]], fits: list[StrengthFit]
) -> dict[str, float] | None:
    """Settings by plain loops: every setting judged on the counterfactual rows."""
    model = straightforward.fit(fit_rows)
    model.theta_by_rho = {fit.rho: fit.theta for fit in fits}  # of several minima the oracle may find another
    judged = [row for row in rows if row["side"] == "cf"]
    best, chosen = None, None
    for rho in straightforward.RHOS:
        for cap in straightforward.MAX_STRENGTHS:
            for margin in straightforward.MIN_MARGINS:
                model.settings = {"rho": rho, "max_strength": cap, "min_margin": margin}
                finals = [straightforward.decide(model, row)["final"] for row in judged]
                gains, sizes, changed = {"mc": 0, "qa": 0}, {"mc": 0, "qa": 0}, 0
                for row, final in zip(judged, finals, strict=True):
                    gains[row["task"]] += (final == row["answer"]) - (row["original"] == row["answer"])
                    sizes[row["task"]] += 1
                    changed += final != row["original"]
                if min(gains.values()) < 0:
                    continue
                mean = sum(gains[task] / sizes[task] for task in gains)
                value = (round(mean, 9), sum(gain > 0 for gain in gains.values()), -changed)
                if best is None or value > best:
                    best, chosen = value, dict(model.settings)
    return chosen


@pytest.mark.parametrize("fit_on_both", [True, False])
def test_settings_against_plain_loops(fit_on_both: bool) -> None:
    rows = random_rows(seed=46, pairs=12)
    fit_rows = rows if fit_on_both else [row for row in rows if row["side"] == "cf"]
    calibrator = OneSidedCalibrator(fit_on_both=fit_on_both).fit(ScoreTable.from_rows(rows))
    settings = calibrator.settings_
    assert settings is not None
    assert {
        "rho": settings.rho,
        "max_strength": settings.max_strength,
        "min_margin": settings.min_margin,
    } == _cf_only_choice(rows, fit_rows, calibrator.fits_)


def test_commonsense_answers_do_not_matter_when_only_cf_is_seen() -> None:
    rows = twelve_pairs().arrow.to_pylist()
    for row in rows:
        if row["side"] == "cs":
            row["answer"] = row["candidates"][-1]
    other = OneSidedCalibrator(fit_on_both=False).fit(ScoreTable.from_rows(rows))
    mine = OneSidedCalibrator(fit_on_both=False).fit(twelve_pairs())
    assert other.settings_ == mine.settings_
    assert other.model_.theta.tolist() == mine.model_.theta.tolist()


def test_fitting_on_both_gives_the_strengths_of_spc() -> None:
    table = twelve_pairs()
    mine, spc = OneSidedCalibrator().fit(table), SelectivePriorCalibrator().fit(table)
    for one, other in zip(mine.fits_, spc.fits_, strict=True):
        assert one.theta.tolist() == other.theta.tolist()
    assert mine.development_rows_ == spc.development_rows_


def test_the_uncertainty_aware_version_works_too() -> None:
    calibrator = OneSidedCalibrator(fit_on_both=False, uncertainty=True).fit(twelve_pairs())
    assert calibrator.selection_.searched == 8640
    assert calibrator.get_params()["fit_on_both"] is False
