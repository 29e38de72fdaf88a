"""Answers as texts: which candidate each of them is, and whether it is right, also where it is no candidate at all."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from unprior.answer_forms import is_accepted, normalize_answer
from unprior.scores import ScoreTable
from unprior.scores.open_rows import accepted_forms
from unprior.scores.schema import (
    OTHER_ANSWER,
    OTHER_ORDINARY_ANSWER,
    OTHER_RIGHT_ANSWER,
    BoolArray,
    IntArray,
    position_in_row,
)


def text_positions(table: ScoreTable, texts: Sequence[str | None]) -> IntArray:
    """Candidate position of every answer: -1 for none, and for other texts what is known about them.

    An answer to an open question is the candidate of which it is a form, or a right candidate where it is right.
    Another text may be right all the same (``OTHER_RIGHT_ANSWER``), or, on a counterfactual image, a form or an alias
    of the right answer to the commonsense image of its pair (``OTHER_ORDINARY_ANSWER``). Every other text, and every
    text in a row that is no open question, is a stranger: ``OTHER_ANSWER``.

    >>> table = ScoreTable.from_rows([{"pair_id": 1, "side": "cf", "task": "open", "candidates": ["6 fingers", "five"],
    ...     "image_scores": [0, -1], "prior_scores": [0, -1], "original": "five", "answer": "6 fingers"}] * 3)
    >>> text_positions(table, ["Six fingers.", "5", "a hand"]).tolist()
    [0, 1, -2]
    """
    position = position_in_row(pa.array(texts, pa.string()), table.candidate_lists)
    unknown = np.flatnonzero((position == OTHER_ANSWER) & table.is_open).tolist()
    if unknown:
        answers, aliases, ordinary = table.column("answer"), right_aliases(table), _ordinary_forms(table)
        for row in unknown:
            right = [] if answers[row] is None else [answers[row], *aliases[row]]
            position[row] = _place(str(texts[row]), table.candidate_lists[row].as_py(), right)
            if position[row] == OTHER_ANSWER and normalize_answer(str(texts[row])) in ordinary[row]:
                position[row] = OTHER_ORDINARY_ANSWER
    return position


def _ordinary_forms(table: ScoreTable) -> list[frozenset[str]]:
    """Forms of the commonsense answer of each counterfactual row's pair; none where it is lacking."""
    pair, _ = table.codes("model", "benchmark", "task", "pair_id")
    answers, aliases = table.column("answer"), right_aliases(table)
    known: dict[int, frozenset[str]] = {}
    for row in np.flatnonzero(table.is_open & table.is_paired & ~table.is_cf & table.is_labelled).tolist():
        known[int(pair[row])] = known.get(int(pair[row]), frozenset()) | accepted_forms(answers[row], aliases[row])
    return [
        known.get(code, frozenset()) if is_cf else frozenset()
        for code, is_cf in zip(pair.tolist(), table.is_cf.tolist(), strict=True)
    ]


def right_texts(table: ScoreTable, texts: Sequence[str | None]) -> BoolArray:
    """Whether each text is right: the right label, or any form of the right answer or an alias of an open question.

    No text is wrong, and so is every text where the right answer is not known.

    >>> table = ScoreTable.from_rows([{"pair_id": 1, "side": "cf", "task": "qa", "candidates": ["yes", "no"],
    ...     "image_scores": [0, -1], "prior_scores": [0, -1], "original": "yes", "answer": "no"}])
    >>> right_texts(table, ["no"]).tolist(), right_texts(table, [None]).tolist()
    ([True], [False])
    """
    answers, aliases, is_open = table.column("answer"), right_aliases(table), table.is_open
    found = (
        answer is not None and (is_accepted(text, answer, more) if freely else text == answer)
        for text, answer, more, freely in zip(texts, answers, aliases, is_open.tolist(), strict=True)
    )
    return np.fromiter(found, dtype=np.bool_, count=len(table))


def right_aliases(table: ScoreTable) -> list[Sequence[str]]:
    """Other right texts of every row; only open questions have some."""
    return [given or () for given in table.column("aliases")]


def _place(text: str, candidates: Sequence[str], right: Sequence[str]) -> int:
    """Where a text stands among the candidates; one that is right stands for any right candidate."""
    accepted = {normalize_answer(text)}
    right_forms = {normalize_answer(each) for each in right}
    is_right = not accepted.isdisjoint(right_forms)
    if is_right:
        accepted |= right_forms
    forms = [normalize_answer(candidate) for candidate in candidates]
    if normalize_answer(text) in forms:
        return forms.index(normalize_answer(text))
    found = (place for place, form in enumerate(forms) if form in accepted)
    return next(found, OTHER_RIGHT_ANSWER if is_right else OTHER_ANSWER)
