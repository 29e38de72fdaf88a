"""Your own questions as a benchmark: JSON lines with an image, a question and its options."""

from __future__ import annotations

import os
import string
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from unprior._files import open_to_read, read_lines, replacing
from unprior._text import seen
from unprior._validation import describe_validation_error
from unprior.benchmarks.schema import Benchmark, Example
from unprior.errors import InvalidScoresError, RowProblem, UnpriorError
from unprior.prompts import YES_NO
from unprior.scores.schema import Name


class UserQuestion(BaseModel):
    """One line of a file of questions.

    >>> UserQuestion(image="hand.png", question="How many fingers?", options=["five", "six"], answer="six").task
    'mc'
    """

    model_config = ConfigDict(strict=True, extra="forbid")

    image: Annotated[str, Field(min_length=1)]
    """Path of the image, relative to the file."""
    question: Annotated[str, Field(min_length=1)]
    options: Annotated[list[Name], Field(min_length=2, max_length=26)] | None = None
    """Answers to choose from; without them the question is answered by yes or no."""
    letters: Annotated[list[str], Field(min_length=2, max_length=26)] | None = None
    """The letters of answers that the question itself lists; instead of options."""
    answer: Name | None = None
    """The right option, as its text or its letter; yes or no without options."""
    id: Name | None = None
    """A name for the example; by default its line number."""
    pair: int | str | None = None
    """Images of one pair share this name."""
    side: Literal["cf", "cs"] | None = None
    """Counterfactual or commonsense image of the pair."""
    category: str | None = None
    subcategory: str | None = None
    split: str | None = None
    """``dev`` for fitting, ``test`` for evaluation."""
    instruction: str | None = None
    """Last line of the prompt, instead of the usual request for a letter or for yes or no."""
    group: Name | None = None
    """Shared by questions that must stay in one split although their images differ."""
    claims: list[Name] | None = None
    """Two answers that exclude each other, of a yes/no question; the one that “yes” stands for first."""
    open_question: Name | None = None
    """The question that the claims answer, without a claim in it; by default the question itself."""

    @model_validator(mode="after")
    def _check(self) -> UserQuestion:
        if self.options is not None and self.letters is not None:
            raise ValueError("options and letters exclude each other: letters are for options inside the question")
        if not seen(self.question):
            raise ValueError("question must not be empty")
        if any(not seen(text) for text in (*(self.options or ()), *(self.letters or ()))):
            raise ValueError("an option is empty")
        if self.letters is not None and len({letter.casefold() for letter in self.letters}) < len(self.letters):
            raise ValueError("two letters are the same")
        # Published benchmarks have doubled options; a letter still says which one is right.
        options = [seen(text) for text in self.options or ()]
        unclear = self.answer is None or seen(self.answer) in options
        if len(set(options)) < len(options) and unclear and self.answer not in self.labels:
            raise ValueError("two options are the same; if that is meant, name the right one by its letter")
        if self.answer is not None and self.answer_label is None:
            raise ValueError(f"answer {self.answer!r} is neither an option nor its letter")
        if self.answer is not None and self.options is not None and self._lettered not in (None, self.answer_label):
            raise ValueError(
                f"answer {self.answer!r} is the text of one option and the letter of another; change their order"
            )
        if (self.pair is None) != (self.side is None):
            raise ValueError("pair and side belong together: give both or neither")
        self._check_claims()
        return self

    def _check_claims(self) -> None:
        if self.open_question is not None and self.claims is None:
            raise ValueError("open_question is what the claims answer: give claims, too, or leave it out")
        if self.claims is None:
            return
        if self.task != "qa":
            raise ValueError("claims are for yes/no questions: leave them out where there are options or letters")
        if len(self.claims) != 2:
            raise ValueError(
                f"claims has {len(self.claims)} answers: give two that exclude each other, the one of “yes” first"
            )
        first, second = map(seen, self.claims)
        if not first or not second:
            raise ValueError("a claim is empty")
        if first == second:
            raise ValueError(f"both claims are {self.claims[0]!r}: give two answers that exclude each other")
        if self.open_question is not None and not seen(self.open_question):
            raise ValueError("open_question must not be empty")

    @property
    def task(self) -> str:
        """Multiple choice with options, yes/no without."""
        return "qa" if self.options is None and self.letters is None else "mc"

    @property
    def labels(self) -> tuple[str, ...]:
        """Letters for options, or yes and no."""
        if self.letters is not None:
            return tuple(self.letters)
        return YES_NO if self.options is None else tuple(string.ascii_uppercase[: len(self.options)])

    @property
    def answer_label(self) -> str | None:
        """The candidate that the answer names."""
        if self.answer is None:
            return None
        if self.options is not None and self.options.count(self.answer) == 1:
            return self.labels[self.options.index(self.answer)]
        return self._lettered

    @property
    def _lettered(self) -> str | None:
        """The candidate whose letter, or yes or no, is the answer."""
        answer = (self.answer or "").casefold()
        return next((label for label in self.labels if label.casefold() == answer), None)


def read_questions(path: Path) -> Benchmark:
    """Read a file of questions; every invalid line is named."""
    examples: list[Example] = []
    problems: list[RowProblem] = []
    images: dict[str, Path] = {}  # paths are large: questions about one image share it
    total = 0
    with open_to_read(path) as stream:
        for number, line in read_lines(stream, path):
            total += 1
            try:
                question = UserQuestion.model_validate_json(line)
                image = images.setdefault(question.image, path.parent / question.image)
                examples.append(_example(question, image, number))
            except ValidationError as error:
                problems.append(RowProblem(number, describe_validation_error(error, UserQuestion.model_fields)))
    problems += _confused_pairs(examples)
    if problems:
        raise InvalidScoresError(str(path), total, tuple(problems), skippable=False)
    if not examples:
        raise UnpriorError(f"{path}: no questions")
    return Benchmark(path.stem, examples, source=str(path))


def _confused_pairs(examples: Sequence[Example]) -> list[RowProblem]:
    """A number and the same number as text are two names of pairs here and one in score tables."""
    first: dict[str, Example] = {}
    return [
        RowProblem(
            example.line or 0, f"pair {example.pair_id!r} is pair {known.pair_id!r} in line {known.line}; write one way"
        )
        for example in examples
        if example.pair_id is not None
        and (known := first.setdefault(str(example.pair_id), example)).pair_id != example.pair_id
    ]


def write_questions(path: Path, benchmark: Benchmark) -> None:
    """Write a benchmark as a file of questions; images are named relative to it."""
    with replacing(path) as temporary, temporary.open("w", encoding="utf-8") as stream:
        for example in benchmark:
            question = _written(
                example.example_id,
                image=os.path.relpath(example.image, path.parent),
                question=example.question,
                options=None if example.texts is None else list(example.texts),
                letters=list(example.labels) if example.texts is None and example.task == "mc" else None,
                answer=example.answer,
                id=example.example_id,
                pair=example.pair_id,
                side=example.side,
                category=example.category,
                subcategory=example.subcategory,
                split=example.split,
                instruction=example.instruction,
                group=example.group,
                claims=None if example.claims is None else list(example.claims),
                open_question=example.open_question,
            )
            stream.write(question.model_dump_json(exclude_none=True) + "\n")


def _written(name: str, **values: Any) -> UserQuestion:
    try:
        return UserQuestion(**values)
    except ValidationError as error:
        raise UnpriorError(f"{name} cannot be written as a question: {describe_validation_error(error)}") from None


def _example(question: UserQuestion, image: Path, number: int) -> Example:
    return Example(
        example_id=question.id or str(number),
        image=image,
        question=question.question,
        task=question.task,
        labels=question.labels,
        texts=None if question.options is None else tuple(question.options),
        answer=question.answer_label,
        pair_id=question.pair,
        side=question.side,
        category=question.category,
        subcategory=question.subcategory,
        split=question.split,
        instruction=question.instruction,
        group=question.group,
        claims=None if question.claims is None else (question.claims[0], question.claims[1]),
        open_question=question.open_question,
        line=number,
    )
