"""Labels for a server's log: the table to fill in, taking it back, and every mistake with its line."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from decision_logs import HEADER, decision, write_log
from row_changes import read_lines
from unprior import read_scores
from unprior.images import pixel_digest
from unprior.serving.label import write_label_file

Rows = list[dict[str, str]]


def fill(source: Path, answers: dict[str, str], target: str = "filled.csv", delimiter: str = ",") -> Path:
    """Fill in a table as a spreadsheet does."""
    with source.open(encoding="utf-8-sig", newline="") as stream:
        rows = list(csv.DictReader(stream))
    with Path(target).open("w", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, rows[0], delimiter=delimiter)
        writer.writeheader()
        writer.writerows([row | {"answer": answers.get(row["example"], "")} for row in rows])
    return Path(target)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return write_log(
        tmp_path / "log.jsonl",
        decision("a/0"),
        decision("a/1", image_digest="image a/0", task="qa", question="Is it a dog?", candidates=["yes", "no"],
                 original="yes", decided="no"),
        decision("b/0"),
        decision("c/0", image_digest="image b/0"),
        decision("d/0", task="open", candidates=["4 legs", "five"], original="five", decided="4 legs"),
        decision("e/0", candidates=["=1+1", "ﬁve, „fünf“ 五"], original="=1+1", decided="=1+1"),
    )  # fmt: skip


def test_a_table_is_filled_in_and_taken_back(run: Callable, log: Path) -> None:
    before = log.read_bytes()
    told = run("label", log)
    assert "5 questions about 4 images" in told.out
    sheet = Path("log.labels.csv")
    assert sheet.read_bytes().startswith(b"\xef\xbb\xbfexample,")  # spreadsheets know UTF-8 by it
    with sheet.open(encoding="utf-8-sig", newline="") as stream:
        rows = {row["example"]: row for row in csv.DictReader(stream)}
    assert list(rows) == ["a/0", "a/1", "b/0", "d/0", "e/0"]  # the same request stands there once
    assert rows["e/0"]["candidates"] == "'=1+1 | ﬁve, „fünf“ 五"
    assert not {"original", "decided"} & set(rows["e/0"])  # who labels is not swayed
    assert rows["a/0"]["answer"] == ""
    answers = {"a/0": "5", "a/1": " YES ", "b/0": "(none)", "d/0": "Six legs", "e/0": "'=1+1"}
    filled = fill(sheet, answers, delimiter=";")
    taken = run("label", log, "--take", filled, "--out", "labelled.jsonl", "--json").json
    assert (taken["examples"], taken["labelled"], taken["none"], taken["unlabelled"]) == (5, 4, 1, 0)
    header, *records = read_lines(Path("labelled.jsonl"))
    assert header == HEADER
    assert [each["answer"] for each in records] == ["5", "yes", None, None, "Six legs", "=1+1"]
    assert [each.get("label") for each in records][2:4] == ["none", "none"]  # the repeated request, too
    assert {each["split"] for each in records} <= {"dev", "test"}
    assert records[0]["split"] == records[1]["split"]
    kept = [{**each, "answer": None} for each in records]
    for name in ("split", "label", "side"):
        kept = [{key: value for key, value in each.items() if key != name} for each in kept]
    assert kept == read_lines(log)[1:]  # nothing else is changed
    assert log.read_bytes() == before
    with pytest.warns(UserWarning, match="1 requests repeat"):
        table = read_scores("labelled.jsonl", require_answers=False)
    assert table.column("side") == ["cf", "cs", None, "cf", "cs"]


def test_what_is_labelled_already_is_there_again_and_can_be_corrected(run: Callable, log: Path) -> None:
    run("label", log)
    run("label", log, "--take", fill(Path("log.labels.csv"), {"a/0": "5", "b/0": "(none)"}), "--out", "one.jsonl")
    run("label", "one.jsonl", "--out", "again.csv")
    with Path("again.csv").open(encoding="utf-8-sig", newline="") as stream:
        given = {row["example"]: row["answer"] for row in csv.DictReader(stream)}
    assert given == {"a/0": "5", "a/1": "", "b/0": "(none)", "d/0": "", "e/0": ""}
    told = run("label", "one.jsonl", "--take", fill(Path("again.csv"), {"a/0": "4"}), "--out", "two.jsonl")
    assert "1 earlier answers are replaced (lines 2)" in told.err
    answers = {each["example_id"]: each["answer"] for each in read_lines(Path("two.jsonl"))[1:]}
    assert answers["a/0"] == "4"


def test_json_lines_side_and_aliases_are_taken(run: Callable, log: Path) -> None:
    labels = [
        {"example": "a/0", "answer": "5", "side": "cs"}, {"example": "a/1", "answer": ""},
        {"example": "d/0", "answer": "many", "aliases": ["4 legs", "several"]},
    ]  # fmt: skip
    Path("labels.jsonl").write_text("".join(json.dumps(each) + "\n" for each in labels))
    assert run("label", log, "--take", "labels.jsonl", "--test-share", "0").code == 0
    with pytest.warns(UserWarning, match="repeat"):
        table = read_scores("log.labelled.jsonl", require_answers=False)
    known = dict(zip(table.column("example_id"), table.column("side"), strict=True))
    assert (known["a/0"], known["d/0"]) == ("cs", "cs")  # given, and by an alias that the prior puts first
    assert table.column("split") == ["dev"] * 5


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("example,answer\nz/9,5\n", ("line 2: there is no example 'z/9' in log.jsonl",)),
        ("example,answer\na/0,6\n", ("line 2: answer '6' is none of the candidates: 4 | 5", "(none)")),
        ("example,answer\na/0,5\na/0,4\n", ("line 3: example a/0 is labelled '5' at line 2 and '4' here",)),
        ("example,answer\nb/0,5\nc/0,4\n", ("line 3: example c/0 is labelled '5' at line 2 and '4' here",)),
        ("example,answer\na/0,(none)\na/0,4\n", ("is labelled (none) at line 2 and '4' here",)),
        ("example,answer,side\na/0,5,left\n", ("line 2: side 'left': write cf, cs, or nothing",)),
        ("example,answer,side\na/0,,cf\n", ("line 2: side 'cf' without an answer",)),
        ("example,answer,aliases\na/0,5,five\n", ("line 2: aliases are for open questions",)),
        ('example,note,answer\na/0,"two\nlines",5\nz/9,,5\n', ("line 4: there is no example",)),
        ("example,answer\na/0,\n", ("no row has an answer",)),
        ("example,reply\na/0,5\n", ("line 1: no column answer",)),
        ('example,answer\na/0,5\nb/0,"4\nd/0,six\n', ("line 3: the table cannot be read", "quote is opened and not")),
        ('example,answer\nd/0,"six\nb/0,"4"\n', ("line 2: the table cannot be read",)),
        ('example,answer\nd/0,"six\nb/0,4\n"\n', ("line 2: the answer has several lines", "quote")),
        ("example,answer,Answer \na/0,5,4\n", ("line 1: several columns are named answer",)),
        ("sep=;\nexample;answer\nz/9;5\n", ("line 3: there is no example 'z/9'",)),
        ("sep=;\n", ("no row has an answer",)),
        ('{"example": "d/0", "answer": "\\ud800"}\n', ("line 1: half of a character",)),
        ("", ("the file is empty",)),
        ('{"example": "a/0"\n', ("line 1: not a JSON object with an example",)),
        ("example,answer\na/0,f\udce4nf\n", ("not UTF-8", "CSV UTF-8")),
    ],
)
def test_mistakes_are_told_with_their_line_and_nothing_is_written(
    content: str, words: tuple[str, ...], run: Callable, log: Path
) -> None:
    Path("labels.csv").write_bytes(content.encode(errors="surrogateescape"))
    run("label", log, "--take", "labels.csv").refused(*words)
    assert not Path("log.labelled.jsonl").exists()


@pytest.mark.parametrize("first", ["sep=;\r\n", '"sep=;"\n', "SEP=;;;\n", "", ";;\n", "\n"])
def test_tables_as_spreadsheets_write_them_are_taken(first: str, run: Callable, log: Path) -> None:
    content = f'{first}example;answer;note\r\na/0;5;five, or 5\r\n\r\nb/0;4;3" wide\r\n'
    Path("labels.csv").write_text(content, encoding="utf-8", newline="")
    assert run("label", log, "--take", "labels.csv", "--json").json["labelled"] == 2


def test_a_candidate_named_like_a_sign_is_an_answer(run: Callable, tmp_path: Path) -> None:
    signs = {"candidates": ["(skip)", "(none)"], "original": "(none)", "decided": "(none)"}
    log = write_log(tmp_path / "log.jsonl", *(decision(f"{name}/0", **signs) for name in "abcd"))
    Path("labels.csv").write_text("example,answer\na/0,(skip)\nb/0,(none)\nc/0,(NONE)\nd/0,(SKIP)\n")
    taken = run("label", log, "--take", "labels.csv", "--json").json
    assert (taken["labelled"], taken["none"], taken["unlabelled"]) == (2, 1, 1)
    answers = [each["answer"] for each in read_lines(Path("log.labelled.jsonl"))[1:]]
    assert answers == ["(skip)", "(none)", None, None]


def test_answers_are_shown_last_where_they_are_asked_for(run: Callable, log: Path) -> None:
    run("label", log, "--show-answers")
    with Path("log.labels.csv").open(encoding="utf-8-sig", newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert list(rows[0])[-3:] == ["aliases", "original", "decided"]
    assert [rows[-1][name] for name in ("original", "decided")] == ["'=1+1"] * 2
    run("label", log, "--page", "--show-answers").refused("folded away")


def test_the_page_names_the_file_that_it_saves(run: Callable, log: Path) -> None:
    told = run("label", log, "--page", "--out", "other.html").out
    assert "saves log.labels.csv to the downloads" in told
    assert told.rstrip().endswith(f"unprior label {log} --take log.labels.csv")


def test_all_mistakes_are_told_at_once(run: Callable, log: Path) -> None:
    Path("labels.csv").write_text("example,answer\nz/9,5\na/0,6\nb/0,4\n")
    run("label", log, "--take", "labels.csv").refused("2 of 3 labels cannot be taken", "line 2", "line 3")


def test_no_input_and_nothing_filled_in_is_overwritten(run: Callable, log: Path) -> None:
    run("label", log)
    run("label", log).refused("is there already and may hold labels")
    filled = fill(Path("log.labels.csv"), {"a/0": "5"}).rename("filled.jsonl")
    run("label", log, "--take", filled, "--out", log).refused("overwrite its own input")
    run("label", log, "--take", filled, "--out", filled).refused("overwrite its own input")
    run("label", log, "--take", filled, "--page").refused("--take reads labels")


def test_a_line_that_was_cut_off_is_told_and_the_others_are_taken(run: Callable, tmp_path: Path) -> None:
    cut = json.dumps(decision("x/0"))[:90] + "\n"
    log = write_log(tmp_path / "log.jsonl", decision("a/0"), cut, decision("b/0"), "[1]\n")
    told = run("label", log)
    assert told.code == 0
    assert "left out 2 lines" in told.err
    assert "line 3: the line was cut off" in told.err
    assert "line 5: no decision of `unprior serve`" in told.err
    taken = run("label", log, "--take", fill(Path("log.labels.csv"), {"a/0": "5", "b/0": "4"}))
    assert taken.code == 0
    assert "line 3" in taken.err
    assert len(read_scores("log.labelled.jsonl")) == 2


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"prior_scores": []}, "prior_scores has 0 values for 2 candidates"),
        ({"image_scores": [-1.0]}, "image_scores has 1 values for 2 candidates"),
        ({"prior_scores": None}, "prior_scores: must be a list"),
        ({"prior_scores": [None, None]}, "prior_scores.0: must be a number"),
        ({"prior_scores": [float("nan"), -1.0]}, "no log-probability"),
        ({"image_scores": [10**400, -1.0]}, "image_scores"),
        ({"candidates": ["4", None]}, "candidates.1: must be text"),
        ({"aliases": 5}, "aliases: must be a list"),
        ({"side": "left"}, "side: must be"),
        ({"answer": ["5"]}, "answer: must be text"),
        ({"question": "\ud800?"}, "half of a character"),
        ({"name": "\udfff"}, "half of a character"),
        ({"made": "0" * 12}, "nothing above it says how its scores were made"),
        ({"made": ["0"]}, "nothing above it says how its scores were made"),
    ],
)
def test_a_line_that_cannot_be_used_is_told_before_anybody_labels_it(
    changes: dict[str, Any], words: str, run: Callable, tmp_path: Path
) -> None:
    bad = json.dumps(decision("b/0", answer="5") | changes) + "\n"
    missing = json.dumps({key: value for key, value in decision("c/0").items() if key != "prior_scores"}) + "\n"
    log = write_log(tmp_path / "log.jsonl", decision("a/0"), bad, missing)
    Path("labels.csv").write_text("example,answer\na/0,5\n")
    for number, more in enumerate([(), ("--page",), ("--take", "labels.csv")]):
        told = run("label", log, *more)
        assert told.code == 0, (number, told.err)
        assert "left out 2 lines" in told.err
        assert "line 3: " in told.err
        assert words in told.err
        assert "line 4: prior_scores: missing" in told.err
    assert len(read_scores("log.labelled.jsonl")) == 1
    only = write_log(tmp_path / "only.jsonl", bad)
    run("label", only).refused("there is no decision in it", "line 2: ", words)
    run("label", only, "--take", "labels.csv").refused("line 2: ", words)
    assert not list(tmp_path.glob("only.label*"))


def test_a_header_that_makes_no_sense_is_told_with_what_hangs_on_it(run: Callable, tmp_path: Path) -> None:
    for header in (HEADER | {"provenance": 5}, HEADER | {"note": "\ud800"}):
        log = write_log(tmp_path / "log.jsonl", json.dumps(header) + "\n", decision("a/0"), header=False)
        run("label", log).refused("there is no decision in it", "line 1: ")


@pytest.mark.parametrize(
    ("records", "words"),
    [((), "there is no decision in it"), (("{}\n",), "no decision of"), (("x",), "line 2: the line was cut off")],
)
def test_a_log_without_decisions_is_refused(
    records: tuple[Any, ...], words: str, run: Callable, tmp_path: Path
) -> None:
    run("label", write_log(tmp_path / "log.jsonl", *records)).refused(words)
    run("label", write_log(tmp_path / "empty.jsonl", header=False)).refused("the log is empty")


def test_several_models_and_calibrators_are_told(run: Callable, tmp_path: Path) -> None:
    log = write_log(
        tmp_path / "log.jsonl", decision("a/0", answer="5", split="test"),
        decision("b/0", calibrator="sha256:two", answer="4", split="test"), decision("c/0", model="other"),
    )  # fmt: skip
    told = run("label", log)
    assert "decisions of 2 models: tiny (2), other (1)" in told.err
    assert "decisions of 2 calibrators: sha256:one (2), sha256:two (1)" in told.err
    run("evaluate", log, "--model", "tiny").refused("several calibrators decided", "--decided-by")
    more = [decision(f"{n}/1", answer=answer, split="test") for n, answer in enumerate("4545")]
    one = write_log(tmp_path / "one.jsonl", *more, decision("x/0", calibrator=None, answer="4", split="test"))
    run("evaluate", one).refused("1 of 5 rows were logged without a calibrator")
    record = run("evaluate", one, "--decided-by", "sha256:one", "--json").json
    assert [record["tasks"][0][side]["repairs"] for side in ("cf", "cs")] == [2, 0]
    assert [record["tasks"][0][side]["harms"] for side in ("cf", "cs")] == [0, 2]
    plain = Path("plain.jsonl")
    read_scores(one, require_answers=False, decided_by="sha256:one").write(plain)
    run("evaluate", plain).refused("holds no decisions")


def test_a_sample_has_whole_images_and_grows(run: Callable, tmp_path: Path) -> None:
    records = [decision(f"{n}/{k}", image_digest=f"i{n}", question=f"{k}?") for n in range(20) for k in range(2)]
    log = write_log(tmp_path / "log.jsonl", *records)
    found = []
    for size in (3, 8):
        run("label", log, "--sample", size, "--out", f"{size}.csv")
        with Path(f"{size}.csv").open(encoding="utf-8-sig", newline="") as stream:
            rows = list(csv.DictReader(stream))
        assert len(rows) == 2 * size
        found.append({row["image"] for row in rows})
    assert found[0] < found[1]


def test_images_are_found_by_what_they_show(run: Callable, tmp_path: Path) -> None:
    shown = Image.new("RGB", (8, 8), (200, 30, 30))
    (tmp_path / "photos" / "deep").mkdir(parents=True)
    shown.save(tmp_path / "photos" / "deep" / "red.png")
    Image.new("RGB", (8, 8)).save(tmp_path / "photos" / "other.png")
    (tmp_path / "photos" / "broken.png").write_bytes(b"no image")
    log = write_log(tmp_path / "log.jsonl", decision("a/0", image_digest=pixel_digest(shown)), decision("b/0"))
    told = run("label", log, "--images", tmp_path / "photos", "--out", tmp_path / "photos" / "labels.csv")
    assert "1 of 2 images were found" in told.err
    with (tmp_path / "photos" / "labels.csv").open(encoding="utf-8-sig", newline="") as stream:
        assert [row["image"] for row in csv.DictReader(stream)] == ["deep/red.png", "image b/0"]
    run("label", log, "--images", tmp_path / "nowhere", "--out", "x.csv").refused("no such folder of images")


def test_names_that_are_no_text_are_written_as_far_as_they_are(tmp_path: Path) -> None:
    shown = Image.new("RGB", (8, 8), (200, 30, 30))
    photos = tmp_path / "photos"
    photos.mkdir()
    shown.save(photos / "red.png")
    (photos / "red.png").rename(photos / "r\udce9d.png")
    log = write_log(tmp_path / "l\udce9g.jsonl", decision("a/0", image_digest=pixel_digest(shown)))
    table = write_label_file(log, tmp_path / "out.csv", images=photos)
    page = write_label_file(log, tmp_path / "out.html", images=photos, page=True)
    assert "photos/r\ufffdd.png" in table.out.read_text(encoding="utf-8-sig")
    assert 'data-file="l\ufffdg"' in page.out.read_text(encoding="utf-8")
    assert page.saved == "l\ufffdg.labels.csv"


def test_labelling_needs_no_server(tmp_path: Path) -> None:
    code = "import sys, unprior.serving.label; print({'starlette', 'torch', 'uvicorn'} & set(sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "set()\n"
