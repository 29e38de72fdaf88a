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
from unprior.benchmarks.variants import GIVEN
from unprior.scores.schema import OTHER_ANSWER, OTHER_RIGHT_ANSWER
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
        | {
            FORMS: with_claim_views(synthesize_claims(seed=2)),
            GIVEN: open_questions(table.values_of("pair_id"), seed=4),
        },
        external={name: External(each, tuple(made_up(each))) for name, each in others.items()},
        open=_with_decoders(open_questions(table.values_of("pair_id"))),
        baselines=(*made_up(test), _revis(test)),
        costs=COSTS,
        resamples=200,
    )


def open_questions(pairs: set[Any], seed: int = 3) -> ScoreTable:
    """Open questions about some pairs, with all candidates, who proposed them, and the scores of first tokens."""

    def proposed(row: dict[str, Any]) -> dict[str, Any]:
        favourite = int(np.argmax(row["prior_scores"]))
        # Only some answers of the model without the image are not found with it.
        alone = row["pair_id"] % 2 and row["candidates"][favourite] != row["original"]
        sources = ["image"] * len(row["candidates"])
        sources[favourite] = "text" if alone else "text+image"
        if row["original"] is not None:
            sources[row["candidates"].index(row["original"])] += "+original"
        views = {name: [score / 2 for score in row[scores]] for name, scores in
                 (("first-token-image", "image_scores"), ("first-token-text", "prior_scores"))}  # fmt: skip
        return row | {"sources": sources, "token_counts": [2] * len(sources), "views": views}

    table = synthetic(seed=seed, open_questions=True).where(task="open")
    return _each(table.take(np.array([pair in pairs for pair in table.column("pair_id")])), proposed)


def _with_decoders(table: ScoreTable) -> External:
    test = table.where(split="test")
    positions = test.original_positions.copy()
    positions[::3] = OTHER_RIGHT_ANSWER
    positions[1::3] = OTHER_ANSWER
    return External(table, (MethodAnswers(MethodInfo("cad-1", "CAD (α = 1)", "decoder", {}, None), positions, None),))


def with_other_test_answers(inputs: StudyInputs) -> StudyInputs:
    """The same inputs, but another candidate is right in every row that is not for development."""
    return replace(
        inputs,
        table=with_other_answers(inputs.table, split="test"),
        variants={name: with_other_answers(each, split="test") for name, each in inputs.variants.items()},
        external={name: replace(each, table=with_other_answers(each.table)) for name, each in inputs.external.items()},
        open=inputs.open and replace(inputs.open, table=with_other_answers(inputs.open.table, split="test")),
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
