"""Tables of claims for the studies of claim order and question form."""

from __future__ import annotations

from typing import Any

import numpy as np

from unprior import ScoreTable
from unprior.synthetic import synthesize_claims

Row = dict[str, Any]
FORMS = ("contrastive", "instead", "choice", "reject-second")
ORDERS = ("ordinary-first", "atypical-first")


def twelve_claim_pairs(seed: int = 2) -> ScoreTable:
    """Four development and eight test pairs in all forms and orders."""
    return synthesize_claims(seed, pairs=12)


def with_claim_views(table: ScoreTable, seed: int = 5) -> ScoreTable:
    """With the canonical scores of such a table, which are those of the contrastive form.

    The prior between the claims as options prefers the first option a little. It contradicts the canonical prior in
    some pairs.
    """
    generator = np.random.default_rng(seed)
    noise = {pair: generator.normal(0.0, 0.5) for pair in sorted(set(table.column("pair_id")))}
    rows = table.arrow.to_pylist()
    own = {(row["pair_id"], row["side"], row["claim_order"]): row for row in rows if row["form"] == FORMS[0]}
    return ScoreTable.from_rows([row | {"views": _claim_views(row, own, noise[row["pair_id"]])} for row in rows])


def _claim_views(row: Row, own: dict[tuple[Any, ...], Row], noise: float) -> dict[str, list[float]]:
    places = {"first": row["claim_order"], "second": ORDERS[1 - ORDERS.index(row["claim_order"])]}
    ordinary = [_odds(own[row["pair_id"], row["side"], order]["prior_scores"]) for order in ORDERS]
    preference = (ordinary[0] - ordinary[1]) / 2 + noise
    views: dict[str, list[float]] = {}
    for place, order in places.items():
        asked = own[row["pair_id"], row["side"], order]
        views[f"canonical-image-{place}"] = asked["image_scores"]
        views[f"canonical-text-{place}"] = asked["prior_scores"]
        views[f"options-text-{place}"] = [0.2 + (preference if order == ORDERS[0] else -preference), 0.0]
    return views


def _odds(scores: list[float]) -> float:
    return scores[0] - scores[1]


def cell(rows: list[Row], form: str, order: str, side: str) -> list[int]:
    """Places of rows, in the order of the pairs."""
    return [
        index
        for index, row in enumerate(rows)
        if row["example_id"] == f"{row['pair_id']}-{side}-{form}-{order}" and row["side"] == side
    ]


def with_wrong_test_answers(table: ScoreTable) -> ScoreTable:
    """The same rows with the other answer called right on the test pairs."""
    other = {"yes": "no", "no": "yes"}
    rows = table.arrow.to_pylist()
    return ScoreTable.from_rows(
        [row | {"answer": other[row["answer"]]} if row["split"] == "test" else row for row in rows]
    )


def hopeless_claims() -> ScoreTable:
    """Original answers are all right and image and prior disagree wrongly, so that SPC abstains."""
    sharp, wrong = [-0.1, -9.0], [-9.0, -0.1]
    return ScoreTable.from_rows(
        [
            row | {
                "original": row["answer"],
                "prior_scores": sharp if row["answer"] == "yes" else wrong,
                "image_scores": wrong if row["answer"] == "yes" else sharp,
            }
            for row in twelve_claim_pairs().arrow.to_pylist()
        ]
    )  # fmt: skip
