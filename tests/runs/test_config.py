"""The configuration of a run: options, files, and what is wrong with them."""

from __future__ import annotations

import os
import sys
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest

from unprior import UnpriorError
from unprior.runs.config import FILE, OPTIONS, MethodConfig, RunConfig
from unprior.runs.folder import check_folder, find_config
from unprior.runs.score import plan_run


def test_every_setting_has_one_name_and_a_text() -> None:
    assert {"model", "engine", "base_url", "benchmark", "epsilon_cs", "out"} <= set(OPTIONS)
    assert all(option.flag.help and option.written.startswith("--") for option in OPTIONS.values())
    assert {option.group for option in OPTIONS.values()} == {*asdict(RunConfig())}


def test_options_reach_their_place_and_the_file_brings_them_back(tmp_path: Path) -> None:
    questions = tmp_path / "mine.jsonl"
    questions.touch()
    config = RunConfig.from_options(
        model="m", engine="openai", base_url=["http://a", "http://b"], baselines="vcd, nolan", benchmark=questions,
        resize=0, out=tmp_path / "run", data_dir=str(tmp_path),
    )  # fmt: skip
    assert config.engine.base_urls == ("http://a", "http://b")
    assert config.method.baselines == ("vcd", "nolan")
    assert config.get("data_dir") == tmp_path
    config.check()
    config.write()
    for read in (RunConfig.read(tmp_path / "run"), RunConfig.from_file(tmp_path / "run" / FILE)):
        assert read == config


def test_what_a_file_does_not_say_is_as_by_default(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text("[method]\nepsilon_cs = 0\n")
    assert RunConfig.from_file(path) == RunConfig.from_options(epsilon_cs=0.0)


def test_files_of_inputs_are_noted_by_their_full_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mine.jsonl").touch()
    RunConfig.from_options(benchmark="mine.jsonl", data_dir="data", revis_data="revis.jsonl", out="run").write()
    read = RunConfig.read("run")
    assert read.benchmark.name == str(tmp_path / "mine.jsonl")
    assert (read.benchmark.data_dir, read.method.revis_data) == (tmp_path / "data", tmp_path / "revis.jsonl")


@pytest.mark.parametrize(
    ("text", "fragments"),
    [
        ("[engine]\nbatchsize = 3", ["[engine] has no setting batchsize (did you mean batch_size?)"]),
        ("[engin]", ["there is no group [engin] (did you mean engine?)"]),
        ("engine = 3", ["engine is a group", "[engine]"]),
        ('[engine]\nbatch_size = "x"', ['engine.batch_size: must be a whole number, not "x"', "leave it out"]),
        ("[benchmark]\nresize = 1.5", ["benchmark.resize: must be a whole number"]),
        ("[model", ["not a configuration in TOML", "unprior run --dry-run"]),
        ("[engine]\nbatch_size = " + "1" * 5000, ["not a configuration in TOML"]),
        ("[engine]\nbatch_size = 0x" + "f" * 5000, ["not a configuration in TOML"]),
        ("[model]\nname = 2020-01-01", ["model.name: this is a date", "quotes"]),
        ("a = " + "[" * 20_000, ["not a configuration in TOML"]),
    ],
)
def test_a_wrong_file_names_the_place_and_the_remedy(tmp_path: Path, text: str, fragments: list[str]) -> None:
    path = tmp_path / "wrong.toml"
    path.write_text(text)
    with pytest.raises(UnpriorError) as error:
        RunConfig.from_file(path)
    for fragment in (str(path), *fragments):
        assert fragment in str(error.value)


def test_a_folder_of_anything_else_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UnpriorError, match="does not say which model and benchmark"):
        RunConfig.read(tmp_path)
    with pytest.raises(UnpriorError, match=r"gone\.toml: no such file; check the path$"):
        RunConfig.from_file(tmp_path / "gone.toml")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"batch_size": 0}, r"\(command line: --batch-size 0\): give at least 1"),
        ({"seed": 1000}, r"\(command line: --seed 1000\): give at least 0 and at most 999"),
        ({"epsilon_cs": float("nan")}, r"\(command line: --epsilon-cs nan\): give at least 0 and at most 1"),
        ({"epsilon_cs": -1}, r"\(command line: --epsilon-cs -1.0\): give at least 0 and at most 1"),
        ({"revis_strength": float("inf")}, r"--revis-strength inf\): give a finite number"),
        ({"data_dir": "a\0b"}, "data_dir: no path has the character NUL"),
        ({"baselines": "vdc"}, r"no method 'vdc' \(did you mean vcd\?\)"),
        ({"tensor_parallel": 2}, r"\(command line: --tensor-parallel 2\) goes with the engine vllm"),
        ({"prior": "canonicle"}, r"--prior canonicle\): choose plain, symmetric or canonical \("),
        ({"engine": "vlm"}, r"--engine vlm\): no such engine \(did you mean vllm\?\)"),
    ],
)
def test_values_that_cannot_be(options: dict[str, object], message: str) -> None:
    with pytest.raises(UnpriorError, match=message):
        RunConfig.from_options(**options).check()
    with pytest.raises(UnpriorError, match="did you mean epsilon_cs"):
        RunConfig.from_options(epsilon=1)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("epsilon_cs", "abc", 'epsilon_cs: must be a number, not "abc"; leave it out for the default, 0.04'),
        ("epsilon_cs", None, "epsilon_cs: must be a number, not null"),
        ("batch_size", "16", 'batch_size: must be a whole number, not "16"'),
        ("seed", 1.5, "seed: must be a whole number, not 1.5"),
        ("seed", True, "seed: must be a whole number, not true"),
        ("dtype", 5, "dtype: must be text, not 5"),
        ("model", None, "model: must be text, not null; leave it out for the default, embedded"),
        ("model", [], "model: must be text, not null; leave it out for the default, embedded"),
        ("model", ["a", 5], "model: must be text"),
        ("uncertainty", "no", 'uncertainty: must be true or false, not "no"'),
        ("revis_strength", "x", 'revis_strength: must be a number, not "x"; leave it out for the default'),
        ("out", 5, "out: must be a Path, not 5"),
        ("baselines", 5, "baselines: must be a list, not 5"),
        ("baselines", [5], "baselines.0: must be text, not 5"),
    ],
)
def test_values_of_another_type_are_refused_by_name(name: str, value: object, message: str) -> None:
    with pytest.raises(UnpriorError) as error:
        RunConfig.from_options(**{name: value})
    assert str(error.value).startswith(message)


def test_groups_made_by_hand_are_checked_as_well() -> None:
    with pytest.raises(UnpriorError, match="epsilon_cs: must be a number"):
        RunConfig(method=MethodConfig(epsilon_cs="abc")).check()  # type: ignore[arg-type]


def test_numbers_of_numpy_are_numbers() -> None:
    config = RunConfig.from_options(epsilon_cs=np.float32(0.5), seed=np.int64(3), uncertainty=np.bool_(True))
    assert (config.method.epsilon_cs, config.benchmark.seed, config.method.uncertainty) == (0.5, 3, True)
    assert type(config.benchmark.seed) is int


def test_a_limit_in_a_file_is_checked_and_the_file_named(tmp_path: Path) -> None:
    (tmp_path / "wide.toml").write_text("[method]\nepsilon_cs = 3\n")
    with pytest.raises(UnpriorError, match=r"wide\.toml: method\.epsilon_cs = 3\.0: give at least 0 and at most 1$"):
        RunConfig.from_file(tmp_path / "wide.toml")


def test_several_models_are_a_list_in_the_file(tmp_path: Path) -> None:
    config = RunConfig.from_options(model=["embedded", "my-model"], out=tmp_path)
    assert 'name = [\n    "embedded",\n    "my-model",\n]' in config.to_toml()
    config.write()
    assert RunConfig.read(tmp_path) == config
    with pytest.raises(UnpriorError, match=r"--model embedded --model my-model\): give one model here"):
        plan_run(config)
    alone = RunConfig.from_options(model=["embedded"])
    assert alone == RunConfig()
    assert 'name = "embedded"' in alone.to_toml()
    (tmp_path / "one.toml").write_text('[model]\nname = ["embedded"]\n')
    assert RunConfig.from_file(tmp_path / "one.toml") == RunConfig()
    (tmp_path / "none.toml").write_text("[model]\nname = []\n")
    with pytest.raises(UnpriorError, match=r"none\.toml: model\.name names no model"):
        RunConfig.from_file(tmp_path / "none.toml")


def test_runs_of_one_model_and_of_several_do_not_share_a_folder(tmp_path: Path) -> None:
    one, several = RunConfig.from_options(out=tmp_path), RunConfig.from_options(model=["a", "b"], out=tmp_path)
    several.write()
    check_folder(several)
    with pytest.raises(UnpriorError, match="holds a run of a, b; choose another folder"):
        check_folder(one)
    one.write()
    with pytest.raises(UnpriorError, match="holds a run of embedded; choose another folder"):
        check_folder(several)


@pytest.mark.parametrize("name", ["batch_size", "epsilon_cs", "revis_strength"])
def test_a_number_of_400_digits_is_refused(name: str, tmp_path: Path) -> None:
    group = OPTIONS[name].group
    (tmp_path / "long.toml").write_text(f"[{group}]\n{name} = {'1' * 400}\n")
    with pytest.raises(UnpriorError, match=name.replace("_", ".")):
        RunConfig.from_file(tmp_path / "long.toml").check()
    with pytest.raises(UnpriorError, match=name.replace("_", ".")):
        RunConfig.from_options(**{name: 10**400}).check()


def test_a_file_with_a_byte_order_mark_is_read(tmp_path: Path) -> None:
    (tmp_path / "marked.toml").write_text("[method]\nepsilon_cs = 0.5\n", encoding="utf-8-sig")
    assert RunConfig.from_file(tmp_path / "marked.toml").method.epsilon_cs == 0.5


@pytest.mark.skipif(sys.platform == "win32", reason="pipes are those of POSIX")
def test_a_pipe_is_no_configuration(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / FILE)
    assert find_config(tmp_path) is None  # reading it would wait for ever
