"""The page as a reader sees it: in a real browser."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page

import unprior
from browser_page import opened
from finished_run import parts
from small_tables import abstaining_calibrator, example
from unprior import ScoreTable, evaluate
from unprior.report import report_record, write_report
from unprior.runs.result import RunResult
from unprior.studies import FinishedStudy, StudyInputs, run_studies
from unprior.studies.registry import PRESETS, STUDIES
from unprior.tables.csv import as_csv


def shown(finished: RunResult) -> list[str]:
    """Names of the studies that have a result."""
    return [each.study.name for each in finished.studies if each.result is not None]


def visible_cards(page: Page) -> int:
    return page.locator(".card:visible").count()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 400, 1600])
def test_all_figures_are_there_and_nothing_sticks_out(
    browser: Browser, report: Path, finished: RunResult, width: int, scheme: str
) -> None:
    with opened(browser, report, width=width, scheme=scheme) as page:
        figures = page.locator("figure img")
        assert figures.count() == sum(each.figure() is not None for each in map(finished.study, shown(finished)))
        for index in range(figures.count()):
            figure = figures.nth(index)
            assert figure.evaluate("image => image.complete && image.naturalWidth > 0")
            box = figure.bounding_box()
            assert box is not None
            assert box["width"] > min(280, 0.7 * width)
            assert box["height"] > 100
            assert figure.get_attribute("alt")
        overhang = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        assert page.evaluate(overhang) <= 0
        kind = "dark" if scheme == "dark" else "light"
        background = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert (sum(int(part) for part in background[4:-1].split(",")) < 384) == (kind == "dark")


def test_dark_pages_show_dark_figures(browser: Browser, report: Path) -> None:
    shown = []
    for scheme in ("light", "dark"):
        with opened(browser, report, scheme=scheme) as page:
            shown.append(page.locator("figure img").first.evaluate("image => image.currentSrc"))
    assert shown[0] != shown[1]


def test_the_words_and_tables(browser: Browser, report: Path, finished: RunResult) -> None:
    with opened(browser, report) as page:
        assert page.locator("h1").inner_text() == "synthetic"
        named = "SPC (standard, ε\N{NO-BREAK SPACE}=\N{NO-BREAK SPACE}0.04)"
        headline = page.locator(".headline").inner_text()
        assert headline.startswith(f"On counterfactual images {named} raises accuracy from")
        assert page.locator(".note").inner_text() == "Synthetic scores & <images>; unprior run makes others."
        assert page.locator(".note code").inner_text() == "unprior run"
        assert page.locator(".tile").count() == 4
        assert all(named in tile for tile in page.locator(".tile").all_inner_texts()), "version and ε at every number"
        captions = page.locator("caption").all_text_contents()
        assert len(captions) == page.locator("table").count()
        for name in shown(finished):
            assert finished.study(name).table.title in captions
        accuracy = f"{finished.evaluation.tasks[0].method.cf.value:.3f}"
        assert accuracy in page.locator("table").first.inner_text()
        anchors = [str(link.get_attribute("href")) for link in page.locator("a[href^='#']").all()]
        assert {"#glossary", "#provenance", "#gallery", "#term-cfad", "#term-margin"} <= set(anchors)
        for anchor in set(anchors):
            assert page.locator(anchor).count() == 1, anchor
        assert f"unprior {unprior.__version__}" in page.locator("footer").inner_text()


def test_outcome_and_task_filters(browser: Browser, report: Path) -> None:
    with opened(browser, report) as page:
        everything = visible_cards(page)
        assert everything == page.locator(".card").count() > 20
        for outcome, name in (("repaired", "Repaired"), ("harmed", "Harmed"), ("kept", "Kept by the gate")):
            page.get_by_role("button", name=name, exact=True).click()
            assert visible_cards(page) == page.locator(f".card[data-outcome={outcome}]").count() > 0
            assert page.locator("[data-filter=outcome] [aria-pressed=true]").inner_text() == name
        page.get_by_role("button", name="QA", exact=True).click()
        both = page.locator(".card[data-outcome=kept][data-task=qa]").count()
        assert visible_cards(page) == both
        assert page.locator("output").inner_text() == f"{both} of {everything} examples"
        page.get_by_role("button", name="All", exact=True).click()
        page.get_by_role("button", name="Both tasks").click()
        assert visible_cards(page) == everything


def test_filters_by_keyboard(browser: Browser, report: Path) -> None:
    with opened(browser, report) as page:
        page.get_by_role("button", name="Harmed", exact=True).focus()
        page.keyboard.press("Enter")
        assert visible_cards(page) == page.locator(".card.harmed").count()
        page.keyboard.press("Shift+Tab")
        page.keyboard.press("Space")
        assert visible_cards(page) == page.locator(".card.repaired").count()


def test_subcategories_and_search(browser: Browser, report: Path) -> None:
    with opened(browser, report) as page:
        name = str(page.locator(".card").first.get_attribute("data-subcategory"))
        page.get_by_label("Subcategory", exact=True).select_option(name)
        assert visible_cards(page) == page.locator(f".card[data-subcategory='{name}']").count() > 0
        page.get_by_label("Subcategory", exact=True).select_option("")
        pair = page.locator(".card .tags span").last.inner_text()
        page.get_by_label("Search the examples").fill(pair.upper())
        assert 1 <= visible_cards(page) < page.locator(".card").count()
        page.get_by_label("Search the examples").fill("no such words")
        assert visible_cards(page) == 0
        assert page.locator("#nothing").is_visible()


def test_a_card_shows_everything(browser: Browser, report: Path) -> None:
    with opened(browser, report) as page:
        card = page.locator(".card[data-task=mc]").first
        assert card.locator("img.photo").evaluate("image => image.naturalWidth") == 280
        assert "</script>" in card.locator("h3").inner_text(), "text of a benchmark is never markup"
        assert card.locator(".scores [role=row]").count() == 5
        assert card.locator(".bar").count() == 12
        assert card.locator(".bar.first").count() == 3
        assert card.locator(".tick").count() == 1
        assert card.locator(".meta").inner_text().startswith("λ")
        assert card.locator(".explanation").inner_text().startswith(("Changed “", "Kept “"))
        inside = card.locator(".bar i").evaluate_all(
            "bars => bars.every(bar => bar.offsetLeft >= -1"
            " && bar.offsetLeft + bar.offsetWidth <= bar.parentElement.offsetWidth + 2)"
        )
        assert inside


def test_numbers_unfold(browser: Browser, report: Path, finished: RunResult) -> None:
    with opened(browser, report) as page:
        numbers = page.locator("#frontier details")
        assert not numbers.locator("table").is_visible()
        numbers.locator("summary").click()
        assert numbers.locator("tbody tr").count() == len(finished.study("frontier").records())


def test_numbers_and_latex_can_be_saved(browser: Browser, report: Path, finished: RunResult) -> None:
    with opened(browser, report) as page:
        with page.expect_download() as download:
            page.locator("#frontier .links a", has_text="CSV").click()
        assert download.value.suggested_filename == "frontier.csv"
        assert download.value.path().read_text() == as_csv(finished.study("frontier").records())
        assert page.locator("#frontier .links a", has_text="LaTeX").get_attribute("download") == "frontier.tex"
        with page.expect_download() as download:
            page.locator("#frontier .links a", has_text="PDF").click()
        assert download.value.suggested_filename == "frontier.pdf"
        assert download.value.path().read_bytes().startswith(b"%PDF-")
        drawn = page.locator("section.study:has(figure)")
        assert drawn.locator(".links a", has_text="PDF").count() == drawn.count() > 0


def test_a_narrow_screen_shows_panels_under_each_other(browser: Browser, report: Path) -> None:
    """No figure scrolls sideways, and its letters keep at least 70 % of their size, on any screen."""
    for width in (360, 400, 700, 1000, 1400):
        with opened(browser, report, width=width) as page:
            assert page.locator("figure").evaluate_all("all => all.every(one => one.scrollWidth <= one.clientWidth)")
            shapes = page.locator("figure img").evaluate_all(
                "all => all.map(one => [one.width / one.naturalWidth * 96 / 110, one.height / one.width])"
            )
            assert min(scale for scale, _ in shapes) >= 0.69
            panels = page.locator("#frontier figure img").evaluate("one => one.height / one.width")
            assert (panels > 1) == (width < 885), "two panels under each other are tall"


def test_what_a_study_lacks_is_named_with_its_command(browser: Browser, finished: RunResult, tmp_path: Path) -> None:
    lacks = "cost needs answers of other methods (baselines): `unprior study cost --prepare` makes it."
    given = parts(finished) | {"studies": [FinishedStudy(STUDIES["cost"], None, lacks)]}
    write_report(tmp_path / "report.html", **given)
    with opened(browser, tmp_path / "report.html") as page:
        absent = page.locator("#cost .absent")
        assert absent.inner_text() == lacks.replace("`", "")
        assert absent.locator("code").inner_text() == "unprior study cost --prepare"


def test_score_tables_alone_make_a_page(browser: Browser, finished: RunResult, tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    write_report(path, **parts(finished), title="My run")
    with opened(browser, path, width=390) as page:
        assert page.locator("h1").inner_text() == "My run"
        assert page.locator(".photo").count() == 0
        assert page.locator(".card").count() > 20
        box = page.locator(".card .scores").first.bounding_box()
        assert box is not None
        assert box["width"] > 250, "without an image the scores take its room"


def test_the_page_stays_small(report: Path) -> None:
    assert report.stat().st_size < 4_000_000


def test_the_same_run_gives_the_same_page(finished: RunResult, tmp_path: Path) -> None:
    for name in ("one.html", "two.html"):
        write_report(tmp_path / name, **parts(finished) | {"studies": finished.studies[:2]})
    assert (tmp_path / "one.html").read_bytes() == (tmp_path / "two.html").read_bytes()


def test_a_calibrator_that_abstains(browser: Browser, tmp_path: Path) -> None:
    table = ScoreTable.from_rows(
        [
            example(pair, side, [-1.0, -0.5, -3.0, -4.0], [-0.2, -1.0, -3.0, -3.0], "A", answer)
            for pair in range(3)
            for side, answer in (("cf", "B"), ("cs", "A"))
        ]
    )
    calibrator = abstaining_calibrator()
    decisions = calibrator.predict(table)
    evaluation = evaluate(table, decisions, resamples=100)
    path = tmp_path / "report.html"
    studies = run_studies([STUDIES[name] for name in PRESETS["run"]], [StudyInputs(table)])
    given: dict[str, Any] = {"calibrator": calibrator, "decisions": decisions, "evaluation": evaluation}
    write_report(path, **given, studies=studies)
    with opened(browser, path) as page:
        assert "The calibrator abstains" in page.locator(".headline").inner_text()
        for name in PRESETS["run"]:
            assert "rows of split dev" in page.locator(f"#{name} .absent").inner_text()
        assert page.locator("#gallery .absent").is_visible()
    record = report_record(table=table, **given, studies=studies)
    assert record["calibrator"]["abstains"]
    assert record["studies"]["frontier"] is None


def test_the_record_is_plain_and_whole(finished: RunResult) -> None:
    record = report_record(table=finished.table, **parts(finished))
    assert json.loads(json.dumps(record, allow_nan=False)) == record
    assert list(record["studies"]) == list(PRESETS["run"])
    for name in shown(finished):
        assert record["studies"][name] == finished.study(name).records()
    without = {each.study.name for each in finished.studies if each.result is None}
    assert {name for name, records in record["studies"].items() if records is None} == without
    assert record["evaluation"]["tasks"][0]["task"] == "mc"
    assert sum(record["reasons"].values()) == record["test_rows"] == 920
    assert record["calibrator"]["settings"]["max_strength"] > 0
