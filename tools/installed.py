"""Tries an installed unprior from outside the repository: its files, its commands, and the embedded model.

``python -I tools/installed.py VERSION`` runs in an empty folder, with the Python of the environment to try. Without
torch it checks that the commands that ask a model say how to get it.
"""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.metadata import distribution
from importlib.util import find_spec
from pathlib import Path

DATA = (
    "py.typed",
    "embedded/model/model.safetensors",
    "embedded/model/tokenizer.json",
    "embedded/calibrator/calibrator.json",
    "engines/support.json",
    "report/templates/report.html.j2",
    "reproduction/paper.json",
    "serving/assets/page.html.j2",
)
"""A file of every kind that the package reads; py.typed is for type checkers."""


def check_files(version: str) -> None:
    """The package is the installed one, of this version, with all that its record lists."""
    import unprior

    package = Path(unprior.__file__).resolve().parent
    _require(package.is_relative_to(Path(sys.prefix).resolve()), f"unprior comes from {package}, not from {sys.prefix}")
    installed = distribution("unprior")
    _require(installed.version == unprior.__version__ == version, f"the version is {unprior.__version__}")
    for name in DATA:
        _require((package / name).is_file(), f"{name} is missing")
    listed = installed.files or []
    absent = [str(path) for path in listed if not Path(str(path.locate())).exists()]
    _require(not absent, f"missing of what was installed: {absent}")
    others = {path.parts[0] for path in listed if path.suffix == ".py"} - {"unprior"}
    _require(not others, f"the wheel installs more than one package: {others}")


def check_core() -> None:
    """A table of scores becomes a calibrator, decisions and an evaluation; lists and plans are printed."""
    unprior("synth", "--out", "scores.parquet")
    unprior("fit", "scores.parquet", "--out", "calibrator.json")
    unprior("apply", "calibrator.json", "scores.parquet", "--out", "decisions.jsonl")
    tasks = json.loads(unprior("evaluate", "scores.parquet", "decisions.jsonl", "--json"))["tasks"]
    _require(bool(tasks), "the evaluation has no tasks")
    unprior("plan", "--epsilon", "0.06", "--pairs", "70")
    _require("qwen3_vl" in unprior("models"), "`unprior models` does not list qwen3_vl")
    _require("microworld" in unprior("data", "list"), "`unprior data list` does not list microworld")


def check_model() -> None:
    """`unprior run` goes the whole way with the embedded model, and `unprior ask` uses its calibrator."""
    unprior("run", "--out", "run")
    _require(Path("run/report.html").stat().st_size > 0, "`unprior run` wrote no report")
    image = next(path for path in sorted(Path("run").rglob("*.png")) if path.is_file())
    answer = json.loads(unprior("ask", str(image), "Is there a circle?", "--json"))
    _require(answer["calibrator"] == "packaged", "`unprior ask` did not use the packaged calibrator")


def check_message() -> None:
    """Without torch, the same commands say what to install."""
    for command in (["run", "--out", "run"], ["doctor"]):
        said = unprior(*command, fails=True)
        _require("pip install 'unprior[hf]'" in said, f"`unprior {command[0]}` does not say what to install: {said}")


def unprior(*arguments: str, fails: bool = False) -> str:
    """Run the installed command; what it printed, or with ``fails`` its message."""
    command = [str(Path(sys.executable).with_name("unprior")), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, encoding="utf-8")
    _require(done.returncode == (2 if fails else 0), f"{' '.join(command)} ended with {done.returncode}\n{done.stderr}")
    return done.stderr if fails else done.stdout


def _require(held: bool, otherwise: str) -> None:
    if not held:
        raise SystemExit(otherwise)


def main() -> None:
    """Check all that can be checked here."""
    check_files(sys.argv[1])
    check_core()
    if find_spec("torch") and find_spec("transformers"):
        check_model()
        print("files, commands and the embedded model: fine", flush=True)
    else:
        check_message()
        print("files and commands: fine; there is no torch here, and commands that need it say so", flush=True)


if __name__ == "__main__":
    main()
