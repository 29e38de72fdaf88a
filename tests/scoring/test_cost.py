"""The cost model against numbers counted by hand, and against what the engine really asks."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from faulty_server import FaultyServer
from hand_questions import write_benchmark
from replayed_vllm import MODEL, ReplayedVllm
from unprior import UnpriorError
from unprior.benchmarks.schema import Benchmark, Example
from unprior.benchmarks.user_file import read_questions
from unprior.engines.openai.engine import HttpEngine
from unprior.engines.openai.sizes import CandidateTree, Sizes
from unprior.engines.transformers.engine import TransformersEngine
from unprior.scoring.cost import RunCost, predict, sample
from unprior.scoring.estimate import estimate
from unprior.scoring.run import ScoringRun
from unprior.scoring.store import ScoreStore

YES_NO = (" yes", " no")
SIZES = Sizes(
    image_tokens=100,
    lead_tokens=4,
    tail_tokens=3,
    text_tokens=0,
    tokens_per_character=1,
    answer_tokens=2,
    answer_characters=3,
    image_bytes=10_000,
    blank_bytes=1_000,
    image_id_bytes=2,
    text_id_bytes=4,
    request_bytes=500,
    answer_bytes=600,
    scored_bytes=700,
    named_bytes=100,
    trees={YES_NO: CandidateTree(((0, 2),), encoding_requests=12)},
)


def benchmark(*images: str, question: str = "Is it red?") -> Benchmark:
    """Examples of one question; the user's text has 33 characters, 47 when candidates are scored."""
    return Benchmark(
        "mine",
        [
            Example(f"{index} {question}", Path(image), question, "qa", ("yes", "no"))
            for index, image in enumerate(images)
        ],
    )


def test_one_question_about_two_pictures_by_hand() -> None:
    cost = predict(benchmark("a.png", "b.png"), SIZES)
    assert cost.examples == 2
    assert cost.requests == 12 + 2 * (1 + 1) + 1  # candidates tokenised once; one prior for both pictures
    assert cost.prompt_tokens == 2 * (133 + 147) + 47
    assert cost.cached_tokens == 2 * 128  # 130 tokens of the first request begin the second: eight blocks of 16
    assert cost.computed_tokens == 607 - 256
    assert cost.generated_tokens == 2 * (2 + 1) + 1
    pictures = 2 * (500 + 10_000 + 36) + 2 * (500 + 10_000 + 51 + 2 * 4)
    assert cost.sent_bytes == pytest.approx(pictures + (500 + 51 + 2 * 4) + 12 * (250 + 150 + (2 * 51 + 47 * 4) / 3))
    with_picture, without = 700 + 47 * 4 + 100 * 2 + 2 * 100, 700 + 47 * 4 + 2 * 100
    received = 2 * (600 + with_picture) + without + 12 * (127 + 50 + (2 * 47 * 4 + 51) / 3)
    assert cost.received_bytes == pytest.approx(received)
    assert cost.stored_bytes == pytest.approx(2 * (164 + 29 + 43.4 + 13) + (164 + 29 + 43.4))


def test_every_branch_is_a_request_of_at_most_128_tokens() -> None:
    tree = CandidateTree(((0, 200), (1, 1)), encoding_requests=0)
    cost = predict(benchmark("a.png"), replace(SIZES, trees={YES_NO: tree}))
    assert cost.requests == 1 + 3 + 3
    assert cost.prompt_tokens == 133 + (2 * 147 + 148) + (2 * 47 + 48)
    assert cost.generated_tokens == 2 + 3 + 3
    assert cost.cached_tokens == (128 + 144 + 144) + (0 + 32 + 32)  # behind each other: what the one before has read


def test_a_picture_is_cached_on_the_server_that_has_read_it() -> None:
    first, second = benchmark("a.png"), benchmark("a.png", question="Is it one?")
    both = Benchmark("mine", [*first, *second])
    alone = predict(first, SIZES)
    assert predict(both, SIZES).cached_tokens == 2 * alone.cached_tokens + 96  # 104 tokens up to the picture's end
    assert predict(both, SIZES, servers=2).cached_tokens == 2 * alone.cached_tokens + 48


def test_views_add_one_request_per_question_or_per_picture() -> None:
    asked = benchmark("a.png", "b.png")
    bare, white = predict(asked, SIZES), predict(asked, SIZES, views=("white",))
    assert white.requests == bare.requests + 2  # blank pictures have the size of the picture they stand for
    assert white.prompt_tokens == bare.prompt_tokens + 2 * 147
    assert white.cached_tokens == bare.cached_tokens + 96 + 144  # the second one is the first one again
    assert predict(asked, SIZES, views=("white",), resized=True).requests == bare.requests + 1
    assert predict(asked, SIZES, views=("mean",)).requests == bare.requests + 1


def test_what_is_asked_twice_counts_once() -> None:
    once, twice = predict(benchmark("a.png"), SIZES), predict(benchmark("a.png", "a.png"), SIZES)
    assert (twice.requests, twice.stored_bytes) == (once.requests, once.stored_bytes)


def test_unknown_candidates_count_as_the_middle_one() -> None:
    small, middle, large = (CandidateTree(((0, 2),) * branches, 0) for branches in (1, 2, 5))
    sizes = replace(SIZES, trees={("a",): large, ("b",): small, ("c",): middle})
    assert sizes.tree(YES_NO) == middle
    with pytest.raises(UnpriorError, match="no candidates are known"):
        replace(SIZES, trees={}).tree(YES_NO)


def test_costs_scale() -> None:
    assert predict(benchmark("a.png", "b.png"), SIZES).scaled(1_000_000).requests == 8_500_000
    assert RunCost(2, 3) + RunCost(1, 1) == RunCost(3, 4)


def test_a_sample_is_always_the_same_and_no_larger_than_the_benchmark() -> None:
    many = benchmark(*(f"{index}.png" for index in range(50)))
    assert sample(many, 8) == sample(many, 8)
    assert len(sample(many, 8)) == len({example.example_id for example in sample(many, 8)}) == 8
    assert len(sample(many, 80)) == 50


def test_the_requests_of_a_run_are_predicted_exactly(llava: TransformersEngine, tmp_path: Path) -> None:
    write_benchmark(tmp_path)
    questions = read_questions(tmp_path / "hands.jsonl")
    views = ("white",)
    with FaultyServer(ReplayedVllm(llava)) as server, ScoreStore(tmp_path / "store.sqlite") as store:
        engine = HttpEngine(MODEL, [server.url])
        cost = estimate(engine, questions, views=views).cost
        before = server.requests
        ScoringRun(engine, questions, store, views=views).run()
        engine.close()
        assert server.requests - before == cost.requests


def test_an_estimate_needs_a_server_with_exact_scores(llava: TransformersEngine, tmp_path: Path) -> None:
    write_benchmark(tmp_path)
    questions = read_questions(tmp_path / "hands.jsonl")
    with pytest.raises(UnpriorError, match="use engine='openai'"):
        estimate(llava, questions)
    refused = pytest.raises(UnpriorError, match="an estimate needs a server that gives exact scores")
    with FaultyServer(ReplayedVllm(llava, named=False)) as server, refused:
        estimate(HttpEngine(MODEL, [server.url]), questions)
