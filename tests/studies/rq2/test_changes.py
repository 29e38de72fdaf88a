"""Methods on a benchmark without pairs."""

from __future__ import annotations

from made_up_methods import made_up
from small_tables import twelve_pairs
from study_inputs import unpaired
from unprior import mcnemar
from unprior.studies.rq2.changes import study_changes
from unprior.tables.format import format_p

TABLE = unpaired(twelve_pairs())


def test_changes_are_counted_over_all_rows_of_a_task() -> None:
    methods = made_up(TABLE)
    result = study_changes(TABLE, methods)
    assert [(row.task, row.method) for row in result.rows] == [
        (task, method.info.name) for task in ("mc", "qa") for method in methods
    ]
    rows = TABLE.arrow.to_pylist()
    for row, line in zip(result.rows, result.table.rows, strict=True):
        given = next(method for method in methods if method.info.name == row.method)
        names = TABLE.candidate_names(given.answers)
        mine = [(each["original"], name, each["answer"]) for each, name in zip(rows, names, strict=True)
                if each["task"] == row.task]  # fmt: skip
        repairs = sum(before != right == after for before, after, right in mine)
        harms = sum(before == right != after for before, after, right in mine)
        changed = sum(before != after for before, after, _ in mine)
        assert (row.change.repairs, row.change.harms, row.change.changed) == (repairs, harms, changed)
        accuracy = sum(after == right for _, after, right in mine) / len(mine)
        assert line.cells[:2] == (row.task.upper(), given.info.label)
        assert line.cells[3:8] == (
            f"{accuracy:.3f}", f"{100 * (repairs - harms) / len(mine):+.1f}", f"{repairs}/{harms}", str(changed),
            format_p(mcnemar(repairs, harms).p_value),
        )  # fmt: skip


def test_what_was_not_measured_is_a_dash() -> None:
    focus, nolan = study_changes(TABLE, made_up(TABLE)).table.rows[:2]
    assert focus.cells[-3:] == ("–", "–", "–")
    assert nolan.cells[-2:] == ("8", "0.4")
    assert "–" not in nolan.cells
