"""The log itself: whole lines after a crash, and how scores were made before the first decision of every file."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from decision_logs import HEADER, MADE, decision
from unprior.errors import UnpriorError
from unprior.scores.logged import is_header, log_header
from unprior.scores.provenance import Provenance
from unprior.serving.decision_log import DecisionLog, check_log

OTHER = Provenance(model="tiny", precision="bfloat16")


def lines(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_how_scores_were_made_is_told_once_before_the_decisions_that_it_concerns(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    log = DecisionLog(path)
    for made in (MADE, MADE, OTHER, MADE):
        log.write([{"a": 1}, {"a": 2}], made)
    log.write([], Provenance(model="never used"))
    log.close()
    other = log_header(OTHER)
    of_own, of_other = ([{"made": each["made"], "a": n} for n in (1, 2)] for each in (HEADER, other))
    assert lines(path) == [HEADER, *of_own, *of_own, other, *of_other, *of_own]


def test_a_log_that_was_copied_and_emptied_begins_anew(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    log = DecisionLog(path)
    log.write([{"a": 1}], MADE)
    os.truncate(path, 0)
    log.write([{"a": 2}], MADE)
    log.close()
    assert lines(path) == [HEADER, {"made": HEADER["made"], "a": 2}]


def test_a_line_that_was_cut_off_spoils_no_other(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text(json.dumps(decision())[:50])
    for _ in range(2):
        log = DecisionLog(path)
        log.write([{"a": 1}], MADE)
        log.close()
    cut, *others = path.read_text().splitlines()
    assert cut == json.dumps(decision())[:50]
    assert [json.loads(line) for line in others] == [HEADER, {"made": HEADER["made"], "a": 1}] * 2


def test_a_line_that_a_full_disk_cut_off_spoils_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log, write, made = DecisionLog(tmp_path / "log.jsonl"), os.write, Provenance(model="a")
    sizes = iter([20, 0])

    def full(file: int, content: bytes) -> int:
        size = next(sizes, len(content))
        if not size:
            raise OSError(28, "No space left on device")
        return write(file, content[:size])

    monkeypatch.setattr("os.write", full)
    with pytest.raises(OSError, match="No space"):
        log.write([{"number": 1}], made)
    for number in (2, 3):
        log.write([{"number": number}], made)
    log.close()
    torn, *whole = log.path.read_text().splitlines()
    assert len(torn) == 20
    header, *records = map(json.loads, whole)
    assert is_header(header)
    assert [record["number"] for record in records] == [2, 3]


@pytest.mark.parametrize("take_away", [lambda path: path.rename(f"{path}.1"), lambda path: path.unlink()])
def test_a_log_that_was_moved_or_removed_begins_anew(take_away: Callable[[Path], object], tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    log = DecisionLog(path)
    for number in (1, 2):
        log.write([{"a": number}], MADE)
        take_away(path)
    log.write([{"a": 3}], MADE)
    log.write([{"a": 4}], MADE)
    log.close()
    assert lines(path) == [HEADER, *({"made": HEADER["made"], "a": number} for number in (3, 4))]


def test_a_log_whose_place_was_taken_is_not_written_until_it_is_free(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    log = DecisionLog(path)
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(OSError, match="a pipe"):
        log.write([{"a": 1}], MADE)
    path.unlink()
    path.write_text('{"mine": 1}')
    with pytest.raises(OSError, match="is no log of decisions"):
        log.write([{"a": 2}], MADE)
    assert path.read_text() == '{"mine": 1}'
    path.unlink()
    log.write([{"a": 3}], MADE)
    log.close()
    assert lines(path) == [HEADER, {"made": HEADER["made"], "a": 3}]


@pytest.mark.parametrize(
    "content",
    ['{"mine": 1}\n', '{\n "mine": 1\n}\n', "example,answer\n", "[]", "\n\nnotes\n", '{"name": "cut o', "\0\0\0"],
)
def test_a_file_of_somebody_else_is_refused_and_stays(content: str, tmp_path: Path) -> None:
    path = tmp_path / "other.json"
    path.write_text(content)
    for refused in (check_log, DecisionLog):
        with pytest.raises(UnpriorError, match=r"is no log of decisions; choose another --log"):
            refused(path)
    assert path.read_text() == content


def test_what_is_no_file_is_refused_and_a_device_is_taken(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for name, words in ((".", "to a folder; give"), ("pipe", "to a pipe; give"), ("no/log.jsonl", "no such folder")):
        with pytest.raises(UnpriorError, match=words):
            DecisionLog(tmp_path / name)
    log = DecisionLog(Path(os.devnull))
    log.write([{"a": 1}], MADE)
    log.write([{"a": 2}], MADE)
    log.close()


@pytest.mark.parametrize(
    "content", [None, "", "\n", json.dumps(HEADER), json.dumps(decision()), '{"unprior_log": 1, "ma']
)
def test_looking_whether_a_log_can_be_written_changes_nothing(content: str | None, tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    if content is not None:
        path.write_text(content)
    check_log(path)
    assert (path.read_text() if path.exists() else None) == content
