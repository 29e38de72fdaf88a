"""The command that serves: what it says before it does, and what it refuses."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest

from faulty_server import FaultyServer
from replayed_vllm import MODEL, ReplayedVllm
from unprior.embedded import CALIBRATOR
from unprior.engines.load import load_engine


def test_check_tells_what_would_be_served(run: Callable, tmp_path: Path) -> None:
    told = run("serve", "--check", "--calibrator", f"mine={CALIBRATOR}", "--log", tmp_path / "log.jsonl")
    assert told.code == 0, told.err
    shown = " ".join(told.out.split())
    for words in ("Model embedded", "Scores exact", "Mode observe", "Calibrator mine sha256:", "certified, ε = 0.04"):
        assert words in shown
    assert "Listening" not in shown
    assert not (tmp_path / "log.jsonl").exists()


def test_check_tells_of_keys_and_hosts_and_shows_no_key(run: Callable, monkeypatch: pytest.MonkeyPatch) -> None:
    keys = ("first-key-of-many", "second-key-of-many")
    monkeypatch.setenv("UNPRIOR_SERVE_KEY", ",".join(keys))
    for more in ((), ("--json",)):
        told = run("serve", "--check", "--host", "0.0.0.0", "--image-host", "images.example.com", *more)
        assert told.code == 0, told.err
        assert "needed (2 known)" in told.out
        assert "in requests, from images.example.com" in told.out
        assert not any(key in told.out + told.err for key in keys)
    monkeypatch.setenv("UNPRIOR_SERVE_KEY", f"{keys[0]} short-key")
    told = run("serve", "--check")
    told.refused("every key in UNPRIOR_SERVE_KEY")
    assert "short-key" not in told.out + told.err


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--host", "0.0.0.0"), "needs a key"),
        (("--mode", "both"), "observe or enforce"),
        (("--image-host", "*.example.com"), "give the name of a host"),
        (("--engine", "openai", "--model", "a"), "give --upstream URL"),
        (("--calibrator", "missing.json"), "missing.json"),
        (("--calibrator", "a="), "NAME=FILE"),
        (("--calibrator", f"a={CALIBRATOR}", "--calibrator", f"a={CALIBRATOR}"), "twice"),
        (("--calibrator", str(CALIBRATOR), "--open-instruction", "Say!"), "open questions worded"),
        (("--calibrator", str(CALIBRATOR), "--dtype", "bfloat16"), "precision"),
    ],
)
def test_what_cannot_be_served_is_refused(run: Callable, options: tuple[str, ...], words: str) -> None:
    run("serve", "--check", *options).refused(words)


def test_nothing_waits_for_a_pipe(run: Callable, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    run("serve", "--check", "--calibrator", f"a={pipe}").refused("this is a pipe", "--calibrator needs a file")
    run("serve", "--check", "--log", pipe).refused("to a pipe", "give --log the name of a file")


def test_the_address_of_a_server_is_taken(run: Callable) -> None:
    with FaultyServer(ReplayedVllm(load_engine("embedded"))) as server:
        given = ("--upstream", server.url, "--model", MODEL)
        told = run("serve", "--check", *given)
        assert told.code == 0, told.err
        assert f"{MODEL} (openai)" in told.out
        assert "none: answers stay as they are" in told.out
        run("serve", "--check", *given, "--mode", "enforce").refused("needs a calibrator of this model")
        run("serve", "--check", *given, "--calibrator", CALIBRATOR).refused("other scores than tiny makes here")


def test_without_the_extra_the_command_to_install_it_is_told(run: Callable, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("unprior.cli.serve._NEEDED", ("starlette", "nothing_of_this_name"))
    run("serve", "--check").refused("pip install 'unprior[serve]'")


def test_replies_are_not_held_back(run: Callable, monkeypatch: pytest.MonkeyPatch) -> None:
    """Asyncio sends small packets at once where the socket says that it is one of TCP; otherwise they wait 40 ms."""
    protocols = []

    def keep(_: object, sockets: list[socket.socket]) -> None:
        for each in sockets:
            protocols.append(each.proto)
            each.close()

    monkeypatch.setattr("uvicorn.Server.run", keep)
    assert run("serve", "--port", "0").code == 0
    assert protocols == [socket.IPPROTO_TCP]


def test_a_server_starts_answers_and_ends_when_it_is_asked_to(tmp_path: Path) -> None:
    command = [sys.executable, "-c", "from unprior.cli import main; main()", "serve", "--port", "0"]
    server = subprocess.Popen(
        command,
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"COLUMNS": "200"},
    )
    assert server.stdout is not None
    address = None
    for line in server.stdout:
        if found := re.search(r"http://\S+", line):
            address = found[0]
            break
    assert address is not None, server.communicate()
    assert httpx.get(f"{address}/health", timeout=30).status_code == 200
    server.send_signal(signal.SIGHUP)  # from whoever rotates logs
    assert "believe its eyes" in httpx.get(address, timeout=30).text
    server.send_signal(signal.SIGTERM)
    _, problems = server.communicate(timeout=60)
    assert problems == ""
    assert server.returncode in {0, -signal.SIGTERM, 128 + signal.SIGTERM}
