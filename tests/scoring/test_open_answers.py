"""Open questions: what is asked, what is kept of it, and what stands in the table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unprior.answer_forms import normalize_answer
from unprior.benchmarks.microworld import microworld
from unprior.benchmarks.variants import ask_given
from unprior.engines.protocol import Capabilities, Query
from unprior.engines.transformers.engine import TransformersEngine
from unprior.errors import UnpriorError
from unprior.images import open_image
from unprior.scoring.open_answers import OpenAsker, OpenScores, candidates_of, check_candidates, check_proposes
from unprior.scoring.run import ScoringRun
from unprior.scoring.store import ScoreStore, StoredResult

WORDS = st.sampled_from(["6 fingers", "six fingers", "Six fingers.", "5 fingers", "five", "7", "a hand", "blue", "the"])
SCORES = st.floats(-30, 0, allow_nan=False)


def stored(strings: list[str], image: list[float], prior: list[float], text: str = " x") -> dict[str, Any]:
    found = [place > 0 for place in range(len(strings))]
    scores = {"scores": image, "prior_scores": prior, "token_counts": [2] * len(strings)}
    return {"text": text, "strings": strings, "found": found, **scores}


@st.composite
def results(draw: st.DrawFn) -> dict[str, Any]:
    strings = draw(st.lists(WORDS, min_size=1, max_size=8, unique=True))
    scores = st.lists(SCORES, min_size=len(strings), max_size=len(strings))
    return stored(strings, draw(scores), draw(scores), draw(st.sampled_from(strings)))


@given(results())
def test_kept_candidates_are_different_and_include_both_answers(result: dict[str, Any]) -> None:
    found = candidates_of(result, 3)
    forms = [normalize_answer(label) for label in found.labels]
    assert len(set(forms)) == len(forms) <= 3
    assert normalize_answer(result["text"]) in forms
    assert normalize_answer(result["strings"][0]) in forms
    assert list(found.image_scores) == sorted(found.image_scores, reverse=True)
    assert found.original is not None
    assert normalize_answer(found.original) == normalize_answer(result["text"])


@given(results())
def test_merging_keeps_all_probability(result: dict[str, Any]) -> None:
    found = candidates_of(result, None)
    for merged, given_scores in ((found.image_scores, result["scores"]), (found.prior_scores, result["prior_scores"])):
        assert np.logaddexp.reduce(merged) == pytest.approx(np.logaddexp.reduce(given_scores))


@given(results(), st.randoms(use_true_random=False))
def test_the_order_of_what_is_found_makes_no_difference(result: dict[str, Any], rng: Any) -> None:
    places = list(range(1, len(result["strings"])))
    rng.shuffle(places)
    places = [0, *places]  # the first string is the answer without the image
    names = ("strings", "scores", "prior_scores", "token_counts", "found")
    moved = result | {name: [result[name][place] for place in places] for name in names}
    here, there = candidates_of(result, 3), candidates_of(moved, 3)
    if len(set(candidates_of(result, None).image_scores)) == len(candidates_of(result, None).labels):  # no ties
        assert [normalize_answer(label) for label in here.labels] == [normalize_answer(label) for label in there.labels]
        assert here.image_scores == pytest.approx(there.image_scores)


def test_sources_tell_who_proposed_an_answer() -> None:
    found = candidates_of(stored([" five", " six", " 6", " seven"], [-3, -1, -2, -4], [-1, -2, -3, -4], " six"), None)
    told = dict(zip(found.labels, found.sources, strict=True))
    assert told == {"six": "original+image", "five": "text", "seven": "image"}
    again = stored([" five", " six"], [-3, -1], [-1, -2], " six") | {"found": [True, False]}
    assert candidates_of(again, None).sources == ("original", "text+image")


def test_given_answers_are_the_only_candidates_beside_the_original() -> None:
    result = stored([" five", " six", " 4", " seven"], [-3, -1, -2, -4], [-1, -2, -3, -4], " four")
    assert candidates_of(result, 1, given=2).labels == ("six", "4", "five")
    assert candidates_of(result | {"text": " six"}, given=2).labels == ("six", "five")


def test_nothing_written_is_no_answer() -> None:
    assert candidates_of(stored([" five", " six"], [-1, -2], [-1, -2], "\n"), 4).original is None
    assert candidates_of(stored([" five", " six"], [-1, -2], [-1, -2], "<think>six"), 4).original is None


@pytest.mark.parametrize("count", [1, 9, 2.5, "4", True, None])
def test_a_number_of_candidates_that_cannot_be_is_refused(count: Any) -> None:
    with pytest.raises(UnpriorError, match="give a whole number from 2 to 8"):
        check_candidates(count)


@pytest.fixture(scope="module")
def engine() -> TransformersEngine:
    from unprior.embedded import FOLDER

    return TransformersEngine(FOLDER, device="cpu", name="embedded")


def test_an_engine_that_cannot_search_is_refused_with_a_remedy(engine: TransformersEngine) -> None:
    class Blind:
        name = "blind"
        capabilities = Capabilities(exact_scores=True)

    with pytest.raises(UnpriorError, match=r"engine blind cannot search for answers .*--engine transformers"):
        check_proposes(Blind())  # type: ignore[arg-type]
    check_proposes(engine)


def test_both_conditions_score_the_same_whole_strings(engine: TransformersEngine, default_run: Path) -> None:
    example = microworld(default_run, variant="open").examples[0]
    text = example.user_text(engine.layout)
    image = open_image(example.image)
    before = engine.encoded_images
    (found,) = OpenAsker(engine).ask([Query(image, text, ())])
    assert isinstance(found, OpenScores)
    assert engine.encoded_images == before + 1
    assert found.text == engine.original_answer(image, text)
    for shown, scored in ((image, found.image), (None, found.prior)):
        full = engine.score_in_full(Query(shown, text, found.strings, whole=True))
        assert scored.scores == pytest.approx(full.scores, abs=1e-3)
        assert scored.token_counts == full.token_counts


def test_what_is_asked_without_the_image_is_asked_once(
    engine: TransformersEngine, default_run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    examples = microworld(default_run, variant="open").examples[:4]  # two pairs: two questions, two images each
    asked: list[int] = []
    own = engine.propose_batch

    def counting(queries: Any, count: int) -> Any:
        asked.append(sum(query.image is None for query in queries))
        return own(queries, count)

    monkeypatch.setattr(engine, "propose_batch", counting)
    asker = OpenAsker(engine)
    queries = [Query(open_image(each.image), each.user_text(engine.layout), ()) for each in examples]
    together = asker.ask(queries)
    again = [asker.ask([query])[0] for query in queries]
    assert sum(asked) == len({query.text for query in queries})
    for one, other in zip(together, again, strict=True):
        assert isinstance(one, OpenScores)
        assert isinstance(other, OpenScores)
        assert dict(zip(one.strings, one.image.scores, strict=True)) == pytest.approx(
            dict(zip(other.strings, other.image.scores, strict=True)), abs=1e-3
        )


def test_a_run_is_stored_resumed_and_mended(engine: TransformersEngine, default_run: Path, tmp_path: Path) -> None:
    world = microworld(default_run, variant="open")
    few = world.with_examples(world.examples[:6])
    with ScoreStore(tmp_path / "store.sqlite") as store:
        run = ScoringRun(engine, few, store, batch_size=4)
        assert run.run().computed == 6
        table = run.table()
        assert set(table.column("task")) == {"open"}
        assert (table.candidate_counts <= 4).all()
        assert table.column("answer")[0] is not None
        assert ScoringRun(engine, few, store).run().reused == 6
        wide = ScoringRun(engine, few, store, all_candidates=True)
        wide.run()
        assert (wide.table().candidate_counts >= table.candidate_counts).all()
        (key, *_) = [planned.image_key for chunk in run.plan.chunks() for planned in chunk.examples]
        store.discard([key])
        damaged = {"text": "x", "strings": ["a"], "scores": [-1.0], "token_counts": [1], "prior_scores": [-1.0]}
        store.put([StoredResult(key, damaged)])  # who found it is missing
        broken = ScoringRun(engine, few, store)
        assert len(broken.run().failures) == 1  # removed, and computed by the next run
        assert not ScoringRun(engine, few, store).run().failures
        mended = ScoringRun(engine, few, store).table()
        assert mended.column("candidates") == table.column("candidates")
        assert mended.image_scores == pytest.approx(table.image_scores, abs=1e-4)  # computed alone, not in a batch


def test_an_engine_proposes_answers_to_one_question(engine: TransformersEngine, default_run: Path) -> None:
    example = microworld(default_run, variant="open").examples[0]
    text = example.user_text(engine.layout)
    found = engine.propose(open_image(example.image), text, 3)
    assert found.text is not None
    assert 1 <= len(found.candidates) <= 4
    assert engine.propose(None, text, 3).text is None
    with pytest.raises(UnpriorError, match="control token"):
        engine.propose(None, "What is <image>?", 3)


def test_given_options_are_scored_as_whole_answers(
    engine: TransformersEngine, default_run: Path, tmp_path: Path
) -> None:
    world = ask_given(microworld(default_run))
    few = world.with_examples(world.examples[:2])
    with ScoreStore(tmp_path / "store.sqlite") as store:
        run = ScoringRun(engine, few, store)
        run.run()
        table = run.table()
    assert set(table.column("task")) == {"open"}
    for example, row in zip(few, table.arrow.to_pylist(), strict=True):
        assert set(example.given) <= set(row["candidates"])
        assert len(row["candidates"]) in (4, 5)  # the original answer may be another one
        strings = tuple(f" {label}" for label in row["candidates"] if label in example.given)
        text = example.user_text(engine.layout)
        full = engine.score_in_full(Query(open_image(example.image), text, strings, whole=True))
        known = dict(zip(row["candidates"], row["image_scores"], strict=True))
        assert [known[string.strip()] for string in strings] == pytest.approx(full.scores, abs=1e-3)
