"""The one shape of every benchmark: examples with an image, a question and its candidates."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from unprior._files import is_file
from unprior._text import seen
from unprior.answer_forms import normalize_answer
from unprior.benchmarks.card import Card
from unprior.errors import UnpriorError
from unprior.prompts import YES_NO

if TYPE_CHECKING:
    from unprior.prompts import PromptLayout

LETTERS = ("A", "B", "C", "D")
OPEN = "open"
"""The task of questions without options: candidates come from the model itself."""


@dataclass(frozen=True, slots=True)
class Example:
    """One image × one question."""

    example_id: str
    """Unique within the benchmark."""
    image: Path
    question: str
    task: str
    """``mc``, ``qa`` or ``open``."""
    labels: tuple[str, ...]
    """The candidates: letters, or yes and no; none for an open question, where the model itself proposes them."""
    texts: tuple[str, ...] | None = None
    """What the letters stand for; None for yes/no questions, and where the question itself lists them."""
    answer: str | None = None
    """The label of the visually correct answer, if it is known; of an open question its text."""
    pair_id: int | str | None = None
    """The pair of images that the example belongs to, if there is one."""
    side: str | None = None
    """``cf`` or ``cs``; None where images are not paired."""
    category: str | None = None
    subcategory: str | None = None
    split: str | None = None
    instruction: str | None = None
    """Last line of the prompt where the benchmark has its own; None leaves it to the prompt layout."""
    group: str | None = None
    """Shared by examples that belong together without being a pair and without having one image."""
    form: str | None = None
    """The question form, a key of ``unprior.benchmarks.forms.FORMS``; None for a benchmark's own wording."""
    claim_order: str | None = None
    """Which claim comes first, one of ``unprior.benchmarks.forms.CLAIM_ORDERS``; None without two claims."""
    claims: tuple[str, str] | None = None
    """The two answers that exclude each other, the one that “yes” stands for first."""
    open_question: str | None = None
    """The question that the claims answer, without a claim in it; None takes the question itself."""
    aliases: tuple[str, ...] = ()
    """Other texts that are right as well, of an open question."""
    given: tuple[str, ...] = ()
    """Answers to an open question that are its only candidates beside the original answer; the model is not shown
    them, and proposes nothing."""
    line: int | None = field(default=None, compare=False)
    """Where it stands in a file of questions."""

    @property
    def kind(self) -> str:
        """How it is worded: ``mc`` with options, ``qa`` for yes or no, ``open``; the task may have another name."""
        return OPEN if self.is_open else "qa" if set(self.labels) == set(YES_NO) else "mc"

    @property
    def is_open(self) -> bool:
        """Whether it is answered in the model's own words."""
        return self.task == OPEN

    @property
    def unit(self) -> int | str:
        """What must not be torn apart by a split: the pair, the group, or all questions about one image."""
        if self.pair_id is not None:
            return self.pair_id
        return str(self.image) if self.group is None else self.group

    def user_text(self, layout: PromptLayout) -> str:
        """The whole user turn, in some wording."""
        return layout.user_text(self.question, self.labels, self.texts, self.instruction)

    def text(self, label: str | None) -> str:
        """A candidate as a person reads it; of an open question, an answer.

        >>> Example("1", Path("a.png"), "How many?", "mc", ("A", "B"), ("five", "six")).text("B")
        'B. six'
        """
        if label is None:
            return "unknown"
        return label if self.texts is None else f"{label}. {self.texts[self.labels.index(label)]}"


@dataclass(frozen=True)
class Benchmark:
    """A named list of examples."""

    name: str
    examples: Sequence[Example]
    card: Card | None = None
    """Where it comes from; None for questions of your own."""
    source: str | None = None
    """The file of questions it was read from."""
    unmapped: tuple[str, ...] = ()
    """What the table it was read from has no column for, see ``unprior.benchmarks.table_columns.FIELDS``."""

    def __post_init__(self) -> None:
        """Refuse two examples of one name, units in two splits, claims that are none, and open questions with options.

        Results are joined by name, nothing leaks from one split to another, claims are asked about, and what is
        answered in a model's own words is judged by words.
        """
        names: set[str] = set()
        splits: dict[int | str, str | None] = {}
        for example in self.examples:
            if example.example_id in names:
                raise UnpriorError(f"{self._place(example)}: two examples are called {example.example_id!r}")
            names.add(example.example_id)
            if example.claims is not None and not _are_claims(example):
                raise UnpriorError(
                    f"{self._place(example)}: example {example.example_id} has the claims {example.claims!r}; give two "
                    f"different texts, and only to questions that are answered by yes or no"
                )
            if (problem := _open_problem(example)) is not None:
                raise UnpriorError(f"{self._place(example)}: example {example.example_id} {problem}")
            if splits.setdefault(example.unit, example.split) != example.split:
                kind = "pair" if example.pair_id is not None else "image" if example.group is None else "group"
                raise UnpriorError(
                    f"{self._place(example)}: {kind} {example.unit} stands in two splits, "
                    f"{splits[example.unit] or 'none'} and {example.split or 'none'}; it belongs to one"
                )

    def _place(self, example: Example) -> str:
        """Where an example stands, for messages."""
        place = self.source or f"benchmark {self.name}"
        return place if example.line is None else f"{place}, line {example.line}"

    def __iter__(self) -> Iterator[Example]:
        """Go through the examples in order."""
        return iter(self.examples)

    def __len__(self) -> int:
        """Count the examples."""
        return len(self.examples)

    def with_examples(self, examples: Sequence[Example], name: str | None = None) -> Benchmark:
        """The same benchmark with other examples, and perhaps another name."""
        return replace(self, examples=tuple(examples), name=name or self.name)

    def digest(self) -> str:
        """Digest of what is asked: questions, options, answers, aliases, pairs and splits; not of images and claims.

        >>> Benchmark("mine", [Example("1", Path("a.png"), "Is it red?", "qa", ("yes", "no"))]).digest()[:12]
        '1c11624edff5'
        """
        digest = hashlib.sha256()
        for each in self.examples:
            asked = (each.example_id, each.question, each.task, each.labels, each.texts, each.instruction)
            place = (each.answer, each.pair_id, each.side, each.split)
            aliases = [each.aliases] if each.is_open else []  # others have none, and keep their digest
            digest.update(json.dumps([*asked, *place, *aliases], ensure_ascii=True).encode() + b"\n")
        return digest.hexdigest()

    def counts(self) -> dict[str, int]:
        """How many examples, images and pairs there are, and how many pairs (or examples) in each split.

        >>> one = Example("1", Path("a.png"), "Is it red?", "qa", ("yes", "no"), pair_id=1, side="cf", split="dev")
        >>> Benchmark("mine", [one]).counts()
        {'examples': 1, 'images': 1, 'pairs': 1, 'dev': 1}
        """
        pairs = {example.pair_id for example in self.examples if example.pair_id is not None}
        counts = {"examples": len(self.examples), "images": len(self.images())}
        if pairs:
            counts["pairs"] = len(pairs)
        for split in dict.fromkeys(example.split for example in self.examples if example.split):
            counts[split] = len({example.unit for example in self.examples if example.split == split})
        return counts

    def images(self) -> list[Path]:
        """Every image once, in the order of the examples."""
        return list(dict.fromkeys(example.image for example in self.examples))

    def missing_images(self) -> list[Path]:
        """Images that are not where they should be."""
        return [image for image in self.images() if not is_file(image)]


def _are_claims(example: Example) -> bool:
    """Whether the claims of an example are two answers, of which yes and no choose one."""
    texts = [each.strip() for each in example.claims or ()]
    return len(texts) == 2 and all(texts) and texts[0].casefold() != texts[1].casefold() and example.labels == YES_NO


def _open_problem(example: Example) -> str | None:
    """What is wrong with an open question, or with another one that has what only open questions have."""
    if not example.is_open:
        return "has aliases, which are for open questions" if example.aliases else None
    if example.labels or example.texts is not None:
        return "is open and has options; an open question has neither labels nor texts"
    if example.aliases and example.answer is None:
        return "has aliases and no answer; aliases are further right answers"
    given = () if example.answer is None else (example.answer, *example.aliases)
    empty = next((text for text in given if not normalize_answer(seen(text))), None)
    return None if empty is None else f"has an empty right answer, {empty!r}"
