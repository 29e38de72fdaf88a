"""The routes of a server."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from unprior._version import __version__
from unprior.serving.chat import ChatRequest, chat_reply, read_chat
from unprior.serving.documents import read_request
from unprior.serving.errors import RequestError
from unprior.serving.examples import page_examples
from unprior.serving.fields import CHAT, THINKING, check_fields
from unprior.serving.guard import Guard
from unprior.serving.openapi import openapi
from unprior.serving.page import page_routes
from unprior.serving.questions import read_questions
from unprior.serving.replies import decision_name, reply_to
from unprior.serving.schemas import (
    CalibratorList,
    CalibratorRecord,
    DecisionReply,
    DecisionRequest,
    ModelList,
    ServedModel,
    Status,
    Version,
)
from unprior.serving.service import Decided, Origin, Service

_LOGGER = logging.getLogger("unprior.serve")
Handler = Callable[[Request], Awaitable[Response]]


def build_app(service: Service) -> Starlette:
    """An ASGI application for a service."""

    @contextlib.asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        yield
        await service.close()

    asking: dict[str, Any] = {"methods": ["POST"], "max_body_size": service.settings.max_body}
    routes: list[BaseRoute] = [
        Route("/v1/decisions", _counted(service, "decisions", _decisions(service)), **asking),
        Route("/v1/chat/completions", _counted(service, "chat", _chat(service)), **asking),
        Route("/v1/models", _models(service)),
        Route("/v1/calibrators", _calibrators(service)),
        Route("/health", _health),
        Route("/ready", _ready(service)),
        Route("/version", _version),
        Route("/metrics", _metrics(service)),
        Route("/openapi.json", _openapi(service)),
        *page_routes(service),
    ]
    return Starlette(
        routes=routes,
        lifespan=lifespan,
        middleware=[Middleware(Guard, settings=service.settings)],
        exception_handlers={
            RequestError: _told,
            HTTPException: _http,
            ClientDisconnect: _left,
            Exception: _fault,
        },
    )


def _counted(service: Service, name: str, handler: Handler) -> Handler:
    """Count a route's requests and their time; take part in the queue."""

    async def handle(request: Request) -> Response:
        started, status, arrives = time.perf_counter(), 500, False
        service.metrics.inside.inc()
        try:
            async with service.admission.slot() as ends:
                request.state.ends, arrives = ends, True
                request.state.body = await service.bodies.read(request)
                arrives = False
                response = await _unless_disconnected(request, handler)
            status = response.status_code
            return response
        except RequestError as error:
            if error.status == 504 and arrives:
                told = f"the request did not arrive within {service.settings.deadline:g} seconds"
                error = RequestError(408, told, code="request_timeout", headers={"Connection": "close"})
            status = error.status
            raise error from None
        except HTTPException as error:
            status = error.status_code
            raise
        except ClientDisconnect:
            status = 499
            return Response(status_code=status)  # to nobody
        finally:
            service.metrics.inside.dec()
            service.metrics.requests.labels(name, str(status)).inc()
            service.metrics.seconds.labels(name).observe(time.perf_counter() - started)

    return handle


async def _unless_disconnected(request: Request, handler: Handler) -> Response:
    """Handle a request that has arrived, and give up as soon as its client leaves."""
    work = asyncio.ensure_future(handler(request))
    gone = asyncio.ensure_future(_disconnected(request))
    try:
        await asyncio.wait({work, gone}, return_when=asyncio.FIRST_COMPLETED)
        if work.done():
            return work.result()
        raise ClientDisconnect
    finally:
        for task in (work, gone):
            task.cancel()
        with contextlib.suppress(asyncio.CancelledError, Exception):
            await work


async def _disconnected(request: Request) -> None:
    # Nothing but the end of the connection can be received after the body.
    while (await request.receive())["type"] != "http.disconnect":
        pass


def _decisions(service: Service) -> Handler:
    async def handle(request: Request) -> Response:
        asked = await read_request(DecisionRequest, request.state.body)
        service.check_model(asked.model)
        ignored = check_fields(asked.model_extra or {}, THINKING)
        url, questions = read_questions(asked)
        decided = await service.decide(url, questions, asked.unprior.calibrator, _origin(request), "input")
        served_by = decided.served_by(service.settings.mode)
        served_by.ignored = ignored
        answers = [reply_to(each, enforce=service.enforce, explain=asked.unprior.explain) for each in decided.outcomes]
        reply = DecisionReply(model=asked.model, answers=answers, usage=decided.usage, unprior=served_by)
        return JSONResponse(reply.model_dump(), headers=_decision_header(service, decided))

    return handle


def _chat(service: Service) -> Handler:
    async def handle(request: Request) -> Response:
        asked = await read_request(ChatRequest, request.state.body)
        service.check_model(asked.model)
        ignored = check_fields(asked.model_extra or {}, CHAT)
        url, question, field = read_chat(asked)
        decided = await service.decide(url, [question], asked.unprior.calibrator, _origin(request), "messages")
        answer = reply_to(decided.outcomes[0], enforce=service.enforce, explain=asked.unprior.explain)
        served_by = decided.served_by(service.settings.mode)
        served_by.ignored = ignored
        reply = chat_reply(answer, field, request.state.request_id, asked.model, served_by, decided.usage)
        return JSONResponse(reply.model_dump(), headers=_decision_header(service, decided))

    return handle


def _origin(request: Request) -> Origin:
    state = request.state
    return Origin(state.caller, state.request_id, state.ends)


def _decision_header(service: Service, decided: Decided) -> dict[str, str]:
    names = [decision_name(each, enforce=service.enforce) for each in decided.outcomes]
    headers = {"x-unprior-decision": ",".join(dict.fromkeys(names))}
    reasons = [each.reason for each in decided.outcomes if each.reason is not None]
    return headers | ({"x-unprior-reason": ",".join(dict.fromkeys(reasons))} if reasons else {})


def _models(service: Service) -> Handler:
    async def handle(_: Request) -> Response:
        return JSONResponse(ModelList(data=[ServedModel(id=service.backend.engine.name)]).model_dump())

    return handle


def _calibrators(service: Service) -> Handler:
    async def handle(_: Request) -> Response:
        known = [CalibratorRecord(**each.record()) for each in service.calibrators.known.values()]
        return JSONResponse(CalibratorList(data=known).model_dump())

    return handle


async def _health(_: Request) -> Response:
    return JSONResponse(Status(status="ok").model_dump())


def _ready(service: Service) -> Handler:
    async def handle(_: Request) -> Response:
        problem = await service.ready()
        told = Status(status="ok" if problem is None else problem)
        return JSONResponse(told.model_dump(), 200 if problem is None else 503)

    return handle


async def _version(_: Request) -> Response:
    return JSONResponse(Version(version=__version__).model_dump())


def _metrics(service: Service) -> Handler:
    async def handle(_: Request) -> Response:
        return Response(service.metrics.text(), media_type="text/plain; version=0.0.4")

    return handle


def _openapi(service: Service) -> Handler:
    name = service.backend.engine.name
    described = openapi(
        name,
        list(service.calibrators.known),
        examples=len(page_examples(name)),
        with_key=service.settings.key is not None,
    )

    async def handle(_: Request) -> Response:
        return JSONResponse(described)

    return handle


async def _told(_: Request, error: Exception) -> Response:
    assert isinstance(error, RequestError)
    return JSONResponse(error.body(), error.status, headers=error.headers)


async def _http(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    code = {404: "not_found", 405: "method_not_allowed", 413: "body_too_large"}.get(error.status_code, "error")
    told = RequestError(error.status_code, str(error.detail), code=code)
    # The rest of a body that is too large is not read.
    headers = {"Connection": "close"} if error.status_code == 413 else error.headers
    return JSONResponse(told.body(), error.status_code, headers=headers)


async def _left(_: Request, __: Exception) -> Response:
    return Response(status_code=499)  # nobody reads it


async def _fault(request: Request, error: Exception) -> Response:
    name = getattr(request.state, "request_id", "")
    _LOGGER.error("request %s failed", name, exc_info=error)
    told = RequestError(500, "something went wrong inside the server; its log has the cause", code="internal_error")
    body: dict[str, Any] = told.body()
    return JSONResponse(body, 500)
