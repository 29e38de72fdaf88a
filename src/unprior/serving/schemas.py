"""Requests and replies of the API, as they are published at ``/openapi.json``."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StrictBool, StrictStr

from unprior.serving.fields import THINKING, publish_fields
from unprior.serving.images import URL_PATTERN
from unprior.serving.settings import Mode
from unprior.serving.texts import (
    FILLED_PATTERN,
    LINE_PATTERN,
    MAX_CANDIDATE,
    MAX_CANDIDATES,
    MAX_NAME,
    MAX_QUESTION,
    TEXT_PATTERN,
)

MAX_QUESTIONS = 400
DecisionName = Literal["revised", "kept", "would_revise"]
PriorCached = Literal["hit", "miss", "partial", "none"]
"""Whether the priors of a request were kept from before."""


class _Taken(BaseModel):
    """A part of a request; fields that other servers know are passed over."""

    model_config = ConfigDict(strict=True, extra="ignore")


class _Own(BaseModel):
    """A part of a request that only this server knows: what it does not know is a mistake."""

    model_config = ConfigDict(strict=True, extra="forbid")


def _published(**schema: Any) -> Any:
    """A field that is checked by :mod:`unprior.serving.questions`, which tells more; clients read the rule here."""
    return Field(json_schema_extra=schema)


Text = Annotated[str, _published(maxLength=MAX_QUESTION, pattern=TEXT_PATTERN)]
"""May be empty; without characters that cannot be seen."""
FilledText = Annotated[str, _published(minLength=1, maxLength=MAX_QUESTION, pattern=FILLED_PATTERN)]
Name = Annotated[str, _published(minLength=1, maxLength=MAX_NAME, pattern=FILLED_PATTERN)]
Candidate = Annotated[StrictStr, _published(minLength=1, maxLength=MAX_CANDIDATE, pattern=LINE_PATTERN)]
CANDIDATES: dict[str, Any] = {"minItems": 2, "maxItems": MAX_CANDIDATES, "uniqueItems": True}
FIRST = Field(fail_fast=True)
"""A list is wrong with its first wrong element: the others may be millions."""
ImageUrl = Annotated[
    str,
    Field(
        description="data:image/png;base64,… with a PNG, JPEG, WEBP or GIF image, or its address at an allowed host.",
        json_schema_extra={"pattern": URL_PATTERN},
    ),
]


def _only_user(role: Any) -> Any:
    if role in ("system", "developer"):
        raise ValueError(
            "calibrators belong to one prompt; put the text into a message of the user, or start the server with "
            "--system"
        )
    if role in ("assistant", "tool", "function"):
        raise ValueError("questions are asked without a conversation before them; send messages of the user alone")
    return role


Role = Annotated[Literal["user"], BeforeValidator(_only_user)]


class TextPart(_Taken):
    """A piece of text."""

    type: Literal["input_text"]
    text: Text


class ImagePart(_Taken):
    """The image."""

    type: Literal["input_image"]
    image_url: ImageUrl


Part = Annotated[TextPart | ImagePart, Field(discriminator="type")]


class Message(_Taken):
    """A message of the user."""

    role: Role
    content: Text | Annotated[list[Part], FIRST]
    type: Literal["message"] = "message"


Instructions = Annotated[
    FilledText | Annotated[list[TextPart], FIRST, _published(minItems=1)], Field(description="The question.")
]


class Choice(_Taken):
    """One of the candidates."""

    value: Candidate | StrictBool
    description: str | None = Field(
        default=None, description="None: the model would not see it.", json_schema_extra={"maxLength": 0}
    )


class ChoiceQuestion(_Taken):
    """Which of the choices is right?"""

    type: Literal["choice"]
    instructions: Instructions
    choices: Annotated[list[Choice], FIRST] = Field(description="Different candidates.", json_schema_extra=CANDIDATES)
    name: Name | None = None


class PredicateQuestion(_Taken):
    """Is it so? Answered by yes or no."""

    type: Literal["predicate"]
    instructions: Instructions
    name: Name | None = None


class Level(_Taken):
    """A level of a score."""

    label: str
    description: str | None = None


class ScoreQuestion(_Taken):
    """How much? Not answered by this server: its answer is a refusal."""

    type: Literal["score"]
    instructions: Instructions
    levels: Annotated[list[Level], FIRST]
    name: Name | None = None


class OpenQuestion(_Taken):
    """A question without candidates; the model proposes them. Only this server knows the type."""

    type: Literal["open"]
    instructions: Instructions
    name: Name | None = None


Question = Annotated[ChoiceQuestion | PredicateQuestion | ScoreQuestion | OpenQuestion, Field(discriminator="type")]


class Extras(_Own):
    """What can be asked of this server beside OpenAI's fields."""

    calibrator: str | None = Field(default=None, description="Name of a calibrator, see /v1/calibrators.")
    explain: bool = Field(default=True, description="Whether answers come with scores and a sentence.")


def _publish(schema: dict[str, Any]) -> None:
    schema["properties"] |= publish_fields(THINKING)


def _no_text_alone(given: Any) -> Any:
    if isinstance(given, str):
        raise ValueError('there is no image; give messages with a part {"type": "input_image", …}')
    return given


class DecisionRequest(BaseModel):
    """Questions about one image. Fields of other servers have no effect; the reply names them."""

    model_config = ConfigDict(strict=True, extra="allow", json_schema_extra=_publish)

    model: str
    input: Annotated[list[Message], FIRST, BeforeValidator(_no_text_alone)] = Field(min_length=1)
    questions: Annotated[list[Question], FIRST] = Field(min_length=1, max_length=MAX_QUESTIONS)
    unprior: Extras = Extras()


class _Told(BaseModel):
    """A part of a reply."""

    model_config = ConfigDict(extra="forbid")


class CandidateRecord(_Told):
    """A candidate and its scores."""

    value: str | bool
    with_image: float
    without_image: float | None
    corrected: float | None


class CandidateMass(_Told):
    """The model's probability of all candidates together."""

    with_image: float | None
    without_image: float | None


class Explained(_Told):
    """What was decided about an answer, and why."""

    decision: DecisionName
    original: str | bool | None
    proposal: str | bool | None = None
    reason: str
    strength: float | None = None
    stable_range: tuple[float, float | None] | None = Field(
        default=None, description="Strengths between which the proposal stays first; null is without end."
    )
    margin: float | None = None
    clip: float | None = Field(
        default=None, description="Scores without the image count as no lower than so many nats below their best."
    )
    temperature: float | None = Field(
        default=None, description="Scores are divided by it before they become probabilities; 1 for given candidates."
    )
    candidate_mass: CandidateMass | None = None
    candidates: list[CandidateRecord] | None = None
    explanation: str | None = None


class Probability(_Told):
    """Of one candidate."""

    value: str | bool
    probability: float


class ChoiceAnswer(_Told):
    """The chosen candidate; it is the one with the largest probability."""

    type: Literal["choice"] = "choice"
    name: str | None
    choice: str | bool
    confidence: float = Field(description="Lead over the next candidate, in probability. It was not calibrated.")
    probabilities: list[Probability]
    unprior: Explained


class PredicateAnswer(_Told):
    """The probability of yes; above one half, the answer is yes."""

    type: Literal["predicate"] = "predicate"
    name: str | None
    probability: float
    unprior: Explained


class Refused(_Told):
    """Why there is no answer."""

    reason: str
    explanation: str


class RefusalAnswer(_Told):
    """A question that cannot be answered."""

    type: Literal["refusal"] = "refusal"
    name: str | None
    unprior: Refused


class InputTokens(_Told):
    """Of the prompts."""

    cached_tokens: int = 0
    cache_write_tokens: int = 0


class OutputTokens(_Told):
    """Of the answers."""

    reasoning_tokens: int = 0


class Usage(_Told):
    """Tokens as the upstream server counts them; 0 for a model in this process."""

    input_tokens: int = 0
    input_tokens_details: InputTokens = InputTokens()
    output_tokens: int = 0
    output_tokens_details: OutputTokens = OutputTokens()
    total_tokens: int = 0


class ServedBy(_Told):
    """How a reply was made."""

    calibrator: str | None = Field(description="Name of the calibrator.")
    calibrator_digest: str | None
    mode: Mode
    prior_cache: PriorCached
    upstream_calls: int = Field(description="Times that the model behind was asked; 0 for one in this process.")
    seconds: float
    ignored: list[str] = Field(default=[], description="Fields of the request that have no effect.")


class DecisionReply(_Told):
    """One answer per question, in order."""

    model: str
    answers: list[Annotated[ChoiceAnswer | PredicateAnswer | RefusalAnswer, Field(discriminator="type")]]
    usage: Usage
    unprior: ServedBy


class ServedModel(_Told):
    """The model of this server."""

    id: str
    object: Literal["model"] = "model"
    created: int = 0
    owned_by: Literal["unprior"] = "unprior"


class ModelList(_Told):
    """There is one."""

    object: Literal["list"] = "list"
    data: list[ServedModel]


class CalibratorRecord(_Told):
    """A calibrator and what is promised of it."""

    id: str
    object: Literal["calibrator"]
    digest: str = Field(description="Of its file.")
    version: str
    epsilon_cs: float
    retention: str
    candidate_counts: list[int]
    promise: str | None
    caveats: list[str] = Field(description="What differs from how it was fitted, or is not known.")
    provenance: list[dict[str, Any]]


class CalibratorList(_Told):
    """The first one decides unless a request names another."""

    object: Literal["list"] = "list"
    data: list[CalibratorRecord]


class Status(_Told):
    """``ok``, or what is wrong."""

    status: str


class Version(_Told):
    """Of unprior."""

    version: str


class ErrorDetail(_Told):
    """What went wrong, and what to do."""

    message: str
    type: str
    param: str | None = Field(description="The field at fault.")
    code: str = Field(description="A short name for programs.")


class ErrorReply(_Told):
    """In the shape of OpenAI's errors."""

    error: ErrorDetail
