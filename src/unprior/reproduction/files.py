"""Finding the published per-example score files of the paper's models in a folder."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from unprior._files import open_to_read, parse_json
from unprior.errors import RowProblem, UnpriorError
from unprior.reproduction.paper import MODELS, SCORES_DATASET
from unprior.scores import ScoreTable, read_scores
from unprior.scores.checked import warn_about_skipped
from unprior.scores.published import is_published
from unprior.scores.table import concatenate

WHERE = (
    f"The paper's per-example score files are published as a hub data set ({SCORES_DATASET}, "
    f"https://huggingface.co/datasets/{SCORES_DATASET}): for every model, development and test rows of multiple choice "
    f"and yes/no. Put them into one folder; docs/explanation/paper-and-code.md describes the layout."
)

_TASKS = {
    **dict.fromkeys(("mc", "mcq", "choice", "multichoice", "multiplechoice"), "mc"),
    **dict.fromkeys(("qa", "bqa", "yn", "yesno", "binary", "binaryqa"), "qa"),
}
# The authors fit on "dev" pairs and call the others unseen.
_SPLITS = {
    **dict.fromkeys(("dev", "development", "calib", "calibration"), "dev"),
    **dict.fromkeys(("test", "testing", "heldout", "unseen"), "test"),
}
_UNSEEN = "unseen"
_NEEDED_TASKS = {"Qwen3-VL-30B-A3B": ("mc",)}


def recognise_model(name: str) -> str | None:
    """The paper's model that a name means; sizes may be missing, other sizes are other models.

    >>> recognise_model("Qwen/Qwen3-VL-32B-Instruct"), recognise_model("llava_v1.6_34b_hf"), recognise_model("LLaVA-7B")
    ('Qwen3-VL-32B', 'LLaVA-1.6-34B', None)
    """
    text = name.casefold()
    sizes = re.findall(r"(\d+)b(?![a-z])", text)
    for family, size, model in (("qwen", "30", MODELS[2]), ("qwen", "32", MODELS[0]), ("llava", "34", MODELS[1])):
        if family in text and (any(each.endswith(size) for each in sizes) or (not sizes and model != MODELS[2])):
            return model
    return None


def _recognise(words: dict[str, str]) -> Callable[[str], str | None]:
    def recognise(text: str) -> str | None:
        apart = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", text).casefold()
        for two in (r"yes[\W_]*no", r"held[\W_]*out", r"multiple[\W_]*choice"):
            apart = re.sub(two, lambda found: re.sub(r"[\W_]", "", found[0]), apart)
        known = [word for word in re.split(r"[^a-z]+", apart) if word in words]
        if _UNSEEN in known and _UNSEEN in words:  # whatever else the name contains, such as what was fitted on
            return words[_UNSEEN]
        found = {words[word] for word in known}
        return found.pop() if len(found) == 1 else None

    return recognise


_RECOGNISE: dict[str, Callable[[str], str | None]] = {
    "model": recognise_model,
    "task": _recognise(_TASKS),
    "split": _recognise(_SPLITS),
}


@dataclass(frozen=True, slots=True)
class PublishedScores:
    """The scores of one of the paper's models, and the files they were read from."""

    model: str
    table: ScoreTable
    files: tuple[Path, ...]
    skipped: dict[Path, tuple[RowProblem, ...]]
    """Invalid rows that were left out, by file."""


def find_scores(folder: Path, *, model: str | None = None, skip_invalid: bool = False) -> dict[str, PublishedScores]:
    """Read every score file below a folder and assign its rows to the paper's models, or to one of them alone.

    Model, task and split are named in the rows, or by the file and its folders; the file's own name has precedence over
    those of its folders. Where row and path both name one, they must agree.
    """
    if not folder.is_dir():
        raise UnpriorError(f"{folder}: no such folder. {WHERE}")
    paths = [path for path in sorted(folder.rglob("*.json*")) if path.is_file() and _holds_scores(path)]
    if not paths:
        raise UnpriorError(f"{folder}: there is no score file (.jsonl with cp_vbc objects). {WHERE}")
    parts: dict[str, list[tuple[Path, ScoreTable]]] = defaultdict(list)
    skipped: dict[Path, tuple[RowProblem, ...]] = {}
    for path in paths:
        table = read_scores(path, skip_invalid=skip_invalid, complete=_completion(path, folder))
        for name in dict.fromkeys(table.column("model")):
            parts[name].append((path, table.where(model=name)))
        skipped[path] = table.skipped
    for name, found in parts.items():
        _refuse_doubles(name, found)
    scores = {
        name: PublishedScores(
            model=name,
            table=concatenate([table for _, table in parts[name]]),
            files=tuple(path for path, _ in parts[name]),
            skipped={path: skipped[path] for path, _ in parts[name] if skipped[path]},
        )
        for name in MODELS
        if name in parts
    }
    _check_complete(folder, scores)
    if model is not None:
        known = recognise_model(model)
        if known not in scores:
            raise UnpriorError(f"no scores of {model}; the files hold {', '.join(scores)}")
        scores = {known: scores[known]}
    for each in scores.values():
        for path, problems in each.skipped.items():
            warn_about_skipped(path, problems, len(each.table))
    return scores


def _holds_scores(path: Path) -> bool:
    """Other files, such as summaries, may lie beside the scores."""
    with open_to_read(path) as stream:
        line = next((line for line in stream if line.strip()), b"")
    try:
        record = parse_json(line)
    except ValueError:
        return False
    return isinstance(record, dict) and (is_published(record) or "image_scores" in record)


def _completion(path: Path, folder: Path) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """Fill what a row does not say from the path, and refuse a row that contradicts it."""
    names = [path.stem, *reversed(path.parent.relative_to(folder).parts)]
    named = {
        column: next((found for name in names if (found := recognise(name))), None)
        for column, recognise in _RECOGNISE.items()
    }
    named["model"] = named["model"] or recognise_model(folder.resolve().name)

    def complete(row: dict[str, Any]) -> dict[str, Any]:
        own = {column: row.get(column) for column in _RECOGNISE}
        stated = {column: None if text is None else _RECOGNISE[column](str(text)) for column, text in own.items()}
        for column, text in own.items():
            if text is not None and stated[column] is None:
                known = ", ".join(MODELS) if column == "model" else " or ".join(_KNOWN[column])
                raise UnpriorError(f"{column} is {text!r}, it must be {known}")
            if stated[column] is None and named[column] is None:
                raise UnpriorError(f"the {column} is named neither in the row nor by the file")
            if None not in (stated[column], named[column]) and stated[column] != named[column]:
                raise UnpriorError(f"{column} is {text!r}, but the name of the file says {named[column]}")
        return row | {column: stated[column] or named[column] for column in _RECOGNISE}

    return complete


_KNOWN = {"task": ("mc", "qa"), "split": ("dev", "test")}


def _refuse_doubles(model: str, found: list[tuple[Path, ScoreTable]]) -> None:
    table = concatenate([table for _, table in found])
    source = np.repeat(np.arange(len(found)), [len(each) for _, each in found])
    code, labels = table.codes("task", "pair_id", "side")
    counts = np.bincount(code)
    twice = np.flatnonzero(counts > 1)
    if len(twice):
        task, pair, side = labels[twice[0]]
        where = " and ".join(dict.fromkeys(str(found[each][0]) for each in source[code == twice[0]].tolist()))
        raise UnpriorError(
            f"{model}: {len(twice)} examples occur more than once (first: pair {pair}, {side}, {task}, in {where}); "
            f"keep one file for every task and split, such as those of the original questions"
        )


def _check_complete(folder: Path, scores: dict[str, PublishedScores]) -> None:
    for model, found in scores.items():
        present = set(found.table.codes("task", "split")[1])
        wanted = [(task, split) for task in _NEEDED_TASKS.get(model, ("mc", "qa")) for split in ("dev", "test")]
        wanted += [(task, split) for task, _ in present for split in ("dev", "test") if (task, split) not in wanted]
        missing = [f"{task} {split}" for task, split in dict.fromkeys(wanted) if (task, split) not in present]
        if missing:
            has = ", ".join(f"{task} {split}" for task, split in sorted(present))
            raise UnpriorError(f"{folder}: {model} lacks {', '.join(missing)}; it has {has}. {WHERE}")
