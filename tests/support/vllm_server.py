"""A real vLLM server on this machine, from the environment that `make engines` builds."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import httpx
import pytest

VARIABLE = "UNPRIOR_VLLM_PYTHON"
_SECONDS_TO_START = 240
_SETTINGS = {"VLLM_CPU_KVCACHE_SPACE": "1", "HF_HUB_OFFLINE": "1", "VLLM_LOGGING_LEVEL": "WARNING"}


def vllm_python() -> str:
    """The Python that has vLLM; skips the test when there is none."""
    python = os.environ.get(VARIABLE)
    if not python:
        pytest.skip("needs a real vLLM: `make test-engines` builds one and runs this")
    return python


def vllm_variables() -> dict[str, str]:
    """Environment for a vLLM on a CPU without a network."""
    return os.environ | _SETTINGS


@contextmanager
def running_vllm(model: Path, name: str, log: Path, *options: str) -> Iterator[str]:
    """Serve a model until the end of the block; gives the address."""
    python = vllm_python()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [
        python, "-m", "vllm.entrypoints.openai.api_server", "--model", str(model), "--served-model-name", name,
        "--dtype", "float32", "--enforce-eager", "--max-model-len", "512", "--host", "127.0.0.1", "--port", str(port),
        # Images are resized by Pillow, as here; torchvision's rounding differs a little.
        "--mm-processor-kwargs", '{"backend": "pil"}', *options,
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
