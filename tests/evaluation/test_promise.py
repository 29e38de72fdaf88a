"""Did a promise hold? Harms, exact intervals, and the most harms that few pairs may show."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.stats import binomtest, hypergeom

from unprior import ScoreTable, SelectivePriorCalibrator, synthesize
from unprior.calibration.certificate import Certificate
from unprior.evaluation.promise import PromiseCheck, check_promise, exact_interval, harmed_pairs, most_tested_harms


@pytest.fixture(scope="module")
def synthetic() -> ScoreTable:
    return synthesize(seed=3)


@pytest.fixture(scope="module")
def fitted(synthetic: ScoreTable) -> SelectivePriorCalibrator:
    return SelectivePriorCalibrator(retention="certified", epsilon_cs=0.06).fit(synthetic)


@pytest.fixture(scope="module")
def certificate(fitted: SelectivePriorCalibrator) -> Certificate:
    assert fitted.certificate_ is not None
    return fitted.certificate_


@pytest.fixture(scope="module")
def tested(synthetic: ScoreTable) -> ScoreTable:
    """With right original answers on the commonsense side, so that any of them can be harmed."""
    rows = [row | {"original": row["answer"]} for row in synthetic.where(split="test").arrow.to_pylist()]
    return ScoreTable.from_rows(rows)


def harmed(table: ScoreTable, **harms: int) -> Any:
    """Final answers that harm so many pairs of every task."""
    final = table.original_positions.copy()
    for task, count in harms.items():
        rows = np.flatnonzero(table.mask(task=task) & ~table.is_cf)[:count]
        final[rows] = (final[rows] + 1) % 2
    return final


def checked(certificate: Certificate, table: ScoreTable, **harms: int) -> PromiseCheck:
    check = check_promise(certificate, table, harmed(table, **harms))
    assert check is not None
    return check


@pytest.mark.parametrize("task", ["mc", "qa"])
def test_harmed_pairs_equal_a_count_by_hand(synthetic: ScoreTable, fitted: SelectivePriorCalibrator, task: str) -> None:
    rows = synthetic.arrow.to_pylist()
    # A second question about some pairs: a pair is harmed once.
    twice = ScoreTable.from_rows(
        [
            row | {"example_id": f"{index}{copy}", "form": copy}
            for index, row in enumerate(rows)
            for copy in ("a", "b")
            if copy == "a" or row["pair_id"] % 3 == 0
        ]
    )
    decisions = fitted.predict(twice)
    asked, hurt = set(), set()
    for row, final in zip(twice.arrow.to_pylist(), decisions.final, strict=True):
        if (row["task"], row["side"]) == (task, "cs"):
            asked.add(row["pair_id"])
            if row["original"] == row["answer"] != final:
                hurt.add(row["pair_id"])
    assert hurt
    assert harmed_pairs(twice, decisions.final_positions, task) == (len(asked), len(hurt)) == (300, len(hurt))


@pytest.mark.parametrize(("count", "total"), [(0, 70), (1, 70), (7, 70), (35, 70), (69, 70), (70, 70), (2, 3)])
@pytest.mark.parametrize("level", [0.95, 0.8])
def test_intervals_are_exact(count: int, total: int, level: float) -> None:
    expected = binomtest(count, total).proportion_ci(level, method="exact")
    assert exact_interval(count, total, level) == pytest.approx((expected.low, expected.high), abs=1e-12)


def _most_by_brute_force(steps: tuple[int, ...], calibration: int, tested: int, delta: float) -> int:
    """The least number whose excess has a chance of at most δ, whatever the number of harmed pairs in both together."""

    def chance(most: int, allowed: int) -> float:
        worst = 0.0
        for total in range(calibration + tested + 1):
            seen = np.arange(max(0, allowed) + 1) if allowed >= 0 else np.array([], dtype=int)
            split = hypergeom(calibration + tested, total, calibration).pmf(seen)
            worst = max(worst, float(split[total - seen > most].sum()))
        return worst

    return next(most for most in range(tested + 1) if sum(chance(most, step) for step in steps) <= delta)


@pytest.mark.parametrize("steps", [(0,), (1,), (3,), (0, -1), (1, 0), (2, 2)])
@pytest.mark.parametrize(("calibration", "tested", "delta"), [(12, 9, 0.1), (8, 20, 0.1), (15, 6, 0.3), (20, 12, 0.05)])
def test_the_most_harms_are_hypergeometric(steps: tuple[int, ...], calibration: int, tested: int, delta: float) -> None:
    expected = _most_by_brute_force(steps, calibration, tested, delta)
    assert most_tested_harms(steps, calibration, tested, delta) == expected


def test_the_most_harms_are_rarely_exceeded() -> None:
    """Calibration and tested pairs drawn alike at any rate; the first are seen to be harmless."""
    most = most_tested_harms((0,), 40, 60)
    rng = np.random.default_rng(0)
    for rate in (0.02, 0.05, 0.08):
        hurt = rng.random((4000, 100)) < rate
        broken = (hurt[:, :40].sum(axis=1) == 0) & (hurt[:, 40:].sum(axis=1) > most)
        assert broken.mean() <= 0.1 + 3 * np.sqrt(0.09 / 4000)


def test_verdicts(certificate: Certificate, tested: ScoreTable) -> None:
    allowed = int(0.06 * 230)
    # The test pairs are mixed otherwise than the development pairs, so that the limit is their weight higher.
    alike = replace(certificate, mixture=())
    check = checked(alike, tested, mc=allowed, qa=allowed + 1)
    mc, qa = check.tasks
    assert (mc.verdict, mc.harms, mc.pairs, mc.rate, mc.limit) == ("held", 13, 230, 13 / 230, 0.06)
    assert mc.most == most_tested_harms(certificate.steps, certificate.calibration, 230) > allowed
    assert (qa.verdict, check.held) == ("chance", True)
    broken = checked(alike, tested, mc=mc.most, qa=mc.most + 1)
    assert [each.verdict for each in broken.tasks] == ["chance", "broken"]
    assert not broken.held
    assert checked(alike, tested).words[1:] == (
        "It held on the tested pairs: harmed were 0 of 230 on MC and 0 of 230 on QA (0.0 % and 0.0 %), at most 6 % "
        "promised.",
    )
    assert f"so few tested pairs may show up to {mc.most} harms while it holds." in check.outcome_words
    assert f"It did not hold: harmed were {mc.most + 1} of 230 on QA" in broken.outcome_words
    assert broken.outcome_words.endswith("Are these pairs drawn like the development pairs?")


def test_a_task_without_a_threshold_is_not_covered(certificate: Certificate, tested: ScoreTable) -> None:
    other = tested.with_column("task", ["other" if task == "qa" else task for task in tested.column("task")])
    check = checked(certificate, other)
    assert [(each.task, each.verdict) for each in check.tasks] == [("mc", "held"), ("other", "not covered")]
    assert check.held
    assert check.words[-1].endswith("It does not cover OTHER.")


def test_another_mixture_raises_the_limit(certificate: Certificate, tested: ScoreTable) -> None:
    check = checked(certificate, tested, qa=14)
    pairs = dict(zip(tested.column("pair_id"), tested.column("subcategory"), strict=True))
    names = list(pairs.values())
    # Five development pairs of each of the 14 subcategories.
    assert check.weight == pytest.approx(14 * max(names.count(name) for name in set(names)) / len(names))
    assert check.tasks[0].limit == 0.06
    assert f"a subcategory is {check.weight:.2f} times as frequent" in check.words[1]
    one = tested.where(subcategory="Color")
    narrow = checked(certificate, one)
    assert narrow.weight == pytest.approx(14)
    task = narrow.tasks[0]
    # Binomial at w ε: the smallest number whose excess has a chance of at most δ.
    total = task.pairs
    exceeds = [binomtest(most + 1, total, 0.06 * 14, alternative="greater").pvalue for most in range(total)]
    assert task.most == next(most for most, chance in enumerate(exceeds) if chance <= 0.1)


def test_subcategories_that_it_does_not_know_do_not_count(certificate: Certificate, tested: ScoreTable) -> None:
    """A pair of another kind must neither be judged nor switch the check off."""
    names = ["Smell" if pair == tested.column("pair_id")[0] else name
             for pair, name in zip(tested.column("pair_id"), tested.column("subcategory"), strict=True)]  # fmt: skip
    check = checked(certificate, tested.with_column("subcategory", names), mc=200, qa=0)
    assert check.uncovered == 1
    assert [(each.pairs, each.verdict) for each in check.tasks] == [(229, "broken"), (229, "held")]
    assert check.words[1].startswith("1 tested pairs have subcategories that the promise does not cover")
    elsewhere = checked(certificate, tested.with_columns(subcategory="Smell"))
    assert {each.verdict for each in elsewhere.tasks} == {"not covered"}
    unnamed = checked(certificate, tested.with_columns(subcategory=None))
    assert (unnamed.weight, unnamed.tasks[0].limit) == (1.0, 0.06)


def test_the_expected_rule_has_a_binomial_limit(synthetic: ScoreTable, tested: ScoreTable) -> None:
    fitted = SelectivePriorCalibrator(retention="expected", epsilon_cs=0.06).fit(synthetic)
    assert fitted.certificate_ is not None
    (task, _) = checked(replace(fitted.certificate_, mixture=()), tested).tasks
    chances = [binomtest(most + 1, 230, 0.06, alternative="greater").pvalue for most in range(230)]
    assert task.most == next(most for most, chance in enumerate(chances) if chance <= 0.1)


def test_the_table_and_the_record_say_the_same(certificate: Certificate, tested: ScoreTable) -> None:
    check = checked(replace(certificate, mixture=()), tested, mc=3, qa=40)
    low, high = exact_interval(3, 230)
    most = check.tasks[0].most
    first, second = (list(row.cells) for row in check.table.rows)
    assert first == ["MC", "≤ 0.06", "3/230", "0.013", f"[{low:.3f}, {high:.3f}]", str(most), "held"]
    assert second[-1] == "broken"
    assert check.table.caption == " ".join(check.words)
    record = json.loads(json.dumps(check.record(), allow_nan=False))
    assert (record["held"], record["weight"]) == (False, 1.0)
    assert record["certificate"]["sentence"] == check.words[0] == certificate.sentence
    assert "calibration_pairs" not in record["certificate"]
    assert [(each["task"], each["harms"], each["verdict"]) for each in record["tasks"]] == [
        ("mc", 3, "held"), ("qa", 40, "broken"),
    ]  # fmt: skip


def test_who_abstains_promises_nothing(synthetic: ScoreTable, tested: ScoreTable) -> None:
    fitted = SelectivePriorCalibrator(retention="certified", epsilon_cs=0.02).fit(synthetic)
    assert fitted.certificate_ is not None
    assert check_promise(fitted.certificate_, tested, tested.original_positions) is None


def test_where_no_answer_could_be_harmed_nothing_was_tested() -> None:
    table = synthesize(seed=3, open_questions=True).where(task="open")
    fitted = SelectivePriorCalibrator(retention="certified", epsilon_cs=0.06).fit(table)
    assert fitted.certificate_ is not None
    lost = table.with_column("answer", ["?!"] * len(table)).with_column("aliases", [None] * len(table))
    judged = ScoreTable.from_arrow(lost.arrow).where(split="test")
    check = check_promise(fitted.certificate_, judged, fitted.predict(judged).final_positions)
    assert check is not None
    assert [each.verdict for each in check.tasks] == ["untested"]
    assert "none could be harmed" in check.outcome_words
