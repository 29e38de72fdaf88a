"""What REVIS learns from: true and hallucinated captions, and questions about what is in an image."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from PIL import Image
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from unprior._files import is_file, open_to_read, parse_json, read_lines
from unprior._validation import describe_validation_error
from unprior.benchmarks.microworld import SELECTION_SEEDS, pairs, render
from unprior.benchmarks.microworld.benchmark import IMAGE_SIZE, presence_question
from unprior.benchmarks.microworld.pairs import SIDES, Pair
from unprior.errors import InvalidScoresError, RowProblem, UnpriorError
from unprior.images import open_image, read_image_file

MAX_CAPTIONS = 100
MAX_QUESTIONS = 300
WORLD = SELECTION_SEEDS[900]
"""The world that the embedded model's vectors come from; no benchmark reports on it."""

Text = Annotated[str, Field(min_length=1)]


@dataclass(frozen=True, slots=True, eq=False)
class CaptionExample:
    """An image, what it shows, and what it does not."""

    image: Path | Image.Image
    caption: str
    """True of the image."""
    hallucinated: str
    """Not true of the image, as a model that does not look might write it."""


@dataclass(frozen=True, slots=True, eq=False)
class PresenceExample:
    """A yes/no question about what is in an image."""

    image: Path | Image.Image
    question: str
    answer: str
    """The truth: yes or no."""


@dataclass(frozen=True, slots=True, eq=False)
class RevisData:
    """Captions to extract directions from, and questions to choose layer and threshold by.

    >>> RevisData((), (), "nothing.jsonl")
    Traceback (most recent call last):
        ...
    unprior.errors.UnpriorError: nothing.jsonl: no captions; REVIS needs captions and presence questions
    """

    captions: tuple[CaptionExample, ...]
    questions: tuple[PresenceExample, ...]
    source: str
    """Where they come from, for people."""

    def __post_init__(self) -> None:
        """Refuse data that nothing can be learned from."""
        for name, examples in (("captions", self.captions), ("presence questions", self.questions)):
            if not examples:
                raise UnpriorError(f"{self.source}: no {name}; REVIS needs captions and presence questions")

    @property
    def digest(self) -> str:
        """Changes with every text and every image."""
        digest = hashlib.sha256()
        for caption in self.captions:
            _add(digest, caption.image, [caption.caption, caption.hallucinated])
        for question in self.questions:
            _add(digest, question.image, [question.question, question.answer])
        return digest.hexdigest()


def loaded_image(image: Path | Image.Image) -> Image.Image:
    """The image itself, read from its file if need be."""
    return open_image(image) if isinstance(image, Path) else image


def microworld_data(captions: int = MAX_CAPTIONS, questions: int = MAX_QUESTIONS) -> RevisData:
    """Examples for the embedded model, drawn in memory; fewer than usual are spread over the same world.

    Captions belong to counterfactual images; the hallucinated one describes the ordinary state of the same thing.
    Half of the presence questions ask for things that are not there.
    """
    world = list(pairs(WORLD))
    # A third of the pairs, then from the next world half of them: odd and even numbers alike, because they decide
    # which of the two images is asked for something absent.
    shown = _spread(world[::3], captions)
    asked = _spread([pair for pair in pairs(WORLD + 1) if pair.number % 4 < 2], questions // 2)
    return RevisData(
        tuple(CaptionExample(_draw(pair, "cf"), pair.caption("cf"), pair.caption("cs")) for pair in shown),
        tuple(_ask(pair, side) for pair in asked for side in SIDES),
        f"microworld, worlds {WORLD} and {WORLD + 1}",
    )


def read_revis_data(path: Path) -> RevisData:
    """Read captions and presence questions from JSON lines; every invalid line is named.

    A line is ``{"image": "a.jpg", "caption": "…", "hallucinated": "…"}`` or ``{"image": "a.jpg", "question": "Is there
    a cat in the image?", "answer": "no"}``; images are found relative to the file. Of many lines the first 100 captions
    and the first 300 questions are used.
    """
    captions: list[CaptionExample] = []
    questions: list[PresenceExample] = []
    problems: list[RowProblem] = []
    total = 0
    with open_to_read(path) as stream:
        for number, line in read_lines(stream, path):
            total += 1
            try:
                parsed = _parse(line)
            except ValidationError as error:
                problems.append(RowProblem(number, describe_validation_error(error)))
                continue
            image = path.parent / parsed.image
            if not is_file(image):
                problems.append(RowProblem(number, f"image: there is no {image}; paths are relative to the file"))
            elif isinstance(parsed, _CaptionLine):
                captions.append(CaptionExample(image, parsed.caption, parsed.hallucinated))
            else:
                questions.append(PresenceExample(image, parsed.question, parsed.answer))
    if problems:
        raise InvalidScoresError(str(path), total, tuple(problems), skippable=False)
    return RevisData(tuple(captions[:MAX_CAPTIONS]), tuple(questions[:MAX_QUESTIONS]), str(path))


class _Line(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")

    image: Text


class _CaptionLine(_Line):
    caption: Text
    hallucinated: Text

    @model_validator(mode="after")
    def _differ(self) -> _CaptionLine:
        if self.caption == self.hallucinated:
            raise ValueError("caption and hallucinated are the same; one must be wrong about the image")
        return self


class _PresenceLine(_Line):
    question: Text
    answer: Literal["yes", "no"]


def _parse(line: bytes) -> _CaptionLine | _PresenceLine:
    """A line is of the kind whose fields it has; one that is no JSON at all is refused by either."""
    try:
        keys = parse_json(line)
    except ValueError:
        keys = {}
    asks = isinstance(keys, dict) and bool({"question", "answer"} & set(keys))
    return (_PresenceLine if asks else _CaptionLine).model_validate_json(line)


def _draw(pair: Pair, side: str) -> Image.Image:
    return render(pair.concept, pair.state(side), pair.seed, size=IMAGE_SIZE)


def _ask(pair: Pair, side: str) -> PresenceExample:
    name, there = pair.presence(side)
    return PresenceExample(_draw(pair, side), presence_question(name), "yes" if there else "no")


def _spread(chosen: Sequence[Pair], count: int) -> list[Pair]:
    """So many of them, evenly spaced: pairs stand in the order of their subcategories."""
    if not 0 < count <= len(chosen):
        raise UnpriorError(f"between 1 and {len(chosen)} pairs can be drawn, not {count}")
    return [chosen[index * len(chosen) // count] for index in range(count)]


def _add(digest: hashlib._Hash, image: Path | Image.Image, texts: list[str]) -> None:
    content = read_image_file(image) if isinstance(image, Path) else image.tobytes()
    digest.update(json.dumps([*texts, len(content)]).encode())
    digest.update(content)
