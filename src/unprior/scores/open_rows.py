"""Rows of open questions: written forms of one answer are one candidate, and the right answer may have aliases.

A model spreads the probability of one answer over its forms: “six fingers”, “6 fingers”, “Six fingers.”. Their
probabilities add up, with the image and without it, so their scores are merged by log-sum-exp. Only then do candidates
stand for different answers, and the number of forms that happened to be proposed changes no decision.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from unprior.answer_forms import group_forms, normalize_answer
from unprior.errors import UnpriorError
from unprior.scores.schema import BoolArray, IntArray, open_rows

_COLUMNS = (
    "candidates", "image_scores", "prior_scores", "views", "token_counts", "censored", "original", "answer", "aliases",
    "sources",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class MergedForms:
    """Candidates of which none is a form of another."""

    labels: list[str]
    """The form with the best image score, without space around it, by candidate."""
    chosen: list[int]
    """Where that form stood."""
    members: list[list[int]]
    """Where all forms stood."""
    scores: list[list[float]]
    """Every given list of scores, merged."""


def merge_forms(candidates: Sequence[str], image_scores: Sequence[float], *others: Sequence[float]) -> MergedForms:
    """Merge written forms of one answer by log-sum-exp, in the order of their first members.

    Where two answers have equal scores, their order would decide, and it means nothing: such candidates are put into
    an order of their own, the best image score first and equal ones by their text.

    Parameters
    ----------
    candidates
        Answers as they were written, with or without a space before them. One text that stands there twice counts
        once, with the scores of the place that has the better image score.
    image_scores
        Their summed log-probabilities with the image.
    others
        Other scores of the same candidates, such as those without the image.

    >>> merged = merge_forms(["six", "five", "6"], [-1.0, -1.5, -1.0], [-3.0, -0.5, -3.0])
    >>> merged.labels, [[round(score, 3) for score in scores] for scores in merged.scores]
    (['6', 'five'], [[-0.307, -1.5], [-2.307, -0.5]])
    """
    if any(len(scores) != len(candidates) for scores in (image_scores, *others)):
        raise UnpriorError(f"there are {len(candidates)} candidates; give as many scores in every list")
    groups = group_forms(candidates)
    chosen, counted = [], []
    for group in groups:
        once: dict[str, int] = {}
        for place in group:
            earlier = once.get(candidates[place])
            if earlier is None or image_scores[place] > image_scores[earlier]:
                once[candidates[place]] = place
        counted.append(sorted(once.values()))
        chosen.append(min(counted[-1], key=lambda place: (-image_scores[place], candidates[place])))
    scores = [[_log_sum(each[place] for place in places) for places in counted] for each in (image_scores, *others)]
    order = list(range(len(groups)))
    if any(len(set(each)) < len(each) for each in scores[:2]):
        order.sort(key=lambda place: (-scores[0][place], normalize_answer(candidates[chosen[place]])))
    return MergedForms(
        [candidates[chosen[place]].strip() for place in order],
        [chosen[place] for place in order],
        [groups[place] for place in order],
        [[each[place] for place in order] for each in scores],
    )


def _log_sum(scores: Iterable[float]) -> float:
    """Logarithm of summed probabilities; the order makes no difference, and a single score stays what it is."""
    values = list(scores)
    if len(values) == 1:
        return values[0]
    top = max(values)
    return top + math.log(math.fsum(math.exp(value - top) for value in values))


def merge_open_rows(table: pa.Table) -> pa.Table:
    """Merge the candidates of valid open rows; other rows, and open rows with nothing to merge, stay as they are."""
    rows = np.flatnonzero(open_rows(table.column("task")))
    if len(rows) == 0:
        return table
    given = table.select(list(_COLUMNS)).take(pa.array(rows)).to_pylist()
    merged = [_merge_row(row) for row in given]
    changed = np.array([new != old for new, old in zip(merged, given, strict=True)])
    if not changed.any():
        return table
    place = np.arange(len(table))  # of every row in: all rows as they were, then those that changed
    place[rows[changed]] = len(table) + np.arange(int(changed.sum()))
    kept = [new for new, is_new in zip(merged, changed.tolist(), strict=True) if is_new]
    for name in _COLUMNS:
        field = table.schema.field(name)
        column = pa.chunked_array([*table.column(name).chunks, pa.array([row[name] for row in kept], field.type)])
        index = table.schema.get_field_index(name)
        table = table.set_column(index, field, column.take(pa.array(place)).combine_chunks())
    return table


def _merge_row(row: dict[str, Any]) -> dict[str, Any]:
    views = dict(row["views"] or ())
    merged = merge_forms(row["candidates"], row["image_scores"], row["prior_scores"], *views.values())
    image, prior, *others = merged.scores
    forms = [normalize_answer(row["candidates"][places[0]]) for places in merged.members]
    label_of = dict(zip(forms, merged.labels, strict=True))
    counts, bounds, original, sources = (row[name] for name in ("token_counts", "censored", "original", "sources"))
    answer, aliases = _name_answer(row["answer"], row["aliases"], dict(zip(forms, image, strict=True)), label_of)
    return {
        "candidates": merged.labels,
        "image_scores": image,
        "prior_scores": prior,
        "views": None if row["views"] is None else list(zip(views, others, strict=True)),
        "token_counts": None if counts is None else [counts[place] for place in merged.chosen],
        "censored": None if bounds is None else [any(bounds[place] for place in each) for each in merged.members],
        "original": None if original is None else label_of[normalize_answer(original)],
        "answer": answer,
        "aliases": aliases,
        "sources": None
        if sources is None
        else [_joined([sources[place] for place in each]) for each in merged.members],
    }


def _joined(sources: Sequence[str]) -> str:
    """Everybody who proposed one of several forms.

    >>> _joined(["original+image", "image", "text"])
    'original+image+text'
    """
    return "+".join(dict.fromkeys(part for each in sources for part in each.split("+")))


def _name_answer(
    answer: str | None, aliases: list[str] | None, image: dict[str, float], label_of: dict[str, str]
) -> tuple[str | None, list[str] | None]:
    """The right answer by the label of a candidate, if one is right: of several the one that the image supports most.

    The given text stays right: it is kept among the aliases where the label is another answer.
    """
    if answer is None:
        return answer, aliases
    right = [form for form in accepted_forms(answer, aliases) if form in image]
    if not right:
        return answer, aliases
    best = max((form for form in image if form in right), key=image.__getitem__)
    others = aliases or []
    if best != normalize_answer(answer) and normalize_answer(answer) not in map(normalize_answer, others):
        aliases = [*others, answer]
    return label_of[best], aliases


def accepted_forms(answer: str, aliases: Iterable[str] | None) -> frozenset[str]:
    """What a right answer is after :func:`~unprior.answer_forms.normalize_answer`.

    >>> sorted(accepted_forms("Six fingers.", ["6"]))
    ['6', '6 fingers']
    """
    return frozenset(normalize_answer(each) for each in (answer, *(aliases or ())))


def right_cells(table: pa.Table, offsets: IntArray) -> BoolArray | None:
    """Which candidates, flattened, are right answers of open rows with aliases; None where no row has aliases."""
    aliases = table.column("aliases")
    if aliases.null_count == len(table):
        return None
    found = np.zeros(int(offsets[-1]), dtype=np.bool_)
    for row in np.flatnonzero(aliases.is_valid().to_numpy()).tolist():
        answer = table.column("answer")[row].as_py()
        if answer is not None:
            accepted = accepted_forms(answer, aliases[row].as_py())
            texts = table.column("candidates")[row].as_py()
            found[offsets[row] : offsets[row + 1]] = [normalize_answer(text) in accepted for text in texts]
    return found
