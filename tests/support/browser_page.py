"""A page in a real browser, which must not complain or ask anybody for anything."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, Page


@contextmanager
def opened(browser: Browser, path: Path, *, width: int = 1400, scheme: str = "light") -> Iterator[Page]:
    """The page in a window; complaints of the browser and requests to anywhere else fail the test."""
    page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)  # type: ignore[arg-type]
    complaints: list[str] = []
    requests: list[str] = []
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("request", lambda request: requests.append(request.url))
    page.goto(path.as_uri())
    yield page
    assert complaints == []
    assert [url for url in requests if not url.startswith(("data:", path.as_uri()))] == []
    page.close()
