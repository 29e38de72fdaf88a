"""Every command in an environment that holds the package and what it requires, and no extra."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, packages_distributions, requires
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from PIL import Image

import unprior
from decision_logs import decision, write_log
from unprior.cli.app import Commands

HF, SERVE, RAY = (f"pip install 'unprior[{extra}]'" for extra in ("hf", "serve", "ray"))
PROGRAM = """
import contextlib, importlib, io, json, sys, traceback
before = set(sys.modules)  # setuptools starts with Python
task = json.load(sys.stdin)
absent = set(task["absent"])


class Absent:
    def __init__(self, finder):
        self.finder = finder

    def find_spec(self, name, path=None, target=None):
        return None if name.partition(".")[0] in absent else self.finder.find_spec(name, path, target)

    def __getattr__(self, name):
        return getattr(self.finder, name)


sys.meta_path[:] = [Absent(finder) for finder in sys.meta_path]
from unprior.cli import main

results = {}
for command in task["commands"]:
    out, err, code = io.StringIO(), io.StringIO(), 0
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            main(command.split())
        except SystemExit as ended:
            code = ended.code or 0
        except BaseException:
            traceback.print_exc()
            code = -1
    results[command] = [code, out.getvalue(), err.getvalue()]
loaded = sorted(absent & {name.partition(".")[0] for name in sys.modules.keys() - before})
json.dump([results, loaded], sys.stdout)
"""
NAMES = [command.name for commands in Commands.listed.values() for command in commands]
IN_DATA = [f"data {name}" for name in ("list", "show", "get", "check", "gallery")]
HELP = ["--help", "--version", *(f"{name} --help" for name in [*NAMES, *IN_DATA])]
NEEDY = {
    "run --benchmark questions.jsonl --out run": HF,
    "run --benchmark questions.jsonl --out with-model --model model": HF,
    "ask image.png Legs?": HF,
    "baseline vcd --benchmark questions.jsonl --out run": HF,
    "doctor": HF,
    "score --benchmark questions.jsonl --out run --model embedded": HF,
    "score --benchmark questions.jsonl --out run --model embedded --ray local": RAY,
    "score --benchmark questions.jsonl --out with-vllm --model model --engine vllm": "pip install 'vllm",
    "serve --check": SERVE,
    "apply me/mine scores.jsonl --out decisions.jsonl": "pip install huggingface_hub",
    "publish calibrator.json --repo me/mine": "pip install huggingface_hub",
    "ask image.png Legs? --calibrator me/mine": "pip install huggingface_hub",
}
"""Commands that need more, and what they must say."""
WORKING = (
    "synth --out scores.jsonl",
    "convert scores.jsonl --out scores.parquet",
    "fit scores.jsonl --out calibrator.json --retention certified --epsilon-cs 0.1",
    "apply calibrator.json scores.jsonl --out decisions.jsonl --explain",
    "evaluate scores.jsonl decisions.jsonl --resamples 100",
    "publish calibrator.json --out folder",
    "plan --epsilon 0.06 --pairs 70",
    "evaluate-answers questions.jsonl answers.jsonl",
    "data list",
    "data show cdh-bench",
    "data check questions.jsonl",
    "data gallery questions.jsonl",
    "models",
    "study list",
    "label log.jsonl",
    "score --benchmark questions.jsonl --out run --model model --dry-run",
)
"""Commands that must do their work, in this order: some read what others wrote."""
REFUSED = {
    "monitor calibrator.json decisions.jsonl": "no decision has an answer",
    "export nowhere --to inspect": "nowhere",
    "reproduce nowhere": "nowhere",
    "study main-comparison --run nowhere": "nowhere",
}
"""Commands that need no extra, with mistakes of another kind."""


@dataclass(frozen=True)
class Bare:
    """What every command did."""

    results: dict[str, tuple[int, str, str]]
    loaded: list[str]
    """Modules of extras that were imported all the same."""


def required(name: str = "unprior") -> set[str]:
    """A distribution with all that it requires without extras."""
    found: set[str] = set()
    waiting = [(name, frozenset({""}))]
    seen = set()
    while waiting:
        current = waiting.pop()
        if current in seen:
            continue
        seen.add(current)
        name, extras = current
        found.add(canonicalize_name(name))
        try:
            listed = [Requirement(line) for line in requires(name) or ()]
        except PackageNotFoundError:  # of another platform, or an optional one
            continue
        waiting += [
            (each.name, frozenset({"", *each.extras}))
            for each in listed
            if each.marker is None or any(each.marker.evaluate({"extra": extra}) for extra in extras)
        ]
    return found


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Bare:
    folder = tmp_path_factory.mktemp("bare")
    Image.new("RGB", (32, 32), "red").save(folder / "image.png")
    (folder / "model").mkdir()
    question = {"image": "image.png", "question": "Legs?", "options": ["four", "five"]}
    pair = [{"answer": "five", "side": "cf"}, {"answer": "four", "side": "cs"}]
    rows = [
        question | {"id": f"{each['side']}-{number}", "pair": number, "split": "dev" if number < 3 else "test"} | each
        for number in range(1, 5)
        for each in pair
    ]
    answers = [{"example_id": row["id"], "text": "A"} for row in rows]
    for name, records in (("questions.jsonl", rows), ("answers.jsonl", answers)):
        (folder / name).write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    write_log(folder / "log.jsonl", decision("r/0"), decision("r/1"))
    kept = required()
    absent = [
        module
        for module, owners in packages_distributions().items()
        if not kept & {canonicalize_name(owner) for owner in owners}
    ]
    assert {"torch", "transformers", "starlette", "ray", "huggingface_hub", "pandas"} <= set(absent)
    commands = [*HELP, *WORKING, *NEEDY, *REFUSED]
    environment = {"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8", "COLUMNS": "200", "UNPRIOR_DATA": str(folder / "data")}
    environment |= {"PYTHONPATH": str(Path(unprior.__file__).parents[1]), "HOME": str(folder)}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], input=json.dumps({"absent": absent, "commands": commands}), cwd=folder,
        env=environment, capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip
    results, loaded = json.loads(done.stdout)
    return Bare({command: tuple(result) for command, result in results.items()}, loaded)


@pytest.mark.parametrize("command", HELP)
def test_help_needs_no_extra(bare: Bare, command: str) -> None:
    code, out, err = bare.results[command]
    assert (code, err) == (0, "")
    assert out


@pytest.mark.parametrize("command", WORKING)
def test_a_command_without_a_model_works(bare: Bare, command: str) -> None:
    code, out, err = bare.results[command]
    assert code == 0, err
    assert out


@pytest.mark.parametrize("command", NEEDY)
def test_a_command_says_what_to_install(bare: Bare, command: str) -> None:
    code, _, err = bare.results[command]
    assert code == 2, err
    assert "error: " in err
    assert NEEDY[command] in err


@pytest.mark.parametrize("command", REFUSED)
def test_other_mistakes_are_explained_as_ever(bare: Bare, command: str) -> None:
    code, _, err = bare.results[command]
    assert code == 2, err
    assert REFUSED[command] in err


def test_nothing_of_an_extra_was_there(bare: Bare) -> None:
    assert bare.loaded == []
    assert {command.split()[0] for command in bare.results if not command.endswith("--help")} >= set(NAMES)


def test_no_command_ends_with_a_traceback(bare: Bare) -> None:
    assert [command for command, (_, out, err) in bare.results.items() if "Traceback" in out + err] == []
