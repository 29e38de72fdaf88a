"""From the body of a request to what is asked: one image, and questions with the candidates of each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from unprior.serving.errors import refuse
from unprior.serving.schemas import (
    ChoiceQuestion,
    DecisionRequest,
    ImagePart,
    Message,
    OpenQuestion,
    PredicateQuestion,
    Question,
    ScoreQuestion,
    TextPart,
)
from unprior.serving.texts import MAX_NAME, MAX_QUESTION, check_candidates, check_text, check_tokens

Value = str | bool
_YES_NO = {"yes", "no"}


@dataclass(frozen=True, slots=True)
class Asked:
    """One question of a request."""

    kind: str
    """``choice``, ``predicate``, ``open`` or ``score``."""
    name: str | None
    question: str
    """With the text that came beside the image."""
    values: tuple[Value, ...]
    """What the candidates are called in replies; none for an open question."""
    options: tuple[str, ...] | None
    """Texts to choose from; None where the answer is yes or no, or open."""
    param: str = "questions"
    """Where it stands in the request."""
    no_first: bool = False
    """Whether replies tell of no before yes, as the request did; the model is asked for yes or no."""

    def value_of(self, place: int, label: str) -> Value:
        """What a reply calls a candidate, by its place and label."""
        return self.values[place] if self.values else label


def read_questions(request: DecisionRequest) -> tuple[str, list[Asked]]:
    """The address of the image, and the questions about it."""
    images, texts = _read_input(request.input)
    if not images:
        raise refuse('input: there is no image; add a part {"type": "input_image", …}', code="no_image", param="input")
    if len(images) > 1:
        told = f"input: {len(images):,} images; questions are about one image each, so send one request for each"
        raise refuse(told, code="too_many_images", param="input")
    context = "\n".join(texts)
    if context:
        check_text(context, "input", MAX_QUESTION)
        check_tokens(context, "input")
    return images[0], [_read(each, context, f"questions[{place}]") for place, each in enumerate(request.questions)]


def _read_input(messages: Sequence[Message]) -> tuple[list[str], list[str]]:
    images, texts = [], []
    for message in messages:
        parts = (
            [TextPart(type="input_text", text=message.content)] if isinstance(message.content, str) else message.content
        )
        for part in parts:
            if isinstance(part, ImagePart):
                images.append(part.image_url)
            elif part.text.strip():
                texts.append(part.text)
    return images, texts


def _read(question: Question, context: str, param: str) -> Asked:
    parts, place = question.instructions, f"{param}.instructions"
    own = parts if isinstance(parts, str) else "\n".join(part.text for part in parts)
    # What stands in the input counts, too.
    check_text(own, place, MAX_QUESTION - len(context))
    check_tokens(own, place)
    text = f"{context}\n{own}" if context else own
    if question.name is not None:
        check_text(question.name, f"{param}.name", MAX_NAME)
    match question:
        case ChoiceQuestion():
            return replace(_read_choice(question, text, f"{param}.choices"), param=place)
        case PredicateQuestion():
            return Asked("predicate", question.name, text, (True, False), None, place)
        case OpenQuestion():
            return Asked("open", question.name, text, (), None, place)
        case ScoreQuestion():
            return Asked("score", question.name, text, (), None, place)


def _read_choice(question: ChoiceQuestion, text: str, param: str) -> Asked:
    values = [choice.value for choice in question.choices]
    if any(choice.description for choice in question.choices):
        raise refuse(
            f"{param}: descriptions of choices are not shown to the model; put them into the values or the "
            f"instructions", code="descriptions", param=param,
        )  # fmt: skip
    return choice(question.name, text, values, param)


def choice(name: str | None, text: str, values: Sequence[Value], param: str) -> Asked:
    """A question with candidates; yes and no, or true and false, are asked for as such."""
    if len(values) == 2 and all(isinstance(value, bool) for value in values) and values[0] != values[1]:
        return Asked("choice", name, text, (True, False), None, no_first=not values[0])
    texts = [("true" if value else "false") if isinstance(value, bool) else value for value in values]
    check_candidates(texts, param)
    for place, each in enumerate(texts):
        check_tokens(each, f"{param}[{place}]")
    named = {each.strip().casefold(): value for each, value in zip(texts, values, strict=True)}
    if len(texts) == 2 and set(named) == _YES_NO:
        no_first = values[0] == named["no"]
        return Asked("choice", name, text, (named["yes"], named["no"]), None, no_first=no_first)
    return Asked("choice", name, text, tuple(values), tuple(each.strip() for each in texts))
