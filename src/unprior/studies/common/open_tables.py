"""Open questions with other candidates or other scores, made of a table with everything that the model proposed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from unprior.errors import UnpriorError
from unprior.scores import ScoreTable
from unprior.scores.table import FloatArray

FIRST_TOKEN = ("first-token-image", "first-token-text")
"""Views with the log-probability of the first token of every candidate, with the image and without."""
TEXT_ONLY = "text"
"""Source of a candidate that only the model without the image proposed."""


def limit_candidates(table: ScoreTable, count: int, *, from_text: bool = True) -> ScoreTable:
    """Keep so many candidates of every open row: original answer, answer without the image, best with the image.

    Parameters
    ----------
    table
        Open rows with all candidates and their sources.
    count
        How many to keep.
    from_text
        Whether the answer without the image is one of them, also where the search with the image did not find it.
    """
    kept = [_kept(row, count, from_text) for row in table.arrow.select(_COLUMNS).to_pylist()]
    changed = table
    for name in (*_LISTS, "views"):
        take = _views_taken if name == "views" else _taken
        column = [take(value, places) for value, places in zip(table.column(name), kept, strict=True)]
        changed = changed.with_column(name, column)
    return ScoreTable.from_arrow(changed.arrow, source="open questions", provenance=table.provenance)


_LISTS = ("candidates", "image_scores", "prior_scores", "token_counts", "censored", "sources")
_COLUMNS = ["candidates", "image_scores", "original", "sources"]


def _kept(row: dict[str, Any], count: int, from_text: bool) -> list[int]:
    scores, sources = row["image_scores"], row["sources"] or [""] * len(row["candidates"])
    places = sorted(range(len(scores)), key=lambda place: -scores[place])
    if not from_text:
        places = [place for place in places if sources[place] != TEXT_ONLY]
    first = [place for place in places if row["candidates"][place] == row["original"]]
    first += [place for place in places if from_text and TEXT_ONLY in sources[place].split("+")]
    chosen = list(dict.fromkeys([*first, *places]))[:count]
    return [place for place in places if place in chosen]


def _taken(value: Any, places: Sequence[int]) -> Any:
    return None if value is None else [value[place] for place in places]


def _views_taken(value: Any, places: Sequence[int]) -> dict[str, list[float]] | None:
    return None if value is None else {name: _taken(scores, places) for name, scores in value}


def mean_scores(table: ScoreTable) -> ScoreTable:
    """Both scores divided by the number of tokens of every candidate."""
    counts = np.concatenate([np.asarray(each, dtype=np.float64) for each in table.column("token_counts")])
    return table.with_image_scores(table.image_scores / counts).with_prior_scores(table.prior_scores / counts)


def has_token_counts(table: ScoreTable) -> bool:
    """Whether every candidate has a number of tokens."""
    return all(counts and min(counts) > 0 for counts in table.column("token_counts"))


def has_sources(table: ScoreTable) -> bool:
    """Whether every row says who proposed its candidates, and none would be left without any."""
    return all(sources and set(sources) != {TEXT_ONLY} for sources in table.column("sources"))


def first_token_scores(table: ScoreTable) -> ScoreTable:
    """Log-probabilities of the first tokens in place of both scores."""
    image, prior = (_view(table, name) for name in FIRST_TOKEN)
    return table.with_image_scores(image).with_prior_scores(prior)


def has_first_tokens(table: ScoreTable) -> bool:
    """Whether every row knows the scores of first tokens."""
    return all(set(FIRST_TOKEN) <= {name for name, _ in entry or ()} for entry in table.column("views"))


def _view(table: ScoreTable, name: str) -> FloatArray:
    lists = [dict(entry or ()).get(name) for entry in table.column("views")]
    if any(each is None for each in lists):
        raise UnpriorError(f"the open questions have no view {name}; score them with the transformers engine")
    return np.concatenate([np.asarray(each, dtype=np.float64) for each in lists])
