"""Questions about two claims on the command line: `doctor --prior`, `fit --prior` and `ask --claims`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

import unprior
from unprior import ScoreTable, SelectivePriorCalibrator
from unprior.benchmarks.forms import FITTED_FORM, FORMS
from unprior.benchmarks.microworld.benchmark import microworld
from unprior.benchmarks.schema import Benchmark
from unprior.benchmarks.user_file import read_questions
from unprior.benchmarks.variants import ask_claims
from unprior.scoring.ask import ask
from unprior.scoring.prior_trust import probe_prior


@pytest.fixture(scope="module")
def world(drawn_world: Path) -> Benchmark:
    """Some development pairs of the microworld in the fitted form."""
    benchmark = microworld(drawn_world, 3)
    pairs = sorted({example.pair_id for example in benchmark if example.split == "dev"}, key=str)[::7]
    return ask_claims(benchmark.with_examples([each for each in benchmark if each.pair_id in pairs]), [FITTED_FORM])


@pytest.fixture(scope="module")
def scored(world: Benchmark, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("scored")
    unprior.score(unprior.load_engine("embedded"), world, folder, prior="canonical")
    return folder / "scores.parquet"


@pytest.fixture
def questions(tmp_path: Path) -> Path:
    Image.new("RGB", (32, 32), "red").save(tmp_path / "cube.png")
    rows = [
        {"image": "cube.png", "question": f"Is it {first} and not {second}?", "claims": [first, second],
         "open_question": "What color is the cube?", "id": first}
        for first, second in (("red", "blue"), ("green", "gray"), ("yellow", "red"))
    ]  # fmt: skip
    path = tmp_path / "mine.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def test_the_doctor_examines_the_prior_of_a_file(run: Callable, questions: Path) -> None:
    result = run("doctor", "--prior", "--benchmark", questions, "--json")
    assert (result.code, result.err) == (0, "")
    expected = probe_prior(unprior.load_engine("embedded"), read_questions(questions)).record()
    assert [each["form"] for each in result.json["forms"]] == list(FORMS)
    for found, each in zip(result.json["forms"], expected["forms"], strict=True):
        assert found == pytest.approx(each, abs=1e-4)
        assert (found["questions"], found["aligned"]) == (3, None)
    shown = run("doctor", "--prior", "--benchmark", questions, "--questions", 2).out
    assert "The prior of questions about two claims, without any image" in shown
    assert "reject second" in shown
    assert "2 questions." in shown


def test_a_file_without_claims_has_no_prior_to_examine(run: Callable, questions: Path) -> None:
    rows = [{"image": "cube.png", "question": "Is it red?"}]
    questions.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    run("doctor", "--prior", "--benchmark", questions).refused(
        "has no question that names its two claims", '"claims": ['
    )


def test_an_unknown_benchmark_has_no_prior_to_examine(run: Callable) -> None:
    run("doctor", "--prior", "--benchmark", "microwurld").refused("microw")


@pytest.mark.parametrize("strict", [False, True])
def test_one_question_is_asked_as_the_canonical_prior_needs_it(
    run: Callable, scored: Path, world: Benchmark, strict: bool
) -> None:
    chosen = ("--prior", "canonical", *["--strict"] * strict)
    assert run("fit", scored, "--out", "cal.json", "--epsilon-cs", 0.3, *chosen).code == 0
    calibrator = SelectivePriorCalibrator.load("cal.json")
    assert (calibrator.prior, calibrator.strict) == ("canonical", strict)
    table = unprior.read_scores(scored)
    decided = calibrator.predict(table)
    revised = [*decided.revised.nonzero()[0].tolist(), 0]
    for row in revised[:2]:
        example = world.examples[row]
        assert table.column("example_id")[row] == example.example_id
        assert example.claims is not None
        asked = (example.image, example.question, "--claims", "|".join(example.claims), "--open-question",
                 example.open_question)  # fmt: skip
        result = run("ask", *asked, "--calibrator", "cal.json", "--json")
        assert result.code == 0, result.err
        answer = ask(
            unprior.load_engine("embedded"), example.image, example.question, claims=example.claims,
            open_question=example.open_question, calibrator=calibrator,
        )  # fmt: skip
        assert result.json == json.loads(json.dumps(answer.record() | {"calibrator": "cal.json"}))
        assert result.json["answer"] == decided.final[row]
        assert result.json["explanation"] == decided.explain(row)


def test_without_claims_a_stable_prior_changes_nothing(run: Callable, scored: Path, world: Benchmark) -> None:
    run("fit", scored, "--out", "cal.json", "--epsilon-cs", 0.3, "--prior", "canonical")
    example = world.examples[0]
    record = run("ask", example.image, example.question, "--calibrator", "cal.json", "--json").json
    assert record["answer"] == record["original"]


@pytest.mark.parametrize("claims", ["red", "red|red", "red|blue|green", "red|"])
def test_claims_are_two_different_answers(run: Callable, questions: Path, claims: str) -> None:
    run("ask", questions.with_name("cube.png"), "Is it red?", "--claims", claims).refused("give two different answers")


def test_claims_do_not_go_with_options(run: Callable, questions: Path) -> None:
    image = questions.with_name("cube.png")
    run("ask", image, "Red?", "--claims", "red|blue", "--options", "a|b").refused("only without options")


def test_scores_without_views_cannot_be_fitted(run: Callable, scored: Path) -> None:
    table: Any = unprior.read_scores(scored)
    bare: ScoreTable = table.with_column("views", [None] * len(table))
    bare.write("bare.parquet")
    told = f"{len(table)} of {len(table)} yes/no rows were not scored for --prior canonical"
    run("fit", "bare.parquet", "--out", "cal.json", "--prior", "canonical").refused(told, "unprior score --prior")
