"""How scores were made travels with them, and is compared before they are used together."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from small_tables import twelve_pairs
from unprior import ScoreTable, SelectivePriorCalibrator, UnpriorError, read_scores
from unprior.evaluation.answers import read_origin
from unprior.prompts import PromptLayout
from unprior.scores.files import writing_scores
from unprior.scores.priors import with_prior
from unprior.scores.provenance import METADATA_KEY, Provenance, compare_provenance, merge_provenance, mixed_provenance
from unprior.scores.table import concatenate

MADE = Provenance(
    model="synthetic",
    engine="transformers",
    weights="a" * 64,
    fingerprint="b" * 64,
    precision="bfloat16",
    prompt="c" * 64,
    image_size=512,
    prior="text",
    benchmark="synthetic",
    revision="v1",
    questions="d" * 64,
    versions={"torch": "2.13.0", "unprior": "0.1.0"},
    date="2026-11-16T12:00:00+00:00",
)


def noted(record: Provenance = MADE) -> ScoreTable:
    table = twelve_pairs()
    return ScoreTable(table.arrow, provenance=[record])


@pytest.mark.parametrize("name", ["scores.jsonl", "scores.parquet"])
def test_tables_keep_it_on_disk(tmp_path: Path, name: str) -> None:
    noted().write(tmp_path / name)
    assert read_scores(tmp_path / name).provenance == (MADE,)
    with writing_scores(tmp_path / f"parts-{name}") as add:
        add(noted().where(task="mc"))
        add(noted().where(task="qa"))
    assert read_scores(tmp_path / f"parts-{name}").provenance == (MADE,)


@pytest.mark.parametrize("name", ["scores.jsonl", "scores.parquet"])
def test_a_file_without_it_is_read(tmp_path: Path, name: str) -> None:
    twelve_pairs().write(tmp_path / name)
    assert read_scores(tmp_path / name).provenance == ()


def test_a_row_of_a_jsonl_file_stays_a_plain_row(tmp_path: Path) -> None:
    noted().write(tmp_path / "scores.jsonl")
    first, second = (json.loads(line) for line in (tmp_path / "scores.jsonl").read_text().splitlines()[:2])
    assert first["provenance"][0]["weights"] == "a" * 64
    assert "provenance" not in second
    assert list(first)[:-1] == list(second)


def test_it_follows_what_is_done_to_a_table() -> None:
    table = noted()
    assert table.where(split="dev").provenance == (MADE,)
    assert table.with_columns(model="other").provenance[0].model == "other"
    rows = [row | {"views": {"white": row["prior_scores"]}} for row in table.arrow.to_pylist()]
    viewed = ScoreTable.from_rows(rows, provenance=[MADE])
    assert with_prior(viewed, "white").provenance[0].prior == "white"
    other = MADE.model_copy(update={"model": "other", "weights": "e" * 64})
    both = concatenate([table, ScoreTable(table.with_columns(model="other").arrow, provenance=[other])])
    assert both.provenance == (MADE, other)
    assert both.where(model="other").provenance == (other,)


def test_calibrators_and_decisions_carry_it(tmp_path: Path) -> None:
    table = noted()
    calibrator = SelectivePriorCalibrator().fit(table)
    calibrator.save(tmp_path / "cal.json")
    loaded = SelectivePriorCalibrator.load(tmp_path / "cal.json")
    assert loaded.provenance_ == (MADE,)
    for name in ("decisions.jsonl", "decisions.parquet"):
        loaded.predict(table).write(tmp_path / name)
        origin = read_origin(tmp_path / name)
        assert (origin.scores, origin.fitted_on) == ((MADE,), (MADE,))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"weights": "f" * 64}, "weights aaaaaaaaaaaa…, here ffffffffffff…"),
        ({"precision": "float32"}, "precision bfloat16, here float32"),
        ({"prompt": "f" * 64}, "prompt cccccccccccc…, here ffffffffffff…"),
        ({"image_size": 0}, "image size 512×512, here as stored"),
        ({"prior": "white"}, "prior view text, here white"),
        ({"model": "llava", "weights": None}, "model synthetic, here llava"),
        ({"served_model": "other"}, None),  # nothing to compare with
    ],
)
def test_what_makes_scores_incomparable(change: dict[str, Any], words: str | None) -> None:
    differences = compare_provenance([MADE], [MADE.model_copy(update=change)])
    assert differences.refused == (() if words is None else (words,))
    assert differences.noted == ()


def test_what_is_only_told() -> None:
    other = MADE.model_copy(update={"engine": "vllm", "benchmark": "pope", "date": "2027", "versions": {}})
    differences = compare_provenance([MADE], [other])
    assert differences.refused == ()
    assert differences.noted == ("engine transformers, here vllm", "benchmark synthetic, here pope")
    assert differences


def test_one_model_under_two_names() -> None:
    assert not compare_provenance([MADE], [MADE.model_copy(update={"model": "moved/folder"})])


def test_what_one_side_does_not_know_is_not_compared() -> None:
    assert not compare_provenance([MADE], [Provenance(model="synthetic")])
    assert not compare_provenance([], [MADE])


def test_equal_records_of_two_dates_are_one() -> None:
    later = MADE.model_copy(update={"date": "2027-01-01"})
    assert merge_provenance([[later], [MADE]]) == (later,)


@pytest.mark.parametrize("note", [b"{", b"{}", b"[1]", b'[{"image_size": -1}]', b'[{"model": 3}]', b"[" * 100_000])
def test_a_broken_note_is_named(tmp_path: Path, note: bytes) -> None:
    arrow = twelve_pairs().arrow.replace_schema_metadata({METADATA_KEY: note})
    pq.write_table(arrow, tmp_path / "scores.parquet")
    with pytest.raises(UnpriorError, match=r"scores\.parquet: provenance, the note on how the scores were made"):
        read_scores(tmp_path / "scores.parquet")


def test_a_broken_note_in_a_line_is_named_with_its_line(tmp_path: Path) -> None:
    noted().write(tmp_path / "scores.jsonl")
    lines = (tmp_path / "scores.jsonl").read_text().splitlines()
    lines[0] = json.dumps(json.loads(lines[0]) | {"provenance": 7})
    (tmp_path / "scores.jsonl").write_text("\n".join(lines))
    with pytest.raises(UnpriorError, match=r"line 1: provenance, the note .* cannot be read: it is not a list"):
        read_scores(tmp_path / "scores.jsonl")


def test_metadata_of_others_is_left_alone(tmp_path: Path) -> None:
    arrow: pa.Table = twelve_pairs().arrow.replace_schema_metadata({b"pandas": b"{}"})
    pq.write_table(arrow, tmp_path / "scores.parquet")
    assert read_scores(tmp_path / "scores.parquet").provenance == ()


def test_null_is_no_note(tmp_path: Path) -> None:
    noted().write(tmp_path / "scores.jsonl")
    lines = [json.loads(line) for line in (tmp_path / "scores.jsonl").read_text().splitlines()]
    # Data frames give every row the columns of the first.
    filled = "\n".join(json.dumps({"provenance": None} | line) for line in lines)
    (tmp_path / "filled.jsonl").write_text(filled)
    assert read_scores(tmp_path / "filled.jsonl").provenance == (MADE,)


def test_rows_without_a_note_are_compared_by_their_model() -> None:
    calibrator = SelectivePriorCalibrator().fit(noted())
    assert not calibrator.differences([MADE], ["synthetic"])
    assert calibrator.differences([MADE], ["synthetic", "other"]).refused == ("model synthetic, here other",)


def test_two_ways_under_one_name_are_told() -> None:
    other = MADE.model_copy(update={"precision": "float32", "image_size": 0})
    assert mixed_provenance([MADE, other]) == ("precision bfloat16 and float32", "image size as stored and 512×512")
    assert mixed_provenance([MADE, MADE.model_copy(update={"benchmark": "pope"})]) == ()


def test_another_wording_of_a_kind_of_question_is_refused_where_that_kind_is_asked() -> None:
    usual, other = PromptLayout(), PromptLayout(open_instruction="In one word.")
    kinds = ("mc", "qa", "open")
    own = [Provenance(model="a", prompt="1", wording={kind: usual.wording(kind) for kind in kinds})]
    assert not compare_provenance(own, [Provenance(model="a", wording={"mc": other.wording("mc")})])
    asked = [Provenance(model="a", prompt="2", wording={"open": other.wording("open")})]
    told = ("open questions worded “Answer with a short phrase.”, here “In one word.”",)
    assert compare_provenance(own, asked).refused == told  # the words say more than the digest of a prompt
    assert not compare_provenance([Provenance(model="a")], asked)  # files of earlier versions do not tell
    both = [*own, Provenance(model="a", prompt="1", wording=asked[0].wording)]
    assert mixed_provenance(both) == ("open questions worded “Answer with a short phrase.” and “In one word.”",)
