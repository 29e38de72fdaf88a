"""The page in a real browser: asked by keyboard, moved by λ, one answer for one question, commands that run."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from playwright.sync_api import Browser, Page, Route, expect

from served_page import answered, fill, first, move, open_page, send
from tests.serving.conftest import Serve, body, choice, data_url
from unprior.benchmarks.schema import Benchmark, Example
from unprior.embedded import CALIBRATOR
from unprior.engines.protocol import Engine
from unprior.scoring.ask import Answer, ask


@pytest.fixture
def page(browser: Browser, server: str) -> Iterator[Page]:
    with open_page(browser, server, permissions=["clipboard-read", "clipboard-write"]) as opened:
        yield opened


@pytest.fixture(scope="module")
def revised(choices: Benchmark, embedded: Engine) -> tuple[Example, Answer]:
    for example in choices:
        answer = ask(embedded, example.image, example.question, options=example.texts, calibrator=CALIBRATOR)
        if answer.final != answer.original:
            return example, answer
    raise AssertionError("nothing is revised")


def texts_of(example: Example) -> dict[str, str]:
    return dict(zip("ABCDEF", example.texts or (), strict=False))


def tab_to(page: Page, wanted: str) -> None:
    """Press Tab until an element has the focus."""
    for _ in range(60):
        if page.evaluate("wanted => document.activeElement.matches(wanted)", wanted):
            return
        page.keyboard.press("Tab")
    raise AssertionError(f"the keyboard does not reach {wanted}")


def test_everything_is_reached_by_keyboard(page: Page, revised: tuple[Example, Answer]) -> None:
    example, answer = revised
    page.on("filechooser", lambda _: None)  # choosers are caught from here on, not only once one opens
    tab_to(page, "#file")
    assert page.evaluate("getComputedStyle(document.getElementById('drop')).outlineStyle") == "solid"
    with page.expect_file_chooser() as chosen:
        page.keyboard.press("Enter")
    chosen.value.set_files(example.image)
    expect(page.locator("#file-name")).to_have_text(example.image.name)
    tab_to(page, "#text")
    page.keyboard.type(example.question)
    tab_to(page, "input[name=kind]:checked")
    page.keyboard.press("ArrowRight")
    assert page.is_checked("input[value=predicate]")
    assert not page.is_visible("#candidates")
    page.keyboard.press("ArrowLeft")
    tab_to(page, "#candidates")
    page.keyboard.type("\n".join(example.texts or ()))
    tab_to(page, "#send")
    with page.expect_response("**/v1/decisions"):
        page.keyboard.press("Enter")
    answered(page)
    original, final = (texts_of(example)[str(label)] for label in (answer.original, answer.final))
    assert page.inner_text("#verdict") == f"“{final}” goes out. The calibrator changed the model's answer “{original}”."
    assert page.inner_text("#why") == answer.explanation
    assert page.evaluate("document.activeElement.id") == "send"
    tab_to(page, "#strength")
    before = page.input_value("#strength")
    page.keyboard.press("Home")
    assert first(page) == original
    assert page.inner_text("#value") == "0.00"
    assert page.inner_text("#moved") == f"At λ = 0.00, “{original}” comes first: the model's own answer."
    page.keyboard.press("ArrowRight")
    assert page.inner_text("#value") == "0.01"
    tab_to(page, "#reset")
    page.keyboard.press("Enter")
    assert (page.input_value("#strength"), first(page)) == (before, final)
    tab_to(page, "summary")
    page.keyboard.press("Enter")
    for name in ("curl", "python"):
        tab_to(page, f"[data-copy={name}]")
        page.keyboard.press("Enter")
        expect(page.locator(f"[data-copy={name}]")).to_have_text("Copied")
        assert page.evaluate("navigator.clipboard.readText()") == page.text_content(f"#{name}")


def test_an_example_is_asked_by_keyboard(page: Page) -> None:
    tab_to(page, ".example")
    with page.expect_response("**/v1/decisions"):
        page.keyboard.press("Enter")
    answered(page)
    assert page.evaluate("document.activeElement.getAttribute('aria-pressed')") == "true"
    assert "goes out" in page.inner_text("#verdict")


@pytest.mark.parametrize("mode", ["enforce", "observe"])
def test_the_examples_show_what_they_say(browser: Browser, start: Serve, mode: str) -> None:
    does = {"repaired": "repair", "harmed": "harm", "kept": "leave"}
    with start(mode=mode) as address, open_page(browser, address) as page:
        examples = json.loads(page.text_content("#examples") or "")
        assert {each["label"] for each in examples} == set(does)
        for place, example in enumerate(examples):
            with page.expect_response("**/v1/decisions") as reply:
                page.click(f".example >> nth={place}")
            answered(page)
            told = reply.value.json()["answers"][0]["unprior"]
            original, proposal = (
                {True: "yes", False: "no"}.get(told[name], told[name]) for name in ("original", "proposal")
            )
            about, verdict, why = (page.inner_text(each) for each in ("#about", "#verdict", "#why"))
            would = "would " if mode == "observe" else ""
            assert f"The image shows {example['about']}: the calibrator {would}{does[example['label']]}" in about
            if example["label"] == "kept":
                assert verdict == f"“{original}” goes out. The calibrator {'would keep' if would else 'kept'} it."
                assert why.startswith("Kept")
            elif mode == "enforce":
                assert verdict == f"“{proposal}” goes out. The calibrator changed the model's answer “{original}”."
                assert why.startswith("Changed")
            else:
                would_be = f"The calibrator would change it to “{proposal}”, but this server only observes."
                assert verdict == f"“{original}” goes out. {would_be}"
                assert why.startswith("Would change")
            # The image shows the right answer: a repair ends there, a harm begins there.
            right = next((name for name in (original, proposal) if str(name) in example["about"]), None)
            if example["kind"] != "predicate":
                assert right == (proposal if example["label"] == "repaired" else original)


def test_the_decision_flips_where_the_stable_range_ends(page: Page, revised: tuple[Example, Answer]) -> None:
    example, answer = revised
    original, final = (texts_of(example)[str(label)] for label in (answer.original, answer.final))
    fill(page, example.image, example.question, example.texts or ())
    send(page)
    assert answer.decision is not None
    low = answer.decision.range_low
    assert f"{low:.3f}" in page.inner_text("#flips")
    for strength, best in ((low + 1e-6, final), (low - 1e-6, original)):
        move(page, strength)
        assert first(page) == best
        assert f"“{best}” comes first" in page.inner_text("#moved")
        assert page.inner_text("#firsts .here") == best
    # The shade and the mark stand where the thumb does: its middle goes from half its width to as far from the end.
    page.click("#reset")
    box = {name: page.locator(f"#{name}").bounding_box() for name in ("strength", "stable", "own")}
    track, stable, own = (box[name] or {} for name in ("strength", "stable", "own"))
    scale = (track["width"] - 20) / float(page.get_attribute("#strength", "max") or 0)
    assert stable["x"] == pytest.approx(track["x"] + 10 + scale * low, abs=1)
    assert own["x"] + 1 == pytest.approx(track["x"] + 10 + scale * answer.decision.strength, abs=1)
    assert page.inner_text("#own") == f"calibrator's λ = {answer.decision.strength:.2f}"


def test_crossings_are_those_of_the_server(page: Page, server: str, choices: Benchmark) -> None:
    script = """async ({image, prior, clip, strength}) => {
        const {clipped, corrected, firstPlaces} = await import("./assets/lambda.js");
        const used = clipped(prior, clip);
        const parts = firstPlaces(image, used).map(({place, from, to}) => [place, from, to === Infinity ? null : to]);
        return {used, parts, corrected: corrected(image, used, strength)};
    }"""
    kinds: dict[str, int] = {}
    clips = flips = 0
    for example in choices.examples[:24]:
        questions: list[dict[str, Any]] = [
            choice(example.question, *(example.texts or ())),
            {"type": "predicate", "instructions": f"{example.question} Is it five?"},
            {"type": "open", "instructions": example.question},
        ]
        reply = httpx.post(f"{server}/v1/decisions", json=body(data_url(example.image), *questions), timeout=60).json()
        for question, answer in zip(questions, reply["answers"], strict=True):
            told = answer["unprior"]
            if told["stable_range"] is None:
                continue
            rows = told["candidates"]
            image, prior = ([row[name] for row in rows] for name in ("with_image", "without_image"))
            given = {"image": image, "prior": prior, "clip": told["clip"], "strength": told["strength"]}
            found = page.evaluate(script, given)
            assert found["corrected"] == pytest.approx([row["corrected"] for row in rows], abs=1e-9)
            place = [row["value"] for row in rows].index(told["proposal"])
            (own,) = [part[1:] for part in found["parts"] if part[0] == place]
            low, high = told["stable_range"]
            assert own[0] == pytest.approx(low, abs=1e-9)
            assert (own[1] is None) == (high is None)
            assert high is None or own[1] == pytest.approx(high, rel=1e-9)
            # The parts follow each other without a gap, and who is first there has the highest corrected score.
            parts = found["parts"]
            assert [part[1] for part in parts] == [0, *(part[2] for part in parts[:-1])]
            for each, start, end in parts:
                middle = start + 1 if end is None else (start + end) / 2
                values = [score - middle * habit for score, habit in zip(image, found["used"], strict=True)]
                assert values[each] == max(values)
            kinds[question["type"]] = kinds.get(question["type"], 0) + 1
            clips += found["used"] != prior
            flips += len(parts) > 1
    assert sum(kinds.values()) >= 50
    assert min(kinds.values()) >= 10
    assert set(kinds) == {"choice", "predicate", "open"}
    assert clips >= 5
    assert flips >= 20


@pytest.mark.parametrize("width", [1280, 400])
def test_nothing_moves_while_the_strength_does(browser: Browser, server: str, width: int) -> None:
    long = "an answer that is much longer than the others, so that it takes several lines of a table " * 2
    rows = [
        {"value": value, "with_image": seen, "without_image": blind, "corrected": None}
        for value, seen, blind in ((long, -0.1, -0.1), ("b", -2.0, -5.0), ("c", -4.0, -4.0))
    ]
    told = {"decision": "kept", "original": "b", "proposal": None, "reason": "no_calibrator", "strength": None,
            "stable_range": None, "clip": None, "candidates": rows, "explanation": None}  # fmt: skip
    answer = {"type": "choice", "choice": "b", "unprior": told}
    served = {"mode": "observe", "prior_cache": "miss", "seconds": 0}
    with open_page(browser, server, width=width) as page:
        page.route("**/v1/decisions", lambda route: route.fulfill(json={"answers": [answer], "unprior": served}))
        page.click(".example >> nth=0")
        expect(page.locator("#result")).to_be_visible()
        script = "[...document.querySelectorAll('#track, #reset, #flips, #scores tr, #cost')].map(e => e.offsetTop)"
        before, seen = page.evaluate(script), set()
        for tenth in range(21):
            move(page, tenth / 10)
            seen.add(first(page))
            assert page.evaluate(script) == before
        assert seen == {long.strip(), "b"}


def test_an_answer_of_an_earlier_question_is_marked(page: Page, choices: Benchmark) -> None:
    one, other = choices.examples[:2]
    fill(page, one.image, one.question, one.texts or ())
    send(page)
    assert page.inner_text("#stale") == ""
    changes = {
        "question": lambda: page.fill("#text", "Something else?"),
        "candidates": lambda: page.fill("#candidates", "a\nb"),
        "kind": lambda: page.check("input[value=predicate]"),
        "image": lambda: fill(page, other.image, one.question, one.texts or ()),
    }
    for change in changes.values():
        change()
        assert "earlier question" in page.inner_text("#stale")
        assert page.get_attribute("#result", "class") == "old"
        assert one.question in page.inner_text("#about")
        if page.inner_text("#file-name") == one.image.name:  # taken back, the answer belongs to the question again
            page.check("input[value=choice]")
            page.fill("#text", one.question)
            page.fill("#candidates", "\n".join(one.texts or ()))
            assert page.inner_text("#stale") == ""
    page.fill("#text", "Which <image>?")
    send(page)
    assert "control token" in page.inner_text("#problem")
    assert "earlier question" in page.inner_text("#stale")


def test_a_later_request_replaces_an_earlier_one(page: Page, choices: Benchmark) -> None:
    example = choices.examples[0]
    held: list[Route] = []
    page.route("**/v1/decisions", lambda route: route.continue_() if held else held.append(route))
    fill(page, example.image, "The first question?", ["a", "b"])
    with page.expect_request("**/v1/decisions"):
        page.click("#send")
    page.fill("#text", "The second question?")
    send(page)
    assert "The second question?" in page.inner_text("#about")
    held[0].fulfill(status=500, body="too late")  # nobody waits for it any more
    assert page.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(1))))") == 1
    assert "The second question?" in page.inner_text("#about")
    assert page.inner_text("#problem") == ""


def test_two_clicks_ask_once(page: Page, choices: Benchmark) -> None:
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url) if request.url.endswith("decisions") else None)
    fill(page, choices.examples[0].image, "How many?", ["a", "b"])
    with page.expect_response("**/v1/decisions"):
        page.dblclick("#send")
    answered(page)
    page.dispatch_event("#send", "click", {"detail": 2})  # of a double click whose first one was answered at once
    page.dispatch_event(".example >> nth=0", "click", {"detail": 2})
    expect(page.locator("#send")).to_have_text("Ask")
    assert len(asked) == 1
    held: list[Route] = []
    page.route("**/v1/decisions", lambda route: held.append(route))  # noqa: PLW0108 (playwright writes to it)
    page.fill("#text", "How many of them?")
    page.focus("#send")
    with page.expect_request("**/v1/decisions"):
        page.keyboard.press("Enter")
    page.keyboard.press("Enter")  # while the first is under way
    page.click("#send")
    held[0].continue_()
    answered(page)
    assert len(held) == 1
    page.unroute("**/v1/decisions")
    with page.expect_response("**/v1/decisions"):
        page.dblclick(".example >> nth=0")
    answered(page)
    assert len(asked) == 3


@pytest.mark.parametrize("how", ["drop", "paste"])
def test_an_image_is_dropped_or_pasted(page: Page, server: str, how: str) -> None:
    give = """async ([how, name, type, content]) => {
        const blob = await (await fetch(content)).blob();
        const data = new DataTransfer();
        data.items.add(new File([blob], name, {type}));
        const options = {bubbles: true, cancelable: true};
        const event = how === "drop" ? new DragEvent("drop", {...options, dataTransfer: data})
                                     : new ClipboardEvent("paste", {...options, clipboardData: data});
        document.body.dispatchEvent(event);
        return event.defaultPrevented;
    }"""
    assert page.evaluate(give, [how, "notes.txt", "text/plain", f"{server}/version"]) == (how == "drop")
    assert ("give a PNG" in page.inner_text("#problem")) == (how == "drop")
    assert page.evaluate(give, [how, "hand.png", "image/png", f"{server}/examples/0.png"])
    expect(page.locator("#file-name")).to_have_text("hand.png")
    assert page.inner_text("#problem") == ""
    page.fill("#text", "How many noses?")
    page.fill("#candidates", "0 noses\n1 nose")
    send(page)
    assert "goes out" in page.inner_text("#verdict")


def test_the_copied_commands_run(browser: Browser, start: Serve, choices: Benchmark, tmp_path: Path) -> None:
    if shutil.which("curl") is None:
        pytest.skip("there is no curl")
    image = tmp_path / "it's a $(hand) <b>.png"
    image.write_bytes(choices.examples[0].image.read_bytes())
    files = [f"first={CALIBRATOR}", f"it's second={CALIBRATOR}"]
    with start(calibrators=files) as address, open_page(browser, address) as page:
        page.select_option("#calibrator", "it's second")
        cases: list[tuple[str, str, tuple[str, ...]]] = [
            ("choice", 'It\'s `how` many $HOME \\n "arms"?\nSay!', ("it's 1", '2 \\ "two"')),
            ("predicate", "Is it a hand?", ()),
            ("open", "How many fingers are on the hand?", ()),
            ("example", "", ()),
        ]
        for kind, question, candidates in cases:
            if kind == "example":
                with page.expect_response("**/v1/decisions") as reply:
                    page.click(".example >> nth=2")
                answered(page)
            else:
                fill(page, image, question, candidates, kind)
                with page.expect_response("**/v1/decisions") as reply:
                    page.click("#send")
                answered(page)
            expected = reply.value.json()
            assert expected["unprior"]["calibrator"] == "it's second"
            done = run(["bash", "-c", page.text_content("#curl") or ""], tmp_path)
            got = json.loads(done)
            assert got["answers"] == expected["answers"]
            assert got["unprior"]["calibrator"] == "it's second"
            done = run([sys.executable, "-c", page.text_content("#python") or ""], tmp_path)
            assert done.splitlines()[0] == expected["answers"][0]["unprior"]["explanation"]


def run(command: list[str], folder: Path) -> str:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout
