"""Small labels cover neither points nor each other."""

from __future__ import annotations

import numpy as np

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
