"""The same questions with their options in other places."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from unprior.errors import UnpriorError
from unprior.evaluation import Share
from unprior.scores import ScoreTable
from unprior.scores.schema import BoolArray, IntArray

Order = tuple[int, ...]
"""Which old option stands at each new place."""
Answers = Mapping[Order, IntArray]
"""Candidate positions by order, for the same questions."""


@dataclass(frozen=True, slots=True)
class OrderAgreement:
    """Questions whose answer means the same in every order."""

    epsilon: float | None
    """None for the original answers."""
    cf: Share
    cs: Share


def order_label(order: Sequence[int]) -> str:
    """The paper's name of an order.

    >>> [order_label(order) for order in ((0, 1, 2, 3), (1, 2, 3, 0), (2, 3, 0, 1), (3, 2, 1, 0), (1, 0, 2, 3))]
    ['Original', 'Rotation 1', 'Rotation 2', 'Reversal', 'B, A, C, D']
    """
    places = list(range(len(order)))
    for turns in places:
        if list(order) == places[turns:] + places[:turns]:
            return f"Rotation {turns}" if turns else "Original"
    return "Reversal" if list(order) == places[::-1] else ", ".join("ABCDEFGHIJ"[old] for old in order)


def agreement(epsilon: float | None, choices: ScoreTable, answers: Answers) -> OrderAgreement:
    """How often answers agree in all orders, after letters are mapped back to the original options."""
    meanings = np.stack([np.where(given < 0, -1, np.array(order)[given]) for order, given in answers.items()])
    same = (meanings == meanings[0]).all(axis=0) & (meanings[0] >= 0)
    return OrderAgreement(epsilon, *shares_by_side(choices, same))


def shares_by_side(table: ScoreTable, which: BoolArray) -> tuple[Share, Share]:
    """How many rows of the CF and of the CS images are marked."""
    cf, cs = (Share(int((which & side).sum()), int(side.sum())) for side in (table.is_cf, ~table.is_cf))
    return cf, cs


def read_order(name: str) -> Order:
    """Which old option stands at each new place, from a name such as ``order-1230``.

    >>> read_order("order-1230")
    (1, 2, 3, 0)
    """
    order = tuple(int(place) for place in name.rpartition("-")[2] if place.isdigit())
    if not order or sorted(order) != list(range(len(order))):
        raise UnpriorError(f"{name!r} does not name an order of options; it is called like order-1230")
    return order


def aligned(choices: ScoreTable, other: ScoreTable, name: str) -> ScoreTable:
    """Rows of another order in the order of the original questions."""

    def keys(table: ScoreTable) -> list[tuple[Any, ...]]:
        return list(zip(*(table.column(column) for column in ("pair_id", "side", "example_id")), strict=True))

    places = {key: place for place, key in enumerate(keys(other))}
    lacking = [key for key in keys(choices) if key not in places]
    if lacking:
        raise UnpriorError(
            f"{name}: {len(lacking)} of {len(choices)} test questions are not there (first: pair {lacking[0][0]}, "
            f"{lacking[0][1]}); prepare the order again from the same benchmark"
        )
    return other.take(np.array([places[key] for key in keys(choices)]))
