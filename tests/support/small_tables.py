"""Score tables small enough to be checked by hand or by plain loops."""

from __future__ import annotations

from functools import cache
from typing import Any

from unprior import ScoreTable, SelectivePriorCalibrator, synthesize

Row = dict[str, Any]
synthetic = cache(synthesize)
"""A synthetic table, drawn once for all tests that do not change it."""


def example(
    pair: int, side: str, image: list[float], prior: list[float], original: str | None, answer: str, **more: Any
) -> Row:
    """A multiple-choice row (yes/no with two scores)."""
    labels = ["yes", "no"] if len(image) == 2 else ["A", "B", "C", "D"][: len(image)]
    return {
        "model": "by hand",
        "benchmark": "small",
        "pair_id": pair,
        "side": side,
        "task": "qa" if len(image) == 2 else "mc",
        "split": "test",
        "candidates": labels,
        "image_scores": image,
        "prior_scores": prior,
        "original": original,
        "answer": answer,
    } | more


def hand_made_rows() -> list[Row]:
    """Five pairs with three candidates and two with two; four wrong MC answers, of which one is the prior's winner."""
    to_a, to_b = [-0.2, -2.0, -4.0], [-3.0, -0.2, -4.0]
    hands, hats = ({"category": "Counting", "subcategory": name} for name in ("Hands", "Hats"))
    return [
        example(1, "cf", [-1.0, -1.2, -5.0], to_a, "A", "B", **hands),  # wrong, and the prior's winner
        example(1, "cs", [-0.2, -3.0, -4.0], to_a, "A", "A", **hands),
        example(2, "cf", [-2.0, -1.0, -0.9], to_a, "C", "B", **hands),  # wrong, but not the prior's winner
        example(2, "cs", [-0.2, -2.5, -4.0], to_a, "A", "A", **hands),
        example(3, "cf", [-0.5, -0.6, -3.0], to_b, "A", "B", **hats),  # wrong, though the prior is right
        example(3, "cs", [-0.1, -2.0, -3.0], to_b, "A", "A", **hats),  # the prior's winner is not this answer
        example(4, "cf", [-0.5, -0.4, -3.0], to_a, None, "B", **hats),  # nothing could be parsed
        example(4, "cs", [-0.1, -2.0, -3.0], to_a, "A", "A", **hats),
        example(5, "cf", [-2.5, -0.1, -3.0], to_a, "B", "B", **hats),  # right
        example(5, "cs", [-0.1, -2.0, -3.0], to_a, "A", "A", **hats),
        example(1, "cf", [-0.4, -1.0], [-0.1, -2.4], "yes", "no", **hands),  # wrong, and the prior's winner
        example(1, "cs", [-0.1, -2.6], [-0.1, -2.4], "yes", "yes", **hands),
        example(3, "cf", [-0.6, -0.7], [-1.5, -0.3], "yes", "no", **hats),  # wrong, though the prior is right
        example(3, "cs", [-0.3, -0.9], [-1.5, -0.3], "yes", "yes", **hats),
    ]


def hand_made_table() -> ScoreTable:
    return ScoreTable.from_rows(hand_made_rows())


def twelve_pairs(seed: int = 3) -> ScoreTable:
    """Five development and seven test pairs with both tasks."""
    rows = synthetic(seed=seed).arrow.to_pylist()
    return ScoreTable.from_rows([row for row in rows if row["pair_id"] <= 12])


def corrected_winner(row: Row, strength: float) -> str:
    """The candidate that wins s_I − λ·s_P, the plain way."""
    scores = [image - strength * prior for image, prior in zip(row["image_scores"], row["prior_scores"], strict=True)]
    return str(row["candidates"][scores.index(max(scores))])


def count_changes(rows: list[Row], finals: list[str | None], task: str, side: str) -> tuple[int, int, int]:
    """Repairs, harms and rows of one side of one task."""
    repairs = harms = total = 0
    for row, final in zip(rows, finals, strict=True):
        if (row["task"], row["side"]) == (task, side):
            total += 1
            repairs += row["original"] != row["answer"] and final == row["answer"]
            harms += row["original"] == row["answer"] and final != row["answer"]
    return repairs, harms, total


def hopeless_table() -> ScoreTable:
    """Image and prior disagree and the image is always wrong: every setting harms, so a calibrator abstains."""
    image, prior = [-9.0, -0.1, -9.0, -9.0], [-0.1, -9.0, -9.0, -9.0]
    sides = [(pair, side) for pair in range(4) for side in ("cf", "cs")]
    return ScoreTable.from_rows([example(pair, side, image, prior, "A", "A", split="dev") for pair, side in sides])


def abstaining_calibrator() -> SelectivePriorCalibrator:
    calibrator = SelectivePriorCalibrator().fit(hopeless_table())
    assert calibrator.settings_ is None
    return calibrator


def few_pairs(development: int = 2, test: int = 2, seed: int = 3) -> ScoreTable:
    """Some pairs of one subcategory of each of the three categories, with both tasks."""
    kept = []
    rows = synthetic(seed=seed).arrow.to_pylist()
    for subcategory in ("Body Parts", "Spatial", "Color"):
        for split, count in (("dev", development), ("test", test)):
            members = [row for row in rows if (row["subcategory"], row["split"]) == (subcategory, split)]
            pairs = sorted({row["pair_id"] for row in members})[:count]
            kept += [row for row in members if row["pair_id"] in pairs]
    return ScoreTable.from_rows(kept)


def with_other_answers(table: ScoreTable, **where: Any) -> ScoreTable:
    """The same scores, but the next candidate is right in the rows chosen."""
    rows = [row | {"views": row["views"] and dict(row["views"])} for row in table.arrow.to_pylist()]
    for row in rows:
        if all(row[name] == value for name, value in where.items()):
            labels = row["candidates"]
            place = labels.index(row["answer"]) if row["answer"] in labels else 0
            row |= {"answer": labels[(place + 1) % len(labels)], "aliases": None}
    return ScoreTable.from_rows(rows)
