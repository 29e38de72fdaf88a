"""Open answers judged by a function of your own, beside the comparison of texts."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from unprior.answer_forms import normalize_answer
from unprior.errors import UnpriorError, wrong_type
from unprior.scores.checked import require_table
from unprior.scores.open_rows import accepted_forms
from unprior.scores.table import ScoreTable


def judge_answers(table: ScoreTable, judge: Callable[[str, str], bool]) -> ScoreTable:
    """Accept further candidates of open questions as right: those that your own function accepts.

    By default an answer is right if it is a form of the right answer or of an alias. A judge may know more, such as
    synonyms and units. It is asked about every other candidate; what it accepts becomes an alias.

    Parameters
    ----------
    table
        Rows with answers; closed rows are left alone.
    judge
        Called with a candidate and the right answer; whether the candidate is right, too.

    >>> row = {"pair_id": 1, "side": "cf", "task": "open", "candidates": ["crimson", "green"], "original": "crimson",
    ...        "image_scores": [-0.4, -1.2], "prior_scores": [-2.0, -0.2], "answer": "red"}
    >>> judged = judge_answers(ScoreTable.from_rows([row]), lambda given, right: (given, right) == ("crimson", "red"))
    >>> judged.answer.tolist(), judged.column("aliases")
    (['crimson'], [['crimson', 'red']])
    """
    require_table(table)
    if not callable(judge):
        raise wrong_type("judge", judge, "a function of a candidate and the right answer")
    values: list[list[str] | None] = table.column("aliases")
    for row in np.flatnonzero(table.is_open & table.is_labelled).tolist():
        answer = table.answer[row]
        accepted = accepted_forms(answer, values[row])
        offered = [text for text in table.candidate_lists[row].as_py() if normalize_answer(text) not in accepted]
        if more := [text for text in offered if _verdict(judge(text, answer), text)]:
            values[row] = [*(values[row] or ()), *more]
    return table.with_column("aliases", values)


def _verdict(given: object, text: str) -> bool:
    """A text such as “no” would count as yes."""
    if not isinstance(given, bool | np.bool_):
        raise UnpriorError(f"the judge gave {given!r} for {text!r}; let it return True or False")
    return bool(given)
