"""What a server decided, from its own log: the answers of one calibrator to the rows that were read from it."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np

from unprior._files import is_parquet, open_to_read, parse_json, read_lines
from unprior.answer_forms import normalize_answer
from unprior.errors import UnpriorError, format_option
from unprior.scores import ScoreTable
from unprior.scores.logged import is_decision
from unprior.scores.schema import NO_ANSWER, IntArray

_ANEW = "or let a calibrator decide anew (`unprior apply`) and give its decisions"


def read_logged_answers(path: Path, table: ScoreTable) -> tuple[IntArray, str]:
    """Positions of the decided answers (-1 for none) to rows that were read from a log, and the calibrator's digest."""
    row_of = {int(line): row for row, line in enumerate(table.lines)}
    final = np.full(len(table), NO_ANSWER, dtype=np.int64)
    calibrators: Counter[str | None] = Counter()
    with open_to_read(path) as stream:
        for number, line in () if is_parquet(stream) else read_lines(stream, path):
            row = row_of.get(number)
            if row is None or not is_decision(record := parse_json(line)):
                continue
            calibrators[record.get("calibrator")] += 1
            final[row] = _position(table, row, record["decided"], f"{path}, line {number}")
    if not calibrators:
        raise UnpriorError(f"{path} holds no decisions; give those that `unprior apply` made of it: SCORES DECISIONS")
    if None in calibrators:
        raise UnpriorError(
            f"{path}: {calibrators[None]:,} of {calibrators.total():,} rows were logged without a calibrator; take the "
            f"decisions of one with {format_option('decided_by')}, {_ANEW}"
        )
    if len(calibrators) > 1:
        shown = ", ".join(f"{name} ({count:,})" for name, count in calibrators.most_common())
        raise UnpriorError(
            f"{path}: several calibrators decided: {shown}; choose one with {format_option('decided_by')}, {_ANEW}"
        )
    return final, str(next(iter(calibrators)))


def _position(table: ScoreTable, row: int, decided: object, place: str) -> int:
    if decided is None:
        return NO_ANSWER
    names = table.candidate_lists[row].as_py()
    if table.is_open[row]:  # forms of one answer were merged
        names, decided = [normalize_answer(name) for name in names], normalize_answer(str(decided))
    if decided not in names:
        raise UnpriorError(f"{place}: the decided answer {decided!r} is not one of the candidates")
    return int(names.index(decided))
