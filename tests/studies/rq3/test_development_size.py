from __future__ import annotations

import json

import pytest
from matplotlib.container import ErrorbarContainer

import straightforward
from small_tables import count_changes, few_pairs, hopeless_table, with_other_answers
from unprior import ScoreTable, UnpriorError
from unprior.benchmarks.splits import nested_development
from unprior.evaluation import Change
from unprior.plots.style import DARK
from unprior.studies.common.resplit import outline
from unprior.studies.common.trade_off import TradeOff
from unprior.studies.rq3.development_size import DevelopmentSize, SizeRun, study_development_size


@pytest.fixture(scope="module")
def table() -> ScoreTable:
    return few_pairs(development=2, test=2)


def test_every_set_against_plain_loops(table: ScoreTable) -> None:
    result = study_development_size(table, seeds=(0, 1), sizes=(1, 2))
    rows = table.arrow.to_pylist()
    judged = [row for row in rows if row["split"] == "test"]
    assert [(run.per_subcategory, run.seed, run.pairs) for run in result.runs] == [
        (1, 0, 3), (1, 1, 3), (2, 0, 6), (2, 1, 6),
    ]  # fmt: skip
    for run in result.runs[:3]:
        nested = nested_development(outline(table), run.seed)[run.per_subcategory]
        kept = {each.pair_id for each in nested if each.split == "dev"}
        model = straightforward.fit([row for row in rows if row["pair_id"] in kept], epsilon_cs=0.1, uncertainty=True)
        finals = [straightforward.decide(model, row)["final"] for row in judged]
        for task in run.tasks:
            for side, change in (("cf", task.cf), ("cs", task.cs)):
                assert (change.repairs, change.harms, change.total) == count_changes(judged, finals, task.task, side)
    assert result.runs[2].tasks == result.runs[3].tasks, "the whole set is the same for every seed"


def test_test_answers_are_not_looked_at(table: ScoreTable) -> None:
    mine = study_development_size(table, seeds=(0,), sizes=(1,))
    theirs = study_development_size(with_other_answers(table, split="test"), seeds=(0,), sizes=(1,))
    assert [task.cf.changed for task in mine.runs[0].tasks] == [task.cf.changed for task in theirs.runs[0].tasks]
    assert mine == study_development_size(table, seeds=(0,), sizes=(1,)), "the same twice"


def made_up(gains: dict[int, list[int]]) -> DevelopmentSize:
    lost = Change(0, 1, 1, 10)
    runs = [
        SizeRun(size, size, seed, False, (TradeOff("mc", Change(max(gain, 0), max(-gain, 0), 3, 10), lost),))
        for size, of_seeds in gains.items()
        for seed, gain in enumerate(of_seeds)
    ]  # fmt: skip
    return DevelopmentSize(0.1, tuple(runs))


def test_rows_are_means_with_deviations() -> None:
    result = made_up({14: [1, 3], 28: [4, 4]})
    assert [row.cells for row in result.table.rows] == [
        ("14", "+20.0 ± 14.1", "-10.0 ± 0.0"),
        ("28", "+40.0 ± 0.0", "-10.0 ± 0.0"),
    ]
    assert result.sentences == (
        "With 14 development pairs SPC (uncertainty-aware, ε = 0.10) changes CF accuracy by +20.0 ± 14.1 on MC, in "
        "points.",
        "From 14 to 28 pairs the means of SPC (uncertainty-aware, ε = 0.10) move by +20.0 points of ΔCF and +0.0 of "
        "ΔCS on MC.",
        "SPC (uncertainty-aware, ε = 0.10) lowers CF accuracy for no draw of any size.",
    )
    assert made_up({14: [1, -3], 28: [4, 4]}).sentences[-1].startswith("With 14 pairs SPC")
    one = made_up({1: [-3]}).sentences
    assert one[0].startswith("With 1 development pair SPC")
    assert one[-1] == "With 1 pair SPC (uncertainty-aware, ε = 0.10) lowers CF accuracy for some draw."
    assert len(json.loads(json.dumps(result.records(), allow_nan=False))) == 4


def test_lines_are_the_means() -> None:
    (axes,) = made_up({14: [1, 3], 28: [4, 4]}).plot(style=DARK)
    cf = axes.containers[0]
    assert isinstance(cf, ErrorbarContainer)
    line, _, (bars,) = cf
    assert list(line.get_xdata()) == [14, 28]
    assert list(line.get_ydata()) == pytest.approx([20.0, 40.0])
    assert [round(high - low, 2) for (_, low), (_, high) in bars.get_segments()] == [28.28, 0.0]
    assert made_up({14: [1]}).figure() is not None


def test_where_every_change_harms_nothing_is_changed() -> None:
    rows = hopeless_table().arrow.to_pylist()
    for row in rows:
        row |= {"split": "dev" if row["pair_id"] < 2 else "test", "subcategory": "Hands"}
    result = study_development_size(ScoreTable.from_rows(rows), seeds=(0,), sizes=(1, 2))
    assert result.table.rows[0].cells == ("1", "+0.0", "+0.0")


def test_a_table_without_subcategories_is_refused(table: ScoreTable) -> None:
    rows = [row | {"subcategory": None} for row in table.arrow.to_pylist()]
    with pytest.raises(UnpriorError, match="column 'subcategory'"):
        study_development_size(ScoreTable.from_rows(rows), seeds=(0,), sizes=(1,))
