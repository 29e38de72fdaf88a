"""The calibrator that comes with the embedded model: what it is, and when `unprior ask` uses it."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
from huggingface_hub import ModelCard

from unprior import SelectivePriorCalibrator, UnpriorError, evaluate, read_scores
from unprior.benchmarks.microworld import pairs
from unprior.benchmarks.microworld.benchmark import image_path
from unprior.embedded import CALIBRATOR, NAME
from unprior.engines.load import load_engine
from unprior.engines.protocol import Engine, RemoteEngineInfo
from unprior.scoring.ask import ask
from unprior.scoring.packaged import packaged_calibrator
from unprior.scoring.plan import engine_provenance


@pytest.fixture(scope="module")
def engine() -> Engine:
    return load_engine(NAME)


@pytest.fixture(scope="module")
def calibrator() -> SelectivePriorCalibrator:
    return SelectivePriorCalibrator.load(CALIBRATOR)


def asked(folder: Path) -> tuple[Path, str, str]:
    pair = next(pairs(0))
    return image_path(folder, pair, "cs"), pair.concept.question, "|".join(pair.options)


def test_it_belongs_to_the_packaged_model(engine: Engine, calibrator: SelectivePriorCalibrator) -> None:
    assert not calibrator.differences([engine_provenance(engine, None)]).refused
    assert calibrator.candidate_counts_ == (2, 3, 4, 5, 6)
    certificate = calibrator.certificate_
    assert certificate is not None
    assert not certificate.abstains
    assert {each.task for each in certificate.tasks} == {"mc", "qa", "open"}
    card = CALIBRATOR.with_name("README.md").read_text()
    assert certificate.sentence in card
    assert hashlib.sha256(CALIBRATOR.read_bytes()).hexdigest() in card
    assert "## Out-of-scope uses" in card
    assert ModelCard.load(CALIBRATOR.with_name("README.md")).data.library_name == "unprior"


def test_it_keeps_its_promise_on_a_world_that_had_no_part_in_it(
    calibrator: SelectivePriorCalibrator, default_run: Path
) -> None:
    table = read_scores(default_run / "scores.parquet")
    for task in evaluate(table, calibrator.predict(table).final).tasks:
        assert task.cf.change.repairs > task.cf.change.harms
        assert task.cs.change.harms <= 0.04 * task.cs.change.total


def test_ask_uses_it_and_says_so(run: Callable, default_run: Path, engine: Engine) -> None:
    image, question, options = asked(default_run)
    told = run("ask", image, question, "--options", options)
    assert told.code == 0, told.err
    assert told.err == ""
    assert "Decided by the packaged calibrator (certified, ε = 0.04)" in told.out
    assert "--no-calibrator" in told.out
    record = run("ask", image, question, "--options", options, "--json").json
    assert record["calibrator"] == "packaged"
    same = ask(engine, image, question, options=options.split("|"), calibrator=CALIBRATOR)
    assert (record["answer"], record["explanation"]) == (same.final, same.explanation)


def test_ask_without_it_leaves_the_answer(run: Callable, default_run: Path) -> None:
    image, question, options = asked(default_run)
    record = run("ask", image, question, "--options", options, "--no-calibrator", "--json").json
    assert record["calibrator"] is None
    assert record["explanation"] is None
    assert record["answer"] == record["original"]
    told = run("ask", image, question, "--no-calibrator", "--calibrator", CALIBRATOR)
    told.refused("--calibrator and --no-calibrator exclude each other")


@pytest.mark.parametrize(
    "other",
    [
        ("--system", "Be brief."), ("--resize", "40"), ("--choice-instruction", "Say ({labels})!"),
        ("--option-line", "({label}) {text}"), ("--continuation", "  {label}"),
    ],
)  # fmt: skip
def test_it_is_left_out_where_questions_are_asked_in_another_way(
    run: Callable, default_run: Path, other: tuple[str, str]
) -> None:
    image, question, options = asked(default_run)
    told = run("ask", image, question, "--options", options, *other)
    assert told.code == 0, told.err
    assert "The packaged calibrator is left out" in told.err
    assert "Decided by" not in told.out
    assert "No calibrator was used" in told.out
    forced = run("ask", image, question, "--options", options, *other, "--force")
    assert "Decided by the packaged calibrator" in forced.out


def test_the_wording_of_an_open_question_counts_for_open_questions(run: Callable, default_run: Path) -> None:
    image, question, options = asked(default_run)
    other = ("--open-instruction", "Tell in short.")
    told = run("ask", image, question, "--open", *other)
    assert "open questions worded “Answer with a short phrase.”, here “Tell in short.”" in " ".join(told.err.split())
    assert "Decided by" not in told.out
    assert "Decided by" in run("ask", image, question, "--options", options, *other).out


def test_a_damaged_one_is_told_with_what_to_do(engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "calibrator.json").write_text("{}")
    monkeypatch.setattr("unprior.scoring.packaged.CALIBRATOR", tmp_path / "calibrator.json")
    with pytest.raises(UnpriorError, match=r"damaged in this installation .* install unprior again"):
        packaged_calibrator(engine)


def test_a_server_that_calls_its_model_so_has_none(engine: Engine) -> None:
    unknown = RemoteEngineInfo(
        engine.name, engine.capabilities, engine.layout, "", {"engine": "openai", "served_model": "embedded"}, None
    )
    assert packaged_calibrator(unknown) is None


def test_other_models_have_none() -> None:
    assert packaged_calibrator(SimpleNamespace(name="another")) is None  # type: ignore[arg-type]


def test_an_open_question_gets_a_decision(run: Callable, default_run: Path) -> None:
    image, question, _ = asked(default_run)
    record = run("ask", image, question, "--open", "--json").json
    assert record["answer"]
    assert len(record["candidates"]) >= 2
    assert record["explanation"]


def test_options_that_it_has_not_seen_are_kept(engine: Engine, default_run: Path) -> None:
    image, question, _ = asked(default_run)
    many = [f"{number} things" for number in range(1, 9)]
    answer = ask(engine, image, question, options=many, calibrator=CALIBRATOR)
    assert answer.final == answer.original
