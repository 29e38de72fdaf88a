"""CDH-Bench: the real file, its flaws, its split; and the upstream layout in small."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from real_data import real_data
from unprior import UnpriorError
from unprior.benchmarks import cdh_bench
from unprior.benchmarks.schema import Benchmark, Example
from unprior.benchmarks.taxonomy import SUBCATEGORIES
from unprior.images import open_image

REPAIRED = {
    56: ("2 centers", "1 center", "3 centers", "4 centers"),
    59: (
        "2 seed heads from one tip",
        "1 seed head at the tip",
        "3 seed heads from one tip",
        "No seed heads on the stem",
    ),
    62: ("5 crowns from one point", "1 crown at the top", "3 crowns from one point", "No crowns on the pineapple"),
    65: (
        "3 spadices from one point",
        "1 spadix at the center",
        "5 spadices from one point",
        "No spadices inside the flower",
    ),
    66: (
        "2 flower blooms from one point",
        "1 flower bloom at the top",
        "3 flower blooms from one point",
        "No flower blooms on the stem",
    ),
    171: (
        "Bed is larger than cat",
        "Cat and bed are proportional",
        "No cat is present",
        "Cat is building-sized, bed is tiny",
    ),
    176: (
        "Dog is not on a leash",
        "Dog is bacteria-sized, walked by a bacterium",
        "No dog is present",
        "Dog is normal-sized, walked by a person",
    ),
    243: ("Partially edible", "No, inedible", "Toxic", "Yes, edible"),
    244: ("Transparent", "Yes, tangible", "Partially solid", "No, intangible"),
    245: ("No, weightless", "Slightly heavy", "Yes, heavy", "Negative weight"),
    262: ("Hot", "Warm", "Cold", "Room temperature"),
    290: ("Only reflects light", "No, it's non-luminous", "Yes, it glows", "Absorbs all light"),
    293: ("Absorbs all light", "Yes, it glows", "Only reflects light", "No, it's non-luminous"),
}


@pytest.fixture(scope="module")
def folder() -> Path:
    return real_data("cdh-bench")


@pytest.fixture(scope="module")
def real(folder: Path) -> Benchmark:
    return cdh_bench.load(folder)


@pytest.fixture(scope="module")
def published(folder: Path) -> dict[int, dict[str, Any]]:
    lines = (folder / "benchmark.jsonl").read_text(encoding="utf-8").splitlines()
    return {int(record["pair_id"].split()[1]): record for record in map(json.loads, lines)}


def named(benchmark: Benchmark, name: str) -> Example:
    return next(example for example in benchmark if example.example_id == name)


def test_counts_are_those_that_were_published(real: Benchmark) -> None:
    assert real.counts() == dict(cdh_bench.CARD.counts)
    assert [example.pair_id for example in real][::4] == list(range(1, 301))
    pairs = {example.pair_id: (example.category, example.subcategory) for example in real}
    assert Counter(pairs.values()) == {(category, name): quota for category, name, quota in SUBCATEGORIES}
    assert Counter((e.task, e.side) for e in real) == {(t, s): 300 for t in ("mc", "qa") for s in ("cf", "cs")}


def test_the_split_is_the_five_lowest_of_each_subcategory(real: Benchmark) -> None:
    split = {example.pair_id: example.split for example in real}
    first, development = 1, set()
    for _, _, quota in SUBCATEGORIES:
        development |= set(range(first, first + 5))
        first += quota
    assert {pair for pair, name in split.items() if name == "dev"} == development
    test = Counter(
        example.category for example in real if example.split == "test" and example.example_id.endswith("cf-mc")
    )
    assert test == {"Counting Anomalies": 80, "Relational Anomalies": 75, "Attribute Anomalies": 75}


def test_flawed_options_are_repaired_and_the_others_untouched(
    real: Benchmark, published: dict[int, dict[str, Any]]
) -> None:
    for pair, record in published.items():
        texts = {named(real, f"{pair}-{side}-mc").texts for side in ("cf", "cs")}
        assert texts == {
            REPAIRED.get(pair) or tuple(option[3:].strip() for option in record["multiple_choice"]["options"])
        }
    assert set(REPAIRED) == set(cdh_bench.PACKED + cdh_bench.BROKEN)


def test_labels_are_the_published_ones(real: Benchmark, published: dict[int, dict[str, Any]]) -> None:
    for example in real:
        record = published[int(str(example.pair_id))]["multiple_choice" if example.task == "mc" else "direct_qa"]
        assert example.answer == record[{"cf": "counterfactual_gt", "cs": "commonsense_gt"}[str(example.side)]]
        assert example.question == record["question"].removeprefix("MC:").strip()


def test_flaws_that_stay(real: Benchmark) -> None:
    assert [named(real, f"222-{side}-mc").answer for side in ("cf", "cs")] == ["A", "A"]
    assert [named(real, f"222-{side}-qa").answer for side in ("cf", "cs")] == ["no", "yes"]
    assert named(real, "77-cf-mc").question == "How many blades do these scissors have?"
    assert named(real, "77-cf-mc").texts == ("6 wheels", "2 wheels", "4 wheels", "8 wheels")
    doubled = {
        example.pair_id: example.texts for example in real if example.texts is not None and len(set(example.texts)) < 4
    }
    assert set(doubled) == {9, 51}
    assert doubled[9][2] == doubled[9][3]
    assert doubled[51][0] == doubled[51][3]
    assert named(real, "56-cf-mc").question == "How many centers does this daisy have?"


def test_exactly_the_named_pairs_have_exchanged_yes_no_labels(real: Benchmark) -> None:
    exchanged = [
        example.pair_id for example in real if example.task == "qa" and (example.side, example.answer) == ("cf", "yes")
    ]
    assert tuple(exchanged) == cdh_bench.INVERTED
    assert sum(named(real, f"{pair}-cf-qa").split == "test" for pair in exchanged) == 12


READ = {
    101, 102, 103, 104, 105, 106, 107, 110, 113, 114, 117, 120, 122, 126, 131, 133, 134, 135, 158, 168, 185, 198, 260,
    261, 287, 292,
}  # fmt: skip
"""Pairs whose claims have the same words in another order or grammar; all were read: yes stands for the first."""


def test_yes_stands_for_the_first_claim(real: Benchmark) -> None:
    def words(text: str) -> set[str]:
        return set(re.findall(r"[a-z0-9']+", text.lower()))

    asked = {example.pair_id: example for example in real if (example.task, example.side) == ("qa", "cs")}
    assert {pair for pair, example in asked.items() if example.claims is None} == set(cdh_bench.UNMATCHED)
    undecided = set()
    for pair, example in asked.items():
        if example.claims is None:
            continue
        assert example.open_question == named(real, f"{pair}-cs-mc").question
        affirmed, denied = map(words, re.split(r"\band not\b", example.question))
        first, second = map(words, example.claims)
        first, second = first - second, second - first
        for_first = len(first & affirmed) + len(second & denied)
        for_second = len(second & affirmed) + len(first & denied)
        undecided |= {pair} if for_first <= for_second else set()
    assert undecided == READ


def test_claims_that_labels_do_not_tell(real: Benchmark) -> None:
    assert named(real, "222-cf-qa").claims == ("green", "purple")
    assert named(real, "280-cf-qa").claims == ("Flexible and drooping", "Rigid and self-supporting")
    ice = named(real, "236-cf-qa")  # its labels are exchanged, its claims are not
    assert (ice.question, ice.claims, ice.answer) == ("Is the ice cold and not hot?", ("Cold", "Hot"), "yes")
    assert named(real, "236-cf-mc").claims is None


def test_all_images_open(real: Benchmark) -> None:
    assert real.missing_images() == []
    assert all(open_image(path).size >= (256, 256) for path in real.images())


PAIR = {
    "category": "Attribute Anomalies",
    "subcategory": "Luminescence/Transparency",
    "pair_id": "Pair 7",
    "pair_name": "a vs b",
    "multiple_choice": {
        "question": "What is it?", "options": ["A. a", "B. b", "C. c", "D. d"], "counterfactual_gt": "A",
        "commonsense_gt": "B",
    },
    "direct_qa": {"question": "Is it b and not a?", "counterfactual_gt": "no", "commonsense_gt": "yes"},
}  # fmt: skip


def write(folder: Path, *records: object) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "benchmark.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return folder


@pytest.mark.parametrize("place", [".", "data"])
@pytest.mark.parametrize("suffix", [".png", ".jpg"])
def test_the_upstream_layout(tmp_path: Path, place: str, suffix: str) -> None:
    write(tmp_path / place, PAIR)
    images = tmp_path / place / "images" / "Luminescence_Transparency" / "Pair_7"
    images.mkdir(parents=True)
    Image.new("RGB", (8, 8)).save(images / f"counterfactual{suffix}")
    benchmark = cdh_bench.load(tmp_path)
    assert named(benchmark, "7-cf-mc").image == images / f"counterfactual{suffix}"
    assert benchmark.missing_images() == [images / "commonsense.png"]


@pytest.mark.parametrize(
    ("records", "message"),
    [
        ([PAIR, {"pair_id": "Pair 8"}], r"line 2: not a pair of CDH-Bench"),
        (
            [PAIR | {"multiple_choice": PAIR["multiple_choice"] | {"options": ["A. a"]}}],
            r"line 1: not a pair.*options are A, not",
        ),  # type: ignore[operator]
        (
            [PAIR | {"multiple_choice": PAIR["multiple_choice"] | {"options": ["A. a", "A. b", "C. c", "D. d"]}}],  # type: ignore[operator]
            r"line 1: not a pair.*options are A, A, C, D, not",
        ),
        (["text"], "line 1: not a JSON object"),
        ([PAIR, PAIR], "two examples are called '7-cf-mc'"),
    ],
)
def test_broken_files_are_named(tmp_path: Path, records: list[object], message: str) -> None:
    with pytest.raises(UnpriorError, match=message):
        cdh_bench.load(write(tmp_path, *records))


def test_the_file_may_have_another_name(tmp_path: Path) -> None:
    write(tmp_path, PAIR)
    (tmp_path / "benchmark.jsonl").rename(tmp_path / "cdh.jsonl")
    (tmp_path / "answers.jsonl").write_text('{"text": "A"}\n')
    assert len(cdh_bench.load(tmp_path)) == 4


def test_a_missing_file_names_the_remedy(tmp_path: Path) -> None:
    with pytest.raises(UnpriorError, match=r"`unprior data get cdh-bench` downloads it.*UNPRIOR_DATA"):
        cdh_bench.load(tmp_path)
