from __future__ import annotations

from typing import Any

import pytest

from small_tables import example
from unprior import ScoreTable
from unprior.benchmarks.registry import BENCHMARKS
from unprior.studies.rq4.transfer import SIDE_NAMES, subsets


def names(benchmark: str, *rows: dict[str, Any]) -> list[str]:
    return [each.subset for each in subsets(benchmark, ScoreTable.from_rows(rows))]


def question(pair: int, side: str | None, **more: Any) -> dict[str, Any]:
    return example(pair, "cf", [-1.0, -2.0], [-1.0, -1.0], "yes", "yes", **more) | {"side": side}


def test_sides_have_the_words_of_their_benchmark() -> None:
    pair = question(1, "cf"), question(1, "cs")
    assert names("hallusionbench", *pair) == ["Hard", "Easy"]
    assert names("popev2", *pair) == ["Absent", "Present"]
    assert names("visual-counterfact", *pair) == ["CF", "CS"]
    assert set(SIDE_NAMES) <= set(BENCHMARKS)


def test_unpaired_tasks_are_subsets_as_a_whole() -> None:
    choice = example(2, "cf", [-1.0, -2.0, -3.0], [-1.0, -1.0, -1.0], "A", "A") | {"side": None}
    assert names("pope", question(1, None)) == ["All"]
    assert names("conflictvis", question(1, None), choice) == ["MC", "QA"]


def test_categories_follow_where_there_are_two_to_six() -> None:
    rows = [question(number, None, category=name) for number, name in enumerate("abcdefg")]
    assert names("pope", *rows[:1]) == ["All"]
    assert names("pope", *rows[:3]) == ["All", "a", "b", "c"]
    assert len(names("pope", *rows[:6])) == 7
    assert names("pope", *rows) == ["All"]
    assert names("pope", *rows[:2], question(9, None)) == ["All", "a", "b"], "one question has no category"


def test_subcategories_stand_in_for_a_single_category() -> None:
    rows = [question(number, None, category="one", subcategory=name) for number, name in enumerate("xy")]
    assert names("pope", *rows) == ["All", "x", "y"]
    many = [question(number, None, category=str(number), subcategory="xy"[number % 2]) for number in range(7)]
    assert names("pope", *many) == ["All"], "many categories are not replaced by fewer subcategories"


def test_rows_are_those_of_side_task_and_category() -> None:
    rows = [question(pair, side, category=name) for pair, name in ((1, "a"), (2, "b")) for side in ("cf", "cs")]
    found = {each.subset: chosen.tolist() for each, chosen in subsets("x", ScoreTable.from_rows(rows)).items()}
    assert found == {"CF": [0, 2], "CS": [1, 3], "a CF": [0], "a CS": [1], "b CF": [2], "b CS": [3]}


@pytest.mark.parametrize("side", ["cf", "cs"])
def test_a_side_without_rows_is_left_out(side: str) -> None:
    assert names("x", question(1, side)) == [side.upper()]
