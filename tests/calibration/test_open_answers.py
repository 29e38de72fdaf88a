"""Calibration of open answers: the scale of their scores, parts that are fitted apart, and what must not matter."""

from __future__ import annotations

import json
import math
from dataclasses import fields, replace
from itertools import pairwise, permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unprior import ScoreTable, SelectivePriorCalibrator, UnpriorError, synthesize
from unprior.calibration import Decisions, Fixed, OpenAnswers, Reason
from unprior.calibration.calibrator import NotFittedError
from unprior.calibration.decisions import Decision
from unprior.calibration.open_answers import OpenScale, learnable
from unprior.calibration.show import limit_in_words, settings_table

TABLE = synthesize(seed=0, open_questions=True)
OPEN = TABLE.where(task="open")
CERTIFIED: dict[str, Any] = {"retention": "certified", "epsilon_cs": 0.06}
KINDS: list[dict[str, Any]] = [{}, {"uncertainty": True}, CERTIFIED, CERTIFIED | {"retention": "expected"}]
FITTED = [SelectivePriorCalibrator(**each).fit(TABLE) for each in KINDS]
each_kind = pytest.mark.parametrize("fitted", FITTED, ids=["standard", "uncertainty", "certified", "expected"])


def columns(decisions: Decisions) -> dict[str, list[Any]]:
    names = [field.name for field in fields(Decisions) if isinstance(getattr(decisions, field.name), np.ndarray)]
    return {name: getattr(decisions, name).tolist() for name in names}


def same(one: Decisions, other: Decisions) -> None:
    first, second = columns(one), columns(other)
    assert first.keys() == second.keys()
    for name, values in first.items():
        np.testing.assert_array_equal(values, second[name], err_msg=name)


scores = st.floats(-40.0, 0.0)
answers = st.integers(1, 6).flatmap(
    lambda count: st.tuples(
        *(st.lists(scores, min_size=count, max_size=count) for _ in range(2)), st.integers(0, count - 1)
    )
)


def decide(
    fitted: SelectivePriorCalibrator, names: list[str], image: list[float], prior: list[float], original: str
) -> Decision:
    return fitted.decide(names, image, prior, original, task="open")


def clear(decision: Decision) -> bool:
    """Not so close to any threshold that rounding decides."""
    order = sorted(decision.corrected_scores)
    near = [abs(decision.margin - limit) for limit in (0.0, 0.05, 0.1, 0.2, 0.3)]
    lead = abs((decision.lead or 1.0) - (decision.needed_lead or 0.0))
    return min(near) > 1e-6 and lead > 1e-6 and (len(order) < 2 or order[-1] - order[-2] > 1e-6)


def apart(values: list[float]) -> bool:
    ordered = sorted(values)
    return all(second - first > 1e-6 for first, second in pairwise(ordered))


@each_kind
@settings(max_examples=60, deadline=None)
@given(answers, st.randoms(use_true_random=False))
def test_the_order_of_candidates_changes_nothing(fitted: SelectivePriorCalibrator, case: Any, random: Any) -> None:
    image, prior, original = case
    names = [f"answer {'abcdef'[place]}" for place in range(len(image))]
    before = decide(fitted, names, image, prior, names[original])
    if not (apart(image) and apart(prior) and clear(before)):
        return
    order = random.sample(range(len(names)), len(names))
    after = decide(
        fitted, *([each[place] for place in order] for each in (names, image, prior)), original=names[original]
    )
    assert (after.final, after.reason, after.proposal) == (before.final, before.reason, before.proposal)


@each_kind
@settings(max_examples=60, deadline=None)
@given(answers, st.floats(0.05, 0.95), st.floats(0.05, 0.95), st.data())
def test_splitting_an_answer_into_two_forms_changes_nothing(
    fitted: SelectivePriorCalibrator, case: Any, share: float, prior_share: float, data: st.DataObject
) -> None:
    image, prior, original = case
    names = [f"answer {'abcdef'[place]}" for place in range(len(image))]
    before = decide(fitted, names, image, prior, names[original])
    if not (apart(image) and apart(prior) and clear(before)):
        return
    place = data.draw(st.integers(0, len(names) - 1))
    parts = [list(image), list(prior)]
    for each, part in zip(parts, (share, prior_share), strict=True):
        each.append(each[place] + math.log(part))
        each[place] += math.log1p(-part)
    after = decide(fitted, [*names, f"The {names[place].upper()}."], *parts, original=names[original])
    assert str(after.final).casefold().removeprefix("the ").removesuffix(".") == before.final
    assert after.reason == before.reason
    twice = decide(fitted, [*names, names[place]], [*image, image[place]], [*prior, prior[place]], names[original])
    assert replace(twice, range_low=0.0, range_high=0.0) == replace(before, range_low=0.0, range_high=0.0)


@each_kind
@settings(max_examples=100, deadline=None)
@given(answers, st.floats(1e-6, 20.0), st.data())
def test_an_answer_that_trails_by_more_than_the_clip_allows_never_wins(
    fitted: SelectivePriorCalibrator, case: Any, more: float, data: st.DataObject
) -> None:
    image, prior, original = case
    chosen = fitted.open_.settings_
    scale = fitted.open_.state_.scale
    assert chosen is not None
    assert scale is not None
    image = [*image, max(image) - chosen.max_strength * scale.clip - more]
    prior = [*prior, min(prior) - data.draw(st.floats(0.0, 500.0))]  # nobody would write it without the image
    names = [f"answer {'abcdefg'[place]}" for place in range(len(image))]
    decision = decide(fitted, names, image, prior, names[original])
    assert decision.proposal != names[-1]
    assert decision.final != names[-1]


@pytest.mark.parametrize("conditions", [None, SelectivePriorCalibrator().conditions])
@pytest.mark.parametrize("original", ["six", None])
def test_one_candidate_is_never_revised(conditions: Any, original: str | None) -> None:
    fitted = SelectivePriorCalibrator(conditions=conditions).fit(OPEN)
    decision = fitted.decide(["six", "6"], [-1.0, -2.0], [-3.0, -3.0], original, task="open")
    assert (decision.candidates, decision.final, decision.reason) == (("six",), original, Reason.ONE_CANDIDATE)
    assert decision.explain().endswith("the model proposed no other answer.")
    assert 1 not in fitted.candidate_counts_


def test_of_equally_good_clips_the_largest_is_taken() -> None:
    rows = OPEN.arrow.to_pylist()
    for row in rows:
        row["prior_scores"] = [max(score, max(row["prior_scores"]) - 2.0) for score in row["prior_scores"]]
    state = SelectivePriorCalibrator().fit(ScoreTable.from_rows(rows)).state_
    assert state.scale is not None
    assert state.scale.clip == 7.0
    assert [each.scale.clip for each in state.other_clips if each.scale] == [5.0, 3.0]


@pytest.mark.parametrize("parameters", [{}, {"uncertainty": True}, {"strength": Fixed(0.8)}, {"ties": "released"}])
def test_questions_with_options_are_decided_as_without_open_ones(parameters: dict[str, Any]) -> None:
    closed = synthesize(seed=0)
    alone, mixed = (SelectivePriorCalibrator(**parameters).fit(each) for each in (closed, TABLE))
    same(alone.predict(closed), mixed.predict(closed))
    within = columns(mixed.predict(TABLE))
    for name, values in columns(alone.predict(closed)).items():
        np.testing.assert_array_equal(np.array(within[name])[~TABLE.is_open], values)
    assert (mixed.settings_, mixed.selection_) == (alone.settings_, alone.selection_)
    opened = SelectivePriorCalibrator(**parameters).fit(OPEN)
    same(opened.predict(OPEN), mixed.predict(OPEN))
    same(opened.predict(OPEN), mixed.open_.predict(OPEN))


@each_kind
def test_a_decision_shows_the_settings_and_scores_of_its_part(fitted: SelectivePriorCalibrator) -> None:
    decisions = fitted.predict(TABLE)
    scale = fitted.open_.state_.scale
    assert scale is not None
    scaled = scale.apply(TABLE)
    for row in [*np.flatnonzero(TABLE.is_open)[:40].tolist(), 0, 1]:
        decision = decisions[row]
        assert decision.settings == (fitted.open_ if TABLE.is_open[row] else fitted).settings_
        assert decision.is_open == TABLE.is_open[row]
        cells = slice(TABLE.offsets[row], TABLE.offsets[row + 1])
        image, prior = scaled.image_scores[cells], scaled.prior_scores[cells]
        expected = (image - image.mean()) - decision.strength * (prior - prior.mean())
        np.testing.assert_allclose(decision.corrected_scores, expected, atol=1e-12)
        assert decision.explain().startswith(("Kept", "Changed"))
    revised = int(np.flatnonzero(TABLE.is_open & decisions.revised)[0])
    assert f"to “{decisions[revised].final}”" in decisions.explain(revised)


def test_answers_of_a_kind_that_was_not_fitted_stay() -> None:
    closed, opened = SelectivePriorCalibrator().fit(synthesize(seed=0)), SelectivePriorCalibrator().fit(OPEN)
    for fitted, unknown, reason, told in (
        (closed, TABLE.is_open, Reason.OPEN_UNFITTED, "fitted on none"),
        (opened, ~TABLE.is_open, Reason.CLOSED_UNFITTED, "fitted on open questions only"),
    ):
        decisions = fitted.predict(TABLE)
        assert decisions.count_reasons()[reason] == unknown.sum()
        assert not decisions.revised[unknown].any()
        assert decisions.revised[~unknown].any()
        assert told in decisions.explain(int(np.flatnonzero(unknown)[0]))
    with pytest.raises(NotFittedError, match="fitted on no open question"):
        _ = closed.open_
    assert not hasattr(closed, "open_")


def test_a_number_of_candidates_that_was_not_seen_is_left_alone() -> None:
    code, _ = OPEN.codes("pair_id")
    four = np.bincount(code, OPEN.candidate_counts == 4) == 2
    fitted = SelectivePriorCalibrator().fit(OPEN.take(four[code]))
    assert fitted.candidate_counts_ == (4,)
    decisions = fitted.predict(OPEN)
    other = OPEN.candidate_counts != 4
    assert not decisions.revised[other].any()
    row = int(np.flatnonzero(decisions.reason == list(Reason).index(Reason.UNSEEN_CANDIDATE_COUNT))[0])
    assert "fitted on no open question with 3 candidates" in decisions.explain(row)


def test_rows_without_the_right_answer_teach_nothing_and_count_all_the_same() -> None:
    development = OPEN.where(split="dev")
    fitted = SelectivePriorCalibrator().fit(development)
    assert fitted.development_rows_ == learnable(development).sum() < len(development)
    (change,) = fitted.selection_.changes
    assert (change.cf_total, change.cs_total) == (70, 70)
    # Answers that no candidate is: the row leaves the fit, and a change of a wrong answer is no gain.
    lost = development.with_column(
        "answer", [f"{answer} not" if row % 5 == 0 else answer for row, answer in enumerate(development.answer)]
    )
    lost = ScoreTable.from_arrow(lost.with_column("aliases", [None] * len(lost)).arrow)
    fewer = SelectivePriorCalibrator().fit(lost)
    assert fewer.development_rows_ == learnable(lost).sum() < fitted.development_rows_


@pytest.mark.parametrize(("side", "name"), [("cf", "counterfactual"), ("cs", "commonsense")])
@pytest.mark.parametrize("retention", ["paper", "certified"])
def test_a_side_whose_answers_no_candidate_is_cannot_be_fitted_on(side: str, name: str, retention: Any) -> None:
    development = OPEN.where(split="dev")
    answers = [
        "?!" if own == side else answer
        for own, answer in zip(development.column("side"), development.answer, strict=True)
    ]
    lost = development.with_column("answer", answers).with_column("aliases", [None] * len(development))
    with pytest.raises(UnpriorError, match=f"none of 70 open questions about {name} images to fit on has its right"):
        SelectivePriorCalibrator(retention=retention).fit(ScoreTable.from_arrow(lost.arrow))


@each_kind
def test_the_order_of_candidates_with_equal_scores_decides_nothing(fitted: SelectivePriorCalibrator) -> None:
    names, image, prior = ["five", "six", "seven", "eight"], [-0.5, -2.0, -2.0, -4.0], [-0.01, -9.0, -12.0, -9.0]
    found = {
        fitted.decide([names[i] for i in order], [image[i] for i in order], [prior[i] for i in order], "five",
                      task="open").final
        for order in permutations(range(4))
    }  # fmt: skip
    assert len(found) == 1


@each_kind
def test_a_saved_calibrator_decides_the_same(fitted: SelectivePriorCalibrator, tmp_path: Path) -> None:
    for number, each in enumerate((fitted, fitted.open_, fitted.clone().fit(OPEN))):
        path = tmp_path / f"{number}.json"
        each.save(path)
        read = SelectivePriorCalibrator.load(path)
        same(read.predict(TABLE), each.predict(TABLE))
        assert repr(read) == repr(each)
        assert read.made_with == each.made_with
        again = tmp_path / "again.json"
        read.save(again)
        assert again.read_bytes() == path.read_bytes()


def test_a_file_about_questions_with_options_says_nothing_of_open_ones(tmp_path: Path) -> None:
    path = tmp_path / "calibrator.json"
    SelectivePriorCalibrator().fit(synthesize(seed=0)).save(path)
    text = path.read_text()
    assert "open" not in text
    assert "clip" not in text
    given = SelectivePriorCalibrator(open_answers=OpenAnswers((4.0, math.inf), 3.0)).fit(synthesize(seed=0))
    given.save(path)
    assert SelectivePriorCalibrator.load(path).open_answers == given.open_answers


@pytest.mark.parametrize(
    ("place", "value", "reason"),
    [
        (("open", "scale", "temperature"), 0.0, "temperature"),
        (("open", "settings", "max_strength"), 0.5, "strength of the settings"),
        (("open", "settings", "min_leads"), [["open", 0.0]], "thresholds of the settings"),
        (("open",), None, "thresholds of the settings"),
        (("scale",), {"clip": 5.0, "temperature": 2.0, "rows": 0}, "cannot have another one"),
    ],
)
def test_a_file_whose_parts_do_not_belong_together_is_refused(
    tmp_path: Path, place: tuple[str, ...], value: Any, reason: str
) -> None:
    path = tmp_path / "calibrator.json"
    FITTED[2].save(path)
    document = json.loads(path.read_text())
    part = document
    for name in place[:-1]:
        part = part[name]
    part[place[-1]] = value
    path.write_text(json.dumps(document))
    with pytest.raises(UnpriorError, match=reason):
        SelectivePriorCalibrator.load(path)


@pytest.mark.parametrize("epsilon", [0.0, 0.02, 0.1])
@pytest.mark.parametrize("table", [TABLE, OPEN], ids=["both", "open"])
def test_settings_and_clip_can_be_chosen_again(epsilon: float, table: ScoreTable, tmp_path: Path) -> None:
    fitted = SelectivePriorCalibrator().fit(table)
    fitted.save(tmp_path / "calibrator.json")
    fresh = SelectivePriorCalibrator(epsilon_cs=epsilon).fit(table)
    for each in (fitted, SelectivePriorCalibrator.load(tmp_path / "calibrator.json")):
        again = each.reselect(epsilon)
        same(again.predict(TABLE), fresh.predict(TABLE))
        assert again.open_.state_.scale == fresh.open_.state_.scale
        assert again.open_.selection_ == fresh.open_.selection_
        assert again.reselect(0.04).open_.state_.scale == fitted.open_.state_.scale


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ("5", "must be OpenAnswers"),
        (OpenAnswers(clips=()), "increasing positive"),
        (OpenAnswers(clips=(5.0, 3.0)), "increasing positive"),
        (OpenAnswers(clips=(0.0, 3.0)), "increasing positive"),
        (OpenAnswers(clips=(math.nan,)), "increasing positive"),
        (OpenAnswers(clips=[3.0]), "increasing positive"),  # type: ignore[arg-type]
        (OpenAnswers(temperature=0.0), "a number from 0.001 to 1000"),
        (OpenAnswers(temperature=math.inf), "a number from 0.001 to 1000"),
    ],
)
def test_parameters_that_cannot_be(given: Any, reason: str) -> None:
    with pytest.raises(UnpriorError, match=reason):
        SelectivePriorCalibrator(open_answers=given).fit(OPEN)


def test_it_is_a_parameter_like_the_others() -> None:
    given = OpenAnswers(clips=(5.0,), temperature=2.0)
    calibrator = SelectivePriorCalibrator(open_answers=given)
    assert calibrator.get_params()["open_answers"] == calibrator.clone().open_answers == given
    scale = calibrator.fit(OPEN).state_.scale
    assert scale == OpenScale(5.0, 2.0, 0)
    assert "open_answers" not in repr(SelectivePriorCalibrator())


@each_kind
def test_a_notebook_shows_both_parts(fitted: SelectivePriorCalibrator) -> None:
    page = fitted._repr_html_()
    assert "open rows" in page
    assert "OPEN" in page
    assert "open rows" in limit_in_words(fitted.open_.state_)
    shown = settings_table(fitted.open_.state_)
    assert "emperature" in f"{shown.caption} {shown.rows}"
    assert fitted.made_with["open"]["temperature"] == fitted.open_.state_.scale.temperature  # type: ignore[union-attr]


def test_nothing_that_the_promise_counts_on_is_fitted_on() -> None:
    """Scores and answers of the calibration pairs move neither T nor the strength of open answers."""
    certificate = FITTED[2].certificate_
    assert certificate is not None
    rows = TABLE.where(split="dev").arrow.to_pylist()
    for row in rows:
        if row["pair_id"] in certificate.calibration_pairs and row["task"] == "open":
            row["image_scores"] = [3.0 * score for score in row["image_scores"]]
            row["answer"] = row["candidates"][-1]
    moved = SelectivePriorCalibrator(**CERTIFIED).fit(ScoreTable.from_rows(rows), split=None)
    assert moved.certificate_ is not None
    assert moved.certificate_.open_strength == certificate.open_strength
    assert moved.open_.state_.scale == FITTED[2].open_.state_.scale
    assert moved.open_.state_.scale.clip == 5.0  # type: ignore[union-attr]
    assert 0 < moved.open_.state_.scale.rows <= 2 * len(certificate.strength_pairs)  # type: ignore[union-attr]
