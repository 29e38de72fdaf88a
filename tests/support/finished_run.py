"""A finished run to report on, and the arguments of `write_report` by name."""

from __future__ import annotations

from typing import Any

from unprior.runs.result import RunResult


def parts(result: RunResult) -> dict[str, Any]:
    """What the page is made of."""
    return {name: getattr(result, name) for name in ("calibrator", "decisions", "evaluation", "studies")}
