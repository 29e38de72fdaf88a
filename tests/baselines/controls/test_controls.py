"""Every control against plain loops over its settings, and what none of them may do."""

from __future__ import annotations

import itertools
import math
import time
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import straightforward
from plain_selection import best
from random_tables import random_rows
from small_tables import corrected_winner, example, hopeless_table, twelve_pairs
from unprior import Grid, ScoreTable, SelectivePriorCalibrator, UnpriorError, synthesize
from unprior.baselines.controls import CONTROLS, ControlResult, run_controls

Row = dict[str, Any]
STRENGTHS = (0.1, 0.2, 0.3, 0.5, 0.8, 1.0, 1.2, 1.5)
SCALES = (1.1, 1.5, 2.0)


def guided_winner(row: Row, scale: float) -> str:
    """The candidate that wins γ·s_I − (γ − 1)·s_P among the plausible ones, the plain way."""
    limit = max(row["image_scores"]) + math.log(0.1)
    scores = [
        scale * image - (scale - 1.0) * prior if image >= limit else -math.inf
        for image, prior in zip(row["image_scores"], row["prior_scores"], strict=True)
    ]
    return str(row["candidates"][scores.index(max(scores))])


def run_one(name: str, development: ScoreTable, test: ScoreTable, **options: Any) -> ControlResult:
    (result,) = run_controls(development, test, names=[name], **options)
    assert result.name == name
    return result


@pytest.fixture(scope="module", params=["synthetic", "random"])
def split(request: pytest.FixtureRequest) -> tuple[ScoreTable, ScoreTable]:
    table = twelve_pairs() if request.param == "synthetic" else ScoreTable.from_rows(random_rows(seed=2, pairs=8))
    if request.param == "random":
        return table, ScoreTable.from_rows(random_rows(seed=3, pairs=8))
    return table.where(split="dev"), table.where(split="test")


@pytest.mark.parametrize(
    ("name", "strength"), [("no-subtraction", 0.0), ("fixed-strength", 0.8), ("direct-subtraction", 1.0)]
)
def test_a_given_strength_is_always_adopted(split: tuple[ScoreTable, ScoreTable], name: str, strength: float) -> None:
    result = run_one(name, *split)
    assert result.settings == {"strength": strength}
    rows = split[1].arrow.to_pylist()
    assert split[1].candidate_names(result.answers) == [corrected_winner(row, strength) for row in rows]
    development = split[0].arrow.to_pylist()
    _, feasible = best(
        development, [strength], lambda given: [corrected_winner(row, given) for row in development], Fraction(1, 25)
    )
    assert result.feasible == feasible
    assert not result.abstains


@pytest.mark.parametrize("epsilon", [0.0, 0.04, 0.2, 0.6])
def test_the_selected_strength_is_the_best_of_its_grid(split: tuple[ScoreTable, ScoreTable], epsilon: float) -> None:
    result = run_one("selected-strength", *split, epsilon_cs=epsilon)
    rows = split[0].arrow.to_pylist()
    strength, feasible = best(
        rows, STRENGTHS, lambda given: [corrected_winner(row, given) for row in rows], Fraction(str(epsilon))
    )
    assert (result.settings, result.feasible) == ({"strength": strength}, feasible)
    finals = [corrected_winner(row, strength) for row in split[1].arrow.to_pylist()]
    assert split[1].candidate_names(result.answers) == finals


@pytest.mark.parametrize("epsilon", [0.0, 0.04, 0.6])
def test_guidance_chooses_its_scale_for_every_task_alone(split: tuple[ScoreTable, ScoreTable], epsilon: float) -> None:
    result = run_one("cfg-score", *split, epsilon_cs=epsilon)
    scales, kept = {}, []
    for task in ("mc", "qa"):
        rows = [row for row in split[0].arrow.to_pylist() if row["task"] == task]
        scales[task], feasible = best(
            rows, SCALES, lambda given, rows=rows: [guided_winner(row, given) for row in rows], Fraction(str(epsilon))
        )
        kept.append(feasible)
    assert (result.settings, result.feasible) == ({"scale": scales}, all(kept))
    finals = [guided_winner(row, scales[row["task"]]) for row in split[1].arrow.to_pylist()]
    assert split[1].candidate_names(result.answers) == finals
    assert [change.task for change in result.changes] == ["mc", "qa"]


def test_guidance_considers_only_plausible_candidates() -> None:
    prior = [-0.1, -4.0, -9.0, -9.0]
    rows = [
        example(1, "cf", [-0.5, -1.5, -2.9, -9.0], prior, "A", "B"),  # C would win but is 2.4 below the best
        example(1, "cs", [-0.5, -4.0, -4.0, -9.0], prior, "A", "A"),  # only A is plausible
        example(2, "cf", [-0.5, -9.0, -9.0, -0.5 + math.log(0.1)], prior, "A", "D"),  # D just is
        example(2, "cs", [-0.5, -2.7, -0.5, -9.0], prior, "A", "C"),
    ]
    table = ScoreTable.from_rows(rows)
    result = run_one("cfg-score", table, table)
    assert table.candidate_names(result.answers) == ["B", "A", "D", "C"]
    assert result.settings == {"scale": {"mc": 1.5}}  # with 1.1 pair 1 stays A, with 2 nothing more is repaired


@pytest.mark.parametrize("epsilon", [0.04, 0.6])
def test_the_given_strength_with_the_gate_by_plain_loops(split: tuple[ScoreTable, ScoreTable], epsilon: float) -> None:
    result = run_one("fixed-strength-gated", *split, epsilon_cs=epsilon)
    rows, counts = split[0].arrow.to_pylist(), set(split[0].candidate_counts.tolist())

    def final(row: Row, least: float) -> str | None:
        image, prior, names = row["image_scores"], row["prior_scores"], row["candidates"]
        corrected = [i - 0.8 * p for i, p in zip(image, prior, strict=True)]
        weights = [math.exp(score - max(corrected)) for score in corrected]
        first, second = sorted(weights, reverse=True)[:2]
        proposal = names[corrected.index(max(corrected))]
        sees, expects = names[image.index(max(image))], names[prior.index(max(prior))]
        conflict = sees != expects and proposal == sees
        absorption = row["original"] == sees == expects and proposal != row["original"]
        wide = (first - second) / sum(weights) >= least
        opens = proposal != row["original"] and wide and len(names) in counts and (conflict or absorption)
        return str(proposal) if opens else row["original"]

    margins = (0.0, 0.05, 0.1, 0.2, 0.3)
    least, feasible = best(rows, margins, lambda given: [final(row, given) for row in rows], Fraction(str(epsilon)))
    assert (result.feasible, result.abstains) == (feasible, not feasible)
    finals = [final(row, least) if feasible else row["original"] for row in split[1].arrow.to_pylist()]
    assert split[1].candidate_names(result.answers) == finals
    assert result.settings == ({"strength": 0.8, "min_margin": least} if feasible else {})


@pytest.mark.parametrize(("name", "strengths"), [("learned-rule-fixed", STRENGTHS), ("learned-rule-direct", SCALES)])
@pytest.mark.parametrize("epsilon", [0.04, 0.6])
def test_the_learned_rule_is_the_best_of_its_grid(
    split: tuple[ScoreTable, ScoreTable], name: str, strengths: tuple[float, ...], epsilon: float
) -> None:
    """The weights come from another optimiser; every scale, penalty and threshold is tried one by one.

    Of the thresholds that give the best development answers, the one nearest to the middle of their gap counts.
    """
    optimize = pytest.importorskip("scipy.optimize")
    winner = corrected_winner if name.endswith("fixed") else guided_winner
    development, test = (part.arrow.to_pylist() for part in split)
    raw = {id(row): straightforward.features(row) for row in (*development, *test)}
    columns = np.array([raw[id(row)] for row in development])
    mean, scale = columns.mean(axis=0), columns.std(axis=0)
    mean[0] = 0.0
    scale[(scale < 1e-6) | (np.arange(13) == 0)] = 1.0

    def inputs(rows: list[Row]) -> np.ndarray:
        return (np.array([raw[id(row)] for row in rows]) - mean) / scale

    chances, settings = {}, []
    for strength in strengths:
        proposals = [winner(row, strength) for row in development]
        repairs = np.array(
            [p == row["answer"] != row["original"] for p, row in zip(proposals, development, strict=True)], float
        )
        for penalty in (0.01, 0.1, 1.0, 10.0):

            def loss(
                weights: np.ndarray, repairs: np.ndarray = repairs, penalty: float = penalty
            ) -> tuple[float, np.ndarray]:
                eta = inputs(development) @ weights
                total = np.logaddexp(0.0, eta).sum() - eta @ repairs + penalty / 2 * weights @ weights
                return total, inputs(development).T @ (1 / (1 + np.exp(-eta)) - repairs) + penalty * weights

            found = optimize.minimize(
                loss, np.zeros(13), jac=True, method="BFGS", options={"gtol": 1e-7, "maxiter": 5000}
            )
            chances[strength, penalty] = found.x
            chance = 1 / (1 + np.exp(-(inputs(development) @ found.x)))
            values = sorted({0.0, 1.01, *chance.round(9).tolist()})
            offered = [*values, *((low + high) / 2 for low, high in itertools.pairwise(values))]
            settings += [(strength, penalty, threshold) for threshold in sorted(offered)]

    def finals(setting: tuple[float, float, float], rows: list[Row]) -> list[str | None]:
        strength, penalty, threshold = setting
        chance = 1 / (1 + np.exp(-(inputs(rows) @ chances[strength, penalty])))
        return [
            winner(row, strength) if probability >= threshold - 1e-6 else row["original"]
            for row, probability in zip(rows, chance.tolist(), strict=True)
        ]

    expected, feasible = best(
        development, settings, lambda setting: finals(setting, development), Fraction(str(epsilon))
    )
    assert feasible, "1.01 revises nothing"
    strength, penalty, _ = expected
    same = [
        setting
        for setting in settings
        if setting[:2] == (strength, penalty) and finals(setting, development) == finals(expected, development)
    ]
    chance = 1 / (1 + np.exp(-(inputs(development) @ chances[strength, penalty])))
    revisable = [
        probability
        for row, probability in zip(development, chance.tolist(), strict=True)
        if winner(row, strength) != row["original"]
    ]
    low = max((p for p in revisable if p < same[0][2] - 1e-6), default=0.0)
    middle = (low + same[-1][2]) / 2
    expected = min(same, key=lambda setting: abs(setting[2] - middle))
    result = run_one(name, *split, epsilon_cs=epsilon)
    assert result.feasible
    assert (result.settings["scale"], result.settings["penalty"]) == expected[:2]
    assert result.settings["threshold"] == pytest.approx(expected[2], abs=1e-6)
    assert split[1].candidate_names(result.answers) == finals(expected, test)


def test_the_adaptive_control_adopts_every_proposal(table: ScoreTable) -> None:
    development, test = table.where(split="dev"), table.where(split="test")
    calibrator = SelectivePriorCalibrator().fit(table)
    assert calibrator.settings_ is not None
    result = run_one("ungated-adaptive", development, test, calibrator=calibrator)
    np.testing.assert_array_equal(result.answers, calibrator.predict(test).proposal_positions)
    assert result.settings == {"rho": calibrator.settings_.rho, "max_strength": calibrator.settings_.max_strength}
    again = run_one("ungated-adaptive", development, test)
    np.testing.assert_array_equal(again.answers, result.answers)


def test_a_calibrator_gives_limit_version_and_grid(table: ScoreTable) -> None:
    development, test = table.where(split="dev"), table.where(split="test")
    calibrator = SelectivePriorCalibrator(epsilon_cs=0.2, uncertainty=True, grid=Grid(min_margin=(0.25,)))
    names = ["fixed-strength-gated", "selected-strength-gated", "selected-strength"]
    fixed, selected, always = run_controls(development, test, calibrator=calibrator, names=names)
    for result in (fixed, selected):
        assert result.settings["min_margin"] == 0.25
        assert "max_distance" in result.settings
    assert fixed.settings["strength"] == 0.8
    assert always.settings == run_one("selected-strength", development, test, epsilon_cs=0.2).settings
    assert not hasattr(calibrator, "model_"), "the caller's calibrator is left as it is"


def test_an_unfitted_variant_is_fitted_as_what_it_is(table: ScoreTable) -> None:
    development, test = table.where(split="dev"), table.where(split="test")
    variant = SelectivePriorCalibrator(epsilon_cs=0.2, fit_on="cf", select_on="cf")
    result = run_one("ungated-adaptive", development, test, calibrator=variant)
    fitted = variant.clone().fit(development, split=None)
    np.testing.assert_array_equal(result.answers, fitted.predict(test).proposal_positions)
    plain = run_one("ungated-adaptive", development, test, epsilon_cs=0.2)
    assert (result.answers != plain.answers).any()
    assert not hasattr(variant, "model_"), "the caller's calibrator is left as it is"


def test_without_a_feasible_setting_gates_abstain_rules_revise_nothing_and_the_others_say_so() -> None:
    """All rows look the same and every revision is a harm."""
    table = hopeless_table()
    for result in run_controls(table, table):
        learned = result.name.startswith("learned-rule")
        assert result.feasible == learned, result.name
        abstaining = ("fixed-strength-gated", "selected-strength-gated", "ungated-adaptive")
        assert result.abstains == (result.name in abstaining), result.name
        if learned:
            np.testing.assert_array_equal(result.answers, table.original_positions)
            assert result.settings["threshold"] > 0.5
        if result.abstains:
            np.testing.assert_array_equal(result.answers, table.original_positions)
            assert (result.settings, result.changes) == ({}, ())
    always = run_one("selected-strength", table, table)
    assert always.settings == {"strength": 0.1}  # equally bad all: the first
    assert (always.answers != table.original_positions).all()


def test_a_missing_original_answer_counts_as_wrong_and_as_different() -> None:
    image, prior = [-0.1, -2.0, -3.0], [-3.0, -0.2, -4.0]
    rows = [example(pair, side, image, prior, None, "A") for pair in (1, 2) for side in ("cf", "cs")]
    table = ScoreTable.from_rows(rows)
    for name in ("no-subtraction", "learned-rule-fixed", "fixed-strength-gated"):
        result = run_one(name, table, table)
        assert result.answers.tolist() == [0, 0, 0, 0], name
        assert result.changes[0].cf_net == result.changes[0].cs_net == 2


def test_answers_of_test_rows_change_nothing(table: ScoreTable) -> None:
    development, test = table.where(split="dev"), table.where(split="test")
    turned = ScoreTable.from_rows(
        [row | {"answer": row["candidates"][-1], "side": "cs"} for row in test.arrow.to_pylist()]
    )
    for ours, theirs in zip(run_controls(development, test), run_controls(development, turned), strict=True):
        assert (ours.settings, ours.feasible, ours.changes) == (theirs.settings, theirs.feasible, theirs.changes)
        np.testing.assert_array_equal(ours.answers, theirs.answers)


def test_changes_are_those_of_the_development_rows(table: ScoreTable) -> None:
    development = table.where(split="dev")
    for result in run_controls(development, development):
        gain = (result.answers == development.answer_positions).astype(int) - (
            development.original_positions == development.answer_positions
        )
        tasks = np.array(development.column("task"))
        for change in result.changes:
            rows = tasks == change.task
            assert change.cf_net == gain[rows & development.is_cf].sum(), result.name
            assert change.cs_net == gain[rows & ~development.is_cf].sum(), result.name
            assert change.cf_total == change.cs_total == 70


def test_mistakes_are_named(table: ScoreTable) -> None:
    development, test = table.where(split="dev"), table.where(split="test")
    with pytest.raises(UnpriorError, match=r"no control magic; there are no-subtraction, fixed-strength, "):
        run_controls(development, test, names=["magic"])
    with pytest.raises(UnpriorError, match=r"test rows have task qa, the development rows only mc"):
        run_controls(development.where(task="mc"), test, names=["cfg-score"])
    with pytest.raises(UnpriorError, match=r"no commonsense \(cs\) row"):
        run_controls(development.where(side="cf"), test)


def test_all_controls_take_well_under_a_second() -> None:
    table = synthesize(seed=0)
    development, test = table.where(split="dev"), table.where(split="test")
    start = time.perf_counter()
    results = run_controls(development, test)
    assert time.perf_counter() - start < 2.0  # measured: a fifth of a second; the rest is for busy machines
    assert [result.label for result in results] == [control.label for control in CONTROLS.values()]
