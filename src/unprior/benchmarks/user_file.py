"""Your own questions as a benchmark: JSON lines with an image, a question and its options, or an open question."""

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
from unprior.answer_forms import normalize_answer
from unprior.benchmarks.schema import OPEN, Benchmark, Example
from unprior.errors import InvalidScoresError, RowProblem, UnpriorError, did_you_mean
from unprior.prompts import YES_NO
from unprior.scores.schema import Name

_TASKS = ("mc", "qa", OPEN)


class UserQuestion(BaseModel):
    """One line of a file of questions.

    >>> UserQuestion(image="hand.png", question="How many fingers?", options=["five", "six"], answer="six").task
    'mc'
    >>> UserQuestion(image="hand.png", question="How many fingers?", task="open", answer="six", aliases=["6"]).labels
    ()
    """

    model_config = ConfigDict(strict=True, extra="forbid")

    image: Annotated[str, Field(min_length=1)]
    """Path of the image, relative to the file."""
    question: Annotated[str, Field(min_length=1)]
    task: str = ""
    """``open`` for a question that is answered in the model's own words; ``mc`` and ``qa`` follow from the options."""
    options: Annotated[list[Name], Field(min_length=2, max_length=26)] | None = None
    """Answers to choose from; without them the question is answered by yes or no, or is open."""
    letters: Annotated[list[str], Field(min_length=2, max_length=26)] | None = None
    """The letters of answers that the question itself lists; instead of options."""
    answer: Name | None = None
    """The right option, as its text or its letter; yes or no without options; the text of an open answer."""
    aliases: list[Name] | None = None
    """Other texts that are right as well, of an open question; case, articles, punctuation and number words need none.
    """
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
        self._check_task()
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
        if self.task == OPEN:
            self._check_open()
        elif self.aliases is not None:
            raise ValueError(f"aliases are for open questions, this one is {self.task}: leave them out")
        if self.answer is not None and self.answer_label is None:
            openly = "" if self.options else '; for a question without options write "task": "open"'
            raise ValueError(f"answer {self.answer!r} is neither an option nor its letter{openly}")
        if self.answer is not None and self.options is not None and self._lettered not in (None, self.answer_label):
            raise ValueError(
                f"answer {self.answer!r} is the text of one option and the letter of another; change their order"
            )
        if (self.pair is None) != (self.side is None):
            raise ValueError("pair and side belong together: give both or neither")
        self._check_claims()
        return self

    def _check_task(self) -> None:
        """Refuse a task that does not agree with the options; without one they decide."""
        chosen = "options" if self.options is not None else None if self.letters is None else "letters"
        if "task" in self.model_fields_set and self.task not in _TASKS:
            like = did_you_mean(self.task, _TASKS)
            raise ValueError(f"no task {self.task!r}{like}; tasks are {', '.join(_TASKS)}")
        if self.task == OPEN and chosen is not None:
            raise ValueError(f"{chosen} and task {OPEN} exclude each other: leave out one of them")
        if self.task == "qa" and chosen is not None:
            raise ValueError(f"task qa is answered by yes or no: leave out the {chosen}, or the task")
        if self.task == "mc" and chosen is None:
            raise ValueError(f"task mc needs options, or letters: give them, or write {OPEN}")
        self.task = self.task or ("qa" if chosen is None else "mc")

    def _check_open(self) -> None:
        if self.aliases is not None and self.answer is None:
            raise ValueError("aliases are further right answers: give answer, too")
        given = [("answer", self.answer), *(("alias", text) for text in self.aliases or ())]
        for name, text in given:
            if text is not None and not normalize_answer(seen(text)):
                raise ValueError(f"{name} {text!r} is empty: write the text of a right answer, or leave it out")

    def _check_claims(self) -> None:
        if self.open_question is not None and self.claims is None:
            raise ValueError("open_question is what the claims answer: give claims, too, or leave it out")
        if self.claims is None:
            return
        if self.task != "qa":
            raise ValueError(
                "claims are for yes/no questions: leave them out where there are options or letters, and of open "
                "questions"
            )
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
    def labels(self) -> tuple[str, ...]:
        """Letters for options, or yes and no; an open question has none."""
        if self.task == OPEN:
            return ()
        if self.letters is not None:
            return tuple(self.letters)
        return YES_NO if self.options is None else tuple(string.ascii_uppercase[: len(self.options)])

    @property
    def answer_label(self) -> str | None:
        """The candidate that the answer names; of an open question the answer itself."""
        if self.answer is None or self.task == OPEN:
            return self.answer
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
                examples.append(make_example(question, image, number))
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
                aliases=list(example.aliases) or None,
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
                **({"task": OPEN} if example.is_open else {}),
            )
            told = None if example.is_open else {"task"}  # else the options say it
            stream.write(question.model_dump_json(exclude_none=True, exclude=told) + "\n")


def _written(name: str, **values: Any) -> UserQuestion:
    try:
        return UserQuestion(**values)
    except ValidationError as error:
        raise UnpriorError(f"{name} cannot be written as a question: {describe_validation_error(error)}") from None


def make_example(question: UserQuestion, image: Path, number: int) -> Example:
    """The example of a question; without a name it is called by its line."""
    return Example(
        example_id=question.id or str(number),
        image=image,
        question=question.question,
        task=question.task,
        labels=question.labels,
        texts=None if question.options is None else tuple(question.options),
        answer=question.answer_label,
        aliases=tuple(question.aliases or ()),
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
