"""How scores were made: what has to agree before a calibrator learned on some may be applied to others."""

from __future__ import annotations

import json
from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from unprior._files import parse_json
from unprior._validation import describe_validation_error
from unprior.errors import UnpriorError, format_option, warn

METADATA_KEY = b"unprior.provenance"
"""Where Parquet files keep the records: the schema's metadata, as a JSON list."""
FIELD = "provenance"
"""Where JSON lines keep them: this field of the first row, as a list."""


def _encodable(text: str) -> str:
    text.encode()  # a lone surrogate, which JSON can spell, raises a ValueError
    return text


Name = Annotated[str, AfterValidator(_encodable)]


class Provenance(BaseModel):
    """How the scores of one model on one benchmark were made; what is not known is None.

    >>> Provenance(model="my-vlm", precision="float32").describe()
    [('Model', 'my-vlm'), ('Precision', 'float32')]
    """

    model_config = ConfigDict(frozen=True, strict=True, extra="ignore")

    model: Name | None = None
    """What score tables call the model."""
    engine: Name | None = None
    """``transformers``, ``vllm`` or ``openai`` (a server)."""
    weights: Name | None = None
    """Digest of the model's folder, or its commit on the hub."""
    fingerprint: Name | None = None
    """Digest of everything that may change a result: weights, precision, preprocessing, prompts, libraries."""
    served_model: Name | None = None
    """The name that a server gave in its replies, where that is another one."""
    precision: Name | None = None
    """Number format of the model's weights, e.g. ``bfloat16``."""
    prompt: Name | None = None
    """Digest of the tokens of a fixed question as the model reads it: chat template and layout."""
    wording: dict[Name, Name] = Field(default_factory=dict)
    """What the model is asked beside the question itself, by kind of question: ``mc``, ``qa``, ``open``."""
    image_size: Annotated[int, Field(ge=0, le=8192)] | None = None
    """Side of the square that images are brought to before the model's own processing; 0 leaves them as they are."""
    prior: Name | None = None
    """The view that the prior scores come from: ``text``, ``white``, …"""
    benchmark: Name | None = None
    revision: Name | None = None
    """Revision of the benchmark, as its card names it."""
    questions: Name | None = None
    """Digest of the questions, options, answers and splits."""
    versions: dict[Name, Name] = Field(default_factory=dict)
    """Libraries that took part."""
    date: Name | None = None
    """When the scores were written, in UTC."""

    def record(self) -> dict[str, Any]:
        """What is known, as plain values for JSON."""
        known: dict[str, Any] = self.model_dump(exclude_none=True)
        return {name: value for name, value in known.items() if value != {}}

    def describe(self) -> list[tuple[str, str]]:
        """What is known, for people: names and short values."""
        values = {
            "Model": self.model,
            "Served as": self.served_model,
            "Engine": self.engine,
            "Weights": short(self.weights),
            "Fingerprint": short(self.fingerprint),
            "Precision": self.precision,
            "Prompt": short(self.prompt),
            "Image size": None if self.image_size is None else size_text(self.image_size),
            "Prior scores": self.prior and (f"{self.prior} view"),
            "Benchmark": " ".join(filter(None, (self.benchmark, self.revision and f"({self.revision})"))) or None,
            "Questions": short(self.questions),
            "Libraries": ", ".join(f"{name} {version}" for name, version in self.versions.items()) or None,
            "Scored": self.date,
        }
        return [(name, value) for name, value in values.items() if value]


@dataclass(frozen=True, slots=True)
class Differences:
    """What two sets of scores do not share."""

    refused: tuple[str, ...]
    """Differences that make scores incomparable."""
    noted: tuple[str, ...]
    """Differences that a reader should know of."""

    def __bool__(self) -> bool:
        """Whether there is any difference."""
        return bool(self.refused or self.noted)

    def warn_or_refuse(self, what: str, *, force: bool = False) -> None:
        """Warn about what differs, in one line; what makes scores incomparable is refused unless it is forced."""
        if not self:
            return
        told = "; ".join((*self.refused, *self.noted))
        if self.refused and not force:
            raise UnpriorError(
                f"{what}: {told}. Score them the same way, or go on with {format_option('force', True)}."
            )
        warn(f"{what}: {told}")


def compare_provenance(own: Sequence[Provenance], other: Sequence[Provenance]) -> Differences:
    """What differs between how scores were made here and there; only what both sides know is compared.

    Parameters
    ----------
    own
        How the scores were made that something was learned on.
    other
        How the scores were made that it is to be applied to.

    >>> here = [Provenance(model="a", precision="float32", benchmark="x")]
    >>> there = [Provenance(model="a", precision="bfloat16", benchmark="y")]
    >>> compare_provenance(here, there).refused
    ('precision float32, here bfloat16',)
    """
    refused = []
    weights = _known(own, "weights")
    # One model may have two names, e.g. a folder that was moved.
    named = [record for record in other if record.weights is None or record.weights not in weights]
    for name, words in _DECISIVE.items():
        if difference := _difference(own, named if name == "model" else other, name, words):
            refused.append(difference)
    worded = _other_wording(own, other)
    if worded:  # says more than the digest of a prompt
        refused = [*(each for each in refused if not each.startswith(f"{_DECISIVE['prompt']} ")), *worded]
    noted = [
        difference for name, words in _TOLD.items() if (difference := _difference(own, other, name, words)) is not None
    ]
    return Differences(tuple(refused), tuple(noted))


_DECISIVE = {
    "model": "model",
    "weights": "weights",
    "served_model": "model served as",
    "precision": "precision",
    "prompt": "prompt",
    "image_size": "image size",
    "prior": "prior view",
}
_TOLD = {"engine": "engine", "benchmark": "benchmark", "revision": "benchmark revision"}
_DIGESTS = ("weights", "prompt")


def _known(records: Iterable[Provenance], name: str) -> set[Any]:
    return {value for record in records if (value := getattr(record, name)) is not None}


def _difference(own: Sequence[Provenance], other: Sequence[Provenance], name: str, words: str) -> str | None:
    here, there = _known(own, name), _known(other, name)
    if not here or not there or there <= here:
        return None

    return f"{words} {_shown(here, name)}, here {_shown(there - here, name)}"


def _other_wording(own: Sequence[Provenance], other: Sequence[Provenance]) -> list[str]:
    """Kinds of questions that were asked in other words there, with the first line that differs."""
    found = []
    for kind in sorted({kind for record in other for kind in record.wording}):
        here = {record.wording[kind] for record in own if kind in record.wording}
        there = {record.wording[kind] for record in other if kind in record.wording}
        if here and (new := sorted(there - here)):
            before, after = _first_difference(sorted(here)[0], new[0])
            found.append(f"{_KINDS.get(kind, kind)} worded “{before}”, here “{after}”")
    return found


_KINDS = {"mc": "choices", "qa": "yes/no questions", "open": "open questions"}


def _first_difference(one: str, other: str) -> tuple[str, str]:
    """The first lines in which two texts differ.

    >>> _first_difference("How many?\\nIn short.", "How many?\\nIn one word.")
    ('In short.', 'In one word.')
    """
    pairs = zip_longest(one.split("\n"), other.split("\n"), fillvalue="")
    return next((before, after) for before, after in pairs if before != after)


def _shown(values: set[Any], name: str) -> str:
    texts = [size_text(value) if name == "image_size" else str(value) for value in sorted(values)]
    return " and ".join(str(short(text)) if name in _DIGESTS else text for text in texts)


def merge_provenance(groups: Iterable[Iterable[Provenance]]) -> tuple[Provenance, ...]:
    """All records, each once, in order; two that differ only in their date are one.

    >>> one, two = Provenance(model="a", date="2026-01-01"), Provenance(model="a", date="2026-01-02")
    >>> [record.date for record in merge_provenance([[one], [two]])]
    ['2026-01-02']
    """
    found: dict[str, Provenance] = {}
    for record in (record for group in groups for record in group):
        key = record.model_copy(update={"date": None}).model_dump_json()
        earlier = found.get(key)
        if earlier is None or (record.date or "") > (earlier.date or ""):
            found[key] = record
    return tuple(found.values())


def records_about(
    records: Iterable[Provenance], models: Container[Any], benchmarks: Container[Any]
) -> tuple[Provenance, ...]:
    """Records of some models and benchmarks; what a record does not know fits all.

    >>> records_about([Provenance(model="a"), Provenance(model="b")], {"a"}, {None})
    (Provenance(model='a', ...
    """
    about = (("model", models), ("benchmark", benchmarks))
    return tuple(
        record
        for record in records
        if all(getattr(record, name) is None or getattr(record, name) in known for name, known in about)
    )


def to_json(records: Sequence[Provenance]) -> str:
    """The records as they stand in files."""
    return json.dumps([record.record() for record in records], ensure_ascii=False)


def from_values(values: Any, source: str) -> tuple[Provenance, ...]:
    """Check what a file says; ``source`` stands in the message when it makes no sense."""
    try:
        if not isinstance(values, list):
            raise TypeError("it is not a list of records")
        return tuple(Provenance.model_validate(value) for value in values)
    except (ValidationError, TypeError, ValueError) as error:
        reason = describe_validation_error(error) if isinstance(error, ValidationError) else str(error)
        raise UnpriorError(
            f"{source}{FIELD}, the note on how the scores were made, cannot be read: {reason}. Score again, or remove "
            f"the note."
        ) from None


def from_metadata(metadata: dict[bytes, bytes] | None, source: str) -> tuple[Provenance, ...]:
    """Read the records of a Parquet file; a file of version 0.1.0 has none."""
    raw = (metadata or {}).get(METADATA_KEY)
    if raw is None:
        return ()
    try:
        values = parse_json(raw)
    except (ValueError, RecursionError):
        values = None
    return from_values(values, f"{source}: ")


def mixed_provenance(records: Sequence[Provenance]) -> tuple[str, ...]:
    """What differs between records of one model that should have been made alike.

    >>> mixed_provenance([Provenance(model="a", precision="float32"), Provenance(model="a", precision="bfloat16")])
    ('precision bfloat16 and float32',)
    """
    found = []
    for name, words in _DECISIVE.items():
        values = _known(records, name)
        if len(values) > 1 and name != "model":
            found.append(f"{words} {_shown(values, name)}")
    for kind in sorted({kind for record in records for kind in record.wording}):
        first, *others = sorted({record.wording[kind] for record in records if kind in record.wording})
        if others:
            before, after = _first_difference(first, others[0])
            found.append(f"{_KINDS.get(kind, kind)} worded “{before}” and “{after}”")
    return tuple(found)


def short(digest: str | None) -> str | None:
    """Enough of a digest to tell two apart by eye.

    >>> short("9f86d081884c7d659a2feaa0c55ad015")
    '9f86d081884c…'
    """
    return digest if digest is None or len(digest) <= 16 else f"{digest[:12]}…"


def size_text(side: int) -> str:
    """An image size in words.

    >>> size_text(512), size_text(0)
    ('512×512', 'as stored')
    """
    return f"{side}×{side}" if side else "as stored"
