"""Verdicts of the self-test: what it accepts in half precision, and what is remembered of it."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from unprior.engines.transformers import engine as engine_module
from unprior.engines.transformers import verdicts
from unprior.engines.transformers.engine import TransformersEngine
from unprior.engines.transformers.levels import LEVELS
from unprior.engines.transformers.self_test import SelfTest, Trial


@pytest.fixture
def tested(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[Any]:
    """The self-tests that were really run; every model counts as a large one."""
    runs: list[Any] = []
    own = SelfTest.choose_for

    def noting(test: SelfTest, *arguments: Any) -> Any:
        runs.append(test)
        return own(test, *arguments)

    monkeypatch.setattr(verdicts, "platform_cache", lambda: tmp_path / "cache")
    monkeypatch.setattr(engine_module, "_LARGE_MODEL", 0)
    monkeypatch.setattr(SelfTest, "choose_for", noting)
    return runs


def test_a_model_is_tested_once(tested: list[Any], model_folder: Callable[[str], Path]) -> None:
    first, second = (TransformersEngine(model_folder("llava"), device="cpu") for _ in range(2))
    assert len(tested) == 1
    assert (first.level, first.fingerprint) == (second.level, second.fingerprint)
    assert second.self_test.trials == first.self_test.trials
    TransformersEngine(model_folder("llava"), device="cpu", self_test="again")
    assert len(tested) == 2
    TransformersEngine(model_folder("llava"), device="cpu", dtype="bfloat16")
    assert len(tested) == 3


def test_a_small_model_is_tested_every_time(
    tested: list[Any], model_folder: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine_module, "_LARGE_MODEL", 10**9)
    for _ in range(2):
        TransformersEngine(model_folder("llava"), device="cpu")
    assert len(tested) == 2


@pytest.mark.parametrize(
    "content",
    ["[", "[]", '{"KEY": 3}', '{"KEY": {"level": "shared"}}', '{"KEY": {"level": "nonsense", "difference": 0.0}}',
     '{"KEY": {"level": "shared", "difference": Infinity}}'],
)  # fmt: skip
def test_a_broken_cache_is_no_verdict(
    tested: list[Any], model_folder: Callable[[str], Path], tmp_path: Path, content: str
) -> None:
    engine = TransformersEngine(model_folder("llava"), device="cpu", self_test=False)
    cache = tmp_path / "cache" / "unprior" / "self-tests.json"
    cache.parent.mkdir(parents=True)
    cache.write_text(content.replace("KEY", engine._tested_as()))
    assert TransformersEngine(model_folder("llava"), device="cpu").level is LEVELS[0]
    assert len(tested) == 1


@pytest.mark.parametrize(
    ("differences", "chosen"),
    [
        ((0.15, 0.05, 0.05, 0.05, 0.04), 0),  # within four times the noise
        ((0.15, 0.05, 0.05, 0.05, 0.01), 1),  # more than rounding explains
        ((10.8, 10.8, 0.2, 5.4, 5.4), 2),  # plain passes are no measure for a model that reads its prompt both ways
        ((0.15, 0.3, 0.3, math.inf, math.inf), 0),  # plain passes cannot be computed
    ],
)
def test_half_precision_is_judged_by_the_noise_of_the_model(
    llava: TransformersEngine, monkeypatch: pytest.MonkeyPatch, differences: tuple[float, ...], chosen: int
) -> None:
    found = dict(zip(LEVELS, differences, strict=True))
    monkeypatch.setattr(SelfTest, "_try", lambda test, level, *_: Trial(level, found[level]))
    test = SelfTest(llava.reader, llava.encoder, llava.scorer, 0.25)
    assert test.choose() is LEVELS[chosen]
    assert test.noise is None
