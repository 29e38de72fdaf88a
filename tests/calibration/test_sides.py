from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

import straightforward
from random_tables import random_rows
from small_tables import twelve_pairs
from unprior import ScoreTable, SelectivePriorCalibrator, UnpriorError
from unprior.calibration.parameters import Sides
from unprior.calibration.state import FittedStrength


def _cf_only_choice(
    rows: list[dict[str, Any]], fit_rows: list[dict[str, Any]], fits: Sequence[FittedStrength]
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


@pytest.mark.parametrize("fit_on", ["both", "cf"])
def test_settings_against_plain_loops(fit_on: Sides) -> None:
    rows = random_rows(seed=46, pairs=12)
    fit_rows = rows if fit_on == "both" else [row for row in rows if row["side"] == "cf"]
    calibrator = SelectivePriorCalibrator(fit_on=fit_on, select_on="cf").fit(ScoreTable.from_rows(rows))
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
    other = SelectivePriorCalibrator(fit_on="cf", select_on="cf").fit(ScoreTable.from_rows(rows))
    mine = SelectivePriorCalibrator(fit_on="cf", select_on="cf").fit(twelve_pairs())
    assert other.settings_ == mine.settings_
    assert other.model_.theta.tolist() == mine.model_.theta.tolist()


def test_fitting_on_both_gives_the_strengths_of_spc() -> None:
    table = twelve_pairs()
    mine, spc = SelectivePriorCalibrator(select_on="cf").fit(table), SelectivePriorCalibrator().fit(table)
    for one, other in zip(mine.fits_, spc.fits_, strict=True):
        assert one.theta.tolist() == other.theta.tolist()
    assert mine.development_rows_ == spc.development_rows_


def test_the_uncertainty_aware_version_works_too() -> None:
    calibrator = SelectivePriorCalibrator(fit_on="cf", select_on="cf", uncertainty=True).fit(twelve_pairs())
    assert calibrator.selection_.searched == 8640
    assert calibrator.development_rows_ == 10
    assert [change.cs_total for change in calibrator.selection_.changes] == [0, 0]


def test_fitting_on_cf_alone_can_still_be_judged_on_both_sides() -> None:
    table = twelve_pairs()
    mine = SelectivePriorCalibrator(fit_on="cf").fit(table)
    alone = SelectivePriorCalibrator(fit_on="cf", select_on="cf").fit(table)
    for one, other in zip(mine.fits_, alone.fits_, strict=True):
        assert one.theta.tolist() == other.theta.tolist()
    assert mine.development_rows_ == alone.development_rows_
    assert all(change.cs_total == 5 for change in mine.selection_.changes)


def test_other_sides_are_refused() -> None:
    for name in ("fit_on", "select_on"):
        with pytest.raises(UnpriorError, match=f"{name} is 'cs', it must be both or cf"):
            SelectivePriorCalibrator(**{name: "cs"}).fit(twelve_pairs())  # type: ignore[arg-type]
