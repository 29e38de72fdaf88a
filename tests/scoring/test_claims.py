"""What is asked about two claims beside the question: texts, keys, scores and costs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

import unprior
from faulty_server import FaultyServer
from replayed_vllm import MODEL, ReplayedVllm
from unprior import UnpriorError
from unprior.benchmarks.forms import CLAIM_ORDERS, FITTED_FORM, FORMS, ask_first
from unprior.benchmarks.microworld.benchmark import microworld
from unprior.benchmarks.schema import Benchmark, Example
from unprior.benchmarks.variants import ask_claims
from unprior.engines.openai.engine import HttpEngine
from unprior.engines.protocol import Answered, CandidateScores, Engine, Query, QueryFailure
from unprior.engines.transformers.engine import TransformersEngine
from unprior.images import open_image
from unprior.prompts import YES_NO, PromptLayout
from unprior.scores import ScoreTable, read_scores
from unprior.scores.priors import with_prior
from unprior.scoring.claims import claim_views, exchange_claims, passes_per_question
from unprior.scoring.estimate import estimate, not_stored
from unprior.scoring.plan import ScoringPlan
from unprior.scoring.run import ScoringRun, Summary
from unprior.scoring.store import ScoreStore

LAYOUT = PromptLayout()
CANONICAL = (
    "canonical-image-first", "canonical-image-second", "canonical-text-first", "canonical-text-second",
    "options-text-first", "options-text-second",
)  # fmt: skip


class Counting:
    """An engine that counts what it is asked, and passes it on."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.answered = self.scored_images = self.scored_texts = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self.engine, name)

    @property
    def asked(self) -> tuple[int, int, int]:
        return self.answered, self.scored_images, self.scored_texts

    def answer_batch(self, queries: Sequence[Query]) -> list[Answered | QueryFailure]:
        self.answered += len(queries)
        return self.engine.answer_batch(queries)

    def score_batch(self, queries: Sequence[Query]) -> list[CandidateScores | QueryFailure]:
        images = sum(query.image is not None for query in queries)
        assert images in (0, len(queries)), "a batch has one kind"
        self.scored_images += images
        self.scored_texts += len(queries) - images
        return self.engine.score_batch(queries)


@pytest.fixture(scope="module")
def engine() -> Engine:
    return unprior.load_engine("embedded")


@pytest.fixture
def counting(engine: Engine) -> Counting:
    return Counting(engine)


@pytest.fixture(scope="module")
def world(drawn_world: Path) -> Benchmark:
    """Two pairs of the microworld: four images, each with a choice and a yes/no question."""
    benchmark = microworld(drawn_world, 3)
    return benchmark.with_examples(benchmark.examples[:8])


@pytest.fixture(scope="module")
def own(world: Benchmark) -> Benchmark:
    """The yes/no questions of the world, in its own wording."""
    return world.with_examples([example for example in world if example.task == "qa"])


def run(engine: Any, benchmark: Benchmark, store: Path, **options: Any) -> tuple[Summary, ScoreTable]:
    with ScoreStore(store) as opened:
        scoring = ScoringRun(engine, benchmark, opened, batch_size=4, **options)
        return scoring.run(), scoring.table()


def views(table: ScoreTable) -> list[dict[str, list[float]]]:
    return [dict(entry or ()) for entry in table.column("views")]


def about(question: str, *claims: str, **more: Any) -> Example:
    return Example("1", Path("a.png"), question, "qa", YES_NO, claims=(claims[0], claims[1]), **more)


@pytest.mark.parametrize(
    ("question", "claims", "exchanged"),
    [
        ("Has it 5 legs and not 15 legs?", ("5 legs", "15 legs"), "Has it 15 legs and not 5 legs?"),
        ("Red, not blue? Is red right?", ("red", "blue"), "blue, not Red? Is blue right?"),
        ("Is it (a) rather than (b)?", ("(a)", "(b)"), "Is it (b) rather than (a)?"),
        ("Is it hot and not very hot?", ("hot", "very hot"), "Is it very hot and not hot?"),
        ("Is the rock not glowing and not glowing?", ("Not glowing", "Glowing"), None),
        ("Is it red?", ("red", "blue"), None),
        ("Does it redden or turn blue?", ("red", "blue"), None),
    ],
)
def test_claims_change_places_where_both_are_named(
    question: str, claims: tuple[str, str], exchanged: str | None
) -> None:
    assert exchange_claims(about(question, *claims)) == exchanged


@pytest.mark.parametrize("form", FORMS)
def test_a_known_form_is_asked_with_the_other_claim_first(form: str) -> None:
    # The open question has one of the claims in it, which must stay there.
    open_question, claims = "Is it a red car or a blue one?", ("red", "blue")
    example = about(ask_first(form, open_question, *claims), *claims, form=form, open_question=open_question)
    assert exchange_claims(example) == ask_first(form, open_question, "blue", "red")


def test_what_is_asked_in_words() -> None:
    example = about("Is it red?", "red", "blue", open_question="What color?", instruction="Yes or no?")
    asked = {view.name: view for view in claim_views(example, "canonical", LAYOUT)}
    assert tuple(asked) == CANONICAL
    first, second = (LAYOUT.user_text(ask_first(FITTED_FORM, "What color?", *pair), YES_NO, None)
                     for pair in (("red", "blue"), ("blue", "red")))  # fmt: skip
    for place, text in (("first", first), ("second", second)):
        assert asked[f"canonical-image-{place}"].text == asked[f"canonical-text-{place}"].text == text
    options = asked["options-text-second"]
    assert options.text == "What color?\nA. blue\nB. red\nAnswer with a single letter (A or B)."
    assert (options.labels, options.with_image) == (("A", "B"), False)
    itself = claim_views(replace(example, open_question=None), "canonical", LAYOUT)
    assert itself[-1].text.startswith("Is it red?\nA. blue")
    (swapped,) = claim_views(about("Red or blue?", "red", "blue", instruction="Say yes."), "symmetric", LAYOUT)
    assert swapped.text == "blue or Red?\nSay yes."
    assert claim_views(example, "symmetric", LAYOUT) == claim_views(example, "plain", LAYOUT) == ()
    assert claim_views(replace(example, claims=None), "canonical", LAYOUT) == ()


def test_canonical_scores_are_those_of_the_questions_themselves(
    engine: Engine, world: Benchmark, tmp_path: Path
) -> None:
    summary, table = run(engine, world, tmp_path / "store.sqlite", prior="canonical")
    assert (summary.failures, summary.image_passes, summary.text_passes) == ((), 2.0, 3.0)
    for example, row, found in zip(world, table.arrow.to_pylist(), views(table), strict=True):
        if example.task == "mc":
            assert (found, row["claims"]) == ({}, None)
            continue
        assert row["claims"] == list(example.claims)
        assert set(found) == set(CANONICAL)
        image = open_image(example.image)
        for place, claims in (("first", example.claims), ("second", example.claims[::-1])):
            text = engine.layout.user_text(ask_first(FITTED_FORM, example.open_question, *claims), YES_NO, None)
            for name, shown in (("image", image), ("text", None)):
                expected = engine.score_candidates(shown, text, (" yes", " no")).scores
                assert found[f"canonical-{name}-{place}"] == pytest.approx(expected, abs=1e-4)
            text = engine.layout.user_text(example.open_question, ("A", "B"), claims)
            expected = engine.score_candidates(None, text, (" A", " B")).scores
            assert found[f"options-text-{place}"] == pytest.approx(expected, abs=1e-4)


def test_symmetric_scores_are_those_of_the_exchanged_question(engine: Engine, own: Benchmark, tmp_path: Path) -> None:
    summary, table = run(engine, own, tmp_path / "store.sqlite", prior="symmetric")
    assert (summary.image_passes, summary.text_passes) == (1.0, 2.0)
    for example, found in zip(own, views(table), strict=True):
        text = engine.layout.user_text(str(exchange_claims(example)), YES_NO, None)
        assert list(found) == ["swapped"]
        assert found["swapped"] == pytest.approx(engine.score_candidates(None, text, (" yes", " no")).scores, abs=1e-4)
    assert {record.prior for record in table.provenance} == {"text"}


def test_other_scores_stay_as_they_are(engine: Engine, world: Benchmark, tmp_path: Path) -> None:
    _, plain = run(engine, world, tmp_path / "store.sqlite")
    for prior in ("symmetric", "canonical"):
        _, table = run(engine, world, tmp_path / "store.sqlite", prior=prior)
        assert table.arrow.drop_columns(["views"]).equals(plain.arrow.drop_columns(["views"]))
        with pytest.raises(UnpriorError, match="unknown prior 'swapped'"):
            with_prior(table, "swapped")
    assert plain.column("views") == [None] * 8


def test_texts_are_asked_once_for_all_images(counting: Counting, own: Benchmark, tmp_path: Path) -> None:
    summary, _ = run(counting, own, tmp_path / "store.sqlite", prior="canonical")
    # Four images of two questions. Texts: the question itself, both orders, both pairs of options.
    assert counting.asked == (4, 2 * 4, 2 * 5)
    assert (summary.computed, summary.reused) == (22, 0)
    again, _ = run(counting, own, tmp_path / "store.sqlite", prior="symmetric")
    assert (again.computed, again.reused, counting.asked) == (2, 4 + 2, (4, 8, 12))


def test_a_question_in_the_fitted_form_is_not_asked_twice(
    counting: Counting, world: Benchmark, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = ask_claims(world, [FITTED_FORM], CLAIM_ORDERS[:1])
    run(counting, one, tmp_path / "one.sqlite", prior="canonical")
    assert counting.asked == (4, 4, 2 * 4)  # scores with the image only of the other order
    counting.answered = counting.scored_images = counting.scored_texts = 0
    monkeypatch.setattr("unprior.scoring.plan.CHUNK", 3)  # what one chunk asks for, another one uses
    forms = ask_claims(world)
    summary, table = run(counting, forms, tmp_path / "forms.sqlite", prior="canonical")
    assert counting.asked == (4 * 8, 0, 2 * (8 + 2))
    assert (summary.image_passes, summary.text_passes) == (3 - 0.25, 5 - 0.25)
    for row, found in zip(table.arrow.to_pylist(), views(table), strict=True):
        if row["form"] == FITTED_FORM:
            assert found["canonical-image-first"] == row["image_scores"]
            assert found["canonical-text-first"] == row["prior_scores"]
        mirrored = next(
            other
            for other, each in zip(views(table), table.arrow.to_pylist(), strict=True)
            if (each["pair_id"], each["side"], each["form"]) == (row["pair_id"], row["side"], row["form"])
            and each["claim_order"] != row["claim_order"]
        )
        assert found["canonical-image-second"] == mirrored["canonical-image-first"]
        assert found["options-text-second"] == mirrored["options-text-first"]


def test_parts_have_the_keys_of_the_whole(counting: Counting, world: Benchmark, tmp_path: Path) -> None:
    forms = ask_claims(world)
    with ScoreStore(tmp_path / "store.sqlite") as store:
        for start in (0, 1):
            part = forms.with_examples(forms.examples[start::2])
            ScoringRun(counting, part, store, full_benchmark=forms, prior="canonical").run()
        assert counting.asked == (4 * 8, 0, 2 * (8 + 2))
        scoring = ScoringRun(counting, forms, store, prior="canonical")
        assert scoring.run().computed == 0
    left = not_stored(counting, forms, tmp_path / "store.sqlite", prior="canonical")
    assert len(left) == 0


def test_only_what_the_claims_lack_counts_as_left(engine: Engine, world: Benchmark, tmp_path: Path) -> None:
    run(engine, world, tmp_path / "store.sqlite")
    left = not_stored(engine, world, tmp_path / "store.sqlite", prior="canonical")
    assert [example.task for example in left] == ["qa"] * 4
    assert len(not_stored(engine, world, tmp_path / "store.sqlite")) == 0


def test_files_keep_claims_and_their_scores(engine: Engine, world: Benchmark, tmp_path: Path) -> None:
    table = unprior.score(engine, world, tmp_path, prior="canonical")
    assert set(views(table)[1]) == set(CANONICAL)
    table.write(tmp_path / "scores.jsonl")
    assert read_scores(tmp_path / "scores.jsonl").arrow.equals(table.arrow)
    assert ScoreTable.from_pandas(table.to_pandas()).arrow.equals(table.arrow)


def test_passes_are_counted_per_question(world: Benchmark, own: Benchmark) -> None:
    assert passes_per_question(world, "plain") == (1.0, 1.0)
    assert passes_per_question(world, "canonical") == (2.0, 3.0)  # half of the questions are choices
    assert passes_per_question(own, "symmetric") == (1.0, 2.0)
    assert passes_per_question(own, "canonical") == (3.0, 5.0)
    assert passes_per_question(ask_claims(world, [FITTED_FORM]), "canonical") == (2.0, 4.0)
    with pytest.raises(UnpriorError, match="choose plain, symmetric or canonical"):
        passes_per_question(own, "canonicle")


@pytest.mark.parametrize("prior", ["canonicle", "", None, 3])
def test_an_unknown_prior_is_refused(engine: Engine, own: Benchmark, prior: Any) -> None:
    with pytest.raises(UnpriorError, match=r"--prior .*choose plain, symmetric or canonical"):
        ScoringPlan(engine, own, prior=prior)


def asked_about(folder: Path) -> Benchmark:
    """Two images, each with one choice and two yes/no questions, one of them in the fitted form."""
    examples = []
    for number in (1, 2):
        image = folder / f"{number}.png"
        Image.new("RGB", (40, 48), (number * 50, 0, 0)).save(image)
        choice = Example(f"{number}-mc", image, "What color?", "mc", ("A", "B", "C"), ("red", "blue", "black"))
        own = about("Is it red and not blue?", "red", "blue", open_question="What color?")
        fitted = ask_first(FITTED_FORM, "What color?", "red", "blue")
        examples += [
            choice,
            replace(own, example_id=f"{number}-own", image=image),
            replace(own, example_id=f"{number}-fitted", image=image, question=fitted),
        ]
    return Benchmark("colors", examples)


@pytest.mark.parametrize("prior", ["symmetric", "canonical"])
def test_the_requests_of_a_run_are_predicted_exactly(llava: TransformersEngine, tmp_path: Path, prior: str) -> None:
    questions = asked_about(tmp_path)
    with FaultyServer(ReplayedVllm(llava)) as server, ScoreStore(tmp_path / "store.sqlite") as store:
        engine = HttpEngine(MODEL, [server.url])
        cost = estimate(engine, questions, prior=prior).cost
        plain = estimate(engine, questions).cost
        before = server.requests
        ScoringRun(engine, questions, store, prior=prior).run()
        engine.close()
        assert server.requests - before == cost.requests > plain.requests
