"""HallusionBench: the same question about an easy figure and an edited, hard one with the opposite answer."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from unprior.benchmarks.annotations import find_file, find_folder, read_json_list
from unprior.benchmarks.card import Card, Flaw
from unprior.benchmarks.entry import Entry, Report
from unprior.benchmarks.schema import Benchmark, Example
from unprior.benchmarks.sources import GitHubFiles
from unprior.errors import UnpriorError
from unprior.prompts import YES_NO

_GROUP = ("category", "subcategory", "set_id", "question_id", "question")
_EASY, _HARD = "1", "2"
_ANSWERS = {"1": "yes", "0": "no"}

CARD = Card(
    name="hallusionbench",
    about="328 pairs of an easy and a hard figure under one yes/no question, with opposite answers",
    published="GitHub tianyi-lab/HallusionBench",
    revision="HEAD, not pinned; HallusionBench.json with 1,129 rows",
    licence="BSD-3-Clause",
    citation="Guan et al., HallusionBench, CVPR 2024",
    counts={"pairs": 328, "examples": 656, "images": 304},
    flaws=(
        Flaw(
            "questions without a figure, or without an easy and a hard figure of opposite answers",
            "left out: only exact pairs are used, 328 of them",
        ),
        Flaw("several figures fit one question", "the first easy one and the first hard one with the opposite answer"),
        Flaw("some figures are transparent", "shown on white"),
    ),
    by_hand="its figures (hallusion_bench.zip, linked from the repository's README): unpack them into this folder",
)


def load(folder: Path, seed: int = 0, *, report: Report | None = None) -> Benchmark:
    """Read ``HallusionBench.json`` and pair its questions; the figures lie in ``hallusion_bench`` beside it."""
    path = find_file(folder, "HallusionBench.json", CARD)
    images = find_folder(folder, "hallusion_bench", "images")
    groups: dict[tuple[str, ...], list[dict[str, Any]]] = {}
    for number, row in enumerate(read_json_list(path), start=1):
        for name in (*_GROUP, "visual_input", "figure_id", "gt_answer", "filename"):
            value = row.get(name, "")
            if not isinstance(value, str) and not (name == "filename" and value is None):
                raise UnpriorError(f"{path}: row {number} is not of HallusionBench: {name} is not a text but {value!r}")
        try:
            groups.setdefault(tuple(row[name] for name in _GROUP), []).append(row)
            _ = row["visual_input"], row["figure_id"], row["filename"], _ANSWERS[row["gt_answer"]]
        except KeyError as error:
            raise UnpriorError(f"{path}: row {number} is not of HallusionBench ({error!r})") from None
    examples = [example for rows in groups.values() for example in _pair(rows, images)]
    return Benchmark(CARD.name, examples, CARD)


def _pair(rows: list[dict[str, Any]], images: Path) -> Iterator[Example]:
    shown = sorted((row for row in rows if row["filename"]), key=lambda row: (row["figure_id"], row["filename"]))
    easy = next((row for row in shown if row["visual_input"] == _EASY), None)
    if easy is None:
        return
    opposite = (row for row in shown if row["visual_input"] == _HARD and row["gt_answer"] != easy["gt_answer"])
    hard = next(opposite, None)
    if hard is None:
        return
    pair = "-".join(easy[name] for name in _GROUP[:4])
    for side, row in (("cf", hard), ("cs", easy)):
        yield Example(
            f"{pair}-{side}", images / row["filename"].removeprefix("./"), row["question"].strip(), "qa", YES_NO,
            answer=_ANSWERS[row["gt_answer"]], pair_id=pair, side=side, category=row["category"],
            subcategory=f"{row['category']} {row['subcategory']}",
        )  # fmt: skip


ENTRY = Entry(CARD, load, sources=(GitHubFiles("tianyi-lab/HallusionBench", ("HallusionBench.json",)),))
