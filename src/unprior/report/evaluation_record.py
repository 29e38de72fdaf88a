"""An evaluation as a record for programs."""

from __future__ import annotations

import math
from typing import Any

from unprior.evaluation import Evaluation, Metrics, SideResult


def evaluation_record(evaluation: Evaluation) -> dict[str, Any]:
    """Everything in the tables, for programs; what is undefined is null.

    >>> from unprior import evaluate, synthesize
    >>> table = synthesize(seed=0)
    >>> evaluation_record(evaluate(table, table.original))["tasks"][0]["utility"]
    0.0
    """
    return {
        "level": evaluation.level,
        "resamples": evaluation.resamples,
        "seed": evaluation.seed,
        "holm_family": evaluation.family,
        "tasks": [
            {
                "model": task.model,
                "benchmark": task.benchmark,
                "task": task.task,
                "original": _metrics_record(task.original),
                "method": _metrics_record(task.method),
                "cf": _side_record(task.cf),
                "cs": _side_record(task.cs),
                "utility": task.utility,
            }
            for task in evaluation.tasks
        ],
    }


def _metrics_record(metrics: Metrics) -> dict[str, Any]:
    shares = {"cf": metrics.cf, "cs": metrics.cs, "ccr": metrics.ccr, "attraction": metrics.attraction}
    record: dict[str, Any] = {
        name: {"count": share.count, "total": share.total, "value": _defined(share.value)}
        for name, share in shares.items()
    }
    return record | {"cfad": _defined(metrics.cfad), "rpd": _defined(metrics.rpd)}


def _side_record(result: SideResult) -> dict[str, Any]:
    return {
        "delta": result.change.delta,
        "low": _defined(result.low),
        "high": _defined(result.high),
        "repairs": result.change.repairs,
        "harms": result.change.harms,
        "changed": result.change.changed,
        "total": result.change.total,
        "p": result.test.p_value,
        "holm_p": result.holm_p,
    }


def _defined(value: float) -> float | None:
    return None if math.isnan(value) else value
