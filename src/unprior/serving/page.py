"""The page at ``/``: one template, one script, one stylesheet, nothing from elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import BaseRoute, Route

from unprior._version import __version__
from unprior.serving.examples import Example, draw_example, page_examples

if TYPE_CHECKING:
    from unprior.serving.calibrators import NamedCalibrator
    from unprior.serving.service import Service

_ASSETS = {"page.css": "text/css"} | dict.fromkeys(("page.js", "answer.js", "lambda.js"), "text/javascript")
_FORM_BYTES = 64 << 10
"""Of a request without its image, at most: a question and its candidates."""
_STATUS = {
    "observe": (
        "This server observes.",
        "The model's own answers go out; what the calibrator would change is only shown (--mode enforce changes it).",
    ),
    "enforce": ("This server enforces.", "Where the calibrator changes an answer, the changed one goes out."),
    "none": ("There is no calibrator.", "The model's own answers go out; move λ to see what subtraction would do."),
}
_KINDS = {"choice": "choice", "predicate": "yes or no", "open": "own words"}
_MARKS = {"repaired": "✓", "harmed": "✗", "kept": "="}


def page_routes(service: Service) -> list[BaseRoute]:
    """Routes of the page and what it loads."""
    examples = page_examples(service.backend.engine.name)
    page, drawn = _render(service, examples), {str(place): each for place, each in enumerate(examples)}

    async def home(_: Request) -> Response:
        return HTMLResponse(page)

    async def asset(request: Request) -> Response:
        name = request.path_params["name"]
        if name not in _ASSETS:
            raise HTTPException(404)
        return Response(_asset(name), media_type=_ASSETS[name], headers={"Cache-Control": "no-cache"})

    async def example(request: Request) -> Response:
        found = drawn.get(request.path_params["place"])
        if found is None:
            raise HTTPException(404)
        return Response(draw_example(found), media_type="image/png")

    return [Route("/", home), Route("/assets/{name}", asset), Route("/examples/{place}.png", example)]


@cache
def _asset(name: str) -> bytes:
    return files("unprior.serving").joinpath("assets", name).read_bytes()


def _render(service: Service, examples: Sequence[Example]) -> str:
    from jinja2 import Environment, StrictUndefined

    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    engine, settings = service.backend.engine, service.settings
    known = list(service.calibrators.known.values())
    status, words = _STATUS[settings.mode if known else "none"]
    if len(known) == 1:
        words = f"{words} Calibrator: {known[0].name} ({_describe(known[0])})."
    return environment.from_string(_asset("page.html.j2").decode()).render(
        model=engine.name,
        needs_key=bool(settings.keys),
        status=status,
        status_words=words,
        calibrators=[{"name": each.name, "words": _describe(each)} for each in known],
        proposes=engine.capabilities.proposes,
        max_bytes=min(settings.image.max_bytes, settings.max_body * 3 // 4 - _FORM_BYTES),
        version=__version__,
        kinds=_KINDS,
        marks=_MARKS,
        examples=[each.record() | {"image": f"examples/{place}.png"} for place, each in enumerate(examples)],
    )


def _describe(named: NamedCalibrator) -> str:
    fitted = named.calibrator
    return f"{fitted.parameters.version}, ε = {fitted.epsilon_cs:g}"
