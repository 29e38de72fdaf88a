"""Chat completions that choose from given texts: the same questions in the shape that most clients know."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from unprior.serving.errors import RequestError, refuse
from unprior.serving.fields import CHAT, publish_fields
from unprior.serving.questions import Asked, choice
from unprior.serving.schemas import (
    CANDIDATES,
    FIRST,
    Candidate,
    ChoiceAnswer,
    Extras,
    ImageUrl,
    PredicateAnswer,
    RefusalAnswer,
    Role,
    ServedBy,
    Text,
    Usage,
)
from unprior.serving.texts import LINE_PATTERN, MAX_CANDIDATE, MAX_NAME, MAX_QUESTION, check_text, check_tokens

_REMEDY = 'give the candidates as structured_outputs={"choice": ["…", "…"]}, or as a response_format with one enum'


class _Taken(BaseModel):
    model_config = ConfigDict(strict=True, extra="ignore")


class ChatText(_Taken):
    """A piece of text."""

    type: Literal["text"]
    text: Text


class ChatUrl(_Taken):
    """Where the image is."""

    url: ImageUrl


class ChatImage(_Taken):
    """The image."""

    type: Literal["image_url"]
    image_url: ChatUrl


ChatPart = Annotated[ChatText | ChatImage, Field(discriminator="type")]


class ChatMessage(_Taken):
    """A message of the user."""

    role: Role
    content: Text | Annotated[list[ChatPart], FIRST]


class StructuredOutputs(_Taken):
    """What the answer may be."""

    choice: Annotated[list[Candidate], FIRST] = Field(description="Different candidates.", json_schema_extra=CANDIDATES)


_TEXT = {"type": "string", "minLength": 1, "maxLength": MAX_CANDIDATE, "pattern": LINE_PATTERN}
_ENUM: dict[str, Any] = {
    "type": "object",
    "required": ["enum"],
    "properties": {"enum": {"type": "array", "items": _TEXT} | CANDIDATES},
}
_NAMED = {"type": "object", "required": ["$ref"]}
_FIELD = {
    "type": "object",
    "minProperties": 1,
    "maxProperties": 1,
    "additionalProperties": {"anyOf": [_ENUM, _NAMED]},
}
_OBJECT = {"type": "object", "required": ["properties"], "properties": {"properties": _FIELD}}
_FORMAT = {
    "description": "Text, or JSON with one enum of texts: alone, or as the one field of an object.",
    "anyOf": [
        {"type": "null"},
        {"type": "object", "required": ["type"], "properties": {"type": {"const": "text"}}},
        {
            "type": "object",
            "required": ["type", "json_schema"],
            "properties": {
                "type": {"const": "json_schema"},
                "json_schema": {
                    "type": "object",
                    "required": ["schema"],
                    "properties": {"schema": {"anyOf": [_ENUM, _OBJECT]}},
                },
            },
        },
    ],
}


def _publish(schema: dict[str, Any]) -> None:
    """What is checked by :func:`read_chat`."""
    schema["properties"] |= publish_fields(CHAT) | {"response_format": _FORMAT}
    schema["anyOf"] = [
        {"required": ["structured_outputs"], "properties": {"structured_outputs": {"type": "object"}}},
        {
            "required": ["response_format"],
            "properties": {
                "response_format": {"required": ["json_schema"], "properties": {"type": {"const": "json_schema"}}}
            },
        },
    ]


class ChatRequest(BaseModel):
    """One question about one image, with the texts to choose from. Settings of sampling have no effect."""

    model_config = ConfigDict(strict=True, extra="allow", json_schema_extra=_publish)

    model: str
    messages: Annotated[list[ChatMessage], FIRST] = Field(min_length=1)
    structured_outputs: StructuredOutputs | None = None
    response_format: dict[str, Any] | None = None
    unprior: Extras = Extras()


class _Told(BaseModel):
    model_config = ConfigDict(extra="forbid")


class ChatAnswer(_Told):
    """What the model says."""

    role: Literal["assistant"] = "assistant"
    content: str
    refusal: None = None


class ChatChoice(_Told):
    """The one that there is."""

    index: Literal[0] = 0
    message: ChatAnswer
    finish_reason: Literal["stop"] = "stop"
    logprobs: None = None


class PromptTokens(_Told):
    """Of the prompt."""

    audio_tokens: int = 0
    cached_tokens: int = 0


class CompletionTokens(_Told):
    """Of the answer."""

    audio_tokens: int = 0
    reasoning_tokens: int = 0
    accepted_prediction_tokens: int = 0
    rejected_prediction_tokens: int = 0


class ChatUsage(_Told):
    """Tokens as the upstream server counts them; 0 for a model in this process."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    total_tokens: int = 0
    prompt_tokens_details: PromptTokens = PromptTokens()
    completion_tokens_details: CompletionTokens = CompletionTokens()


class ChatServedBy(ServedBy):
    """How a reply was made, and the answer as the decisions route gives it."""

    answer: ChoiceAnswer


class ChatReply(_Told):
    """A chat completion whose text is the chosen candidate, or the JSON that was asked for."""

    id: str
    object: Literal["chat.completion"] = "chat.completion"
    created: int
    model: str
    choices: list[ChatChoice] = Field(min_length=1, max_length=1)
    usage: ChatUsage = ChatUsage()
    unprior: ChatServedBy


def read_chat(request: ChatRequest) -> tuple[str, Asked, str | None]:
    """The image's address, the question, and the field of the JSON object that the answer goes into, if any."""
    images, texts = [], []
    for message in request.messages:
        parts = message.content
        for part in [ChatText(type="text", text=parts)] if isinstance(parts, str) else parts:
            if isinstance(part, ChatImage):
                images.append(part.image_url.url)
            else:
                texts.append(part.text)
    if not images:
        raise refuse("messages: there is no image; add an image_url part", code="no_image", param="messages")
    if len(images) > 1:
        raise refuse(f"messages: {len(images):,} images; ask about one", code="too_many_images", param="messages")
    values, field, param = _candidates(request)
    if field:
        check_text(field, param, MAX_NAME)
    text = check_text("\n".join(texts), "messages", MAX_QUESTION)
    check_tokens(text, "messages")
    return images[0], replace(choice(None, text, values, param), param="messages"), field


def _candidates(request: ChatRequest) -> tuple[Sequence[str], str | None, str]:
    """The texts, the field of a JSON object that the answer goes into (none where it stands alone), and their place."""
    form = request.response_format or {"type": "text"}
    if request.structured_outputs is not None:
        if form.get("type") != "text":
            told = "response_format: the candidates stand in structured_outputs already; give one of both"
            raise refuse(told, code="candidates", param="response_format")
        return request.structured_outputs.choice, None, "structured_outputs.choice"
    given = form.get("json_schema") if form.get("type") == "json_schema" else None
    schema = given.get("schema") if isinstance(given, dict) else None
    if isinstance(schema, dict):
        place = "response_format.json_schema.schema"
        if (found := _enum(schema, schema)) is not None:
            return found, "", f"{place}.enum"
        fields = schema.get("properties")
        if isinstance(fields, dict) and len(fields) == 1:
            ((name, inner),) = fields.items()
            if (found := _enum(inner, schema)) is not None:
                return found, str(name), place
    raise refuse(f"there are no candidates to choose from; {_REMEDY}", code="no_candidates", param="structured_outputs")


def _enum(part: Any, schema: dict[str, Any]) -> list[str] | None:
    """The texts that a part of a schema allows; it may name a definition, as clients write it for an Enum class."""
    if isinstance(part, dict) and isinstance(name := part.get("$ref"), str):
        known = schema.get("$defs")
        part = known.get(name.removeprefix("#/$defs/")) if isinstance(known, dict) else None
    found = part.get("enum") if isinstance(part, dict) else None
    return found if isinstance(found, list) and all(isinstance(each, str) for each in found) else None


def chat_reply(
    answer: ChoiceAnswer | PredicateAnswer | RefusalAnswer,
    field: str | None,
    request_id: str,
    model: str,
    served_by: ServedBy,
    usage: Usage,
) -> ChatReply:
    """The reply to a chat request."""
    if not isinstance(answer, ChoiceAnswer):
        told = answer.unprior.explanation if isinstance(answer, RefusalAnswer) else "no answer"
        raise RequestError(502, told, code="not_answered")
    text = str(answer.choice)
    if field is not None:
        text = json.dumps({field: text} if field else text, ensure_ascii=False)
    return ChatReply(
        id=f"chatcmpl-{request_id}",
        created=int(time.time()),
        model=model,
        choices=[ChatChoice(message=ChatAnswer(content=text))],
        usage=ChatUsage(
            prompt_tokens=usage.input_tokens,
            completion_tokens=usage.output_tokens,
            total_tokens=usage.total_tokens,
            prompt_tokens_details=PromptTokens(cached_tokens=usage.input_tokens_details.cached_tokens),
        ),
        unprior=ChatServedBy(**served_by.model_dump(), answer=answer),
    )
