"""Logs of runs in Inspect's own viewer, in a real browser."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Browser, expect

from inspect_logs import read_log
from recorded_runs import write_run
from unprior.runs.export import export_run

pytestmark = pytest.mark.slow
_PATIENCE = 60_000


@pytest.fixture
def viewer(tmp_path: Path) -> Iterator[str]:
    """Address of a viewer of the logs in ``logs``, on this machine only."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    (tmp_path / "logs").mkdir()
    command = [str(Path(sys.executable).parent / "inspect"), "view", "start", "--log-dir", str(tmp_path / "logs")]
    command += ["--host", "127.0.0.1", "--port", str(port)]
    environment = {"HOME": str(tmp_path), "PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8"}
    with (tmp_path / "viewer.txt").open("w") as told:
        server = subprocess.Popen(command, env=environment, stdout=told, stderr=told)
    try:
        url = f"http://127.0.0.1:{port}"
        with httpx.Client(transport=httpx.HTTPTransport(retries=10)) as client:  # with growing pauses between them
            assert client.get(url).status_code == 200, (tmp_path / "viewer.txt").read_text()
        yield url
    finally:
        server.terminate()
        server.wait(30)


def test_the_viewer_shows_question_image_answers_scores_and_explanation(
    viewer: str, tmp_path: Path, browser: Browser
) -> None:
    (path,) = export_run(write_run(tmp_path / "run"), out=tmp_path / "logs")
    sample = next(
        each
        for each in read_log(path).samples or []
        if (each.metadata["outcome"], each.metadata["task"]) == ("repaired", "mc")
    )
    assert sample.scores is not None
    page = browser.new_page(viewport={"width": 1400, "height": 1000})
    page.set_default_timeout(_PATIENCE)
    page.goto(f"{viewer}/#/tasks/run.eval/samples/sample/{sample.id}/1/")
    expect(page.get_by_text(f"What is in image {sample.metadata['pair']}?").first).to_be_visible(timeout=_PATIENCE)
    expect(page.locator("img[src^='data:image/jpeg']").first).to_be_visible()
    expect(page.get_by_text(f"It is {sample.metadata['original']}.").first).to_be_visible()
    for score in sample.scores.values():
        assert score.explanation is not None
        expect(page.get_by_text(score.explanation).first).to_be_visible()
    page.goto(f"{viewer}/#/tasks/run.eval")
    for heading in ("mc accuracy", "qa accuracy"):
        expect(page.get_by_text(heading).first).to_be_visible()
    page.close()
