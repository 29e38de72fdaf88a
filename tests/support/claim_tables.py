"""Tables of claims for the studies of claim order and question form."""

from __future__ import annotations

from typing import Any

from unprior import ScoreTable
from unprior.synthetic import synthesize_claims

Row = dict[str, Any]
FORMS = ("contrastive", "instead", "choice", "reject-second")
ORDERS = ("ordinary-first", "atypical-first")


def twelve_claim_pairs(seed: int = 2) -> ScoreTable:
    """Four development and eight test pairs in all forms and orders."""
    return synthesize_claims(seed, pairs=12)


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
