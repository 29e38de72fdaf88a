"""An evaluation shows itself: tables, records, data frames, notebooks, plots, groups."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest
from matplotlib.figure import Figure

from unprior import Evaluation, ScoreTable, SelectivePriorCalibrator, UnpriorError, evaluate, holm
from unprior.evaluation.comparison import SideResult, TaskResult
from unprior.evaluation.metrics import Change, Metrics, Share
from unprior.evaluation.statistics import mcnemar
from unprior.plots.style import DARK

BEFORE = Metrics(cf=Share(100, 200), cs=Share(190, 200), ccr=Share(90, 100), attraction=Share(80, 100))
AFTER = Metrics(cf=Share(120, 200), cs=Share(188, 200), ccr=Share(60, 80), attraction=Share(40, 80))
CF = SideResult(Change(21, 1, 24, 200), 0.0625, 0.1375, mcnemar(21, 1), 2.1e-5)
CS = SideResult(Change(1, 3, 5, 200), -0.03, 0.0, mcnemar(1, 3), 0.625)
TASK = TaskResult("llava", "cdh", "mc", BEFORE, AFTER, CF, CS)
NAN = float("nan")


def evaluation(*tasks: TaskResult, level: float = 0.95) -> Evaluation:
    return Evaluation(tasks or (TASK,), level=level, resamples=10_000, seed=3, method="VCD")


def test_the_main_table() -> None:
    table = evaluation().table
    assert table.columns[:4] == ("Task", "Method", "CF acc.", "CS acc.")
    original, method = (row.cells for row in table.rows)
    assert original == ("MC", "Original", "0.500", "0.950", "0.450", "0.474", "0.900", *["–"] * 5)
    assert method[:7] == ("", "VCD", "0.600", "0.940", "0.340", "0.362", "0.750")
    assert method[7:] == ("+10.0/-1.0", "[+6.2, +13.8]", "[-3.0, +0.0]", "21/1", "1/3")
    assert [row.bold for row in table.rows] == [False, True]
    assert table.title == "Original answers and VCD"


def test_changes_with_intervals_and_tests() -> None:
    table = evaluation(level=0.999).changes_table
    assert table.title == "What VCD changed (points)"
    assert table.columns == ("Task", "Side", "Δ", "99.9 % interval", "Repairs/harms", "Changed", "p", "Holm p")
    assert [row.cells for row in table.rows] == [
        ("MC", "CF", "+10.0", "[+6.2, +13.8]", "21/1", "24", "1.1e-05", "2.1e-05"),
        ("", "CS", "-1.0", "[-3.0, +0.0]", "1/3", "5", "0.62", "0.62"),
    ]
    assert table.caption.startswith("10,000 bootstrap resamples of pairs, seed 3")
    assert table.caption.endswith("Holm over 2 tests.")


def test_several_models_are_headings() -> None:
    several = evaluation(TASK, dataclasses.replace(TASK, task="qa"), dataclasses.replace(TASK, model=None))
    for table in (several.table, several.changes_table):
        assert [section.heading for section in table.sections] == ["llava · cdh", None, "? · cdh"]
    assert [section.heading for section in evaluation().table.sections] == [None]
    labels = [label.get_text() for label in several.plot().get_yticklabels()]
    assert labels[:2] == ["llava · MC ΔCF", "llava · MC ΔCS"]


def test_what_is_undefined_is_a_dash_and_none() -> None:
    nothing = Metrics(cf=Share(9, 9), cs=Share(0, 9), ccr=Share(0, 0), attraction=Share(0, 0))
    undefined = evaluation(dataclasses.replace(TASK, method=nothing, cs=dataclasses.replace(CS, low=NAN, high=NAN)))
    assert undefined.table.rows[1].cells[2:7] == ("1.000", "0.000", "-1.000", "–", "–")
    assert undefined.changes_table.rows[1].cells[3] == "–"
    json.dumps(undefined.record(), allow_nan=False)
    json.dumps(undefined.records(), allow_nan=False)
    assert undefined.record()["tasks"][0]["method"]["ccr"] == {"count": 0, "total": 0, "value": None}
    assert undefined.records()[0]["rpd_after"] is None


def test_records_hold_everything_once_and_flat() -> None:
    (record,) = evaluation().records()
    assert (record["model"], record["benchmark"], record["task"]) == ("llava", "cdh", "mc")
    assert record["delta_cf"] == 0.1
    assert (record["cf_p"], record["cf_holm_p"]) == (CF.test.p_value, 2.1e-5)
    assert not any(isinstance(value, dict | list) for value in record.values())
    assert evaluation().to_pandas().to_dict("records") == [record]


def test_the_nested_record_is_that_of_report_json() -> None:
    record = evaluation().record()
    assert list(record) == ["level", "resamples", "seed", "holm_family", "tasks"]
    assert record["tasks"][0]["cf"] == {
        "delta": 0.1, "low": 0.0625, "high": 0.1375, "repairs": 21, "harms": 1, "changed": 24, "total": 200,
        "p": CF.test.p_value, "holm_p": 2.1e-5,
    }  # fmt: skip
    assert record["tasks"][0]["original"]["attraction"] == {"count": 80, "total": 100, "value": 0.8}
    assert record["tasks"][0]["utility"] == pytest.approx(0.095)


def test_a_notebook_shows_both_tables_escaped() -> None:
    shown = evaluation(TASK, dataclasses.replace(TASK, model="<b>m</b>"))._repr_html_()
    assert shown.count("<table>") == 2
    assert "&lt;b&gt;m&lt;/b&gt;" in shown
    assert "<b>m" not in shown


def test_printing_shows_a_line_for_every_task_and_group() -> None:
    groups = [dataclasses.replace(TASK, group=name) for name in ("Color", "Animal parts")]
    assert str(evaluation(*groups)).splitlines() == [
        "Evaluation of VCD against Original, ΔCF/ΔCS in points (repairs/harms)",
        "  MC Color          +10.0/-1.0  (21/1 CF, 1/3 CS)",
        "  MC Animal parts   +10.0/-1.0  (21/1 CF, 1/3 CS)",
    ]
    assert "  llava · cdh MC  " in repr(evaluation(TASK, dataclasses.replace(TASK, model=None)))


def test_the_method_names_itself(table: ScoreTable) -> None:
    decisions = SelectivePriorCalibrator(epsilon_cs=0.1).fit(table).predict(table)
    assert evaluate(table, decisions, resamples=10).method == "SPC (standard, ε = 0.10)"
    assert evaluate(table, decisions, resamples=10, method="ours").method == "ours"
    compared = evaluate(table, decisions.final, reference=table.original, resamples=10)
    assert (compared.method, compared.reference) == ("Method", "Reference")
    assert compared.table.title == "Reference and Method"


def test_the_plot_is_drawn_on_given_axes() -> None:
    axes = Figure().add_subplot()
    assert evaluation().plot(axes, DARK) is axes
    assert [label.get_text() for label in axes.get_yticklabels()] == ["MC ΔCF", "MC ΔCS"]
    words = [text.get_text() for text in axes.texts]
    assert words == ["+10.0", "21 repaired, 1 harmed", "−1.0", "1 repaired, 3 harmed"]


def test_groups_are_evaluated_each_on_its_own_rows(table: ScoreTable) -> None:
    decisions = SelectivePriorCalibrator().fit(table).predict(table)
    grouped = evaluate(table, decisions, by="subcategory", resamples=50)
    assert len(grouped.tasks) == 2 * len(table.values_of("subcategory"))
    assert grouped.family == 2 * len(grouped.tasks)
    for task in grouped.tasks[::5]:
        rows = table.mask(task=task.task, subcategory=task.group)
        (alone,) = evaluate(table.take(rows), decisions.final[rows], resamples=50).tasks
        assert task.cf.change == alone.cf.change
        assert (task.original, task.method) == (alone.original, alone.method)
        assert (task.cs.low, task.cs.high) == (alone.cs.low, alone.cs.high)
    p_values = [side.test.p_value for task in grouped.tasks for side in (task.cf, task.cs)]
    adjusted = [side.holm_p for task in grouped.tasks for side in (task.cf, task.cs)]
    assert adjusted == list(holm(p_values).adjusted)
    whole = evaluate(table, decisions, resamples=50)
    for name in ("repairs", "harms", "changed", "total"):
        parts = sum(getattr(task.cf.change, name) for task in grouped.tasks)
        assert parts == sum(getattr(task.cf.change, name) for task in whole.tasks)


def test_groups_stand_in_tables_and_records(table: ScoreTable) -> None:
    grouped = evaluate(table, table.answer, by="subcategory", resamples=10)
    shown = grouped.table
    assert shown.columns[:3] == ("Task", "Subcategory", "Method")
    assert shown.text_columns == 3
    assert [section.rows[0].cells[0] for section in shown.sections] == ["MC", "QA"]
    assert shown.rows[0].cells[1] == grouped.tasks[0].group
    assert shown.rows[2].cells[0] == ""
    assert grouped.records()[0]["subcategory"] == grouped.tasks[0].group
    assert grouped.record()["by"] == "subcategory"
    assert grouped.to_pandas()["subcategory"].nunique() == 14


def test_groups_without_both_sides_are_left_out_and_named(table: ScoreTable) -> None:
    names = sorted(table.values_of("subcategory"))
    keep = ~(table.mask(subcategory=names[0], task="mc") & ~table.is_cf)
    part = table.take(keep)
    grouped = evaluate(part, part.answer, by="subcategory", resamples=10)
    assert grouped.left_out == (f"MC {names[0]}",)
    assert len(grouped.tasks) == 2 * len(names) - 1
    assert grouped.changes_table.caption.endswith(f"tests. Left out, because one side is missing: MC {names[0]}.")
    assert grouped.record()["left_out"] == [f"MC {names[0]}"]
    with pytest.raises(UnpriorError, match="no group of side has both images"):
        evaluate(table, table.answer, by="side", resamples=10)


def test_any_column_with_single_values_can_group(table: ScoreTable) -> None:
    rows = np.arange(40)
    part = table.take(rows)
    by_pair = evaluate(part, part.answer, by="pair_id", resamples=10)
    assert {task.group for task in by_pair.tasks} == {str(pair) for pair in part.values_of("pair_id")}
    with pytest.raises(UnpriorError, match=r"cannot group by 'subcategorie' \(did you mean subcategory\?\); choose"):
        evaluate(table, table.answer, by="subcategorie")
    with pytest.raises(UnpriorError, match="cannot group by 'candidates'"):
        evaluate(table, table.answer, by="candidates")
    unknown = table.arrow.set_column(table.arrow.column_names.index("category"), "category", [[None] * len(table)])
    (first, *_) = evaluate(ScoreTable.from_arrow(unknown), table.answer, by="category", resamples=10).tasks
    assert first.group == "not given"
