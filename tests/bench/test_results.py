"""The result table of the README, on synthetic worlds."""

from __future__ import annotations

import re
from pathlib import Path

from results import ELSEWHERE, EPSILON, World, judge, methods, results
from unprior import SelectivePriorCalibrator, evaluate, synthesize
from worlds import pool_worlds

TABLES = {seed: synthesize(seed, open_questions=True) for seed in (1, 2)}
ROOT = Path(__file__).parents[2]
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


def test_what_other_pages_measured_is_told_as_they_have_it() -> None:
    pages = {
        name: (ROOT / "docs" / "explanation" / name).read_text("utf-8") for name in ("guarantee.md", "open-answers.md")
    }
    share = re.search(r"\| 70, 0\.04 \| [^|]* \| \S+/(\d\.\d\d) \|", pages["guarantee.md"])
    assert share
    assert f"about {100 * float(share[1]):.0f} %" in ELSEWHERE
    row = next(
        line for line in pages["open-answers.md"].splitlines() if line.startswith("| SPC (standard, ε = 0.04) |")
    )
    *worlds, mean = (float(loss) for loss in re.findall(r" / -(\d+\.\d)", row))
    assert f"lost {mean:.1f} points of CS accuracy on average, and {max(worlds):.1f} in" in ELSEWHERE
    assert ELSEWHERE in (ROOT / "README.md").read_text("utf-8")
