"""From development rows to a fitted state: features, strengths, counts, settings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from unprior.calibration.certified import fit_certified
from unprior.calibration.development import development_rows
from unprior.calibration.features import Observation, observe
from unprior.calibration.gate import StrengthModel
from unprior.calibration.open_answers import OpenScale, fit_temperature, learnable, refuse_unlearnable, scaled_rows
from unprior.calibration.parameters import Parameters, Sides
from unprior.calibration.posterior import development_distance, distance_precision
from unprior.calibration.selection import Groups, Histogram, Outcomes, count_rows, distance_limits
from unprior.calibration.stable import StableRows, stabilise
from unprior.calibration.state import FittedState, FittedStrength, choose_clip, choose_settings
from unprior.calibration.strength import Standardisation, StrengthObjective
from unprior.calibration.strength_rules import Split
from unprior.scores import Block, ScoreTable
from unprior.scores.schema import IntArray


def fit_state(parameters: Parameters, table: ScoreTable, split: str | None) -> FittedState:
    """Learn the strength and choose the settings on the rows of one split; None uses all rows.

    >>> from unprior import SelectivePriorCalibrator, synthesize
    >>> fit_state(Parameters(**SelectivePriorCalibrator().get_params()), synthesize(seed=0), "dev").development_rows
    280
    """
    parameters.check()
    development = development_rows(table, split)
    if parameters.retention != "paper":
        return fit_certified(parameters, _stabilised(parameters, development)).with_outcome(development)
    is_open = development.is_open
    if not is_open.any():
        return _fit(parameters, development, _stabilised(parameters, development))
    for_open = _fit_open(parameters, development.take(is_open))
    if is_open.all():
        return for_open
    closed = development.take(~is_open)
    return replace(_fit(parameters, closed, _stabilised(parameters, closed)), open=for_open)


def _stabilised(parameters: Parameters, development: ScoreTable) -> StableRows:
    return stabilise(development, parameters.prior, strict=parameters.strict, complete=True)


def _fit_open(parameters: Parameters, development: ScoreTable) -> FittedState:
    """Fit on open questions: once for every τ, of which the best by the rule for settings is chosen."""
    rows = learnable(development)
    refuse_unlearnable(rows, development.is_cf)
    if parameters.fit_on == "cf":
        rows &= development.is_cf
    temperature, fitted = fit_temperature(development, rows, parameters.open_answers.temperature)
    scales = [OpenScale(clip, temperature, fitted) for clip in reversed(parameters.open_answers.clips)]
    fits = [_fit(parameters, development, scaled_rows(development, scale)) for scale in scales]
    return choose_clip([replace(fit, scale=scale) for fit, scale in zip(fits, scales, strict=True)])


def _fit(parameters: Parameters, development: ScoreTable, stable: StableRows) -> FittedState:
    """Fit on questions of one kind; ``stable`` has the scores to work on."""
    fitted_on = _of_sides(stable, parameters.fit_on).to_learn_from()
    selected_on = _of_sides(stable, parameters.select_on)
    grid, rule = parameters.searched_grid, parameters.rule
    assert not isinstance(rule, Split)  # refused above
    blocks, observations = _observe(fitted_on)
    features = np.concatenate([observation.features for observation in observations])
    standardisation = Standardisation.from_features(features).showing(parameters.features)
    inputs = standardisation.apply(features)
    precision = distance_precision(inputs) if parameters.uncertainty else None
    limits = () if precision is None else distance_limits(development_distance(inputs, precision), grid)
    objective = StrengthObjective(inputs, observations, [block.answer for block in blocks])
    fits = tuple(
        FittedStrength(
            fit.rho,
            fit.loss,
            fit.gradient_norm,
            StrengthModel(
                standardisation, fit.theta, rule.covariance(fit) if parameters.uncertainty else None, precision
            ),
        )
        for fit in rule.fit(objective, grid.rho)
    )
    counts = {block.candidate_count for block in blocks}
    if selected_on.table is not fitted_on.table:
        blocks, observations = _observe(selected_on)
        # Open questions that nothing is learned from may be revised, and settings answer for what that does.
        counts |= {block.candidate_count for block in blocks if development.is_open[0] and block.candidate_count > 1}
    outcomes = _count(parameters, [fit.model for fit in fits], selected_on, blocks, observations, limits)
    return FittedState(
        parameters=parameters,
        fits=fits,
        selection=choose_settings(parameters, outcomes),
        outcomes=outcomes,
        candidate_counts=tuple(sorted(counts)),
        development_rows=len(fitted_on.table),
        model_name=development.arrow.column("model")[0].as_py(),
        provenance=development.provenance,
    )


def _of_sides(rows: StableRows, sides: Sides) -> StableRows:
    return rows if sides == "both" else rows.take(rows.table.is_cf)


def _observe(rows: StableRows) -> tuple[list[Block], list[Observation]]:
    blocks = list(rows.table.blocks(max_rows=len(rows.table)))
    return blocks, [observe(block, rows) for block in blocks]


def _count(
    parameters: Parameters,
    models: Sequence[StrengthModel],
    selected_on: StableRows,
    blocks: Sequence[Block],
    observations: Sequence[Observation],
    limits: tuple[float, ...],
) -> Outcomes:
    """What every setting would do to the rows that settings are chosen on."""
    grid = parameters.searched_grid
    groups = Groups.from_table(selected_on.table, np.concatenate([block.rows for block in blocks]))
    histograms: list[Histogram] = []
    for model in models:
        prepared = [model.prepare(observation) for observation in observations]
        for cap in grid.max_strength:
            proposals = [part.propose(cap, parameters.conditions) for part in prepared]
            gains = [
                _gain(selected_on.table, block, part.candidate) for block, part in zip(blocks, proposals, strict=True)
            ]
            histograms.append(count_rows(proposals, gains, groups, grid, limits))
    return Outcomes(groups, tuple(histograms), limits)


def _gain(table: ScoreTable, block: Block, proposal: IntArray) -> IntArray:
    """+1 where adopting the proposal repairs the answer, -1 where it harms it."""
    before, after = (table.is_right(each, block.rows) for each in (block.original, proposal))
    return np.asarray(after.astype(np.int64) - before)
