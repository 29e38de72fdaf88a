"""What every study must give, whatever it is about."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from matplotlib.figure import Figure

from study_inputs import with_other_test_answers
from unprior import UnpriorError
from unprior.plots.style import DARK
from unprior.studies.finished import FinishedStudy
from unprior.studies.inputs import StudyInputs
from unprior.studies.registry import STUDIES, choose_studies
from unprior.studies.result import StudyResult
from unprior.studies.study import QUESTIONS
from unprior.tables.latex import as_latex

ResultOf = Callable[[str], StudyResult]

_ONE_OF_MANY = re.compile(r"(?<![.,\d])1 (?:[A-Z]{2} |other |development |test |wrong )*"
                          r"(?:pairs|answers|methods|harms|repairs|estimates|splits|questions|forms)\b")  # fmt: skip


@pytest.mark.parametrize("name", STUDIES)
def test_records_sentences_and_captions_are_fit_to_be_written(
    name: str, study_inputs: StudyInputs, study_result: ResultOf
) -> None:
    study = STUDIES[name]
    assert study.name == name
    assert not study.missing(study_inputs), "no study is left out here"
    result = study_result(name)
    records = json.loads(json.dumps(result.records(), allow_nan=False))
    assert records
    assert {tuple(record) for record in records} == {tuple(records[0])}, "every record has the same fields"
    assert all(isinstance(value, str | int | float | None) for record in records for value in record.values())
    assert all(sentence.endswith(".") for sentence in (*result.sentences, result.table.caption, study.explained()))
    assert len(result.sentences) >= 2
    assert not [sentence for sentence in result.sentences if _ONE_OF_MANY.search(sentence)], "one thing is singular"
    assert result.table.rows


@pytest.mark.parametrize("name", ["main-comparison", "components", "strengths", "stable-ranges", "significance",
                                  "methods", "external", "transfer", "answer-directions"])  # fmt: skip
def test_how_names_the_version_under_study(name: str) -> None:
    aware = FinishedStudy(STUDIES[name], None, limits=(0.06, 0.12), uncertainty=True)
    assert "SPC (uncertainty-aware, ε = 0.06)" in aware.how
    assert "SPC (standard" not in aware.how
    assert "SPC (standard, ε = 0.06)" in replace(aware, uncertainty=False).how


@pytest.mark.parametrize("name", STUDIES)
def test_latex_needs_no_special_letters(name: str, study_result: ResultOf) -> None:
    source = as_latex(study_result(name).table, STUDIES[name].latex_label)
    assert [letter for letter in source if not letter.isascii()] == []


@pytest.mark.parametrize("name", STUDIES)
def test_figures_are_drawn_in_both_styles_or_in_none(name: str, study_result: ResultOf) -> None:
    figures = [study_result(name).figure(), study_result(name).figure(DARK)]
    assert all(isinstance(figure, Figure) for figure in figures) or figures == [None, None]


FROM_SCORES = {
    "cost": r".*",
    "prior-agreement": r".*",
    "settings": r".*",
    "strengths": r".*",
    "stable-ranges": r"(?!median_radius).*",
    "revis-direction": r"(?!delta).*",
    "revision-rules": r".*changed|settings|feasible|abstains",
    "methods": r".*changed|settings|note",
    "frontier": r".*changed|strength|abstains",
    "score-normalization": r".*changed|same_.*",
    "option-orders": r".*changed|.*agreement",
    "claim-order": r"changed|note|consistent.*",
    "question-forms": r"changed|reverses|consistent.*",
    "prior-controls": r"mean_changed|abstaining|runs",
    "image-free-policies": r".*changed|feasible|selected",
    "prior-trust": r".*",
    "stable-prior": r"moved|same_.*|abstains",
}
"""Fields that the right answers to test rows have no part in; in all other studies those below."""
DECIDED = r".*changed|abstains|development_pairs"
EXEMPT = {
    "attraction": "nothing is fitted; every number is about right and wrong answers",
    "prior-direction": "nothing is fitted; every number is about right answers",
    "repairs": "nothing is fitted but what study main-comparison has too; every number of decisions is about repairs",
    "certified-retention": "draws development pairs from all rows; its own test looks at what it draws",
    "repeated-splits": "draws development pairs from all rows; its own test changes the answers of what it draws",
    "prior-favours-ordinary": "groups pairs by their right answers; fitted as in question-forms",
}
"""Studies without such a field."""


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.slow] * (name == "prior-controls"))
        for name in STUDIES
        if name not in EXEMPT
    ],
)
def test_right_answers_to_test_rows_decide_nothing(name: str, others: StudyInputs, study_result: ResultOf) -> None:
    fields = re.compile(FROM_SCORES.get(name, DECIDED))
    before, after = study_result(name).records(), STUDIES[name].run(others).records()
    unseen = ("cost", "prior-agreement", "prior-trust", "settings", "strengths")
    assert (before == after) == (name in unseen), "other answers must be seen"

    def kept(records: list[dict[str, Any]]) -> Counter[tuple[Any, ...]]:
        return Counter(tuple(value for field, value in record.items() if fields.fullmatch(field)) for record in records)

    assert kept(before) == kept(after)
    assert any(any(values) for values in kept(before)), "something must have been decided"


@pytest.fixture(scope="module")
def others(study_inputs: StudyInputs) -> StudyInputs:
    return with_other_test_answers(study_inputs)


def test_a_question_without_studies_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(QUESTIONS, "rq6", "Why?")
    told = r"no study answers 'rq6' \(Why\?\) so far; choose all, rq1, rq2, rq3, rq4, rq5, beyond,"
    with pytest.raises(UnpriorError, match=told):
        choose_studies(["rq6"])


def test_every_study_beyond_the_paper_is_chosen_together() -> None:
    names = [study.name for study in choose_studies(["beyond"])]
    assert names == ["promises", "certified-retention", "prior-trust", "stable-prior", "open-answers"]
