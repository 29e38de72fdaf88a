"""A certificate holds on new pairs: simulations with tasks that have anything to do with each other."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from unprior import ScoreTable, SelectivePriorCalibrator, UnpriorError, synthesize
from unprior.calibration import Fixed, Learned, Reason, Split
from unprior.calibration.certified import CalibrationRows, descend
from unprior.calibration.ladder import plan_steps
from unprior.calibration.stable import StableRows
from unprior.scores.table import FloatArray

CERTIFIED: dict[str, Any] = {"retention": "certified", "epsilon_cs": 0.06}


def _uniform(rng: np.random.Generator, dependence: str, pairs: int, tasks: int) -> FloatArray:
    """Leads that are uniform in every task; a pair is harmed above a threshold t with probability 1 - t."""
    first = rng.random(pairs)
    if dependence == "equal":
        return np.stack([first] * tasks)
    if dependence == "opposite":
        return np.stack([first if task % 2 == 0 else 1.0 - first for task in range(tasks)])
    if dependence == "near":
        return np.stack([(first + 0.1 * rng.random(pairs)) % 1.0 for _ in range(tasks)])
    return rng.random((tasks, pairs))


@pytest.mark.parametrize("tasks", [1, 2, 3])
@pytest.mark.parametrize("dependence", ["independent", "equal", "opposite", "near"])
@pytest.mark.parametrize("epsilon", [0.04, 0.1])
def test_the_promise_holds_for_uniform_scores(dependence: str, tasks: int, epsilon: float) -> None:
    plan = plan_steps(70, tasks, epsilon)
    assert plan is not None
    rng, draws, broken = np.random.default_rng(tasks), 3000, 0
    for _ in range(draws):
        leads = _uniform(rng, dependence, plan.pairs, tasks)
        levels = descend([np.sort(each)[::-1] for each in leads], plan.steps)
        broken += max(1.0 - level for level in levels) > epsilon
    assert broken / draws <= 0.1 + 3 * np.sqrt(0.09 / draws)


def test_the_promise_is_not_wasteful_for_one_task() -> None:
    plan = plan_steps(70, 1, 0.04)
    assert plan is not None
    rng, draws = np.random.default_rng(0), 3000
    broken = sum(1.0 - descend([np.sort(rng.random(plan.pairs))[::-1]], plan.steps)[0] > 0.04 for _ in range(draws))
    assert broken / draws > 0.06


def test_steps_go_down_one_after_the_other() -> None:
    first, second, third = np.array([5.0, 4.0, 1.0]), np.array([4.5, 2.0]), np.array([3.0])
    assert descend([first, second, third], (1, 0, -1)) == [4.0, 4.0, 4.0]
    assert descend([first, second], (1, 1)) == [4.0, 2.0]
    assert descend([first, np.array([])], (0, 0)) == [5.0, 0.0]
    assert descend([np.array([]), np.array([])], (0, -1)) == [0.0, 0.0]


def _brute_force(table: ScoreTable, calibrator: SelectivePriorCalibrator) -> dict[str, list[float]]:
    """Leads of harmed commonsense answers of the calibration pairs, row by row."""
    certificate = calibrator.certificate_
    assert certificate is not None
    harms: dict[str, list[float]] = {each.task: [] for each in certificate.tasks}
    for row in table.arrow.to_pylist():
        if (
            row["side"] != "cs"
            or row["pair_id"] not in certificate.calibration_pairs
            or row["original"] != row["answer"]
        ):
            continue
        image, prior = (np.array(row[name]) - np.mean(row[name]) for name in ("image_scores", "prior_scores"))
        corrected = image - certificate.strength * prior
        best, original = int(corrected.argmax()), row["candidates"].index(row["original"])
        agree = image.argmax() == prior.argmax()
        supported = (not agree and best == image.argmax()) or (
            agree and original == image.argmax() and best != original
        )
        if best != original and supported:
            harms[row["task"]].append(float(corrected[best] - corrected[original]))
    return harms


@pytest.mark.parametrize(
    "parameters", [CERTIFIED, CERTIFIED | {"strength": Fixed(1.0)}, CERTIFIED | {"epsilon_cs": 0.1}]
)
@pytest.mark.parametrize("seed", [1, 2])
def test_thresholds_equal_a_count_row_by_row(parameters: dict[str, Any], seed: int) -> None:
    table = synthesize(seed=seed)
    fitted = SelectivePriorCalibrator(**parameters).fit(table)
    certificate = fitted.certificate_
    assert certificate is not None
    harms = _brute_force(table.where(split="dev"), fitted)
    for each in certificate.tasks:
        assert each.harms == sum(lead > each.threshold + 1e-9 for lead in harms[each.task])
        assert each.harms <= certificate.steps[0]
        assert each.threshold == 0.0 or any(
            abs(lead - each.threshold) < 1e-9 for task in harms.values() for lead in task
        )
    decisions = fitted.predict(table.where(split="dev"))
    for index, decision in enumerate(decisions):
        assert decision.lead is not None
        task = decisions.table.column("task")[index]
        needed = next(each.threshold for each in certificate.tasks if each.task == task)
        assert decision.needed_lead == needed
        if decision.revised:
            assert decision.lead > needed


def test_strength_and_thresholds_rest_on_different_pairs() -> None:
    fitted = SelectivePriorCalibrator(**CERTIFIED).fit(synthesize(seed=4))
    certificate = fitted.certificate_
    assert certificate is not None
    calibration, strength = set(certificate.calibration_pairs), set(certificate.strength_pairs)
    assert not calibration & strength
    assert len(calibration | strength) == certificate.pairs == 70
    assert len(calibration) == certificate.calibration


def test_the_order_of_rows_has_no_part_in_it() -> None:
    table = synthesize(seed=5).where(split="dev")
    shuffled = table.take(np.random.default_rng(0).permutation(len(table)))
    one, other = (
        SelectivePriorCalibrator(**CERTIFIED).fit(each, split=None).certificate_ for each in (table, shuffled)
    )
    assert one is not None
    assert other is not None
    assert (one.tasks, set(one.calibration_pairs)) == (other.tasks, set(other.calibration_pairs))
    assert one.strength == pytest.approx(other.strength, rel=1e-12)


def test_labels_of_calibration_pairs_do_not_move_the_strength() -> None:
    table = synthesize(seed=6).where(split="dev")
    before = SelectivePriorCalibrator(**CERTIFIED).fit(table, split=None).certificate_
    assert before is not None
    rows = table.arrow.to_pylist()
    for row in rows:
        if row["pair_id"] in before.calibration_pairs:
            row["image_scores"] = row["image_scores"][::-1]
    after = SelectivePriorCalibrator(**CERTIFIED).fit(ScoreTable.from_rows(rows), split=None).certificate_
    assert after is not None
    assert after.strength == before.strength
    assert after.strength_pairs == before.strength_pairs


def test_several_questions_about_one_pair_count_once() -> None:
    """Rows of one pair are not independent, so a pair is harmed when any of them is."""
    table = synthesize(seed=7).where(split="dev")
    rows = table.arrow.to_pylist()
    twice = ScoreTable.from_rows(
        [
            row
            | {
                "example_id": f"{index}-{form}",
                "form": form,
                "image_scores": [(1 + bit) * s for s in row["image_scores"]],
            }
            for index, row in enumerate(rows)
            for form, bit in (("contrastive", 0.0), ("instead", 1e-9))
        ]
    )
    calibrator = SelectivePriorCalibrator(strength=Fixed(1.0), **CERTIFIED)
    one, two = (calibrator.clone().fit(each, split=None).certificate_ for each in (table, twice))
    assert one is not None
    assert two is not None
    assert (one.calibration_pairs, one.steps) == (two.calibration_pairs, two.steps)
    for each, other in zip(one.tasks, two.tasks, strict=True):
        assert each.harms == other.harms
        assert other.threshold == pytest.approx(each.threshold, abs=1e-6)


def test_tasks_about_different_pairs_have_their_own_pairs() -> None:
    table = synthesize(seed=8, repeats=2).where(split="dev")
    pair = np.array(table.column("pair_id"))
    mixed = table.take(table.mask(task="mc") == (pair % 2 == 0))
    certificate = SelectivePriorCalibrator(**CERTIFIED).fit(mixed, split=None).certificate_
    assert certificate is not None
    fewest = min(len(set(np.array(mixed.column("pair_id"))[mixed.mask(task=task)])) for task in ("mc", "qa"))
    assert certificate.pairs == fewest < 100
    assert [each.pairs for each in certificate.tasks] == [certificate.calibration] * 2


def test_a_target_mixture_costs_its_weight() -> None:
    table = synthesize(seed=9)
    dev = {"Color": 2.0} | dict.fromkeys(sorted(set(table.column("subcategory")) - {"Color"}), 1.0)
    plain = SelectivePriorCalibrator(**CERTIFIED).fit(table).certificate_
    weighted = SelectivePriorCalibrator(target_mixture=dev, **CERTIFIED).fit(table).certificate_
    assert plain is not None
    assert weighted is not None
    assert weighted.weight == pytest.approx((2 / 15) / (1 / 14))
    assert weighted.abstains or sum(weighted.steps) < sum(plain.steps)
    assert (
        "mixed like the target"
        in SelectivePriorCalibrator(target_mixture=dev, retention="certified", epsilon_cs=0.2)
        .fit(table)
        .certificate_.sentence
    )  # type: ignore[union-attr]


def test_pairs_outside_the_target_set_no_threshold() -> None:
    table = synthesize(seed=10, repeats=5)
    certificate = SelectivePriorCalibrator(target_mixture={"Color": 1, "Material": 1}, retention="certified",
                                           epsilon_cs=0.1).fit(table).certificate_  # fmt: skip
    assert certificate is not None
    assert certificate.pairs == 50
    assert certificate.weight == 1.0
    named = dict(zip(table.column("pair_id"), table.column("subcategory"), strict=True))
    assert {named[pair] for pair in certificate.calibration_pairs} == {"Color", "Material"}


def test_too_few_pairs_abstain_and_say_what_would_do() -> None:
    table = synthesize(seed=0)
    fitted = SelectivePriorCalibrator(retention="certified", epsilon_cs=0.02).fit(table)
    assert fitted.settings_ is None
    assert fitted.certificate_ is not None
    assert fitted.certificate_.sentence == (
        "70 pairs cannot promise ε = 0.02 with 90 % confidence, so no answer is ever changed. It needs 114 pairs; the "
        "smallest ε that 70 pairs can promise is 0.033."
    )
    decisions = fitted.predict(table)
    assert not decisions.revised.any()
    assert "It needs 114 pairs" in decisions.explain(0)
    enough = SelectivePriorCalibrator(retention="certified", epsilon_cs=0.033).fit(table)
    assert enough.settings_ is not None
    nothing = SelectivePriorCalibrator(retention="certified", epsilon_cs=0.0).fit(table).certificate_
    assert nothing is not None
    assert "No number of pairs can promise it" in nothing.sentence


def test_a_task_without_a_threshold_is_left_alone() -> None:
    table = synthesize(seed=0)
    fitted = SelectivePriorCalibrator(**CERTIFIED).fit(table.where(task="qa"))
    decisions = fitted.predict(table.where(task="mc", split="test"))
    assert not decisions.revised.any()
    mixed = SelectivePriorCalibrator(**CERTIFIED).fit(table).predict(table.with_columns(task="other"))
    assert not mixed.revised.any()
    assert Reason.UNSEEN_TASK in mixed.count_reasons()
    row = int(np.flatnonzero([each is Reason.UNSEEN_TASK for each in (one.reason for one in mixed)])[0])
    assert "covers questions of the kind mc and qa only" in mixed.explain(row)


@pytest.mark.parametrize("retention", ["certified", "expected"])
def test_a_saved_certificate_is_the_same(retention: str, tmp_path: Path) -> None:
    table = synthesize(seed=3)
    fitted = SelectivePriorCalibrator(retention=retention, epsilon_cs=0.06).fit(table)  # type: ignore[arg-type]
    fitted.save(tmp_path / "calibrator.json")
    loaded = SelectivePriorCalibrator.load(tmp_path / "calibrator.json")
    assert loaded.certificate_ == fitted.certificate_
    assert loaded.get_params() == fitted.get_params()
    np.testing.assert_array_equal(loaded.predict(table).final_positions, fitted.predict(table).final_positions)
    with pytest.raises(UnpriorError, match="holds for the limit that it was made for"):
        loaded.reselect(0.1)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda each: each["steps"].__setitem__(0, 5), "do not keep its promise"),
        (lambda each: each["tasks"][0].update(threshold=0.0), "thresholds of the settings are not those"),
        (lambda each: each.update(strength=2.0), "strength of the settings is not that"),
        (lambda each: each["strength_pairs"].append(each["calibration_pairs"][0]), "other pairs for the strength"),
        (lambda each: each.update(steps=[-1, -1]), "must start with at least 0"),
        (lambda each: each.update(steps=[0, 1]), "never rise"),
        (lambda each: each.update(seed=1), "the seed is always the same"),
        (lambda each: each.update(calibration=100_000), "other pairs or more harms"),
        (lambda each: each["tasks"][0].update(harms=60), "other pairs or more harms"),
        (lambda each: each["tasks"][1].update(task="mc"), "thresholds of the settings|different names"),
        (lambda each: each.update(calibration_pairs=each["calibration_pairs"][:2]), "fewer pairs than set"),
        (lambda each: each.update(mixture={"Color": 0.2}), "add up to 1"),
        (lambda each: each.update(bound=0.01), "not the one of the steps"),
        (lambda each: each.update(epsilon=0.5), "another limit, chance or rule"),
        (lambda each: each.update(has_target=True), "another mixture than"),
    ],
)
def test_a_certificate_that_its_counts_do_not_support_is_refused(change: Any, reason: str, tmp_path: Path) -> None:
    path = tmp_path / "calibrator.json"
    SelectivePriorCalibrator(**CERTIFIED).fit(synthesize(seed=3)).save(path)
    document = json.loads(path.read_text())
    change(document["certificate"])
    path.write_text(json.dumps(document))
    with pytest.raises(UnpriorError, match=reason):
        SelectivePriorCalibrator.load(path)


@pytest.mark.parametrize(
    ("parameters", "reason"),
    [
        ({"retention": "certain"}, "did you mean certified"),
        ({"retention": "certified", "delta": 0.0}, "must be above 0 and at most 0.5"),
        ({"retention": "certified", "delta": "high"}, "must be above 0 and at most 0.5"),
        ({"retention": "certified", "uncertainty": True}, "has a gate of its own"),
        ({"retention": "certified", "strength": Learned()}, "must be Split"),
        ({"retention": "certified", "select_on": "cf"}, "counts harm on CS"),
        ({"strength": Split()}, "goes with retention='certified'"),
        ({"target_mixture": {"Color": 1}}, "goes with retention='certified'"),
        ({"retention": "certified", "target_mixture": {}}, "share for every subcategory"),
        ({"retention": "certified", "target_mixture": {"Color": -1}}, "from 0 to 1e12"),
        ({"retention": "certified", "target_mixture": {"Color": 0}}, "no subcategory a share above 0"),
        (
            {"retention": "certified", "target_mixture": {"Colour": 1}},
            "names Colour, of which there is no dev",
        ),
    ],
)
def test_parameters_that_cannot_be(parameters: dict[str, Any], reason: str) -> None:
    with pytest.raises(UnpriorError, match=reason):
        SelectivePriorCalibrator(**parameters).fit(synthesize(seed=0))


def test_the_expected_rule_keeps_the_mean() -> None:
    """Uniform leads: the mean harm over draws is at most ε, and not far below."""
    rows = CalibrationRows(StableRows(synthesize(seed=0).where(split="dev")))
    assert rows.pairs == 70
    from unprior.calibration.ladder import expected_plan

    plan = expected_plan(70, 1, 0.04)
    assert plan is not None
    rng = np.random.default_rng(1)
    harms = [1.0 - np.sort(rng.random(plan.pairs))[::-1][plan.steps[0]] for _ in range(4000)]
    assert 0.035 < np.mean(harms) < 0.0415


def test_a_target_is_weighed_for_every_task_by_its_own_pairs() -> None:
    """QA may have other subcategories than MC, and each task is promised something."""
    table = synthesize(seed=11, repeats=6).where(split="dev")
    table = table.with_column("original", [row["original"] or row["answer"] for row in table.arrow.to_pylist()])
    pair, names = np.array(table.column("pair_id")), np.array(table.column("subcategory"))
    few = (names == "Color") & (pair % 5 > 0) & table.mask(task="qa")
    target = dict.fromkeys(sorted(set(names.tolist())), 1.0)
    calibrator = SelectivePriorCalibrator(target_mixture=target, **CERTIFIED)
    whole, thin = (calibrator.clone().fit(rows, split=None).certificate_ for rows in (table, table.take(~few)))
    assert whole is not None
    assert thin is not None
    assert whole.weight == pytest.approx(1.0)
    left = names[table.mask(task="qa") & ~few & table.is_cf]
    assert thin.weight == pytest.approx((1 / 14) / (np.sum(left == "Color") / len(left)))
    without = table.take(~((names == "Color") & table.mask(task="qa")))
    with pytest.raises(UnpriorError, match="names Color, of which there is no development pair of task qa"):
        calibrator.clone().fit(without, split=None)


def test_pairs_without_an_original_answer_promise_nothing() -> None:
    table = synthesize(seed=12)
    rows = [row | {"original": None} for row in table.arrow.to_pylist()]
    fitted = SelectivePriorCalibrator(**CERTIFIED).fit(ScoreTable.from_rows(rows))
    assert fitted.certificate_ is not None
    assert fitted.certificate_.abstains
    assert fitted.certificate_.pairs == 0


def test_three_tasks_are_promised_together(tmp_path: Path) -> None:
    first, second = (synthesize(seed=seed).arrow.to_pylist() for seed in (13, 14))
    more = [row | {"task": "count", "candidates": list("ABCD")} for row in second if row["task"] == "mc"]
    fitted = SelectivePriorCalibrator(retention="certified", epsilon_cs=0.1).fit(ScoreTable.from_rows([*first, *more]))
    certificate = fitted.certificate_
    assert certificate is not None
    assert [each.task for each in certificate.tasks] == ["count", "mc", "qa"]
    assert len(certificate.steps) == 3
    fitted.save(tmp_path / "calibrator.json")
    assert SelectivePriorCalibrator.load(tmp_path / "calibrator.json").certificate_ == certificate


@pytest.mark.parametrize("value", [1e308, 10**400, -1.0, float("nan")])
def test_a_strength_that_is_none_is_refused(value: float) -> None:
    with pytest.raises(UnpriorError, match="must be positive and at most 1000"):
        SelectivePriorCalibrator(strength=Fixed(value), **CERTIFIED).fit(synthesize(seed=0))


def test_numbers_of_numpy_can_be_saved(tmp_path: Path) -> None:
    fitted = SelectivePriorCalibrator(retention="certified", epsilon_cs=np.float32(0.0625), delta=np.float64(0.2))
    fitted.fit(synthesize(seed=0)).save(tmp_path / "calibrator.json")
    assert SelectivePriorCalibrator.load(tmp_path / "calibrator.json").epsilon_cs == 0.0625
