"""`unprior run`: the whole way, on the embedded model and on others."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from PIL import Image

import tiny_models
from unprior import SelectivePriorCalibrator, read_scores
from unprior.benchmarks.microworld import pairs
from unprior.benchmarks.microworld.benchmark import image_path
from unprior.runs.result import FILES

BRIEF = ("--max-new-tokens", "8")
"""Random models never end an answer by themselves."""


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_models.build("llava", tmp_path_factory.mktemp("llava"))


@pytest.fixture
def finished(default_run: Path, tmp_path: Path) -> Path:
    """A copy of the finished default run, to work in."""
    return Path(shutil.copytree(default_run, tmp_path / "copy"))


def test_a_run_leaves_everything_behind(default_run: Path) -> None:
    assert set(FILES) <= {path.name for path in default_run.iterdir()}
    table = read_scores(default_run / "scores.parquet")
    assert len(table) == 1200
    assert set(table.column("model")) == {"embedded"}
    assert SelectivePriorCalibrator.load(default_run / "calibrator.json").model_name_ == "embedded"
    decisions = [json.loads(line) for line in (default_run / "decisions.jsonl").read_text().splitlines()]
    assert len(decisions) == 920
    assert all(decision["explanation"] for decision in decisions)
    record = json.loads((default_run / "report.json").read_text())
    assert record["title"] == "embedded on microworld"
    assert "only for trying the method" in (default_run / "report.html").read_text()
    with Image.open(image_path(default_run, next(pairs(0)), "cf")) as image:
        assert (image.size, image.mode) == ((288, 288), "RGB")


def test_the_terminal_shows_the_main_table_components_and_attraction(default_output: str) -> None:
    for text in ("CFAD", "RPD", "CCR", "95 %", "R/H", "λ = 0", "Fixed", "no gate", "SPC", "attraction",
                 "report.html"):  # fmt: skip
        assert text.lower() in default_output.lower(), text


def test_running_again_computes_nothing(run: Callable, default_run: Path, finished: Path) -> None:
    before = {name: (finished / name).read_bytes() for name in FILES}
    again = run("run", "--out", finished, "--json")
    assert again.code == 0
    assert again.json == json.loads(before["report.json"])
    places = str(finished).encode(), str(default_run).encode()  # commands on the page name the folder
    assert {name: (finished / name).read_bytes().replace(*places) for name in FILES} == before


@pytest.mark.usefixtures("_few_studies", "_figures_unseen")
def test_other_settings_use_the_same_scores(run: Callable, finished: Path) -> None:
    record = run("run", "--out", finished, "--epsilon-cs", "0.1", "--uncertainty", "--json").json
    assert record["calibrator"]["epsilon_cs"] == 0.1
    assert record["calibrator"]["uncertainty"] is True


def test_another_world_needs_another_folder(run: Callable, finished: Path) -> None:
    run("run", "--out", finished, "--seed", "5").refused("holds the images of seed 0")


@pytest.mark.usefixtures("_few_studies")
def test_any_model_and_any_benchmark(run: Callable, model: Path, default_run: Path, tmp_path: Path) -> None:
    """A small random model on a file with a few pairs of the microworld."""
    questions = []
    for subcategory, first, split in (("Body_Parts", 1, "dev"), ("Body_Parts", 6, "test")):
        for number in range(first, first + 4):
            for side, name in (("cf", "counterfactual"), ("cs", "commonsense")):
                image = default_run / "images" / subcategory / f"Pair_{number}" / f"{name}.png"
                questions.append({"image": str(image), "question": "Is this usual?", "pair": number, "side": side,
                                  "split": split, "answer": "no" if side == "cf" else "yes"})  # fmt: skip
    path = tmp_path / "mine.jsonl"
    path.write_text("\n".join(json.dumps(question) for question in questions))
    result = run("run", "--model", model, "--benchmark", path, "--out", tmp_path / "out", *BRIEF, "--json")
    assert result.code == 0
    assert result.json["test_rows"] == 8
    assert "only for trying the method" not in (tmp_path / "out" / "report.html").read_text()


@pytest.mark.parametrize(
    ("question", "fragment"),
    [
        ({"pair": 1, "side": "cf", "split": "test", "answer": "no"}, "no example has split 'dev'"),
        ({"split": "dev", "answer": "no"}, "belong to no pair"),
    ],
)
def test_a_benchmark_that_cannot_be_judged(
    run: Callable, model: Path, default_run: Path, tmp_path: Path, question: dict[str, object], fragment: str
) -> None:
    images = default_run / "images" / "Body_Parts"
    rows = [
        question | {"image": str(images / f"Pair_{number}" / "commonsense.png"), "question": f"Is it {number}?"}
        for number in (1, 2)
    ]
    if "side" not in question:
        rows[1]["split"] = "test"
    else:
        rows[1]["side"] = "cs"
    path = tmp_path / "mine.jsonl"
    path.write_text("\n".join(json.dumps(row) for row in rows))
    run("run", "--model", model, "--benchmark", path, "--out", tmp_path / "out").refused(fragment)


@pytest.mark.usefixtures("_few_studies", "_figures_unseen")
def test_a_variant_goes_all_the_way(run: Callable, model: Path, tmp_path: Path) -> None:
    rows = []
    for number in range(6):
        for side, colour, answer in (("cf", (0, 0, 40 * number), "B"), ("cs", (40 * number, 0, 0), "A")):
            Image.new("RGB", (40, 40), colour).save(tmp_path / f"{number}-{side}.png")
            rows.append({"image": f"{number}-{side}.png", "question": f"Which color has {number}?", "answer": answer,
                         "options": ["red", "blue", "green", "pink"], "pair": number, "side": side,
                         "split": "dev" if number < 3 else "test"})  # fmt: skip
    path = tmp_path / "mine.jsonl"
    path.write_text("\n".join(json.dumps(row) for row in rows))
    arguments = ("run", "--model", model, "--benchmark", path, "--out", tmp_path / "out", *BRIEF, "--json")
    assert run(*arguments, "--variant", "order-3210").json["title"].endswith("mine-order-3210")
    assert set(read_scores(tmp_path / "out" / "scores.parquet").column("answer")) == {"C", "D"}
    run(*arguments, "--variant", "odd", "--out", tmp_path / "odd").refused("--variant odd", "order-3210")


def test_an_unknown_benchmark_is_refused_before_the_model_is_loaded(run: Callable, tmp_path: Path) -> None:
    run("run", "--model", "no-such-model", "--benchmark", "nowhere", "--out", tmp_path).refused(
        "nowhere: no such file of questions, and no benchmark of that name", "microworld"
    )


def test_a_benchmark_without_pairs_is_refused_before_the_model_is_loaded(run: Callable, finished: Path) -> None:
    (finished / "run.toml").unlink()
    arguments = ("run", "--model", "no-such-model", "--benchmark", "microworld-presence", "--out", finished)
    run(*arguments).refused("belong to no pair")


def test_a_file_cannot_be_the_folder(run: Callable, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    run("run", "--out", tmp_path / "file").refused("cannot be")
    run("data", "get", "microworld", "--out", tmp_path / "file").refused("cannot be")


@pytest.mark.usefixtures("_few_studies", "_figures_unseen")
def test_a_damaged_image_is_drawn_again(run: Callable, finished: Path) -> None:
    image = finished / "images" / "Color" / "Pair_201" / "counterfactual.png"
    before = image.read_bytes()
    image.write_bytes(b"junk")
    assert run("run", "--out", finished, "--json").code == 0
    assert image.read_bytes() == before


@pytest.mark.usefixtures("_few_studies")
def test_a_damaged_note_of_the_seed_is_mended(run: Callable, finished: Path) -> None:
    note = finished / "images" / "seed"
    for content in (b"", b"\xff\xfe"):
        note.write_bytes(content)
        assert run("data", "get", "microworld", "--out", finished).code == 0
        assert note.read_text() == "0\n"


@pytest.mark.usefixtures("_few_studies", "_figures_unseen")
def test_an_image_that_cannot_be_scored_is_told(run: Callable, model: Path, default_run: Path, tmp_path: Path) -> None:
    rows = [
        {"image": str(default_run / "images" / "Body_Parts" / f"Pair_{number}" / f"{name}.png"), "question": "Usual?",
         "pair": number, "side": side, "split": "dev" if number < 4 else "test", "answer": answer}
        for number in range(1, 7)
        for side, name, answer in (("cf", "counterfactual", "no"), ("cs", "commonsense", "yes"))
    ]  # fmt: skip
    (tmp_path / "broken.png").write_bytes(b"junk")
    rows += [rows[-2] | {"pair": 7, "image": "broken.png"}, rows[-1] | {"pair": 7, "image": "broken.png"}]
    path = tmp_path / "mine.jsonl"
    path.write_text("\n".join(json.dumps(row) for row in rows))
    result = run("run", "--model", model, "--benchmark", path, "--out", tmp_path / "out", *BRIEF)
    assert result.code == 1
    assert "2 of 14 examples could not be scored" in result.out.replace("\n", " ")
    assert "2 of 14 examples could not be scored" in (tmp_path / "out" / "report.html").read_text()


def test_the_examples_of_the_docs_repair_an_answer(run: Callable, default_run: Path) -> None:
    page = (Path(__file__).parents[2] / "docs" / "explanation" / "embedded-model.md").read_text()
    closed = re.search(r'unprior ask world/(\S+) "([^"]+)" \\\n +--options "([^"]+)"', page)
    opened = re.search(r'unprior ask world/(\S+) "([^"]+)" --open\n', page)
    assert closed is not None
    assert opened is not None
    place, question, options = closed.groups()
    pair = next(pair for pair in pairs(0) if f"/Pair_{pair.number}/" in place)
    assert (question, tuple(options.split("|"))) == (pair.concept.question, pair.options)
    answer = run("ask", default_run / place, question, "--options", options, "--json").json
    assert (answer["original"], answer["answer"]) == (pair.letter("cs"), pair.letter("cf"))
    place, question = opened.groups()
    pair = next(pair for pair in pairs(0) if f"/Pair_{pair.number}/" in place)
    answer = run("ask", default_run / place, question, "--open", "--json").json
    assert (answer["original"], answer["answer"]) == (pair.state("cs"), pair.state("cf"))


def test_ask_the_embedded_model(run: Callable, finished: Path) -> None:
    pair = next(pairs(0))
    image = image_path(finished, pair, "cs")
    arguments = ("ask", image, pair.concept.question, "--options", "|".join(pair.options))
    plain = run(*arguments, "--json").json
    assert plain["answer"] == pair.letter("cs")
    explained = run(*arguments, "--calibrator", finished / "calibrator.json")
    assert explained.code == 0
    assert explained.err == ""
    assert "The model answered" in explained.out
