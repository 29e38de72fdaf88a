"""What selection does when nothing is feasible; everything else is tested through SPC and the controls."""

from __future__ import annotations

import numpy as np

from unprior.calibration.choice import Choice, choose


def test_without_a_feasible_setting_the_best_of_all_is_named() -> None:
    net = np.array([[-3, 0, 1, 0], [-1, 0, 1, 0], [-1, 0, 1, 0]])
    assert choose(net, np.array([1, 5, 4]), np.array([10, 10, 10, 10]), 0.04) == Choice(index=2, feasible=0)


def test_a_feasible_setting_wins_over_a_better_one_that_is_not() -> None:
    net = np.array([[9, -1], [1, 0], [0, 0]])
    assert choose(net, np.array([9, 1, 0]), np.array([10, 10]), 0.04) == Choice(index=1, feasible=2)
