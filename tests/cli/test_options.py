"""Options, the file of --config, and the configuration that a folder has already."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

import tiny_models
from hand_questions import write_benchmark
from unprior.runs.config import RunConfig
from unprior.scores import read_scores


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_models.build("llava", tmp_path_factory.mktemp("llava"))


def test_scoring_keeps_the_method_and_the_batch_size_of_a_run(run: Callable, model: Path, tmp_path: Path) -> None:
    questions = write_benchmark(tmp_path)
    method = {"epsilon_cs": 0.1, "uncertainty": True, "baselines": "vcd", "cost_examples": 3}
    RunConfig.from_options(model=str(model), benchmark=questions, out="out", batch_size=2, **method).write()
    before = RunConfig.read("out")
    command = ("score", "--model", model, "--benchmark", questions, "--out", "out", "--limit", 1)
    assert run(*command).code == 0
    assert RunConfig.read("out") == before
    assert run(*command, "--batch-size", 1).code == 0
    assert RunConfig.read("out") == before.with_options(batch_size=1)


def test_scoring_keeps_and_notes_what_is_asked_about_claims(run: Callable, model: Path, tmp_path: Path) -> None:
    questions = write_benchmark(tmp_path)
    lines = [json.loads(line) for line in questions.read_text().splitlines()]
    asked = [line | {"claims": ["red", "blue"]} if "options" not in line else line for line in lines]
    questions.write_text("\n".join(map(json.dumps, asked)))
    command = ("score", "--model", model, "--benchmark", questions, "--out", "out", "--limit", 4)
    first = run(*command, "--prior", "canonical")
    assert first.code == 0
    assert "Passes per question (canonical prior): 2.0 with the image, 3.0 without" in first.out
    assert RunConfig.read("out").method.prior == "canonical"
    again = run(*command, "--json").json
    assert (again["computed"], again["image_passes"], again["text_passes"]) == (0, 2.0, 3.0)
    assert len(dict(read_scores("out/scores.parquet").column("views")[1])) == 6
    plain = run(*command, "--prior", "plain", "--json").json
    assert (plain["computed"], plain["image_passes"], RunConfig.read("out").method.prior) == (0, 1.0, "plain")
    run(*command, "--prior", "canonic").refused("--prior canonic: choose plain, symmetric or canonical")


def test_other_methods_keep_the_limit_and_the_version_of_a_run(
    run: Callable, small_world: Path, tmp_path: Path
) -> None:
    given = {"benchmark": small_world, "out": tmp_path, "epsilon_cs": 0.2, "uncertainty": True, "baselines": "vcd"}
    RunConfig.from_options(**given, batch_size=7, cost_examples=1).write()
    before = RunConfig.read(tmp_path)
    done = run("baseline", "cfg-score", "--benchmark", small_world, "--out", tmp_path, "--json")
    assert done.code == 0
    assert RunConfig.read(tmp_path) == before.with_options(baselines="vcd,cfg-score")


def test_a_dry_run_of_other_methods_shows_their_configuration(run: Callable, tmp_path: Path) -> None:
    command = ("baseline", "vcd", "cfg-score", "--out", tmp_path / "out", "--dry-run")
    shown = tomllib.loads(run(*command).out)
    assert shown["method"]["baselines"] == ["vcd", "cfg-score"]
    assert run(*command, "--json").json["stored_results"] == 0
    assert not (tmp_path / "out").exists()
    run("baseline", "vdc", "--dry-run").refused("did you mean vcd")


def test_a_file_that_is_not_there_or_out_of_range_is_named(run: Callable, tmp_path: Path) -> None:
    run("run", "--config", "nowhere.toml").refused("error: nowhere.toml: no such file; check the path")
    (tmp_path / "wide.toml").write_text("[method]\nepsilon_cs = 3\n")
    run("run", "--config", "wide.toml").refused("wide.toml: method.epsilon_cs = 3.0: give at least 0 and at most 1")


def test_flags_can_take_back_what_a_file_says(run: Callable, tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text("[method]\nuncertainty = true\n[engine]\nallow_censored = true\n")
    shown = tomllib.loads(run("run", "--config", file, "--dry-run").out)
    assert (shown["method"]["uncertainty"], shown["engine"]["allow_censored"]) == (True, True)
    off = ("--no-uncertainty", "--no-allow-censored")
    shown = tomllib.loads(run("run", "--config", file, "--dry-run", *off).out)
    assert (shown["method"]["uncertainty"], shown["engine"]["allow_censored"]) == (False, False)
    assert "--no-trust-remote-code" not in run("run", "--help").out


def test_what_must_be_given_may_stand_in_the_file(run: Callable, tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text('[model]\nname = "embedded"\n')
    run("score", "--config", file, "--dry-run").refused("Missing option '--benchmark'", "not in the file of --config")
    run("score", "--config", file, "--benchmark", "microworld", "--dry-run").refused("Missing option '--out'")
    complete = run("score", "--config", file, "--benchmark", "microworld", "--out", "out", "--dry-run")
    assert complete.code == 0
    options = ("--model", "embedded", "--benchmark", "microworld", "--out", "out")
    assert run("score", *options, "--dry-run").out == complete.out
    RunConfig.from_options(out="run").write()
    for whole in (Path("run"), Path("run", "run.toml")):
        assert run("score", "--config", whole, "--dry-run").code == 0


def test_a_file_cannot_allow_code_to_run(run: Callable, tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text("[model]\ntrust_remote_code = true\n")
    shown = run("run", "--config", tmp_path / "mine.toml", "--dry-run")
    assert tomllib.loads(shown.out)["model"]["trust_remote_code"] is False
    assert "give --trust-remote-code" in " ".join(shown.err.split())
