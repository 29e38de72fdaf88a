"""Measure trained models with the package itself: the same engine, benchmark, calibrator and statistics as any user."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import torch

import torch_ready  # noqa: F401  (before anything imports transformers)
from build import build_model, build_tokenizer
from progress import Checkpoints
from recipe import Recipe
from unprior.baselines.controls import fixed_strength_answers
from unprior.benchmarks.microworld import microworld, pairs
from unprior.benchmarks.microworld.benchmark import image_path
from unprior.benchmarks.microworld.pairs import SIDES
from unprior.benchmarks.microworld.world import CONCEPTS
from unprior.engines.protocol import Engine
from unprior.engines.transformers.engine import TransformersEngine
from unprior.images import open_image
from unprior.runs.result import RunResult
from unprior.scores import ScoreTable
from unprior.scores.table import concatenate
from unprior.scoring.run import ScoringRun
from unprior.scoring.store import ScoreStore
from unprior.studies.rq1.attraction import Attraction
from unprior.studies.rq3.components import Components
from vision import CLASSES, Tower, to_pixels


def load_tower(folder: Path, recipe: Recipe) -> Tower:
    """The vision tower of a training run with its classifier."""
    tower = Tower(build_model(recipe, build_tokenizer(recipe), 0), recipe.width)
    Checkpoints(folder / "checkpoints").load("vision", tower)
    tower.eval()
    return tower


def measure_models(models: Sequence[tuple[Path, Sequence[int]]], work: Path) -> list[list[dict[str, Any]]]:
    """Records of every model for its worlds; several models are measured side by side, one thread each."""
    with ProcessPoolExecutor(max_workers=os.cpu_count(), mp_context=get_context("spawn")) as pool:
        waiting = [pool.submit(measure_model, model, seeds, work) for model, seeds in models]
        return [each.result() for each in waiting]


def measure_model(model: Path, seeds: Sequence[int], work: Path) -> list[dict[str, Any]]:
    """One record per world: how the model answers, what SPC makes of it, and why it erred."""
    torch.set_num_threads(1)
    recipe = Recipe()
    tower = load_tower(model.parent, recipe)
    engine = TransformersEngine(model, name=f"{model.parent.name}/{model.name}")
    work /= f"{model.parent.name}-{model.name}"
    records = []
    for seed in seeds:
        tables = score_variants(engine, seed, work, ("standard", "presence", "options", "open"))
        asked = concatenate([tables["standard"], tables["open"].with_columns(benchmark=_benchmark(tables["standard"]))])
        record = {"model": engine.name, "seed": seed} | describe(RunResult.from_table(asked))
        record["presence"] = accuracy(tables["presence"])
        record["options"] = {side: accuracy(tables["options"].where(split="test", side=side)) for side in SIDES}
        record["options_by_count"] = options_by_count(tables["options"].where(split="test"))
        record["coverage"] = {
            side: float(np.mean(tables["open"].where(split="test", side=side).answer_positions >= 0)) for side in SIDES
        }
        seen = seen_states(tower, recipe, world_folder(work, seed), seed)
        record["errors"] = split_errors(asked, seen)
        record["errors_by_category"] = errors_by_category(asked.where(split="test", side="cf"))
        records.append(record)
        print(json.dumps(record), flush=True)
    return records


def score_variants(engine: Engine, seed: int, work: Path, variants: Sequence[str]) -> dict[str, ScoreTable]:
    """Score tables of a world by what is asked about it; what was scored before is read from the store."""
    tables = {}
    with ScoreStore(work / "store.sqlite") as store:
        for variant in variants:
            run = ScoringRun(engine, microworld(world_folder(work, seed), seed, variant=variant), store, batch_size=16)
            run.run()
            tables[variant] = run.table()
    return tables


def world_folder(work: Path, seed: int) -> Path:
    """Where the images of a world are drawn."""
    return work / f"world-{seed}"


def accuracy(table: ScoreTable) -> float:
    """Share of right original answers."""
    return float(np.mean(table.is_right(table.original_positions)))


def options_by_count(table: ScoreTable) -> dict[str, dict[str, float]]:
    """Accuracy of choices on both sides, by the number of options."""
    counts = {str(count): table.take(table.candidate_counts == count) for count in np.unique(table.candidate_counts)}
    return {count: {side: accuracy(part.where(side=side)) for side in SIDES} for count, part in counts.items()}


def errors_by_category(table: ScoreTable) -> dict[str, int]:
    """Wrong original answers of all tasks, by category."""
    wrong = ~table.is_right(table.original_positions)
    code, labels = table.codes("category")
    return {str(name): int((wrong & (code == place)).sum()) for place, (name,) in enumerate(labels)}


def _benchmark(table: ScoreTable) -> str:
    return str(table.arrow.column("benchmark")[0].as_py())


def describe(run: RunResult) -> dict[str, Any]:
    """The figures of a run that the dial is about, from the test pairs."""
    test = run.decisions.table
    attraction_study, components_study = run.study("attraction"), run.study("components")
    assert isinstance(attraction_study, Attraction)
    assert isinstance(components_study, Components)
    tasks = {
        result.task: {
            "cf": result.original.cf.value,
            "cs": result.original.cs.value,
            "spc_cf": result.method.cf.value,
            "spc_cs": result.method.cs.value,
            "low_high": [[side.low, side.high] for side in (result.cf, result.cs)],
            "repairs_harms": [[side.change.repairs, side.change.harms] for side in (result.cf, result.cs)],
            "p": [side.test.p_value for side in (result.cf, result.cs)],
            "cfad_rpd_ccr": [[each.cfad, each.rpd, each.ccr.value] for each in (result.original, result.method)],
            "utility": result.utility,
            "attraction": attraction.attracted.value,
            "prior_is_ordinary": attraction.prior_is_ordinary.value,
        }
        for result, attraction in zip(run.evaluation.tasks, attraction_study.overall, strict=True)
    }
    components = {
        row.label: {task.task: [task.cf.delta, task.cs.delta] for task in row.tasks} for row in components_study.rows
    }
    agrees = fixed_strength_answers(test, 0.0) == test.original_positions
    tasks_of_rows = np.array(test.column("task"))
    cells = [cell for cell in attraction_study.cells if cell.task == "mc"]
    matrix = {str(cell.subcategory): [cell.attracted.count, cell.attracted.total] for cell in cells}
    return {
        "tasks": tasks,
        "components": components,
        "attraction_matrix": matrix,
        "original_is_best_scored": float(np.mean(agrees)),
        "best_scored_by_task": {task: float(np.mean(agrees[tasks_of_rows == task])) for task in tasks},
    }


@torch.inference_mode()
def seen_states(tower: Tower, recipe: Recipe, folder: Path, seed: int) -> dict[tuple[int, str], bool]:
    """Whether the vision tower alone tells the state of each image, by pair number and side."""
    found = {}
    for pair in pairs(seed):
        place = CONCEPTS.index(pair.concept)
        first = CLASSES.index((place, 0))
        size = (recipe.image_size, recipe.image_size)
        images = [np.asarray(open_image(image_path(folder, pair, side)).resize(size, 3)) for side in SIDES]
        best = tower(to_pixels(np.stack(images)))[:, first : first + len(pair.concept.states)].argmax(dim=1)
        for side, state in zip(SIDES, best.tolist(), strict=True):
            found[pair.number, side] = pair.concept.states[state] == pair.state(side)
    return found


def split_errors(table: ScoreTable, seen: dict[tuple[int, str], bool]) -> dict[str, dict[str, int]]:
    """Wrong original answers to counterfactual test images: overruled though the tower saw the state, or not seen."""
    counts: dict[str, dict[str, int]] = {}
    test = table.where(split="test", side="cf")
    wrong = ~test.is_right(test.original_positions)
    for task, pair, is_wrong in zip(test.column("task"), test.column("pair_id"), wrong.tolist(), strict=True):
        kinds = counts.setdefault(task, {"pairs": 0, "prior": 0, "perception": 0})
        kinds["pairs"] += 1
        if is_wrong:
            kinds["prior" if seen[int(pair), "cf"] else "perception"] += 1
    return counts
