from __future__ import annotations

import json

import numpy as np
import pytest

from small_tables import corrected_winner, count_changes, hand_made_rows, hand_made_table
from unprior.baselines.controls import fixed_strength_answers
from unprior.studies.common.trade_off import trade_offs


@pytest.mark.parametrize("strength", [0.0, 0.3, 0.8, 2.0])
def test_fixed_strength_against_plain_loops(strength: float) -> None:
    table, rows = hand_made_table(), hand_made_rows()
    answers = fixed_strength_answers(table, strength)
    finals = [corrected_winner(row, strength) for row in rows]
    assert table.candidate_names(answers) == finals
    for result in trade_offs(table, answers):
        for side, change in (("cf", result.cf), ("cs", result.cs)):
            assert (change.repairs, change.harms, change.total) == count_changes(rows, finals, result.task, side)


def test_all_right_answers() -> None:
    table = hand_made_table()
    mc, qa = trade_offs(table, table.answer_positions)
    assert (mc.task, mc.cf.repairs, mc.cf.delta, mc.cs.delta) == ("mc", 4, 0.8, 0.0)
    assert (qa.task, qa.cf.delta, qa.utility) == ("qa", 1.0, 1.0)


def test_the_record_is_plain() -> None:
    table = hand_made_table()
    record = trade_offs(table, np.zeros(len(table), dtype=np.int64))[0].record()
    assert json.loads(json.dumps(record, allow_nan=False)) == record
    assert record["cf_total"] == 5
