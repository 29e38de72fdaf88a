"""The README: its commands are those of the program, its programs run, what it points at is there."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer

from unprior._version import __version__
from unprior.benchmarks.microworld.benchmark import microworld
from unprior.benchmarks.user_file import UserQuestion, write_questions
from unprior.cli import main
from unprior.cli.app import app
from unprior.embedded import FOLDER

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "README.md").read_text(encoding="utf-8")
HUB_MODEL = "Qwen/Qwen3-VL-8B-Instruct"
MAX_IMAGE = 300_000
TEST_PAIRS = 10
OWN_FILES = ("questions.jsonl", "six.png")
"""What the README calls the reader's own files."""


def blocks(language: str) -> list[str]:
    """The code blocks of a language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)


def commands() -> Iterator[list[str]]:
    """The words of every command, without comments."""
    for block in blocks("console"):
        for line in block.replace("\\\n", " ").splitlines():
            assert line.startswith("$ "), line
            yield shlex.split(line[2:], comments=True)


def commands_of(*programs: str) -> list[list[str]]:
    """The words after the name of a program."""
    return [words[1:] for words in commands() if words[0] in programs]


def tried() -> list[list[str]]:
    """What is run without installing: the words after `uvx --from`."""
    return [words[1:] for words in commands_of("uvx") if words[0] == "--from"]


def test_every_command_is_of_a_known_program() -> None:
    assert {words[0] for words in commands()} == {"make", "pip", "pipx", "unprior", "uvx"}
    assert len(tried()) == len(commands_of("uvx"))


def test_set_up_commands_come_first() -> None:
    assert list(commands())[:2] == [["make", "demo"], ["make", "test"]]


@pytest.mark.parametrize("words", commands_of("make"), ids=" ".join)
def test_make_knows_its_targets(words: list[str]) -> None:
    (target,) = words
    assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(), re.MULTILINE)


@pytest.mark.parametrize("words", commands_of("pip", "pipx"), ids=" ".join)
def test_extras_and_files_to_install_exist(words: list[str]) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert words[0] == "install"
    found = re.fullmatch(r"(unprior|\.)\[(.*)\]", words[-1])
    assert found
    assert set(found[2].split(",")) <= set(project["optional-dependencies"])
    assert all((ROOT / name).is_file() for name in words[1:-1] if not name.startswith("--"))


@pytest.mark.parametrize("source", [words[0] for words in tried()])
def test_what_is_tried_is_this_package(source: str) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    if source.endswith(".whl"):
        assert source == f"./dist/unprior-{__version__}-py3-none-any.whl"
    else:
        found = re.fullmatch(r"unprior\[(.*)\]", source)
        assert found
        assert set(found[1].split(",")) <= set(project["optional-dependencies"])


@pytest.mark.parametrize("words", [*commands_of("unprior"), *(words[2:] for words in tried())], ids=" ".join)
def test_commands_are_taken_by_the_program(words: list[str]) -> None:
    command, rest = typer.main.get_command(app), list(words)
    while hasattr(command, "get_command"):
        name = rest.pop(0)
        command = command.get_command(typer.Context(command), name)
        assert command is not None, name
    command.make_context(str(command.name), rest)


def test_lines_of_questions_are_read() -> None:
    (block,) = blocks("json")
    lines = [UserQuestion.model_validate(json.loads(line)) for line in block.splitlines()]
    assert {line.side for line in lines} == {"cf", "cs"}
    assert len({line.pair for line in lines}) == 1


@pytest.mark.parametrize("target", sorted(set(re.findall(r"\]\(((?!https?:)[^)#]+)", TEXT))))
def test_links_lead_to_files(target: str) -> None:
    assert (ROOT / target).exists()


@pytest.mark.parametrize("target", re.findall(r'<(?:img|source)[^>]* src(?:set)?="([^"]+)"', TEXT))
def test_images_are_small(target: str) -> None:
    assert (ROOT / target).stat().st_size <= MAX_IMAGE


@pytest.fixture
def own_folder(tmp_path: Path, drawn_world: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a reader with a file of choices and an image."""
    world = microworld(drawn_world, 3)
    choices = [example for example in world if example.task == "mc"]
    judged = sorted({int(example.pair_id or 0) for example in choices if example.split == "test"})[:TEST_PAIRS]
    kept = [example for example in choices if example.split == "dev" or example.pair_id in judged]
    write_questions(tmp_path / OWN_FILES[0], world.with_examples(kept))
    shutil.copy(kept[0].image, tmp_path / OWN_FILES[1])
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.usefixtures("_tested_once")
def test_python_runs_as_it_stands(own_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (block,) = blocks("python")
    assert HUB_MODEL in block
    exec(compile(block.replace(HUB_MODEL, "embedded"), "README.md", "exec"), {})
    told = capsys.readouterr().out
    assert told.startswith("Evaluation of SPC (certified, ε = 0.06) against Original")
    assert (own_folder / "run" / "scores.parquet").is_file()


@pytest.mark.slow
@pytest.mark.usefixtures("_tested_once")
def test_commands_for_a_model_of_ones_own_run(own_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With a folder in place of the name on the hub."""
    shutil.copytree(FOLDER, own_folder / "my-model")
    for words in commands_of("unprior"):
        if not {HUB_MODEL, OWN_FILES[0]} & set(words):
            continue
        with pytest.raises(SystemExit) as ended:
            main([word.replace(HUB_MODEL, "my-model") for word in words])
        assert not ended.value.code, (words, capsys.readouterr().err)
    assert (own_folder / "run" / "report.html").is_file()
