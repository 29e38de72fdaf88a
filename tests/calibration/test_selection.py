"""Selection: exact counting, exact ties, loop order."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from unprior import Grid
from unprior.calibration.gate import Proposals, Settings, within_distance
from unprior.calibration.selection import Groups, Histogram, Selection, Ties, count_rows, select

GRID = Grid(rho=(1.0,), max_strength=(1.0,), min_margin=(0.0, 0.2), support=(0.5, 0.9), distance_quantile=(0.5, 0.9))
LIMITS = (1.0, 2.0)


def proposals(margin: list[float], support: list[float], distance: list[float], condition: list[int]) -> Proposals:
    size = len(margin)
    return Proposals(
        np.zeros(size, dtype=np.int64),
        np.ones(size),
        np.array(margin),
        np.array(condition, dtype=np.int8),
        np.ones(size, dtype=np.bool_),
        np.array(support),
        np.array(distance),
    )


def groups(tasks: tuple[str, ...], group: list[int]) -> Groups:
    return Groups(tasks, np.array(group), np.bincount(group, minlength=2 * len(tasks)))


def chosen(gain: list[int], rows: Proposals, membership: Groups, epsilon: float = 1.0) -> Selection:
    histogram = count_rows([rows], [np.array(gain)], membership, GRID, LIMITS)
    return select([histogram], membership, GRID, LIMITS, epsilon, uncertainty=True)


def test_thresholds_are_inclusive_and_chosen_to_exclude_harm() -> None:
    # One repair that meets the strictest thresholds exactly, and harms that fail exactly one of them.
    rows = proposals(
        margin=[0.2, 0.19, 0.5, 0.5, 0.5],
        support=[0.9, 0.95, 0.89, 0.95, 0.95],
        distance=[1.0, 0.5, 0.5, 1.1, 0.5],
        condition=[0, 0, 0, 0, -1],
    )
    result = chosen([1, -1, -1, -1, -1], rows, groups(("mc",), [0, 0, 0, 0, 1]))
    assert result.settings is not None
    assert result.settings.min_margin == 0.2
    assert result.settings.conflict_support == 0.9
    assert result.settings.max_distance == 1.0
    assert (result.changed, result.changes[0].cf_net, result.searched) == (1, 1, 16)


def test_of_equal_settings_the_first_in_loop_order_wins() -> None:
    rows = proposals([0.9, 0.9], [1.0, 1.0], [0.1, 0.1], [0, 1])
    result = chosen([1, 0], rows, groups(("mc",), [0, 1]))
    assert result.settings is not None
    assert result.settings.conflict_support == 0.5
    assert result.settings.absorption_support == 0.5
    assert result.settings.min_margin == 0.0
    assert result.settings.max_distance == 1.0


def test_fewer_changes_break_a_tie() -> None:
    # The second row changes a wrong answer into a wrong answer; a stricter support leaves it alone.
    rows = proposals([0.9, 0.9, 0.9], [1.0, 0.6, 1.0], [0.1, 0.1, 0.1], [0, 0, -1])
    result = chosen([1, 0, 0], rows, groups(("mc",), [0, 0, 1]))
    assert result.settings is not None
    assert result.settings.conflict_support == 0.9
    assert result.changed == 1


def select_between(first: list[int], second: list[int], totals: list[int], changed: tuple[int, int] = (1, 1)) -> int:
    """Which of two settings (loop order 0, 1) wins, given their net counts per group (mc cf, mc cs, qa cf, qa cs)."""
    grid = Grid(rho=(1.0,), max_strength=(1.0, 2.0), min_margin=(0.0,))
    tasks = ("mc", "qa")[: len(totals) // 2]
    membership = Groups(tasks, np.zeros(0, dtype=np.int64), np.array(totals))
    histograms = []
    for net, count in zip((first, second), changed, strict=True):
        cells = np.zeros((2, len(totals), 2, 2, 2), dtype=np.int64)
        cells[0, :, 1, 1, 1] = net
        counts = np.zeros((2, 2, 2, 2), dtype=np.int64)
        counts[0, 1, 1, 1] = count
        histograms.append(Histogram(cells, counts))
    result = select(histograms, membership, grid, (), epsilon_cs=1.0, uncertainty=False)
    assert result.settings is not None
    return grid.max_strength.index(result.settings.max_strength)


def test_ties_are_exact_when_groups_have_different_sizes() -> None:
    """Equal shares must tie even where floats differ in the last digit; then fewer changed answers decide."""
    assert 1 / 3 + 5 / 6 > 2 / 3 + 3 / 6
    totals = [3, 1, 6, 1]
    assert select_between([1, 0, 5, 0], [2, 0, 3, 0], totals, changed=(9, 1)) == 1
    assert select_between([2, 0, 3, 0], [1, 0, 5, 0], totals, changed=(1, 9)) == 0
    assert select_between([2, 0, 3, 0], [1, 0, 5, 0], totals) == 0  # nothing left to decide: the first


def test_more_tasks_with_a_gain_break_a_tie() -> None:
    assert select_between([3, 0, 0, 0], [1, 0, 2, 0], [10, 1, 10, 1], changed=(1, 9)) == 1


def test_of_equal_utility_the_larger_cf_gain_wins() -> None:
    # +1 on cf and −2 on cs weighs as much as nothing at all, with equal group sizes.
    assert select_between([0, 0], [1, -2], [10, 10]) == 1
    assert select_between([1, -2], [0, 0], [10, 10]) == 0


def test_a_rounding_error_does_not_make_a_setting_infeasible() -> None:
    """−0.07 is −7/100, but 7/100 as a quotient may lie a hair above 0.07."""
    for harms, total in ((7, 100), (3, 75), (29, 290), (1, 3)):
        epsilon = float(f"{harms / total:.13f}")  # what a user may write, short of the exact quotient
        rows = proposals([0.9] * 2, [1.0] * 2, [0.1] * 2, [0] * 2)
        membership = Groups(("mc",), np.array([0, 1]), np.array([10, total]))
        histogram = count_rows([rows], [np.array([1, -harms])], membership, GRID, LIMITS)
        assert select([histogram], membership, GRID, LIMITS, epsilon, uncertainty=True).settings is not None


def test_the_distance_limit_allows_for_rounding() -> None:
    limit = 2.0
    assert within_distance(np.array([limit * (1 + 3e-16), limit * (1 + 1e-9)]), limit).tolist() == [True, False]


@pytest.mark.parametrize(("epsilon", "feasible"), [(0.25, True), (0.2499, False)])
def test_the_retention_limit_is_inclusive(epsilon: float, feasible: bool) -> None:
    # Every setting accepts all rows: one repair on cf, one harm among four on cs.
    rows = proposals([0.9] * 5, [1.0] * 5, [0.1] * 5, [0] * 5)
    result = chosen([1, -1, 0, 0, 0], rows, groups(("mc",), [0, 1, 1, 1, 1]), epsilon)
    assert (result.settings is not None) is feasible
    assert (result.feasible > 0) is feasible


def test_every_task_must_keep_its_promise() -> None:
    rows = proposals([0.9] * 4, [1.0] * 4, [0.1] * 4, [0] * 4)
    result = chosen([1, 0, -1, 0], rows, groups(("mc", "qa"), [0, 1, 2, 3]))
    assert result.settings is None  # qa loses on cf, whatever mc gains


def chosen_of_equals(grid: Grid, ties: Ties, *, uncertainty: bool = False) -> Settings:
    """What is chosen when every setting does the same."""
    limits = LIMITS if uncertainty else ()
    rows = proposals([0.9, 0.9], [2.0, 2.0], [0.1, 0.1], [0, 1])
    if not uncertainty:
        rows = dataclasses.replace(rows, support=None, distance=None)
    membership = groups(("mc",), [0, 1])
    histogram = count_rows([rows], [np.array([1, 0])], membership, grid, limits)
    histograms = [histogram] * (len(grid.rho) * len(grid.max_strength))
    result = select(histograms, membership, grid, limits, 1.0, uncertainty=uncertainty, ties=ties)
    assert result.settings is not None
    return result.settings


def test_released_ties_go_to_the_smallest_json_text() -> None:
    """Texts are compared character by character: 10.0 comes before 9.0, and λ_max counts before ρ."""
    grid = Grid(rho=(9.0, 10.0), max_strength=(9.5, 10.5), min_margin=(0.0, 0.05))
    first, released = chosen_of_equals(grid, "first"), chosen_of_equals(grid, "released")
    assert (first.rho, first.max_strength, first.min_margin) == (9.0, 9.5, 0.0)
    assert (released.rho, released.max_strength, released.min_margin) == (10.0, 10.5, 0.0)


def test_released_ties_prefer_a_low_cap_to_a_low_rho() -> None:
    """Two settings tie that neither dominates: loop order looks at ρ first, the text at λ_max."""
    grid = Grid(rho=(0.01, 0.1), max_strength=(0.8, 1.0), min_margin=(0.0,))
    membership = Groups(("mc",), np.zeros(0, dtype=np.int64), np.array([10, 10]))
    histograms = []
    for net in (0, 1, 1, 0):  # (0.01, 1.0) and (0.1, 0.8) are the best
        cells, counts = np.zeros((2, 2, 2, 2, 2), dtype=np.int64), np.zeros((2, 2, 2, 2), dtype=np.int64)
        cells[0, 0, 1, 1, 1] = net
        histograms.append(Histogram(cells, counts))
    for ties, expected in (("first", (0.01, 1.0)), ("released", (0.1, 0.8))):
        settings = select(histograms, membership, grid, (), 1.0, uncertainty=False, ties=ties).settings
        assert settings is not None
        assert (settings.rho, settings.max_strength) == expected


def test_the_uncertainty_aware_version_keeps_the_loop_order() -> None:
    grid = dataclasses.replace(GRID, rho=(9.0, 10.0))
    assert chosen_of_equals(grid, "released", uncertainty=True) == chosen_of_equals(grid, "first", uncertainty=True)
