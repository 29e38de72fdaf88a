"""What is counted when methods take turns."""

from __future__ import annotations

from pathlib import Path

import pytest

from hand_questions import write_benchmark
from unprior.baselines.cost import measure_costs
from unprior.baselines.focus_on_vision import FocusOnVision
from unprior.baselines.mfcd import MFCD
from unprior.baselines.nolan import NoLan
from unprior.baselines.vcd import VCD
from unprior.benchmarks.user_file import read_questions
from unprior.engines.transformers.engine import TransformersEngine
from unprior.errors import UnpriorWarning
from unprior.progress import Progress


def test_images_and_passes_are_those_of_the_streams(
    llava: TransformersEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    benchmark = read_questions(write_benchmark(tmp_path))
    monkeypatch.setattr(llava, "max_new_tokens", 3)
    monkeypatch.setattr(llava, "stop_tokens", set())  # answers of exactly three tokens: one reading, two steps
    seen: list[Progress] = []
    costs = measure_costs(llava, benchmark, [FocusOnVision(), VCD(), MFCD(), NoLan()], examples=4, report=seen.append)
    counted = {name: (cost.images, cost.passes) for name, cost in costs.items()}
    assert counted == {
        "original": (1, 3),
        "spc": (1, 6),  # the ends of both prompts, and the prompt without the image
        "focus-on-vision": (1, 3),
        "vcd": (2, 6),
        "mfcd": (3, 9),
        "nolan": (1, 6),
    }
    assert all(cost.seconds > 0 and cost.examples == 4 for cost in costs.values())
    assert seen == [Progress("Measuring costs", number, 4) for number in range(5)]


def test_there_are_no_more_examples_than_there_are(llava: TransformersEngine, tmp_path: Path) -> None:
    benchmark = read_questions(write_benchmark(tmp_path, pairs=1))
    assert measure_costs(llava, benchmark, [], examples=100)["original"].examples == 4


def test_a_method_that_fails_has_no_cost_and_the_others_have(
    llava: TransformersEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(*_: object) -> None:
        raise RuntimeError("out of memory")

    monkeypatch.setattr(llava, "max_new_tokens", 3)
    monkeypatch.setattr(VCD, "combine", failing)
    benchmark = read_questions(write_benchmark(tmp_path, pairs=1))
    with pytest.warns(UnpriorWarning, match="the cost of vcd could not be measured"):
        costs = measure_costs(llava, benchmark, [VCD(), NoLan()], examples=2)
    assert set(costs) == {"original", "spc", "nolan"}
