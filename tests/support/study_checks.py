"""What holds for the result of every study."""

from __future__ import annotations

import json

from small_tables import Row, count_changes
from unprior import ScoreTable, SelectivePriorCalibrator
from unprior.studies.common.trade_off import TradeOff
from unprior.studies.result import StudyResult


def is_plain(result: StudyResult) -> bool:
    """Records survive JSON and have the same columns; table and sentences can be made."""
    records = result.records()
    assert json.loads(json.dumps(records, allow_nan=False)) == records
    assert len({tuple(record) for record in records}) == 1
    assert not any(isinstance(value, dict | list) for record in records for value in record.values())
    return bool(result.table.rows) and all(sentence.endswith(".") for sentence in result.sentences)


def with_other_answers(table: ScoreTable) -> ScoreTable:
    """The same rows, but another candidate is right."""
    rows = table.arrow.to_pylist()
    for row in rows:
        row["answer"] = next(name for name in reversed(row["candidates"]) if name != row["answer"])
    return ScoreTable.from_rows(rows)


def finals_row_by_row(calibrator: SelectivePriorCalibrator, rows: list[Row]) -> list[str | None]:
    """Final answers, one example at a time."""
    return [
        calibrator.decide(row["candidates"], row["image_scores"], row["prior_scores"], row["original"]).final
        for row in rows
    ]


def counts(result: TradeOff) -> list[tuple[int, int, int]]:
    """Repairs, harms and rows of both sides."""
    return [(change.repairs, change.harms, change.total) for change in (result.cf, result.cs)]


def expected_counts(rows: list[Row], finals: list[str | None], task: str) -> list[tuple[int, int, int]]:
    """The same by plain loops."""
    return [count_changes(rows, finals, task, side) for side in ("cf", "cs")]
