"""The rule that chooses the shipped model."""

from typing import Any

import pytest

from select_default import missed_aims, perception_share


def record(**changes: float) -> dict[str, Any]:
    values = {"cf": 0.6, "cs": 0.97, "attraction": 0.8, "prior_is_ordinary": 0.95, "presence": 0.95} | changes
    apart = {name: values.pop(name) for name in ("presence", "options", "agreement", "errors") if name in values}
    errors = {"pairs": 230, "prior": 60, "perception": 20}
    return {
        "presence": apart["presence"],
        "options": {"cs": apart.get("options", 0.95)},
        "original_is_best_scored": apart.get("agreement", 0.94),
        "errors_by_category": {"Counting": 30, "Relations": apart.get("errors", 12)},
        "tasks": {"mc": values, "qa": dict(values), "open": dict(values)},
        "errors": {"mc": errors, "qa": errors},
    }


def test_all_aims_can_be_reached() -> None:
    assert missed_aims([record(), record()]) == []


@pytest.mark.parametrize(
    ("changes", "missed"),
    [
        ({"cf": 0.3}, ["MC CF in .45–.75", "QA CF in .45–.75", "open CF in .40–.75"]),
        ({"cf": 0.42}, ["MC CF in .45–.75", "QA CF in .45–.75"]),
        ({"cf": 0.8}, ["MC CF in .45–.75", "QA CF in .45–.75", "open CF in .40–.75"]),
        ({"cs": 0.92}, ["MC CS ≥ .93", "QA CS ≥ .93", "open CS ≥ .93"]),
        ({"options": 0.92}, ["2–6 options CS ≥ .93"]),
        ({"agreement": 0.96}, ["5 % original ≠ best-scored"]),
        ({"errors": 9}, ["10 errors in each category"]),
        ({"attraction": 0.69}, ["MC attraction ≥ .7"]),
        ({"presence": 0.89}, ["presence ≥ .9"]),
        (
            {"prior_is_ordinary": 0.89},
            ["MC prior is ordinary ≥ .9", "QA prior is ordinary ≥ .9", "open prior is ordinary ≥ .9"],
        ),
    ],
)
def test_each_aim_can_be_missed(changes: dict[str, float], missed: list[str]) -> None:
    assert missed_aims([record(**changes)]) == missed


def test_aims_are_about_means_over_the_worlds() -> None:
    assert missed_aims([record(cs=0.92), record(cs=0.95)]) == []


def test_errors_of_perception_are_counted_over_worlds_and_tasks() -> None:
    assert perception_share([record(), record()]) == pytest.approx(0.25)
