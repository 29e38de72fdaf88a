"""A log of decisions as somebody labels it: what was asked, once each, and which lines it stands on."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Hashable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from unprior._files import open_to_read, parse_json, read_lines
from unprior._validation import describe_validation_error
from unprior.errors import RowProblem, UnpriorError, format_names, warn
from unprior.scores.logged import MADE, check_header, decision_row, example_key, is_decision, is_header
from unprior.scores.provenance import FIELD, from_values
from unprior.scores.schema import MAX_SCORE, OPEN

_SHOWN = 8


@dataclass(frozen=True, slots=True)
class LoggedExample:
    """One question about one image, however often it was asked."""

    record: dict[str, Any]
    """As it was logged first."""
    lines: tuple[int, ...]
    ids: tuple[str, ...]
    """Of all requests for it."""

    @property
    def name(self) -> str:
        """What label files call it."""
        return self.ids[0]

    @property
    def image(self) -> str:
        """The digest of its image."""
        return str(self.record["image_digest"])

    @property
    def candidates(self) -> list[str]:
        """The possible answers."""
        return [str(each) for each in self.record["candidates"]]

    @property
    def is_open(self) -> bool:
        """Whether other answers than the candidates may be right."""
        return bool(self.record["task"] == OPEN)


@dataclass(frozen=True)
class LogFile:
    """All whole lines of a log, and what is wrong with the others."""

    path: Path
    lines: tuple[tuple[int, dict[str, Any]], ...]
    """Number and content, in order."""
    damaged: tuple[RowProblem, ...]

    @cached_property
    def examples(self) -> list[LoggedExample]:
        """What can be labelled, in the order in which images and questions came."""
        found: dict[Hashable, list[tuple[int, dict[str, Any]]]] = {}
        for number, record in self.lines:
            if is_decision(record):
                found.setdefault(example_key(record), []).append((number, record))
        examples = [
            LoggedExample(same[0][1], tuple(n for n, _ in same), tuple(str(each["example_id"]) for _, each in same))
            for same in found.values()
        ]
        first: dict[str, int] = {}
        for example in examples:
            first.setdefault(example.image, len(first))
        return sorted(examples, key=lambda each: first[each.image])

    def drawn(self, images: int | None) -> list[LoggedExample]:
        """The examples of so many images, drawn by chance; more images hold those of fewer."""
        known = sorted({each.image for each in self.examples}, key=lambda name: fate("draw", name))
        chosen = set(known[:images])
        return [each for each in self.examples if each.image in chosen]

    def warn_about_mixtures(self) -> None:
        """Warn of damaged lines, and of decisions that cannot be used as one."""
        if self.damaged:
            shown = "".join(f"\n  {each}" for each in self.damaged[:_SHOWN])
            more = f"\n  … and {len(self.damaged) - _SHOWN:,} more" if len(self.damaged) > _SHOWN else ""
            warn(f"{self.path}: left out {len(self.damaged):,} lines; the file stays as it is{shown}{more}")
        for field, what, remedy in (
            ("model", "models", "a calibrator belongs to one: choose it with `unprior fit --model NAME`"),
            ("calibrator", "calibrators", "to evaluate what one decided: `unprior evaluate --decided-by DIGEST`"),
        ):
            counts = Counter(str(each.record.get(field)) for each in self.examples)
            if len(counts) > 1:
                shown = format_names([f"{name} ({count:,})" for name, count in counts.most_common()])
                warn(f"{self.path}: decisions of {len(counts)} {what}: {shown}; {remedy}")


def fate(salt: str, image: str) -> float:
    """A number from 0 to 1 by which an image is drawn: the same every time, and of no other meaning.

    >>> round(fate("draw", "1f"), 3), round(fate("test", "1f"), 3)
    (0.749, 0.95)
    """
    return int(hashlib.sha256(f"{salt}:{image}".encode()).hexdigest()[:13], 16) / 16**13


def read_log(path: Path) -> LogFile:
    """Read a log. Lines that are no decisions, such as one that was cut off, are told and left out."""
    lines: list[tuple[int, dict[str, Any]]] = []
    damaged: list[RowProblem] = []
    made: set[str] = set()
    with open_to_read(path) as stream:
        for number, line in read_lines(stream, path):
            try:
                record = parse_json(line)
                _check(record, made)
                lines.append((number, record))
            except UnpriorError as error:
                damaged.append(RowProblem(number, str(error)))
            except ValueError:
                reason = "the line was cut off" if not line.endswith((b"}\n", b"}")) else "not a JSON object"
                damaged.append(RowProblem(number, f"{reason}, as when a server is killed while it writes"))
    log = LogFile(path, tuple(lines), tuple(damaged))
    if all(is_header(record) for _, record in lines):
        what = f"; line {damaged[0].line}: {damaged[0].reason}" if damaged else ""
        nothing = "the log is empty" if not lines and not damaged else "there is no decision in it"
        raise UnpriorError(f"{path}: {nothing}{what}. `unprior serve --log {path.name}` writes one")
    seen: dict[str, LoggedExample] = {}
    for example in log.examples:
        for name in example.ids:
            if seen.setdefault(name, example) is not example:
                where = f"lines {seen[name].lines[0]} and {example.lines[0]}"
                raise UnpriorError(f"{path}, {where}: two questions have one name, {name!r}; give one of them another")
    return log


def _check(record: Any, made: set[str]) -> None:
    """Refuse a line that nobody could label, write again, or learn from; ``made`` gathers what headers are called."""
    try:
        json.dumps(record, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise UnpriorError("half of a character (a surrogate) is no text") from None
    except RecursionError:
        raise UnpriorError("nested too deeply") from None
    if is_header(record):
        check_header(record)
        from_values(record.get(FIELD), "")
        made.add(str(record.get(MADE)))
        return
    if not is_decision(record):
        raise UnpriorError("no decision of `unprior serve`")
    for name in ("example_id", "image_digest", "task", "question"):
        if not isinstance(record.get(name), str):
            raise UnpriorError(f"{name} is missing or no text")
    if not isinstance(record.get("candidates"), list) or not record["candidates"]:
        raise UnpriorError("candidates are missing")
    try:
        row = decision_row(record, made)
    except ValidationError as error:
        raise UnpriorError(describe_validation_error(error)) from None
    for name, scores in (("image_scores", row.image_scores), ("prior_scores", row.prior_scores)):
        if len(scores) != len(row.candidates):
            raise UnpriorError(f"{name} has {len(scores)} values for {len(row.candidates)} candidates")
        if not all(abs(score) <= MAX_SCORE for score in scores):
            raise UnpriorError(f"{name} has a value that is no log-probability")
