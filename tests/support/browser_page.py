"""A page in a real browser, which must not complain or ask anybody for anything."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, ConsoleMessage, Error, Page, Request


@contextmanager
def opened(browser: Browser, path: Path, *, width: int = 1400, scheme: str = "light") -> Iterator[Page]:
    """The page in a window; complaints of the browser and requests to anywhere else fail the test.

    All pages come into the same window, one after the other: a new one would be a process of its own.
    """
    page = browser.contexts[0].pages[0] if browser.contexts else browser.new_page()
    page.set_viewport_size({"width": width, "height": 900})
    page.emulate_media(color_scheme=scheme, media="null")  # type: ignore[arg-type]
    complaints: list[str] = []
    requests: list[str] = []

    def complain(message: ConsoleMessage) -> None:
        complaints.append(message.text)

    def fail(error: Error) -> None:
        complaints.append(str(error))

    def ask(request: Request) -> None:
        requests.append(request.url)

    page.on("console", complain)
    page.on("pageerror", fail)
    page.on("request", ask)
    try:
        page.goto(path.as_uri())
        yield page
    finally:
        page.remove_listener("console", complain)
        page.remove_listener("pageerror", fail)
        page.remove_listener("request", ask)
        page.goto("about:blank")
    assert complaints == []
    assert [url for url in requests if not url.startswith(("data:", path.as_uri()))] == []
