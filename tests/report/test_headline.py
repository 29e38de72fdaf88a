from __future__ import annotations

import math

from small_tables import hand_made_table
from unprior import Evaluation, evaluate
from unprior.evaluation.comparison import SideResult, TaskResult
from unprior.evaluation.metrics import Change, Metrics, Share
from unprior.evaluation.statistics import mcnemar
from unprior.report.headline import headline, tiles


def task(name: str, cf: tuple[int, int], cs: tuple[int, int]) -> TaskResult:
    """A task of 100 pairs, half right on CF and all but five on CS, with repairs and harms."""
    before = Metrics(Share(50, 100), Share(95, 100), Share(40, 50), Share(40, 50))
    after = Metrics(Share(50 + cf[0] - cf[1], 100), Share(95 + cs[0] - cs[1], 100), Share(1, 2), Share(1, 2))
    sides = [
        SideResult(Change(repairs, harms, repairs + harms, 100), math.nan, math.nan, mcnemar(repairs, harms), 1.0)
        for repairs, harms in (cf, cs)
    ]
    return TaskResult("model", "bench", name, before, after, *sides)


def evaluation(*tasks: TaskResult) -> Evaluation:
    return Evaluation(tasks, 0.95, 10_000, 1)


def test_one_sentence_for_both_tasks() -> None:
    both = evaluation(task("mc", (12, 2), (1, 2)), task("qa", (20, 0), (0, 0)))
    sentence = headline(both, "SPC (standard, ε = 0.04)")
    assert sentence == (
        "On counterfactual images SPC (standard, ε = 0.04) raises accuracy from 50.0 % to 60.0 % (multiple choice) and "
        "from 50.0 % to 70.0 % (yes/no questions), at −1.0 and 0.0 points on commonsense images."
    )


def test_it_does_not_praise_a_loss() -> None:
    assert "SPC lowers accuracy from 50.0 % to 45.0 %" in headline(evaluation(task("mc", (0, 5), (0, 0))))
    mixed = evaluation(task("mc", (0, 5), (0, 0)), task("qa", (5, 0), (0, 0)))
    assert "SPC changes accuracy" in headline(mixed)


def test_abstaining_is_said() -> None:
    sentence = headline(evaluation(task("mc", (0, 0), (0, 0))), "SPC (standard, ε = 0.04)", abstains=True)
    assert sentence.startswith("SPC (standard, ε = 0.04): no setting was feasible")
    assert "abstains" in sentence


def test_no_change_is_said() -> None:
    assert headline(evaluation(task("mc", (0, 0), (0, 0)))) == "SPC changes no answer."


def test_tiles() -> None:
    cf, cs = tiles(evaluation(task("mc", (12, 2), (1, 2))))
    assert (cf.delta, cf.before, cf.after, cf.interval) == ("+10.0", "50.0 %", "60.0 %", None)
    assert (cf.repairs, cf.harms, cf.p) == (12, 2, "= 0.013")
    assert (cs.side, cs.delta) == ("cs", "−1.0")


def test_a_tiny_p_keeps_its_sign() -> None:
    assert tiles(evaluation(task("mc", (60, 0), (0, 0))))[0].p == "< 1e-16"


def test_intervals_of_a_real_evaluation() -> None:
    table = hand_made_table()
    interval = tiles(evaluate(table, table.answer_positions, resamples=100))[0].interval
    assert interval is not None
    assert " to +100.0" in interval
