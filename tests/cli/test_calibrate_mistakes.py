"""Every mistake in input or options ends with an explanation, exit code 2, and untouched files."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from row_changes import Change, edit, edit_all, only


def truncate(text: str) -> str:
    return text[: len(text) // 2]


def tamper(text: str) -> str:
    document = json.loads(text)
    document["fits"][0]["theta"][0] += 0.125
    return json.dumps(document)


def no_number(text: str) -> str:
    document = json.loads(text)
    document["parameters"]["epsilon_cs"] = "small"
    return json.dumps(document)


def replace_in_json(**values: Any) -> Callable[[str], str]:
    return lambda text: json.dumps(json.loads(text) | values)


@pytest.fixture
def old() -> Path:
    """An earlier output that a failing command must not touch."""
    path = Path("old.jsonl")
    path.write_text("old")
    return path


def untouched(old: Path, inputs: int) -> bool:
    return old.read_text() == "old" and len(list(Path().iterdir())) == inputs + 1


@pytest.mark.parametrize(
    ("change", "fragments"),
    [
        (only(split="test"), ["no row has split 'dev'", "split is one of: test", "--split all"]),
        (edit_all(split=...), ["no row has split 'dev'", "split is not set in any row", "--split all"]),
        (edit_all(split="train"), ["split is one of: train"]),
        (only(side="cf"), ["task mc has no commonsense (cs) row", "score both images of each pair"]),
        (only(side="cs"), ["task mc has no counterfactual (cf) row"]),
        (lambda rows: only(task="mc")(rows) + only(task="qa", side="cf")(rows), ["task qa has no commonsense (cs)"]),
        (edit(0, model="other"), ["2 models (other, synthetic)", "--model NAME"]),
        (edit(7, answer=...), ["line 8: answer is missing"]),
        (edit(7, answer=None), ["line 8: answer is missing"]),
        (edit(1, prior_scores=[0.0]), ["1 of 1200 rows is invalid", "line 2: prior_scores has 1 values for 4"]),
        (edit(2, image_scores=[float("inf"), 0.0]), ["line 3: image_scores has a value that is not a finite number"]),
        (lambda _: [], ["no rows; there is nothing to work on"]),
    ],
)
def test_fit_explains_what_is_wrong_with_the_table(
    run: Callable, rewrite: Callable, files: Any, old: Path, change: Change, fragments: list[str]
) -> None:
    scores = rewrite(files.scores, "scores.jsonl", change)
    run("fit", scores, "--out", old).refused("error: ", *fragments)
    assert untouched(old, inputs=1)


@pytest.mark.parametrize(
    ("options", "fragment"),
    [
        (["--epsilon-cs", "2"], "epsilon_cs is 2.0"),
        (["--epsilon-cs", "-0.1"], "epsilon_cs is -0.1"),
        (["--epsilon-cs", "nan"], "epsilon_cs is nan"),
        (["--epsilon-cs", "inf"], "epsilon_cs is inf"),
        (["--split", "validation"], "no row has split 'validation'; in this table split is one of: dev, test"),
        (["--model", "llava"], "no row has model 'llava' and split 'dev'; in this table model is one of: synthetic"),
    ],
)
def test_fit_explains_wrong_options(run: Callable, files: Any, old: Path, options: list[str], fragment: str) -> None:
    run("fit", files.scores, "--out", old, *options).refused("error: ", fragment)
    assert untouched(old, inputs=0)


@pytest.mark.parametrize(
    ("change", "fragments"),
    [
        (truncate, ["may be truncated", "unprior fit"]),
        (lambda _: "", ["may be truncated", "unprior fit"]),
        (tamper, ["changed after the file was saved", "unprior fit"]),
        (replace_in_json(version=3), ["calibrator version 3, this unprior reads versions 1 to 2", "Fit it again"]),
        (replace_in_json(version=None), ["calibrator version None"]),
        (replace_in_json(checksum=None), ["checksum does not match"]),
        (no_number, ["parameters.epsilon_cs: must be a number", "unprior fit"]),
        (replace_in_json(note="hello"), ["there is no field note"]),
        (replace_in_json(format="other"), ["not a calibrator", "unprior fit SCORES"]),
        (lambda _: "[1, 2]", ["not a calibrator"]),
        (lambda _: "hello", ["not a calibrator"]),
    ],
)
def test_apply_explains_what_is_wrong_with_the_calibrator(
    run: Callable, files: Any, old: Path, change: Callable[[str], str], fragments: list[str]
) -> None:
    calibrator = Path("cal.json")
    calibrator.write_text(change(files.calibrator.read_text(encoding="utf-8")), encoding="utf-8")
    run("apply", calibrator, files.scores, "--out", old).refused("error: cal.json: ", *fragments)
    assert untouched(old, inputs=1)


@pytest.mark.parametrize(
    ("change", "fragments"),
    [
        (edit(5, original="Z"), ["line 6: original 'Z' is not one of the candidates"]),
        (edit(5, answer="Z"), ["line 6: answer 'Z' is not one of the candidates"]),
        (edit(5, candidates=["A"]), ["line 6: K is 1"]),
        (lambda _: [], ["no rows"]),
    ],
)
def test_apply_explains_what_is_wrong_with_the_table(
    run: Callable, rewrite: Callable, files: Any, old: Path, change: Change, fragments: list[str]
) -> None:
    scores = rewrite(files.scores, "scores.jsonl", change)
    run("apply", files.calibrator, scores, "--out", old).refused("error: scores.jsonl: ", *fragments)
    assert untouched(old, inputs=1)


@pytest.mark.parametrize(
    ("change", "fragments"),
    [
        (lambda rows: rows[:-1], ["1199 decisions for 1200 rows", "unprior apply"]),
        (lambda rows: rows + rows[:1], ["1201 decisions for 1200 rows", "unprior apply"]),
        (lambda _: [], ["0 decisions for 1200 rows"]),
        (lambda rows: rows[1:] + rows[:1], [" of the score table has ", "unprior apply"]),
        (edit(4, pair_id=99), ["line 5: pair_id is 99, but row 5 of the score table has 2"]),
        (edit(3, original="Z"), ["line 4: original is 'Z'"]),
        (edit(3, final="Z"), ["line 4: final answer 'Z' is not one of the candidates"]),
        (edit(3, final=...), ["line 4: no final"]),
    ],
)
def test_evaluate_explains_what_is_wrong_with_the_decisions(
    run: Callable, rewrite: Callable, files: Any, change: Change, fragments: list[str]
) -> None:
    decisions = rewrite(files.decisions, "decisions.jsonl", change)
    run("evaluate", files.scores, decisions).refused("error: decisions.jsonl", *fragments)


@pytest.mark.parametrize(
    ("change", "fragments"),
    [
        (only(split="dev"), ["no row has split 'test'", "split is one of: dev", "--split all"]),
        (edit_all(split=...), ["no row has split 'test'", "split is not set in any row"]),
        (only(side="cf"), ["460 pairs are not sound", "pair 6 (mc): has no commonsense (cs) side", "--skip-invalid"]),
        (only(side="cs"), ["pair 6 (mc): has no counterfactual (cf) side"]),
        (edit(1199, answer=None), ["line 1200: answer is missing"]),
    ],
)
def test_evaluate_explains_what_is_wrong_with_the_table(
    run: Callable, rewrite: Callable, files: Any, change: Change, fragments: list[str]
) -> None:
    scores = rewrite(files.scores, "scores.jsonl", change)
    run("apply", files.calibrator, scores, "--out", "decisions.jsonl")
    run("evaluate", scores, "decisions.jsonl").refused("error: ", *fragments)


def test_evaluate_explains_wrong_options(run: Callable, files: Any) -> None:
    run("evaluate", files.scores, files.decisions, "--split", "val").refused("split is one of: dev, test")
    run("evaluate", files.scores, files.decisions, "--model", "llava").refused("model is one of: synthetic")


# {s}, {c}, {d}: scores, calibrator, decisions of the pipeline
@pytest.mark.parametrize(
    ("arguments", "fragments"),
    [
        ("fit nothing.jsonl --out {o}", ["nothing.jsonl: no such file; check the path"]),
        ("fit . --out {o}", ["this is a folder, a file is needed"]),
        ("fit {s} --out {s}", ["would overwrite its own input; choose another name"]),
        ("fit {s} --out {o}/cal.json", ["old.jsonl/cal.json: cannot be written"]),
        ("fit {s} --out {f}", ["cannot be written, because this is a folder"]),
        ("fit {d} --out {o}", ["1200 of 1200 rows are invalid", "candidates: missing"]),
        ("fit {c} --out {o}", ["calibrator"]),
        ("apply {c} {c} --out {o}", ["calibrator"]),
        ("apply nothing.json {s} --out {o}", ["nothing.json: no such file; check the path"]),
        ("apply . {s} --out {o}", ["no calibrator.json in this folder"]),
        ("apply {c} nothing.jsonl --out {o}", ["nothing.jsonl: no such file; check the path"]),
        ("apply {c} . --out {o}", ["this is a folder, a file is needed"]),
        ("apply {c} {s} --out {s}", ["would overwrite its own input; choose another name"]),
        ("apply {c} {s} --out {c}", ["would overwrite its own input; choose another name"]),
        ("apply {c} {s} --out decisions.csv", ["the name must end in .jsonl or .parquet"]),
        ("apply {c} {s} --out {o}/decisions.jsonl", ["decisions.jsonl: cannot be written"]),
        ("apply {s} {c} --out {o}", ["not a calibrator"]),
        ("apply {d} {s} --out {o}", ["not a calibrator"]),
        ("evaluate nothing.jsonl {d}", ["nothing.jsonl: no such file; check the path"]),
        ("evaluate {s} nothing.jsonl", ["nothing.jsonl: no such file; check the path"]),
        ("evaluate {s} .", ["this is a folder, a file is needed"]),
        ("evaluate {s} {s}", ["line 1: no final; `unprior apply` writes decisions"]),
        ("evaluate {s} {c}", ["line 1: not a JSON object"]),
        ("evaluate {d} {s}", ["1200 of 1200 rows are invalid", "candidates: missing"]),
    ],
)
def test_wrong_files_are_explained(
    run: Callable, files: Any, old: Path, arguments: str, fragments: list[str], tmp_path_factory: Any
) -> None:
    folder = tmp_path_factory.mktemp("folder")
    inputs = (files.scores, files.calibrator, files.decisions)
    before = [path.read_bytes() for path in inputs]
    names = {"s": files.scores, "c": files.calibrator, "d": files.decisions, "o": old, "f": folder}
    run(*(word.format(**names) for word in arguments.split())).refused("error: ", *fragments)
    assert [path.read_bytes() for path in inputs] == before
    assert untouched(old, inputs=0)
    assert list(folder.iterdir()) == []


def test_questions_are_told_from_scores(run: Callable) -> None:
    Path("questions.jsonl").write_text('{"image": "a.png", "question": "Is it red?", "answer": "no"}\n')
    for command in (["fit", "questions.jsonl", "--out", "c.json"], ["convert", "questions.jsonl", "--out", "x.jsonl"]):
        run(*command).refused(
            "questions.jsonl holds questions, not scores (no `image_scores`). "
            "Run `unprior score --benchmark questions.jsonl …` first."
        )


def test_messages_of_commands_have_no_words_of_python(run: Callable, rewrite: Callable, files: Any) -> None:
    scores = rewrite(files.scores, "scores.jsonl", edit(7, answer="?"))
    broken = run("fit", scores, "--out", "c.json")
    broken.refused("line 8", "leave it out with --skip-invalid.")
    assert "skip_invalid" not in broken.err
    wrong = run("fit", files.scores, "--out", "c.json", "--split", "tset")
    wrong.refused("split is one of: dev, test (did you mean test?)", "For all rows: --split all.")
    assert "None" not in wrong.err


def test_nothing_left_after_skipping_is_said(run: Callable, rewrite: Callable, files: Any) -> None:
    scores = rewrite(files.scores, "scores.jsonl", edit_all(answer=None))
    for command in (["fit", scores, "--out", "c.json"], ["evaluate", scores, files.decisions]):
        result = run(*command, "--skip-invalid")
        result.refused("scores.jsonl: no row with a correct answer is left")


def test_output_to_a_pipe_or_through_a_link(run: Callable, files: Any) -> None:
    # A pipe of the test's own: whatever the command does wrong, no device of the machine can suffer.
    os.mkfifo("pipe")
    run("fit", files.scores, "--out", "pipe").refused("pipe: cannot be written, because this is a pipe")
    assert Path("pipe").is_fifo()
    Path("there").mkdir()
    Path("cal.json").symlink_to("there/cal.json")
    assert run("fit", files.scores, "--out", "cal.json").code == 0
    assert Path("cal.json").is_symlink()
    assert Path("there/cal.json").is_file()


@pytest.mark.parametrize(
    ("arguments", "like"),
    [
        (["data", "show", "cdhbench"], "cdh-bench"),
        (["score", "--model", "embedded", "--benchmark", "microwrold", "--out", "x"], "microworld"),
        (["score", "--model", "embedded", "--benchmark", "microworld", "--out", "x", "--engine", "transformer"],
         "transformers"),
        (["score", "--model", "embedded", "--benchmark", "microworld", "--out", "x", "--variant", "order-321"],
         "order-3210"),
        (["study", "attractoin"], "attraction"),
        (["convert", "{s}", "--out", "x.jsonl", "--prior", "whit"], "white"),
    ],
)  # fmt: skip
def test_a_name_that_is_nearly_right_is_suggested(run: Callable, files: Any, arguments: list[str], like: str) -> None:
    run(*(argument.format(s=files.scores) for argument in arguments)).refused(f"(did you mean {like}?)")


@pytest.mark.parametrize(
    ("change", "fragment"),
    [
        (lambda document: document | {"model": "\ud800"}, "not valid Unicode"),
        (lambda document: document | {"\udc00": 1}, "not valid Unicode"),
    ],
)
def test_half_a_character_in_a_calibrator(
    run: Callable, files: Any, change: Callable[[dict[str, Any]], dict[str, Any]], fragment: str
) -> None:
    Path("cal.json").write_text(json.dumps(change(json.loads(files.calibrator.read_text()))))
    run("apply", "cal.json", files.scores, "--out", "d.jsonl").refused("cal.json: not a valid calibrator", fragment)


def test_a_name_of_three_hundred_letters_is_no_benchmark(run: Callable) -> None:
    run("score", "--model", "embedded", "--benchmark", "x" * 300, "--out", "x").refused("no benchmark of that name")
