"""A real server with the embedded model, and requests to it."""

from __future__ import annotations

import base64
import io
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest
from PIL import Image

from unprior.benchmarks.microworld import microworld
from unprior.benchmarks.schema import Benchmark
from unprior.engines.load import load_engine
from unprior.engines.protocol import Engine
from unprior.serving.backend import Backend, LocalBackend
from unprior.serving.calibrators import Calibrators
from unprior.serving.decision_log import DecisionLog
from unprior.serving.server import build_server
from unprior.serving.service import Service
from unprior.serving.settings import ServeSettings


@contextmanager
def running(service: Service) -> Iterator[str]:
    """Serve in a thread; gives the address."""
    listening = socket.socket(proto=socket.IPPROTO_TCP)
    listening.bind(("127.0.0.1", 0))
    server = build_server(service)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    address = f"http://127.0.0.1:{listening.getsockname()[1]}"
    while not server.started:
        assert thread.is_alive()
        threading.Event().wait(0.01)
    try:
        yield address
    finally:
        server.should_exit = True
        thread.join(30)
        assert not thread.is_alive()


@pytest.fixture(scope="session")
def embedded() -> Engine:
    return load_engine("embedded")


Serve = Callable[..., Any]


@pytest.fixture(scope="session")
def start(embedded: Engine) -> Serve:
    """Start a server with other settings, or with another backend."""

    @contextmanager
    def started(backend: Backend | None = None, calibrators: list[str] | None = None, **settings: Any) -> Iterator[str]:
        chosen = replace(ServeSettings(mode="enforce"), **settings)
        chosen.check()
        log = None if chosen.log is None else DecisionLog(chosen.log)
        known = Calibrators.load(calibrators or [], embedded)
        with running(Service(chosen, backend or LocalBackend(embedded), known, log=log)) as address:
            yield address

    return started


@pytest.fixture(scope="session")
def server(start: Serve) -> Iterator[str]:
    """One that enforces the packaged calibrator."""
    with start() as address:
        yield address


@pytest.fixture(scope="session")
def choices(drawn_world: Path) -> Benchmark:
    """Choices of two to six options about a world."""
    return microworld(drawn_world, 3, variant="options")


def data_url(image: Image.Image | Path | bytes, kind: str = "png") -> str:
    """An image as it stands in a request."""
    if isinstance(image, Image.Image):
        stream = io.BytesIO()
        image.save(stream, kind)
        image = stream.getvalue()
    content = image.read_bytes() if isinstance(image, Path) else image
    return f"data:image/{kind};base64,{base64.b64encode(content).decode()}"


def body(image: str, *questions: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A request for decisions."""
    content = [{"type": "input_image", "image_url": image}]
    return {"model": "embedded", "input": [{"role": "user", "content": content}], "questions": list(questions)} | more


def choice(text: str = "How many fingers?", *values: Any, **more: Any) -> dict[str, Any]:
    """A question with candidates."""
    return {"type": "choice", "instructions": text, "choices": [{"value": value} for value in values]} | more


@pytest.fixture(scope="session")
def plain() -> str:
    """A small grey image."""
    return data_url(Image.new("RGB", (72, 72), (128, 128, 128)))


@pytest.fixture
def post(server: str) -> Callable[..., httpx.Response]:
    """Send a body to the decisions route."""
    return lambda content, **more: httpx.post(f"{server}/v1/decisions", json=content, timeout=60, **more)
