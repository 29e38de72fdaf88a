"""The gallery of a benchmark, as a reader sees it: in a real browser."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from PIL import Image
from playwright.sync_api import Browser

from browser_page import opened
from real_data import real_data
from unprior import UnpriorError
from unprior.benchmarks import cdh_bench
from unprior.benchmarks.card import Card, Flaw
from unprior.benchmarks.schema import LETTERS, Benchmark, Example
from unprior.benchmarks.variants import ask_claims
from unprior.prompts import YES_NO
from unprior.report.browse import write_gallery

CATEGORIES = (("Counting", "Fingers"), ("Counting", "Toes"), ("Color", "Fruit"), ("Color", "Sky & <sea>"))


@pytest.fixture(scope="module")
def benchmark(tmp_path_factory: pytest.TempPathFactory) -> Benchmark:
    """Eight pairs; names and texts try to break out of the page, and one image is missing."""
    folder = tmp_path_factory.mktemp("images")
    examples = []
    for number in range(1, 9):
        category, subcategory = CATEGORIES[number % 4]
        for side, letter, answer in (("cf", "B", "no"), ("cs", "A", "yes")):
            path = folder / f"{number}-{side}.png"
            if (number, side) != (3, "cs"):
                Image.new("RGB", (400, 300), (30 * number, 90, 160 if side == "cf" else 60)).save(path)
            common = {"image": path, "pair_id": number, "side": side, "category": category, "subcategory": subcategory,
                      "split": "dev" if number < 4 else "test"}  # fmt: skip
            question = f"How many in group{number}x </script><script>alert(1)</script>?"
            examples.append(Example(f"{number}-{side}-mc", question=question, task="mc", labels=LETTERS,
                                    texts=("five", "six", "<b>seven</b>", "eight"), answer=letter, **common))  # type: ignore[arg-type]  # fmt: skip
            examples.append(Example(f"{number}-{side}-qa", question="Is it five and not six?", task="qa", labels=YES_NO,
                                    answer=answer, **common))  # type: ignore[arg-type]  # fmt: skip
    flaws = (Flaw("asks about <wheels>", "kept as published", (2, 5)), Flaw("all are drawn", "kept"))
    return Benchmark("mine", examples, Card("mine", "eight pairs & more", licence="MIT", flaws=flaws))


@pytest.fixture(scope="module")
def page_file(benchmark: Benchmark, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("gallery") / "gallery.html"
    assert write_gallery(path, benchmark) == 8
    return path


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1600])
def test_pairs_stand_side_by_side_and_nothing_sticks_out(
    browser: Browser, page_file: Path, width: int, scheme: str
) -> None:
    with opened(browser, page_file, width=width, scheme=scheme) as page:
        assert page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") <= 0
        boxes = [figure.bounding_box() for figure in page.locator(".card").first.locator("figure").all()]
        assert len(boxes) == 2
        left, right = boxes
        assert left is not None
        assert right is not None
        assert left["y"] == right["y"]
        assert left["x"] + left["width"] <= right["x"]
        assert left["width"] > 100
        background = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert (sum(int(part) for part in background[4:-1].split(",")) < 384) == (scheme == "dark")


def test_a_card_shows_images_questions_options_and_both_labels(browser: Browser, page_file: Path) -> None:
    with opened(browser, page_file) as page:
        card = page.locator(".card").first
        assert card.locator("img").evaluate_all("images => images.map(image => image.naturalWidth)") == [240, 240]
        assert card.locator("figcaption").all_inner_texts() == ["counterfactual", "commonsense"]
        choice, claim = card.locator(".asked").all()
        assert "</script>" in choice.locator("h3").inner_text(), "text of a benchmark is never markup"
        assert choice.locator(".text").all_inner_texts() == ["five", "six", "<b>seven</b>", "eight"]
        marked = [row.inner_text().split() for row in choice.locator(".right-answer").all()]
        assert marked == [["A", "five", "CS"], ["B", "six", "CF"]]
        assert [row.inner_text().split() for row in claim.locator(".right-answer").all()] == [
            ["yes", "CS"],
            ["no", "CF"],
        ]
        assert "pair 1" in card.locator(".tags").inner_text()


def test_filters_by_category_subcategory_split_flaw_and_words(browser: Browser, page_file: Path) -> None:
    with opened(browser, page_file) as page:
        visible = page.locator(".card:visible")
        assert visible.count() == 8
        page.get_by_role("button", name="Counting", exact=True).click()
        assert visible.count() == page.locator(".card[data-category=Counting]").count() == 4
        assert page.locator("output").inner_text() == "4 of 8 pairs"
        page.get_by_label("Subcategory").select_option("Toes")
        assert visible.count() == 2
        page.get_by_role("button", name="test", exact=True).click()
        assert visible.count() == 1
        page.get_by_role("button", name="All categories").click()
        page.get_by_label("Subcategory").select_option("Sky & <sea>")
        assert visible.count() == 1
        page.get_by_label("Subcategory").select_option("")
        page.get_by_role("button", name="All", exact=True).click()
        page.get_by_role("button", name="With known flaws").click()
        assert visible.count() == 2
        assert visible.first.locator(".flaw").inner_text() == "Known flaw: asks about <wheels>. Kept as published."
        page.get_by_role("button", name="Any").click()
        page.get_by_label("Search the pairs").fill("group7x")
        assert visible.count() == 1
        page.get_by_label("Search the pairs").fill("nothing of the kind")
        assert page.locator("#nothing").is_visible()


def test_what_is_missing_is_said(browser: Browser, page_file: Path) -> None:
    with opened(browser, page_file) as page:
        assert page.locator(".note").inner_text() == "1 images are not there; their places say so."
        assert "3-cs.png: no such image" in page.locator(".photo.empty").inner_text()
        assert "all are drawn: kept" in page.locator("footer").inner_text()


def test_limits_variants_and_questions_without_pairs(browser: Browser, benchmark: Benchmark, tmp_path: Path) -> None:
    assert write_gallery(tmp_path / "few.html", benchmark, 3) == 3
    with opened(browser, tmp_path / "few.html") as page:
        assert "The first 3 of 8 pairs are shown." in page.locator("header").inner_text()
    write_gallery(tmp_path / "forms.html", ask_claims(benchmark))
    with opened(browser, tmp_path / "forms.html") as page:
        assert page.locator(".card").first.locator(".asked").count() == 8
    image = benchmark.examples[0].image
    single = Benchmark("photos", [Example(str(n), image, f"Is it {n}?", "qa", YES_NO, answer="yes") for n in range(3)])
    assert write_gallery(tmp_path / "photos.html", single) == 1
    with opened(browser, tmp_path / "photos.html") as page:
        assert page.locator("output").inner_text() == "1 images"
        assert page.locator(".badge").all_inner_texts() == ["✓"] * 3
    with pytest.raises(UnpriorError, match="has no examples to show"):
        write_gallery(tmp_path / "none.html", Benchmark("none", ()))


def test_the_real_benchmark(browser: Browser, tmp_path: Path) -> None:
    path = tmp_path / "cdh.html"
    assert write_gallery(path, cdh_bench.load(real_data("cdh-bench"))) == 300
    assert path.stat().st_size < 12_000_000
    assert not re.search(rb"(src|href)=\"(?!data:)", path.read_bytes()), "nothing is fetched from anywhere"
    with opened(browser, path) as page:
        assert page.locator(".card").count() == 300
        page.get_by_role("button", name="Attribute Anomalies").click()
        assert page.locator(".card:visible").count() == 100
        page.get_by_role("button", name="All categories").click()
        page.get_by_role("button", name="With known flaws").click()
        assert page.locator(".card:visible").count() == len(
            {pair for flaw in cdh_bench.CARD.flaws for pair in flaw.pairs}
        )
        assert page.locator("img").first.evaluate("image => image.naturalWidth") == 240


def test_open_questions_show_their_right_answers(browser: Browser, tmp_path: Path) -> None:
    long = "a very long answer " * 20
    pair = [
        Example(f"1-{side}", tmp_path / f"{side}.png", "How many <b>legs</b>?", "open", (), answer=answer,
                aliases=aliases, pair_id=1, side=side)
        for side, answer, aliases in (("cf", "6 <i>legs</i>", ("6", "half a dozen")), ("cs", long, ()))
    ]  # fmt: skip
    alone = Example("2", tmp_path / "cf.png", "What is it?", "open", ())
    assert write_gallery(tmp_path / "open.html", Benchmark("mine", [*pair, alone])) == 2
    with opened(browser, tmp_path / "open.html", width=360) as page:
        assert page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") <= 0
        first, second = page.locator(".asked").all()
        assert first.locator("h3").inner_text() == "How many <b>legs</b>?"
        assert first.locator(".text").all_inner_texts() == ["6 <i>legs</i> (or 6, half a dozen)", long.strip()]
        assert first.locator(".badge").all_inner_texts() == ["CF", "CS"]
        assert second.locator("li").count() == 0
