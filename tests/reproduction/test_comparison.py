from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from small_tables import hopeless_table
from unprior import ScoreTable, SelectivePriorCalibrator, UnpriorError, synthesize
from unprior.reproduction import (
    MODELS,
    PublishedCell,
    PublishedTable,
    ReproductionResult,
    Verdict,
    judge,
    published_tables,
    reproduce,
)
from unprior.reproduction.cells import OwnCell
from unprior.scores.table import concatenate

QWEN, LLAVA, MOE = MODELS


@pytest.fixture(scope="module")
def scores() -> dict[str, ScoreTable]:
    tables = {model: synthesize(seed=seed) for seed, model in enumerate(MODELS)}
    return tables | {MOE: tables[MOE].where(task="mc")}


@pytest.fixture(scope="module")
def result(scores: dict[str, ScoreTable]) -> ReproductionResult:
    return reproduce(scores)


def printed(value: float, digits: int = 1, *, seeded: bool = False) -> PublishedCell:
    return PublishedCell("tab:main", QWEN, "SPC", "ΔCF", value, digits, 0.04, "standard", (), seeded, None)


def ours(value: float, example: float = 0.0) -> OwnCell:
    return OwnCell("SPC", "ΔCF", value, example)


@pytest.mark.parametrize(
    ("cell", "own", "verdict"),
    [
        (printed(7.8), ours(7.826), "equal"),
        (printed(41.2), ours(41.25), "equal"),  # a tie may be rounded either way
        (printed(41.3), ours(41.25), "equal"),
        (printed(7.8), ours(7.93), "close"),  # one unit of the last digit, before rounding
        (printed(7.8), ours(7.96), "differs"),
        (printed(7.8), ours(8.26, example=100 / 230), "close"),  # one example more
        (printed(7.8), ours(8.70, example=100 / 230), "differs"),
        (printed(21, 0), ours(22, example=1), "close"),
        (printed(21, 0), ours(23, example=1), "differs"),
        (printed(8.55e-14, 16), ours(8.5543e-14), "equal"),
        (printed(8.55e-14, 16), ours(8.60e-14), "differs"),
        (printed(-0.7, seeded=True), ours(2.0), "other seeds"),
        (printed(-0.7, seeded=True), ours(-0.72), "equal"),
    ],
)
def test_verdicts(cell: PublishedCell, own: OwnCell, verdict: str) -> None:
    assert judge(cell, own) == verdict


def test_what_is_not_recomputed_says_what_it_needs(result: ReproductionResult) -> None:
    reasons = {cell.published.row: cell.reason for cell in result.of("tab:controlled")}
    assert reasons["NoLan"] == "needs answers of other methods"
    assert reasons["SPC ε = .04"] is None
    for label, need in (
        ("tab:equivariance", "needs scores of other question forms"),
        ("tab:supp-transfer", "needs scores on other benchmarks"),
        ("text:prior-agreement", "needs prior scores from other images"),
        ("text:order-agreement", "needs scores with the options in other orders"),
    ):
        assert {cell.reason for cell in result.of(label)} == {need}
        assert result.counts(label)[Verdict.NOT_RECOMPUTED] == len(result.of(label))


def test_rows_that_scores_suffice_for_are_recomputed_but_for_those_without_a_study(result: ReproductionResult) -> None:
    lacking = {cell.published.table for cell in result.cells if cell.reason == "no study gives it"}
    assert lacking <= {
        "tab:supp-attribution", "tab:paired-calibration-full", "text:cf-only-fitting", "tab:matched-shift",
        "tab:calibration-size", "tab:joint-task-fitting", "tab:family-holdout", "tab:family-folds",
        "text:holdout-pooled", "tab:repeated-split-summary",
    }  # fmt: skip
    assert {cell.reason for cell in result.cells if cell.ours is None and not cell.published.needs} <= {
        "no study gives it"
    }


def test_a_model_without_scores_is_said_to_lack_them(scores: dict[str, ScoreTable]) -> None:
    result = reproduce({LLAVA: scores[LLAVA]}, labels=["tab:primary-holm", "text:native-repairs"])
    reasons = {cell.published.key: cell.reason for cell in result.cells}
    assert reasons[LLAVA, "MC CF", "raw p"] is None
    assert reasons[QWEN, "MC CF", "raw p"] == "needs scores of Qwen3-VL-32B"
    assert reasons[LLAVA, "MC CF", "Holm p"] == "needs scores of Qwen3-VL-32B and Qwen3-VL-30B-A3B"  # one family
    assert reasons["both", "repairs", "CF repairs"] == "needs scores of Qwen3-VL-32B"


def test_unknown_tables_and_models_are_refused(scores: dict[str, ScoreTable]) -> None:
    with pytest.raises(UnpriorError, match="no table tab:none; there are text:attraction, tab:main"):
        reproduce(scores, labels=["tab:none"])
    with pytest.raises(UnpriorError, match="the paper has no model synthetic; it has Qwen3-VL-32B"):
        reproduce({"synthetic": scores[QWEN]})


def test_values_agree_with_plain_loops(scores: dict[str, ScoreTable], result: ReproductionResult) -> None:
    """The whole main table, attraction and agreement of one model, row by row."""
    test = scores[QWEN].where(split="test")
    decisions = SelectivePriorCalibrator(epsilon_cs=0.04).fit(scores[QWEN]).predict(test)
    finals = test.candidate_names(decisions.final)
    rows = [row | {"final": final} for row, final in zip(test.arrow.to_pylist(), finals, strict=True)]

    def first(row: dict, column: str) -> str:
        return max(zip(row["candidates"], row[column], strict=True), key=lambda pair: pair[1])[0]

    expected: dict[tuple[str, str, str], float] = {}
    for task in ("mc", "qa"):
        part = [row for row in rows if row["task"] == task]
        cf, cs = ([row for row in part if row["side"] == side] for side in ("cf", "cs"))
        ordinary = {row["pair_id"]: row["answer"] for row in cs}
        for column, name in (("original", "Original"), ("final", "SPC")):
            accuracy = [sum(row[column] == row["answer"] for row in side) / 230 for side in (cf, cs)]
            wrong = [row for row in cf if row[column] != row["answer"]]
            row_name = f"{task.upper()} {name}"
            expected |= {
                ("tab:official-cdh-full", row_name, "CF-Acc"): accuracy[0],
                ("tab:official-cdh-full", row_name, "CS-Acc"): accuracy[1],
                ("tab:official-cdh-full", row_name, "CFAD"): accuracy[1] - accuracy[0],
                ("tab:official-cdh-full", row_name, "RPD"): 1 - accuracy[0] / accuracy[1],
                ("tab:official-cdh-full", row_name, "CCR"): np.mean(
                    [row[column] == ordinary[row["pair_id"]] for row in wrong]
                ),
            }
        wrong = [row for row in cf if row["original"] != row["answer"]]
        repaired = [row for row in wrong if row["final"] == row["answer"]]
        harmed = [row for row in cf if row["original"] == row["answer"] != row["final"]]
        image_right = [row for row in repaired if first(row, "image_scores") == row["answer"]]
        same = [row for row in repaired if first(row, "image_scores") == first(row, "prior_scores") == row["original"]]
        attracted = [row for row in wrong if row["original"] == first(row, "prior_scores")]
        agree = [row for row in cs if row["original"] == first(row, "image_scores")]
        expected |= {
            ("tab:components", "Full SPC", f"{task.upper()} ΔCF"): 100 * (len(repaired) - len(harmed)) / 230,
            ("text:attraction", task.upper(), "rate (%)"): 100 * len(attracted) / len(wrong),
            ("tab:native-score-agreement", task.upper(), "CS agreement (%)"): 100 * len(agree) / 230,
            ("tab:native-score-agreement", task.upper(), "CF repairs"): len(repaired),
            ("tab:native-score-agreement", task.upper(), "image already correct (%)"): 100
            * len(image_right)
            / len(repaired),
            ("tab:native-score-agreement", task.upper(), "all three the same (%)"): 100 * len(same) / len(repaired),
        }
    given = {
        (cell.published.table, cell.published.row, cell.published.column): cell.ours
        for cell in result.cells
        if cell.published.model == QWEN
    }
    for key, value in expected.items():
        assert given[key] == pytest.approx(value, abs=1e-12), key


def plant(result: ReproductionResult, offset: float = 0.0) -> dict[str, PublishedTable]:
    """Tables that print what was computed, rounded to the paper's digits."""
    return {
        table.label: replace(
            table,
            cells=tuple(
                cell.published
                if cell.ours is None
                else replace(cell.published, value=round(cell.ours, cell.published.digits) + offset)
                for cell in result.of(table.label)
            ),
        )
        for table in result.tables
    }


def test_planted_values_are_found_equal(scores: dict[str, ScoreTable], result: ReproductionResult) -> None:
    again = reproduce(scores, tables=plant(result))
    verdicts = Counter(cell.verdict for cell in again.cells if cell.ours is not None)
    assert set(verdicts) == {Verdict.EQUAL}
    assert verdicts[Verdict.EQUAL] > 450
    moved = reproduce(scores, labels=["tab:main"], tables=plant(result, offset=5.0))
    assert moved.counts()[Verdict.DIFFERS] == len(moved.cells)


def test_where_nothing_is_wrong_shares_of_errors_are_undefined(scores: dict[str, ScoreTable]) -> None:
    rows = [row | {"original": row["answer"]} for row in scores[QWEN].arrow.to_pylist()]
    result = reproduce({QWEN: ScoreTable.from_rows(rows)})
    given = {cell.published.key: cell for cell in result.of("tab:native-score-agreement")}
    assert given[QWEN, "MC", "CF repairs"].ours == 0
    assert given[QWEN, "MC", "image already correct (%)"].reason == "undefined on these scores"
    rate = next(cell for cell in result.of("text:attraction") if cell.published.model == QWEN)
    assert rate.reason == "undefined on these scores"


def test_a_calibrator_that_abstains_has_no_settings_and_changes_nothing() -> None:
    """Multiple choice only, as the third model has it, and every setting harms."""
    development = hopeless_table()
    both = concatenate([development, development.with_columns(split="test")])
    settings = reproduce({QWEN: both}).of("tab:spc-primary-settings")
    assert {cell.reason for cell in settings if cell.published.model == QWEN} == {"undefined on these scores"}
    result = reproduce({MOE: both})
    changes = {cell.published.column: cell.ours for cell in result.of("text:third-model")}
    assert changes == {"ΔCF": 0.0, "ΔCS": 0.0, "repairs": 0, "harms": 0}


def test_records_hold_every_cell_as_plain_values(result: ReproductionResult) -> None:
    records = result.records()
    assert len(records) == sum(len(table.cells) for table in published_tables().values())
    record = next(record for record in records if (record["table"], record["column"]) == ("tab:main", "ΔCF"))
    assert (record["paper"], record["digits"], record["epsilon"]) == (7.8, 1, 0.04)
    assert record["difference"] == pytest.approx(record["ours"] - 7.8)
    assert {type(value) for record in records for value in record.values()} <= {str, int, float, type(None)}


def test_the_same_scores_give_the_same_result(scores: dict[str, ScoreTable], result: ReproductionResult) -> None:
    assert reproduce(scores).records() == result.records()
