from __future__ import annotations

import base64

from finished_run import Finished
from made_up_methods import COSTS, made_up
from small_tables import twelve_pairs
from unprior import SelectivePriorCalibrator, evaluate
from unprior.report.sections import Section, figure_sections
from unprior.studies.suite import Studies, run_studies


def test_every_section_has_words_pictures_and_numbers(finished: Finished) -> None:
    sections = {section.anchor: section for section in figure_sections(finished.evaluation, finished.studies)}
    assert {anchor: len(section.panels) for anchor, section in sections.items()} == {
        "intervals": 1, "attraction": 1, "methods": 2, "frontier": 2, "strengths": 2, "ranges": 2,
    }  # fmt: skip
    for section in sections.values():
        assert section.text.endswith(".")
        assert section.absent is None
        for panel in section.panels:
            assert panel.light != panel.dark
            assert base64.b64decode(panel.light.split(",", 1)[1]).startswith(b"<svg")
            assert len(panel.alt) > 20
    records = finished.studies.records()["frontier"]
    numbers = sections["frontier"].numbers
    assert records is not None
    assert numbers is not None
    assert len(numbers.rows) == len(records)


def test_attraction_is_put_in_perspective(finished: Finished) -> None:
    text = figure_sections(finished.evaluation, finished.studies)[1].text
    assert "expected by chance" in text
    assert "direction can be judged on multiple choice alone" in text


def test_what_is_absent_says_why() -> None:
    table = twelve_pairs()
    calibrator = SelectivePriorCalibrator().fit(table)
    decisions = calibrator.predict(table.where(split="test"))
    evaluation = evaluate(decisions.table, decisions, resamples=50)
    sections = figure_sections(evaluation, run_studies(decisions, calibrator))
    assert [section.absent for section in sections if section.absent] == [
        "There are neither answers of other methods nor development rows to choose controls on.",
        "There are no development rows to fit again on.",
    ]


def test_methods_have_their_tables_below(finished: Finished) -> None:
    def section(studies: Studies) -> Section:
        return next(each for each in figure_sections(finished.evaluation, studies) if each.anchor == "methods")

    own = section(finished.studies)
    assert [table.title for table in own.below] == ["Beside other methods (points)"]
    assert "answer by themselves" not in own.text
    assert "44 tests of the table (Holm)" in own.text
    test = finished.decisions.table
    more = section(run_studies(finished.decisions, finished.calibrator, None, made_up(test), COSTS))
    assert [table.title for table in more.below] == ["Beside other methods (points)", "Cost of one example"]
    assert "answer by themselves" in more.text
    assert "lose too much to be shown: Focus on Vision (MC), Focus on Vision (QA)." in more.text
    assert more.numbers is not None
    assert len(more.numbers.rows) == 6
