from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from random_tables import random_rows
from small_tables import hopeless_table
from unprior import ScoreTable, SelectivePriorCalibrator, UnpriorError, synthesize
from unprior.calibration.selection import TIES
from unprior.reproduction import (
    MODELS,
    PublishedCell,
    PublishedTable,
    ReproductionResult,
    Verdict,
    judge,
    published_tables,
    refit_tables,
    reproduce,
)
from unprior.reproduction.cells import OwnCell
from unprior.scores.table import concatenate
from unprior.studies.rq4.held_out import HeldOut, study_held_out

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


def test_every_cell_that_scores_suffice_for_is_recomputed(result: ReproductionResult) -> None:
    lacking = {cell.published.key for cell in result.cells if cell.ours is None and not cell.published.needs}
    assert lacking == set()
    assert {cell.published.key for cell in result.cells if cell.ours is not None and cell.published.needs} == set()


def test_the_documentation_says_how_many_cells_are_recomputed(result: ReproductionResult) -> None:
    text = (Path(__file__).parents[2] / "docs" / "explanation" / "paper-and-code.md").read_text(encoding="utf-8")
    recomputed = len(result.cells) - result.counts()[Verdict.NOT_RECOMPUTED]
    assert f"{recomputed:,} of the {len(result.cells):,}" in text


def test_scores_without_subcategories_lack_only_the_tables_that_draw_pairs_by_them(
    scores: dict[str, ScoreTable],
) -> None:
    bare = scores[QWEN].with_columns(subcategory=None)
    labels = ["tab:matched-shift", "tab:calibration-size", "tab:family-folds", "text:holdout-pooled",
              "tab:repeated-split-summary", "tab:joint-task-fitting"]  # fmt: skip
    result = reproduce({QWEN: bare, LLAVA: scores[LLAVA]}, labels=labels)
    of_qwen = [cell for cell in result.cells if cell.published.model == QWEN]
    assert {cell.reason for cell in of_qwen} == {None, "needs the subcategory of every row"}
    assert {(cell.published.table, cell.published.row) for cell in of_qwen if cell.ours is not None} == {
        ("tab:family-folds", "Attribute"), ("tab:family-folds", "Counting"), ("tab:family-folds", "Relation"),
        ("text:holdout-pooled", "categories"),
        ("tab:joint-task-fitting", "MC and QA"), ("tab:joint-task-fitting", "MC only"),
    }  # fmt: skip
    assert all(cell.ours is not None for cell in result.cells if cell.published.model == LLAVA)


@pytest.mark.parametrize(
    ("label", "row", "column", "value"),
    [
        ("tab:joint-task-fitting", "MC only", "QA ΔCF", 0.0),  # it was not fitted on two candidates
        ("tab:supp-attribution", "Image-conditioned scores as prior", "MC ΔCS", 0.0),  # nothing is subtracted
        ("tab:calibration-size", "70 pairs", "QA ΔCS std", 0.0),  # all pairs are drawn whatever the seed
    ],
)
def test_values_that_hold_whatever_the_scores(
    result: ReproductionResult, label: str, row: str, column: str, value: float
) -> None:
    own = {cell.published.key: cell.ours for cell in result.of(label)}
    assert own[QWEN, row, column] == pytest.approx(value, abs=1e-12)


def test_a_study_that_several_tables_share_is_computed_once_for_every_model(
    scores: dict[str, ScoreTable], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def counting(table: ScoreTable, *, by: str, epsilon: float) -> HeldOut:
        asked.append(by)
        return study_held_out(table, by=by, epsilon=epsilon)

    monkeypatch.setattr(refit_tables, "study_held_out", counting)
    reproduce(scores, labels=["tab:family-holdout", "tab:family-folds", "text:holdout-pooled"])
    assert Counter(asked) == {"category": 3, "subcategory": 2}  # the third model is in one of the tables only


def test_tables_that_share_a_quantity_agree(result: ReproductionResult) -> None:
    own = {(cell.published.table, *cell.published.key): cell.ours for cell in result.cells if cell.ours is not None}
    for model in MODELS[:2]:
        for task in ("MC", "QA"):
            change = own["tab:components", model, "Full SPC", f"{task} ΔCF"]
            assert own["tab:joint-task-fitting", model, "MC and QA", f"{task} ΔCF"] == change
            assert own["tab:paired-calibration-full", model, "Fit and select on CF and CS", f"{task} ΔCF"] == change
            assert own["tab:calibration-size", model, "70 pairs", f"{task} ΔCS"] == pytest.approx(
                own["text:uncertainty-wide", model, "SPC", f"{task} ΔCS"]
            )
            repaired = [
                own["tab:family-folds", model, name, f"{task} CF repairs"]
                - own["tab:family-folds", model, name, f"{task} CF harms"]
                for name in ("Attribute", "Counting", "Relation")
            ]
            pooled = own["text:holdout-pooled", model, "categories", f"{task} ΔCF"]
            assert pooled == pytest.approx(100 * sum(repaired) / 230)
        utility = np.mean(
            [
                own["text:holdout-pooled", model, "categories", f"{task} ΔCF"]
                + 0.5 * own["text:holdout-pooled", model, "categories", f"{task} ΔCS"]
                for task in ("MC", "QA")
            ]
        )
        assert own["tab:matched-shift", model, "Target category excluded", "SPC"] == pytest.approx(utility)
    widths = [own["text:stable-ranges", "both", f"{end} of four", "median width"] for end in ("least", "most")]
    assert 0 < widths[0] < widths[1]
    one_sided = own["tab:paired-calibration-full", QWEN, "Fit and select on CF", "MC ΔCS"]
    repairs, harms = (own["text:cf-only-fitting", QWEN, "MC", f"CS {what}"] for what in ("repairs", "harms"))
    assert one_sided == pytest.approx(100 * (repairs - harms) / 230)
    assert harms > 0


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
    finals = test.candidate_names(decisions.final_positions)
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
    quick = [label for label in published_tables() if label not in ("tab:supp-attribution", "tab:calibration-size")]
    again = reproduce(scores, labels=quick, tables=plant(result))
    verdicts = Counter(cell.verdict for cell in again.cells if cell.ours is not None)
    assert set(verdicts) == {Verdict.EQUAL}
    assert verdicts[Verdict.EQUAL] > 650
    moved = reproduce(scores, labels=["tab:main"], tables=plant(result, offset=5.0))
    assert moved.counts()[Verdict.DIFFERS] == len(moved.cells)


def test_where_nothing_is_wrong_shares_of_errors_are_undefined(scores: dict[str, ScoreTable]) -> None:
    rows = [row | {"original": row["answer"]} for row in scores[QWEN].arrow.to_pylist()]
    result = reproduce({QWEN: ScoreTable.from_rows(rows)}, labels=["tab:native-score-agreement", "text:attraction"])
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
    ranges = reproduce({QWEN: both, LLAVA: both}, labels=["text:stable-ranges"])
    assert ranges.counts()[Verdict.NOT_RECOMPUTED] == len(ranges.cells) == 12  # no proposals, no ranges
    result = reproduce({MOE: both}, labels=["text:third-model"])
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
    labels = ["tab:main", "tab:matched-shift", "tab:family-folds", "tab:repeated-split-summary"]
    again = reproduce({QWEN: scores[QWEN]}, labels=labels)
    assert any(cell.published.seeded for cell in again.cells)
    for label in labels:
        assert [cell for cell in again.of(label) if cell.published.model == QWEN] == [
            cell for cell in result.of(label) if cell.published.model == QWEN
        ]


def test_ties_are_broken_as_in_the_released_scripts() -> None:
    rows = random_rows(seed=39, pairs=6)
    table = ScoreTable.from_rows(rows + [row | {"pair_id": row["pair_id"] + 6, "split": "test"} for row in rows])
    first, released = (SelectivePriorCalibrator(ties=ties).fit(table).settings_ for ties in TIES)
    assert first is not None
    assert released is not None
    assert first != released
    cells = reproduce({QWEN: table}, labels=["tab:spc-primary-settings"]).of("tab:spc-primary-settings")
    own = {cell.published.column: cell.ours for cell in cells if cell.published.model == QWEN}
    assert own == {"ρ": released.rho, "λ_max": released.max_strength, "m_min": released.min_margin}
