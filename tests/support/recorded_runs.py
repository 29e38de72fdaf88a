"""Folders of finished runs on synthetic scores, with questions and images, made without a model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from PIL import Image

from small_tables import few_pairs
from unprior import RunConfig, ScoreTable, SelectivePriorCalibrator, load_benchmark
from unprior.benchmarks.schema import Benchmark, Example
from unprior.benchmarks.user_file import write_questions
from unprior.scores.provenance import Provenance

DATE = "2026-02-03T04:05:06+00:00"
SYSTEM = "Look closely."


def write_questions_of(table: ScoreTable, folder: Path) -> Path:
    """A file of questions for the rows of a table, with an image for every side of a pair."""
    examples = []
    for row in table.arrow.to_pylist():
        image = folder / f"{row['pair_id']}-{row['side']}.png"
        if not image.exists():
            Image.new("RGB", (600, 300), (40 * row["pair_id"] % 256, 90, 160 if row["side"] == "cf" else 60)).save(
                image
            )
        texts = tuple(f"{name.lower()} fingers" for name in row["candidates"]) if row["task"] == "mc" else None
        question = f"What is in image {row['pair_id']}?" if texts else f"Is image {row['pair_id']} usual?"
        place: dict[str, Any] = {name: row[name] for name in ("pair_id", "side", "category", "subcategory", "split")}
        if row["task"] == "open":
            place |= {"aliases": tuple(row["aliases"])}
        labels, answer = () if row["task"] == "open" else tuple(row["candidates"]), row["answer"]
        examples.append(Example(row["example_id"], image, question, row["task"], labels, texts, answer, **place))
    path = folder / "questions.jsonl"
    write_questions(path, Benchmark("questions", examples))
    return path


def write_run(
    folder: Path,
    model: str = "synthetic",
    *,
    seed: int = 3,
    parameters: dict[str, Any] | None = None,
    date: str | None = DATE,
    openly: bool = False,
) -> Path:
    """A run folder whose questions and images lie beside it; one answer could not be read.

    ``openly``: instead of multiple choice, the same questions without options.
    """
    rows = few_pairs(development=5, test=3, seed=seed).arrow.to_pylist()
    for row in rows:
        if openly and row["task"] == "mc":
            named = {label: f"{label.lower()} fingers" for label in row["candidates"]}
            row |= {"task": "open", "candidates": list(named.values()), "aliases": [f"{named[row['answer']]} in all"]}
            row |= {name: named[row[name]] for name in ("original", "answer")}
        row |= {"example_id": f"{row['pair_id']}-{row['side']}-{row['task']}", "model": model, "benchmark": "questions"}
        row |= {"views": row["views"] and dict(row["views"]), "original_text": f"It is {row['original']}."}
    unread = next(row for row in rows if row["split"] == "test")
    unread |= {"original": None, "original_text": "I cannot tell."}
    folder.parent.mkdir(parents=True, exist_ok=True)
    questions = write_questions_of(ScoreTable.from_rows(rows), folder.parent)
    made = Provenance(
        model=model, benchmark="questions", questions=load_benchmark(questions).digest(), date=date,
        versions={"unprior": "0.2.0", "torch": "2.6.0"},
    )  # fmt: skip
    table = ScoreTable.from_rows(rows, provenance=[made])
    table.write(folder / "scores.parquet")
    calibrator = SelectivePriorCalibrator(**parameters or {}).fit(table)
    calibrator.save(folder / "calibrator.json")
    calibrator.predict(table.where(split="test")).write(folder / "decisions.jsonl", explanations=True)
    RunConfig.from_options(model=model, benchmark=str(questions), out=folder, system=SYSTEM).write()
    return folder
