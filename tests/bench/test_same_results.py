"""What the comparison of two states counts as a difference."""

from __future__ import annotations

from typing import Any

import pytest

from same_results import compare


@pytest.mark.parametrize(
    ("name", "before", "after", "count"),
    [
        ("run/decisions.jsonl", [{"final": "A"}], [{"final": "A"}], 0),
        ("run/decisions.jsonl", [{"final": "A"}], [{"final": "B"}], 1),
        ("run/calibrator.json", {"settings": None}, {"settings": 0.5}, 1),
        ("run/report.json", {"evaluation": {"delta_cf": 0.16}}, {"evaluation": {"delta_cf": 0.99}}, 1),
        ("run/report.json", {"studies": {"frontier": [1.0]}}, {"studies": {"frontier": [2.0]}}, 0),
        ("run/report.json", {"date": "a"}, {"date": "b"}, 0),
        ("run/report.json", {"headline": "SPC"}, {"headline": "SPC (standard)"}, 0),
        ("embedded/calibrator.json", {"theta": 0.5}, {"theta": 0.5 + 1e-7}, 0),
        ("run/report.json", {"x": 1.0, "y": 2.0}, {"x": 1.0 + 1e-14}, 1),
    ],
)
def test_changed_values_count_unless_they_are_changed_on_purpose(
    name: str, before: Any, after: Any, count: int
) -> None:
    assert compare({name: before}, {name: after}) == count


def test_a_file_that_is_gone_counts() -> None:
    assert compare({"a.json": {}}, {"b.json": {}}) == 1
