"""An evaluation as a record for programs."""

from __future__ import annotations

import dataclasses
import json
import math

import pytest

from unprior import Evaluation
from unprior.evaluation.comparison import SideResult, TaskResult
from unprior.evaluation.metrics import Change, Metrics, Share
from unprior.evaluation.statistics import mcnemar

BEFORE = Metrics(cf=Share(100, 200), cs=Share(190, 200), ccr=Share(90, 100), attraction=Share(80, 100))
AFTER = Metrics(cf=Share(120, 200), cs=Share(188, 200), ccr=Share(60, 80), attraction=Share(40, 80))
CF = SideResult(Change(21, 1, 24, 200), 0.0625, 0.1375, mcnemar(21, 1), 2.1e-5)
CS = SideResult(Change(1, 3, 5, 200), -0.03, 0.0, mcnemar(1, 3), 0.625)
TASK = TaskResult("llava", "cdh", "mc", BEFORE, AFTER, CF, CS)


def evaluation(*tasks: TaskResult) -> Evaluation:
    return Evaluation(tasks or (TASK,), level=0.95, resamples=10_000, seed=3)


NOTHING_WRONG = Metrics(cf=Share(5, 5), cs=Share(0, 5), ccr=Share(0, 0), attraction=Share(0, 0))


def test_what_is_undefined_is_null() -> None:
    record = evaluation(dataclasses.replace(TASK, method=NOTHING_WRONG)).record()["tasks"][0]["method"]
    assert record["ccr"] == {"count": 0, "total": 0, "value": None}
    assert (record["rpd"], record["cfad"]) == (None, -1.0)


def test_an_undefined_interval_is_null() -> None:
    side = dataclasses.replace(CS, low=math.nan, high=math.nan)
    record = evaluation(dataclasses.replace(TASK, cs=side)).record()["tasks"][0]["cs"]
    assert (record["low"], record["high"]) == (None, None)


def test_the_record_holds_everything_and_is_strict_json() -> None:
    record = evaluation().record()
    assert json.loads(json.dumps(record, allow_nan=False)) == record
    assert record == {
        "level": 0.95,
        "resamples": 10_000,
        "seed": 3,
        "holm_family": 2,
        "tasks": [
            {
                "model": "llava",
                "benchmark": "cdh",
                "task": "mc",
                "original": {
                    "cf": {"count": 100, "total": 200, "value": 0.5},
                    "cs": {"count": 190, "total": 200, "value": 0.95},
                    "ccr": {"count": 90, "total": 100, "value": 0.9},
                    "attraction": {"count": 80, "total": 100, "value": 0.8},
                    "cfad": pytest.approx(0.45),
                    "rpd": pytest.approx(0.45 / 0.95),
                },
                "method": {
                    "cf": {"count": 120, "total": 200, "value": 0.6},
                    "cs": {"count": 188, "total": 200, "value": 0.94},
                    "ccr": {"count": 60, "total": 80, "value": 0.75},
                    "attraction": {"count": 40, "total": 80, "value": 0.5},
                    "cfad": pytest.approx(0.34),
                    "rpd": pytest.approx(0.34 / 0.94),
                },
                "cf": {
                    "delta": 0.1, "low": 0.0625, "high": 0.1375, "repairs": 21, "harms": 1, "changed": 24,
                    "total": 200, "p": mcnemar(21, 1).p_value, "holm_p": 2.1e-5,
                },
                "cs": {
                    "delta": -0.01, "low": -0.03, "high": 0.0, "repairs": 1, "harms": 3, "changed": 5,
                    "total": 200, "p": 0.625, "holm_p": 0.625,
                },
                "utility": pytest.approx(0.095),
            }
        ],
    }  # fmt: skip
