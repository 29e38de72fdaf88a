"""The scale and the fit of open answers against plain loops over rows, and the promise on simulated draws."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

import straightforward
from unprior import Grid, ScoreTable, SelectivePriorCalibrator, synthesize
from unprior.answer_forms import is_accepted
from unprior.calibration import Fixed
from unprior.calibration.open_answers import TEMPERATURE, OpenScale, fit_temperature, learnable

TABLE = synthesize(seed=0, open_questions=True)
OPEN = TABLE.where(task="open")


def test_the_scale_clips_raw_sums_and_then_divides() -> None:
    rows = TABLE.arrow.to_pylist()
    scaled = OpenScale(clip=5.0, temperature=3.0).apply(TABLE).arrow.to_pylist()
    for before, after in zip(rows, scaled, strict=True):
        if before["task"] == "open":
            top = max(before["prior_scores"])
            assert after["prior_scores"] == [max(score, top - 5.0) / 3.0 for score in before["prior_scores"]]
            assert after["image_scores"] == [score / 3.0 for score in before["image_scores"]]
        else:
            assert after == before
    unclipped = OpenScale(clip=math.inf, temperature=1.0).apply(TABLE)
    assert unclipped.arrow.equals(TABLE.arrow)


def test_the_temperature_is_the_most_probable_one() -> None:
    development = OPEN.where(split="dev")
    rows = [row for row, use in zip(development.arrow.to_pylist(), learnable(development), strict=True) if use]

    def loss(log: float) -> float:
        total = 0.5 * log**2
        for row in rows:
            scaled = np.array(row["image_scores"]) / (TEMPERATURE * math.exp(log))
            total += np.log(np.exp(scaled - scaled.max()).sum()) + scaled.max()
            total -= scaled[row["candidates"].index(row["answer"])]
        return float(total)

    expected = TEMPERATURE * math.exp(minimize_scalar(loss, bounds=(-3, 3), options={"xatol": 1e-9}).x)
    found, fitted_on = fit_temperature(development, np.ones(len(development), dtype=np.bool_), None)
    assert found == pytest.approx(expected, rel=1e-5)
    assert 0 < fitted_on == len(rows) < len(development)
    assert fit_temperature(development, np.zeros(len(development), dtype=np.bool_), None) == (TEMPERATURE, 0)
    assert fit_temperature(development, np.ones(len(development), dtype=np.bool_), 4.0) == (4.0, 0)


def test_few_pairs_that_are_all_right_do_not_make_it_vanish() -> None:
    right = OPEN.is_right(OPEN.original_positions) & (OPEN.candidate_counts > 1)
    few = np.flatnonzero(right)[:6]
    mask = np.isin(np.arange(len(OPEN)), few)
    temperature, rows = fit_temperature(OPEN, mask, None)
    assert rows == 6
    assert 0.5 < temperature < 4.0


def _plain_rows(table: ScoreTable, clip: float, temperature: float) -> list[dict[str, Any]]:
    found = []
    for row in table.arrow.to_pylist():
        lowest = max(row["prior_scores"]) - clip
        scaled = {
            "image_scores": [score / temperature for score in row["image_scores"]],
            "prior_scores": [max(score, lowest) / temperature for score in row["prior_scores"]],
        }
        found.append(row | scaled)
    return found


RHOS = (0.1, 1.0)  # large enough that there is one minimum, which a search from 0 finds


def _plain_fit(table: ScoreTable, clip: float, temperature: float) -> tuple[Any, dict[str, Any] | None, Any]:
    """Row by row: θ on rows with the right answer among two candidates or more, settings on all rows."""
    rows = [row for row in _plain_rows(table, clip, temperature) if len(row["candidates"]) > 1]
    alone = [row for row in _plain_rows(table, clip, temperature) if len(row["candidates"]) == 1]
    use = [row["answer"] in row["candidates"] for row in rows]
    raw = [straightforward.features(row) for row in rows]
    learned = [vector for vector, kept in zip(raw, use, strict=True) if kept]
    mean, scale = np.mean(learned, axis=0), np.std(learned, axis=0)
    scale[scale < 1e-6] = 1.0
    mean[0], scale[0] = 0.0, 1.0
    examples = [
        straightforward.prepare(row, (np.array(vector) - mean) / scale, np.eye(12))
        for row, vector in zip(rows, raw, strict=True)
    ]
    # Of several right candidates any counts, and a row that misses all of them is never right.
    accepted = [_right_places(row) for row in rows]
    prepared = [
        (example, row["candidates"].index(row["answer"]) if kept else -9)
        for example, row, kept in zip(examples, rows, use, strict=True)
    ]
    fitted_on = [each for each, kept in zip(prepared, use, strict=True) if kept]
    counts = {len(row["candidates"]) for row in rows}
    best = None
    thetas = {}
    for rho in RHOS:
        thetas[rho], _ = straightforward.fit_theta(rho, fitted_on, False)
        for cap in straightforward.MAX_STRENGTHS:
            proposals = [straightforward.propose(example, thetas[rho], None, cap) for example in examples]
            for margin in straightforward.MIN_MARGINS:
                chosen = {"min_margin": margin}
                finals = [
                    proposal.index if straightforward.gate(example, proposal, chosen, counts) else example.original
                    for example, proposal in zip(examples, proposals, strict=True)
                ]
                judged = [
                    (replace(example, original=_judged(example.original, right)), 1)
                    for example, right in zip(examples, accepted, strict=True)
                ]
                told = [_judged(final, right) for final, right in zip(finals, accepted, strict=True)]
                # Rows with one candidate stay in the totals; whatever their answer is, it stays.
                value = straightforward.evaluate(
                    [*rows, *alone], [*judged, *[(examples[0], -9)] * len(alone)],
                    [*told, *[examples[0].original] * len(alone)], 0.04,
                )  # fmt: skip
                if value is None:
                    continue
                changed = sum(f != e.original for f, e in zip(finals, examples, strict=True))
                value = (*value[:4], -changed)
                if best is None or value > best[0]:
                    best = value, {"rho": rho, "max_strength": cap, "min_margin": margin}
    assert best is not None
    return best[0], best[1], thetas


def _right_places(row: dict[str, Any]) -> set[int]:
    return {
        place for place, name in enumerate(row["candidates"]) if is_accepted(name, row["answer"], row["aliases"] or ())
    }


def _judged(position: int | None, right: set[int]) -> int:
    return 1 if position in right else 0


def test_the_fit_equals_one_row_by_row() -> None:
    development = OPEN.where(split="dev")
    fitted = SelectivePriorCalibrator(grid=Grid(rho=RHOS)).fit(OPEN)
    state = fitted.state_
    assert state.scale is not None
    outcomes = {clip: _plain_fit(development, clip, state.scale.temperature) for clip in fitted.open_answers.clips}
    by_clip = {each.scale.clip: each for each in (state, *state.other_clips) if each.scale is not None}
    assert by_clip.keys() == outcomes.keys()
    for clip, (_, plain, thetas) in outcomes.items():
        own = by_clip[clip]
        assert own.settings is not None
        assert {name: getattr(own.settings, name) for name in plain or {}} == plain
        for fit in own.fits:
            np.testing.assert_allclose(fit.theta, thetas[fit.rho], atol=1e-4)
    best = max(outcomes, key=lambda clip: (outcomes[clip][0], clip))  # of equal ones the larger τ
    assert state.scale.clip == best


@pytest.mark.parametrize("tasks", [("open",), ("mc", "open")])
def test_the_promise_holds_for_uniform_leads(tasks: tuple[str, ...]) -> None:
    """A right CS answer is harmed above a threshold t with probability 1 − t, by the fitted calibrator itself."""
    pairs, draws, epsilon = 70, 150, 0.06
    temperature = {"open": TEMPERATURE, "mc": 1.0}
    rows = [
        {
            "pair_id": pair, "side": side, "task": task, "candidates": ["five", "six"], "original": "five",
            "answer": "five" if side == "cs" else "six", "image_scores": [0.0, -1.0],
            "prior_scores": [0.0, -2.0 * temperature[task]],
        }
        for pair in range(pairs) for side in ("cf", "cs") for task in tasks
    ]  # fmt: skip
    table = ScoreTable.from_rows(rows)
    scale = np.array([temperature[row["task"]] for row in rows])
    calibrator = SelectivePriorCalibrator(retention="certified", epsilon_cs=epsilon, strength=Fixed(1.0))
    rng, broken = np.random.default_rng(3), 0
    for _ in range(draws):
        image = table.image_scores.copy()
        image[1::2] = scale * (rng.random(len(rows)) - 2.0)
        certificate = calibrator.fit(table.with_image_scores(image), split=None).certificate_
        assert certificate is not None
        assert [each.task for each in certificate.tasks] == sorted(tasks)
        broken += max(1.0 - each.threshold for each in certificate.tasks) > epsilon
    assert broken / draws <= 0.1 + 3 * np.sqrt(0.09 / draws)
    assert broken > 0
