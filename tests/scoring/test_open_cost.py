"""What open questions take behind a server: measured on a few, and scaled up."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from faulty_server import FaultyServer
from hand_questions import write_benchmark
from lying_server import InFront
from replayed_vllm import ReplayedVllm
from served_engines import served
from unprior import UnpriorError
from unprior.benchmarks.schema import OPEN, Benchmark, Example
from unprior.benchmarks.user_file import read_questions
from unprior.embedded import FOLDER
from unprior.engines.openai.engine import HttpEngine
from unprior.engines.openai.exchanges import Exchange, recording
from unprior.engines.protocol import Query
from unprior.engines.transformers.engine import TransformersEngine
from unprior.images import open_image
from unprior.scoring.cost import KEY_BYTES, RunCost, sample
from unprior.scoring.estimate import estimate
from unprior.scoring.open_answers import OpenAsker
from unprior.scoring.open_cost import OPEN_SAMPLE, measure_open
from unprior.scoring.run import ScoringRun
from unprior.scoring.store import ScoreStore


@pytest.fixture(scope="module")
def embedded() -> TransformersEngine:
    return TransformersEngine(FOLDER, device="cpu", name="embedded", max_new_tokens=12)


@pytest.fixture(scope="module")
def images(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("images")
    pixels = np.random.default_rng(0).integers(0, 256, (6, 40, 40, 3), dtype=np.uint8)
    for index, each in enumerate(pixels):
        Image.fromarray(each).save(folder / f"{index}.png")
    return sorted(folder.iterdir())


def asked(images: Sequence[Path], question: str = "What is this?", **more: Any) -> list[Example]:
    return [Example(f"{question} {image.stem} {more}", image, question, OPEN, (), **more) for image in images]


def scored(engine: HttpEngine, server: FaultyServer, questions: Benchmark, path: Path) -> tuple[int, list[Exchange]]:
    """Requests of a real run, as the server counts them, and all of them as the client does."""
    before = server.requests
    with ScoreStore(path) as store, recording() as recorded:
        assert not ScoringRun(engine, questions, store).run().failures
    return server.requests - before, recorded


@pytest.mark.parametrize("own_end", [True, False], ids=["by the server", "step by step"])
def test_on_no_more_questions_than_are_measured_all_is_exact(
    embedded: TransformersEngine, images: list[Path], tmp_path: Path, own_end: bool
) -> None:
    write_benchmark(tmp_path, pairs=1)
    given = asked(images[:1], "Which one?", given=("six", "a hand"))
    opened = [*asked(images[:2]), *asked(images[2:3], "What is it?"), *given]
    questions = Benchmark("mine", [*read_questions(tmp_path / "hands.jsonl"), *opened])
    with served(ReplayedVllm(embedded, own_end=own_end)) as (engine, _):
        found = estimate(engine, questions)
    assert (found.cost.examples, found.open_examples, found.open_measured) == (len(questions), 4, 4)
    with served(ReplayedVllm(embedded, own_end=own_end)) as (engine, server):
        requests, recorded = scored(engine, server, questions, tmp_path / "store.sqlite")
    assert found.cost.requests == pytest.approx(requests)
    prompts = sum(each.prompt_tokens or 0 for each in recorded)
    assert found.cost.prompt_tokens == pytest.approx(prompts, rel=0.01)  # those of closed questions are a fit
    assert found.cost.generated_tokens == pytest.approx(sum(each.generated_tokens for each in recorded), rel=0.01)
    assert 0.5 * prompts < found.cost.cached_tokens < prompts


def test_more_questions_than_are_measured_are_scaled_up(
    embedded: TransformersEngine, images: list[Path], tmp_path: Path
) -> None:
    questions = asked(images)
    assert len(questions) > OPEN_SAMPLE
    with served(ReplayedVllm(embedded)) as (engine, _):
        found = measure_open(engine, questions)
    with served(ReplayedVllm(embedded)) as (engine, server):
        requests, _ = scored(engine, server, Benchmark("mine", questions), tmp_path / "store.sqlite")
    assert (found.measured, found.cost.examples) == (OPEN_SAMPLE, len(questions))
    assert found.cost.requests == pytest.approx(requests, rel=0.25)


def test_questions_and_images_are_scaled_apart(embedded: TransformersEngine, images: list[Path]) -> None:
    questions = asked(images)  # one question about six images
    with served(ReplayedVllm(embedded)) as (engine, _):
        found = measure_open(engine, questions).cost
    with served(ReplayedVllm(embedded)) as (engine, _):
        asker, layout = OpenAsker(engine), engine.layout
        with recording() as without_image:
            asker.search_without_image([questions[0].user_text(layout)])
        with recording() as with_image:
            asker.ask(
                [Query(open_image(each.image), each.user_text(layout), ()) for each in sample(questions, OPEN_SAMPLE)]
            )
    share = len(images) / OPEN_SAMPLE
    assert found.requests == pytest.approx(len(without_image) + share * len(with_image))
    sent = [sum(250 + each.sent_bytes for each in recorded) for recorded in (without_image, with_image)]
    assert found.sent_bytes == pytest.approx(sent[0] + share * sent[1])


def test_what_is_asked_twice_counts_once(embedded: TransformersEngine, images: list[Path]) -> None:
    with served(ReplayedVllm(embedded)) as (engine, _):
        two = measure_open(engine, asked(images[:2])).cost
    with served(ReplayedVllm(embedded)) as (engine, _):
        twice = measure_open(engine, [*asked(images[:2]), *asked(images[:2], aliases=("a hand",))])
    assert twice.measured == 2
    assert (twice.cost.examples, twice.cost.requests, twice.cost.stored_bytes) == (4, two.requests, two.stored_bytes)


def test_the_size_of_the_store_is_that_of_the_results(
    embedded: TransformersEngine, images: list[Path], tmp_path: Path
) -> None:
    questions = asked(images[:1])
    with served(ReplayedVllm(embedded)) as (engine, server):
        found = measure_open(engine, questions)
        scored(engine, server, Benchmark("mine", questions), tmp_path / "store.sqlite")
    with sqlite3.connect(tmp_path / "store.sqlite") as store:
        (value,) = store.execute("SELECT value FROM result").fetchone()
    store.close()
    assert found.cost.stored_bytes == KEY_BYTES + len(value)


def test_faults_that_pass_are_not_counted(embedded: TransformersEngine, images: list[Path]) -> None:
    found = []
    for plan in (None, lambda number, *_: "503" if number % 3 == 0 else None):
        with served(ReplayedVllm(embedded), plan) as (engine, server):
            found.append(measure_open(engine, asked(images[:1])))
    assert server.faults["503"] > 0
    assert found[0] == found[1]


def test_without_open_questions_nothing_is_asked(embedded: TransformersEngine, tmp_path: Path) -> None:
    with served(ReplayedVllm(embedded)) as (engine, server):
        before = server.requests
        unreadable = asked([tmp_path / "none.png"])
        for questions in ([], unreadable):
            assert measure_open(engine, questions).cost == RunCost(len(questions))
        assert server.requests == before


class Silent(InFront):
    """Does not tell how many tokens prompts and answers have."""

    def __call__(self, path: str, body: dict[str, Any] | None) -> tuple[int, Any]:
        status, content = super().__call__(path, body)
        return status, {name: value for name, value in content.items() if name != "usage"}


def test_a_server_that_counts_no_tokens_is_refused(embedded: TransformersEngine, images: list[Path]) -> None:
    told = pytest.raises(UnpriorError, match="needs a server that tells how many tokens a prompt has")
    with served(Silent(ReplayedVllm(embedded))) as (engine, _), told:
        measure_open(engine, asked(images[:1]))


@pytest.mark.parametrize(
    ("usage", "tokens"),
    [
        ({"prompt_tokens": 30, "completion_tokens": 5}, (30, 5)),
        ({"prompt_tokens": 30, "completion_tokens": "5"}, (None, 0)),
        ({"prompt_tokens": -1, "completion_tokens": 5}, (None, 0)),
        ({"prompt_tokens": 30}, (None, 0)),
        ("many", (None, 0)),
        (None, (None, 0)),
    ],
    ids=str,
)
def test_tokens_are_what_a_reply_tells(usage: Any, tokens: tuple[int | None, int]) -> None:
    found = Exchange.from_bodies(b'{"messages": []}', b"", {"choices": [], "usage": usage})
    assert (found.prompt_tokens, found.generated_tokens) == tokens


def test_a_search_of_the_server_takes_all_steps_with_all_beams() -> None:
    told = {"choices": [], "usage": {"prompt_tokens": 30, "completion_tokens": 5}}
    search = Exchange.from_bodies(b'{"use_beam_search": true, "n": 4, "max_tokens": 8, "url": "image_url"}', b"", told)
    assert (search.prompt_tokens, search.generated_tokens, search.with_image) == (30, 32, True)


@pytest.mark.parametrize("told", [None, [], "choices", {"error": {}}])
def test_a_refusal_is_a_request_without_tokens(told: Any) -> None:
    assert Exchange.from_bodies(b"{}", b"Bad request", told) == Exchange(2, 11, False, 0, 0)


def test_cached_tokens_are_told_where_the_server_does() -> None:
    usage = {"prompt_tokens": 30, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": 16}}
    assert Exchange.from_bodies(b"{}", b"", {"choices": [], "usage": usage}).cached_tokens == 16
