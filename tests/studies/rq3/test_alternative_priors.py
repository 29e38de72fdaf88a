from __future__ import annotations

from statistics import median

import numpy as np
import pytest
from matplotlib.figure import Figure

from small_tables import Row, abstaining_calibrator, twelve_pairs
from study_checks import counts, expected_counts, finals_row_by_row, is_plain
from unprior import ScoreTable, SelectivePriorCalibrator, UnpriorError
from unprior.plots.style import DARK
from unprior.studies.rq3.alternative_priors import LABELS, AlternativePriors, study_alternative_priors


def rows_with_views() -> list[Row]:
    generator = np.random.default_rng(4)
    rows = twelve_pairs().arrow.to_pylist()
    for row in rows:
        noise = generator.normal(0, 1.5, (3, len(row["candidates"])))
        row["views"] = {
            view: (np.array(row["prior_scores"]) + extra).tolist()
            for view, extra in zip(("white", "black", "mean"), noise, strict=True)
        }
    return rows


@pytest.fixture(scope="module")
def result() -> AlternativePriors:
    table = ScoreTable.from_rows(rows_with_views())
    return study_alternative_priors(SelectivePriorCalibrator().fit(table), table.where(split="test"))


def _three_input_median(row: Row) -> list[float]:
    views = [row["prior_scores"], row["views"]["white"], row["views"]["black"]]
    centred = [[score - sum(view) / len(view) for score in view] for view in views]
    scales = [(sum(score**2 for score in view) / len(view)) ** 0.5 for view in centred]
    scaled = [[score / scale for score in view] for view, scale in zip(centred, scales, strict=True)]
    return [median(entries) * median(scales) for entries in zip(*scaled, strict=True)]


def test_every_estimate_is_decided_with_the_text_only_calibrator(result: AlternativePriors) -> None:
    rows = rows_with_views()
    calibrator = SelectivePriorCalibrator().fit(ScoreTable.from_rows(rows))
    test = [row for row in rows if row["split"] == "test"]
    priors = {
        "text": [row["prior_scores"] for row in test],
        "white": [row["views"]["white"] for row in test],
        "mean": [row["views"]["mean"] for row in test],
        "median3": [_three_input_median(row) for row in test],
    }
    for name, prior in priors.items():
        replaced = [row | {"prior_scores": scores} for row, scores in zip(test, prior, strict=True)]
        finals = finals_row_by_row(calibrator, replaced)
        for outcome in result.of(name).tasks:
            assert counts(outcome) == expected_counts(test, finals, outcome.task), name
    assert len({tuple(map(tuple, map(counts, each.tasks))) for each in result.rows}) > 1, "estimates must differ"


def test_rows_are_those_of_the_paper_and_the_best_is_bold(result: AlternativePriors) -> None:
    assert [row.cells[0] for row in result.table.rows] == list(LABELS.values())
    for place, task in enumerate(result.tasks, start=1):
        utilities = [each.on(task).utility for each in result.rows]
        bold = [place in row.bold_cells for row in result.table.rows]
        assert bold == [value == max(utilities) for value in utilities]


def test_sentences_name_the_best(result: AlternativePriors) -> None:
    for task, sentence in zip(result.tasks, result.sentences[::2], strict=True):
        assert all(LABELS[name] in sentence for name in result.best(task))
    only = AlternativePriors((result.of("text"),), result.method)
    assert only.sentences[1].endswith("with none of 0 others.")
    assert is_plain(result)


def test_the_figure_has_a_line_for_every_estimate(result: AlternativePriors) -> None:
    axes = result.plot(Figure().subplots(1, 2), style=DARK)
    for task, each in zip(result.tasks, axes, strict=True):
        assert [label.get_text() for label in each.get_yticklabels()] == list(LABELS.values())
        (line,) = (line for line in each.lines if line.get_label() == "ΔCF: repair")
        assert line.get_xdata() == pytest.approx([100 * row.on(task).cf.delta for row in result.rows])
    figure = result.figure()
    assert figure is not None
    assert len(figure.axes) == 2


def test_a_calibrator_that_abstains_says_so() -> None:
    test = ScoreTable.from_rows(rows_with_views()).where(split="test")
    result = study_alternative_priors(abstaining_calibrator(), test)
    assert result.sentences == ("SPC (standard, ε = 0.04) abstains, so no estimate of the prior changes an answer.",)
    assert all(record["changed"] == 0 for record in result.records())


def test_a_view_that_is_not_scored_is_named() -> None:
    with pytest.raises(UnpriorError, match="white"):
        study_alternative_priors(SelectivePriorCalibrator().fit(twelve_pairs()), twelve_pairs().where(split="test"))
