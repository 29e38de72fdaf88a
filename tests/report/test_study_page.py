"""The page of the studies, in a real browser, and the files beside it."""

from __future__ import annotations

import csv
import json
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser

from browser_page import opened
from small_tables import few_pairs
from study_inputs import every_input
from unprior.report.study_page import FinishedStudy, write_study, write_study_page
from unprior.studies.registry import STUDIES
from unprior.studies.result import StudyResult


@pytest.fixture(scope="module")
def finished(study_result: Callable[[str], StudyResult]) -> list[FinishedStudy]:
    """Every study, and one that says what it lacks."""
    absent = replace(STUDIES["cost"], name="absent", title="What nobody measured")
    return [
        *(FinishedStudy(study, study_result(name)) for name, study in STUDIES.items()),
        FinishedStudy(absent, None, "It needs more."),
    ]


@pytest.fixture(scope="module")
def folder(finished: list[FinishedStudy], tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("study")
    for each in finished:
        write_study(out, each)
    write_study_page(out / "index.html", "My model on my benchmark", finished)
    return out


def test_every_study_leaves_its_files(finished: list[FinishedStudy], folder: Path) -> None:
    for each in finished:
        if each.result is None:
            assert not list(folder.glob(f"{each.study.name}.*"))
            continue
        record: dict[str, Any] = json.loads((folder / f"{each.study.name}.json").read_text())
        assert record["sentences"] == list(each.result.sentences)
        assert record["records"] == json.loads(json.dumps(each.result.records()))
        with (folder / f"{each.study.name}.csv").open(newline="") as stream:
            assert len(list(csv.DictReader(stream))) == len(each.result.records())
        tex = (folder / f"{each.study.name}.tex").read_text()
        assert rf"\label{{{each.study.latex_label}}}" in tex
        assert tex.count(r"\\") >= len(each.result.table.rows) + 1
        drawn = [(folder / f"{each.study.name}.{kind}").exists() for kind in ("png", "pdf", "svg")]
        assert drawn == [each.result.figure() is not None] * 3


@pytest.mark.slow
def test_the_same_numbers_give_the_same_bytes(tmp_path: Path) -> None:
    for name in ("first", "second"):
        inputs = every_input(few_pairs(development=5, test=3))
        for study in STUDIES.values():
            write_study(tmp_path / name, FinishedStudy(study, study.run(inputs)))
    files = sorted(path.name for path in (tmp_path / "first").iterdir())
    assert files == sorted(path.name for path in (tmp_path / "second").iterdir())
    for file in files:
        assert (tmp_path / "first" / file).read_bytes() == (tmp_path / "second" / file).read_bytes(), file


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1200, 420])
def test_the_page_reads_like_results(
    browser: Browser, finished: list[FinishedStudy], folder: Path, scheme: str, width: int
) -> None:
    with opened(browser, folder / "index.html", scheme=scheme, width=width) as page:
        assert page.locator("h1").inner_text() == "My model on my benchmark"
        for each in finished:
            article = page.locator(f"article#{each.study.name}")
            assert article.locator("h3").inner_text() == each.study.title
            if each.result is None:
                assert "needs more" in article.locator(".absent").inner_text()
                continue
            assert article.locator(".says").inner_text() == " ".join(each.result.sentences)
            assert article.locator("div.panel tbody tr").count() >= len(each.result.table.rows)
            images = article.locator("figure img")
            assert images.count() == (each.result.figure() is not None)
            if images.count():
                assert images.evaluate("image => image.complete && image.naturalWidth > 100")
        overflow = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        assert overflow <= 0


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="no TeX here: apt-get install texlive-latex-recommended")
def test_latex_compiles(finished: list[FinishedStudy], folder: Path, tmp_path: Path) -> None:
    names = [each.study.name for each in finished if each.result is not None]
    inputs = "\n".join(rf"\input{{{folder / name}.tex}}\clearpage" for name in names)
    document = (
        r"\documentclass{article}\usepackage{booktabs}\usepackage{graphicx}\usepackage[T1]{fontenc}"
        rf"\begin{{document}}{inputs}\end{{document}}"
    )
    (tmp_path / "all.tex").write_text(document, encoding="utf-8")
    done = subprocess.run(
        ["pdflatex", "-halt-on-error", "-interaction=nonstopmode", "all.tex"],
        cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-2000:]
    assert "Overfull \\hbox" not in done.stdout
    assert (tmp_path / "all.pdf").stat().st_size > 10_000
