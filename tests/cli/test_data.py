"""`unprior data`: what benchmarks there are, getting them, checking them, looking at them."""

from __future__ import annotations

import io
import json
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from file_server import Files, serve, serve_hub
from real_data import real_data
from unprior.benchmarks.microworld import microworld
from unprior.benchmarks.registry import BENCHMARKS
from unprior.benchmarks.user_file import read_questions

HUB = "cks19999/CDH-Bench"


def picture(colour: str) -> bytes:
    stream = io.BytesIO()
    Image.new("RGB", (300, 300), colour).save(stream, "PNG")
    return stream.getvalue()


def small_cdh_bench() -> dict[str, bytes]:
    """The upstream layout with one pair."""
    record = {
        "category": "Attribute Anomalies", "subcategory": "Color", "pair_id": "Pair 201", "pair_name": "a vs b",
        "multiple_choice": {"question": "Which color?", "options": ["A. red", "B. blue", "C. pink", "D. red"],
                            "counterfactual_gt": "B", "commonsense_gt": "A"},
        "direct_qa": {"question": "Is it red and not blue?", "counterfactual_gt": "no", "commonsense_gt": "yes"},
    }  # fmt: skip
    return {
        "data/benchmark.jsonl": json.dumps(record).encode(),
        "data/images/Color/Pair_201/counterfactual.png": picture("blue"),
        "data/images/Color/Pair_201/commonsense.png": picture("red"),
    }


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[Files]:
    with serve() as files:
        monkeypatch.setenv("HF_ENDPOINT", files.url)
        monkeypatch.setattr("unprior.benchmarks.download._PAUSE", 0.0)
        serve_hub(files, HUB, small_cdh_bench())
        yield files


def test_list(run: Callable, tmp_path: Path) -> None:
    assert "microworld-presence" in run("data", "list").out
    listed = run("data", "list", "--json").json
    assert list(listed) == list(BENCHMARKS)
    assert listed["cdh-bench"]["here"] == "no"
    assert listed["microworld"]["here"] == "drawn"
    (tmp_path / "elsewhere" / "cdh-bench" / "data").mkdir(parents=True)
    assert run("data", "list", "--data-dir", tmp_path / "elsewhere", "--json").json["cdh-bench"]["here"] == "not whole"


def test_absent_images_are_not_called_there(run: Callable, tmp_path: Path) -> None:
    folder = tmp_path / "data" / "cdh-bench"
    for path, content in small_cdh_bench().items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(content)
    here = lambda: run("data", "list", "--json").json["cdh-bench"]["here"]  # noqa: E731
    assert here() == "yes"
    images = sorted(folder.rglob("*.png"))
    images[0].unlink()
    assert here() == "1 of 2 images missing"
    images[1].unlink()
    assert here() == "questions only, no image"
    for arguments in ((), ("--data-dir", tmp_path / "data"), (folder,)):
        checked = run("data", "check", "cdh-bench", *arguments, "--json")
        assert checked.code == 1
        assert checked.json["counts"]["images"]["found"] == 0
        assert len(checked.json["missing"]) == 2
    assert "images" in run("data", "check", "cdh-bench").out
    run("data", "check", "cdh-bench", folder, "--data-dir", tmp_path).refused("give one of them")


def test_get_writes_images_and_questions(run: Callable, drawn_world: Path, tmp_path: Path) -> None:
    shutil.copytree(drawn_world, tmp_path / "world")
    drawn = sorted((tmp_path / "world" / "images" / "Color").rglob("*.png"))
    for path in drawn:
        path.unlink()
    made = run("data", "get", "microworld", "--out", tmp_path / "world", "--seed", "3", "--json").json
    assert drawn
    assert all(path.is_file() for path in drawn)
    questions = tmp_path / "world" / "questions.jsonl"
    assert made == {
        "benchmark": "microworld-3", "examples": 1200, "images": 600, "missing": 0, "out": str(questions),
    }  # fmt: skip
    original, read = microworld(tmp_path / "world", 3), read_questions(Path(made["out"]))
    assert [replace(each, line=None) for each in read] == list(original)
    assert "unprior ask" in run("data", "get", "microworld-presence", "--out", tmp_path / "world", "--seed", "3").out


@pytest.mark.parametrize("command", [["get"], ["show"], ["check", "."]])
def test_an_unknown_name_is_refused(run: Callable, command: list[str]) -> None:
    run("data", command[0], "macroworld", *command[1:]).refused(
        "macroworld: no such benchmark (did you mean microworld?); known are microworld"
    )


def test_get_downloads_resumes_and_checks(run: Callable, hub: Files, tmp_path: Path) -> None:
    hub.break_after = [40, 0, 0, 0]
    broken = run("data", "get", "cdh-bench")
    broken.refused("the connection broke 4 times", "the same command goes on from there")
    done = run("data", "get", "cdh-bench", "--json")
    assert done.code == 0
    folder = tmp_path / "data" / "cdh-bench"
    assert done.json == {
        "benchmark": "cdh-bench", "examples": 4, "images": 2, "missing": 0, "out": str(folder / "questions.jsonl"),
    }  # fmt: skip
    assert [example.answer for example in read_questions(folder / "questions.jsonl")] == ["B", "no", "A", "yes"]
    assert json.loads((folder / "download.json").read_text())["sources"][0]["commit"] == "c0ffee"
    asked = len(hub.asked)
    again = run("data", "get", "cdh-bench")
    assert "4 questions about 2 images" in again.out
    assert len(hub.asked) == asked + 3, "only the list is asked for"
    # The counts are not those of the whole benchmark, and a changed file is noticed.
    (folder / "data" / "images" / "Color" / "Pair_201" / "commonsense.png").write_bytes(picture("green"))
    checked = run("data", "check", "cdh-bench", folder, "--json")
    assert checked.code == 1
    assert checked.json["changed"] == ["data/images/Color/Pair_201/commonsense.png"]
    assert checked.json["counts"]["pairs"] == {"published": 300, "found": 1}


def test_get_refuses_a_wrong_checksum(run: Callable, hub: Files, tmp_path: Path) -> None:
    hub.content[f"/datasets/{HUB}/resolve/c0ffee/data/images/Color/Pair_201/commonsense.png"] = picture("pink")
    run("data", "get", "cdh-bench").refused("commonsense.png: the", "was published")
    assert not (tmp_path / "data" / "cdh-bench" / "data" / "images" / "Color" / "Pair_201" / "commonsense.png").exists()


def test_get_offline(run: Callable, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    run("data", "get", "cdh-bench").refused(
        "127.0.0.1:9 cannot be reached", "may be offline", "--data-dir", "GitHub MiLab-HITSZ/2026ChenCDH-Bench"
    )


def test_get_says_what_to_do_by_hand(run: Callable, tmp_path: Path) -> None:
    result = run("data", "get", "popev2")
    assert result.code == 2
    assert "popev2 also needs annotations.json and the edited images" in result.err
    run("data", "get", "pope", "--seed", "3").refused("only a drawn benchmark has seeds")


def test_show_without_the_files(run: Callable) -> None:
    shown = run("data", "show", "cdh-bench")
    assert shown.code == 0
    for text in ("MIT", "cks19999/CDH-Bench", "order-3210", "reject-second-atypical-first", "222", "purple"):
        assert text in shown.out
    assert "`unprior data get cdh-bench` downloads it" in shown.err
    record = run("data", "show", "popev2", "--json").json
    assert record["found"] is None
    assert record["counts"] == {"pairs": 70, "examples": 140, "images": 140}


def test_show_check_and_gallery_of_the_real_files(run: Callable, tmp_path: Path) -> None:
    folder = real_data("cdh-bench")
    record = run("data", "show", "cdh-bench", "--data-dir", folder.parent, "--json").json
    assert record["found"] == record["counts"]
    assert "1-cf-mc: How many fingers" in run("data", "show", "cdh-bench", "--data-dir", folder.parent).out
    checked = run("data", "check", "cdh-bench", folder)
    assert checked.code == 0
    assert "Everything is there, and all 600 images open." in checked.out
    assert "56, 59, 62, 65, 66, 262: all options stand in one string" in checked.out
    made = run(
        "data", "gallery", "cdh-bench", "--data-dir", folder.parent, "--out", "look.html", "--limit", "5", "--json"
    )
    assert made.json["shown"] == 5
    assert Path("look.html").stat().st_size == made.json["bytes"]


def test_check_names_what_is_missing(run: Callable) -> None:
    folder = real_data("pope")
    checked = run("data", "check", "pope", folder)
    assert checked.code == 1
    assert "Missing images (500):" in checked.out
    assert "COCO_val2014_000000310196.jpg" in checked.out
    assert "… and 480 more" in checked.out
    assert len(run("data", "check", "pope", folder, "--json").json["missing"]) == 500
    run("data", "check", "pope", folder / "coco_pope_random.json").refused("coco_pope_random.json: this is a file")
    run("data", "check", "pope", "nowhere").refused("nowhere: no such folder")
    run("data", "check", "pope", ".").refused("no coco_pope_random.json")


def test_check_finds_unreadable_images(run: Callable, tmp_path: Path) -> None:
    for path, content in small_cdh_bench().items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_bytes(content[:50] if path.endswith("counterfactual.png") else content)
    checked = run("data", "check", "cdh-bench", tmp_path)
    assert "Unreadable images (1):" in checked.out
    assert "not a readable image" in checked.out
    assert "Incomplete." in checked.out


@pytest.mark.usefixtures("_small_drawings")
def test_check_writes_nothing(run: Callable, tmp_path: Path) -> None:
    row = {"id": "1", "question_type": "YN", "question": "Is it?", "answer": "Yes", "conflict_target": "place"}
    rows = [row | {"images": [{"bytes": picture("red")}]}, row | {"id": "2", "images": [{"bytes": b"no picture"}]}]
    folder = tmp_path / "conflictvis"
    folder.mkdir()
    pq.write_table(pa.Table.from_pylist(rows), folder / "test.parquet")
    checked = run("data", "check", "conflictvis", folder, "--json").json
    assert checked["missing"] == []
    assert [str(folder / "unpacked" / "2.png") in line for line in checked["unreadable"]] == [True]
    assert [path.name for path in folder.iterdir()] == ["test.parquet"]
    (tmp_path / "world").mkdir()
    assert len(run("data", "check", "microworld", tmp_path / "world", "--json").json["missing"]) == 600
    assert not list((tmp_path / "world").iterdir())


def test_gallery_of_own_questions(run: Callable, tmp_path: Path) -> None:
    Image.new("RGB", (20, 20)).save(tmp_path / "a.png")
    row: dict[str, Any] = {"image": "a.png", "question": "Is it black?", "answer": "yes"}
    (tmp_path / "mine.jsonl").write_text(json.dumps(row))
    assert run("data", "gallery", "mine.jsonl").out.endswith("→ gallery.html\n")
    assert "Is it black?" in Path("gallery.html").read_text()


def test_nothing_is_written_into_the_package(run: Callable) -> None:
    import unprior

    inside = Path(unprior.__file__).parent / "data"
    run("data", "get", "microworld", "--data-dir", inside).refused("inside the package; choose another folder")
    run("data", "get", "microworld", "--out", inside).refused("inside the package; choose another folder")
    run("data", "list", "--data-dir", inside).refused("inside the package")
    assert not inside.exists()


def test_the_default_is_the_platform_s_cache(run: Callable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("UNPRIOR_DATA")
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    run("evaluate-answers", "cdh-bench", "x.jsonl").refused(str(tmp_path / "cache" / "unprior" / "data" / "cdh-bench"))


@pytest.mark.parametrize("variant", ["open", "options"])
def test_variants_of_the_microworld(run: Callable, drawn_world: Path, tmp_path: Path, variant: str) -> None:
    name = f"microworld-{variant}"
    assert name in run("data", "list", "--json").json
    shutil.copytree(drawn_world, tmp_path / "data" / "microworld-seed-3")
    shown = " ".join(run("data", "show", "microworld", "--variant", variant, "--seed", "3").out.split())
    assert "600 examples, 600 images, 300 pairs, 70 dev, 230 test; 0 images missing" in shown
    assert "1-cf-" + variant in shown
    assert variant != "open" or "(open) →" in shown
    out = tmp_path / "page.html"
    made = run("data", "gallery", name, "--seed", "3", "--limit", "2", "--out", out, "--json").json
    assert (made["benchmark"], made["shown"]) == (f"{name}-3", 2)
    got = run("data", "get", name, "--seed", "3", "--out", tmp_path / "data" / "microworld-seed-3", "--json").json
    read = read_questions(Path(got["out"]))
    assert [replace(each, line=None) for each in read] == list(
        microworld(tmp_path / "data" / "microworld-seed-3", 3, variant=variant)
    )
    checked = run("data", "check", got["out"], "--json").json
    assert (checked["sound"], checked["pairs"]) == (True, [])


def test_cdh_bench_tells_of_its_open_questions(run: Callable) -> None:
    folder = real_data("cdh-bench")
    shown = " ".join(run("data", "show", "cdh-bench", "--variant", "open", "--data-dir", folder.parent).out.split())
    assert "288 pairs" in shown
    assert "How many fingers are on the hand in this image? (open) → 6 fingers / 6" in shown
    assert "gray/grey" in shown
    record = run("data", "show", "cdh-bench", "--variant", "open", "--data-dir", folder.parent, "--json").json
    assert record["variants"]["open"].endswith("questions that speak of options are left out (12 of 300 pairs)")
    assert ["gray", "grey"] in record["synonyms"]
