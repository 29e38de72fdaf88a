from __future__ import annotations

from dataclasses import replace

import numpy as np

from made_up_methods import made_up
from small_tables import hand_made_table, twelve_pairs
from study_checks import is_plain
from unprior import ScoreTable
from unprior.baselines.activity import GateActivity
from unprior.baselines.answers import MethodAnswers, MethodInfo
from unprior.evaluation import Share
from unprior.scores.schema import IntArray
from unprior.studies.rq2.revis_direction import study_answer_shifts

TABLE = hand_made_table()


def method(answers: IntArray, name: str = "revis") -> MethodAnswers:
    return MethodAnswers(MethodInfo(name, name.upper(), "edit", {}, None), answers, None)


def plain(table: ScoreTable, names: list[str | None], task: str, side: str) -> dict[str, int]:
    """Directions row by row."""
    counts = {"yes→no": 0, "no→yes": 0, "to": 0, "from": 0, "between": 0, "none": 0}
    for row, new in zip(table.arrow.to_pylist(), names, strict=True):
        old = row["original"]
        if (row["task"], row["side"]) != (task, side) or new == old:
            continue
        winner = row["candidates"][row["prior_scores"].index(max(row["prior_scores"]))]
        if f"{old}→{new}" in counts:
            counts[f"{old}→{new}"] += 1
        if old is None or new is None:
            counts["none"] += 1
        elif new == winner:
            counts["to"] += 1
        elif old == winner:
            counts["from"] += 1
        else:
            counts["between"] += 1
    return counts


def test_directions_agree_with_plain_loops() -> None:
    table = twelve_pairs()
    answers = np.random.default_rng(4).integers(-1, table.candidate_counts)
    result = study_answer_shifts(table, [method(answers)])
    for shift in result.shifts:
        expected = plain(table, table.candidate_names(answers), shift.task, shift.side)
        yes_no = shift.task == "qa"
        assert shift.counts == {
            "yes_to_no": expected["yes→no"] if yes_no else None,
            "no_to_yes": expected["no→yes"] if yes_no else None,
            "towards_prior_winner": expected["to"],
            "from_prior_winner": expected["from"],
            "between_others": expected["between"],
            "unanswered": expected["none"],
        }
        assert shift.change.changed == sum(expected[name] for name in ("to", "from", "between", "none"))


def test_revis_comes_first_in_every_task() -> None:
    table = twelve_pairs()
    result = study_answer_shifts(table, [*made_up(table), method(table.original_positions)])
    assert [(shift.task, shift.method) for shift in result.shifts if shift.side == "cf"] == [
        (task, name) for task in ("mc", "qa") for name in ("revis", "focus", "nolan")
    ]
    assert [section.heading for section in result.table.sections] == ["MC", "QA"]
    assert len(result.records()) == 12


def test_sentences_say_how_one_sided_the_changes_are() -> None:
    no = np.where(TABLE.candidate_counts == 2, 1, TABLE.original_positions)
    assert study_answer_shifts(TABLE, [method(no)]).sentences == (
        "REVIS changes 4 QA answers (CF +100.0 and CS -100.0 points); all of them go from yes to no.",
    )
    others = study_answer_shifts(TABLE, [method(no, "one"), method(no, "other")])
    assert others.sentences == ("ONE and OTHER move every QA answer that changes from yes to no.",)
    mixed = np.where(TABLE.candidate_counts == 3, (TABLE.original_positions + 1) % 3, TABLE.original_positions)
    (sentence,) = study_answer_shifts(TABLE, [method(mixed)]).sentences
    assert "changes 10 MC answers" in sentence
    assert "% of them go away from the prior's winner" in sentence
    assert study_answer_shifts(TABLE, [method(TABLE.original_positions)]).sentences == (
        "No method changes any answer.",
    )
    assert study_answer_shifts(TABLE, [method(mixed, "x")]).sentences == (
        "No method moves all its changed answers in one direction.",
    )


def test_open_gates_are_added_up_by_side_and_said_for_all() -> None:
    table = twelve_pairs()
    activity = tuple(GateActivity(10, row % 4) for row in range(len(table)))
    revis = replace(method(table.original_positions), activity=activity)
    result = study_answer_shifts(table, [method(table.original_positions, "other"), revis])
    rows = list(zip(table.column("task"), table.column("side"), activity, strict=True))
    for shift in result.of("revis"):
        own = [each for task, side, each in rows if (task, side) == (shift.task, shift.side)]
        assert shift.gated is not None
        assert shift.gated.examples == Share(sum(each.active > 0 for each in own), len(own))
        assert shift.gated.positions == Share(sum(each.active for each in own), 10 * len(own))
    opened = sum(each.active for each in activity)
    said = f"The gate of REVIS is open on {len(table) * 3 // 4} of {len(table)} examples and at "
    assert result.sentences == (
        "No method changes any answer.",
        f"{said}{10 * opened / len(table):.1f} % of {10 * len(table)} hidden positions.",
    )
    assert all(shift.gated is None for shift in result.of("other"))
    assert {record["gate_positions"] is None for record in result.records() if record["method"] == "other"} == {True}
    assert is_plain(result)
    always = replace(revis, activity=tuple(GateActivity(10, 1) for _ in activity))
    assert "open on every example" in study_answer_shifts(table, [always]).sentences[-1]
