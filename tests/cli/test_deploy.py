"""The container file and the systemd unit: what they run is what the program takes, and stops in time."""

from __future__ import annotations

import configparser
import json
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from faulty_server import FaultyServer
from replayed_vllm import MODEL, ReplayedVllm
from tests.serving.conftest import running
from unprior.engines.load import load_engine
from unprior.serving.backend import LocalBackend
from unprior.serving.calibrators import Calibrators
from unprior.serving.guard import OPEN_ROUTES
from unprior.serving.service import Service
from unprior.serving.settings import KEY_VARIABLE, ServeSettings

DEPLOY = Path(__file__).parents[2] / "deploy"
UNIT, CONTAINER = DEPLOY / "unprior-serve.service", DEPLOY / "Containerfile"
HEALTH = "http://127.0.0.1:8077/health"


def read_unit() -> dict[str, list[str]]:
    """Settings of all sections by name, each with its values in order."""
    found: dict[str, list[str]] = {}
    for line in UNIT.read_text().replace("\\\n", " ").splitlines():
        if "=" in line and not line.startswith("#"):
            name, value = line.split("=", 1)
            found.setdefault(name, []).append(value)
    return found


def unit_command() -> list[str]:
    """What the unit starts."""
    (command,) = read_unit()["ExecStart"]
    return shlex.split(command)


def container_command() -> list[str]:
    """What the container is shown to be run with: its entry point, and the end of the command in its first lines."""
    text = CONTAINER.read_text()
    (entry,) = re.findall(r"^ENTRYPOINT (\[.*\])$", text, re.MULTILINE)
    shown = " ".join(line.removeprefix("#").strip().removesuffix("\\") for line in text.split("\n\n")[0].splitlines())
    given = shown[shown.index(" unprior-serve --host") :].split("Docker has")[0]
    return [*json.loads(entry), *shlex.split(given)[1:]]


@pytest.mark.parametrize("command", [unit_command, container_command])
def test_what_is_started_can_be_served(run: Callable, command: Callable[[], list[str]], tmp_path: Path,
                                       monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    program, name, *given = command()
    assert (Path(program).name, name) == ("unprior", "serve")
    monkeypatch.setenv(KEY_VARIABLE, "k" * 32)
    with FaultyServer(ReplayedVllm(load_engine("embedded"))) as upstream:
        # The same command for this upstream; its calibrator is another model's, and there is no such log folder here.
        here = {"--upstream": upstream.url, "--model": MODEL, "--log": str(tmp_path / "log.jsonl")}
        pairs = [pair for pair in zip(given[::2], given[1::2], strict=True) if pair[0] != "--calibrator"]
        told = run("serve", "--check", *(part for key, value in pairs for part in (key, here.get(key, value))))
    assert told.code == 0, told.err
    assert "Key" in told.out
    assert "needed" in told.out


def test_both_ask_for_health_without_a_key_and_stop_after_the_deadline() -> None:
    unit, container = read_unit(), CONTAINER.read_text()
    assert "/health" in OPEN_ROUTES
    assert unit["ExecStartPost"][0].endswith(HEALTH)
    assert HEALTH in container
    drain = float(unit_command()[unit_command().index("--deadline") + 1]) + 1
    assert int(unit["TimeoutStopSec"][0]) > drain
    (stop,) = re.findall(r"--stop-timeout (\d+)", container)
    assert int(stop) > ServeSettings().deadline + 1
    assert KEY_VARIABLE in container
    assert KEY_VARIABLE in UNIT.read_text()
    assert not re.search(rf"^(Environment|ENV)\b.*{KEY_VARIABLE}", container + UNIT.read_text(), re.MULTILINE)
    assert re.search(r"^USER [1-9]\d*:[1-9]\d*$", container, re.MULTILINE)


def test_the_health_check_of_the_container_tells_whether_the_server_is_there(tmp_path: Path) -> None:
    (check,) = re.findall(r"CMD (\[\"python\", .*\])$", CONTAINER.read_text(), re.MULTILINE)

    def code(address: str) -> int:
        command = [sys.executable, *(part.replace("http://127.0.0.1:8077", address) for part in json.loads(check)[1:])]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, check=False, timeout=60).returncode

    backend = LocalBackend(load_engine("embedded"))
    with running(Service(ServeSettings(key="k" * 32), backend, Calibrators({}))) as address:
        assert code(address) == 0  # without the key
    assert code(address) == 1


def test_the_extra_and_the_files_that_the_container_installs_exist() -> None:
    text = CONTAINER.read_text()
    assert "'.[serve]'" in text
    assert "--constraint constraints.txt" in text
    assert (DEPLOY.parent / "constraints.txt").exists()
    assert re.search(r"^serve = \[", (DEPLOY.parent / "pyproject.toml").read_text(), re.MULTILINE)


def test_systemd_understands_the_unit(tmp_path: Path) -> None:
    parser = configparser.ConfigParser(strict=False, interpolation=None)
    parser.read(UNIT)
    assert parser.sections() == ["Unit", "Service", "Install"]
    if shutil.which("systemd-analyze") is None:
        pytest.skip("there is no systemd-analyze")
    # It wants the programs to exist.
    here = UNIT.read_text().replace("/opt/unprior/bin/unprior", sys.executable).replace("/usr/bin/curl", sys.executable)
    copy = tmp_path / UNIT.name
    copy.write_text(here)
    done = subprocess.run(["systemd-analyze", "verify", copy], capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
