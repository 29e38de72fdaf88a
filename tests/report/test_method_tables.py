from __future__ import annotations

import dataclasses
import io

import pytest
from rich.console import Console
from rich.table import Table
from rich.text import Text

from finished_run import Finished
from made_up_methods import COSTS, made_up
from unprior.baselines.answers import Cost
from unprior.evaluation.comparison import SideResult, TaskResult
from unprior.evaluation.metrics import Change, Metrics, Share
from unprior.evaluation.statistics import mcnemar
from unprior.report import cost_table, methods_table
from unprior.studies import MethodRow, Methods, study_methods
from unprior.tables.html import from_terminal


def lines(table: Table, width: int = 160) -> list[str]:
    stream = io.StringIO()
    Console(file=stream, width=width).print(table)
    return [" ".join(line.split()) for line in stream.getvalue().splitlines()]


def side(repairs: int, harms: int, changed: int) -> SideResult:
    return SideResult(Change(repairs, harms, changed, 200), -0.1, 0.1, mcnemar(repairs, harms), 1.0)


def result(task: str, cf: SideResult, cs: SideResult) -> TaskResult:
    share = Share(1, 2)
    return TaskResult(None, None, task, *[Metrics(share, share, share, share)] * 2, cf, cs)


MANY, FEW = side(21, 1, 24), side(1, 3, 5)
BEST, WORST = (result("mc", MANY, FEW), result("qa", FEW, MANY)), (result("mc", FEW, MANY), result("qa", FEW, FEW))
ROWS = (
    MethodRow("vcd", "VCD", "decoder", None, {}, WORST, BEST, Cost(2.0, 12.5, 0.3, 20)),
    MethodRow("fixed", "Fixed λ", "control", "not feasible on the development rows", {}, BEST, None, None),
    MethodRow("spc", "SPC", "spc", "abstains: no setting feasible", {}, WORST, None, COSTS["spc"]),
)
METHODS = Methods(ROWS, COSTS["original"], 0.95, 100, 3)


def test_every_task_has_its_rows() -> None:
    seen = lines(methods_table(METHODS))
    start, second = seen.index("Multiple choice"), seen.index("Yes/no questions")
    assert seen[start + 1 : start + 4] == [
        "VCD -1.0 1/3 +10.0 21/1 29 +4.0 0.62 1.1e-05 +10.0/-1.0",
        "Fixed λ † +10.0 21/1 -1.0 1/3 29 +9.5 1.1e-05 0.62 –",
        "SPC ‡ -1.0 1/3 +10.0 21/1 29 +4.0 0.62 1.1e-05 –",
    ]
    assert seen[second + 1].startswith("VCD -1.0 1/3 -1.0 1/3 10 -1.5 0.62 0.62 -1.0/+10.0")
    caption = " ".join(seen)
    assert "† not feasible on the development rows" in caption
    assert "‡ abstains" in caption
    assert "correction switched off" in caption


def test_the_largest_utility_alone_is_bold() -> None:
    table = methods_table(METHODS)
    column = next(column for column in table.columns if column.header == "U")
    strong = [isinstance(cell, Text) and cell.style == "bold" for cell in column.cells]
    assert strong == [False, False, True, False, False, False, True, False]
    page = from_terminal(table)
    assert [row.cells[6].bold for row in page.rows] == strong
    assert [row.bold for row in page.rows] == [True, False, False, False] * 2  # the names of the tasks


def test_without_matched_decoders_there_is_no_such_column() -> None:
    table = methods_table(dataclasses.replace(METHODS, rows=ROWS[1:]))
    assert "Matched\nΔCF/ΔCS" not in [column.header for column in table.columns]
    assert "switched off" not in " ".join(lines(table))


@pytest.mark.parametrize(("baselines", "width"), [(True, 100), (False, 80)])
def test_a_real_result_fits(finished: Finished, baselines: bool, width: int) -> None:
    """Every method on one line of its own, in a hundred columns with matched decoders and in eighty without."""
    development, test = finished.table.where(split="dev"), finished.decisions.table
    given = made_up(test) if baselines else []
    results = study_methods(finished.decisions, finished.calibrator, development, given, resamples=50)
    seen = lines(methods_table(results), width)
    assert "…" not in " ".join(seen)
    for row in results.rows:
        assert sum(line.startswith(row.label) for line in seen) >= 2, row.label


def test_costs_stand_beside_the_original_answer() -> None:
    table = cost_table(METHODS)
    assert table is not None
    seen = lines(table)
    assert "Original answer 1 4 0.2 1.0 ×" in seen
    assert "VCD 2 12.5 0.3 1.5 ×" in seen
    assert "SPC 1 6 0.25 1.2 ×" in seen
    assert not any(line.startswith("Fixed") for line in seen)
    assert "Means over 20 examples" in " ".join(seen)


def test_without_measurements_there_is_no_table_and_no_ratio() -> None:
    assert cost_table(dataclasses.replace(METHODS, rows=ROWS[1:2])) is None
    alone = cost_table(dataclasses.replace(METHODS, original_cost=None))
    assert alone is not None
    assert "VCD 2 12.5 0.3 –" in lines(alone)
