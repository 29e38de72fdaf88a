"""Bodies of requests: strict JSON, checked against the published schema."""

from __future__ import annotations

import asyncio
import json
from contextlib import AsyncExitStack
from typing import Any, NoReturn, TypeVar

from pydantic import BaseModel, ValidationError
from starlette.requests import Request

from unprior.serving.errors import RequestError, refuse

Model = TypeVar("Model", bound=BaseModel)
_SMALL, _MAX_GROWING = 1 << 20, 2
_SHOWN = 80  # characters of a value in a message


class BodyReader:
    """Receives bodies. Of those whose size nobody told, few may grow at once, however many come."""

    def __init__(self) -> None:
        """Begin with nothing received."""
        self._turns = asyncio.Semaphore(_MAX_GROWING)

    async def read(self, request: Request) -> bytearray:
        """The body, as far as the route's limit allows."""
        body, waits = bytearray(), "content-length" not in request.headers
        async with AsyncExitStack() as stack:
            try:
                async for part in request.stream():
                    body += part
                    if waits and len(body) > _SMALL:
                        await stack.enter_async_context(self._turns)
                        waits = False
            except BaseException:
                body.clear()  # the exception itself would hold it until it is told
                raise
        return body


def read_json(body: bytes | bytearray) -> Any:
    """Read a body; doubled names, NaN and nesting without end are refused, for readers differ on what they mean.

    >>> read_json(b'{"a": [1, true]}')
    {'a': [1, True]}
    """
    try:
        return json.loads(body.decode(), object_pairs_hook=_without_doubles, parse_constant=_no_constant)
    except UnicodeDecodeError:
        raise refuse("the body is not valid UTF-8", code="invalid_json") from None
    except RecursionError:
        raise refuse("the body is nested too deeply", code="invalid_json") from None
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise refuse(f"the body is not valid JSON ({error.msg}, {place})", code="invalid_json") from None
    except ValueError as error:  # e.g. a number of more digits than Python converts
        raise refuse(f"the body is not valid JSON ({error})", code="invalid_json") from None


async def read_request(model: type[Model], body: bytes | bytearray) -> Model:
    """Read and check a body; a large one in a thread, so that others need not wait for it."""
    if len(body) <= _SMALL:
        return validate(model, read_json(body))
    return await asyncio.to_thread(lambda: validate(model, read_json(body)))


def validate(model: type[Model], content: Any) -> Model:
    """Check a body against its schema; the first fault is told with its place."""
    if not isinstance(content, dict):
        raise refuse("the body must be a JSON object", code="invalid_json")
    try:
        return model.model_validate(content)
    except ValidationError as error:
        raise _refused(error) from None


def _refused(error: ValidationError) -> RequestError:
    first = error.errors(include_url=False, include_context=False)[0]
    place = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in _place(first["loc"])).lstrip(".")
    got = first.get("input")
    shown = "" if isinstance(got, dict | list) or first["type"] == "missing" else f" (got {_shorten(got)})"
    message = str(first["msg"]).removeprefix("Value error, ")
    return refuse(f"{place or 'the body'}: {message}{shown}", code="invalid_request", param=place or None)


def _place(location: tuple[int | str, ...]) -> list[int | str]:
    """Without the names of alternatives, which are not in the request."""
    return [part for part in location if isinstance(part, int) or part.isidentifier()]


def _shorten(value: object) -> str:
    text = json.dumps(value, default=str)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def _without_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        seen: set[str] = set()
        double = next(name for name, _ in pairs if name in seen or seen.add(name))  # type: ignore[func-returns-value]
        raise refuse(f"the name {_shorten(double)} stands twice in one object", code="invalid_json")
    return found


def _no_constant(name: str) -> NoReturn:
    raise refuse(f"{name} is no JSON number", code="invalid_json")
