"""Fit the calibrator that comes with the model in the package, and write its card.

It is fitted on a world of a selection seed that had no part in choosing the model, all 300 pairs of it: choices of two
to six options, yes/no questions and open questions. The card tells what it does on the worlds that
docs/explanation/embedded-model.md reports on.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path

from measure import score_variants, world_folder
from unprior import SelectivePriorCalibrator, evaluate
from unprior.benchmarks.microworld import microworld, pairs
from unprior.benchmarks.microworld.world import SELECTION_SEEDS
from unprior.calibration.card import calibration_card
from unprior.embedded import CALIBRATOR, NAME
from unprior.engines.load import load_engine
from unprior.engines.protocol import Engine
from unprior.scores import ScoreTable
from unprior.scores.table import concatenate
from unprior.serving.examples import FILE, Example
from unprior.tables.model import Table

WORLD = 1003
"""The world that the calibrator is fitted on."""
HELD_OUT = (1, 2, 3)
"""Worlds of the card's figures."""
EPSILON = 0.04
SHOWN_WORLD = 1004
"""Where the examples of the page of `unprior serve` come from."""
SHOWN = {
    "choice": {"repaired": 2, "harmed": 1, "kept": 1},
    "predicate": {"repaired": 1, "harmed": 0, "kept": 0},
    "open": {"repaired": 1, "harmed": 1, "kept": 1},
}
"""How many of them."""


def asked(engine: Engine, seed: int, work: Path) -> ScoreTable:
    """Choices of two to six options, yes/no questions and open questions about all pairs of a world."""
    tables = score_variants(engine, seed, work, ("options", "standard", "open"))
    parts = [tables["options"], tables["standard"].where(task="qa"), tables["open"]]
    return concatenate([part.with_columns(benchmark="microworld") for part in parts])


def main() -> None:
    """Fit, save, and measure on other worlds."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("build/embedded"), help="folder of the training")
    arguments = parser.parse_args()
    assert WORLD in SELECTION_SEEDS
    engine, work = load_engine(NAME), arguments.out / "calibration"
    fitted = SelectivePriorCalibrator(retention="certified", epsilon_cs=EPSILON)
    fitted.fit(asked(engine, WORLD, work), split=None)
    CALIBRATOR.parent.mkdir(exist_ok=True)
    fitted.save(CALIBRATOR)
    # The card is about the file, so it is the file that is measured.
    calibrator = SelectivePriorCalibrator.load(CALIBRATOR)
    text = card(calibrator, measure(calibrator, {seed: asked(engine, seed, work) for seed in HELD_OUT}))
    CALIBRATOR.with_name("README.md").write_text(text)
    print(text)
    chosen = choose_examples(calibrator, engine, work)
    FILE.write_text(json.dumps([each.record() for each in chosen], indent=1, ensure_ascii=False) + "\n")


def choose_examples(calibrator: SelectivePriorCalibrator, engine: Engine, work: Path) -> list[Example]:
    """Questions for the page of `unprior serve`: of every kind some that are repaired, harmed and kept."""
    tables = score_variants(engine, SHOWN_WORLD, work, ("options", "standard", "open"))
    parts = {"choice": tables["options"], "predicate": tables["standard"].where(task="qa"), "open": tables["open"]}
    found = []
    for kind, table in parts.items():
        variant = {"choice": "options", "predicate": "standard", "open": "open"}[kind]
        asked = {
            each.example_id: each for each in microworld(world_folder(work, SHOWN_WORLD), SHOWN_WORLD, variant=variant)
        }
        drawn = {pair.number: pair for pair in pairs(SHOWN_WORLD)}
        final = calibrator.predict(table)
        before, after = table.is_right(table.original_positions), table.is_right(final.final_positions)
        wanted = {"repaired": ~before & after & table.is_cf, "harmed": before & ~after & ~table.is_cf,
                  "kept": before & after & table.is_cf}  # fmt: skip
        for label, rows in wanted.items():
            seen: set[str] = set()
            for row in rows.nonzero()[0].tolist():
                example = asked[str(table.column("example_id")[row])]
                if len(seen) == SHOWN[kind][label] or str(example.subcategory) in seen:
                    continue
                seen.add(str(example.subcategory))
                pair = drawn[int(example.pair_id or 0)]
                about = pair.caption(str(example.side))
                texts = tuple(example.texts or ())
                found.append(
                    Example(label, SHOWN_WORLD, pair.number, str(example.side), kind, example.question, texts, about)
                )
    return found


def card(calibrator: SelectivePriorCalibrator, results: Table) -> str:
    """The card of every calibrator, with what this one did on other worlds."""
    return calibration_card(calibrator.state_, [results], about=_ABOUT, content=CALIBRATOR.read_bytes())


def measure(calibrator: SelectivePriorCalibrator, worlds: dict[int, ScoreTable]) -> Table:
    """What the calibrator changes on worlds that had no part in fitting it."""
    lines = []
    for seed, table in worlds.items():
        for task in evaluate(table, calibrator.predict(table).final).tasks:
            cells = [
                f"{100 * side.change.delta:+.1f} ({side.change.repairs}/{side.change.harms})"
                for side in (task.cf, task.cs)
            ]
            before = [f"{side.value:.3f}" for side in (task.original.cf, task.original.cs)]
            lines.append([f"{seed}, {task.task.upper()}", str(task.cf.change.total), *before, *cells])
    return results_table(lines)


def results_table(lines: Sequence[Sequence[str]]) -> Table:
    """A row for every world and task."""
    header = ("World, task", "Pairs", "CF before", "CS before", "ΔCF (repairs/harms)", "ΔCS (repairs/harms)")
    caption = (
        "Points, and how many answers were repaired and harmed. MC are choices of two to six options, equally often; "
        "open questions have four candidates."
    )
    return Table.plain("All 300 pairs of worlds that had no part in fitting", header, lines, caption)


_ABOUT = f"""It comes with the package: `unprior ask` and `unprior serve` use it with the embedded model unless \
`--calibrator` or `--no-calibrator` is given. It was fitted on all pairs of the microworld of seed {WORLD}, \
which are drawings; about photographs it says nothing. `training/calibrate.py` in the repository made \
`calibrator.json` and this card."""


if __name__ == "__main__":
    main()
