"""A real vLLM server on this machine, from the environment that `make engines` builds."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
import pytest

VARIABLE = "UNPRIOR_VLLM_PYTHON"
_CHAT = "/v1/chat/completions"
_SECONDS_TO_START = 240
_SETTINGS = {
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "HF_HUB_OFFLINE": "1",
    "VLLM_LOGGING_LEVEL": "WARNING",
    "TORCHDYNAMO_DISABLE": "1",  # small functions that vLLM compiles in any case, for half a minute
}


def vllm_python() -> str:
    """The Python that has vLLM; skips the test when there is none."""
    python = os.environ.get(VARIABLE)
    if not python:
        pytest.skip("needs a real vLLM: `make test-engines` builds one and runs this")
    return python


def vllm_variables() -> dict[str, str]:
    """Environment for a vLLM on a CPU without a network."""
    return os.environ | _SETTINGS


class Forwarding(AbstractContextManager["Forwarding"]):
    """Passes requests on to the real server, ``without`` some settings and with ``more``."""

    def __init__(self, url: str, *, without: tuple[str, ...] = (), **more: Any) -> None:
        self.client, self.without, self.more = httpx.Client(base_url=url, timeout=60), without, more

    def __call__(self, path: str, body: dict[str, Any] | None) -> tuple[int, Any]:
        if body is None:
            answer = self.client.get(path)
        else:
            kept = {name: value for name, value in body.items() if name not in self.without}
            answer = self.client.post(path, json=kept | (self.more if path == _CHAT else {}))
        return answer.status_code, answer.json()

    def __exit__(self, *_: object) -> None:
        self.client.close()


@contextmanager
def running_vllm(model: Path, name: str, log: Path, *options: str, port: int | None = None) -> Iterator[str]:
    """Serve a model until the end of the block, on a free port or a given one; gives the address."""
    python = vllm_python()
    if port is None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
    command = [
        python, "-m", "vllm.entrypoints.openai.api_server", "--model", str(model), "--served-model-name", name,
        "--dtype", "float32", "--enforce-eager", "--max-model-len", "512", "--host", "127.0.0.1", "--port", str(port),
        # Prompts are short, and only whole blocks are found in the cache.
        "--block-size", "32",
        # Images are resized by Pillow, as here; torchvision's rounding differs a little. The newer name of the setting,
        # "backend": "pil", is also taken for that of videos, which have no other, and some models do not start then.
        "--mm-processor-kwargs", '{"use_fast": false}', *options,
    ]  # fmt: skip
    url = f"http://127.0.0.1:{port}"
    with log.open("wb") as stream:
        # A session of its own, so that all its processes can be ended together.
        server = subprocess.Popen(
            command, env=vllm_variables(), stdout=stream, stderr=stream, cwd=log.parent, start_new_session=True
        )
        try:
            _wait(server, url, log)
            yield url
        finally:
            with suppress(ProcessLookupError):
                os.killpg(server.pid, signal.SIGTERM)
            with suppress(subprocess.TimeoutExpired):
                server.wait(20)
            with suppress(ProcessLookupError):
                os.killpg(server.pid, signal.SIGKILL)
            server.wait(10)


def _wait(server: subprocess.Popen[bytes], url: str, log: Path) -> None:
    end = time.monotonic() + _SECONDS_TO_START
    while time.monotonic() < end:
        if server.poll() is not None:
            break
        with suppress(httpx.TransportError):
            if httpx.get(f"{url}/health", timeout=5).status_code == 200:
                return
        time.sleep(0.5)
    raise RuntimeError(f"vLLM did not start:\n{log.read_text(encoding='utf-8', errors='replace')[-3000:]}")
