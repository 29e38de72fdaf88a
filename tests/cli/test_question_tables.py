"""`unprior run` and others on tables of questions: the same decisions as on the benchmark that a table was made of."""

from __future__ import annotations

import base64
import csv
import json
import shutil
import sqlite3
import tomllib
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from question_tables import HEADER, write_parquet, write_tsv
from unprior import RunConfig, load_benchmark, read_scores
from unprior.benchmarks.microworld.benchmark import microworld
from unprior.embedded import CALIBRATOR

STORE = "store.sqlite"


def decisions(path: Path) -> dict[str, dict[str, object]]:
    """What was decided about every example; everything but the name of the benchmark and when it was."""
    rows = [json.loads(line) for line in (path / "decisions.jsonl").read_text(encoding="utf-8").splitlines()]
    dropped = ("benchmark", "provenance", "made_with", "scores")
    return {row["example_id"]: {name: row[name] for name in row if name not in dropped} for row in rows}


def stored(folder: Path) -> int:
    with closing(sqlite3.connect(folder / STORE)) as store:
        (count,) = store.execute("SELECT count(*) FROM result").fetchone()
    return int(count)


@pytest.fixture(scope="module")
def tables(default_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tables")
    world = microworld(default_run)
    write_tsv(folder / "world.tsv", world)
    write_parquet(folder / "world", world)
    return folder


@pytest.mark.parametrize(("name", "columns"), [("world.tsv", []), ("world", ["pair=number"])])
def test_decisions_are_those_about_the_microworld(
    run: Callable, default_run: Path, tables: Path, tmp_path: Path, name: str, columns: list[str]
) -> None:
    """With the store of the microworld's own run nothing is left to ask: every question and image is the same."""
    out = tmp_path / "run"
    out.mkdir()
    shutil.copy(default_run / STORE, out / STORE)
    given = [part for column in columns for part in ("--column", column)]
    before = stored(out)
    done = run("run", "--benchmark", tables / name, *given, "--out", out)
    assert done.code == 0, done.err
    assert stored(out) == before
    assert decisions(out) == decisions(default_run)
    noted = tomllib.loads((out / "run.toml").read_text())["benchmark"]
    assert (noted["name"], noted["columns"]) == (str(tables / name), columns)
    assert RunConfig.read(out).benchmark.columns == tuple(columns)
    # Later commands find the questions again by what the folder notes.
    assert run("score", "--config", out, "--limit", "4").code == 0
    assert stored(out) == before


def unpaired(folder: Path, world: Path, count: int = 6) -> Path:
    """A table as VLMEvalKit has them: without pairs and sides."""
    path = folder / "plain.tsv"
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream, delimiter="\t")
        writer.writerow(HEADER)
        for number, example in enumerate(load_benchmark(world).examples[:count]):
            image = base64.b64encode(example.image.read_bytes()).decode()
            texts = [*(example.texts or ()), "", "", "", ""][:4]
            writer.writerow([number, image, example.question, "", *texts, example.answer, "", "", "test"])
    return path


def test_without_pairs_questions_are_scored_and_decided_but_nothing_is_fitted(
    run: Callable, small_world: Path, tmp_path: Path
) -> None:
    table = unpaired(tmp_path, small_world)
    run("run", "--benchmark", table, "--out", "run").refused(
        "plain.tsv: no column for pair, side.", "--column pair=NAME --column side=NAME", "`unprior apply`"
    )
    assert run("score", "--model", "embedded", "--benchmark", table, "--out", "run").code == 0
    assert run("apply", CALIBRATOR, "run/scores.parquet", "--out", "decisions.jsonl").code == 0
    assert len(Path("decisions.jsonl").read_text().splitlines()) == 6
    assert read_scores("run/scores.parquet").column("side") == [None] * 6
    run("fit", "run/scores.parquet", "--out", "cal.json", "--split", "all").refused("side")


def test_other_commands_take_a_table(run: Callable, small_world: Path, tmp_path: Path) -> None:
    table = unpaired(tmp_path, small_world)
    checked = run("data", "check", table, "--json")
    assert (checked.code, checked.json["sound"]) == (0, True)
    assert run("data", "check", table, "--column", "hint=", "--json").code == 0
    run("data", "check", table, "--column", "hint=tip").refused("no column 'tip'", "--column hint=tip")
    run("score", "--model", "embedded", "--benchmark", table, "--column", "x=y", "--out", "r").refused("no field 'x'")
    assert run("data", "gallery", table, "--out", "page.html", "--limit", "2").code == 0
    Path("answers.jsonl").write_text("".join(json.dumps({"example_id": str(n), "text": "A"}) + "\n" for n in range(6)))
    assert run("evaluate-answers", table, "answers.jsonl", "--column", "category=index").code == 0
    run("data", "check", "microworld", "--column", "id=x").refused("microworld has no columns to name")


def test_a_broken_image_fails_alone(run: Callable, small_world: Path, tmp_path: Path) -> None:
    lines = unpaired(tmp_path, small_world).read_text().splitlines()
    broken = base64.b64encode(b"this is no image, " * 6).decode()
    lines[3] = "\t".join([*lines[3].split("\t")[:1], broken, *lines[3].split("\t")[2:]])
    (tmp_path / "broken.tsv").write_text("\n".join(lines) + "\n")
    done = run("score", "--model", "embedded", "--benchmark", "broken.tsv", "--out", "run")
    assert done.code == 1
    assert "row-4.image: not a readable image" in done.err.replace("\n", "")
    assert len(read_scores("run/scores.parquet")) == 5
