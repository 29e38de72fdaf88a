"""The built site: no warnings, nothing from elsewhere, a twin for every page, no serious accessibility fault."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page

from doc_pages import DOCS, ROOT

pytestmark = pytest.mark.slow
WIDTHS = {"wide": 1280, "narrow": 400}
KINDS = (
    "index", "reference/index", "reference/cli", "reference/python", "reference/files", "reference/models",
    "how-to/your-model", "explanation/strength-gate-range", "executed/gallery/index",
)  # fmt: skip
"""The front page, and pages of every kind; of executed scripts the first ones are added."""
LOADED = {
    "script": "src",
    "link": "href",
    "img": "src",
    "source": "src",
    "iframe": "src",
    "video": "src",
    "use": "href",
}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built with warnings as errors."""
    out = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-b", "html", "-d", out / "doctrees"]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT / "src")}
    built = subprocess.run(
        [*command, DOCS, out / "html"], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert built.returncode == 0, built.stderr[-4000:]
    return out / "html"


class _Resources(HTMLParser):
    """What a page loads, links to, and can be linked at."""

    def __init__(self) -> None:
        super().__init__()
        self.loaded: list[str] = []
        self.links: list[str] = []
        self.places: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.places |= {value for name in ("id", "name") if (value := given.get(name))}
        if tag in LOADED and (address := given.get(LOADED[tag])):
            self.loaded.append(address)
        for address in (given.get("srcset") or "").split(","):
            self.loaded += address.split()[:1]
        if tag == "a" and (address := given.get("href")):
            self.links.append(address)


def pages_of(site: Path) -> list[Path]:
    return sorted(site.rglob("*.html"))


def parsed(page: Path) -> _Resources:
    parser = _Resources()
    parser.feed(page.read_text("utf-8"))
    return parser


def test_nothing_comes_from_elsewhere(site: Path) -> None:
    for page in pages_of(site):
        assert [each for each in parsed(page).loaded if re.match(r"(https?:)?//", each)] == [], page
    for style in [*site.rglob("*.css"), *site.rglob("*.js")]:
        text = style.read_text("utf-8")
        assert not re.search(r"""(url\(|@import|import\(|fetch\()\s*['"]?(https?:)?//""", text), style


def test_links_lead_to_places_that_are_there(site: Path) -> None:
    known = {page: parsed(page) for page in pages_of(site)}
    lost = []
    for page, found in known.items():
        for link in found.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (page.parent / unquote(parts.path)).resolve() if parts.path else page
            target = target / "index.html" if target.is_dir() else target
            places = known[target].places if target in known else None
            if not target.exists() or (parts.fragment and places is not None and unquote(parts.fragment) not in places):
                lost.append(f"{page.relative_to(site)}: {link}")
    assert lost == []


def test_every_page_has_a_twin_that_llms_txt_lists(site: Path) -> None:
    listed = set(re.findall(r"\]\(([^)]+\.md)\)", (site / "llms.txt").read_text("utf-8")))
    pages = {page.relative_to(site).with_suffix(".md").as_posix() for page in pages_of(site)}
    assert pages - {"genindex.md", "search.md"} == listed
    for name in listed:
        twin = (site / name).read_text("utf-8")
        assert re.search(r"^# ", twin, re.MULTILINE), name
        assert "<!--" not in twin
        assert f'href="{Path(name).name}"' in (site / name).with_suffix(".html").read_text("utf-8")


def test_twins_hold_what_was_generated(site: Path) -> None:
    commands = (site / "reference" / "cli.md").read_text("utf-8")
    names = (site / "reference" / "python.md").read_text("utf-8")
    assert "### unprior run" in commands
    assert "`--epsilon-cs NUMBER`" in commands
    assert "`class unprior.SelectivePriorCalibrator(" in names
    assert "**epsilon_cs**" in names


def test_schemas_are_published(site: Path) -> None:
    from site_formats import SCHEMAS, schema_text

    for name in SCHEMAS:
        assert (site / "reference" / "schemas" / f"{name}.json").read_text("utf-8") == schema_text(name)


@pytest.fixture(params=["light", "dark"])
def opened(request: pytest.FixtureRequest, browser: Browser) -> Iterator[Page]:
    context = browser.new_context(color_scheme=request.param, offline=True)
    yield context.new_page()
    context.close()


@pytest.mark.parametrize("width", WIDTHS.values(), ids=list(WIDTHS))
def test_no_serious_accessibility_fault(site: Path, opened: Page, width: int) -> None:
    opened.set_viewport_size({"width": width, "height": 900})
    executed = [next(iter(sorted((site / "executed" / kind).glob("plot_*.html")))) for kind in ("tutorial", "gallery")]
    faults = []
    for page in (*(site / f"{name}.html" for name in KINDS), *executed):
        opened.goto(page.as_uri())
        assert opened.evaluate("document.documentElement.scrollWidth") <= width, page
        found = Axe().run(opened).response["violations"]
        faults += [
            f"{page.relative_to(site)}: {each['id']}: {each['nodes'][0]['html'][:120]}"
            for each in found
            if each["impact"] in ("serious", "critical")
        ]
    assert faults == []
