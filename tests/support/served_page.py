"""The page of a server in a real browser, which must not complain or ask anybody else for anything."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page, Request, expect

_WATCH = """
window.violations = [];
document.addEventListener("securitypolicyviolation", (event) => window.violations.push(event.violatedDirective));
"""
REFUSED = "Failed to load resource"
"""What the browser writes about a reply with an error; the page tells its reason."""


@contextmanager
def open_page(browser: Browser, address: str, *, width: int = 1280, **context: Any) -> Iterator[Page]:
    """A window at a server; console errors, policy violations and requests to anywhere else fail the test."""
    window = browser.new_context(viewport={"width": width, "height": 900}, **context)
    page = window.new_page()
    page.add_init_script(_WATCH)
    faults: list[str] = []
    elsewhere: list[str] = []

    def requested(request: Request) -> None:
        if not request.url.startswith((f"{address}/", "data:", "blob:")):
            elsewhere.append(request.url)

    page.on("console", lambda message: faults.append(message.text) if message.type in {"error", "warning"} else None)
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on("request", requested)
    page.goto(address)
    yield page
    assert [fault for fault in faults if not fault.startswith(REFUSED)] == []
    assert elsewhere == []
    assert page.evaluate("window.violations") == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    window.close()


def fill(page: Page, image: Path, question: str, candidates: Sequence[str] = (), kind: str = "choice") -> None:
    """Fill in the form."""
    page.set_input_files("#file", image)
    expect(page.locator("#file-name")).to_have_text(image.name)
    page.check(f"input[name=kind][value={kind}]")
    page.fill("#text", question)
    if candidates:
        page.fill("#candidates", "\n".join(candidates))


def send(page: Page) -> None:
    """Ask, and wait until the answer is told."""
    with page.expect_response("**/v1/decisions"):
        page.click("#send")
    answered(page)


def answered(page: Page) -> None:
    """Wait until nothing is being asked."""
    expect(page.locator("#send")).to_have_text("Ask", timeout=60_000)


def move(page: Page, strength: float) -> None:
    """Put the slider exactly at a strength, as if it was dragged there."""
    page.evaluate(
        "value => { const s = document.getElementById('strength'); s.step = 'any'; s.value = value;"
        " s.dispatchEvent(new Event('input')) }",
        strength,
    )


def first(page: Page) -> str:
    """The answer that the table shows to come first."""
    return page.inner_text("tr.best th bdi")
