from __future__ import annotations

import csv
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from small_tables import synthetic
from unprior.cli import main
from unprior.cli.console import output
from unprior.reproduction import MODELS, find_scores


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("published") / "scores"
    with pytest.raises(SystemExit, match="0"):
        main(["synth", "--published", str(folder), "--seed", "7"])
    return folder


@pytest.fixture
def folder(published: Path) -> Path:
    """A copy, to work in."""
    return Path(shutil.copytree(published, "scores"))


def test_synth_writes_four_files_for_each_model_of_the_paper(run: Callable) -> None:
    result = run("synth", "--published", "made", "--seed", 7)
    assert result.out == "3,600 rows of 300 pairs (840 dev, 2,760 test) → made\n"
    assert len(list(Path("made").iterdir())) == 12
    found = find_scores(Path("made"))
    assert found[MODELS[1]].table.where(task="qa", split="dev").image_scores.tolist() == (
        synthetic(seed=8).where(task="qa", split="dev").image_scores.tolist()
    )


@pytest.mark.parametrize("arguments", [(), ("--out", "a.jsonl", "--published", "b")])
def test_synth_writes_to_one_place(run: Callable, arguments: tuple[str, ...]) -> None:
    run("synth", *arguments).refused("choose --out FILE", "--published DIR")
    assert not Path("a.jsonl").exists()


def test_cells_stand_beside_the_papers_with_a_verdict(run: Callable, folder: Path) -> None:
    result = run("reproduce", folder, "--table", "tab:main", "--table", "tab:equivariance")
    assert result.code == 0  # a report, even where all differs
    assert "Qwen3-VL-32B: 1,200 rows from 4 files" in result.out
    of_llava = result.out.partition(" LLaVA-1.6-34B ")[2].splitlines()
    line = next(line for line in of_llava if line.split()[:1] == ["ΔCF"])  # its row, SPC, is named once
    *_, ours, paper, difference, verdict = line.split()
    assert (paper, verdict) == ("7.0", "differs")
    assert float(difference) == pytest.approx(float(ours) - 7.0, abs=0.11)
    assert "38 cells not recomputed: needs scores of other question forms" in result.out
    assert "not recomputed\n" in result.out.splitlines(keepends=True)[-1]
    assert "these scores are synthetic" in result.err


@pytest.mark.parametrize("width", [80, 100])
def test_no_word_or_number_is_cut_off(run: Callable, folder: Path, monkeypatch: pytest.MonkeyPatch, width: int) -> None:
    monkeypatch.setattr(output, "_width", width)
    labels = ("tab:primary-holm", "tab:paired-calibration-full", "tab:matched-gate-four", "tab:official-cdh-full")
    out = run("reproduce", folder, *(word for label in labels for word in ("--table", label))).out
    tables = [line for line in out.splitlines() if line.startswith(" ")]
    assert 80 - 2 < max(map(len, tables)) <= width  # the widest needs more than 80 columns
    assert "…" not in out
    for word in ("Direct subtraction,", "MC CF repairs", "-83.04", "8.55e-14", "0.123535"):
        assert word in out, word


def test_slips_and_notes_are_told(run: Callable, folder: Path) -> None:
    out = run("reproduce", folder, "--table", "tab:primary-holm", "--table", "tab:controlled").out
    assert "Slip in LLaVA-1.6-34B, MC CF, Holm p: With ten tests it is 7 × 0.000145 = 0.001015" in out
    assert "Note: The NoLan row is measured against NoLan's matched decoder" in out


def test_json_holds_every_cell_and_the_counts(run: Callable, folder: Path) -> None:
    record = run(
        "reproduce", folder, "--json", "--model", "llava", "--table", "tab:components", "--table", "tab:main"
    ).json
    assert list(record["models"]) == ["LLaVA-1.6-34B"]
    assert sum(record["counts"].values()) == len(record["cells"])
    assert record["tables"]["tab:components"]["counts"]["not recomputed"] == 16  # those of Qwen
    assert {cell["model"] for cell in record["cells"] if cell["ours"] is not None} == {"LLaVA-1.6-34B"}


def test_cells_are_written_to_a_file(run: Callable, folder: Path) -> None:
    for name in ("cells.csv", "cells.json"):
        assert run("reproduce", folder, "--table", "tab:components", "--out", name).code == 0
    with Path("cells.csv").open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    records = json.loads(Path("cells.json").read_text(encoding="utf-8"))
    assert len(rows) == len(records) == 32
    assert [float(row["ours"]) for row in rows] == [record["ours"] for record in records]


def test_mistakes_end_with_a_sentence(run: Callable, folder: Path) -> None:
    run("reproduce", "absent").refused("absent: no such folder", "hub data set (cks19999/CDH-Bench")
    run("reproduce", folder, "--table", "tab:mian").refused("no table tab:mian; there are", "tab:main")
    run("reproduce", folder, "--model", "GPT").refused("no scores of GPT; the files hold Qwen3-VL-32B, LLaVA-1.6-34B")
    run("reproduce", folder, "--out", "cells.txt").refused("cells.txt: cannot tell the format", ".csv or .json")


def test_rows_left_out_are_listed(run: Callable, folder: Path) -> None:
    path = folder / "qwen3-vl-32b_qa_test.jsonl"
    path.write_text(path.read_text() + '{"status": "error"}\n')
    run("reproduce", folder).refused("status is 'error'")
    result = run("reproduce", folder, "--table", "tab:main", "--skip-invalid")
    assert (result.code, "left out 1 invalid rows" in result.err) == (0, True)
