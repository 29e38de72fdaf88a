"""The page for everybody and whatever it is given: axe, phones, dark, hostile texts, faults told in place."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from PIL import Image
from playwright.sync_api import Browser, Page, expect

from faulty_server import FaultyServer
from replayed_vllm import MODEL, ReplayedVllm
from served_engines import HASTY
from served_page import answered, fill, move, open_page, send
from tests.serving.conftest import Serve, running
from unprior.embedded import CALIBRATOR
from unprior.engines.openai.engine import HttpEngine
from unprior.engines.transformers.engine import TransformersEngine
from unprior.serving.backend import UpstreamBackend
from unprior.serving.calibrators import Calibrators
from unprior.serving.service import Service
from unprior.serving.settings import ServeSettings

HOSTILE = '</script><img src=x onerror="document.title = 1">'


@pytest.fixture
def page(browser: Browser, server: str) -> Iterator[Page]:
    with open_page(browser, server) as opened:
        yield opened


@pytest.fixture
def drawing(tmp_path: Path) -> Path:
    path = tmp_path / "drawing.png"
    Image.new("RGB", (96, 72), (200, 140, 90)).save(path)
    return path


def show_example(page: Page, place: int) -> None:
    with page.expect_response("**/v1/decisions"):
        page.click(f".example >> nth={place}")
    answered(page)


def show_error(page: Page) -> None:
    show_example(page, 2)
    page.fill("#text", "Which <image>?")
    send(page)
    assert page.inner_text("#problem") != ""
    assert page.inner_text("#stale") != ""


def show_code(page: Page) -> None:
    show_example(page, 4)
    page.click("summary")
    move(page, 0.1)


STATES: dict[str, Callable[[Page], object]] = {
    "empty": lambda page: None,
    "choice": lambda page: show_example(page, 2),
    "open": lambda page: show_example(page, 5),
    "code": show_code,
    "error": show_error,
}


@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 1280), ("light", 400), ("dark", 400)])
def test_axe_finds_nothing(browser: Browser, server: str, scheme: str, width: int) -> None:
    rules: dict[str, Any] = {"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]}
    with open_page(browser, server, width=width, color_scheme=scheme, reduced_motion="reduce") as page:
        for name, show in STATES.items():
            page.goto(server)
            show(page)
            found = Axe().run(page, options=rules)
            assert found.response["violations"] == [], (name, found.generate_report())
            unsure = [each["id"] for each in found.response["incomplete"] if each["impact"] != "minor"]
            assert set(unsure) <= {"color-contrast"}, name  # text over the shade: see the next test


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_colours_can_be_told_from_their_ground(browser: Browser, server: str, scheme: str) -> None:
    with open_page(browser, server, color_scheme=scheme) as page:
        names = ("paper", "ground", "ink", "soft", "edge", "shade", "image", "prior", "method", "stable", "on")
        script = "names => names.map(n => getComputedStyle(document.documentElement).getPropertyValue(`--${n}`).trim())"
        colour = dict(zip(names, page.evaluate(script, list(names)), strict=True))
    for text in ("ink", "soft", "prior"):
        for ground in ("paper", "ground"):
            assert contrast(colour[text], colour[ground]) >= 4.5, (text, ground)
    assert contrast(colour["soft"], colour["shade"]) >= 4.5
    for text, ground in (("on", "image"), ("on", "method")):
        assert contrast(colour[text], colour[ground]) >= 4.5, (text, ground)
    for shape in ("edge", "image", "prior", "method"):  # borders, bars, the thumb and its track
        for ground in ("paper", "shade") if shape != "edge" else ("paper", "ground"):
            assert contrast(colour[shape], colour[ground]) >= 3, (shape, ground)
    assert contrast(colour["method"], colour["stable"]) >= 3
    assert contrast(colour["ink"], colour["stable"]) >= 3


def contrast(one: str, other: str) -> float:
    """By WCAG, from 1 to 21.

    >>> contrast("#000", "#fff")
    21.0
    """
    light, dark = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def _luminance(colour: str) -> float:
    digits = colour.removeprefix("#")
    parts = [digits[i : i + 2] for i in (0, 2, 4)] if len(digits) == 6 else [each * 2 for each in digits]
    values = [int(part, 16) / 255 for part in parts]
    linear = [value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4 for value in values]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_fits_a_phone(browser: Browser, server: str, drawing: Path, tmp_path: Path, scheme: str) -> None:
    strip = tmp_path / f"{'long-name' * 20}.png"
    Image.new("RGB", (8000, 100), (90, 140, 90)).save(strip)
    cases = [
        (drawing, "Which letter?", [f"letter {letter}" for letter in "ABCDEFGHIJKLMNOPQRSTUVWXYZ"]),
        (drawing, "q" * 150, ["x" * 150, "a long candidate of many words " * 10, "short"]),
        (drawing, "כמה אצבעות יש ביד?", ["חמש", "ست أصابع", "four"]),
        (strip, "How many?", ["1", "2"]),
    ]
    with open_page(browser, server, width=400, color_scheme=scheme) as page:
        ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert ground == ("rgb(246, 247, 248)" if scheme == "light" else "rgb(14, 17, 22)")
        for image, question, candidates in cases:
            fill(page, image, question, candidates)
            send(page)
            assert page.inner_text("#problem") == ""
            assert page.locator("#scores tbody tr").count() == len(candidates)
            assert page.evaluate("document.documentElement.scrollWidth") <= 400
            # Nothing sticks out of the panel, either.
            inside = "[...document.querySelectorAll('.panel *')].every(e => e.getBoundingClientRect().right <= 400)"
            assert page.evaluate(inside)


def test_texts_keep_their_direction(page: Page, drawing: Path) -> None:
    fill(page, drawing, "כמה אצבעות יש ביד?", ["חמש אצבעות", "four"])
    assert page.evaluate("document.querySelector('#text').matches(':dir(rtl)')")
    send(page)
    directions = "[...document.querySelectorAll('tbody th bdi')].map(e => e.matches(':dir(rtl)'))"
    assert page.evaluate(directions) == [True, False]
    assert page.evaluate("document.querySelector('#verdict').matches(':dir(ltr)')")


def test_the_page_is_inert_whatever_it_shows(page: Page, drawing: Path, tmp_path: Path) -> None:
    hostile = tmp_path / "<img src=x onerror=alert(1)>'\"`.png"
    hostile.write_bytes(drawing.read_bytes())
    images = page.locator("img").count()
    fill(page, hostile, HOSTILE, [HOSTILE, "${7*7}{{7*7}}", "b"])
    send(page)
    assert page.inner_text("#problem") == ""
    page.click("summary")
    for strength in (0.0, 1.0, 2.0):
        move(page, strength)
    assert HOSTILE in page.inner_text("#about")
    assert page.inner_text("tbody th bdi >> nth=0") == HOSTILE
    assert page.inner_text("#file-name") == hostile.name
    assert hostile.name in page.inner_text("#from")
    assert page.title() == "unprior: embedded"
    assert page.locator("img").count() == images
    page.fill("#text", "<image>" + HOSTILE)
    send(page)
    assert page.locator("#problem img").count() == 0


def test_mistakes_are_told_in_place(page: Page, drawing: Path, tmp_path: Path) -> None:
    def told(words: str, field: str | None) -> None:
        expect(page.locator("#problem")).to_contain_text(words)
        assert page.get_attribute("#problem", "role") == "alert"
        marked = page.evaluate("[...document.querySelectorAll('[aria-invalid=true]')].map(e => e.id)")
        assert marked == ([] if field is None else [field])

    page.click("#send")
    told("Choose an image first.", "file")
    text = tmp_path / "notes.txt"
    text.write_text("none")
    page.set_input_files("#file", text)
    told("give a PNG, JPEG, WEBP or GIF file", "file")
    large = tmp_path / "large.png"
    large.write_bytes(b"\x89PNG" + bytes(17 << 20))
    page.set_input_files("#file", large)
    told("more than 16 MB", "file")
    page.set_input_files("#file", drawing)
    expect(page.locator("#problem")).to_be_empty()
    page.click("#send")
    told("Ask a question.", "text")
    page.fill("#text", "How many?")
    page.fill("#candidates", "\n only one \n\n")
    page.click("#send")
    told("at least two answers", "candidates")
    page.fill("#candidates", "a\nb\na")
    page.click("#send")
    told("Answer 1 and answer 3 are the same text, “a”", "candidates")
    page.fill("#candidates", "a\n<image>")
    page.click("#send")
    told("Answer 2: “<image>” may be read as a control token", "candidates")
    page.fill("#text", "q" * 8001)
    page.fill("#candidates", "a\nb")
    page.click("#send")
    told("Question: 8,001 characters are more than 8,000", "text")
    page.fill("#text", "How many?")
    expect(page.locator("#problem")).to_be_empty()
    damaged = tmp_path / "damaged.png"
    damaged.write_bytes(b"no image at all")
    page.set_input_files("#file", damaged)
    told("cannot be shown; it may be damaged", "file")
    page.click("#send")
    told("Image: ", "file")
    assert not page.is_visible("#result")


def test_a_server_that_fails_is_told(page: Page, drawing: Path) -> None:
    fill(page, drawing, "How many?", ["a", "b"])
    page.route("**/v1/decisions", lambda route: route.abort())
    page.click("#send")
    expect(page.locator("#problem")).to_have_text("The server does not answer. Is it still running?")
    page.unroute("**/v1/decisions")
    page.route("**/v1/decisions", lambda route: route.fulfill(status=502, body="<html>", content_type="text/html"))
    page.click("#send")
    expect(page.locator("#problem")).to_have_text("The server answered with status 502 and no reason.")
    page.unroute("**/v1/decisions")
    send(page)
    assert page.inner_text("#problem") == ""
    assert "goes out" in page.inner_text("#verdict")


def test_without_a_calibrator_the_strength_is_free(
    browser: Browser, embedded: TransformersEngine, drawing: Path
) -> None:
    with FaultyServer(ReplayedVllm(embedded)) as upstream:
        engine = HttpEngine(MODEL, [upstream.url], retry_policy=HASTY)
        service = Service(ServeSettings(), UpstreamBackend(engine), Calibrators({}))
        with running(service) as address, open_page(browser, address) as page:
            assert page.inner_text(".status").startswith("There is no calibrator. The model's own answers go out")
            assert page.locator(".example").count() == 0
            fill(page, drawing, "How many?", ["a", "b", "c"])
            send(page)
            assert "there is no calibrator to change it" in page.inner_text("#why")
            assert not page.is_visible("#own")
            assert not page.is_visible("#stable")
            assert page.inner_text("#value") == "0.00"
            move(page, 1.5)
            page.click("#reset")
            assert page.inner_text("#reset") == "Back to λ = 0"
            assert page.inner_text("#value") == "0.00"
            assert "twice, with the image and without" in page.inner_text("#cost")
            send(page)
            assert "known from before" in page.inner_text("#cost")


def test_scores_without_the_image_may_be_missing(page: Page, drawing: Path) -> None:
    """What a reply says that could not have the prior: the table has what there is, and λ is gone."""
    rows = [{"value": value, "with_image": -0.7, "without_image": None, "corrected": None} for value in ("a", "b")]
    told = {"decision": "kept", "original": None, "proposal": None, "reason": "prior_unavailable", "strength": None,
            "stable_range": None, "margin": None, "clip": None, "candidates": rows, "explanation": None}  # fmt: skip
    answer = {"type": "choice", "name": None, "choice": "a", "confidence": 0, "probabilities": [], "unprior": told}
    served = {"calibrator": None, "calibrator_digest": None, "mode": "observe", "prior_cache": "none", "seconds": 0}
    page.route("**/v1/decisions", lambda route: route.fulfill(json={"answers": [answer], "unprior": served}))
    fill(page, drawing, "How many?", ["a", "b"])
    send(page)
    assert "could not be had" in page.inner_text("#why")
    assert page.inner_text("#verdict").startswith("“a” goes out. The model named none of the answers")
    assert not page.is_visible("#strength")
    assert page.inner_text("tbody tr:first-child").split() == ["a", "50", "%", "−0.70", "–", "–"]


def test_a_calibrator_is_chosen(browser: Browser, start: Serve) -> None:
    with (
        start(calibrators=[f"first={CALIBRATOR}", f"line 4={CALIBRATOR}"]) as address,
        open_page(browser, address) as page,
    ):
        page.select_option("#calibrator", "line 4")
        with page.expect_response("**/v1/decisions") as reply:
            page.click(".example >> nth=0")
        answered(page)
        assert reply.value.json()["unprior"]["calibrator"] == "line 4"
        page.select_option("#calibrator", "first")
        assert "earlier question" in page.inner_text("#stale")


@pytest.mark.parametrize("motion", ["reduce", "no-preference"])
def test_nothing_glides_for_those_who_want_no_motion(browser: Browser, server: str, motion: str) -> None:
    with open_page(browser, server, width=400, reduced_motion=motion) as page:
        page.evaluate(
            "window.scrolled = []; Element.prototype.scrollIntoView = "
            "function (how) { if (this.id === 'answer') window.scrolled.push(how.behavior); }"
        )
        with page.expect_response("**/v1/decisions"):
            page.evaluate("document.querySelector('.example').click()")
        answered(page)
        assert page.evaluate("window.scrolled") == ["auto" if motion == "reduce" else "smooth"]
        moving = (
            "[...document.querySelectorAll('*')].filter(e => getComputedStyle(e).transitionDuration !== '0s').length"
        )
        assert page.evaluate(moving) == 0
