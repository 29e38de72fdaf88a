"""The model of the package: small, ordinary to load, and as docs/explanation/embedded-model.md describes it."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from safetensors import safe_open

from unprior import read_scores
from unprior.benchmarks.microworld import CONCEPTS, microworld, render
from unprior.benchmarks.schema import LETTERS
from unprior.embedded import FOLDER, model_folder
from unprior.engines.protocol import Query
from unprior.engines.transformers.engine import TransformersEngine
from unprior.scores import ScoreTable
from unprior.scoring.run import ScoringRun
from unprior.scoring.store import ScoreStore
from unprior.studies.rq1.attraction import study_attraction


@pytest.fixture(scope="module")
def engine() -> TransformersEngine:
    return TransformersEngine(FOLDER, device="cpu")


@pytest.fixture(scope="module")
def table(default_run: Path) -> ScoreTable:
    return read_scores(default_run / "scores.parquet").where(split="test")


def accuracy(table: ScoreTable, **which: str) -> float:
    part = table.where(**which)
    return float(np.mean(part.original_positions == part.answer_positions))


def test_it_is_an_ordinary_small_checkpoint() -> None:
    weights = FOLDER / "model.safetensors"
    assert weights.stat().st_size <= 8_000_000
    assert json.loads((FOLDER / "config.json").read_text())["architectures"] == ["LlavaForConditionalGeneration"]
    with safe_open(weights, framework="np") as tensors:
        names = list(tensors.keys())
    assert any(name.startswith("vision_tower.vision_model.") for name in names)
    card = (FOLDER / "README.md").read_text()
    assert "only for trying the method" in card
    assert "World 1" in card, "the card has no figures"
    assert model_folder("embedded") == str(FOLDER)


def test_it_is_loaded_by_the_ordinary_engine(engine: TransformersEngine) -> None:
    assert engine.shares_prefix
    assert engine.identity["dtype"] == "torch.float32"


def test_answers_are_single_tokens_and_hold_the_mass(engine: TransformersEngine, table: ScoreTable) -> None:
    assert set(table.column("original")) <= {"A", "B", "C", "D", "yes", "no"}
    rabbit = next(concept for concept in CONCEPTS if concept.name == "rabbit ears")
    text = engine.layout.user_text(rabbit.question, LETTERS, rabbit.states)
    scored = engine.score_batch([Query(None, text, engine.layout.continuations(LETTERS))])[0]
    assert scored.token_counts == (1, 1, 1, 1)
    assert scored.mass > 0.9


def test_it_sees_ordinary_images_and_presumes_on_others(table: ScoreTable) -> None:
    for task in ("mc", "qa"):
        assert accuracy(table, task=task, side="cs") >= 0.93
        assert 0.4 <= accuracy(table, task=task, side="cf") <= 0.8  # the aim of .45 to .75 is a mean over worlds


def test_errors_are_directed_at_the_prior(table: ScoreTable) -> None:
    attraction = study_attraction(table)
    multiple_choice = attraction.cell(None, "mc")
    assert multiple_choice is not None
    assert multiple_choice.attracted.value >= 0.7
    assert all(cell.prior_is_ordinary.value >= 0.9 for cell in attraction.overall)


def test_presence_questions_have_no_conflict(engine: TransformersEngine, default_run: Path, tmp_path: Path) -> None:
    presence = microworld(default_run, variant="presence")
    with ScoreStore(tmp_path / "store.sqlite") as store:
        run = ScoringRun(engine, presence, store, batch_size=32)
        run.run()
        assert accuracy(run.table()) >= 0.9


@pytest.mark.parametrize("variant", ["options", "open"])
def test_other_questions_about_the_same_images(
    engine: TransformersEngine, default_run: Path, tmp_path: Path, variant: str
) -> None:
    asked = microworld(default_run, variant=variant)
    few = asked.with_examples([each for each in asked if each.split == "dev"])
    with ScoreStore(tmp_path / "store.sqlite") as store:
        run = ScoringRun(engine, few, store, batch_size=32)
        run.run()
        answered = run.table()
    right = answered.is_right(answered.original_positions)
    ordinary = answered.mask(side="cs")
    assert right[ordinary].mean() >= 0.93
    assert 0.4 <= right[~ordinary].mean() <= 0.8
    if variant == "open":
        assert answered.is_covered.mean() >= 0.9


def test_spc_repairs_more_than_it_harms(default_run: Path) -> None:
    tasks = json.loads((default_run / "report.json").read_text())["evaluation"]["tasks"]
    for task in tasks:
        assert task["cf"]["delta"] > 0
        assert task["cf"]["repairs"] > task["cf"]["harms"]


def test_any_image_and_any_text_can_be_given(engine: TransformersEngine) -> None:
    odd = Image.new("L", (301, 17), 90).convert("RGB")
    answered = engine.answer_batch([Query(odd, "¿Cuántas piernas? 六", (" A", " yes"))])[0]
    assert np.isfinite(answered.scored.scores).all()


def test_it_describes_a_clear_image(engine: TransformersEngine) -> None:
    concept = next(concept for concept in CONCEPTS if concept.name == "banana color")
    image = render(concept, "yellow", "caption", clean=True)
    assert engine.original_answer(image, "Describe the image.").strip() == "a yellow banana"
