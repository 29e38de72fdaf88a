"""The whole way: observe, log, label, evaluate, fit with a promise, enforce; with the real model over HTTP."""

from __future__ import annotations

import csv
from itertools import groupby
from pathlib import Path
from typing import Any

import httpx
import pytest

from row_changes import read_lines
from tests.serving.conftest import Serve, body, choice, data_url
from unprior import SelectivePriorCalibrator, read_scores
from unprior.benchmarks.microworld import microworld
from unprior.benchmarks.schema import Example
from unprior.calibration.files import apply_file, fit_file
from unprior.embedded import CALIBRATOR
from unprior.engines.load import load_engine
from unprior.engines.protocol import Engine
from unprior.errors import UnpriorError, UnpriorNote
from unprior.images import open_image, pixel_digest
from unprior.runs.evaluate import evaluate_file
from unprior.serving.calibrators import NamedCalibrator
from unprior.serving.label import take_labels, write_label_file

PAIRS = 70
EPSILON = 0.1


def question(example: Example) -> dict[str, Any]:
    if example.task == "open":
        return {"type": "open", "instructions": example.question}
    if example.texts is None:
        return {"type": "predicate", "instructions": example.question}
    return choice(example.question, *example.texts)


def right(example: Example) -> str:
    return example.texts[example.labels.index(example.answer)] if example.texts else str(example.answer)


def ask(address: str, asked: list[list[Example]]) -> list[list[dict[str, Any]]]:
    """All questions about an image in one request; what is told about each."""
    found = []
    with httpx.Client(timeout=120) as client:
        for same in asked:
            reply = client.post(
                f"{address}/v1/decisions", json=body(data_url(same[0].image), *(question(each) for each in same))
            )
            assert reply.status_code == 200, reply.text
            found.append([each["unprior"] for each in reply.json()["answers"]])
    return found


@pytest.fixture(scope="module")
def asked(drawn_world: Path) -> list[list[Example]]:
    """Questions by image."""
    chosen = [each for each in microworld(drawn_world, 3) if 0 < int(each.pair_id or 0) <= PAIRS]
    by_image = sorted(chosen, key=lambda each: str(each.image))
    return [list(same) for _, same in groupby(by_image, key=lambda each: each.image)]


@pytest.fixture(scope="module")
def log(start: Serve, asked: list[list[Example]], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a server in shadow mode wrote about them."""
    path = tmp_path_factory.mktemp("shadow") / "decisions.jsonl"
    with start(mode="observe", log=path) as address:
        ask(address, asked)
        ask(address, asked[:1])  # somebody asks again
    return path


@pytest.fixture(scope="module")
def labelled(log: Path, asked: list[list[Example]]) -> Path:
    """The log with the truth of the benchmark filled in."""
    truth = {(pixel_digest(open_image(each.image)), each.question): right(each) for same in asked for each in same}
    sheet = write_label_file(log).out
    with sheet.open(encoding="utf-8-sig", newline="") as stream:
        rows = [row | {"answer": truth[row["image"], row["question"]]} for row in csv.DictReader(stream)]
    with sheet.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    taken = take_labels(log, sheet, test_share=0.3)
    assert taken.labelled == taken.examples == 2 * len(asked)
    return taken.out


def test_the_derived_sides_are_those_of_the_benchmark(labelled: Path, asked: list[list[Example]]) -> None:
    """The embedded model's prior is the ordinary answer, so what follows from labels and priors is what was drawn."""
    drawn = {pixel_digest(open_image(same[0].image)): same[0].side for same in asked}
    with pytest.warns(UnpriorNote, match="2 requests repeat"):
        table = read_scores(labelled)
    agrees = [drawn[image] == side for image, side in zip(table.column("pair_id"), table.column("side"), strict=True)]
    assert sum(agrees) >= 0.95 * len(agrees)


@pytest.mark.filterwarnings("ignore::unprior.errors.UnpriorNote")
def test_the_logged_decisions_are_those_of_the_calibrator(labelled: Path) -> None:
    again = apply_file(CALIBRATOR, labelled)
    logged = {each["example_id"]: each["decided"] for each in read_lines(labelled)[1:]}
    assert again.final.tolist() == [logged[name] for name in again.table.column("example_id")]
    evaluated = evaluate_file(labelled, split=None, resamples=200)
    assert [each.task for each in evaluated.evaluation.tasks] == ["mc", "qa"]
    assert all(each.cf.change.repairs > 5 for each in evaluated.evaluation.tasks)


@pytest.mark.filterwarnings("ignore::unprior.errors.UnpriorNote")
def test_from_shadow_mode_to_a_calibrator_that_changes_answers(
    start: Serve, embedded: Engine, asked: list[list[Example]], labelled: Path, tmp_path: Path
) -> None:
    own = tmp_path / "own.json"
    parameters = SelectivePriorCalibrator(retention="certified", epsilon_cs=EPSILON)
    certificate = fit_file(labelled, own, parameters).calibrator.certificate_
    assert certificate is not None
    assert not certificate.abstains
    images = {each["image_digest"] for each in read_lines(labelled)[1:] if each["split"] == "dev"}
    assert {*certificate.calibration_pairs, *certificate.strength_pairs} == images  # an image counts once
    decisions = apply_file(own, labelled, tmp_path / "new.jsonl")
    evaluated = evaluate_file(labelled, tmp_path / "new.jsonl", resamples=200)
    assert evaluated.promise is not None
    assert evaluated.promise.held
    assert sum(each.cf.change.repairs for each in evaluated.evaluation.tasks) > 3

    expected = dict(zip(decisions.table.column("example_id"), decisions.revised.tolist(), strict=True))
    by_question = {
        (each["image_digest"], each["question"]): expected.get(each["example_id"])
        for each in reversed(read_lines(labelled)[1:])
        if each["split"] == "test"
    }
    new = [same for same in asked if (pixel_digest(open_image(same[0].image)), same[0].question) in by_question]
    enforced = tmp_path / "enforced.jsonl"
    with start(mode="enforce", calibrators=[f"own={own}"], log=enforced) as address:
        told = ask(address, new)
    revised = 0
    for same, answers in zip(new, told, strict=True):
        digest = pixel_digest(open_image(same[0].image))
        for example, answer in zip(same, answers, strict=True):
            assert (answer["decision"] == "revised") == by_question[digest, example.question]
            revised += answer["decision"] == "revised"
    assert revised > 3
    digest = NamedCalibrator.load("own", own, embedded).digest
    assert {each["calibrator"] for each in read_lines(enforced)[1:]} == {digest}


@pytest.mark.filterwarnings("ignore::unprior.errors.UnpriorNote")
def test_a_calibrator_from_a_log_is_refused_by_another_server(labelled: Path, tmp_path: Path, embedded: Engine) -> None:
    fit_file(labelled, tmp_path / "own.json", SelectivePriorCalibrator(epsilon_cs=EPSILON))
    assert NamedCalibrator.load("own", tmp_path / "own.json", embedded).side is None
    other = load_engine("embedded", dtype="bfloat16")
    with pytest.raises(UnpriorError, match="precision float32, here bfloat16"):
        NamedCalibrator.load("own", tmp_path / "own.json", other)


@pytest.mark.filterwarnings("ignore::unprior.errors.UnpriorNote")
def test_open_questions_go_the_same_way(start: Serve, drawn_world: Path, tmp_path: Path) -> None:
    chosen = list(microworld(drawn_world, 3, variant="open"))[:210:7]
    log = tmp_path / "open.jsonl"
    with start(mode="observe", log=log) as address:
        ask(address, [[each] for each in chosen])
    names = [each["example_id"] for each in read_lines(log)[1:]]
    labels = tmp_path / "labels.csv"
    with labels.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["example", "answer"])
        writer.writerows(zip(names, map(right, chosen), strict=True))
    out = take_labels(log, labels, test_share=1).out
    decisions = apply_file(CALIBRATOR, out)
    assert decisions.table.is_open.all()
    assert {*decisions.table.column("side")} == {"cf", "cs"}
    assert decisions.final.tolist() == [each["decided"] for each in read_lines(out)[1:]]
    assert evaluate_file(out, resamples=100).evaluation.tasks[0].cf.change.total > 5
