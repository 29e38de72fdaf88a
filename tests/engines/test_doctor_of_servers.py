"""A served model that is sound passes every line; one that is wrong in one way is caught by the line for it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

import lying_server as lying
from faulty_server import Answer, FaultyServer
from replayed_vllm import MODEL, ReplayedVllm
from unprior.embedded import FOLDER
from unprior.engines.doctor import Examination, examine
from unprior.engines.doctor.probes import CONSEQUENCES, PROBES
from unprior.engines.openai.engine import HttpEngine
from unprior.engines.transformers.engine import TransformersEngine

FAULTS: dict[type[lying.InFront] | type[ReplayedVllm], set[str]] = {
    lying.SwapsImages: {"image swapped", "prefix reuse"},
    lying.DropsImages: {"image dropped"},
    lying.KeepsAnswers: {"image swapped"},
    lying.KeepsAllAnswers: {"image swapped"},
    lying.RoundsProbabilities: {"rounding"},
    lying.RoundsLogarithms: {"rounding"},
    lying.HalfPrecision: {"rounding"},
    lying.OtherTemplate: {"chat template"},
    lying.OpenThinking: {"thinking"},
    lying.DependsOnOthers: {"batch invariance", "concurrency"},
    lying.DependsOnMany: {"concurrency"},
}
"""What is found without anything to compare with."""
PERHAPS = {"image order", "concurrency"}
"""Also found if images are exchanged between questions that are sent together, as it happens."""
FAULTS_AGAINST: dict[type[lying.InFront] | type[ReplayedVllm], tuple[set[str], str]] = {
    lying.ResizesImages: ({"image resizing"}, "Images of one colour agree"),
    lying.SomewhatOff: ({"same scores"}, "--dtype float32"),
    lying.OtherWeights: ({"same scores"}, "the model that is served"),
    lying.OtherWords: ({"same prompts", "same scores"}, "its own chat template"),
    lying.DropsImages: ({"image dropped", "same prompts", "same scores"}, "check the chat template"),
}
"""What is found beside the model's folder, and a part of what to do."""


@pytest.fixture(scope="module")
def embedded() -> TransformersEngine:
    return TransformersEngine(FOLDER, device="cpu", name="embedded")


@pytest.fixture(scope="module")
def sound(embedded: TransformersEngine) -> lying.Remembers:
    return lying.Remembers(ReplayedVllm(embedded))


@contextmanager
def served(answer: Answer) -> Iterator[HttpEngine]:
    with FaultyServer(answer) as server:
        client = HttpEngine(MODEL, [server.url], max_new_tokens=8)
        try:
            yield client
        finally:
            client.close()


def failed(examination: Examination) -> set[str]:
    return {finding.name for finding in examination.findings if finding.status == "failed"}


def lie(kind: type[lying.InFront] | type[ReplayedVllm], sound: lying.Remembers, truth: TransformersEngine) -> Answer:
    return kind(truth) if issubclass(kind, ReplayedVllm) else kind(sound)


def test_a_sound_server_passes_every_line(embedded: TransformersEngine, sound: lying.Remembers) -> None:
    with served(sound) as engine:
        examination = examine(engine, against=embedded)
    assert [(found.name, found.detail) for found in examination.findings if found.status != "ok"] == []
    assert len(examination.findings) == len(PROBES) - 1  # the self-test is that of an engine in this process


@pytest.mark.parametrize("fault", FAULTS, ids=lambda kind: kind.__name__)
def test_a_fault_is_found_by_its_line(
    fault: type[lying.InFront], embedded: TransformersEngine, sound: lying.Remembers
) -> None:
    with served(lie(fault, sound, embedded)) as engine:
        examination = examine(engine)
    assert failed(examination) - (PERHAPS if fault is lying.SwapsImages else set()) == FAULTS[fault]
    assert all(examination.finding(name).remedy for name in FAULTS[fault])


@pytest.mark.parametrize("fault", FAULTS_AGAINST, ids=lambda kind: kind.__name__)
def test_a_fault_is_found_beside_the_folder(
    fault: type[lying.InFront], embedded: TransformersEngine, sound: lying.Remembers
) -> None:
    lines, remedy = FAULTS_AGAINST[fault]
    with served(lie(fault, sound, embedded)) as engine:
        examination = examine(engine, against=embedded)
    assert failed(examination) == lines
    first, *others = (finding for finding in examination.findings if finding.status == "failed")
    assert remedy in str(first.remedy)
    for finding in others:
        if finding.name in CONSEQUENCES:
            assert finding.remedy == "Mend what failed above first; it may explain this, too."
