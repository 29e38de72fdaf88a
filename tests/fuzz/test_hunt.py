"""A share of the fuzz tests, the same in every run; a planted fault of every kind is found."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from fuzz.pool import SetupError, Verdict
from fuzz.run import KEPT, SHARE, TARGETS, Tally, hunt, main, summary
from joint_hunt import TOGETHER, hunt_together

SEED = 1
LITTLE_MEMORY = 400 << 20


@pytest.fixture(scope="module")
def hunted(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], dict[str, Tally]]:
    return cache(lambda group: hunt_together(group, SEED, tmp_path_factory.mktemp(group)))


@pytest.mark.parametrize("target", TARGETS)
def test_a_share_of_the_hunt(target: str, hunted: Callable[[str], dict[str, Tally]]) -> None:
    (group,) = (group for group, targets in TOGETHER.items() if target in targets)
    tally = hunted(group)[target]
    assert tally.failed == 0, summary([tally])
    assert tally.cases == SHARE[target]
    assert tally.accepted > 0, "all was refused, so no result was compared"
    assert tally.refused > 0, "nothing was refused, so nothing was damaged"


@pytest.mark.parametrize(
    ("fault", "verdict", "said"),
    [
        ("raises", Verdict.RAISED, "KeyError: 'scores'"),
        ("differs", Verdict.DIFFERENT, "the sum is wrong"),
        ("sleeps", Verdict.HANG, "no end after"),
        ("works_forever", Verdict.HANG, "no end after"),
        ("holds_memory", Verdict.MEMORY, "GB of memory"),
        ("held_memory", Verdict.MEMORY, "GB of memory"),
        ("dies", Verdict.DIED, "SIGABRT"),
        ("exits", Verdict.DIED, "exit code 0"),
    ],
)
def test_a_planted_fault_is_found(fault: str, verdict: Verdict, said: str, tmp_path: Path) -> None:
    hangs = verdict is Verdict.HANG
    tally = hunt(
        "planted", SEED, factory=f"planted_faults:{fault}", keep=tmp_path, max_memory=LITTLE_MEMORY,
        **({"first": 3, "cases": 1, "deadline": 0.5} if hangs else {"cases": 8}),
    )  # fmt: skip
    ((found, _), (outcome,)) = next(iter(tally.faults.items()))
    assert (tally.failed, found, outcome.index) == (1, verdict, 3)
    assert said in outcome.detail
    if not hangs:  # the others go on as if nothing had happened
        assert (tally.cases, tally.accepted, tally.refused) == (8, 5, 2)
    kept = tmp_path / "planted-1-3"
    assert len((kept / "input.bin").read_bytes()) == 8
    notes = (kept / "case.txt").read_text(encoding="utf-8")
    assert notes.startswith("case 3\n")
    assert "make fuzz ONLY=planted SEED=1 CASE=3" in notes


def test_a_case_is_the_same_in_every_run(tmp_path: Path) -> None:
    def drawn(seed: int, **which: int) -> str:
        tally = hunt("planted", seed, factory="planted_faults:differs", **which)
        return next(iter(tally.faults.values()))[0].detail

    assert drawn(1, cases=8, workers=2) == drawn(1, first=3, cases=1)
    assert drawn(1, cases=8) != drawn(2, cases=8)


def test_the_driver_prints_and_fails(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in list(TARGETS):
        monkeypatch.delitem(TARGETS, name)
    monkeypatch.setitem(TARGETS, "whole", "planted_faults:nothing")
    assert main(["--cases", "6"]) == 0
    assert capsys.readouterr().out.startswith("seed ")
    assert not KEPT.exists()
    monkeypatch.setitem(TARGETS, "broken", "planted_faults:raises")
    assert main(["--cases", "6", "--seed", "7"]) == 1
    told = capsys.readouterr().out
    assert told.startswith("seed 7\n")
    for row in (["whole", "6", "4", "2", "0"], ["broken", "6", "3", "2", "1"]):
        assert any(line.split()[:5] == row for line in told.splitlines())
    assert "again: make fuzz ONLY=broken SEED=7 CASE=3" in told
    assert (KEPT / "broken-7-3" / "case.txt").is_file()
    assert main(["--only", "broken", "--seed", "7", "--case", "3"]) == 1
    assert "Traceback" in capsys.readouterr().out, "one case alone says all it knows"
    assert main(["--only", "broken", "--seed", "7", "--case", "2"]) == 0


def test_a_target_that_cannot_be_prepared() -> None:
    with pytest.raises(SetupError, match="no such model"):
        hunt("planted", SEED, cases=3, factory="planted_faults:cannot_be_prepared")
