"""The benchmark: quotas, split, questions and labels, images on disk."""

import shutil
from collections import Counter
from pathlib import Path

import pytest
from PIL import Image

from unprior.answer_forms import is_accepted
from unprior.benchmarks.forms import CLAIM_ORDERS, FORMS
from unprior.benchmarks.microworld import microworld, pairs
from unprior.benchmarks.microworld.benchmark import CARDS
from unprior.benchmarks.microworld.concepts import number_of
from unprior.benchmarks.microworld.options import OPTION_COUNTS
from unprior.benchmarks.schema import LETTERS, Benchmark, Example
from unprior.benchmarks.taxonomy import SUBCATEGORIES
from unprior.errors import UnpriorError


@pytest.fixture(scope="module")
def folder(drawn_world: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Path(shutil.copytree(drawn_world, tmp_path_factory.mktemp("world"), dirs_exist_ok=True))


@pytest.fixture(scope="module")
def world(folder: Path) -> Benchmark:
    return microworld(folder, 3)


def test_quotas_and_split_are_those_of_cdh_bench() -> None:
    everything = list(pairs(0))
    assert [pair.number for pair in everything] == list(range(1, 301))
    assert Counter((pair.category, pair.subcategory) for pair in everything) == {
        (category, subcategory): quota for category, subcategory, quota in SUBCATEGORIES
    }
    development = Counter(pair.subcategory for pair in everything if pair.split == "dev")
    assert set(development.values()) == {5}
    assert len(development) == 14


@pytest.mark.parametrize("seed", [0, 1, 17])
def test_every_concept_appears_and_seeds_differ(seed: int) -> None:
    everything = list(pairs(seed))
    for _, subcategory, _ in SUBCATEGORIES:
        assert len({pair.concept.name for pair in everything if pair.subcategory == subcategory}) >= 5
    assert everything == list(pairs(seed))
    assert everything != list(pairs(seed + 1))


def test_each_image_has_one_choice_and_one_claim(world: Benchmark) -> None:
    assert world.name == "microworld-3"
    assert len(world) == 1200
    assert Counter((example.task, example.side) for example in world) == {
        (task, side): 300 for task in ("mc", "qa") for side in ("cf", "cs")
    }
    by_pair = {pair.number: pair for pair in pairs(3)}
    for example in world:
        pair = by_pair[int(str(example.pair_id))]
        if example.task == "qa":
            assert example.answer == {"cf": "no", "cs": "yes"}[str(example.side)]
            continue
        assert example.texts is not None
        assert sorted(example.texts) == sorted(pair.concept.states)
        shown = pair.atypical if example.side == "cf" else pair.concept.ordinary
        assert example.texts[LETTERS.index(str(example.answer))] == shown


def test_right_letters_are_spread_evenly(world: Benchmark) -> None:
    letters = Counter((example.side, example.answer) for example in world if example.task == "mc")
    assert all(45 <= count <= 110 for count in letters.values())
    assert len(letters) == 8


def test_forms_ask_both_claims_in_both_orders(folder: Path, world: Benchmark) -> None:
    forms = microworld(folder, 3, variant="forms")
    assert len(forms) == 600 * len(FORMS) * len(CLAIM_ORDERS)
    assert Counter(example.answer for example in forms) == {"yes": len(forms) // 2, "no": len(forms) // 2}
    first = next(iter(pairs(3)))
    example = _named(forms, "1-cf-reject-second-atypical-first")
    assert example.answer == "yes"
    assert f'choosing "{first.concept.ordinary}" be incorrect because "{first.atypical}"' in example.question
    assert {one.split for one in forms if one.pair_id == 1} == {"dev"}


def test_presence_is_half_yes_and_half_no(folder: Path, world: Benchmark) -> None:
    presence = microworld(folder, 3, variant="presence")
    assert Counter(example.answer for example in presence) == {"yes": 300, "no": 300}
    by_pair = {pair.number: pair for pair in pairs(3)}
    for example in presence:
        pair = by_pair[int(example.example_id.split("-")[0])]
        asked = example.question.removeprefix("Is there ").removesuffix(" in the image?")
        assert (asked in pair.concept.objects) == (example.answer == "yes")
        assert example.side is None
        assert example.pair_id is None


@pytest.mark.usefixtures("_small_drawings")
def test_images_are_drawn_once(folder: Path, world: Benchmark) -> None:
    paths = {example.image for example in world}
    assert len(paths) == 600
    with Image.open(min(paths)) as image:
        assert image.mode == "RGB"
    times = {path: path.stat().st_mtime_ns for path in paths}
    missing = max(paths)
    before = missing.read_bytes()
    missing.unlink()
    microworld(folder, 3)
    assert missing.read_bytes() == before
    assert all(path.stat().st_mtime_ns == times[path] for path in paths - {missing})


def test_a_folder_holds_one_world(folder: Path, world: Benchmark) -> None:
    with pytest.raises(UnpriorError, match="holds the images of seed 3"):
        microworld(folder, 4)


def test_the_card_tells_the_seed(world: Benchmark) -> None:
    assert world.card is not None
    assert (world.name, world.card.revision) == ("microworld-3", "seed 3")


def test_an_unknown_variant_is_named(tmp_path: Path) -> None:
    with pytest.raises(UnpriorError, match="no variant 'odd'; choose from standard, forms, presence"):
        microworld(tmp_path, variant="odd")
    assert not list(tmp_path.iterdir())


def test_captions_say_what_is_shown() -> None:
    for pair in pairs(0):
        assert pair.atypical in pair.caption("cf")
        assert pair.concept.ordinary in pair.caption("cs")


def _named(benchmark: Benchmark, name: str) -> Example:
    return next(example for example in benchmark if example.example_id == name)


def test_yes_stands_for_the_first_claim(world: Benchmark, folder: Path) -> None:
    by_name = {example.example_id: example for example in world}
    for pair in pairs(3):
        choice, asked = (by_name[f"{pair.number}-cs-{task}"] for task in ("mc", "qa"))
        assert asked.claims == (pair.concept.ordinary, pair.atypical)
        assert (asked.open_question, asked.answer, choice.claims) == (choice.question, "yes", None)
        assert choice.text(choice.answer).endswith(asked.claims[0])
        assert asked.question == pair.concept.claim.format(first=asked.claims[0], second=asked.claims[1])
    assert all(example.claims is None for example in microworld(folder, 3, variant="presence"))


def test_open_questions_ask_for_the_state(folder: Path) -> None:
    asked = microworld(folder, 3, variant="open")
    assert (asked.name, asked.counts()) == ("microworld-open-3", dict(CARDS["open"].counts))
    by_pair = {pair.number: pair for pair in pairs(3)}
    for example in asked:
        pair = by_pair[int(str(example.pair_id))]
        assert (example.task, example.labels, example.texts) == ("open", (), None)
        assert (example.question, example.answer) == (pair.concept.question, pair.state(str(example.side)))
        if example.category == "Counting Anomalies":
            assert example.aliases[0] == str(number_of(str(example.answer)))
            assert is_accepted(str(number_of(str(example.answer))), str(example.answer), example.aliases)
        others = (state for state in pair.concept.states if state != example.answer)
        assert not any(is_accepted(state, str(example.answer), example.aliases) for state in others)
    assert Counter(example.aliases for example in asked if example.category != "Counting Anomalies").keys() == {
        (),
        ("transparent",),
    }


def test_choices_of_two_to_six_options_are_equally_frequent(folder: Path) -> None:
    asked = microworld(folder, 3, variant="options")
    assert (asked.name, asked.counts()) == ("microworld-options-3", dict(CARDS["options"].counts))
    for part in (asked.examples, [example for example in asked if example.split == "dev"]):
        counts = Counter(len(example.labels) for example in part)
        assert counts == dict.fromkeys(OPTION_COUNTS, len(part) // 5)
    by_pair = {pair.number: pair for pair in pairs(3)}
    sides: dict[object, set[object]] = {}
    for example in asked:
        assert example.texts is not None
        pair = by_pair[int(str(example.pair_id))]
        assert example.labels == tuple("ABCDEF"[: len(example.texts)])
        assert len(set(example.texts)) == len(example.texts)
        assert example.texts[example.labels.index(str(example.answer))] == pair.state(str(example.side))
        assert {pair.concept.ordinary, pair.atypical} <= set(example.texts)
        sides.setdefault(example.pair_id, set()).add(example.texts)
    assert {len(texts) for texts in sides.values()} == {1}
    assert asked == microworld(folder, 3, variant="options")
    places = Counter(example.labels.index(str(example.answer)) for example in asked if len(example.labels) == 6)
    assert len(places) == 6
