"""Answers of methods that nobody ran, to look at tables and figures with."""

from __future__ import annotations

import numpy as np

from unprior import ScoreTable
from unprior.baselines.answers import Cost, MethodAnswers, MethodInfo


def made_up(table: ScoreTable) -> list[MethodAnswers]:
    """A prompt without cost, and a decoder that repairs much, with a matched decoder that answers at random."""
    generator = np.random.default_rng(1)
    random = generator.integers(0, table.candidate_counts)
    lucky = np.where(generator.random(len(table)) < 0.5, table.answer_positions, table.original_positions)
    return [
        MethodAnswers(MethodInfo("focus", "Focus on Vision", "prompt", {}, None), random, None),
        MethodAnswers(MethodInfo("nolan", "NoLan", "decoder", {"beta": 0.8}, Cost(1.0, 8.0, 0.4, 20)), lucky, random),
    ]


COSTS = {"original": Cost(1.0, 4.0, 0.2, 20), "spc": Cost(1.0, 6.0, 0.25, 20)}
