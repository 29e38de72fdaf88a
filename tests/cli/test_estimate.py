"""What `unprior score --dry-run` prints."""

from __future__ import annotations

import json

import pytest

from unprior.cli.estimate import cost_record, print_estimate
from unprior.scoring.cost import RunCost

COST = RunCost(200, 527, 35_554, 13_888, 697, 76_313_828, 601_940, 79_172.4)


def test_a_person_sees_totals_and_shares(capsys: pytest.CaptureFixture[str]) -> None:
    print_estimate(COST, 1000)
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert "examples 200" in lines
    assert "requests 527 2.6" in lines
    assert "bytes sent 76,313,828 381,569.1" in lines
    assert "1,000 examples are stored already. Nothing was scored now." in lines


def test_a_program_sees_whole_numbers() -> None:
    record = json.loads(json.dumps(cost_record(COST, 3)))
    assert record["stored"] == 3
    assert (record["examples"], record["requests"], record["stored_bytes"]) == (200, 527, 79_172)


def test_nothing_to_do_is_no_error(capsys: pytest.CaptureFixture[str]) -> None:
    print_estimate(RunCost(), 5)
    assert "5 examples are stored already" in capsys.readouterr().out
