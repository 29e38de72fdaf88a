"""The published description of the API, made from the schemas that requests and replies are checked against."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from unprior._version import __version__
from unprior.serving.chat import ChatReply, ChatRequest
from unprior.serving.guard import OPEN_ROUTES
from unprior.serving.schemas import (
    CalibratorList,
    DecisionReply,
    DecisionRequest,
    ErrorReply,
    ModelList,
    Status,
    Version,
)

_JSON = "application/json"
_ABOUT = (
    "Answers about images, corrected for what the model would say without them. Errors of all routes have the shape of "
    "ErrorReply: unknown paths get 404, other methods 405."
)
_ERRORS = {
    400: "The request must be changed; the message says how.", 401: "The key is missing or wrong.",
    403: "A page of another origin asked.", 404: "There is nothing of that name.",
    408: "The body did not arrive in time.",
    413: "The body is too large.", 429: "Too many requests wait; Retry-After says when to come back.",
    500: "Something went wrong inside the server.", 502: "The model could not be asked.",
    503: "The model cannot be asked.", 504: "No answer before the deadline.",
}  # fmt: skip
_EVERYWHERE, _ASKING = (400, 403, 413, 500), (404, 408, 429, 502, 504)
_HEADERS = {
    429: {"Retry-After": {"description": "Seconds.", "schema": {"type": "integer"}}},
    401: {"WWW-Authenticate": {"schema": {"const": "Bearer"}}},
}
_DECIDED = {
    "x-unprior-decision": {"description": "What was done with the answers.", "schema": {"type": "string"}},
    "x-unprior-reason": {"description": "Why nothing was decided.", "schema": {"type": "string"}},
}
_ID = {"x-request-id": {"description": "Of this request.", "schema": {"type": "string", "pattern": "^[0-9a-f]{16}$"}}}
# A grey square, so that the examples can be sent as they are.
_IMAGE = (
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAEgAAABICAAAAABwhuybAAAALklEQVR42u3MMQEAAAgDoGlyo1vA0xMCUJMfHZFI"
    "JBKJRCKRSCQSiUQikUgkOi0fOAEQaPqN2gAAAABJRU5ErkJggg=="
)
_MODELS: list[tuple[type[BaseModel], Any]] = [
    (DecisionRequest, "validation"), (ChatRequest, "validation"), (DecisionReply, "serialization"),
    (ChatReply, "serialization"), (ModelList, "serialization"), (CalibratorList, "serialization"),
    (Status, "serialization"), (Version, "serialization"), (ErrorReply, "serialization"),
]  # fmt: skip


def openapi(model: str, calibrators: Sequence[str], *, examples: int = 0, with_key: bool = False) -> dict[str, Any]:
    """An OpenAPI 3.1 document of one server: its model, its calibrators, its page, and whether it wants a key."""
    _, schemas = models_json_schema(_MODELS, ref_template="#/components/schemas/{model}")
    known = schemas["$defs"]
    for request in (DecisionRequest, ChatRequest):
        known[request.__name__]["properties"]["model"] |= {"enum": [model]}
    known["Extras"]["properties"]["calibrator"] |= {"anyOf": [{"enum": [*calibrators, None]}]}
    return {
        "openapi": "3.1.0",
        "info": {"title": "unprior", "version": __version__, "description": _ABOUT},
        "paths": _paths(model, examples, with_key=with_key),
        "components": {
            "schemas": known,
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}} if with_key else {},
        },
    }


def _paths(model: str, examples: int, *, with_key: bool) -> dict[str, Any]:
    name = {"name": "name", "in": "path", "required": True, "schema": {"enum": ["page.css", "page.js"]}}
    places = {"enum": [str(place) for place in range(examples)]}
    place = {"name": "place", "in": "path", "required": True, "schema": places}
    found: dict[str, dict[str, Any]] = {
        "/v1/decisions": _post("Decide questions about an image", DecisionRequest, DecisionReply, _asked(model)),
        "/v1/chat/completions": _post("Choose from given texts", ChatRequest, ChatReply, _chatted(model)),
        "/v1/models": _get("The model of this server", ModelList),
        "/v1/calibrators": _get("Its calibrators", CalibratorList),
        "/health": _get("Whether the server runs", Status),
        "/ready": _get("Whether it can answer", Status),
        "/version": _get("Its version", Version),
        "/metrics": _get("Counts for Prometheus", media="text/plain"),
        "/openapi.json": _get("This description"),
        "/": _get("A page to ask by hand", media="text/html"),
        "/assets/{name}": _get("What the page loads", media=("text/css", "text/javascript"), parameters=[name]),
    }
    if examples:
        found["/examples/{place}.png"] = _get("An image of the page", media="image/png", parameters=[place])
    found["/ready"]["get"]["responses"]["503"] = _body(_ERRORS[503], _ref(Status))
    for path, methods in found.items():
        for operation in methods.values():
            if with_key and path not in OPEN_ROUTES:
                operation["security"] = [{"key": []}]
                operation["responses"]["401"] = _error(401)
    return found


def _post(summary: str, request: type[BaseModel], reply: type[BaseModel], example: dict[str, Any]) -> dict[str, Any]:
    answered = _body("The answers.", _ref(reply))
    answered["headers"] |= _DECIDED
    taken = {_JSON: {"schema": _ref(request), "examples": {"one question": {"value": example}}}}
    return {
        "post": {
            "summary": summary,
            "requestBody": {"required": True, "content": taken},
            "responses": {"200": answered} | {str(status): _error(status) for status in (*_EVERYWHERE, *_ASKING)},
        }
    }


def _get(
    summary: str,
    reply: type[BaseModel] | None = None,
    media: str | tuple[str, ...] = _JSON,
    parameters: Sequence[dict[str, Any]] = (),
) -> dict[str, Any]:
    plain: dict[str, Any] = {"type": "object"} if media == _JSON else {"type": "string"}
    schema = {} if media == "image/png" else plain if reply is None else _ref(reply)
    errors = (*_EVERYWHERE, 404) if parameters else _EVERYWHERE
    responses = {"200": _body(summary, schema, media)} | {str(status): _error(status) for status in errors}
    return {
        "get": {"summary": summary, "responses": responses} | ({"parameters": list(parameters)} if parameters else {})
    }


def _error(status: int) -> dict[str, Any]:
    found = _body(_ERRORS[status], _ref(ErrorReply))
    return found | {"headers": found["headers"] | _HEADERS.get(status, {})}


def _ref(model: type[BaseModel]) -> dict[str, Any]:
    return {"$ref": f"#/components/schemas/{model.__name__}"}


def _body(
    description: str, schema: dict[str, Any], media: str | tuple[str, ...] = "application/json"
) -> dict[str, Any]:
    kinds = (media,) if isinstance(media, str) else media
    return {"description": description, "headers": dict(_ID), "content": {kind: {"schema": schema} for kind in kinds}}


def _asked(model: str) -> dict[str, Any]:
    choices = [{"value": "4"}, {"value": "5"}]
    return {
        "model": model,
        "input": [{"role": "user", "content": [{"type": "input_image", "image_url": _IMAGE}]}],
        "questions": [{"type": "choice", "instructions": "How many legs?", "choices": choices}],
    }


def _chatted(model: str) -> dict[str, Any]:
    content = [{"type": "text", "text": "How many legs?"}, {"type": "image_url", "image_url": {"url": _IMAGE}}]
    return {
        "model": model,
        "messages": [{"role": "user", "content": content}],
        "structured_outputs": {"choice": ["4", "5"]},
    }
