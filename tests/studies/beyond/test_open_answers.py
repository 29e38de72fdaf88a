"""The study of open answers: SPC beside decoders, and what each part of the recipe contributes."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from small_tables import synthetic
from study_checks import is_plain
from study_inputs import open_questions
from unprior import ScoreTable, SelectivePriorCalibrator, evaluate
from unprior.baselines.answers import MethodAnswers, MethodInfo
from unprior.calibration import OpenAnswers
from unprior.errors import UnpriorError
from unprior.scores.provenance import Provenance
from unprior.scores.schema import OTHER_RIGHT_ANSWER
from unprior.studies.beyond.open_answers import OpenAnswersResult, study_open_answers
from unprior.studies.by_model import ByModel
from unprior.studies.common.open_tables import first_token_scores, limit_candidates, mean_scores
from unprior.studies.finished import run_studies
from unprior.studies.inputs import External, StudyInputs
from unprior.studies.registry import STUDIES, studies_of_run


@pytest.fixture(scope="module")
def questions() -> ScoreTable:
    return open_questions(synthetic(seed=3).values_of("pair_id"))


@pytest.fixture(scope="module")
def result(questions: ScoreTable) -> OpenAnswersResult:
    test = questions.where(split="test")
    perfect = np.full(len(test), OTHER_RIGHT_ANSWER)
    decoder = MethodAnswers(MethodInfo("perfect", "Perfect", "decoder", {}, None), perfect, None)
    return study_open_answers(StudyInputs(synthetic(seed=3), open=External(questions, (decoder,)), resamples=100))


def test_the_recipe_is_what_its_calibrator_does(questions: ScoreTable, result: OpenAnswersResult) -> None:
    table = limit_candidates(questions, 4)
    decisions = SelectivePriorCalibrator().fit(table).predict(table.where(split="test"))
    (expected,) = evaluate(decisions.table, decisions, resamples=100).tasks
    assert result.spc.result.cf.change == expected.cf.change
    assert result.spc.result.cs.change == expected.cs.change
    assert result.spc.label == decisions.method
    assert result.covered["cf"].count == int(decisions.table.where(side="cf").is_covered.sum())


def test_the_recipe_with_a_promise_stands_beside_it(questions: ScoreTable, result: OpenAnswersResult) -> None:
    table = limit_candidates(questions, 4)
    decisions = SelectivePriorCalibrator(retention="certified").fit(table).predict(table.where(split="test"))
    (expected,) = evaluate(decisions.table, decisions, resamples=100).tasks
    promised = result.of("method")[1]
    assert (promised.name, promised.label) == ("spc-certified", decisions.method)
    assert promised.result.cf.change == expected.cf.change
    assert promised.result.cs.change.harms <= result.spc.result.cs.change.harms


def test_a_decoder_is_judged_by_what_it_writes(result: OpenAnswersResult) -> None:
    perfect = next(each for each in result.of("method") if each.name == "perfect")
    assert perfect.result.method.cf.value == perfect.result.method.cs.value == 1.0
    assert "not higher" in result.sentences[1]


def test_ablations_are_fitted_anew(questions: ScoreTable, result: OpenAnswersResult) -> None:
    kinds = list(dict.fromkeys(each.kind for each in result.outcomes))
    assert kinds == ["method", "Score", "Clip of the prior", "Candidates", "Number of candidates", "Strength"]
    assert [each.name for each in result.of("Score")] == ["sum", "mean", "sum-t", "first-token"]
    assert [each.name for each in result.of("Number of candidates")] == [f"k-{count}" for count in (2, 3, 4, 5, 6)]
    assert {each.name for each in result.of("Strength")} == {"own-strength", "carried-over"}
    table = limit_candidates(questions, 4)
    fitted = SelectivePriorCalibrator(open_answers=OpenAnswers(clips=(math.inf,))).fit(table)
    final = fitted.predict(table.where(split="test"))
    (expected,) = evaluate(final.table, final, resamples=100).tasks
    unclipped = next(each for each in result.outcomes if each.name == "clip-inf")
    assert unclipped.result.cf.change == expected.cf.change
    assert is_plain(result)


def test_the_original_and_the_answer_without_the_image_are_kept(questions: ScoreTable) -> None:
    for count in (2, 3):
        for full, row in zip(
            questions.arrow.to_pylist(), limit_candidates(questions, count).arrow.to_pylist(), strict=True
        ):
            assert len(row["candidates"]) == min(count, len(full["candidates"]))
            assert row["original"] is None or row["original"] in row["candidates"]
            favourite = next(a for a, who in zip(full["candidates"], full["sources"], strict=True) if "text" in who)
            assert favourite in row["candidates"]
            assert set(row["image_scores"]) <= set(full["image_scores"])
    without = limit_candidates(questions, 10, from_text=False).arrow.to_pylist()
    assert all("text" not in row["sources"] for row in without)
    assert any("text+image" in row["sources"] for row in without)
    assert any(len(row["candidates"]) < len(full["candidates"]) for row, full in
               zip(without, questions.arrow.to_pylist(), strict=True))  # fmt: skip


def test_other_scores_take_the_place_of_sums(questions: ScoreTable) -> None:
    assert mean_scores(questions).image_scores == pytest.approx(questions.image_scores / 2)
    assert first_token_scores(questions).prior_scores == pytest.approx(questions.prior_scores / 2)
    with pytest.raises(UnpriorError, match="have no view first-token-image"):
        first_token_scores(synthetic(seed=3))


def test_a_run_with_open_questions_shows_them_and_others_do_not() -> None:
    assert "open-answers" not in {study.name for study in studies_of_run(synthetic(seed=3))}
    mixed = StudyInputs(synthetic(seed=3, open_questions=True), resamples=50)
    components, main = run_studies([STUDIES["components"], STUDIES["main-comparison"]], [mixed])
    assert {record["task"] for record in components.records()} == {"mc", "qa"}
    assert {record["task"] for record in main.records()} == {"mc", "qa", "open"}
    alone = StudyInputs(mixed.table.where(task="open"))
    (left_out,) = run_studies([STUDIES["components"]], [alone])
    assert left_out.result is None
    assert "about questions with options" in str(left_out.lacks)


def test_several_models_are_shown_side_by_side(questions: ScoreTable) -> None:
    runs = [StudyInputs(synthetic(seed=seed), open=External(questions), resamples=20) for seed in (3, 4)]
    (study,) = run_studies([STUDIES["open-answers"]], runs)
    assert isinstance(study.result, ByModel)
    records = study.result.records()
    tested = [record for record in records if record["cf_holm_p_all_models"] is not None]
    assert [record["name"] for record in tested] == ["spc", "spc"]
    for record, result in zip(tested, study.result.results.values(), strict=True):
        assert isinstance(result, OpenAnswersResult)
        assert record["cf_p"] == result.spc.result.cf.test.p_value <= record["cf_holm_p_all_models"]
    assert len(records) == 2 * len(next(iter(study.result.results.values())).records())


def test_open_questions_that_were_asked_in_another_way_are_left_aside(questions: ScoreTable, tmp_path: Path) -> None:
    (tmp_path / "open").mkdir()
    for table, prompt, folder in ((synthetic(seed=3), "a", tmp_path), (questions, "b", tmp_path / "open")):
        noted = ScoreTable.from_arrow(table.arrow, provenance=[Provenance(model="synthetic", prompt=prompt)])
        noted.write(folder / "scores.parquet")
    inputs = StudyInputs.from_run(tmp_path)
    assert inputs.open is None
    assert "not made as the scores of the run: prompt a, here b" in inputs.problems[-1]
