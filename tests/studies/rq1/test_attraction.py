from __future__ import annotations

import json
import math

import pytest
from matplotlib.patches import Rectangle

from small_tables import hand_made_rows, hand_made_table, twelve_pairs
from study_checks import is_plain
from study_inputs import unpaired
from unprior import ScoreTable, measure
from unprior.evaluation import Share
from unprior.plots.style import DARK, LIGHT, FigureStyle
from unprior.studies.inputs import External
from unprior.studies.rq1.attraction import Attraction, AttractionCell, study_attraction


def test_whole_tasks_by_hand() -> None:
    mc, qa = study_attraction(hand_made_table()).overall
    assert (mc.attracted.count, mc.attracted.total) == (1, 4)
    # Two of the four errors could have gone to either of two wrong candidates, one of them the prior's winner.
    assert mc.chance == pytest.approx((1 / 2 + 1 / 2 + 0 + 0) / 4)
    assert (mc.prior_is_ordinary.count, mc.prior_is_ordinary.total) == (4, 5)
    assert (qa.attracted.count, qa.attracted.total) == (1, 2)
    assert qa.chance == qa.attracted.value, "with two candidates an error has no choice"


def test_the_matrix_by_hand() -> None:
    result = study_attraction(hand_made_table())
    assert result.subcategories == ("Hands", "Hats")
    expected = {("Hands", "mc"): (1, 2), ("Hats", "mc"): (0, 2), ("Hands", "qa"): (1, 1), ("Hats", "qa"): (0, 1)}
    for (subcategory, task), counts in expected.items():
        cell = result.cell(subcategory, task)
        assert cell is not None
        assert (cell.attracted.count, cell.attracted.total) == counts
    assert result.cell("Shoes", "mc") is None


def test_agrees_with_the_metrics(table: ScoreTable) -> None:
    for cell in study_attraction(table).overall:
        part = table.where(task=cell.task)
        assert cell.attracted == measure(part, part.original_positions).attraction


def test_no_errors_have_no_rate() -> None:
    rows = [row | {"original": row["answer"]} for row in hand_made_rows()]
    result = study_attraction(ScoreTable.from_rows(rows))
    assert all(math.isnan(cell.chance) for cell in result.cells)
    assert json.loads(json.dumps(result.records(), allow_nan=False))[0]["rate"] is None


def test_without_subcategories_there_is_no_matrix() -> None:
    rows = [row | {"subcategory": None, "category": None} for row in hand_made_rows()]
    result = study_attraction(ScoreTable.from_rows(rows))
    assert result.cells == ()
    assert result.subcategories == ()
    assert len(result.records()) == 2


def test_sentences_know_that_two_candidates_leave_no_choice_and_count_ties() -> None:
    def cells(**counts: int) -> Attraction:
        found = [AttractionCell(task, "c", name, Share(count, 8), 1 / 3, Share(1, 1), Share(1, 1))
                     for task in ("mc",)
                 for name, count in counts.items()]  # fmt: skip
        return Attraction((), tuple(found))

    mc, qa, *_ = study_attraction(hand_made_table()).sentences
    assert mc.endswith("against 25.0 % expected by chance.")
    assert qa.endswith("but with two candidates an error has no choice.")
    assert (
        cells(Hands=8, Hats=2).sentences[0].endswith("highest in Hands (MC, 100.0 %) and lowest in Hats (MC, 25.0 %).")
    )
    assert (
        cells(Hands=8, Hats=8, Shoes=2)
        .sentences[0]
        .endswith("highest in 2 of them (100.0 %) and lowest in Shoes (MC, 25.0 %).")
    )
    assert cells(Hands=8, Hats=8).sentences[0].endswith("the rate is 100.0 % everywhere.")


def test_the_ordinary_answer_is_counted_among_the_errors() -> None:
    def row(pair: int, side: str, answer: str, original: str, prior: list[float]) -> dict[str, object]:
        return {"pair_id": pair, "side": side, "task": "mc", "candidates": ["A", "B", "C"], "original": original,
                "image_scores": [0.0, 0.0, 0.0], "prior_scores": prior, "answer": answer}  # fmt: skip

    first, last = [0.0, -1.0, -2.0], [-2.0, -1.0, 0.0]
    table = ScoreTable.from_rows(
        [
            row(1, "cf", "B", "A", first), row(1, "cs", "A", "A", first),  # wrong; the prior names the ordinary answer
            row(2, "cf", "B", "A", last), row(2, "cs", "A", "A", last),  # wrong; it names another one
            row(3, "cf", "B", "B", first), row(3, "cs", "A", "A", first),  # right: not counted
            row(4, "cf", "B", "A", first),  # wrong, but without its pair
        ]
    )  # fmt: skip
    (cell,) = study_attraction(table).overall
    assert (cell.ordinary_among_errors.count, cell.ordinary_among_errors.total) == (1, 2)
    assert (cell.prior_is_ordinary.count, cell.prior_is_ordinary.total) == (2, 3)


def test_other_benchmarks_with_pairs_are_counted_by_task() -> None:
    own, other = hand_made_table(), twelve_pairs()
    loose = unpaired(other)
    result = study_attraction(own, {"loose": External(loose), "other": External(other)})
    assert [(cell.benchmark, cell.task) for cell in result.others] == [("other", "mc"), ("other", "qa")]
    rows = other.arrow.to_pylist()
    ordinary = {(row["pair_id"], row["task"]): row["answer"] for row in rows if row["side"] == "cs"}
    for cell in result.others:
        errors = attracted = said = favoured = 0
        for row in rows:
            winner = row["candidates"][row["prior_scores"].index(max(row["prior_scores"]))]
            if row["task"] == cell.task and row["side"] == "cs":
                favoured += winner == row["answer"]
            if (row["task"], row["side"]) == (cell.task, "cf") and row["original"] != row["answer"]:
                errors += 1
                attracted += row["original"] == winner
                said += row["original"] == ordinary[row["pair_id"], row["task"]]
        assert errors > 0
        assert (cell.attracted.count, cell.attracted.total) == (attracted, errors)
        assert (cell.errors_ordinary.count, cell.errors_ordinary.total) == (said, errors)
        assert cell.prior_is_ordinary.count == favoured
    assert [record["benchmark"] for record in result.records()][-2:] == ["other", "other"]
    assert result.sentences[-2].startswith("On other MC the prior's winner is the ordinary answer in ")
    assert result.table.sections[-1].heading == "Other benchmarks"
    assert is_plain(result)


@pytest.mark.parametrize("style", [LIGHT, DARK], ids=["light", "dark"])
def test_cells_of_the_figure(style: FigureStyle) -> None:
    (axes,) = study_attraction(hand_made_table()).plot(style=style)
    assert [label.get_text() for label in axes.get_yticklabels()] == ["Hands", "Hats", "All"]
    assert [label.get_text() for label in axes.get_xticklabels()] == ["MC", "QA"]
    assert [text.get_text() for text in axes.texts] == [
        "50 %", "n = 2", "100 %", "n = 1", "0 %", "n = 2", "0 %", "n = 1", "25 %", "n = 4", "50 %", "n = 2",
    ]  # fmt: skip
    assert sum(isinstance(patch, Rectangle) for patch in axes.patches) == 6


def test_the_figure_without_errors_or_subcategories() -> None:
    rows = [row | {"original": row["answer"], "subcategory": None} for row in hand_made_rows()]
    (axes,) = study_attraction(ScoreTable.from_rows(rows)).plot()
    assert [label.get_text() for label in axes.get_yticklabels()] == ["All"]
    assert [text.get_text() for text in axes.texts] == ["no errors", "no errors"]
