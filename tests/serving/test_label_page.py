"""The page to label on, in a real browser: keyboard, what is kept and saved, small windows, dark, hostile texts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from PIL import Image
from playwright.sync_api import Browser, Page

from browser_page import opened
from decision_logs import decision, write_log
from unprior.errors import UnpriorWarning
from unprior.images import pixel_digest
from unprior.serving.label import take_labels, write_label_file

HOSTILE = "</script><img src=x onerror=alert(1)>"


@pytest.fixture
def page_file(tmp_path: Path) -> Path:
    shown = Image.new("RGB", (300, 200), (200, 30, 30))
    (tmp_path / "photos").mkdir()
    shown.save(tmp_path / "photos" / "red.png")
    digest = pixel_digest(shown)
    log = write_log(
        tmp_path / "log.jsonl",
        decision("a/0", image_digest=digest),
        decision("a/1", image_digest=digest, question=f"Which? {HOSTILE}", candidates=[HOSTILE, '=SUM("1",2)'],
                 original=HOSTILE, decided=HOSTILE),
        decision("b/0", question="x" * 300),
        decision("c/0", task="open", question="What is it?", candidates=["a dog", "a cat"], original="a dog",
                 decided="a cat"),
        decision("d/0", answer="5"),
    )  # fmt: skip
    with pytest.warns(UnpriorWarning, match="1 of 4 images were found"):
        return write_label_file(log, page=True, images=tmp_path / "photos").out


def progress(page: Page) -> str:
    return str(page.locator("#progress").text_content())


def save(page: Page, button: str, target: Path) -> Path:
    with page.expect_download() as download:
        page.click(button)
    download.value.save_as(target)
    return target


def test_labels_are_chosen_by_keyboard_kept_saved_and_taken(page_file: Path, browser: Browser, tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    with opened(browser, page_file) as page:
        page.evaluate("localStorage.clear()")
        page.reload()
        assert progress(page) == "1 of 5 labelled"  # the answer that the log has already
        assert page.locator("section").first.locator("img").evaluate("each => each.naturalWidth") == 300
        page.focus("#next")
        page.keyboard.press("Enter")
        page.keyboard.press("ArrowDown")  # from 4 to 5
        assert progress(page) == "2 of 5 labelled"
        page.locator("fieldset").nth(1).locator("input").nth(1).focus()
        page.keyboard.press("Space")
        page.locator("fieldset").nth(2).get_by_label("none of these").check()
        page.locator("fieldset").nth(3).get_by_label("Another answer", exact=True).fill("eine Käfer-Art 五")
        assert progress(page) == "5 of 5 labelled"
        for _ in range(
            20
        ):  # Chromium may start another process for the page, before the last one has told what it keeps
            page.reload()
            if progress(page) == "5 of 5 labelled":
                break
        assert progress(page) == "5 of 5 labelled"  # kept
        csv = save(page, "#csv", tmp_path / "labels.csv")
        jsonl = save(page, "#jsonl", tmp_path / "labels.jsonl")
        page.locator("fieldset").nth(0).get_by_label("skip").check()
        assert progress(page) == "4 of 5 labelled"
        page.evaluate("localStorage.clear()")
    assert '"\'=SUM(""1"",2)"' in csv.read_text(encoding="utf-8-sig")
    for labels in (csv, jsonl):
        out = tmp_path / f"{labels.suffix[1:]}-labelled.jsonl"
        taken = take_labels(log, labels, out)
        assert (taken.labelled, taken.none) == (4, 1)
        answers = [json.loads(line)["answer"] for line in out.read_text(encoding="utf-8").splitlines()[1:]]
        assert answers == ["5", '=SUM("1",2)', None, "eine Käfer-Art 五", "5"]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_fits_a_small_window_and_runs_nothing_foreign(page_file: Path, browser: Browser, scheme: str) -> None:
    with opened(browser, page_file, width=400, scheme=scheme) as page:  # no request, no complaint, no alert
        assert page.evaluate("document.documentElement.scrollWidth") <= 400
        assert page.locator("fieldset").nth(1).locator("label").first.inner_text().strip() == HOSTILE
        assert page.locator("section img").count() == 1
        red = "name => Number(getComputedStyle(document.body)[name].match(/[0-9]+/)[0])"
        ink, ground = (page.evaluate(red, name) for name in ("color", "backgroundColor"))
        assert (ink < ground) == (scheme == "light")
