"""Arguments of another type: a message that names the parameter, what it takes and what it got, never a traceback."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from matplotlib.figure import Figure

import unprior
from unprior import ScoreTable, SelectivePriorCalibrator, UnpriorError
from unprior.benchmarks.schema import Benchmark, Example
from unprior.calibration.files import apply_file, fit_file
from unprior.plots.panels import Panels
from unprior.runs.evaluate import evaluate_file
from unprior.runs.run import run_models

ANYTHING: Any = None
"""Wrong on purpose, so of no type that mypy would refuse."""


def scored(**options: Any) -> ScoreTable:
    question = Example("q", Path("x.png"), "Is it red?", "qa", ("yes", "no"))
    return unprior.score(unprior.load_engine(), Benchmark("mine", [question]), "x", **options)


@pytest.fixture(scope="module")
def fitted(table: ScoreTable) -> SelectivePriorCalibrator:
    return SelectivePriorCalibrator().fit(table)


@pytest.mark.usefixtures("_tested_once")
@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda f, t: f.predict(None), "table: give a score table, see unprior.read_scores, not None"),
        (lambda f, t: f.clone().fit([1]), "table: give a score table, .*, not a list"),
        (lambda f, t: f.decide(None, [0, 1], [0, 1], None), "candidates: give a list .*, not None"),
        (lambda f, t: f.decide("ab", [0, 1], [0, 1], None), "candidates: give a list .*, not 'ab'"),
        (lambda f, t: f.save(3), "path: give a path, not 3"),
        (lambda f, t: f.load(None), "path: give a path, not None"),
        (lambda f, t: f.predict(t).plot(3), "ax: give axes of matplotlib, not 3"),
        (lambda f, t: t.write(3), "path: give a path, not 3"),
        (lambda f, t: unprior.read_scores(3), "path: give a path, not 3"),
        (lambda f, t: unprior.evaluate(None, [1]), "table: give a score table"),
        (lambda f, t: unprior.evaluate(t, None), "answers: give decisions, .*, not None"),
        (lambda f, t: unprior.evaluate(t, t.original, resamples="x"), "resamples: give a whole"),
        (lambda f, t: unprior.measure(None, None), "table: give a score table"),
        (lambda f, t: unprior.score(None, None, "x"), "engine: give a loaded model, .*load_engine, not None"),
        (lambda f, t: unprior.score("embedded", None, "x"), "engine: give a loaded model, .*not 'embedded'"),
        (lambda f, t: unprior.score(unprior.load_engine(), None, "x"), "benchmark: give questions, .*not None"),
        (lambda f, t: unprior.study(3), "names: give the name of a study, or a list of them, not 3"),
        (lambda f, t: unprior.study("all", 3), "run: give the folder of a run, or a list of them, not 3"),
        (lambda f, t: unprior.study("all", [3]), "run: give a path, not 3"),
        (lambda f, t: unprior.study("all", out=3), "out: give a path, not 3"),
        (lambda f, t: unprior.export_run(3), "run: give a path, not 3"),
        (lambda f, t: unprior.export_run("x", 3), "to: give the name of a target, such as 'inspect', not 3"),
        (lambda f, t: unprior.export_run("x", split=3), "split: give the name of a split, .*, not 3"),
        (lambda f, t: unprior.export_run("x", images="no"), "images: give True or False, not 'no'"),
        (lambda f, t: unprior.run(3), "config: give a RunConfig, .*, not 3"),
        (lambda f, t: unprior.run(model=3), "model: must be text, not 3"),
        (lambda f, t: run_models("embedded"), "models: give a list of names, .*, not 'embedded'"),
        (lambda f, t: unprior.RunConfig.read(3), "folder: give a path, not 3"),
        (lambda f, t: unprior.RunResult.from_table(None), "table: give a score table"),
        (lambda f, t: unprior.load_engine(3), "model: give the name or folder of a model, .*, not 3"),
        (lambda f, t: unprior.load_engine("m", engine="openai", base_urls="x"), "base_urls: give a list"),
        (lambda f, t: unprior.load_engine(max_new_tokens="x"), "max_new_tokens: give a whole number, not 'x'"),
        (lambda f, t: unprior.load_engine(layout="x"), "layout: give a PromptLayout, not 'x'"),
        (lambda f, t: unprior.load_engine(report="x"), "report: give a function that takes a Progress, not 'x'"),
        (lambda f, t: unprior.load_engine(image_backend=None), "image_backend=None .*: no such backend"),
        (lambda f, t: unprior.load_engine(device=5), "device: give a text, not 5"),
        (lambda f, t: unprior.load_engine(folder=3), "folder: give a text, not 3"),
        (lambda f, t: unprior.study(report=5), "report: give a function"),
        (lambda f, t: unprior.study(prepare="x"), "prepare: give True or False, not 'x'"),
        (lambda f, t: unprior.study([]), "no study is named"),
        (lambda f, t: scored(report=5), "report: give a function"),
        (lambda f, t: scored(resize="x"), "--resize x.: give a whole number from 0 to 8192"),
        (lambda f, t: scored(views="white"), "views: give a list, .*, not 'white'"),
        (lambda f, t: scored(allow_censored="x"), "allow_censored: give True or False, not 'x'"),
        (lambda f, t: scored(limit="a"), "limit: give a whole number, not 'a'"),
        (lambda f, t: scored(limit=-1), "limit=-1 .*: give at least 1"),
        (lambda f, t: scored(shard=3), "shard: give a text, .*, not 3"),
        (lambda f, t: scored(shard="\u00b2/4"), "give part and number of parts"),
        (lambda f, t: unprior.load_benchmark("cdh-bench", data_dir=Path("a\0b")), "no folder has such a name"),
        (lambda f, t: unprior.load_benchmark(3), "name: give the name of a benchmark, .*, not 3"),
        (lambda f, t: unprior.load_benchmark("microworld", 3), "folder: give a path, not 3"),
        (lambda f, t: unprior.ask(None, "x.png", "q"), "engine: give a loaded model"),
        (lambda f, t: unprior.ask(unprior.load_engine(), None, "q"), "image: give the path of an image"),
        (lambda f, t: unprior.ask(unprior.load_engine(), "x.png", "q", calibrator=3), "calibrator: give a cal"),
        (lambda f, t: unprior.synthesize(seed="x"), "seed: give a whole number, not 'x'"),
        (lambda f, t: fit_file(3), "scores: give a path, not 3"),
        (lambda f, t: apply_file(None, "x"), "calibrator: give a path, not None"),
        (lambda f, t: evaluate_file("x", 3), "decisions: give a path, not 3"),
    ],
)  # fmt: skip
def test_a_wrong_type_is_named(
    fitted: SelectivePriorCalibrator,
    table: ScoreTable,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    call: Callable[[Any, Any], Any],
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UnpriorError, match=message):
        call(fitted, table)
    assert list(tmp_path.iterdir()) == []


def test_panels_need_axes_of_matplotlib() -> None:
    panels = Panels((lambda axes, style: axes.plot([0, 1]),), width=3, height=2)
    with pytest.raises(UnpriorError, match="ax: give axes of matplotlib, not 3"):
        panels.plot(ANYTHING or 3)
    with pytest.raises(UnpriorError, match="ax: the figure has 1 panels; give as many axes, not 2"):
        panels.plot(Figure().subplots(1, 2))
