"""What SPC does to the embedded model on three worlds that nothing was tuned on: the result table of the README.

Run ``make bench-results``; it prints the tables and puts the first one into the README. Scores of the worlds are kept
in build/results, so that a second run only computes.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.stats import binomtest

from markdown import markdown, replace_section
from unprior import Evaluation, ScoreTable, SelectivePriorCalibrator, evaluate, load_benchmark, load_engine, score
from unprior.embedded import CALIBRATOR
from unprior.engines.protocol import Engine
from unprior.evaluation import SideResult, TaskResult
from unprior.scores.block import LabelArray
from unprior.scores.table import concatenate
from unprior.tables.format import format_interval, format_limit, format_list, format_points
from worlds import pool_worlds

WORLDS = (931, 932, 933)
"""Worlds of the microworld, of 300 pairs each: 70 to fit on, 230 to judge on. No other script or page uses them."""
EPSILON, CERTIFIED_EPSILON, DELTA = 0.04, 0.06, 0.1
TASKS = {"mc": "choice of four", "qa": "yes or no", "open": "in its own words"}
SEVERAL = "choice of two to six"
WORK = Path("build/results")
ELSEWHERE = (
    f"Certified SPC has the larger ε here, because 70 pairs can hardly promise {EPSILON:g}: at the same ε of "
    f"{EPSILON:g} it keeps about 58 % of the repair ([measured](docs/explanation/guarantee.md#measured) on other "
    f"worlds). On open questions of worlds 921 to 923, SPC with ε = {EPSILON:g} lost 5.4 points of CS accuracy on "
    "average, and 7.0 in the worst world ([open answers](docs/explanation/open-answers.md#measured))."
)
"""What other pages measured; a test holds it to their tables."""
_NO_BREAK = "\N{NO-BREAK SPACE}"


@dataclass(frozen=True)
class World:
    """All that was asked about the images of one world."""

    seed: int
    table: ScoreTable
    """Choices of four options, yes/no questions and open questions."""
    several: ScoreTable
    """Choices of two to six options, which the packaged calibrator was fitted on."""


def load_world(engine: Engine, seed: int) -> World:
    """Score a world, or read its scores."""
    tables = []
    for variant in ("standard", "open", "options"):
        print(f"world {seed}: {variant} questions", flush=True)
        folder = WORK / str(seed)
        asked = load_benchmark("microworld", folder, seed, variant=variant)
        tables.append(score(engine, asked, folder / variant, batch_size=16).with_columns(benchmark="microworld"))
    standard, openly, several = tables
    return World(seed, concatenate([standard, openly]), several)


def methods() -> dict[str, SelectivePriorCalibrator]:
    """What is fitted on the development pairs of every world, by its name in the table."""
    return {
        f"SPC, ε = {format_limit(EPSILON)}": SelectivePriorCalibrator(epsilon_cs=EPSILON),
        f"certified SPC, ε = {format_limit(CERTIFIED_EPSILON)}": SelectivePriorCalibrator(
            epsilon_cs=CERTIFIED_EPSILON, retention="certified", delta=DELTA
        ),
    }


@dataclass(frozen=True)
class Outcome:
    """One method on the test pairs: all worlds together, and each of them."""

    pooled: Evaluation
    worlds: Mapping[int, Evaluation]

    def task(self, name: str) -> TaskResult:
        """The result of a task over all worlds."""
        return next(each for each in self.pooled.tasks if each.task == name)

    def by_world(self) -> Iterator[tuple[int, TaskResult]]:
        """The result of every task in every world."""
        for seed, found in self.worlds.items():
            for task in found.tasks:
                yield seed, task


def judge(worlds: Sequence[World], calibrator: SelectivePriorCalibrator) -> Outcome:
    """Fit a calibrator on the development pairs of each world, and decide about its test pairs."""
    tables: list[ScoreTable] = []
    answers: list[LabelArray] = []
    single = {}
    for world in worlds:
        test = world.table.where(split="test")
        decisions = calibrator.fit(world.table).predict(test)
        tables.append(test)
        answers.append(decisions.final)
        single[world.seed] = evaluate(test, decisions)
    return Outcome(evaluate(pool_worlds(tables), np.concatenate(answers)), single)


def results(worlds: Sequence[World]) -> str:
    """The table of the README, and what it says about the limits."""
    found = {name: judge(worlds, calibrator) for name, calibrator in methods().items()}
    lines = []
    for task, label in TASKS.items():
        original = next(iter(found.values())).task(task).original
        before = [f"{share.value:.3f}" for share in (original.cf, original.cs)]
        lines.append([f"**{label}**: the model alone", *before, "", "", "", ""])
        for name, outcome in found.items():
            one = outcome.task(task)
            after = [f"{share.value:.3f}" for share in (one.method.cf, one.method.cs)]
            changes = [_change(side) for side in (one.cf, one.cs)]
            counts = [f"{side.change.repairs}, {side.change.harms}" for side in (one.cf, one.cs)]
            lines.append([name, *after, *changes, *counts])
    header = ["Questions answered by", "CF accuracy", "CS accuracy", "ΔCF [95 %]", "ΔCS [95 %]", "CF repairs, harms",
              "CS repairs, harms"]  # fmt: skip
    paper, certified = found.values()
    pairs = paper.task("mc").cf.change.total
    resamples = f"{paper.pooled.resamples:,}"
    return "\n\n".join(
        [
            markdown(header, lines),
            f"Measured by `make bench-results` on worlds {format_list([str(each.seed) for each in worlds])}: "
            f"{pairs} test pairs together, each world with a calibrator fitted on 70 other pairs of it. Intervals: "
            f"{resamples} resamples of the test pairs, calibrators held fixed.",
            _limits(paper, certified),
            ELSEWHERE,
        ]
    )


def _change(side: SideResult) -> str:
    text = f"{format_points(side.change.delta)} {format_interval(side.low, side.high)}"
    return text.replace(" ", _NO_BREAK)


def _limits(paper: Outcome, certified: Outcome) -> str:
    """How often more was lost than ε, in every world and kind of question, and what certifying costs."""
    losses = {(seed, one.task): -one.cs.change.delta for seed, one in paper.by_world()}
    rates = {(seed, one.task): _harm_rate(one) for seed, one in certified.by_world()}
    lost = _exceeding(losses, EPSILON, "points")
    harmed = _exceeding(rates, CERTIFIED_EPSILON, "%")
    return (
        f"SPC lost more CS accuracy than its ε in {lost}: ε is kept on the pairs that it learns from, and new pairs "
        f"may lose more. Certified SPC harmed a larger share of CS answers than its ε in {harmed}. The price is "
        f"repairs: its ΔCF is {_shares(paper, certified)} of that of SPC."
    )


def _exceeding(values: Mapping[tuple[int, str], float], limit: float, unit: str) -> str:
    count = sum(value > limit for value in values.values())
    (seed, task), worst = max(values.items(), key=lambda each: each[1])
    return f"{count} of {len(values)} cases (worst: {100 * worst:.1f} {unit}, {TASKS[task]}, world {seed})"


def _shares(paper: Outcome, certified: Outcome) -> str:
    """ΔCF of certified SPC as a share of that of SPC, by task."""
    return format_list(
        [
            f"{100 * certified.task(task).cf.change.delta / paper.task(task).cf.change.delta:.0f} % ({label})"
            for task, label in TASKS.items()
        ]
    )


def _harm_rate(one: TaskResult) -> float:
    return one.cs.change.harms / one.cs.change.total


def packaged(worlds: Sequence[World]) -> str:
    """The calibrator that comes with the embedded model, on all pairs of worlds that it was not fitted on."""
    calibrator = SelectivePriorCalibrator.load(CALIBRATOR)
    limit = calibrator.epsilon_cs
    parts = {TASKS["mc"]: [each.table.where(task="mc") for each in worlds], SEVERAL: [each.several for each in worlds],
             TASKS["qa"]: [each.table.where(task="qa") for each in worlds],
             TASKS["open"]: [each.table.where(task="open") for each in worlds]}  # fmt: skip
    lines = []
    for label, tables in parts.items():
        decided = [calibrator.predict(table) for table in tables]
        single = [evaluate(decisions.table, decisions).tasks[0] for decisions in decided]
        (one,) = evaluate(pool_worlds(tables), np.concatenate([each.final for each in decided])).tasks
        harms, total = one.cs.change.harms, one.cs.change.total
        share = binomtest(harms, total).proportion_ci()
        lines.append(
            [
                label,
                _change(one.cf),
                f"{one.cf.change.repairs}, {one.cf.change.harms}",
                *(f"{each.cs.change.harms} of {each.cs.change.total}" for each in single),
                f"{100 * harms / total:.1f} % [{100 * share.low:.1f}, {100 * share.high:.1f}]",
            ]
        )
    header = ["Answered by", "ΔCF [95 %]", "CF repairs, harms", *(f"CS harms, world {each.seed}" for each in worlds),
              "CS harms, all [95 %]"]  # fmt: skip
    return (
        f"{markdown(header, lines)}\n\n"
        f"Measured by `make bench-results`: the packaged calibrator (certified, ε = {format_limit(limit)}, "
        f"δ = {calibrator.delta:g}, fitted on world 1003) on all 300 pairs of each world; exact intervals of the share "
        f"of harmed commonsense answers. It was fitted on choices of two to six options, yes/no questions and open "
        f"questions, and its promise is about these."
    )


def main() -> None:
    """Print the tables; put them into pages."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--update", type=Path, help="page that receives the result table, between bench:results")
    parser.add_argument("--packaged", type=Path, help="page that receives the other table, between bench:packaged")
    arguments = parser.parse_args()
    engine = load_engine("embedded")
    worlds = [load_world(engine, seed) for seed in WORLDS]
    for text, section, page in (
        (results(worlds), "bench:results", arguments.update),
        (packaged(worlds), "bench:packaged", arguments.packaged),
    ):
        print(f"\n{text}")
        if page:
            replace_section(page, section, text)


if __name__ == "__main__":
    main()
