"""Several targets in one process: starting one and loading a model takes longer than the cases of a small share."""

from __future__ import annotations

import importlib
from dataclasses import replace
from pathlib import Path

from fuzz.case import Case, MakeTarget, Target
from fuzz.pool import run_cases
from fuzz.run import SHARE, TARGETS, Tally

TOGETHER = {
    "models": ("models", "replies", "questions"),
    "files": ("tables", "calibrators", "images", "stores"),
    "listings": ("listings",),  # tells the hub's library another address before it is imported
}
"""Which targets share a process."""


def hunt_together(group: str, seed: int, folder: Path) -> dict[str, Tally]:
    """The share of every target of the group: the same cases as one target alone would get."""
    tallies = {target: Tally(target, seed) for target in TOGETHER[group]}
    cases = _cases(group)
    for outcome, _ in run_cases(group, f"joint_hunt:make_{group}", seed, iter(range(len(cases))), folder=folder):
        target, index = cases[outcome.index]
        tallies[target].add(replace(outcome, index=index))
    return tallies


def _cases(group: str) -> list[tuple[str, int]]:
    return [(target, index) for target in TOGETHER[group] for index in range(SHARE[target])]


def _make(group: str, folder: Path) -> Target:
    targets = {}
    for target in TOGETHER[group]:
        module, _, name = TARGETS[target].partition(":")
        make: MakeTarget = getattr(importlib.import_module(module), name)
        (folder / target).mkdir()
        targets[target] = make(folder / target)
    cases = _cases(group)

    def run(case: Case) -> bool:
        target, index = cases[case.index]
        return targets[target](replace(case, target=target, index=index))

    return run


def make_models(folder: Path) -> Target:
    return _make("models", folder)


def make_files(folder: Path) -> Target:
    return _make("files", folder)


def make_listings(folder: Path) -> Target:
    return _make("listings", folder)
