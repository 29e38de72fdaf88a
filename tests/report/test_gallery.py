from __future__ import annotations

import base64
import dataclasses
import io
import json
from collections import Counter

import pytest
from PIL import Image

from small_tables import twelve_pairs
from unprior import SelectivePriorCalibrator, UnpriorError
from unprior.benchmarks.schema import Benchmark
from unprior.report.gallery import DEFAULT_LIMITS, choose_gallery
from unprior.runs.result import RunResult


def test_outcomes_are_what_they_say(finished: RunResult, benchmark: Benchmark) -> None:
    gallery = choose_gallery(finished.decisions, benchmark)
    rows = {row["example_id"]: row for row in finished.decisions.table.arrow.to_pylist()}
    counted: Counter[str] = Counter()
    for decision, row in zip(finished.decisions, rows.values(), strict=True):
        before, after = decision.original == row["answer"], decision.final == row["answer"]
        counted["repaired"] += not before and after
        counted["harmed"] += before and not after
        counted["kept"] += not decision.revised and decision.proposal != decision.original
    assert gallery.totals == dict(counted)
    for card in gallery.cards:
        if card.outcome == "repaired":
            assert card.right
            assert card.final == card.answer != card.original
        elif card.outcome == "harmed":
            assert not card.right
            assert card.original == card.answer != card.final
        else:
            assert card.final == card.original
    for outcome, limit in DEFAULT_LIMITS.items():
        assert gallery.shown(outcome) == min(limit, counted[outcome])


def test_the_choice_is_spread_and_always_the_same(finished: RunResult) -> None:
    cards = choose_gallery(finished.decisions).cards
    repaired = [card for card in cards if card.outcome == "repaired"]
    assert len({(card.subcategory, card.task) for card in repaired}) > 15
    assert choose_gallery(finished.decisions).cards == cards


def test_bars_are_centred_scores_on_one_scale(finished: RunResult) -> None:
    rows = {(str(row["pair_id"]), row["side"], row["task"]): (row, decision) for row, decision in
            zip(finished.decisions.table.arrow.to_pylist(), finished.decisions, strict=True)}  # fmt: skip
    for card in choose_gallery(finished.decisions).cards:
        row, decision = rows[card.pair, card.side, card.task]
        mean = sum(row["image_scores"]) / len(row["image_scores"])
        assert [each.image.value for each in card.candidates] == pytest.approx(
            [score - mean for score in row["image_scores"]]
        )
        assert [each.corrected.value for each in card.candidates] == pytest.approx(decision.corrected_scores)
        every = [bar for each in card.candidates for bar in (each.image, each.prior, each.corrected)]
        assert min(bar.start for bar in every) == pytest.approx(0, abs=1e-9)
        assert max(bar.start + bar.width for bar in every) == pytest.approx(100)
        longest = max(every, key=lambda bar: abs(bar.value))
        for bar in every:
            assert bar.width * abs(longest.value) == pytest.approx(longest.width * abs(bar.value))
        assert [each.correct for each in card.candidates].count(True) == 1


def test_words_take_the_place_of_letters(finished: RunResult, benchmark: Benchmark) -> None:
    card = next(card for card in choose_gallery(finished.decisions, benchmark).cards if card.task == "mc")
    assert card.answer.endswith(": " + card.answer[0] + " <b>state</b>")
    assert card.original in card.explanation
    assert card.question is not None


def test_images_are_small_copies(finished: RunResult, benchmark: Benchmark) -> None:
    card = choose_gallery(finished.decisions, benchmark).cards[0]
    assert card.image is not None
    kind, content = card.image.split(",", 1)
    assert kind == "data:image/jpeg;base64"
    assert Image.open(io.BytesIO(base64.b64decode(content))).size == (280, 210)


def test_a_missing_image_is_named(finished: RunResult, benchmark: Benchmark) -> None:
    lost = [dataclasses.replace(each, image=each.image.with_name("lost.png")) for each in benchmark]
    card = choose_gallery(finished.decisions, Benchmark("lost", lost)).cards[0]
    assert card.image is None
    assert "no such image" in str(card.missing)


def test_the_wrong_benchmark_is_refused(finished: RunResult, benchmark: Benchmark) -> None:
    others = [dataclasses.replace(each, example_id="other " + each.example_id) for each in benchmark]
    with pytest.raises(UnpriorError, match=r"no row .* benchmark other things; give the benchmark that was scored"):
        choose_gallery(finished.decisions, Benchmark("other things", others))


def test_cards_name_the_stable_range(finished: RunResult) -> None:
    cards = choose_gallery(finished.decisions).cards
    assert all(" to " in card.stable_range or card.stable_range == "for no single λ" for card in cards)
    assert any(card.stable_range.endswith("∞") for card in cards)


def test_answers_that_could_not_be_parsed() -> None:
    rows = twelve_pairs().arrow.to_pylist()
    for row in rows:
        row["original"] = None if row["split"] == "test" else row["original"]
    table = type(twelve_pairs()).from_rows(rows)
    decisions = SelectivePriorCalibrator().fit(table).predict(table.where(split="test"))
    cards = choose_gallery(decisions).cards
    assert cards
    assert all(card.original == "no answer" for card in cards)
    assert json.dumps([card.explanation for card in cards])
