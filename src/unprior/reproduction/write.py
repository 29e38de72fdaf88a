"""Writing scores in the layout that the paper publishes, to try the reproduction without the paper's files."""

from __future__ import annotations

import json
from pathlib import Path

from unprior._files import replacing
from unprior.evaluation.comparison import group_rows
from unprior.scores import ScoreTable
from unprior.scores.published import published_from_row


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
