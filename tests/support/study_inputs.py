"""Made-up inputs that every study can be computed from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from claim_tables import with_claim_views
from made_up_methods import COSTS, made_up
from small_tables import synthetic, with_other_answers
from unprior import ScoreTable
from unprior.baselines.answers import Cost, MethodAnswers, MethodInfo
from unprior.studies.inputs import FORMS, ORDERS, External, StudyInputs
from unprior.studies.rq4.option_orders import read_order
from unprior.synthetic import synthesize_claims


def every_input(table: ScoreTable) -> StudyInputs:
    """The table with views, its options in other orders, question forms, other benchmarks and other methods."""
    viewed = with_views(table)
    test = viewed.where(split="test")
    others = {"pairs": synthetic(seed=8).where(split="test"), "loose": unpaired(synthetic(seed=9).where(split="dev"))}
    return StudyInputs(
        viewed,
        variants={name: reordered(viewed, read_order(name)) for name in ORDERS}
        | {FORMS: with_claim_views(synthesize_claims(seed=2))},
        external={name: External(each, tuple(made_up(each))) for name, each in others.items()},
        baselines=(*made_up(test), _revis(test)),
        costs=COSTS,
        resamples=200,
    )


def with_other_test_answers(inputs: StudyInputs) -> StudyInputs:
    """The same inputs, but another candidate is right in every row that is not for development."""
    return replace(
        inputs,
        table=with_other_answers(inputs.table, split="test"),
        variants={name: with_other_answers(each, split="test") for name, each in inputs.variants.items()},
        external={name: replace(each, table=with_other_answers(each.table)) for name, each in inputs.external.items()},
        _fits={},
    )


def with_views(table: ScoreTable) -> ScoreTable:
    """With prior scores from blank images that resemble those without an image."""
    generator = np.random.default_rng(4)

    def views(row: dict[str, Any]) -> dict[str, list[float]]:
        noise = generator.normal(0, 0.8, (3, len(row["candidates"])))
        return {
            view: (np.array(row["prior_scores"]) + extra).tolist()
            for view, extra in zip(("white", "black", "mean"), noise, strict=True)
        }

    return _each(table, lambda row: row | {"views": views(row)})


def reordered(table: ScoreTable, order: tuple[int, ...]) -> ScoreTable:
    """Multiple choice with the options in another order; scores differ a little, as those of a model would."""
    generator = np.random.default_rng(sum(place * 10**index for index, place in enumerate(order)))

    def moved(row: dict[str, Any]) -> dict[str, Any]:
        labels = row["candidates"]
        image = np.array(row["image_scores"])[list(order)] + generator.normal(0, 0.3, len(labels))
        answer = labels[order.index(labels.index(row["answer"]))]
        prior = [row["prior_scores"][old] for old in order]
        return row | {
            "image_scores": image.tolist(), "prior_scores": prior, "original": labels[int(np.argmax(image))],
            "answer": answer, "views": None,
        }  # fmt: skip

    return _each(table.where(task="mc"), moved)


def unpaired(table: ScoreTable) -> ScoreTable:
    """Rows that belong to no side, as those of a benchmark without pairs."""
    return _each(table, lambda row: row | {"side": None, "example_id": f"{row['pair_id']}-{row['side']}-{row['task']}"})


def _each(table: ScoreTable, change: Callable[[dict[str, Any]], dict[str, Any]]) -> ScoreTable:
    return ScoreTable.from_rows([change(row) for row in table.arrow.to_pylist()])


def _revis(table: ScoreTable) -> MethodAnswers:
    """An edit that prefers the first candidate."""
    random = np.random.default_rng(6).random(len(table)) < 0.4
    info = MethodInfo("revis", "REVIS", "edit", {}, Cost(1.0, 5.0, 0.3, 20))
    return MethodAnswers(info, np.where(random, 0, table.original_positions), table.original_positions)
