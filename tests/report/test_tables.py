from __future__ import annotations

import dataclasses
import io
import json
import math
from collections.abc import Callable

import pytest
from rich.console import Console
from rich.table import Table

from unprior import Evaluation, SelectivePriorCalibrator, evaluate, synthesize
from unprior.evaluation.comparison import SideResult, TaskResult
from unprior.evaluation.metrics import Change, Metrics, Share
from unprior.evaluation.statistics import mcnemar
from unprior.report import attraction_table, changes_table, components_table, evaluation_record, metrics_table
from unprior.studies import Attraction, Components, SpcVariant, TradeOff
from unprior.studies.rq1.attraction import AttractionCell
from unprior.tables.format import format_p

BEFORE = Metrics(cf=Share(100, 200), cs=Share(190, 200), ccr=Share(90, 100), attraction=Share(80, 100))
AFTER = Metrics(cf=Share(120, 200), cs=Share(188, 200), ccr=Share(60, 80), attraction=Share(40, 80))
CF = SideResult(Change(21, 1, 24, 200), 0.0625, 0.1375, mcnemar(21, 1), 2.1e-5)
CS = SideResult(Change(1, 3, 5, 200), -0.03, 0.0, mcnemar(1, 3), 0.625)
TASK = TaskResult("llava", "cdh", "mc", BEFORE, AFTER, CF, CS)


def evaluation(*tasks: TaskResult) -> Evaluation:
    return Evaluation(tasks or (TASK,), level=0.95, resamples=10_000, seed=3)


def lines(table: Table, width: int = 160) -> list[str]:
    """What a reader sees, line by line, without repeated spaces."""
    stream = io.StringIO()
    Console(file=stream, width=width).print(table)
    return [" ".join(line.split()) for line in stream.getvalue().splitlines()]


def test_metrics_before_and_after() -> None:
    seen = lines(metrics_table(evaluation()))
    assert "Task Method CF acc CS acc CFAD ↓ RPD ↓ CCR ↓ Attraction U" in seen
    assert "MC Original 0.500 0.950 0.450 0.474 0.900 0.800" in seen
    assert "SPC 0.600 0.940 0.340 0.362 0.750 0.500 +9.5" in seen


def test_changes_with_intervals_and_tests() -> None:
    seen = lines(changes_table(evaluation()))
    assert "Task Side Δ 95 % interval Repairs/harms Changed p Holm p" in seen
    assert "MC CF +10.0 [+6.2, +13.8] 21/1 24 1.1e-05 2.1e-05" in seen
    assert "CS -1.0 [-3.0, +0.0] 1/3 5 0.62 0.62" in seen
    caption = " ".join(seen)
    assert "10,000 bootstrap resamples of pairs, seed 3" in caption
    assert "Holm over 2" in caption


def test_the_method_and_the_level_are_named() -> None:
    wide = dataclasses.replace(evaluation(), level=0.999)
    assert "What VCD changed (points)" in lines(changes_table(wide, "VCD"))
    assert "99.9 % interval" in " ".join(lines(changes_table(wide, "VCD")))
    assert any(line.startswith("VCD 0.600") for line in lines(metrics_table(wide, "VCD")))


def test_several_tasks_of_one_model_and_several_models() -> None:
    qa = dataclasses.replace(TASK, task="qa")
    seen = lines(metrics_table(evaluation(TASK, qa)))
    assert [line.split()[0] for line in seen if "Original" in line] == ["MC", "QA"]
    assert seen[-1].startswith("llava · cdh · U = ΔCF")
    other = dataclasses.replace(TASK, model=None)
    for table in (metrics_table(evaluation(TASK, other)), changes_table(evaluation(TASK, other))):
        text = " ".join(lines(table))
        assert "llava · cdh · MC" in text
        assert "? · cdh · MC" in text
    assert "Holm over 4" in " ".join(lines(changes_table(evaluation(TASK, other))))


@pytest.mark.parametrize("model", ["llava[v1.5]", "[bold]m", "x[/INST]"])
def test_a_model_name_with_brackets_is_shown_as_it_is(model: str) -> None:
    several = evaluation(TASK, dataclasses.replace(TASK, model=model))
    for table in (metrics_table(several), changes_table(several)):
        assert f"{model} · cdh · MC" in " ".join(lines(table))


@pytest.mark.parametrize("make", [metrics_table, changes_table])
def test_a_real_result_fits_eighty_columns(make: Callable[[Evaluation], Table]) -> None:
    table = synthesize(seed=0)
    final = SelectivePriorCalibrator().fit(table).predict(table).final_positions
    assert "…" not in " ".join(lines(make(evaluate(table, final, resamples=200)), width=80))


@pytest.mark.parametrize("make", [metrics_table, changes_table])
def test_several_models_lose_no_number_in_eighty_columns(make: Callable[[Evaluation], Table]) -> None:
    models = ("Qwen2.5-VL-7B-Instruct", "llava-onevision-qwen2-7b-ov")
    several = evaluation(*(dataclasses.replace(TASK, model=model, benchmark="CDH-Bench") for model in models))
    narrow, wide = (" ".join(lines(make(several), width)) for width in (80, 200))
    assert [word for word in narrow.split() if "0." in word or "/" in word] == [
        word for word in wide.split() if "0." in word or "/" in word
    ]


NOTHING_WRONG = Metrics(cf=Share(5, 5), cs=Share(0, 5), ccr=Share(0, 0), attraction=Share(0, 0))


def test_what_is_undefined_is_a_dash_or_null() -> None:
    undefined = evaluation(dataclasses.replace(TASK, method=NOTHING_WRONG))
    assert "SPC 1.000 0.000 -1.000 – – – +9.5" in lines(metrics_table(undefined))
    record = evaluation_record(undefined)["tasks"][0]["method"]
    assert record["ccr"] == {"count": 0, "total": 0, "value": None}
    assert (record["rpd"], record["cfad"]) == (None, -1.0)


def test_an_undefined_interval_is_a_dash_or_null() -> None:
    side = dataclasses.replace(CS, low=math.nan, high=math.nan)
    undefined = evaluation(dataclasses.replace(TASK, cs=side))
    record = evaluation_record(undefined)["tasks"][0]["cs"]
    assert (record["low"], record["high"]) == (None, None)
    assert "nan" not in " ".join(lines(changes_table(undefined)))


def test_the_record_holds_everything_and_is_strict_json() -> None:
    record = evaluation_record(evaluation())
    assert json.loads(json.dumps(record, allow_nan=False)) == record
    assert record == {
        "level": 0.95,
        "resamples": 10_000,
        "seed": 3,
        "holm_family": 2,
        "tasks": [
            {
                "model": "llava",
                "benchmark": "cdh",
                "task": "mc",
                "original": {
                    "cf": {"count": 100, "total": 200, "value": 0.5},
                    "cs": {"count": 190, "total": 200, "value": 0.95},
                    "ccr": {"count": 90, "total": 100, "value": 0.9},
                    "attraction": {"count": 80, "total": 100, "value": 0.8},
                    "cfad": pytest.approx(0.45),
                    "rpd": pytest.approx(0.45 / 0.95),
                },
                "method": {
                    "cf": {"count": 120, "total": 200, "value": 0.6},
                    "cs": {"count": 188, "total": 200, "value": 0.94},
                    "ccr": {"count": 60, "total": 80, "value": 0.75},
                    "attraction": {"count": 40, "total": 80, "value": 0.5},
                    "cfad": pytest.approx(0.34),
                    "rpd": pytest.approx(0.34 / 0.94),
                },
                "cf": {
                    "delta": 0.1, "low": 0.0625, "high": 0.1375, "repairs": 21, "harms": 1, "changed": 24,
                    "total": 200, "p": mcnemar(21, 1).p_value, "holm_p": 2.1e-5,
                },
                "cs": {
                    "delta": -0.01, "low": -0.03, "high": 0.0, "repairs": 1, "harms": 3, "changed": 5,
                    "total": 200, "p": 0.625, "holm_p": 0.625,
                },
                "utility": pytest.approx(0.095),
            }
        ],
    }  # fmt: skip


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (1.0, "1"), (0.05, "0.05"), (0.000870, "0.00087"), (0.001015, "0.001"), (3.64e-12, "3.6e-12"), (0.625, "0.62"),
        (1e-16, "1e-16"), (9e-17, "<1e-16"), (0.0, "<1e-16"),
    ],
)  # fmt: skip
def test_p_values(value: float, shown: str) -> None:
    assert format_p(value) == shown


def test_component_rows() -> None:
    repaired, harmed = Change(20, 2, 25, 200), Change(1, 3, 5, 200)
    rows = tuple(
        SpcVariant(name, label, (TradeOff("mc", repaired, harmed), TradeOff("qa", harmed, repaired)))
        for name, label in (("fixed", "Fixed strength (λ = 0.8)"), ("spc", "SPC"))
    )
    seen = lines(components_table(Components(rows)), width=80)
    assert "MC Fixed strength (λ = 0.8) +9.0 20/2 -1.0 1/3 +8.5" in seen
    assert "SPC +9.0 20/2 -1.0 1/3 +8.5" in seen
    assert "QA Fixed strength (λ = 0.8) -1.0 1/3 +9.0 20/2 +3.5" in seen


def test_attraction_line() -> None:
    cells = (
        AttractionCell("mc", None, None, Share(70, 100), 0.31, Share(180, 200), Share(60, 100)),
        AttractionCell("qa", None, None, Share(0, 0), math.nan, Share(190, 200), Share(0, 0)),
    )
    seen = lines(attraction_table(Attraction(cells, ())), width=80)
    assert "MC 100 70.0 % 31.0 % 90.0 %" in seen
    assert "QA 0 – – 95.0 %" in seen
