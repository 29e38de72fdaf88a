"""Studies as sections of a page."""

from __future__ import annotations

import base64
from collections.abc import Callable
from dataclasses import replace

import pytest

from unprior import synthesize
from unprior.report.section import make_section
from unprior.runs.result import RunResult
from unprior.studies.finished import FinishedStudy, run_studies
from unprior.studies.inputs import StudyInputs
from unprior.studies.registry import STUDIES, choose_studies
from unprior.studies.result import StudyResult
from unprior.tables.csv import as_csv


def content(uri: str) -> bytes:
    return base64.b64decode(uri.split(",", 1)[1])


def test_every_section_has_words_figures_tables_and_numbers(finished: RunResult) -> None:
    sections = [make_section(each, files=False) for each in finished.studies if each.result is not None]
    assert len(sections) >= 6
    for section in sections:
        (sentences,) = section.sentences.values()
        assert all(sentence.endswith(".") for sentence in sentences)
        assert section.lacks is None or section.study.wants  # what only adds to a result may be absent
        assert section.figure is not None
        for drawing in (section.figure.wide, section.figure.narrow):
            assert drawing.light != drawing.dark
            assert content(drawing.light).startswith(b"<svg")
        assert section.numbers is not None
        assert len(section.numbers.rows) == len(finished.study(section.study.name).records())
        assert section.terms


def test_without_files_the_page_holds_numbers_latex_and_figure(finished: RunResult) -> None:
    section = make_section(next(each for each in finished.studies if each.study.name == "frontier"), files=False)
    assert [link.file for link in section.links] == ["frontier.csv", "frontier.tex", "frontier.pdf"]
    csv, tex, pdf = (content(link.target) for link in section.links)
    assert csv.decode() == as_csv(finished.study("frontier").records())
    assert tex.startswith(rb"\begin{table}")
    assert rb"{frontier.pdf}" in tex, "LaTeX shows the figure that can be saved beside it"
    assert pdf.startswith(b"%PDF-")


@pytest.mark.parametrize(("name", "drawn"), [("components", True), ("settings", False)])
def test_beside_its_files_the_page_links_to_them(
    study_result: Callable[[str], StudyResult], name: str, drawn: bool
) -> None:
    links = make_section(FinishedStudy(STUDIES[name], study_result(name)), files=True).links
    kinds = ["csv", "json", "tex", *(["pdf", "png", "svg"] if drawn else [])]
    assert [link.target for link in links] == [f"{name}.{kind}" for kind in kinds]


def test_what_is_lacking_says_why() -> None:
    section = make_section(FinishedStudy(STUDIES["cost"], None, "cost needs more."), files=False)
    assert section.lacks == "cost needs more."
    assert section.numbers is section.figure is None
    assert section.tables == section.links == ()


def test_several_models_have_their_own_paragraphs() -> None:
    runs = [StudyInputs(synthesize(seed=seed)) for seed in (0, 1)]
    (finished,) = run_studies(choose_studies(["components"]), runs)
    section = make_section(finished, files=False)
    assert finished.result is not None
    named = {name: sentences for name, sentences in section.sentences.items() if name}
    assert list(named) == ["synthetic (1)", "synthetic (2)"]
    said = [f"{name}: {sentence}" for name, sentences in named.items() for sentence in sentences]
    assert tuple(said) == finished.result.sentences[: len(said)]
    assert [row.cells[0].text for row in section.tables[0].rows if row.heading] == list(named)


def test_a_study_that_could_show_more_shows_what_it_has_and_what_it_lacks(finished: RunResult) -> None:
    one = replace(finished.studies[0], lacks="main would also show more: `unprior study main --prepare` makes it.")
    section = make_section(one, files=False)
    assert section.numbers is not None
    assert section.lacks == one.lacks
