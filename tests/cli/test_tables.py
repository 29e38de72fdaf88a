from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from unprior import read_scores, synthesize

ROW: dict[str, Any] = {
    "pair_id": 1, "side": "cf", "task": "qa", "split": "dev", "candidates": ["yes", "no"],
    "image_scores": [-0.3, -1.4], "prior_scores": [-0.1, -2.4], "original": "yes", "answer": "no",
}  # fmt: skip
PUBLISHED: dict[str, Any] = {
    "status": "ok", "task": "qa", "side": "commonsense", "pair_id": "p2", "category": "c", "subcategory": "s",
    "gt": "YES", "cp_vbc": {"baseline_key": "yes", "baseline_pred": "Yes", "candidates": [
        {"key": "Yes", "logp_image": -0.1, "logp_prior": -0.2}, {"key": "No", "logp_image": -3, "logp_prior": -2},
    ]},
}  # fmt: skip


def write(name: str, *rows: dict[str, Any] | str) -> Path:
    path = Path(name)
    path.write_text("".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows))
    return path


@pytest.mark.parametrize("name", ["made.jsonl", "made.parquet"])
def test_synth_writes_the_table_of_the_seed(run: Callable, name: str) -> None:
    result = run("synth", "--out", name, "--seed", 5)
    assert (result.code, result.err) == (0, "")
    assert result.out == f"1,200 rows of 300 pairs (280 dev, 920 test) → {name}\n"
    assert read_scores(name).arrow.equals(synthesize(seed=5).arrow)


def test_synth_as_json_with_repeats(run: Callable) -> None:
    assert run("synth", "--out", "made.parquet", "--repeats", 2, "--json").json == {
        "rows": 2400,
        "pairs": 600,
        "splits": {"dev": 560, "test": 1840},
        "candidate_counts": [2, 4],
        "skipped": [],
        "out": "made.parquet",
    }


@pytest.mark.parametrize("name", ["made.csv", "made"])
def test_synth_refuses_an_unknown_ending(run: Callable, name: str) -> None:
    run("synth", "--out", name).refused(f"error: {name}: cannot tell the format", ".jsonl or .parquet")
    assert not Path(name).exists()


def test_an_output_name_is_printed_as_it_is(run: Callable) -> None:
    result = run("synth", "--out", "run[final].jsonl")
    assert result.out.endswith("→ run[final].jsonl\n")


def test_convert_there_and_back(run: Callable, files: Any) -> None:
    assert run("convert", files.scores, "--out", "a.parquet").code == 0
    assert run("convert", "a.parquet", "--out", "b.jsonl").code == 0
    assert Path("b.jsonl").read_bytes() == files.scores.read_bytes()


def test_convert_merges_and_names(run: Callable) -> None:
    write("a.jsonl", ROW)
    write("b.jsonl", PUBLISHED)
    result = run("convert", "b.jsonl", "a.jsonl", "--out", "c.jsonl", "--split", "test", "--model", "m",
                 "--benchmark", "cdh", "--json")  # fmt: skip
    assert result.json["rows"] == 2
    assert result.json["splits"] == {"test": 2}
    table = read_scores("c.jsonl")
    assert table.column("pair_id") == ["p2", "1"]
    assert table.column("candidates") == [["Yes", "No"], ["yes", "no"]]
    assert table.column("answer") == ["Yes", "no"]
    for name, value in (("split", "test"), ("model", "m"), ("benchmark", "cdh")):
        assert table.column(name) == [value] * 2


def test_convert_keeps_rows_without_answers_and_splits(run: Callable) -> None:
    write("a.jsonl", {name: value for name, value in ROW.items() if name not in ("answer", "split")})
    assert run("convert", "a.jsonl", "--out", "b.parquet").out == "1 rows of 1 pairs (1 without split) → b.parquet\n"
    assert read_scores("b.parquet", require_answers=False).column("answer") == [None]


def test_convert_tells_of_rows_that_stand_in_two_files(run: Callable) -> None:
    write("a.jsonl", ROW | {"example_id": "x"}, ROW | {"example_id": "y"})
    write("b.jsonl", ROW | {"example_id": "y"})
    result = run("convert", "a.jsonl", "b.jsonl", "--out", "c.jsonl")
    assert "warning: 1 rows have the model, benchmark and name of an earlier one" in result.err
    assert run("convert", "a.jsonl", "--out", "d.jsonl").err == ""


def test_convert_counts_every_split(run: Callable) -> None:
    write("a.jsonl", ROW | {"split": None}, ROW | {"split": ""}, ROW | {"split": "none"}, ROW)
    assert sum(run("convert", "a.jsonl", "--out", "b.jsonl", "--json").json["splits"].values()) == 4


def test_convert_refuses_invalid_rows_and_lists_them_when_skipping(run: Callable) -> None:
    write("a.jsonl", ROW, "", ROW | {"candidates": ["yes"]}, "broken")
    run("convert", "a.jsonl", "--out", "b.jsonl").refused(
        "error: a.jsonl: 2 of 3 rows are invalid\n", "\n  line 3: K is 1", "\n  line 4: not a JSON object",
        "--skip-invalid",
    )  # fmt: skip
    assert not Path("b.jsonl").exists()
    result = run("convert", "a.jsonl", "--out", "b.jsonl", "--skip-invalid")
    assert result.code == 0
    lines = result.err.splitlines()
    assert lines[0] == "warning: a.jsonl: left out 2 invalid rows, 1 remain"
    assert [line.split(":")[0] for line in lines[1:]] == ["  line 3", "  line 4"]
    assert len(read_scores("b.jsonl")) == 1


def test_convert_lists_skipped_rows_in_json(run: Callable) -> None:
    write("a.jsonl", ROW, ROW | {"answer": "x"})
    assert run("convert", "a.jsonl", "--out", "b.jsonl", "--skip-invalid", "--json").json["skipped"] == [
        {"line": 2, "reason": "answer 'x' is not one of the candidates"}
    ]


def test_every_skipped_row_is_listed(run: Callable) -> None:
    write("a.jsonl", ROW, *[ROW | {"side": "x"}] * 25)
    errors = run("convert", "a.jsonl", "--out", "b.jsonl", "--skip-invalid").err
    assert "left out 25 invalid rows, 1 remain" in errors
    assert errors.count("\n  line ") == 25


@pytest.mark.parametrize(
    ("arguments", "fragment"),
    [
        (["nothing.jsonl", "--out", "b.jsonl"], "nothing.jsonl: no such file"),
        ([".", "--out", "b.jsonl"], "this is a folder"),
        (["a.jsonl", "--out", "a.jsonl"], "a.jsonl: this would overwrite its own input"),
        (["a.jsonl", "a.jsonl", "--out", "./a.jsonl"], "would overwrite its own input"),
        (["a.jsonl", "./a.jsonl", "--out", "b.jsonl"], "a.jsonl is given twice"),
        (["a.jsonl", "--out", "b.txt"], "cannot tell the format"),
        (["a.jsonl", "--out", "a.jsonl/b.jsonl"], "cannot be written"),
        (["empty.jsonl", "--out", "b.jsonl"], "empty.jsonl: no rows"),
    ],
)
def test_convert_explains_mistakes(run: Callable, arguments: list[str], fragment: str) -> None:
    before = write("a.jsonl", ROW).read_bytes()
    write("empty.jsonl")
    run("convert", *arguments).refused(fragment)
    assert Path("a.jsonl").read_bytes() == before
    assert sorted(path.name for path in Path().iterdir()) == ["a.jsonl", "empty.jsonl"]
