"""Constructed tests: option orders, claims and question forms, on small pairs and on the real file."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from real_data import real_data
from unprior import UnpriorError
from unprior.benchmarks import cdh_bench
from unprior.benchmarks.microworld import microworld
from unprior.benchmarks.registry import load_benchmark
from unprior.benchmarks.schema import LETTERS, Benchmark, Example
from unprior.benchmarks.variants import OPTION_ORDERS, Claims, ask_claims, reorder_options
from unprior.prompts import YES_NO

TEXTS = ("Green", "Yellow", "Blue", "Red")


def pair(number: int, cf: str, cs: str) -> list[Example]:
    return [
        Example(f"{number}-{side}-mc", Path(f"{side}.png"), "What color?", "mc", LETTERS, TEXTS, answer, number, side)
        for side, answer in (("cf", cf), ("cs", cs))
    ]


@pytest.fixture(scope="module")
def real() -> Benchmark:
    return cdh_bench.load(real_data("cdh-bench"))


@pytest.mark.parametrize(
    ("order", "texts", "answers"),
    [
        ((1, 2, 3, 0), ("Yellow", "Blue", "Red", "Green"), ["A", "D"]),
        ((2, 3, 0, 1), ("Blue", "Red", "Green", "Yellow"), ["D", "C"]),
        ((3, 2, 1, 0), ("Red", "Blue", "Yellow", "Green"), ["C", "D"]),
    ],
)
def test_orders_move_texts_and_labels(order: tuple[int, ...], texts: tuple[str, ...], answers: list[str]) -> None:
    moved = reorder_options(Benchmark("mine", pair(1, "B", "A")), order)
    assert [example.texts for example in moved] == [texts, texts]
    assert [example.answer for example in moved] == answers
    assert order in OPTION_ORDERS


def test_the_right_text_stays_right_in_every_order(real: Benchmark) -> None:
    def right(benchmark: Benchmark) -> dict[str, str]:
        return {
            example.example_id: example.texts[LETTERS.index(str(example.answer))]
            for example in benchmark
            if example.texts
        }

    before = right(real)
    for name in ("order-1230", "order-2301", "order-3210"):
        moved = cdh_bench.ENTRY.variants[name].make(real)
        assert right(moved) == before
        assert len(moved) == 600


def shown(example: Example) -> str:
    """What the image of an example of `pair(1, "B", "A")` shows."""
    return "Yellow" if example.side == "cf" else "Green"


def test_claims_and_their_labels() -> None:
    asked = {e.example_id: e for e in ask_claims(Benchmark("mine", pair(1, "B", "A")))}
    assert len(asked) == 2 * 4 * 2
    first = asked["1-cf-contrastive-ordinary-first"]
    assert (
        first.question == 'For the visual question "What color?," is the correct answer "Green" rather than "Yellow"?'
    )
    assert (first.labels, first.texts, first.task, first.answer) == (YES_NO, None, "qa", "no")
    assert (first.form, first.claim_order) == ("contrastive", "ordinary-first")
    assert (first.claims, first.open_question) == (("Green", "Yellow"), "What color?")
    assert asked["1-cf-choice-atypical-first"].claims == ("Yellow", "Green")
    assert all((example.answer == "yes") == (example.claims[0] == shown(example)) for example in asked.values())
    assert asked["1-cs-contrastive-ordinary-first"].answer == "yes"
    assert asked["1-cf-contrastive-atypical-first"].answer == "yes"
    assert asked["1-cs-contrastive-atypical-first"].answer == "no"
    assert asked["1-cs-instead-atypical-first"].question == (
        'Looking only at the image, should the question "What color?" be answered "Yellow" instead of "Green"?'
    )
    assert asked["1-cs-choice-ordinary-first"].question == (
        'Between "Green" and "Yellow," does the image support "Green" as the answer to "What color?"?'
    )
    assert asked["1-cs-reject-second-ordinary-first"].question == (
        'For the image-based question "What color?," would choosing "Yellow" be incorrect because "Green" is the right '
        "answer?"
    )


def test_form_and_order_name_no_other_question() -> None:
    asked = ask_claims(Benchmark("mine", pair(1, "B", "A")))
    assert all(e.example_id == f"1-{e.side}-{e.form}-{e.claim_order}" for e in asked)
    nothing = {"form": None, "claim_order": None, "claims": None, "open_question": None}
    unnamed = asked.with_examples([replace(e, **nothing) for e in asked])
    assert unnamed.digest() == asked.digest(), "stores and tables of 0.1.0 are recognised"


def test_pair_222_takes_its_claims_from_its_name(real: Benchmark) -> None:
    asked = {e.example_id: e for e in cdh_bench.ENTRY.variants["forms"].make(real)}
    question = 'For the visual question "Choose the color of the grass.," is the correct answer "{}" rather than "{}"?'
    for side, order, texts, answer in (
        ("cf", "ordinary-first", ("green", "purple"), "no"),
        ("cs", "ordinary-first", ("green", "purple"), "yes"),
        ("cf", "atypical-first", ("purple", "green"), "yes"),
        ("cs", "atypical-first", ("purple", "green"), "no"),
    ):
        example = asked[f"222-{side}-contrastive-{order}"]
        assert (example.question, example.answer) == (question.format(*texts), answer)
    merged = asked["176-cf-choice-atypical-first"].question
    assert merged.startswith(
        'Between "Dog is bacteria-sized, walked by a bacterium" and "Dog is normal-sized, walked by'
    )


def test_every_image_has_one_yes_and_one_no_in_each_form(real: Benchmark) -> None:
    forms = cdh_bench.ENTRY.variants["forms"].make(real)
    assert len(forms) == 300 * 2 * 4 * 2
    answers = Counter((e.image, e.form, e.answer) for e in forms)
    assert len(answers) == 600 * 4 * 2
    assert set(answers.values()) == {1}
    order = cdh_bench.ENTRY.variants["claim-order"].make(real)
    assert {e.example_id for e in order} == {e.example_id for e in forms if e.form == "contrastive"}
    single = cdh_bench.ENTRY.variants["reject-second-atypical-first"].make(real)
    assert [e.answer for e in single if e.side == "cf"] == ["yes"] * 300


def test_exchanged_yes_no_labels_can_be_set_right(real: Benchmark) -> None:
    right = cdh_bench.ENTRY.variants["qa-relabelled"].make(real)
    assert {(e.side, e.answer) for e in right if e.task == "qa"} == {("cf", "no"), ("cs", "yes")}
    assert [e for e in right if e.task == "mc"] == [e for e in real if e.task == "mc"]


def test_what_cannot_be_made_is_said() -> None:
    same = Benchmark("mine", pair(1, "A", "A"))
    with pytest.raises(UnpriorError, match="both images of pair 1 have the answer 'Green'"):
        ask_claims(same)
    assert len(ask_claims(same, ["choice"], claims={1: Claims("green", "purple")})) == 4
    with pytest.raises(UnpriorError, match="no multiple-choice questions"):
        ask_claims(Benchmark("mine", [Example("1", Path("a.png"), "?", "qa", YES_NO)]))
    with pytest.raises(UnpriorError, match="1-cf-mc does not have 3 options"):
        reorder_options(same, (2, 1, 0))
    with pytest.raises(UnpriorError, match="example 1-cf-mc has no pair to make claims of"):
        ask_claims(Benchmark("mine", pair(1, "B", "A")[:1]))


def test_the_microworld_goes_the_same_way(drawn_world: Path) -> None:
    forms = load_benchmark("microworld", drawn_world, 3, variant="forms")
    assert forms == load_benchmark("microworld-forms", drawn_world, 3) == microworld(drawn_world, 3, variant="forms")
    assert load_benchmark("microworld", drawn_world, 3, variant="presence").name == "microworld-presence-3"
    assert load_benchmark("microworld", drawn_world, 3, variant="standard") == microworld(drawn_world, 3)
    assert load_benchmark("microworld", drawn_world, 3, variant="order-3210").name == "microworld-3-order-3210"
    with pytest.raises(
        UnpriorError, match=r"--variant odd\): microworld has no such variant; choose from standard, forms"
    ):
        load_benchmark("microworld", drawn_world, variant="odd")
