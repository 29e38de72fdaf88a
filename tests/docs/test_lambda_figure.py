"""The λ figure of the docs in a real browser: the crossings of the package, a keyboard, and the numbers of a run."""

from __future__ import annotations

import functools
import json
import re
import shutil
import threading
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page

from served_page import open_page
from tools.lambda_figure import DATA, PAGE, SECTION, TITLES, examples_of, first_places, numbers
from unprior.calibration.ranges import stable_ranges

FIGURE = json.loads(DATA.read_text(encoding="utf-8"))
EXAMPLES: list[dict[str, Any]] = FIGURE["examples"]
THEMES = {("light", "dark"): "light", ("dark", "light"): "dark", ("auto", "dark"): "dark", ("auto", "light"): "light"}


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *arguments: object) -> None:
        pass


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The figure as the page embeds it, and nothing else of the site."""
    folder = tmp_path_factory.mktemp("site")
    shutil.copytree(DATA.parent, folder / "_static")
    embedded = re.search(r"<link rel=.*?</script>", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert embedded is not None
    head = '<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
    text = f'{head}<title>λ</title><body data-theme="auto"><main><h1>λ</h1>{embedded[0]}</main></body></html>'
    (folder / "index.html").write_text(text, encoding="utf-8")
    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(_Quiet, directory=str(folder)))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def page(browser: Browser, site: str) -> Iterator[Page]:
    with open_page(browser, site) as opened:
        opened.wait_for_selector(".lf-panel")
        yield opened


def choose(page: Page, label: str) -> dict[str, Any]:
    place = list(TITLES).index(label)
    page.locator(".lf-examples label").nth(place).click()
    return EXAMPLES[place]


def move(page: Page, strength: float) -> None:
    page.evaluate(
        "value => { const s = document.getElementById('lf-strength'); s.step = 'any'; s.value = value;"
        " s.dispatchEvent(new Event('input')) }",
        strength,
    )


def ranges(image: list[float], prior: list[float]) -> list[tuple[float, float] | None]:
    """The stable range of every candidate, None where it has none."""
    scores = [np.tile(np.array(values)[:, None], len(values)) for values in (image, prior)]
    low, high = stable_ranges(scores[0], scores[1], np.arange(len(image)))
    found = zip(low.tolist(), high.tolist(), strict=True)
    return [None if np.isnan(each[0]) or each[0] == each[1] else each for each in found]


def test_crossings_are_those_of_the_package(page: Page) -> None:
    rng = np.random.default_rng(0)
    drawn = [(rng.normal(0, 2, K).tolist(), rng.normal(0, 2, K).tolist()) for K in (2, 3, 4, 6) for _ in range(50)]
    tables = [(each["image"], each["prior"]) for each in EXAMPLES] + drawn
    script = """async (tables) => {
        const {firstPlaces} = await import("./_static/lambda-figure.js");
        return tables.map(([image, prior]) => firstPlaces(image, prior)
            .map(({place, from, to}) => [place, from, to === Infinity ? null : to]));
    }"""
    flips = 0
    for (image, prior), parts in zip(tables, page.evaluate(script, tables), strict=True):
        expected = ranges(image, prior)
        assert [part[0] for part in parts] == [place for place, _, _ in first_places(image, prior)]
        assert {part[0] for part in parts} == {place for place, each in enumerate(expected) if each is not None}
        for place, low, high in parts:
            known = expected[place]
            assert known is not None
            assert low == pytest.approx(known[0], rel=1e-12, abs=1e-12)
            assert (np.inf if high is None else high) == pytest.approx(known[1], rel=1e-12)
        flips += len(parts) - 1
    assert flips > 100


def test_the_first_place_changes_exactly_at_a_crossing(page: Page) -> None:
    flips = 0
    for label in TITLES:
        example = choose(page, label)
        parts = [part for part in first_places(example["image"], example["prior"]) if part[1] < 2]
        for (before, _, _), (after, at, _) in pairwise(parts):
            for strength, place in ((at - 1e-6, before), (at + 1e-6, after)):
                move(page, strength)
                name = example["candidates"][place]
                assert page.inner_text(".lf-best .lf-name") == name
                assert page.inner_text(".lf-verdict").startswith(f"“{name}” comes first")
                assert page.inner_text(".lf-here") == name
            assert f"= {at:.3f}." in page.inner_text("#lf-crossings")
            flips += 1
    assert flips >= 5


def test_the_gate_decides_as_the_calibrator_did(page: Page) -> None:
    words = {
        "repaired": "a repair",
        "partner": "the model's own answer",
        "harmed": "a harm",
        "stopped": "no support condition holds",
        "beyond": "the model's own answer",
        "yes-no": "a repair",
    }
    for label, told in words.items():
        example = choose(page, label)
        assert page.inner_text(".lf-best .lf-name") == example["proposal"]
        assert told in page.inner_text(".lf-verdict")
        assert ("let it replace" in page.inner_text(".lf-verdict")) == (example["final"] != example["original"])
        assert example["explanation"] in page.inner_text(".lf-why")


def test_the_shade_is_the_stable_range(page: Page) -> None:
    example = choose(page, "harmed")
    low, high = next(part[1:] for part in first_places(example["image"], example["prior"])
                     if example["candidates"][part[0]] == example["proposal"])  # fmt: skip
    boxes = [page.locator(name).bounding_box() or {} for name in ("#lf-strength", ".lf-stable", ".lf-own")]
    track, stable, own = boxes
    scale = (track["width"] - 20) / 2
    assert stable["x"] == pytest.approx(track["x"] + 10 + scale * low, abs=1)
    assert stable["width"] == pytest.approx(scale * (high - low), abs=1)
    assert own["x"] + 1 == pytest.approx(track["x"] + 10 + scale * example["strength"], abs=1)
    assert f"from {low:.3f} to {high:.3f}" in page.inner_text("#lf-crossings")


def test_everything_is_reached_by_keyboard(page: Page) -> None:
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.name") == "lf-example"
    page.keyboard.press("ArrowRight")
    assert EXAMPLES[1]["shows"] in page.inner_text(".lf-about")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.id") == "lf-strength"
    page.keyboard.press("Home")
    assert page.inner_text(".lf-value") == "0.00"
    page.keyboard.press("ArrowRight")
    assert page.inner_text(".lf-value") == "0.01"
    assert page.get_attribute("#lf-strength", "aria-valuetext") == "0.01, 1 nose comes first"
    page.keyboard.press("End")
    assert page.inner_text(".lf-value") == "2.00"
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    assert page.inner_text(".lf-value") == f"{EXAMPLES[1]['strength']:.2f}"


def test_the_verdict_is_said_once_for_every_change(page: Page) -> None:
    assert page.get_attribute(".lf-verdict", "aria-live") == "polite"
    page.evaluate(
        "() => { window.said = []; const verdict = document.querySelector('.lf-verdict');"
        " new MutationObserver(() => said.push(verdict.textContent))"
        ".observe(verdict, {childList: true, characterData: true, subtree: true}) }"
    )
    choose(page, "harmed")
    for hundredth in range(0, 201, 5):
        move(page, hundredth / 100)
    said = page.evaluate("said")
    assert [text.split("”")[0] for text in said] == ["“4 arms", "“2 arms", "“4 arms", "“1 arm"]


@pytest.mark.parametrize("width", [1280, 400])
def test_nothing_moves_while_the_strength_does(browser: Browser, site: str, width: int) -> None:
    with open_page(browser, site, width=width) as page:
        page.wait_for_selector(".lf-panel")
        script = "[...document.querySelectorAll('.lf-track, button, #lf-crossings, tr, .lf-why')].map(e => e.offsetTop)"
        for label in TITLES:
            choose(page, label)
            before = page.evaluate(script)
            for tenth in range(21):
                move(page, tenth / 10)
                assert page.evaluate(script) == before


@pytest.mark.parametrize(("theme", "scheme"), list(THEMES))
def test_light_and_dark_follow_the_theme_of_the_site(browser: Browser, site: str, theme: str, scheme: str) -> None:
    with open_page(browser, site, color_scheme=scheme) as page:
        page.wait_for_selector(".lf-panel")
        page.evaluate("theme => { document.body.dataset.theme = theme }", theme)
        ground = page.evaluate("getComputedStyle(document.querySelector('.lf-panel')).backgroundColor")
        assert ground == {"light": "rgb(255, 255, 255)", "dark": "rgb(22, 27, 34)"}[THEMES[theme, scheme]]
        page.evaluate("ground => { document.body.style.background = ground }", ground)
        found = Axe().run(page).response["violations"]
        assert [each["id"] for each in found if each["impact"] in {"serious", "critical"}] == []


def test_without_javascript_there_is_text(browser: Browser, site: str) -> None:
    window = browser.new_context(java_script_enabled=False)
    page = window.new_page()
    page.goto(site)
    assert "The table below has the same numbers" in page.inner_text("#lambda-figure")
    window.close()


def test_the_numbers_are_those_of_a_run(default_run: Path) -> None:
    found = examples_of(default_run)
    assert {name: found[name] for name in ("method", "min_margin")} == {
        name: FIGURE[name] for name in ("method", "min_margin")
    }
    for ours, stored in zip(found["examples"], EXAMPLES, strict=True):
        for name in ("image", "prior", "strength"):
            assert ours[name] == pytest.approx(stored[name], abs=1e-3), name
        same = set(stored) - {"image", "prior", "strength", "picture"}
        assert {name: ours[name] for name in same} == {name: stored[name] for name in same}
        assert stored["picture"].startswith("data:image/jpeg;base64,")


def test_the_table_beside_the_figure_has_its_numbers() -> None:
    text = PAGE.read_text(encoding="utf-8")
    section = text.partition(f"<!-- {SECTION} -->\n")[2].partition(f"<!-- /{SECTION} -->")[0]
    assert section.startswith(numbers(EXAMPLES) + "\n")
