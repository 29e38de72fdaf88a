"""Runs of the methods on a real small model: resuming, failing, dying."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from engine_fixtures import generate
from hand_questions import write_benchmark
from unprior import ScoreTable, UnpriorError
from unprior.baselines import run as run_module
from unprior.baselines.answers import MethodInfo, read_answers, write_answers
from unprior.baselines.decoding import Decoded, Question, decode_observed, decode_texts, view_inputs
from unprior.baselines.focus_on_vision import GROUNDING, FocusOnVision
from unprior.baselines.method import IMAGE, Method
from unprior.baselines.nolan import NoLan
from unprior.baselines.plain import Plain
from unprior.baselines.revis.directions import LayerChoice
from unprior.baselines.revis.method import REVIS, ReleasedREVIS
from unprior.baselines.revis.vectors import RevisVectors
from unprior.baselines.run import BaselineRun
from unprior.baselines.vcd import VCD
from unprior.benchmarks.schema import Benchmark
from unprior.benchmarks.user_file import read_questions
from unprior.cli import main
from unprior.engines.transformers.engine import TransformersEngine
from unprior.images import open_image
from unprior.progress import Progress
from unprior.prompts import parse_answer
from unprior.scoring.store import ScoreStore

METHODS: tuple[Method, ...] = (FocusOnVision(), VCD(), NoLan())


@pytest.fixture
def benchmark(tmp_path: Path) -> Benchmark:
    return read_questions(write_benchmark(tmp_path))


@pytest.fixture
def store(tmp_path: Path) -> Iterator[ScoreStore]:
    with ScoreStore(tmp_path / "store.sqlite") as opened:
        yield opened


@pytest.fixture(autouse=True)
def decoded(llava: TransformersEngine, monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """Method and example of everything that is decoded, in order; answers are kept short."""
    monkeypatch.setattr(llava, "max_new_tokens", 5)
    seen: list[tuple[str, str]] = []

    def noting(engine: TransformersEngine, method: Method, questions: list[Question]) -> list[Decoded]:
        seen.extend((method.name, question.name) for question in questions)
        return decode_observed(engine, method, questions)

    monkeypatch.setattr(run_module, "decode_observed", noting)
    return seen


def test_every_method_answers_every_example_and_brings_its_reference(
    llava: TransformersEngine, benchmark: Benchmark, store: ScoreStore
) -> None:
    run = BaselineRun(llava, benchmark, store, METHODS, batch_size=5)
    assert run.run() == ()
    rows = run.rows()
    assert [(row["method"], row["example_id"]) for row in rows] == [
        (method.name, example.example_id) for method in METHODS for example in benchmark
    ]
    by_place = {(row["method"], row["example_id"]): row for row in rows}
    for example in benchmark:
        image, text = open_image(example.image), example.user_text(llava.layout)
        plain = llava.text_of(generate(llava, image, text, 5))
        for method in METHODS:
            row = by_place[method.name, example.example_id]
            alone = decode_texts(
                llava, method, [Question(image, example.user_text(method.layout(llava.layout)), example.example_id)]
            )[0]
            assert row["text"] == alone
            assert row["answer"] == parse_answer(alone, example.labels)
            assert row["matched_text"] == (None if method.name == "focus-on-vision" else plain)
            assert (row["side"], row["task"], row["model"]) == (example.side, example.task, llava.name)


def revis_vectors(engine: TransformersEngine) -> RevisVectors:
    """A random direction that about half of the hidden states point away from."""
    size = engine.model.get_input_embeddings().weight.shape[1]
    visual = np.random.default_rng(5).normal(size=(2, size)).astype(np.float32)
    choice = LayerChoice(layer=0, threshold=0.0, false_positive_risk=(), factual_risk=(), reason="")
    return RevisVectors(visual, visual, (), choice, 1.1, {}, {})


def risky_positions(engine: TransformersEngine, vectors: RevisVectors, question: Question, tokens: list[int]) -> int:
    """One plain pass over prompt and answer; states after the steered layer do not know that they are steered."""
    inputs = view_inputs(engine, IMAGE, [question])
    inputs = engine.reader.with_tail(inputs, torch.tensor([tokens], dtype=torch.long))
    kept: list[torch.Tensor] = []

    def keep(_module: object, _inputs: object, output: torch.Tensor | tuple[torch.Tensor, ...]) -> None:
        kept.append(output[0] if isinstance(output, tuple) else output)

    hook = engine.model.get_decoder().layers[0].register_forward_hook(keep)
    engine.reader.read(inputs)
    hook.remove()
    states, direction = kept[0][0].float(), torch.from_numpy(vectors.visual[0])
    return sum(float(torch.cosine_similarity(state, direction, dim=0)) < 0 for state in states)


@pytest.mark.parametrize("batch_size", [1, 5])
def test_the_open_positions_of_revis_are_recorded_with_its_answers(
    llava: TransformersEngine, benchmark: Benchmark, store: ScoreStore, batch_size: int, tmp_path: Path
) -> None:
    vectors = revis_vectors(llava)
    methods = (REVIS(vectors), ReleasedREVIS.from_vectors(vectors), NoLan())
    run = BaselineRun(llava, benchmark, store, methods, batch_size=batch_size)
    assert run.run() == ()
    rows = {(row["method"], row["example_id"]): row for row in run.rows()}
    shares = []
    for example in benchmark:
        assert rows["nolan", example.example_id]["positions"] is None
        for method in methods[:2]:
            question = Question(open_image(example.image), example.user_text(llava.layout), example.example_id)
            (alone,) = decode_observed(llava, method, [question])
            read = alone.tokens[: llava.max_new_tokens - 1]  # the last possible token is written but not read
            row = rows[method.name, example.example_id]
            prompt = view_inputs(llava, IMAGE, [question])["input_ids"].shape[1]
            assert row["positions"] == prompt + len(read)
            assert row["active_positions"] == risky_positions(llava, vectors, question, read)
            shares.append(row["active_positions"] / row["positions"])
    assert 0.1 < min(shares) <= max(shares) < 0.9
    assert ReleasedREVIS.from_vectors(vectors).settings()["strength"] == 2.5
    table = benchmark_scores(benchmark, llava.name)
    infos = [MethodInfo(method.name, method.label, method.kind, method.settings(), None) for method in methods]
    write_answers(tmp_path / "baselines.parquet", infos, run.rows())
    revis, released, nolan = read_answers(tmp_path / "baselines.parquet", table)
    assert nolan.activity is None
    for found in (revis, released):
        expected = [rows[found.info.name, name]["active_positions"] for name in table.column("example_id")]
        assert found.activity is not None
        assert [each.active for each in found.activity] == expected


def benchmark_scores(benchmark: Benchmark, model: str) -> ScoreTable:
    """Any scores of the examples."""
    return ScoreTable.from_rows(
        [
            {"example_id": each.example_id, "pair_id": each.pair_id, "side": each.side, "task": each.task,
             "model": model, "benchmark": benchmark.name, "candidates": list(each.labels), "answer": each.answer,
             "image_scores": [0.0] * len(each.labels), "prior_scores": [0.0] * len(each.labels), "original": None}
            for each in benchmark
        ]
    )  # fmt: skip


def test_focus_on_vision_asks_with_its_instruction_in_front(
    llava: TransformersEngine, benchmark: Benchmark, store: ScoreStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def noting(_engine: TransformersEngine, _method: Method, questions: list[Question]) -> list[Decoded]:
        asked.extend(question.text for question in questions)
        return [Decoded([], None) for _ in questions]

    monkeypatch.setattr(run_module, "decode_observed", noting)
    BaselineRun(llava, benchmark, store, [FocusOnVision()]).run()
    plain = {example.user_text(llava.layout) for example in benchmark}
    assert {text.removeprefix(GROUNDING + "\n") for text in asked} == plain
    assert all(text.startswith(GROUNDING) for text in asked)


def test_the_matched_reference_is_decoded_once_for_all_methods(
    llava: TransformersEngine, benchmark: Benchmark, store: ScoreStore, decoded: list[tuple[str, str]]
) -> None:
    BaselineRun(llava, benchmark, store, METHODS).run()
    assert [name for name, _ in decoded].count(Plain.name) == len(benchmark)
    assert len(decoded) == 4 * len(benchmark)
    decoded.clear()
    BaselineRun(llava, benchmark, store, [FocusOnVision()]).run()
    assert decoded == []  # a prompt has no decoder to match


def test_a_run_goes_on_where_it_stopped(
    llava: TransformersEngine, benchmark: Benchmark, store: ScoreStore, decoded: list[tuple[str, str]]
) -> None:
    def stop(progress: Progress) -> None:
        if progress.done >= 8:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        BaselineRun(llava, benchmark, store, METHODS, batch_size=4).run(stop)
    first = list(decoded)
    assert 8 <= len(first) < 4 * len(benchmark)
    seen: list[Progress] = []
    again = BaselineRun(llava, benchmark, store, METHODS, batch_size=3)
    again.run(seen.append)
    assert seen[0] == Progress("Answering", len(first), 4 * len(benchmark), reused=len(first))
    assert seen[-1].done == 4 * len(benchmark)
    assert len(set(decoded)) == len(decoded) == 4 * len(benchmark)
    assert len(again.rows()) == len(METHODS) * len(benchmark)


def test_other_settings_and_other_images_are_computed_anew(
    llava: TransformersEngine, benchmark: Benchmark, store: ScoreStore, decoded: list[tuple[str, str]]
) -> None:
    BaselineRun(llava, benchmark, store, [NoLan()]).run()
    decoded.clear()
    BaselineRun(llava, benchmark, store, [NoLan(beta=0.5)]).run()
    assert {name for name, _ in decoded} == {"nolan"}
    decoded.clear()
    first = benchmark.examples[0].image
    first.write_bytes(benchmark.examples[4].image.read_bytes())  # another pair, another question
    BaselineRun(llava, benchmark, store, [NoLan()]).run()
    changed = {example.example_id for example in benchmark if example.image == first}
    assert {name for _, name in decoded} == changed
    decoded.clear()
    BaselineRun(llava, benchmark, store, [NoLan()], resize_to=32).run()
    assert len(decoded) == 2 * len(benchmark)


def test_noise_follows_the_name_of_the_example(
    llava: TransformersEngine, benchmark: Benchmark, store: ScoreStore, decoded: list[tuple[str, str]]
) -> None:
    BaselineRun(llava, benchmark, store, [VCD(), NoLan()]).run()
    decoded.clear()
    renamed = benchmark.with_examples([replace(each, example_id=f"new-{each.example_id}") for each in benchmark])
    BaselineRun(llava, renamed, store, [VCD(), NoLan()]).run()
    assert {name for name, _ in decoded} == {"vcd"}


def test_a_broken_image_costs_its_examples_and_nothing_else(
    llava: TransformersEngine, benchmark: Benchmark, store: ScoreStore
) -> None:
    broken, gone = benchmark.examples[0].image, benchmark.examples[2].image
    broken.write_bytes(b"not an image")
    gone.unlink()
    run = BaselineRun(llava, benchmark, store, [NoLan()])
    failures = run.run()
    lost = {example.example_id for example in benchmark if example.image in (broken, gone)}
    assert {failure.example_id for failure in failures} == lost
    assert any("not a readable image" in failure.reason for failure in failures)
    assert any("no such image" in failure.reason for failure in failures)
    assert {row["example_id"] for row in run.rows()} == {example.example_id for example in benchmark} - lost


def test_a_question_that_breaks_the_model_does_not_spoil_its_batch(
    llava: TransformersEngine, benchmark: Benchmark, store: ScoreStore
) -> None:
    bad = replace(benchmark.examples[1], question="What is behind <image>?")
    questions = benchmark.with_examples([bad, *benchmark.examples[2:]])
    failures = BaselineRun(llava, questions, store, [NoLan()]).run()
    assert {failure.example_id for failure in failures} == {bad.example_id}
    assert "control token" in failures[0].reason


def test_a_batch_needs_a_size(llava: TransformersEngine, benchmark: Benchmark, store: ScoreStore) -> None:
    with pytest.raises(UnpriorError, match="at least 1"):
        BaselineRun(llava, benchmark, store, METHODS, batch_size=0)


def test_a_killed_command_loses_nothing_that_was_stored(model_folder: Callable[[str], Path], tmp_path: Path) -> None:
    questions = write_benchmark(tmp_path, pairs=4)
    command: list[Any] = [
        Path(sys.executable).parent / "unprior", "baseline", "nolan", "--model", model_folder("llava"),
        "--benchmark", questions, "--batch-size", 1, "--cost-examples", 1, "--max-new-tokens", 8,
    ]  # fmt: skip
    killed, undisturbed = tmp_path / "killed", tmp_path / "undisturbed"

    def arguments(out: Path) -> list[str]:
        return [str(part) for part in (*command, "--out", out)]

    process = subprocess.Popen(arguments(killed), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    counts = []
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and process.poll() is None:
        time.sleep(0.05)
        if (killed / "scores.parquet").exists():
            with ScoreStore(killed / "store.sqlite") as opened:
                counts.append(opened.counts()[0])
            if counts[-1] >= counts[0] + 5:
                process.send_signal(signal.SIGKILL)
                break
    assert process.wait(timeout=60) == -signal.SIGKILL
    assert not (killed / "baselines.parquet").exists()
    for out in (killed, undisturbed):  # in this process, which has torch already
        with pytest.raises(SystemExit, match="0"):
            main(arguments(out)[1:])
    from pyarrow import parquet

    tables = [parquet.read_table(out / "baselines.parquet").to_pylist() for out in (killed, undisturbed)]
    assert tables[0] == tables[1]
