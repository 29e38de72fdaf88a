"""A judge of open answers: a function of your own that is asked beside the comparison of texts."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from typing import TypeAlias

import numpy as np

from unprior.answer_forms import normalize_answer
from unprior.errors import UnpriorError, wrong_type
from unprior.scores.checked import require_table
from unprior.scores.open_rows import accepted_forms
from unprior.scores.table import ScoreTable

Judge: TypeAlias = Callable[[str, str, tuple[str, ...], str | None], bool]
"""``judge(text, answer, aliases, question)``: whether a text is right, too.

It gets the text, the right answer, its aliases, and the question where it is known; score tables do not hold it. It is
asked only about texts that are no form of the right answer or of an alias, and must give True or False.
"""


def judge_answers(table: ScoreTable, judge: Judge) -> ScoreTable:
    """Accept further candidates of open questions as right: those that your own function accepts.

    By default an answer is right if it is a form of the right answer or of an alias. A judge may know more, such as
    synonyms and units. It is asked about every other candidate; what it accepts becomes an alias.

    Parameters
    ----------
    table
        Rows with answers; closed rows are left alone.
    judge
        A function ``judge(text, answer, aliases, question)``, see :data:`Judge`. The question is None here.

    >>> row = {"pair_id": 1, "side": "cf", "task": "open", "candidates": ["crimson", "green"], "original": "crimson",
    ...        "image_scores": [-0.4, -1.2], "prior_scores": [-2.0, -0.2], "answer": "red"}
    >>> def knows_crimson(text, answer, aliases, question):
    ...     return (text, answer) == ("crimson", "red")
    >>> judged = judge_answers(ScoreTable.from_rows([row]), knows_crimson)
    >>> judged.answer.tolist(), judged.column("aliases")
    (['crimson'], [['crimson', 'red']])
    """
    require_table(table)
    require_judge(judge)
    values: list[list[str] | None] = table.column("aliases")
    for row in np.flatnonzero(table.is_open & table.is_labelled).tolist():
        answer, aliases = table.answer[row], values[row] or []
        accepted = accepted_forms(answer, aliases)
        offered = [text for text in table.candidate_lists[row].as_py() if normalize_answer(text) not in accepted]
        if more := [text for text in offered if ask_judge(judge, text, answer, aliases)]:
            values[row] = [*aliases, *more]
    return table.with_column("aliases", values)


def require_judge(judge: object) -> None:
    """Refuse what cannot judge.

    >>> require_judge(lambda text, answer: True)
    Traceback (most recent call last):
        ...
    unprior.errors.UnpriorError: judge <lambda> must take four arguments: (text, answer, aliases, question)
    """
    if not callable(judge):
        raise wrong_type("judge", judge, "a function of text, answer, aliases and question")
    try:
        inspect.signature(judge).bind("", "", (), None)
    except TypeError:
        raise UnpriorError(
            f"judge {judge_name(judge)} must take four arguments: (text, answer, aliases, question)"
        ) from None
    except ValueError:
        pass  # some functions do not tell what they take


def ask_judge(judge: Judge, text: str, answer: str, aliases: Iterable[str], question: str | None = None) -> bool:
    """The verdict about a text; anything but True and False is refused, for a text such as “no” would count as yes."""
    verdict = judge(text, answer, tuple(aliases), question)
    if not isinstance(verdict, bool | np.bool_):
        raise UnpriorError(
            f"judge {judge_name(judge)} gave {verdict!r} for {text!r} (right: {answer!r}); let it return True or False"
        )
    return bool(verdict)


def judge_name(judge: object) -> str:
    """What results call a judge.

    >>> judge_name(normalize_answer)
    'normalize_answer'
    """
    return str(getattr(judge, "__name__", type(judge).__name__))
