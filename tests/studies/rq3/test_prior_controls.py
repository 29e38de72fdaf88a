from __future__ import annotations

import numpy as np
import pytest
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from small_tables import corrected_winner, count_changes, hopeless_table, twelve_pairs
from study_checks import finals_row_by_row, is_plain, with_other_answers
from unprior import ScoreTable, SelectivePriorCalibrator, UnpriorError, mcnemar, synthesize
from unprior.plots.style import DARK
from unprior.studies.rq3.prior_controls import CONTROLS, PriorControl, PriorControls, study_prior_controls

TABLE = twelve_pairs()
DEVELOPMENT, TEST = TABLE.where(split="dev"), TABLE.where(split="test")


@pytest.fixture(scope="module")
def result() -> PriorControls:
    return study_prior_controls(DEVELOPMENT, TEST, epsilons=(0.2, 0.0), seeds=(0, 1, 2), resamples=400)


def _mean_prior_rows() -> list[dict[str, object]]:
    rows = TABLE.arrow.to_pylist()
    for task in ("mc", "qa"):
        centred = [
            [score - sum(row["prior_scores"]) / len(row["prior_scores"]) for score in row["prior_scores"]]
            for row in rows
            if (row["task"], row["split"]) == (task, "dev")
        ]
        mean = [sum(entries) / len(centred) for entries in zip(*centred, strict=True)]
        rows = [row | {"prior_scores": mean} if row["task"] == task else row for row in rows]
    return rows


def test_deltas_and_tests_against_plain_loops(result: PriorControls) -> None:
    test = TEST.arrow.to_pylist()
    replaced = _mean_prior_rows()
    refitted = SelectivePriorCalibrator(epsilon_cs=0.2).fit(ScoreTable.from_rows(replaced))
    finals = {
        "none": [corrected_winner(row, 0.0) for row in test],
        "mean": finals_row_by_row(refitted, [row for row in replaced if row["split"] == "test"]),
        "spc": finals_row_by_row(SelectivePriorCalibrator(epsilon_cs=0.2).fit(TABLE), test),
    }
    for name, answers in finals.items():
        for task in ("mc", "qa"):
            control = result.of(name, task)
            for side, deltas in (("cf", control.cf), ("cs", control.cs)):
                repairs, harms, total = count_changes(test, answers, task, side)
                assert deltas == (pytest.approx((repairs - harms) / total),)
            better = worse = 0
            for row, ours, theirs in zip(test, finals["spc"], answers, strict=True):
                if (row["task"], row["side"]) == (task, "cf"):
                    better += ours == row["answer"] != theirs
                    worse += theirs == row["answer"] != ours
            expected = () if name == "spc" else (mcnemar(better, worse).p_value,)
            assert control.p_values == expected


def test_seeded_controls_have_a_run_per_seed(result: PriorControls) -> None:
    runs = {(row.name, len(row.cf)) for row in result.rows}
    assert runs == {("none", 1), ("image", 1), ("mean", 1), ("other", 3), ("shuffled", 3), ("spc", 1)}
    assert result.epsilons == (0.2, 0.0)
    assert len(result.rows) == 2 * 2 * len(CONTROLS)
    assert is_plain(result)
    record = next(each for each in result.records() if each["control"] == "other")
    row = result.rows[[each.name for each in result.rows].index("other")]
    assert record["delta_cf"] == pytest.approx(sum(row.cf) / 3)
    assert record["sd_cf"] == pytest.approx(np.std(row.cf, ddof=1))
    assert record["largest_p"] == max(row.p_values)


def test_boxes_are_the_bootstrap_over_pairs() -> None:
    table = synthesize(seed=0)
    test = table.where(split="test", task="mc")
    result = study_prior_controls(table.where(split="dev"), test, epsilons=(0.1,), seeds=(0, 1))
    answers = SelectivePriorCalibrator(epsilon_cs=0.1).fit(table).predict(test).final_positions
    gain = ((answers == test.answer_positions).astype(float) - (test.original_positions == test.answer_positions))[
        test.is_cf
    ]
    generator = np.random.default_rng(0)
    means = [gain[generator.integers(len(gain), size=len(gain))].mean() for _ in range(4000)]
    expected = np.quantile(means, [0.025, 0.25, 0.5, 0.75, 0.975])
    assert result.of("spc", "mc").box == pytest.approx(expected, abs=0.006)
    other = result.of("other", "mc")
    assert other.box[0] <= np.mean(other.cf) <= other.box[4]


def test_the_table_is_laid_out_as_in_the_paper(result: PriorControls) -> None:
    table = result.table
    assert table.columns[1:] == ("MC ΔCF", "MC ΔCS", "QA ΔCF", "QA ΔCS")
    assert [section.heading for section in table.sections] == ["ε = 0.20", "ε = 0.00"]
    names = [row.cells[0] for row in table.sections[0].rows]
    assert names == [*list(CONTROLS.values())[:-1], "SPC (standard, ε = 0.20)"]
    assert "±" in table.sections[0].rows[3].cells[1]
    assert "±" not in table.sections[0].rows[5].cells[1]
    best = max(result.of(name, "mc").utility for name in CONTROLS)
    for name, row in zip(CONTROLS, table.sections[0].rows, strict=True):
        assert (1 in row.bold_cells) == (2 in row.bold_cells) == (result.of(name, "mc").utility == best)


def _made_up(epsilon: float, **cf: tuple[float, ...]) -> list[PriorControl]:
    given = dict.fromkeys(CONTROLS, (0.0,)) | cf
    p_values = {name: () if name == "spc" else (0.01,) * len(values) for name, values in given.items()}
    return [
        PriorControl(name, epsilon, "mc", values, (0.0,) * len(values), (0,), p_values[name], (0.0,) * 5, 0)
        for name, values in given.items()
    ]


def test_sentences_follow_the_numbers() -> None:
    wide = _made_up(0.1, other=(0.01, 0.05), spc=(0.04,))
    ahead = PriorControls((*wide, *_made_up(0.04, other=(0.01, 0.01), spc=(0.02,))))
    assert "has a ΔCF of +4.0, higher than that of the best replacement (“Prior of another" in ahead.sentences[0]
    assert "ahead of 1 of 2 runs with another question's prior (largest p = 0.01)" in ahead.sentences[0]
    assert "is the same on MC, where SPC (standard, ε = 0.04) comes first" in ahead.sentences[1]
    behind = PriorControls((*wide, *_made_up(0.04, mean=(0.05,), spc=(0.02,))))
    assert "is another on MC, where “Mean development prior” comes first" in behind.sentences[1]
    worse = PriorControls(tuple(_made_up(0.1, mean=(0.05,), spc=(0.02,))))
    assert "+2.0, lower than that of the best replacement (“Mean development prior”, +5.0)" in worse.sentences[0]
    assert len(worse.sentences) == 1
    level = PriorControls(tuple(_made_up(0.1)))
    assert "+0.0, the same as that of the best" in level.sentences[0]


def test_the_figure_shows_the_studys_own_epsilon(result: PriorControls) -> None:
    _, axes = result.plot(Figure().subplots(1, 2), style=DARK)
    names = [label.get_text() for label in axes.get_yticklabels()]
    assert names == [*list(CONTROLS.values())[:-1], "SPC (standard, ε = 0.20)"]
    lines = [line for line in axes.collections if isinstance(line, LineCollection)]
    for place, name in enumerate(CONTROLS):
        whiskers, _, middle = (line.get_segments() for line in lines[3 * place : 3 * place + 3])
        (box,) = axes.containers[2 * place]
        assert isinstance(box, Rectangle)
        drawn = [whiskers[0][0][0], box.get_x(), middle[0][0][0], box.get_x() + box.get_width(), whiskers[0][1][0]]
        control = result.of(name, "qa", 0.2)
        assert drawn == pytest.approx([100 * value for value in control.box])
        assert control.gain == pytest.approx(np.mean(control.cf))
    figure = result.figure()
    assert figure is not None
    assert len(figure.axes) == 2


def test_the_same_seeds_give_the_same_result() -> None:
    once, again = (study_prior_controls(DEVELOPMENT, TEST, seeds=(5, 6), resamples=50) for _ in range(2))
    assert once == again
    assert study_prior_controls(DEVELOPMENT, TEST, seeds=(7, 8), resamples=50) != once


def test_answers_of_test_rows_reach_no_fit() -> None:
    wrong = with_other_answers(TEST)
    before, after = (study_prior_controls(DEVELOPMENT, test, seeds=(0,), resamples=50) for test in (TEST, wrong))
    assert [row.changed for row in before.rows] == [row.changed for row in after.rows]
    assert [row.cf for row in before.rows] != [row.cf for row in after.rows]


def test_nothing_feasible_is_counted_as_abstaining() -> None:
    result = study_prior_controls(hopeless_table(), TEST.where(task="mc"), epsilons=(0.1,), seeds=(0,), resamples=50)
    spc = result.of("spc", "mc")
    assert (spc.abstaining, spc.cf, spc.box) == (1, (0.0,), (0.0,) * 5)
    assert is_plain(result)


def test_without_a_seed_there_is_nothing_to_draw() -> None:
    with pytest.raises(UnpriorError, match="at least one seed"):
        study_prior_controls(DEVELOPMENT, TEST, seeds=())
