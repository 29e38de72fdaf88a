"""No serious accessibility fault on the report, a page of studies and a benchmark's gallery."""

from __future__ import annotations

from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser

from unprior import synthesize
from unprior.benchmarks.schema import Benchmark
from unprior.report.browse import write_gallery
from unprior.report.study_page import write_study_page
from unprior.studies import StudyInputs, run_studies
from unprior.studies.registry import choose_studies


@pytest.fixture(scope="module")
def pages(report: Path, benchmark: Benchmark, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("pages")
    done = run_studies(choose_studies(["rq2"]), [StudyInputs(synthesize(seed=3), resamples=50)])
    write_study_page(folder / "studies.html", "A model", done, {"synthetic": [("Engine", "none")]})
    write_gallery(folder / "gallery.html", benchmark, 6)
    return [report, folder / "studies.html", folder / "gallery.html"]


@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 400)])
def test_axe_finds_no_serious_fault(pages: list[Path], browser: Browser, scheme: str, width: int) -> None:
    for path in pages:
        page = browser.new_page(color_scheme=scheme, viewport={"width": width, "height": 900})
        page.goto(path.as_uri())
        found = Axe().run(page).response["violations"]
        page.close()
        assert [each["id"] for each in found if each["impact"] in {"serious", "critical"}] == [], path.name
