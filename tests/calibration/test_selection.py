"""Selection: exact counting, exact ties, loop order."""

from __future__ import annotations

import numpy as np
import pytest

from unprior import Grid
from unprior.calibration.gate import Proposals
from unprior.calibration.selection import Groups, Selection, count_rows, select

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


def test_ties_are_exact_when_tasks_have_different_sizes() -> None:
    """Three thirds and one whole are the same utility; floats would disagree in the last digit."""
    # mc: 3 cf rows, qa: 1 cf row; margin 0.2 keeps the three mc repairs, 0.0 also trades harm for repair in qa.
    margin = [0.9, 0.9, 0.9, 0.1, 0.9, 0.9]
    rows = proposals(margin, [1.0] * 6, [0.1] * 6, [0, 0, 0, 1, -1, -1])
    membership = groups(("mc", "qa"), [0, 0, 0, 2, 1, 3])
    result = chosen([1, 1, 1, 0, 0, 0], rows, membership)
    assert result.settings is not None
    assert result.settings.min_margin == 0.2  # same deltas, fewer changed answers
    assert result.utility == pytest.approx(0.5)


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
