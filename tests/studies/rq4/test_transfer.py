from __future__ import annotations

from collections import Counter
from dataclasses import replace
from math import comb

import pytest

from small_tables import abstaining_calibrator, example, few_pairs
from study_checks import finals_row_by_row, is_plain, with_other_answers
from unprior import ScoreTable, SelectivePriorCalibrator
from unprior.evaluation import PAPER_FAMILIES, Change
from unprior.studies.by_model import ByModel
from unprior.studies.inputs import External
from unprior.studies.rq4.external import MeasureChange, MethodEffect
from unprior.studies.rq4.transfer import SubsetChange, SubsetTransfer, TransferRow, study_transfer

OWN = few_pairs(development=3)
OTHER = few_pairs(seed=5)
CALIBRATORS = [SelectivePriorCalibrator(epsilon_cs=epsilon).fit(OWN) for epsilon in (0.04, 0.1)]


def exact_p(repairs: int, harms: int) -> float:
    total, least = repairs + harms, min(repairs, harms)
    return min(1.0, 2 * sum(comb(total, count) for count in range(least + 1)) / 2**total)


def stepped_down(raw: list[float]) -> list[float]:
    adjusted, largest = [0.0] * len(raw), 0.0
    for rank, place in enumerate(sorted(range(len(raw)), key=raw.__getitem__)):
        adjusted[place] = largest = max(largest, min(1.0, raw[place] * (len(raw) - rank)))
    return adjusted


def test_every_number_against_plain_loops() -> None:
    result = study_transfer(CALIBRATORS, {"other": External(OTHER)}, resamples=200)
    rows = OTHER.arrow.to_pylist()
    finals = [finals_row_by_row(calibrator, rows) for calibrator in CALIBRATORS]
    assert [row.subset for row in result.rows[:6]] == [
        "MC CF", "MC CS", "QA CF", "QA CS", "MC Attribute Anomalies CF", "MC Attribute Anomalies CS",
    ]  # fmt: skip
    assert len(result.rows) == 4 + 3 * 4
    assert any(row.changes[1].effect.change.changed for row in result.rows), "else there is nothing to see"
    for place, given in enumerate(finals):
        for by_category in (False, True):
            family = [row for row in result.rows if (row.category is not None) == by_category]
            raw = []
            for row in family:
                part = [(one, final) for one, final in zip(rows, given, strict=True)
                        if (one["task"], one["side"]) == (row.task, row.side)
                        and row.category in (None, one["category"])]  # fmt: skip
                before = [one["original"] == one["answer"] for one, _ in part]
                after = [final == one["answer"] for one, final in part]
                repaired = sum(now and not then for then, now in zip(before, after, strict=True))
                harmed = sum(then and not now for then, now in zip(before, after, strict=True))
                found = row.changes[place]
                assert (found.effect.change.repairs, found.effect.change.harms) == (repaired, harmed)
                (accuracy,) = found.effect.effects
                assert (accuracy.before, accuracy.after) == (sum(before) / len(part), sum(after) / len(part))
                assert found.low <= accuracy.delta <= found.high
                assert found.p == pytest.approx(exact_p(repaired, harmed))
                assert found.family == len(family)
                raw.append(found.p)
            assert [row.changes[place].holm_p for row in family] == pytest.approx(stepped_down(raw))
    assert is_plain(result)
    assert study_transfer(CALIBRATORS, {"other": External(OTHER)}, resamples=200) == result, "the same twice"
    assert result.figure() is None


def test_an_interval_is_that_of_resampled_pairs() -> None:
    # Of ten questions one is repaired; Δ of a resample is a tenth of a binomial count with n = 10, p = 1/10.
    table = ScoreTable.from_rows(
        [example(pair, "cf", [-1.0, -2.0], [-1.0, -1.0], "yes", "yes") | {"side": None} for pair in range(10)]
    )
    calibrator = abstaining_calibrator()
    kept = study_transfer([calibrator], {"x": External(table)}).rows[0].changes[0]
    assert (kept.low, kept.high) == (0.0, 0.0), "nothing changes"

    class Repairing(SelectivePriorCalibrator):
        def predict(self, table: ScoreTable):  # type: ignore[no-untyped-def]
            decisions = calibrator.predict(table)
            decisions.final_positions[0] = table.answer_positions[0]
            return decisions

    wrong = ScoreTable.from_rows([row | {"original": "no"} for row in table.arrow.to_pylist()])
    found = study_transfer([Repairing()], {"x": External(wrong)}).rows[0].changes[0]
    chances = [comb(10, count) * 0.1**count * 0.9 ** (10 - count) for count in range(11)]
    highest = next(count for count in range(11) if sum(chances[: count + 1]) >= 0.975)
    assert (found.low, found.high) == (0.0, pytest.approx(highest / 10))


def test_unpaired_yes_no_questions_have_f1_too() -> None:
    said, right = ["yes", "yes", "no", None], ["yes", "no", "yes", "yes"]
    rows = [example(pair, "cf", [-1.0, -2.0], [-1.0, -1.0], original, answer) | {"side": None}
            for pair, (original, answer) in enumerate(zip(said, right, strict=True))]  # fmt: skip
    result = study_transfer([abstaining_calibrator()], {"pope": External(ScoreTable.from_rows(rows))}, resamples=10)
    name = "SPC (standard, ε = 0.04)"
    assert result.table.columns == ("Subset", "Original", name, f"Repairs/harms, {name}", f"p, {name}")
    assert result.table.rows[0].cells == ("All", "0.250/0.400", "0.250/0.400", "0/0", "1.000000")
    (record,) = result.records()
    assert (record["f1_before"], record["f1_delta"], record["side"]) == (pytest.approx(0.4), 0.0, None)
    paired = study_transfer(CALIBRATORS, {"other": External(OTHER)}, resamples=10).records()
    assert {each["f1_before"] for each in paired} == {None}


def test_answers_of_the_other_benchmark_are_not_looked_at() -> None:
    mine, theirs = (study_transfer(CALIBRATORS, {"other": External(table)}, resamples=10)
                    for table in (OTHER, with_other_answers(OTHER)))  # fmt: skip
    changed = [[each.effect.change.changed for row in result.rows for each in row.changes] for result in (mine, theirs)]
    assert changed[0] == changed[1]
    assert mine != theirs


def row(benchmark: str, subset: str, side: str | None, repairs: int, harms: int, p: float) -> TransferRow:
    change = Change(repairs, harms, repairs + harms, 100)
    measured = MeasureChange(side or "accuracy", 0.5, 0.5 + change.delta, change.delta, p)
    effect = MethodEffect("spc", "SPC (standard, ε = 0.04)", change, (measured,))
    return TransferRow(
        benchmark,
        subset,
        "qa",
        side,
        None,
        (SubsetChange(0.04, effect, 0.0, 0.0, p, p, 2),),
    )


def test_sentences_name_what_is_significant_and_count_by_side() -> None:
    rows = (row("popev2", "Absent", "cf", 20, 3, 0.001), row("popev2", "Present", "cs", 1, 9, 0.02),
            row("pope", "All", None, 6, 11, 0.3))  # fmt: skip
    result = SubsetTransfer(rows, (("popev2 QA", None), ("pope QA", None)))
    assert result.sentences == (
        "With SPC (standard, ε = 0.04), 2 of 3 changes are significant at 0.05 after adjustment within a benchmark: "
        "popev2 Absent (gain) and popev2 Present (loss).",
        "Over all counterfactual sides, repairs/harms are 20/3 with SPC (standard, ε = 0.04).",
        "Over all commonsense sides, repairs/harms are 1/9 with SPC (standard, ε = 0.04).",
        "Over all unpaired tasks, repairs/harms are 6/11 with SPC (standard, ε = 0.04).",
    )
    assert [section.heading for section in result.table.sections] == ["popev2", "pope"]
    none = replace(result, rows=rows[2:], only_answers=(("pope QA", "yes"),))
    assert none.sentences[0] == (
        "With SPC (standard, ε = 0.04), none of 1 changes is significant at 0.05 after adjustment within a benchmark."
    )
    assert none.sentences[-1].startswith("All right answers of pope QA are “yes”")
    assert none.sentences[-1] in none.table.caption
    assert study_transfer(CALIBRATORS, {}).sentences == ("There are no other benchmarks.",)
    assert study_transfer(CALIBRATORS, {}).table.rows == ()


def test_families_over_models_are_those_of_one_benchmark_and_limit() -> None:
    tables = {"visual-counterfact": External(OTHER.where(task="qa"))}
    models = {name: study_transfer(CALIBRATORS, tables, resamples=2) for name in ("one", "two")}
    adjusted = ByModel(models).adjusted()
    families = Counter(test.family for _, test in adjusted)
    names = [each.effect.label for each in models["one"].rows[0].changes]
    assert (
        {families[f"{name} on visual-counterfact"] for name in names} == {PAPER_FAMILIES["visual-counterfact"]} == {4}
    )
    assert [(test.name, test.holm_p) for test in models["one"].tests()[:2]] == [
        ("CF", each.holm_p) for each in models["one"].rows[0].changes
    ]
