"""A file of decisions, one JSON object a line: no image, no key; once labels are added, rows to fit and evaluate on.

How scores were made stands on a line of its own, before the first decision that it concerns, and decisions name it by a
digest (:mod:`unprior.scores.logged`).
"""

from __future__ import annotations

import errno
import json
import os
import stat
import threading
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from unprior._files import check_output_file, kind_of_file, open_to_read, parse_json, read_lines
from unprior.errors import UnpriorError
from unprior.scores.logged import HEADER, MADE, is_decision, is_header, log_header
from unprior.scores.provenance import Provenance
from unprior.serving.decider import CENSORED, PRIOR_UNAVAILABLE, Outcome
from unprior.serving.replies import decision_name, is_revised, reason_of

_BEGINNINGS = tuple(f'{{"{name}": '.encode() for name in (HEADER, MADE))
"""Of our lines, by which those are known that were cut off."""


def check_log(path: Path) -> None:
    """Refuse a file that decisions cannot be appended to; nothing is made yet."""
    try:
        found = path.stat().st_mode
    except FileNotFoundError:
        if not path.parent.is_dir():  # it is not made: a name that was mistyped would be
            raise UnpriorError(
                f"{path}: decisions cannot be logged there (no such folder); make it, or choose another --log"
            ) from None
        check_output_file(path)
        return
    except (OSError, ValueError) as error:
        raise _not_there(path, error) from None
    kind = kind_of_file(found)
    if kind is not None and not stat.S_ISCHR(found):
        raise UnpriorError(f"{path}: decisions cannot be logged to {kind}; give --log the name of a file")
    if not os.access(path, os.R_OK | os.W_OK):
        raise _not_there(path, PermissionError(errno.EACCES, os.strerror(errno.EACCES)))
    if kind is None:
        _check_first_line(path)


def _check_first_line(path: Path) -> None:
    with open_to_read(path) as stream:
        line = next((content for _, content in read_lines(stream, path)), b"")
    try:
        record = parse_json(line)
        is_ours = is_header(record) or is_decision(record)
    except ValueError:  # cut off
        is_ours = not line or line.startswith(_BEGINNINGS)
    if not is_ours:
        raise UnpriorError(f"{path} is there already and is no log of decisions; choose another --log")


def _not_there(path: Path, error: OSError | ValueError) -> UnpriorError:
    told = getattr(error, "strerror", None) or error
    return UnpriorError(f"{path}: decisions cannot be logged there ({told}); choose another --log")


class DecisionLog:
    """Appends to a file, whole lines only; where it was moved away or removed, a new one is begun."""

    def __init__(self, path: Path) -> None:
        """Open the file, or begin it; a line that was cut off when a server was killed is ended."""
        self.path = path
        self._told: set[str] = set()
        """Digests of how scores were made that stand in the file."""
        self._is_torn = False
        """Whether the last line is half of one."""
        self._lock = threading.Lock()
        try:
            self._file = self._open()
        except OSError as error:
            raise _not_there(path, error) from None

    def _open(self) -> int:
        check_log(self.path)
        file = os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            found = os.fstat(file)
            is_torn = stat.S_ISREG(found.st_mode) and found.st_size and os.pread(file, 1, found.st_size - 1) != b"\n"
        except OSError:
            os.close(file)
            raise
        self._is_torn = bool(is_torn)
        self._told.clear()
        return file

    def _follow(self) -> None:
        """Open the file anew if the name leads to another one by now, or to none."""
        try:
            is_same = os.path.samestat(self.path.stat(), os.fstat(self._file))
        except FileNotFoundError:
            is_same = False
        if is_same:
            return
        try:
            file = self._open()
        except UnpriorError as error:  # e.g. a pipe took its place: a line that cannot be written, as on a full disk
            raise OSError(errno.EINVAL, str(error)) from None
        os.close(self._file)
        self._file = file

    def write(self, records: Iterable[dict[str, Any]], made: Provenance) -> None:
        """Append decisions on scores that were made alike; an OSError tells that they could not be written."""
        header = log_header(made)
        name = header[MADE]
        lines = [json.dumps({MADE: name} | record, ensure_ascii=False) for record in records]
        if not lines:
            return
        with self._lock:
            self._follow()
            if os.fstat(self._file).st_size == 0:  # a new file, or one that was copied away and emptied
                self._told.clear()
            if name not in self._told:
                lines.insert(0, json.dumps(header, ensure_ascii=False))
            text = ("\n" * self._is_torn + "".join(f"{line}\n" for line in lines)).encode()
            written = 0
            try:
                while written < len(text):
                    written += os.write(self._file, text[written:])
            except OSError:
                if written:  # e.g. a full disk: the half line is ended, and what it may have told is told again
                    self._is_torn = True
                    self._told.clear()
                raise
            self._is_torn = False
            self._told.add(name)

    def close(self) -> None:
        """Finish."""
        with self._lock:
            os.close(self._file)


def log_record(
    outcome: Outcome, place: int, *, request_id: str, model: str, calibrator: str | None, image: str, enforce: bool
) -> dict[str, Any] | None:
    """A decision as a row of scores; None where there are no scores to learn from.

    ``place``: of the question in its request; ``image``: a digest of it.
    """
    answer, asked = outcome.answer, outcome.asked
    if answer is None or outcome.reason == PRIOR_UNAVAILABLE:
        return None
    task = "open" if asked.kind == "open" else "qa" if asked.options is None else "mc"
    names = [each.label if asked.options is None else str(each.text) for each in answer.candidates]
    by_label = dict(zip(outcome.labels, names, strict=True))
    original = None if outcome.original is None else by_label[outcome.original]
    decided = answer.final if is_revised(outcome) else outcome.original
    record = {
        "time": datetime.now(UTC).isoformat(timespec="milliseconds"),
        "example_id": f"{request_id}/{place}",
        "model": model,
        "task": task,
        "name": asked.name,
        "question": asked.question,
        "image_digest": image,
        "candidates": names,
        "image_scores": [each.image_score for each in answer.candidates],
        "prior_scores": [each.prior_score for each in answer.candidates],
        "original": original,
        "original_text": answer.original_text,
        "decided": None if decided is None else by_label[decided],
        "decision": decision_name(outcome, enforce=enforce),
        "reason": reason_of(outcome),
        "calibrator": calibrator,
        "answer": None,
    }
    # Which of them is a bound is not known here, and it makes no difference: such rows are not fitted on.
    return record | ({"censored": [True] * len(names)} if outcome.reason == CENSORED else {})
