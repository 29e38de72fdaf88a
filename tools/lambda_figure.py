"""Writes what the λ figure of the docs shows: examples of a finished run, with the scores that the model gave.

`make demo` makes the run; then `make lambda-figure` writes docs/_static/lambda-examples.json and the table beside the
figure. An example is the first of its kind among the test rows.
"""

from __future__ import annotations

import argparse
import base64
import io
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

_ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(_ROOT / "bench"))

from markdown import markdown, replace_section  # noqa: E402  (bench is no package)
from unprior import ScoreTable, SelectivePriorCalibrator, read_scores  # noqa: E402
from unprior.benchmarks.microworld.pairs import Pair, pairs  # noqa: E402
from unprior.benchmarks.microworld.render import render  # noqa: E402
from unprior.calibration.ranges import stable_ranges  # noqa: E402

DATA = _ROOT / "docs" / "_static" / "lambda-examples.json"
PAGE = _ROOT / "docs" / "explanation" / "strength-gate-range.md"
SECTION = "lambda-figure"
WORLD = 0
"""The world of `unprior run`."""
_DIGITS = 6
_SIDE = 144  # of a small image, in pixels

TITLES = {
    "repaired": "A wrong answer that is repaired",
    "partner": "The ordinary image of the same pair",
    "harmed": "A right answer that is harmed",
    "stopped": "A proposal that the gate stops",
    "beyond": "An error that no λ repairs",
    "yes-no": "A yes/no question",
}
"""Kinds of examples, in the order of the figure."""


def first_places(image: list[float], prior: list[float]) -> list[tuple[int, float, float]]:
    """Which candidate is first, from which strength to which.

    >>> first_places([1.0, 0.0], [2.0, 0.0])
    [(0, 0.0, 0.5), (1, 0.5, inf)]
    """
    columns = [np.tile(np.array(scores)[:, None], len(scores)) for scores in (image, prior)]
    low, high = stable_ranges(columns[0], columns[1], np.arange(len(image)))
    found = [(place, float(low[place]), float(high[place])) for place in range(len(image)) if low[place] < high[place]]
    return sorted(found, key=lambda part: part[1])


def choose(table: ScoreTable, calibrator: SelectivePriorCalibrator) -> dict[str, int]:
    """The row of each kind of example."""
    decisions = calibrator.predict(table)
    choice, original = table.mask(task="mc"), table.original_positions
    before, after = table.is_right(original), table.is_right(decisions.final_positions)
    answered, cf, revised = original >= 0, table.is_cf, decisions.revised
    place = {(pair, side, task): row for row, (pair, side, task) in enumerate(_keys(table))}
    keys = list(_keys(table))
    out_of_reach = [_is_out_of_reach(table, row) for row in range(len(table))]
    partners = [after[place[keys[row][0], "cs", "mc"]] for row in range(len(table))]
    repaired = _first(choice & cf & answered & ~before & after & np.array(partners))
    return {
        "repaired": repaired,
        "partner": place[keys[repaired][0], "cs", "mc"],
        "harmed": _first(choice & ~cf & before & ~after),
        "stopped": _first(answered & ~revised & (decisions.proposal_positions != original)),
        "beyond": _first(choice & cf & answered & ~before & np.array(out_of_reach)),
        "yes-no": _first(~choice & cf & answered & ~before & after),
    }


def _keys(table: ScoreTable) -> list[tuple[Any, ...]]:
    return list(zip(*(table.column(name) for name in ("pair_id", "side", "task")), strict=True))


def _is_out_of_reach(table: ScoreTable, row: int) -> bool:
    """Whether no strength puts the right answer first."""
    first = first_places(table.column("image_scores")[row], table.column("prior_scores")[row])
    return all(place != table.answer_positions[row] for place, _, _ in first)


def _first(rows: np.ndarray[Any, np.dtype[np.bool_]]) -> int:
    if not rows.any():
        raise SystemExit("the run has no example of a kind that the figure shows")
    return int(rows.argmax())


def example(table: ScoreTable, row: int, label: str, calibrator: SelectivePriorCalibrator) -> dict[str, Any]:
    """One row as the figure shows it: candidates in words, scores, and what the calibrator made of it."""
    pair_id, side, task = _keys(table)[row]
    pair = next(each for each in pairs(WORLD) if each.number == int(pair_id))
    labels = [str(label) for label in table.column("candidates")[row]]
    names = labels if task == "qa" else [pair.options["ABCD".index(letter)] for letter in labels]
    named = dict(zip(labels, names, strict=True))
    image, prior = (
        [round(float(score), _DIGITS) for score in table.column(name)[row]] for name in ("image_scores", "prior_scores")
    )
    decision = calibrator.decide(names, image, prior, named[str(table.column("original")[row])])
    return {
        "label": label,
        "title": TITLES[label],
        "side": side,
        "question": pair.claim() if task == "qa" else pair.concept.question,
        "shows": pair.caption(side),
        "picture": _thumbnail(pair, side),
        "candidates": names,
        "image": image,
        "prior": prior,
        "original": decision.original,
        "right": named[str(table.column("answer")[row])],
        "proposal": decision.proposal,
        "final": decision.final,
        "strength": round(decision.strength, _DIGITS),
        "explanation": decision.explain(promise=False),
    }


def _thumbnail(pair: Pair, side: str) -> str:
    stream = io.BytesIO()
    render(pair.concept, pair.state(side), pair.seed).resize((_SIDE, _SIDE)).save(stream, "JPEG", quality=80)
    return "data:image/jpeg;base64," + base64.b64encode(stream.getvalue()).decode()


def examples_of(run: Path) -> dict[str, Any]:
    """All examples of a finished run, and whose they are."""
    calibrator = SelectivePriorCalibrator.load(run / "calibrator.json")
    table = read_scores(run / "scores.parquet").where(split="test")
    shown = [example(table, row, label, calibrator) for label, row in choose(table, calibrator).items()]
    if calibrator.settings_ is None:
        raise SystemExit("the calibrator of the run abstains")
    least = calibrator.settings_.min_margin
    return {"method": calibrator.predict(table).method, "min_margin": least, "examples": shown}


def numbers(examples: list[dict[str, Any]]) -> str:
    """The table beside the figure, for readers without it."""
    lines = []
    for each in examples:
        names, parts = each["candidates"], first_places(each["image"], each["prior"])
        words = [f"{names[parts[0][0]]}"]
        words += [f"{names[place]} from {low:.3f}" for place, low, _ in parts[1:]]
        own = next(part for part in parts if names[part[0]] == each["proposal"])
        high = "∞" if np.isinf(own[2]) else f"{own[2]:.3f}"
        outcome = "kept" if each["final"] == each["original"] else f"changed to {each['final']}"
        right = "right" if each["final"] == each["right"] else "wrong"
        lines.append(
            [
                f"{each['title']}: {each['question']} The image shows {each['shows']}.",
                each["original"],
                "; ".join(words),
                f"{each['strength']:.3f}",
                f"{each['proposal']}: {own[1]:.3f} to {high}",
                f"{outcome}, {right}",
            ]
        )
    header = ["Example", "Original answer", "Comes first, from λ", "λ", "Stable range of the proposal", "Final answer"]
    return markdown(header, lines).replace("---:", "---")


def main() -> None:
    """Write both files."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", type=Path, default=Path("demo"), help="folder of `unprior run`")
    found = examples_of(parser.parse_args().run)
    DATA.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    note = f"{found['method']} on the embedded model, test pairs of the microworld (`make lambda-figure`)."
    replace_section(PAGE, SECTION, f"{numbers(found['examples'])}\n\n{note}")


if __name__ == "__main__":
    main()
