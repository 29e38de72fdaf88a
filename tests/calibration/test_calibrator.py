"""The estimator against an independent row-by-row implementation, and the invariances of the method."""

from __future__ import annotations

from dataclasses import asdict
from functools import partial
from typing import Any

import numpy as np
import pytest
import sklearn.base

import straightforward
from random_tables import random_rows
from small_tables import synthetic
from straightforward import fit_theta
from unprior import Grid, ScoreTable, SelectivePriorCalibrator, UnpriorError
from unprior.calibration import ALL_FEATURES, Condition, Fixed, OpenAnswers, Reason

both_versions = pytest.mark.parametrize("uncertainty", [False, True], ids=["standard", "uncertainty"])


@pytest.fixture(scope="module", params=[False, True], ids=["standard", "uncertainty"])
def fitted(request: pytest.FixtureRequest, table: ScoreTable) -> SelectivePriorCalibrator:
    return SelectivePriorCalibrator(uncertainty=request.param).fit(table)


SOURCES = ("synthetic-1", "random-5", "random-7")
MORE_SOURCES = ("synthetic-2", "random-2")
BEYOND_THE_PAPER = (
    Reason.SMALL_LEAD, Reason.UNSEEN_TASK, Reason.UNTRUSTED_PRIOR, Reason.CANONICAL, Reason.ONE_CANDIDATE,
    Reason.OPEN_UNFITTED, Reason.CLOSED_UNFITTED,
)  # fmt: skip


def load(source: str) -> ScoreTable:
    kind, seed = source.split("-")
    return synthetic(int(seed)) if kind == "synthetic" else ScoreTable.from_rows(random_rows(int(seed), pairs=25))


_fitted: dict[tuple[str, float], Any] = {}


def _fit_theta_once(source: str, rho: float, *arguments: Any) -> Any:
    """The straightforward fit of one table: neither epsilon nor the version changes it, so it is made once."""
    if (source, rho) not in _fitted:
        _fitted[source, rho] = fit_theta(rho, *arguments)
    return _fitted[source, rho]


@pytest.mark.parametrize("source", [*SOURCES, *(pytest.param(name, marks=pytest.mark.slow) for name in MORE_SOURCES)])
@pytest.mark.parametrize("epsilon", [0.04, 0.10])
@both_versions
def test_everything_equals_the_straightforward_implementation(
    source: str, epsilon: float, uncertainty: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(straightforward, "fit_theta", partial(_fit_theta_once, source))
    table = load(source)
    rows = table.where(split="dev").arrow.to_pylist()
    ours = SelectivePriorCalibrator(epsilon_cs=epsilon, uncertainty=uncertainty).fit(table)
    theirs = straightforward.fit(rows, epsilon_cs=epsilon, uncertainty=uncertainty)
    for fit in ours.fits_:
        assert fit.loss == pytest.approx(theirs.loss_by_rho[fit.rho], abs=1e-8)
        np.testing.assert_allclose(fit.theta, theirs.theta_by_rho[fit.rho], atol=1e-6)
    if theirs.settings is None:
        assert ours.settings_ is None
        return
    assert ours.settings_ is not None
    chosen = {name: value for name, value in asdict(ours.settings_).items() if value is not None}
    assert chosen == pytest.approx(theirs.settings, rel=1e-9)
    assert theirs.selection_value is not None
    assert ours.selection_.utility == pytest.approx(float(theirs.selection_value[0]), abs=1e-12)
    assert ours.selection_.changed == -theirs.selection_value[-1]
    if uncertainty:
        np.testing.assert_allclose(ours.model_.covariance, theirs.covariance, rtol=1e-4, atol=1e-6)
        np.testing.assert_allclose(ours.model_.precision, theirs.distance_precision, rtol=1e-8, atol=1e-9)
        np.testing.assert_allclose(ours.predict(table.where(split="dev")).distance, theirs.distances, rtol=1e-9)
    decisions = ours.predict(table)
    for decision, row in zip(decisions, table.arrow.to_pylist(), strict=True):
        expected = straightforward.decide(theirs, row)
        for name in ("final", "proposal", "revised"):
            assert getattr(decision, name) == expected[name]
        assert (decision.condition and str(decision.condition)) == expected["condition"]
        assert decision.strength == pytest.approx(expected["strength"], abs=1e-6)
        assert decision.margin == pytest.approx(expected["margin"], abs=1e-6)
        if uncertainty:
            assert decision.support == pytest.approx(expected["support"], abs=1e-5)
            assert decision.distance == pytest.approx(expected["distance"], abs=1e-6)


def test_the_compared_tables_reach_every_reason() -> None:
    """The comparison above means little unless the gate is exercised in every way."""
    seen: set[Reason] = set()
    for source in (*SOURCES, *MORE_SOURCES):
        table = load(source)
        for uncertainty in (False, True):
            seen |= set(SelectivePriorCalibrator(uncertainty=uncertainty).fit(table).predict(table).count_reasons())
    assert seen >= set(Reason) - {Reason.ABSTAINS, Reason.UNSEEN_CANDIDATE_COUNT, *BEYOND_THE_PAPER}


def shifted(rows: list[dict[str, Any]], generator: np.random.Generator) -> list[dict[str, Any]]:
    result = []
    for row in rows:
        image, prior = generator.uniform(-50, 50, 2)
        result.append(
            row
            | {
                "image_scores": [score + image for score in row["image_scores"]],
                "prior_scores": [score + prior for score in row["prior_scores"]],
            }
        )
    return result


def permuted(rows: list[dict[str, Any]], generator: np.random.Generator) -> list[dict[str, Any]]:
    result = []
    for row in rows:
        order = generator.permutation(len(row["candidates"]))
        lists = {name: [row[name][index] for index in order] for name in ("candidates", "image_scores", "prior_scores")}
        result.append(row | lists)
    return result


@pytest.mark.parametrize("change", [shifted, permuted])
@both_versions
def test_constants_and_candidate_order_do_not_matter(change: Any, uncertainty: bool) -> None:
    rows = synthetic(6).arrow.to_pylist()
    table, changed = (ScoreTable.from_rows(source) for source in (rows, change(rows, np.random.default_rng(0))))
    calibrators = [SelectivePriorCalibrator(uncertainty=uncertainty).fit(source) for source in (table, changed)]
    np.testing.assert_allclose(calibrators[0].model_.theta, calibrators[1].model_.theta, atol=1e-6)
    decisions = [calibrator.predict(source) for calibrator, source in zip(calibrators, (table, changed), strict=True)]
    assert table.candidate_names(decisions[0].final_positions) == changed.candidate_names(decisions[1].final_positions)
    assert table.candidate_names(decisions[0].proposal_positions) == changed.candidate_names(
        decisions[1].proposal_positions
    )
    np.testing.assert_allclose(decisions[0].strength, decisions[1].strength, atol=1e-6)


def test_decisions_do_not_depend_on_the_company_of_other_rows(
    fitted: SelectivePriorCalibrator, table: ScoreTable
) -> None:
    together = fitted.predict(table)
    rows = np.random.default_rng(0).permutation(len(table))[:60]
    for row in rows.tolist():
        alone = fitted.predict(table.take(np.array([row])))
        assert alone.final_positions[0] == together.final_positions[row]
        assert alone.reason[0] == together.reason[row]
        assert alone.margin[0] == pytest.approx(together.margin[row], abs=1e-12)


def test_decide_gives_the_same_as_predict(fitted: SelectivePriorCalibrator, table: ScoreTable) -> None:
    decisions = fitted.predict(table)
    for row, record in list(enumerate(table.arrow.to_pylist()))[:40]:
        one = fitted.decide(record["candidates"], record["image_scores"], record["prior_scores"], record["original"])
        assert one.final == decisions[row].final
        assert one.strength == pytest.approx(decisions[row].strength, abs=1e-12)


def test_a_candidate_count_without_development_rows_is_never_revised(fitted: SelectivePriorCalibrator) -> None:
    three = fitted.decide(["a", "b", "c"], [-0.6, -0.9, -9.0], [-0.01, -6.0, -6.0], original="a")
    assert three.reason is Reason.UNSEEN_CANDIDATE_COUNT
    assert three.final == "a"
    assert "3 candidates" in three.explain()
    assert fitted.candidate_counts_ == (2, 4)


def test_candidate_counts_are_a_set_and_not_a_range() -> None:
    calibrator = SelectivePriorCalibrator().fit(ScoreTable.from_rows(random_rows(1, counts=(2, 5))))
    assert calibrator.candidate_counts_ == (2, 5)


def test_without_an_original_answer_conflict_can_hold_and_absorption_cannot(fitted: SelectivePriorCalibrator) -> None:
    conflict = fitted.decide(["a", "b"], [-0.01, -5.0], [-4.0, -0.02], original=None)
    assert conflict.condition is Condition.CONFLICT
    assert conflict.revised
    assert conflict.final == "a"
    assert conflict.explain().startswith("Changed no answer to “a”")
    assert "of the preference the model has without the image, “a” leads by " in conflict.explain()
    agreeing = fitted.decide(["a", "b"], [-0.6, -0.9], [-0.02, -4.0], original=None)
    assert agreeing.proposal == "b"
    assert agreeing.condition is None
    assert agreeing.final is None


@both_versions
def test_a_proposal_lies_in_its_stable_range(uncertainty: bool, table: ScoreTable) -> None:
    decisions = SelectivePriorCalibrator(uncertainty=uncertainty).fit(table).predict(table)
    inside = (decisions.range_low <= decisions.strength + 1e-9) & (decisions.strength <= decisions.range_high + 1e-9)
    if uncertainty:  # the average may put a candidate first that is not first at the mean strength
        assert inside.mean() > 0.97
    else:
        assert inside.all()
        assert decisions[0].radius == pytest.approx(
            min(decisions.strength[0] - decisions.range_low[0], decisions.range_high[0] - decisions.strength[0])
        )


def test_an_infeasible_search_gives_a_calibrator_that_abstains() -> None:
    rows = [row | {"original": row["answer"]} for row in synthetic(1).arrow.to_pylist()]  # nothing left to repair
    for row in rows:  # and every proposal does harm: the prior favours all but the answer
        row["prior_scores"] = [5.0 if name == row["answer"] else -5.0 for name in row["candidates"]]
        row["image_scores"] = [0.0 if name == row["answer"] else -0.1 for name in row["candidates"]]
    table = ScoreTable.from_rows(rows)
    harmful = Grid(rho=(10.0,), max_strength=(1.5,), min_margin=(0.0,))
    calibrator = SelectivePriorCalibrator(grid=harmful, epsilon_cs=0.0).fit(table)
    assert calibrator.settings_ is None
    assert calibrator.selection_.feasible == 0
    decisions = calibrator.predict(table)
    assert not decisions.revised.any()
    np.testing.assert_array_equal(decisions.final_positions, table.original_positions)
    assert set(decisions.count_reasons()) == {Reason.ABSTAINS}
    assert "abstains" in decisions.explain(0)


def test_fit_uses_development_rows_only(table: ScoreTable) -> None:
    whole = SelectivePriorCalibrator().fit(table)
    part = SelectivePriorCalibrator().fit(table.where(split="dev"))
    np.testing.assert_array_equal(whole.model_.theta, part.model_.theta)
    everything = SelectivePriorCalibrator().fit(table, split=None)
    assert everything.development_rows_ == len(table)
    assert not np.array_equal(everything.model_.theta, whole.model_.theta)


def without(table: ScoreTable, **values: str) -> ScoreTable:
    return table.take(~table.mask(**values))


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda table: table.where(split="test"), "no row has split 'dev'.*test.*--split all"),
        (lambda table: without(table, side="cs"), r"task mc has no commonsense \(cs\) row"),
        (lambda table: table.take(~(table.mask(side="cf") & table.mask(task="qa"))), "task qa has no counterfactual"),
        (
            lambda table: ScoreTable.from_rows(
                [row | {"model": f"m{index % 2}"} for index, row in enumerate(table.arrow.to_pylist())]
            ),
            r"2 models \(m0, m1\)",
        ),
        (
            lambda table: ScoreTable.from_rows(
                [row | {"answer": None} for row in table.arrow.to_pylist()], require_answers=False
            ),
            "no answer",
        ),
    ],
    ids=["no dev rows", "no cs", "no cf in qa", "two models", "no answers"],
)
def test_unusable_development_data_is_refused_with_a_remedy(table: ScoreTable, spoil: Any, message: str) -> None:
    with pytest.raises(UnpriorError, match=message):
        SelectivePriorCalibrator().fit(spoil(table))


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"epsilon_cs": -0.1}, "epsilon_cs is -0.1"),
        ({"epsilon_cs": float("nan")}, "epsilon_cs is nan"),
        ({"grid": Grid(rho=())}, "grid.rho"),
        ({"grid": Grid(min_margin=(0.1, 0.0))}, "grid.min_margin"),
        ({"grid": Grid(max_strength=(0.0, 1.0))}, "must be positive"),
    ],
)
def test_bad_parameters_are_named_in_fit(development: ScoreTable, parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(UnpriorError, match=message):
        SelectivePriorCalibrator(**parameters).fit(development)


def test_an_unfitted_calibrator_says_so(table: ScoreTable) -> None:
    with pytest.raises(UnpriorError, match=r"not fitted; call fit"):
        SelectivePriorCalibrator().predict(table)


def test_the_estimator_behaves_as_scikit_learn_users_expect(development: ScoreTable) -> None:
    calibrator = SelectivePriorCalibrator(epsilon_cs=0.1, uncertainty=True)
    assert calibrator.fit(development) is calibrator
    parameters = calibrator.get_params()
    assert parameters == {
        "epsilon_cs": 0.1,
        "uncertainty": True,
        "grid": None,
        "ties": "first",
        "strength": None,
        "features": ALL_FEATURES,
        "conditions": (Condition.CONFLICT, Condition.ABSORPTION),
        "fit_on": "both",
        "select_on": "both",
        "retention": "paper",
        "delta": 0.1,
        "target_mixture": None,
        "prior": "plain",
        "strict": False,
        "open_answers": OpenAnswers(clips=(3.0, 5.0, 7.0), temperature=None),
    }
    assert repr(SelectivePriorCalibrator(**parameters)) == "SelectivePriorCalibrator(epsilon_cs=0.1, uncertainty=True)"


def test_clone_of_scikit_learn_gives_an_unfitted_copy(development: ScoreTable) -> None:
    """Only ``clone`` is claimed to work: scores are a table and not a matrix."""
    calibrators = [
        SelectivePriorCalibrator(),
        SelectivePriorCalibrator(uncertainty=True, grid=Grid(rho=(1.0,)), ties="released"),
        SelectivePriorCalibrator(strength=Fixed(0.8), features=("image_peak",), conditions=None, select_on="cf"),
    ]
    for calibrator in calibrators:
        copy = sklearn.base.clone(calibrator.fit(development))
        assert type(copy) is SelectivePriorCalibrator
        assert copy is not calibrator
        assert copy.get_params() == calibrator.get_params()
        assert not hasattr(copy, "settings_")
        assert copy.fit(development).settings_ == calibrator.settings_


def test_parameters_can_be_changed() -> None:
    calibrator = SelectivePriorCalibrator().set_params(epsilon_cs=0.2, uncertainty=True)
    assert (calibrator.epsilon_cs, calibrator.uncertainty) == (0.2, True)
    with pytest.raises(UnpriorError, match="no parameter 'epsilon'; there are epsilon_cs, uncertainty, grid"):
        calibrator.set_params(epsilon=0.1)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"original": "z"}, "original 'z' is not one of the candidates"),
        ({"image_scores": [0.0]}, "image_scores has 1 values for 2 candidates"),
        ({"prior_scores": [0.0, None]}, "prior_scores"),
        ({"candidates": ["a", "a"]}, "appears twice"),
    ],
)
def test_decide_names_what_is_wrong_and_nothing_else(
    fitted: SelectivePriorCalibrator, changes: dict[str, Any], reason: str
) -> None:
    example = {"candidates": ["a", "b"], "image_scores": [0.0, -1.0], "prior_scores": [0.0, -1.0], "original": "a"}
    with pytest.raises(UnpriorError, match=f"^this example cannot be decided: .*{reason}") as caught:
        fitted.decide(**(example | changes))
    assert "skip" not in str(caught.value)


def test_explanations_name_the_answers_and_the_thresholds(fitted: SelectivePriorCalibrator, table: ScoreTable) -> None:
    decisions = fitted.predict(table)
    seen = set()
    for row in range(len(decisions)):
        decision, sentence = decisions[row], decisions.explain(row)
        seen.add(decision.reason)
        assert sentence == decision.explain()
        assert sentence.endswith(".")
        assert "nan" not in sentence
        assert "None" not in sentence
        assert sentence.startswith("Changed" if decision.revised else "Kept")
        assert decision.revised == (decision.reason in (Reason.CONFLICT, Reason.ABSORPTION))
        if decision.revised:
            assert f"“{decision.final}”" in sentence
    assert {Reason.ABSORPTION, Reason.SAME_ANSWER, Reason.NO_CONDITION} <= seen


def test_another_limit_is_chosen_among_what_was_counted(development: ScoreTable) -> None:
    """Parameters that are set after a fit belong to the next one."""
    fitted = SelectivePriorCalibrator(epsilon_cs=0.04).fit(development)
    expected = fitted.reselect(0.1)
    fitted.set_params(grid=Grid(max_strength=(0.2, 0.3, 0.4, 0.5)), uncertainty=True, ties="released")
    other = fitted.reselect(0.1)
    assert other.settings_ == expected.settings_
    assert other.selection_ == expected.selection_
    assert other.get_params() == expected.get_params()


def test_parameters_set_after_a_fit_do_not_change_its_decisions(table: ScoreTable) -> None:
    fitted = SelectivePriorCalibrator().fit(table)
    decisions = fitted.predict(table)
    again = fitted.set_params(uncertainty=True).predict(table)
    assert again.distance is None
    np.testing.assert_array_equal(again.final_positions, decisions.final_positions)
    conditions = SelectivePriorCalibrator(epsilon_cs=0.3).fit(table)
    decisions = conditions.predict(table)
    np.testing.assert_array_equal(
        conditions.set_params(conditions=()).predict(table).final_positions, decisions.final_positions
    )


def test_unknown_ties_are_named(development: ScoreTable) -> None:
    with pytest.raises(UnpriorError, match="ties is 'last', it must be first or released"):
        SelectivePriorCalibrator(ties="last").fit(development)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"epsilon_cs": "0.1"}, "epsilon_cs is '0.1'"),
        ({"epsilon_cs": None}, "epsilon_cs is None"),
        ({"epsilon_cs": float("nan")}, "epsilon_cs is nan"),
        ({"uncertainty": "no"}, "uncertainty is 'no'"),
        ({"grid": 3}, "grid is 3"),
        ({"grid": Grid(rho=("a",))}, r"grid.rho is \('a',\)"),  # type: ignore[arg-type]
        ({"grid": Grid(min_margin=(float("nan"),))}, "grid.min_margin is"),
        ({"grid": Grid(distance_quantile=(0.5, 1.5))}, "between 0 and 1"),
        ({"strength": Fixed("a")}, "its value must be positive"),  # type: ignore[arg-type]
        ({"strength": Fixed(True)}, "its value must be positive"),
    ],
)
def test_parameters_of_a_wrong_type_are_named(table: ScoreTable, parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(UnpriorError, match=message):
        SelectivePriorCalibrator(**parameters).fit(table)
