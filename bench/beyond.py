"""Certified retention and the stable prior on worlds and seeds that nothing was tuned on.

Run ``make bench-beyond``; it prints the tables and puts them into pages of docs/explanation. Scores of the worlds are
kept in build/beyond, so that a second run only computes. It takes about 25 minutes the first time on two cores.
"""

from __future__ import annotations

import argparse
import time
from itertools import product
from pathlib import Path

import numpy as np

from markdown import markdown, replace_section
from unprior import ScoreTable, SelectivePriorCalibrator, load_engine, read_scores, synthesize
from unprior.benchmarks.forms import FITTED_FORM
from unprior.benchmarks.registry import load_benchmark
from unprior.engines.protocol import Engine
from unprior.scoring.benchmark import score_benchmark
from unprior.studies.beyond.certified_retention import Cell, study_certified_retention
from unprior.studies.beyond.stable_prior import REMEDIES, StablePrior, study_stable_prior
from worlds import pool_worlds

WORLDS = (911, 912, 913, 914)
"""Worlds of the microworld, of 300 pairs each."""
FORM_WORLDS = WORLDS[:3]
SYNTHETIC = (9101, 9102, 9103, 9104, 9105)
COPIES = 5
"""Of the 300-pair structure, in every synthetic population."""
SIZES, LIMITS = (70, 140, 280), (0.04, 0.06, 0.10)
WORK = Path("build/beyond")


def _world(engine: Engine, seed: int, variant: str | None = None) -> ScoreTable:
    folder = WORK / str(seed)
    path = folder / f"{variant or 'scores'}.parquet"
    if not path.exists():
        questions = load_benchmark("microworld", folder, seed, variant=variant)
        if variant is not None:
            asked = [each for each in questions if each.split == "test" or each.form == FITTED_FORM]
            questions = questions.with_examples(asked)
        prior = "plain" if variant is None else "canonical"
        score_benchmark(engine, questions, folder, path=path, prior=prior)
    return read_scores(path)


def _retention(tables: dict[str, ScoreTable]) -> str:
    found = study_certified_retention(tables, sizes=SIZES, limits=LIMITS)
    own = next(iter(tables))
    kinds = {f"embedded, {len(WORLDS)} worlds": [own], f"synthetic, {len(SYNTHETIC)} seeds": list(tables)[1:]}
    lines = []
    for size, limit in product(SIZES, LIMITS):
        cells = [cell for cell in found.cells if cell.pairs == size and cell.epsilon == limit]
        line = [f"{size}, {limit:.2f}"]
        for names, rule in product(kinds.values(), ("paper", "split", "fixed", "expected")):
            chosen = [cell for cell in cells if cell.source in names and cell.rule == rule]
            line.append(_entry(chosen, rule))
        lines.append(line)
    rules = ("paper", "split λ", "λ = 1", "expected")
    header = ["n, ε", *(f"{kind}: {rule}" for kind in kinds for rule in rules)]
    certified = [cell for cell in found.cells if cell.rule in ("split", "fixed")]
    kept = sum(cell.keeps(found.delta) for cell in certified)
    worst = max(cell.exceeded for cell in certified)
    return (
        f"P(worst-task harm > ε) / mean ΔCF / share of the paper rule's ΔCF, {found.cells[0].draws} draws; for the "
        f"synthetic seeds the mean, and in brackets the largest P.\n\n{markdown(header, lines)}\n\n"
        f"The promise P ≤ {found.delta:g} is kept within two standard errors in {kept} of {len(certified)} cells; the "
        f"largest P is {worst:.3f}."
    )


def _entry(cells: list[Cell], rule: str) -> str:
    exceeded, gain, share = (
        float(np.mean([getattr(cell, name) for cell in cells])) for name in ("exceeded", "delta_cf", "share")
    )
    most = f" ({max(cell.exceeded for cell in cells):.2f})" if len(cells) > 1 else ""
    return f"{exceeded:.2f}{most}/{gain:.3f}" + ("" if rule == "paper" else f"/{share:.2f}")


def _prior(results: dict[int, StablePrior]) -> str:
    lines = []
    for name, (label, _) in REMEDIES.items():
        each = [result.of(name) for result in results.values()]
        worst = ", ".join(f"{100 * remedy.worst_cs:+.1f}" for remedy in each)
        means = [float(np.mean([getattr(remedy, measure)[side] for remedy in each])) for measure, side in
                 (("right_twice", 0), ("right_twice", 1), ("same", 0), ("same", 1))]  # fmt: skip
        biased = min(min(remedy.worst_with_bias) for remedy in each)
        lines.append(
            [
                label,
                f"{100 * np.mean([remedy.mean_cf for remedy in each]):+.1f}",
                worst,
                *(f"{100 * value:.1f}" for value in means),
                f"{100 * biased:+.1f}",
                f"{sum(remedy.moved for remedy in each):,} of {sum(remedy.answers for remedy in each):,}",
            ]
        )
    header = ["prior", "mean ΔCF", "worst ΔCS by world", "both orders right CF", "CS", "same in 8 cells CF", "CS",
              "worst ΔCS with a bias", "answers moved by a bias"]  # fmt: skip
    return markdown(header, lines)


def _fit_times() -> str:
    table = synthesize(SYNTHETIC[0])
    lines = []
    rules = (
        ("paper's rule", SelectivePriorCalibrator()),
        ("certified", SelectivePriorCalibrator(retention="certified")),
    )
    for name, calibrator in rules:
        calibrator.fit(table)
        begun = time.process_time()
        for _ in range(20):
            calibrator.fit(table)
        lines.append([name, f"{(time.process_time() - begun) / 20 * 1000:.1f} ms"])
    return markdown(["fit on 280 rows", "CPU time"], lines)


def reports() -> dict[tuple[str, str], str]:
    """All tables, by page and section."""
    engine = load_engine("embedded")
    tables = {"embedded": pool_worlds([_world(engine, seed) for seed in WORLDS])}
    tables |= {f"synthetic {seed}": synthesize(seed, repeats=COPIES) for seed in SYNTHETIC}
    retention = _retention(tables)
    forms = {seed: study_stable_prior(_world(engine, seed, "forms")) for seed in FORM_WORLDS}
    worlds = f"Worlds {', '.join(map(str, WORLDS))}; synthetic seeds {', '.join(map(str, SYNTHETIC))}."
    asked = (
        f"Worlds {', '.join(map(str, FORM_WORLDS))}, ε = 0.10 on the development pairs, test pairs in four forms and "
        f"both claim orders; biases of ±2 and ±4 nats:"
    )
    return {
        ("guarantee.md", "beyond"): f"{worlds}\n\n{retention}\n\n{_fit_times()}",
        ("stable-prior.md", "stable-prior"): f"{asked}\n\n{_prior(forms)}",
    }


def main() -> None:
    """Print the tables, and put them into their pages with ``--update``."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--update", type=Path, help="folder of the pages whose marked sections receive the tables")
    folder = parser.parse_args().update
    for (page, section), text in reports().items():
        print(text, end="\n\n")
        if folder:
            replace_section(folder / page, section, text)


if __name__ == "__main__":
    main()
