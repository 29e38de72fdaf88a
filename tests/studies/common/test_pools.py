"""A table as a population: what is drawn from it, and what a calibrator does to all of it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from small_tables import count_changes
from unprior import ScoreTable, SelectivePriorCalibrator, synthesize
from unprior.studies.common.pools import Pool


@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"epsilon_cs": 0.1},
        {"uncertainty": True},
        {"retention": "certified", "epsilon_cs": 0.06},
        {"retention": "expected", "epsilon_cs": 0.06},
    ],
)
def test_an_outcome_is_what_the_calibrator_decides(table: ScoreTable, parameters: dict[str, Any]) -> None:
    fitted = SelectivePriorCalibrator(**parameters).fit(table)
    outcome = Pool(table).outcome(fitted.model_, fitted.settings_)
    rows, finals = table.arrow.to_pylist(), fitted.predict(table).final.tolist()
    assert outcome.tasks == ("mc", "qa")
    for place, task in enumerate(outcome.tasks):
        _, harms, total = count_changes(rows, finals, task, "cs")
        assert outcome.harm[place] == harms / total
        repairs, lost, total = count_changes(rows, finals, task, "cf")
        assert outcome.delta_cf[place] == pytest.approx((repairs - lost) / total, abs=1e-12)
    assert outcome.worst_harm == max(outcome.harm) > 0
    assert outcome.mean_cf == pytest.approx(np.mean(outcome.delta_cf))


def test_nothing_happens_without_settings(table: ScoreTable) -> None:
    fitted = SelectivePriorCalibrator().fit(table)
    outcome = Pool(table).outcome(fitted.model_, None)
    assert (outcome.worst_harm, outcome.mean_cf) == (0.0, 0.0)


def test_a_task_without_a_threshold_is_left_alone(table: ScoreTable) -> None:
    fitted = SelectivePriorCalibrator(retention="certified", epsilon_cs=0.06).fit(table.where(task="qa"))
    outcome = Pool(table).outcome(fitted.model_, fitted.settings_)
    assert outcome.delta_cf[0] == outcome.harm[0] == 0.0
    assert outcome.delta_cf[1] > 0


def test_pairs_are_drawn_with_replacement_and_whole() -> None:
    table = synthesize(seed=3)
    pool = Pool(table)
    assert pool.pairs == 300
    drawn = pool.draw(np.random.default_rng(5), 400)
    chosen = np.random.default_rng(5).integers(300, size=400)
    assert len(set(chosen.tolist())) < 300
    assert len(set(drawn.column("pair_id"))) == 400
    rows: dict[int, list[dict[str, Any]]] = {}
    for row in table.arrow.to_pylist():
        rows.setdefault(row["pair_id"], []).append(row)
    names = list(rows)
    expected = [row | {"pair_id": place} for place, index in enumerate(chosen.tolist()) for row in rows[names[index]]]
    assert drawn.arrow.to_pylist() == expected
