from __future__ import annotations

from statistics import mean, median

import pytest

from small_tables import abstaining_calibrator, twelve_pairs
from unprior import SelectivePriorCalibrator
from unprior.studies import study_strengths


def test_groups_against_plain_loops() -> None:
    table = twelve_pairs()
    decisions = SelectivePriorCalibrator().fit(table).predict(table.where(split="test"))
    settings = decisions.settings
    assert settings is not None
    groups: dict[tuple[str, str], list[float]] = {}
    for row, decision in zip(decisions.table.arrow.to_pylist(), decisions, strict=True):
        groups.setdefault((row["task"], row["side"]), []).append(decision.strength)
    result = study_strengths(decisions)
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
