"""The page of the studies, in a real browser, and the files beside it."""

from __future__ import annotations

import csv
import json
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from playwright.sync_api import Browser

import unprior
from browser_page import opened
from small_tables import few_pairs, synthetic
from study_inputs import every_input
from unprior import ScoreTable
from unprior._text import CONTROLS
from unprior.plots.style import as_file
from unprior.report.study_page import write_study, write_study_page
from unprior.runs.study import StudyResults
from unprior.studies.finished import FinishedStudy, run_studies
from unprior.studies.inputs import StudyInputs
from unprior.studies.registry import STUDIES, choose_studies
from unprior.studies.result import StudyResult


@pytest.fixture(scope="module")
def finished(study_result: Callable[[str], StudyResult]) -> list[FinishedStudy]:
    """Every study, and one that says what it lacks."""
    absent = replace(STUDIES["cost"], name="absent", title="What nobody measured")
    return [
        *(FinishedStudy(study, study_result(name)) for name, study in STUDIES.items()),
        FinishedStudy(absent, None, "It needs more: `unprior study absent --prepare` makes it."),
    ]


@pytest.fixture(scope="module")
def folder(finished: list[FinishedStudy], tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("study")
    with pytest.MonkeyPatch.context() as patch:
        # PDFs with outlines take half the time; those of two models have fonts.
        patch.setattr("unprior.report.study_page.as_file", partial(as_file, outlines=True))
        for each in finished:
            write_study(out, each)
    facts = {"embedded": [("Engine", "transformers"), ("Precision", "float32")]}
    write_study_page(out / "index.html", "My model on my benchmark", finished, facts)
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
        assert tex.count(r"\begin{table}") == tex.count(r"\label{tab:") == 1 + len(each.result.further_tables)
        figure = (
            rf"\includegraphics[width=\linewidth]{{{each.study.name}.pdf}}",
            rf"\label{{{each.study.figure_label}}}",
        )
        assert [part in tex for part in figure] == [each.result.figure() is not None] * 2
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
@pytest.mark.parametrize("width", [1280, 400])
def test_the_page_reads_like_results(
    browser: Browser, finished: list[FinishedStudy], folder: Path, scheme: str, width: int
) -> None:
    with opened(browser, folder / "index.html", scheme=scheme, width=width) as page:
        assert page.locator("h1").inner_text() == "My model on my benchmark"
        for each in finished:
            article = page.locator(f"section#{each.study.name}")
            assert article.locator("h3").inner_text() == each.study.title
            if each.result is None:
                assert "needs more" in article.locator(".absent").inner_text()
                assert article.locator(".absent code").inner_text() == "unprior study absent --prepare"
                continue
            said = article.locator(".says").inner_text().replace("\N{NO-BREAK SPACE}", " ").replace("−", "-")
            assert said == " ".join(each.result.sentences).replace("−", "-")
            assert article.locator("div.panel tbody tr").count() >= len(each.result.table.rows)
            images = article.locator("figure img")
            assert images.count() == (folder / f"{each.study.name}.svg").exists()
            if images.count():
                assert images.evaluate("image => image.complete && image.naturalWidth > 100")
        overflow = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        assert overflow <= 0


def test_the_summary_comes_first(browser: Browser, finished: list[FinishedStudy], folder: Path) -> None:
    with opened(browser, folder / "index.html") as page:
        assert page.locator("main section").first.get_attribute("id") == "summary"
        summary = page.locator("#summary")
        assert summary.locator(".tile").count() == 4
        assert "SPC (standard, ε\N{NO-BREAK SPACE}=\N{NO-BREAK SPACE}0.04)" in summary.locator(".says").inner_text()
        assert summary.locator(".missing li").all_inner_texts() == [
            "What nobody measured: It needs more: unprior study absent --prepare makes it."
        ]
        assert "only for trying the method" in page.locator("header .note").inner_text(), (
            "the embedded model is named as such"
        )
        footer = page.locator("footer").inner_text()
        assert f"unprior {unprior.__version__}" in footer
        assert "float32" in footer
        contents = page.locator("nav.contents a").all_inner_texts()
        assert all(each.study.title in contents for each in finished)


def test_what_is_missing_is_said_once_with_the_studies_it_completes(browser: Browser, tmp_path: Path) -> None:
    runs = [StudyInputs(synthetic(seed=seed), folder=Path("runs", name)) for seed, name in ((0, "a"), (1, "my b"))]
    chosen = choose_studies(["cost", "prior-agreement", "alternative-priors", "revis-direction"])
    write_study_page(tmp_path / "index.html", "Missing", run_studies(chosen, runs))
    with opened(browser, tmp_path / "index.html") as page:
        items = page.locator(".missing li")
        assert items.count() == 6, "three things of two runs"
        commands = items.locator("code").all_inner_texts()
        assert commands[:2] == [
            "unprior study revis-direction --run runs/a --prepare",
            "unprior study revis-direction --run 'runs/my b' --prepare",
        ]
        assert "unprior study alternative-priors prior-agreement --run runs/a --prepare" in commands
        assert len(set(commands)) == 6
        views = items.filter(has_text="white, black, mean").first
        assert "Missing for Alternative estimates of the prior and Agreement of prior estimates: " in views.inner_text()
        assert views.locator("a").count() == 2
        everything = "unprior study all --run runs/a --run 'runs/my b' --prepare"
        assert page.locator("#summary .absent code").inner_text() == everything


@pytest.mark.parametrize("width", [1400, 400])
def test_names_of_models_can_hold_anything(browser: Browser, tmp_path: Path, width: int) -> None:
    """Control characters are shown as escapes; 120 letters stay whole in tables and are shortened in figures."""
    names = ["a\x1b[31mb\x00c\nd\te", "org/" + "-".join(f"part{number}" for number in range(18)) + "_8B"]
    shown = [r"a\x1b[31mb\x00c\nd\te", names[1]]
    tables = [few_pairs(development=5, test=3), synthetic(seed=3)]
    runs = [StudyInputs(named(table, name), resamples=50) for table, name in zip(tables, names, strict=True)]
    done = run_studies(choose_studies(["main-comparison", "components", "significance"]), runs)
    for each in done:
        write_study(tmp_path, each)
        with (tmp_path / f"{each.study.name}.csv").open(newline="") as stream:
            assert {row["model"] for row in csv.DictReader(stream)} == set(shown)
        assert not CONTROLS.search((tmp_path / f"{each.study.name}.tex").read_text())
    for drawn in tmp_path.glob("*.svg"):
        words = [text.text or "" for text in ElementTree.parse(drawn).iter() if text.tag.endswith("}text")]
        assert shown[0] in words
        assert any("…" in text for text in words)
        assert max(map(len, words)) < 60
    title, facts = StudyResults(tuple(runs), tuple(done)).title, {name: [("Engine", "vllm")] for name in shown}
    write_study_page(tmp_path / "index.html", title, done, facts)
    with opened(browser, tmp_path / "index.html", width=width) as page:
        assert page.locator("h1").inner_text() == f"{shown[0]} and {shown[1]} on synthetic"
        assert page.locator("#components tr.group").all_inner_texts() == shown
        assert page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") <= 0
        column = page.locator("#significance td.long").first.bounding_box()
        assert column is not None
        assert column["width"] < width / 2


def named(table: ScoreTable, model: str) -> ScoreTable:
    return ScoreTable.from_rows([row | {"model": model} for row in table.arrow.to_pylist()])


def test_every_link_leads_somewhere(browser: Browser, finished: list[FinishedStudy], folder: Path) -> None:
    with opened(browser, folder / "index.html") as page:
        targets = {str(link.get_attribute("href")) for link in page.locator("a").all()}
        assert {f"#{each.study.name}" for each in finished} <= targets
        for target in targets:
            if target.startswith("#"):
                assert page.locator(target).count() == 1, target
            else:
                assert (folder / target).stat().st_size > 0
        files = {path.name for path in folder.iterdir()} - {"index.html"}
        assert files == {target for target in targets if not target.startswith("#")}, "every file is linked"


def test_contents_are_folded_on_a_narrow_screen(browser: Browser, folder: Path) -> None:
    for width, visible in ((400, False), (1280, True)):
        with opened(browser, folder / "index.html", width=width) as page:
            assert page.locator("nav.contents a").first.is_visible() == visible


@pytest.fixture(scope="module")
def two_models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page of two models; one of them lacks the other methods."""
    runs = [every_input(few_pairs(development=5, test=3)), StudyInputs(synthetic(seed=3), resamples=50)]
    done = run_studies(choose_studies(["rq2", "components"]), runs)
    folder = tmp_path_factory.mktemp("two")
    for each in done:
        write_study(folder, each)
    facts = {"first": [("Engine", "transformers")], "second": [("Engine", "vllm")]}
    write_study_page(folder / "index.html", "Two models", done, facts)
    return folder


@pytest.mark.parametrize("width", [1280, 400])
def test_several_models_stand_side_by_side(browser: Browser, two_models: Path, width: int) -> None:
    with opened(browser, two_models / "index.html", width=width) as page:
        models = page.locator("#summary > h3").all_inner_texts()[:2]
        assert models == ["synthetic (1)", "synthetic (2)"]
        assert page.locator("#summary .tiles").count() == 2
        assert page.locator("#components tr.group").all_inner_texts() == models
        assert page.locator("#components .says b").all_inner_texts() == models
        assert page.locator("#cost .absent").inner_text().startswith("synthetic (2): The study cost needs")
        assert page.locator("footer h3").all_inner_texts() == ["first", "second"]
        assert page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") <= 0


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="no TeX here: apt-get install texlive-latex-recommended")
def test_latex_compiles(finished: list[FinishedStudy], folder: Path, tmp_path: Path) -> None:
    names = [each.study.name for each in finished if each.result is not None]
    inputs = "\n".join(rf"\input{{{folder / name}.tex}}\clearpage" for name in names)
    document = (
        r"\documentclass{article}\usepackage{booktabs}\usepackage{graphicx}\usepackage[T1]{fontenc}"
        rf"\graphicspath{{{{{folder}/}}}}\begin{{document}}{inputs}\end{{document}}"
    )
    (tmp_path / "all.tex").write_text(document, encoding="utf-8")
    done = subprocess.run(
        ["pdflatex", "-halt-on-error", "-interaction=nonstopmode", "all.tex"],
        cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-2000:]
    assert "Overfull \\hbox" not in done.stdout
    assert (tmp_path / "all.pdf").stat().st_size > 10_000
