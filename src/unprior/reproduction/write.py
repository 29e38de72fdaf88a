"""Writing compared cells, and scores in the layout that the paper publishes, to try the reproduction without them."""

from __future__ import annotations

import json
from pathlib import Path

from unprior._files import check_output_file, check_output_folder, replacing
from unprior.errors import UnpriorError
from unprior.evaluation.comparison import group_rows
from unprior.reproduction.comparison import ReproductionResult
from unprior.reproduction.paper import MODELS
from unprior.scores import ScoreTable
from unprior.scores.published import published_from_row
from unprior.scores.table import concatenate
from unprior.synthetic import synthesize
from unprior.tables.csv import as_csv


def write_published(table: ScoreTable, folder: Path, model: str) -> list[Path]:
    """One file per task and split, named after the model; the rows do not name it.

    >>> import tempfile
    >>> from unprior import synthesize
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     [path.name for path in write_published(synthesize(seed=0), Path(folder), "LLaVA-1.6-34B")][:2]
    ['llava-1.6-34b_mc_dev.jsonl', 'llava-1.6-34b_mc_test.jsonl']
    """
    written = []
    for (task, split), rows in group_rows(table, "task", "split").items():
        path = folder / f"{model.casefold()}_{task}_{split}.jsonl"
        records = [published_from_row(row | {"model": None}) for row in table.take(rows).arrow.to_pylist()]
        with replacing(path) as temporary:
            temporary.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
        written.append(path)
    return written


def write_synthetic(folder: Path, seed: int = 0, *, repeats: int = 1) -> ScoreTable:
    """Write synthetic scores of every model of the paper in the published layout; gives the rows of all of them."""
    check_output_folder(folder)
    tables = [synthesize(seed + number, repeats=repeats) for number in range(len(MODELS))]
    for table, model in zip(tables, MODELS, strict=True):
        write_published(table, folder, model)
    return concatenate(tables)


def check_cells_file(path: Path) -> None:
    """Refuse a file that :func:`write_cells` could not write, before anything is computed."""
    if path.suffix not in (".csv", ".json"):
        raise UnpriorError(f"{path}: cannot tell the format; the name must end in .csv or .json")
    check_output_file(path)


def write_cells(result: ReproductionResult, path: Path) -> None:
    """Write all cells as ``.csv`` or ``.json``."""
    check_cells_file(path)
    records, as_json = result.records(), path.suffix == ".json"
    text = json.dumps(records, indent=1, ensure_ascii=False, allow_nan=False) if as_json else as_csv(records)
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="")
