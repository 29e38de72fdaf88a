from __future__ import annotations

import pytest

from small_tables import Row, example
from study_checks import is_plain
from unprior import ScoreTable
from unprior.plots.style import DARK
from unprior.studies.rq3.prior_agreement import PriorAgreement, study_prior_agreement

YES, NO, TIE = [-0.1, -2.0], [-2.0, -0.1], [-0.7, -0.7]
FIRST, THIRD = [-0.1, -2.0, -3.0], [-3.0, -2.0, -0.1]


def agreement_table() -> ScoreTable:
    """Top answers by text/white/black/mean: YYYN, YYNN, NYYN (a tie goes to yes), and AACC."""

    def row(pair: int, text: list[float], white: list[float], black: list[float], mean: list[float]) -> Row:
        views = {"white": white, "black": black, "mean": mean}
        return example(pair, "cf", text, text, None, "no" if len(text) == 2 else "B", views=views)

    tops = [(YES, YES, YES, NO), (YES, TIE, NO, NO), (NO, YES, TIE, NO), (FIRST, FIRST, THIRD, THIRD)]
    return ScoreTable.from_rows([row(pair, *views) for pair, views in enumerate(tops)])


@pytest.fixture
def result() -> PriorAgreement:
    return study_prior_agreement(agreement_table())


def test_the_matrix_by_hand(result: PriorAgreement) -> None:
    expected = {
        ("text", "white"): 3 / 4, ("text", "black"): 1 / 4, ("text", "mean"): 1 / 4,
        ("white", "black"): 2 / 4, ("white", "mean"): 0.0, ("black", "mean"): 2 / 4,
    }  # fmt: skip
    for (first, second), share in expected.items():
        assert result.between(first, second) == result.between(second, first) == share
    assert result.between("mean", "mean") == 1.0
    assert result.table.rows[0].cells == ("text", "–", "75.0", "25.0", "25.0")


def test_tasks_have_records_of_their_own(result: PriorAgreement) -> None:
    by_task = {(each["first"], each["second"], each["task"]): each["agreement"] for each in result.records()}
    assert len(by_task) == 6 * 3
    assert by_task["text", "white", "mc"] == 1.0
    assert by_task["text", "white", "qa"] == pytest.approx(2 / 3)
    assert is_plain(result)


def test_sentences_follow_the_numbers(result: PriorAgreement) -> None:
    assert "is highest for text–white (75.0 %) and lowest for white–mean (0.0 %)" in result.sentences[0]
    assert "text-only prior is highest for white (75.0 %) and lowest for black and mean (25.0 %)" in result.sentences[1]
    fewer = study_prior_agreement(agreement_table(), views=("text", "black", "mean"))
    assert "highest for black–mean (50.0 %) and lowest for text–black and text–mean (25.0 %)" in fewer.sentences[0]
    assert fewer.sentences[1] == "Agreement with the text-only prior is 25.0 % for black and mean."
    assert len(study_prior_agreement(agreement_table(), views=("black", "mean")).sentences) == 1


def test_the_figure_is_the_matrix(result: PriorAgreement) -> None:
    (axes,) = result.plot(style=DARK)
    second = [text.get_text() for text in axes.texts if text.get_position()[1] == 1.5]
    assert second == ["75.0 %", "50.0 %", "0.0 %"], "a view is not compared with itself"
    assert {text.get_text() for text in axes.texts} == {"75.0 %", "25.0 %", "50.0 %", "0.0 %"}
    assert len(axes.patches) == 16
    assert result.figure() is not None
