"""The result table of the README, on synthetic worlds."""

from __future__ import annotations

import re

from results import EPSILON, World, judge, methods, results
from unprior import SelectivePriorCalibrator, evaluate, synthesize
from worlds import pool_worlds

TABLES = {seed: synthesize(seed, open_questions=True) for seed in (1, 2)}
WORLDS = [World(seed, table, table) for seed, table in TABLES.items()]


def test_pairs_of_different_worlds_stay_apart() -> None:
    pooled = pool_worlds([each.where(split="test") for each in TABLES.values()])
    assert len(set(pooled.column("pair_id"))) == 2 * 230


def test_changes_add_up_over_worlds() -> None:
    outcome = judge(WORLDS, SelectivePriorCalibrator(epsilon_cs=EPSILON))
    repairs = 0
    for table in TABLES.values():
        test = table.where(split="test", task="qa")
        decisions = SelectivePriorCalibrator(epsilon_cs=EPSILON).fit(table).predict(test)
        repairs += evaluate(test, decisions).tasks[0].cf.change.repairs
    assert outcome.task("qa").cf.change.repairs == repairs > 0
    assert outcome.task("qa").cf.change.total == 2 * 230


def test_every_method_has_a_row_for_every_kind_of_question() -> None:
    text = results(WORLDS)
    rows = [line for line in text.splitlines() if re.match(r"\| (\*\*|SPC|certified)", line)]
    assert len(rows) == 3 * (1 + len(methods()))
    assert "worlds 1 and 2: 460 test pairs" in text
    assert re.search(r"in \d of 6 cases", text)
