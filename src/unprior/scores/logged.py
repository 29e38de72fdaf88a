"""Rows of a server's log of decisions (`unprior serve --log`), read as a score table.

A log has one JSON object a line: decisions, and before the first of them, and wherever it changes, a line that says how
scores were made, which decisions name by its digest. Production knows no matched pairs, so two things follow from what
it does know:

- **Side.** Commonsense (``cs``): the right answer is the one that the prior scores put first, which the model would
  give without the image. Counterfactual (``cf``): it is another one. A side that the record gives is kept.
- **Pair.** Questions about one image share what makes them hard, so an image is what is drawn: its digest stands in
  for the pair. The same question about the same image is one example, however often it was asked.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Container, Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from unprior.answer_forms import normalize_answer
from unprior.errors import UnpriorError, did_you_mean, format_names, format_option
from unprior.scores.open_rows import accepted_forms, merge_forms
from unprior.scores.provenance import FIELD, Provenance, from_values
from unprior.scores.schema import OPEN, ScoreRow

HEADER = "unprior_log"
"""Marks a line that says how scores were made; its value is the version of the layout."""
MADE = "made"
"""The digest that names such a line."""
_VERSION = 1


def log_header(provenance: Provenance) -> dict[str, Any]:
    """The line that says how scores were made, with the digest that decisions name it by.

    >>> log_header(Provenance(model="a"))
    {'unprior_log': 1, 'made': 'eb88c6defa43', 'provenance': [{'model': 'a'}]}
    """
    record = provenance.record()
    digest = hashlib.sha256(json.dumps(record, sort_keys=True).encode()).hexdigest()
    return {HEADER: _VERSION, MADE: digest[:12], FIELD: [record]}


def is_header(record: Any) -> bool:
    """Whether a line says how scores were made."""
    return isinstance(record, dict) and HEADER in record


def check_header(record: dict[str, Any]) -> None:
    """Refuse a line that says how scores were made in a layout of another version.

    >>> check_header({"unprior_log": 9})
    Traceback (most recent call last):
        ...
    unprior.errors.UnpriorError: a log of version 9, this unprior reads version 1; install the one that wrote it
    """
    version = record[HEADER]
    if version != _VERSION or isinstance(version, bool):
        raise UnpriorError(
            f"a log of version {version!r:.40}, this unprior reads version {_VERSION}; install the one that wrote it"
        )


def _calibrator(record: dict[str, Any]) -> str | None:
    """The digest of the calibrator that decided."""
    name = record.get("calibrator")
    if name is not None and not isinstance(name, str):
        raise UnpriorError(f"calibrator: must be the digest of a calibrator, or null, not {name!r:.40}")
    return name


def is_decision(record: Any) -> bool:
    """Whether a line of a file is a decision of a server.

    >>> is_decision({"image_digest": "1f", "decided": "4"}), is_decision({"pair_id": 3, "side": "cf"})
    (True, False)
    """
    return isinstance(record, dict) and "image_digest" in record and "decided" in record


def example_key(record: dict[str, Any]) -> Hashable:
    """What two requests share that are one example; what is proposed to an open question may differ a little."""
    candidates = () if record.get("task") == OPEN else tuple(map(str, record.get("candidates") or ()))
    return (*(str(record.get(name)) for name in ("model", MADE, "image_digest", "task", "question")), candidates)


def derived_side(
    task: str, candidates: Sequence[str], image: Sequence[float], prior: Sequence[float], answer: str,
    aliases: Sequence[str] | None = None,
) -> Literal["cf", "cs"]:  # fmt: skip
    """``cs`` where the right answer is the one that the prior puts first (ties: the first candidate), else ``cf``.

    >>> derived_side("mc", ["four", "five"], [-1.0, -0.5], [-0.1, -2.4], "five")
    'cf'
    >>> derived_side("open", ["4 legs", "five"], [-1.0, -0.5], [-0.1, -2.4], "Four legs.")
    'cs'
    """
    if task != OPEN:
        return "cs" if candidates[prior.index(max(prior))] == answer else "cf"
    merged = merge_forms(candidates, image, prior)
    ordinary = merged.labels[merged.scores[1].index(max(merged.scores[1]))]
    return "cs" if normalize_answer(ordinary) in accepted_forms(answer, aliases) else "cf"


def decision_row(record: dict[str, Any], made: Container[str]) -> ScoreRow:
    """A decision as a row; ``made``: digests of the lines above it that say how scores were made."""
    name = record.get(MADE)
    if not isinstance(name, str) or name not in made:
        raise UnpriorError(
            f"nothing above it says how its scores were made: the line with {json.dumps(HEADER)} and "
            f"{json.dumps(MADE)} {name!r} is missing; put it back from the log of the server"
        )
    _calibrator(record)
    row = ScoreRow.model_validate(record | {"pair_id": record["image_digest"], "matched": False})
    image, prior = row.image_scores, row.prior_scores
    whole = 0 < len(row.candidates) == len(image) == len(prior)  # others are refused as every such row is
    if row.side is None and row.answer is not None and whole:
        side = derived_side(row.task, row.candidates, image, prior, row.answer, row.aliases)
        return row.model_copy(update={"side": side})
    return row


@dataclass
class _Entry:
    line: int
    row: ScoreRow
    side: str | None
    """As it was given."""


@dataclass
class LogRows:
    """Takes the lines of a log one after the other, and has the rows of a score table in the end."""

    decided_by: str | None = None
    """Take the decisions of this calibrator alone, by its digest."""
    repeats: int = 0
    """Requests that were there before; each example counts once."""
    _entries: dict[Hashable, _Entry] = field(default_factory=dict)
    _made: dict[str, tuple[Provenance, ...]] = field(default_factory=dict)
    _used: dict[str, None] = field(default_factory=dict)
    _splits: dict[str, tuple[int, str | None]] = field(default_factory=dict)
    _calibrators: set[str] = field(default_factory=set)

    def add(self, line: int, record: dict[str, Any]) -> None:
        """Take a line; an error says what is wrong with it."""
        if is_header(record):
            check_header(record)
            self._made[str(record.get(MADE))] = from_values(record.get(FIELD), "")
            return
        decided_by = _calibrator(record)
        self._calibrators |= set() if decided_by is None else {decided_by}
        if self.decided_by not in (None, decided_by):
            return
        row = decision_row(record, self._made)
        split = self._splits.setdefault(str(row.pair_id), (line, row.split))
        if split[1] != row.split:
            raise UnpriorError(
                f"its image stands in split {split[1]!r} at line {split[0]} and in {row.split!r} here; an image "
                f"belongs to one split"
            )
        self._used[str(record[MADE])] = None
        key = example_key(record)
        earlier = self._entries.get(key)
        if earlier is None:
            self._entries[key] = _Entry(line, row, record.get("side"))
            return
        given = (earlier.side, record.get("side"))
        is_other = None not in given and given[0] != given[1]
        # Scores may differ a little from one time to the next, and with them a side that is derived: the first counts.
        if None not in (row.answer, earlier.row.answer) and (row.answer != earlier.row.answer or is_other):
            raise UnpriorError(
                f"the same question about the same image has the answer {earlier.row.answer!r} ({earlier.row.side}) at "
                f"line {earlier.line} and {row.answer!r} ({row.side}) here; correct one of them"
            )
        self.repeats += 1
        if earlier.side is None and record.get("side") is not None:
            earlier.side = record["side"]
            earlier.row = earlier.row.model_copy(update={"side": row.side})
        if earlier.row.answer is None and row.answer is not None:  # a label holds for every time the same was asked
            known = row.model_dump(include={"answer", "aliases", "side"})
            earlier.row = earlier.row.model_copy(update=known)

    @property
    def provenance(self) -> tuple[tuple[Provenance, ...], ...]:
        """How the scores of the rows were made."""
        return tuple(self._made[made] for made in self._used)

    def rows(self) -> Iterator[tuple[int, ScoreRow]]:
        """Line and row of every example."""
        if self.decided_by is not None and self.decided_by not in self._calibrators:
            known = sorted(self._calibrators)
            like = did_you_mean(self.decided_by, known)
            raise UnpriorError(
                f"{format_option('decided_by', self.decided_by)}: no decision of that calibrator{like}; there are "
                f"decisions of {format_names(known) or 'none'}"
            )
        yield from ((entry.line, entry.row) for entry in self._entries.values())
