"""Exporting runs on the command line, and every way in which that is refused."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from inspect_logs import read_log
from recorded_runs import write_run


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run. Do not write into it."""
    return write_run(tmp_path_factory.mktemp("finished") / "run")


@pytest.fixture
def copied(finished: Path, tmp_path: Path) -> Path:
    shutil.copytree(finished, tmp_path / "run")
    return tmp_path / "run"


def test_the_log_lies_in_the_run_folder_and_is_not_replaced(run: Callable, copied: Path) -> None:
    done = run("export", "run", "--to", "inspect")
    assert (done.code, done.out) == (
        0, "Log → run/inspect.eval\n`inspect view --log-dir run` shows it.\n",
    )  # fmt: skip
    log = copied / "inspect.eval"
    log.write_bytes(b"mine")
    run("export", "run", "--to", "inspect").refused("run/inspect.eval: already there", "replace it with --force")
    assert log.read_bytes() == b"mine"
    done = run("export", "run", "--to", "inspect", "--force", "--json")
    assert (done.code, done.json) == (0, {"written": ["run/inspect.eval"]})
    assert read_log(log).status == "success"


def test_options(run: Callable, finished: Path) -> None:
    arguments = ["export", finished, "--to", "inspect", "--split", "all", "--no-images"]
    assert run(*arguments, "--out", "logs/all.json").code == 0
    log = read_log("logs/all.json")
    assert {sample.metadata["split"] for sample in log.samples or []} == {"dev", "test"}
    assert "data:image" not in Path("logs/all.json").read_text()


def test_several_models_have_a_log_each(run: Callable, tmp_path: Path) -> None:
    for name in ("first", "second"):
        write_run(tmp_path / "runs" / name, model=name)
    (tmp_path / "runs" / "third").mkdir()
    shutil.copy("runs/first/scores.parquet", "runs/third/scores.parquet")
    done = run("export", "runs", "--to", "inspect", "--json")
    assert (done.code, done.json["written"]) == (0, ["runs/first/inspect.eval", "runs/second/inspect.eval"])
    assert "runs/third is left out: there is no decisions.jsonl" in done.err
    done = run("export", "runs", "--to", "inspect", "--out", "logs")
    assert done.code == 0
    models = [read_log(f"logs/{name}.eval", header_only=True).eval.model for name in ("first", "second")]
    assert models == ["first", "second"]
    run("export", "runs", "--to", "inspect", "--out", "one.eval").refused(
        "one.eval: this is one file for 2 runs; give a folder by --out"
    )


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["nowhere", "--to", "inspect"], ["nowhere: no such folder; give the folder of a run"]),
        (["empty", "--to", "inspect"], ["empty: this is no run", "scores.parquet"]),
        (["run/scores.parquet", "--to", "inspect"], ["run/scores.parquet: this is a file"]),
        (["run", "--to", "inspekt"], ["--to inspekt: no such target (did you mean inspect?)"]),
        (["run"], ["Missing option '--to'"]),
        (["run", "--to", "inspect", "--split", "trian"], ["trian"]),
        (["run", "--to", "inspect", "--out", "log.evl"], ["log.evl: end its name with .eval or .json"]),
        (["run", "--to", "inspect", "--out", "run/run.toml/log.eval"], ["run/run.toml/log.eval: cannot be written"]),
    ],
)
def test_mistakes(run: Callable, copied: Path, arguments: list[str], told: list[str]) -> None:
    Path("empty").mkdir()
    before = sorted(Path().rglob("*"))
    run("export", *arguments).refused(*told)
    assert sorted(Path().rglob("*")) == before


@pytest.mark.parametrize("name", ["decisions.jsonl", "calibrator.json"])
def test_an_unfinished_run_is_refused(run: Callable, copied: Path, name: str) -> None:
    (copied / name).unlink()
    run("export", "run", "--to", "inspect").refused(f"run: there is no {name}; `unprior run --out run` makes it")
    assert not (copied / "inspect.eval").exists()
    copied.rename("runs")
    Path("all").mkdir()
    Path("runs").rename("all/run")
    run("export", "all", "--to", "inspect").refused("all/run", f"there is no {name}")


def test_files_of_different_runs_are_refused(run: Callable, copied: Path, tmp_path: Path) -> None:
    other = write_run(tmp_path / "others" / "run", parameters={"epsilon_cs": 0.9})
    shutil.copy(other / "calibrator.json", copied)
    run("export", "run", "--to", "inspect").refused(
        "calibrator.json is SPC (standard, ε = 0.90), the answers in decisions.jsonl are of SPC (standard, ε = 0.04)"
    )
    third = write_run(tmp_path / "third" / "run", seed=4)
    shutil.copy(third / "calibrator.json", copied)
    run("export", "run", "--to", "inspect").refused("calibrator.json decides", "so one of them is of another run")
    shutil.copy(third / "decisions.jsonl", copied)
    run("export", "run", "--to", "inspect").refused("run/decisions.jsonl", "Decisions belong to the table")
    (copied / "scores.parquet").write_bytes(b"junk")
    run("export", "run", "--to", "inspect").refused("run/scores.parquet")
    assert not (copied / "inspect.eval").exists()


def test_what_is_there_stays_when_the_export_fails(run: Callable, copied: Path) -> None:
    (copied / "inspect.eval").write_bytes(b"mine")
    (copied / "calibrator.json").write_text("{}")
    run("export", "run", "--to", "inspect", "--force").refused("calibrator.json")
    assert (copied / "inspect.eval").read_bytes() == b"mine"


def test_the_files_of_a_run_are_never_replaced(run: Callable, copied: Path, finished: Path) -> None:
    (copied / "report.json").write_text("{}")
    (copied / "link.eval").symlink_to("scores.parquet")
    questions = finished.parent / "questions.jsonl"
    Path("questions.json").symlink_to(questions)
    before = {path: path.read_bytes() for path in (*copied.iterdir(), questions)}
    for name in ("run/calibrator.json", "run/report.json", "run/link.eval", "questions.json"):
        run("export", "run", "--to", "inspect", "--force", "--out", name).refused(
            f"{name}: this would overwrite its own input"
        )
    assert {path: path.read_bytes() for path in (*copied.iterdir(), questions)} == before


def test_links_to_runs_of_one_name_have_a_log_each(run: Callable, tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    for name in ("first", "second"):
        write_run(tmp_path / name / "run", model=name)
        (tmp_path / "runs" / name).symlink_to(tmp_path / name / "run")
    done = run("export", "runs", "--to", "inspect", "--out", "logs", "--no-images", "--json")
    assert done.json["written"] == ["logs/first.eval", "logs/second.eval"]
    assert [read_log(name, header_only=True).eval.model for name in done.json["written"]] == ["first", "second"]
    Path("first/run/inspect.eval").symlink_to(tmp_path / "second" / "run" / "inspect.eval")
    run("export", "runs", "--to", "inspect").refused("would be the file of both runs/first and runs/second")


def test_no_log_is_written_when_one_run_cannot_be_read(run: Callable, tmp_path: Path) -> None:
    for name in ("first", "second"):
        write_run(tmp_path / "runs" / name, model=name)
    Path("runs/second/calibrator.json").write_text("{}")
    run("export", "runs", "--to", "inspect").refused("runs/second/calibrator.json")
    assert not Path("runs/first/inspect.eval").exists()


def test_without_inspect_the_message_says_what_to_install(
    run: Callable, copied: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "inspect_ai", None)
    run("export", "run", "--to", "inspect").refused("needs inspect_ai", "pip install 'unprior[inspect]'")
