"""Shared synthetic score tables and the default run of the embedded model, made once."""

from __future__ import annotations

import gc
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest
from filelock import FileLock
from hypothesis import settings
from playwright.sync_api import Browser, sync_playwright

from small_tables import few_pairs
from study_inputs import every_input
from unprior import ScoreTable, synthesize
from unprior.benchmarks.microworld.benchmark import microworld
from unprior.studies.inputs import StudyInputs
from unprior.studies.registry import PRESETS, STUDIES
from unprior.studies.result import StudyResult

settings.register_profile("unprior", deadline=None, print_blob=True)
settings.load_profile("unprior")
IMAGE_SIZE = "unprior.benchmarks.microworld.benchmark.IMAGE_SIZE"
SMALL = 48
_BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
_OPTIONS = (
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
)  # fmt: skip
gc.disable()  # nothing of what tests import is garbage


def pytest_collection_finish() -> None:
    """Look for garbage from here on, and only among what tests make: libraries alone are a million objects."""
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)
    gc.enable()


@pytest.fixture(scope="session")
def table() -> ScoreTable:
    return synthesize(seed=11)


@pytest.fixture(scope="session")
def development(table: ScoreTable) -> ScoreTable:
    return table.where(split="dev")


@pytest.fixture(scope="session", autouse=True)
def _few_draws() -> Iterator[None]:
    """Two draws of development pairs from each population instead of 200, wherever a study is run as a whole."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("unprior.studies.beyond.certified_retention.DRAWS", 2)
        yield


@pytest.fixture(scope="session")
def study_inputs() -> StudyInputs:
    """What every study can be computed from, small enough for all of them."""
    return every_input(few_pairs(development=5, test=3))


@pytest.fixture(scope="session")
def study_result(study_inputs: StudyInputs) -> Callable[[str], StudyResult]:
    """The result of a study by its name, computed once."""
    return cache(lambda name: STUDIES[name].run(study_inputs))


@pytest.fixture
def _figures_on_pages_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """Draw figures for pages and as SVG; the same figures as PDF and PNG, which take as long, are only begun."""
    begun = {"pdf": b"%PDF-", "png": b"\x89PNG"}
    for module in ("section", "study_page"):
        monkeypatch.setattr(f"unprior.report.{module}.as_file", lambda _, kind, **__: begun[kind])


@pytest.fixture
def _few_studies(monkeypatch: pytest.MonkeyPatch, _figures_on_pages_only: None) -> None:
    """Let runs show two studies instead of seven, where it does not matter which: drawing takes most of the time."""
    monkeypatch.setitem(PRESETS, "run", ("main-comparison", "methods"))


@pytest.fixture
def _figures_unseen(monkeypatch: pytest.MonkeyPatch, _figures_on_pages_only: None) -> None:
    """Make figures, and draw none of them, where other tests of the same file draw those of the same model."""
    for module in ("section", "study_page"):
        monkeypatch.setattr(f"unprior.report.{module}.as_svg", lambda _: "<svg/>")


@pytest.fixture
def _tested_once(monkeypatch: pytest.MonkeyPatch, shared_folder: Path) -> None:
    """Remember the self-test of small models as that of large ones: commands load the same few again and again."""
    monkeypatch.setattr("unprior.engines.transformers.engine._LARGE_MODEL", 0)
    monkeypatch.setattr("unprior.engines.transformers.verdicts.platform_cache", lambda: shared_folder)


@pytest.fixture
def _small_drawings(monkeypatch: pytest.MonkeyPatch) -> None:
    """Draw a microworld in a moment, where nobody looks at it."""
    monkeypatch.setattr(IMAGE_SIZE, SMALL)


@pytest.fixture(scope="session")
def shared_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder for what is made once for all workers."""
    base = tmp_path_factory.getbasetemp()
    return base.parent if "PYTEST_XDIST_WORKER" in os.environ else base


@pytest.fixture(scope="session")
def drawn_world(shared_folder: Path) -> Path:
    """Folder with small images of the microworld of seed 3, drawn once for all workers. Do not write into it."""
    with FileLock(shared_folder / "drawn-world.lock"), pytest.MonkeyPatch.context() as patch:
        patch.setattr(IMAGE_SIZE, SMALL)
        microworld(shared_folder / "drawn-world", 3)
    return shared_folder / "drawn-world"


@pytest.fixture(scope="session")
def default_run(shared_folder: Path) -> Path:
    """Folder of a finished `unprior run`, as a newcomer gets it; made once for all workers. Do not write into it."""
    folder = shared_folder / "default-run"
    with FileLock(shared_folder / "default-run.lock"):
        if not (folder / "terminal.txt").exists():
            command = [str(Path(sys.executable).parent / "unprior"), "run", "--out", str(folder)]
            done = subprocess.run(command, capture_output=True, timeout=300, check=False, text=True)
            assert done.returncode == 0, done.stderr
            (folder / "terminal.txt").write_text(done.stdout, encoding="utf-8")
    return folder


@pytest.fixture(scope="session")
def default_output(default_run: Path) -> str:
    """What `unprior run` printed."""
    return (default_run / "terminal.txt").read_text(encoding="utf-8")


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """A headless Chromium."""
    executable = next(filter(None, map(shutil.which, _BROWSERS)), None)
    if executable is None:
        pytest.skip(f"no browser to look at the page with; install one of {', '.join(_BROWSERS)}")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable, args=list(_OPTIONS))
        yield browser
        browser.close()
