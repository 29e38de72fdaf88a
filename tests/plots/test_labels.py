"""Small labels cover neither points nor each other."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from unprior.plots.labels import place_labels


def test_labels_of_a_crowd_cover_nothing() -> None:
    generator = np.random.default_rng(2)
    points = [(130.0 + float(x), 100.0 + float(y)) for x, y in generator.normal(0, 18, (12, 2))]
    texts = [str(number) for number in range(1, 13)]
    offsets = place_labels(points, texts, 265.0, 195.0)
    middles = [(x + dx, y + dy) for (x, y), (dx, dy) in zip(points, offsets, strict=True)]
    for index, (x, y) in enumerate(middles):
        for other in (*points, *middles[:index]):
            assert abs(x - other[0]) >= 4.9 * len(texts[index]) / 2 or abs(y - other[1]) >= 4.5


def test_labels_on_one_line_do_not_read_as_one() -> None:
    points = [(50.0, 50.0), (64.0, 50.0)]
    (one, up), (other, height) = place_labels(points, ["16", "2"], 200.0, 200.0)
    assert abs(points[0][0] + one - points[1][0] - other) >= 4.9 * 1.5 + 4 or abs(up - height) >= 9.0


def test_a_label_does_not_leave_the_axes() -> None:
    ((across, up),) = place_labels([(2.0, 100.0)], ["10, 11"], 200.0, 195.0)
    assert 2.0 + across >= 4.9 * 6 / 2
    assert abs(up) <= 30


def test_a_label_keeps_away_from_lines() -> None:
    line = [(0.0, 50.0), (100.0, 50.0)]
    assert place_labels([(50.0, 50.0)], ["8"], 100.0, 100.0) == [(9.0, 0.0)], "there it would lie on the line"
    ((_, up),) = place_labels([(50.0, 50.0)], ["8"], 100.0, 100.0, lines=[line])
    assert abs(up) >= 4.5 + 2.0


@pytest.mark.parametrize("seed", [38, 43])
def test_neither_labels_nor_lines_to_them_cover_each_other(seed: int) -> None:
    generator = np.random.default_rng(seed)
    points = np.array([(50.0 + x, 60.0 + 6 * number) for number, x in enumerate(generator.normal(0, 3, 6).tolist())])
    upright = [(50.0, 0.0), (50.0, 150.0)]
    offsets = np.array(place_labels([tuple(at) for at in points.tolist()], ["0.1"] * 6, 110, 150, lines=[upright]))

    def separates(one: int, other: int) -> bool:
        """Whether the line to one label passes between another point and its label."""
        (across, up), way = offsets[one], points[other] - points[one]
        ends = [across * y - up * x for x, y in (way, way + offsets[other])]
        return bool(ends[0] * ends[1] < 0)

    for one, other in combinations(range(6), 2):
        across, up = np.abs(points[one] + offsets[one] - points[other] - offsets[other])
        assert across >= 4.9 * 3 or up >= 9.0
        assert not (separates(one, other) and separates(other, one))
