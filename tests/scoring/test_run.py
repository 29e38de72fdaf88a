"""Scoring runs on a real small model: sharing, resuming, failing, dying and racing."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from hand_questions import PAIRS, write_benchmark
from unprior import UnpriorError
from unprior.benchmarks.schema import Benchmark
from unprior.benchmarks.user_file import read_questions
from unprior.engines.protocol import Answered, CandidateScores, Query, QueryFailure
from unprior.engines.transformers.engine import TransformersEngine
from unprior.progress import Progress
from unprior.prompts import PromptLayout
from unprior.scores import ScoreTable
from unprior.scores.table import concatenate
from unprior.scoring.rows import StoredRows
from unprior.scoring.run import ScoringRun
from unprior.scoring.store import ScoreStore


class Counting:
    """An engine that counts and keeps what it is asked, and passes it on."""

    def __init__(self, engine: TransformersEngine) -> None:
        self.engine = engine
        self.answered = self.scored = 0
        self.queries: list[Query] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self.engine, name)

    def answer_batch(self, queries: Sequence[Query]) -> list[Answered | QueryFailure]:
        self.answered += len(queries)
        return self.engine.answer_batch(queries)

    def score_batch(self, queries: Sequence[Query]) -> list[CandidateScores | QueryFailure]:
        self.scored += len(queries)
        self.queries += queries
        return self.engine.score_batch(queries)


@pytest.fixture
def counting(llava: TransformersEngine) -> Counting:
    return Counting(llava)


@pytest.fixture
def questions(tmp_path: Path) -> Path:
    return write_benchmark(tmp_path)


def run(engine: Any, questions: Path, store: Path, **options: Any) -> tuple[Any, Any]:
    with ScoreStore(store) as opened:
        scoring = ScoringRun(engine, read_questions(questions), opened, **options)
        summary = scoring.run()
        return summary, scoring.table() if len(summary.failures) < summary.examples else None


def test_the_table_holds_what_the_engine_says(llava: TransformersEngine, questions: Path, tmp_path: Path) -> None:
    summary, table = run(llava, questions, tmp_path / "store.sqlite")
    assert (summary.examples, summary.failures) == (4 * PAIRS, ())
    row = table.where(pair_id=1, side="cf", task="mc").arrow.to_pylist()[0]
    text = PromptLayout().user_text("How many fingers does hand 1 have?", "ABCD", ["five", "six", "seven", "four"])
    image = Image.open(tmp_path / "1-cf.png").convert("RGB")
    continuations = (" A", " B", " C", " D")
    assert row["image_scores"] == pytest.approx(llava.score_candidates(image, text, continuations).scores, abs=1e-4)
    assert row["prior_scores"] == pytest.approx(llava.score_candidates(None, text, continuations).scores, abs=1e-4)
    assert row["original_text"] == llava.original_answer(image, text)
    assert (row["answer"], row["split"], row["example_id"]) == ("B", "test", "1-cf-mc")
    assert row["token_counts"] == [1, 1, 1, 1]
    assert len(table) == 4 * PAIRS


def test_the_prior_is_computed_once_per_question(counting: Counting, questions: Path, tmp_path: Path) -> None:
    summary, _ = run(counting, questions, tmp_path / "store.sqlite")
    assert (counting.answered, counting.scored) == (4 * PAIRS, 2 * PAIRS)
    assert (summary.computed, summary.reused) == (6 * PAIRS, 0)


def test_a_second_run_computes_nothing_and_gives_the_same(counting: Counting, questions: Path, tmp_path: Path) -> None:
    _, first = run(counting, questions, tmp_path / "store.sqlite", batch_size=5)
    counting.answered = counting.scored = 0
    summary, second = run(counting, questions, tmp_path / "store.sqlite", batch_size=2)
    assert (counting.answered, counting.scored, summary.computed) == (0, 0, 0)
    assert second.arrow.equals(first.arrow)


def test_only_what_changed_is_computed_again(counting: Counting, questions: Path, tmp_path: Path) -> None:
    run(counting, questions, tmp_path / "store.sqlite")
    counting.answered = counting.scored = 0
    Image.new("RGB", (30, 30), (9, 9, 9)).save(tmp_path / "2-cs.png")
    run(counting, questions, tmp_path / "store.sqlite")
    assert (counting.answered, counting.scored) == (2, 0)  # both questions about the changed image, no prior
    counting.answered = 0
    run(counting, questions, tmp_path / "store.sqlite", resize_to=32)
    assert (counting.answered, counting.scored) == (4 * PAIRS, 0)  # other preprocessing; priors without image stay


def test_batch_size_changes_nothing(llava: TransformersEngine, questions: Path, tmp_path: Path) -> None:
    tables = [run(llava, questions, tmp_path / f"{size}.sqlite", batch_size=size)[1] for size in (1, 8)]
    assert tables[0].column("original_text") == tables[1].column("original_text")
    for name in ("image_scores", "prior_scores"):
        np.testing.assert_allclose(tables[0]._flat(name), tables[1]._flat(name), atol=1e-4)


def test_views_of_a_missing_image(counting: Counting, questions: Path, tmp_path: Path) -> None:
    _, table = run(counting, questions, tmp_path / "store.sqlite", views=("white", "black", "mean"), resize_to=32)
    views = [dict(row) for row in table.column("views")]
    assert all(set(view) == {"white", "black", "mean"} for view in views)
    # Brought to one size, a blank image is the same for all images of a question.
    assert (counting.answered, counting.scored) == (4 * PAIRS, 4 * 2 * PAIRS)
    assert views[0]["white"] != views[0]["black"]


def test_the_images_of_the_views_are_what_they_are_called(counting: Counting, questions: Path, tmp_path: Path) -> None:
    for side, brightness in (("cf", 10), ("cs", 30)):  # pair 0 is the development split
        Image.new("RGB", (40, 40), (brightness,) * 3).save(tmp_path / f"0-{side}.png")
    _, table = run(counting, questions, tmp_path / "store.sqlite", views=("white", "black", "mean"), resize_to=16)
    by_level = {query.image.getpixel((0, 0))[0]: query for query in counting.queries if query.image is not None}
    assert set(by_level) == {0, 20, 255}
    row = table.where(pair_id=2, side="cf", task="qa").arrow.to_pylist()[0]
    text = PromptLayout().user_text("Is hand 2 red?", ("yes", "no"), None)
    for view, level in (("white", 255), ("black", 0), ("mean", 20)):
        expected = counting.engine.score_candidates(by_level[level].image, text, (" yes", " no")).scores
        assert dict(row["views"])[view] == pytest.approx(expected, abs=1e-4)


def test_the_mean_image_does_not_depend_on_the_part(counting: Counting, questions: Path, tmp_path: Path) -> None:
    whole = read_questions(questions)
    _, table = run(counting, questions, tmp_path / "whole.sqlite", views=("mean",))
    part = Benchmark(whole.name, whole.examples[-2:])
    with ScoreStore(tmp_path / "whole.sqlite") as store:
        scoring = ScoringRun(counting, part, store, views=("mean",), full_benchmark=whole)
        assert scoring.run().computed == 0
        assert scoring.table().column("views") == table.column("views")[-2:]


def test_another_model_dtype_or_wording_computes_everything_again(
    model_folder: Callable[[str], Path], questions: Path, tmp_path: Path
) -> None:
    folder, store = model_folder("llava"), tmp_path / "store.sqlite"
    for engine in (
        TransformersEngine(folder, device="cpu"),
        TransformersEngine(folder, device="cpu", dtype="bfloat16"),
        TransformersEngine(folder, device="cpu", layout=PromptLayout(continuation=" {label}.")),
        TransformersEngine(model_folder("idefics3"), device="cpu"),
    ):
        summary, _ = run(engine, questions, store)
        assert (summary.computed, summary.reused) == (6 * PAIRS, 0)


def test_scores_that_are_not_finite_are_failures(counting: Counting, questions: Path, tmp_path: Path) -> None:
    class Overflowing(Counting):
        def answer_batch(self, queries: Sequence[Query]) -> list[Answered | QueryFailure]:
            results = super().answer_batch(queries)
            results[0] = Answered("A", CandidateScores((float("nan"),) * len(queries[0].candidates), (1, 1, 1, 1)))
            return results

    summary, table = run(Overflowing(counting.engine), questions, tmp_path / "store.sqlite", batch_size=12)
    assert [failure.reason for failure in summary.failures] == [
        "the model gave a score that is not finite; try another dtype, e.g. float32"
    ]
    assert len(table) == 4 * PAIRS - 1


def test_without_any_readable_image_every_example_fails_with_its_reason(
    counting: Counting, questions: Path, tmp_path: Path
) -> None:
    for path in tmp_path.glob("*.png"):
        path.write_bytes(b"")
    summary, table = run(counting, questions, tmp_path / "store.sqlite", views=("mean",))
    assert (len(summary.failures), table) == (4 * PAIRS, None)


def test_failures_are_recorded_and_the_rest_goes_on(llava: TransformersEngine, questions: Path, tmp_path: Path) -> None:
    (tmp_path / "0-cf.png").write_bytes((tmp_path / "0-cf.png").read_bytes()[:60])
    (tmp_path / "1-cs.png").unlink()
    (tmp_path / "2-cf.png").write_bytes(b"")
    summary, table = run(llava, questions, tmp_path / "store.sqlite")
    reasons = {failure.example_id: failure.reason for failure in summary.failures}
    assert set(reasons) == {f"{name}-{task}" for name in ("0-cf", "1-cs", "2-cf") for task in ("mc", "qa")}
    assert "not a readable image" in reasons["0-cf-mc"]
    assert "no such image" in reasons["1-cs-qa"]
    assert "empty" in reasons["2-cf-mc"]
    assert len(table) == 4 * PAIRS - 6
    Image.new("RGB", (40, 40), (90, 0, 0)).save(tmp_path / "1-cs.png")  # mended: only this is done again
    summary, table = run(llava, questions, tmp_path / "store.sqlite")
    assert len(table) == 4 * PAIRS - 4
    assert summary.computed == 2 + 4  # the mended image, and another try of the two broken ones


def test_a_candidate_that_tokenises_to_nothing_fails_alone(
    model_folder: Callable[[str], Path], questions: Path, tmp_path: Path
) -> None:
    class Forgetful(PromptLayout):
        def continuations(self, labels: Sequence[str]) -> tuple[str, ...]:
            return ("", " no") if "yes" in labels else super().continuations(labels)

    engine = TransformersEngine(model_folder("llava"), device="cpu", layout=Forgetful())
    summary, table = run(engine, questions, tmp_path / "store.sqlite")
    assert {failure.reason for failure in summary.failures} == {"candidate '' tokenises to nothing"}
    assert len(summary.failures) == 2 * PAIRS
    assert set(table.column("task")) == {"mc"}


def test_nothing_scored_is_an_error_that_says_why(llava: TransformersEngine, tmp_path: Path) -> None:
    path = tmp_path / "mine.jsonl"
    path.write_text('{"image": "gone.png", "question": "Is it?"}', encoding="utf-8")
    with ScoreStore(tmp_path / "store.sqlite") as store:
        scoring = ScoringRun(llava, read_questions(path), store)
        assert len(scoring.run().failures) == 1
        with pytest.raises(UnpriorError, match=r"no example of mine has scores.*gone\.png"):
            scoring.table()


@pytest.mark.parametrize(
    ("options", "message"), [({"views": ("grey",)}, "unknown view grey"), ({"batch_size": 0}, "batch size is 0")]
)
def test_wrong_options_are_named(
    llava: TransformersEngine, questions: Path, tmp_path: Path, options: dict[str, Any], message: str
) -> None:
    with ScoreStore(tmp_path / "s.sqlite") as store, pytest.raises(UnpriorError, match=message):
        ScoringRun(llava, read_questions(questions), store, **options)


def test_progress_ends_at_its_total(llava: TransformersEngine, questions: Path, tmp_path: Path) -> None:
    seen: list[Progress] = []
    with ScoreStore(tmp_path / "store.sqlite") as store:
        ScoringRun(llava, read_questions(questions), store, batch_size=4).run(seen.append)
    assert (seen[0].done, seen[-1].done, seen[-1].total) == (0, 4 * PAIRS, 4 * PAIRS)  # in examples
    assert [progress.done for progress in seen] == sorted(progress.done for progress in seen)


def test_a_run_in_small_parts_asks_nothing_twice_and_gives_the_same_table(
    counting: Counting, questions: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "2-cf.png").write_bytes(b"")
    options: dict[str, Any] = {"views": ("white",), "resize_to": 32, "batch_size": 1}
    whole, table = run(counting, questions, tmp_path / "whole.sqlite", **options)
    asked = (counting.answered, counting.scored)
    monkeypatch.setattr("unprior.scoring.plan.CHUNK", 3)
    counting.answered = counting.scored = 0
    kept: list[ScoreTable] = []
    seen: list[Progress] = []
    with ScoreStore(tmp_path / "parts.sqlite") as store:
        scoring = ScoringRun(counting, read_questions(questions), store, **options)
        assert scoring.run(seen.append, kept.append) == whole
        assert scoring.table().arrow.equals(table.arrow)
        assert (counting.answered, counting.scored) == asked
        again = ScoringRun(counting, read_questions(questions), store, **options).run()
    assert concatenate(kept).arrow.equals(table.arrow)
    assert len(kept) > 3
    assert [where.done for where in seen] == sorted(where.done for where in seen)
    assert (seen[-1].done, seen[-1].total) == (4 * PAIRS, 4 * PAIRS)
    assert again.computed == 2  # the broken image's questions are tried again
    assert again.computed + again.reused == whole.computed


def test_pair_ids_of_all_parts_are_of_one_type(
    counting: Counting, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Image.new("RGB", (40, 40)).save(tmp_path / "a.png")
    lines = [
        json.dumps({"image": "a.png", "question": "Is it?", "pair": name, "side": "cf", "id": str(name)})
        for name in (1, 2, "x")
    ]
    (tmp_path / "mixed.jsonl").write_text("\n".join(lines), encoding="utf-8")
    monkeypatch.setattr("unprior.scoring.plan.CHUNK", 1)
    _, table = run(counting, tmp_path / "mixed.jsonl", tmp_path / "store.sqlite")
    assert table.column("pair_id") == ["1", "2", "x"]


WORKER = """
import sys
from pathlib import Path
import torch
torch.set_num_threads(1)
from unprior.benchmarks.user_file import read_questions
from unprior.scoring.run import ScoringRun
from unprior.scoring.store import ScoreStore
from unprior.engines.transformers.engine import TransformersEngine

# Load once, then fork: every child is a scoring process of its own, and dies alone.
import json, os
engine = TransformersEngine(sys.argv[1], device="cpu", self_test=False)
print("ready", flush=True)
for line in sys.stdin:
    questions, store, *sizes = json.loads(line)
    children = []
    for batch in sizes:
        child = os.fork()
        if child == 0:
            with ScoreStore(store) as opened:
                ScoringRun(engine, read_questions(Path(questions)), opened, batch_size=batch).run()
            os._exit(0)
        children.append(child)
    print(*children, flush=True)
    ends = [os.waitpid(child, 0)[1] for child in children]
    print(*("killed" if os.WIFSIGNALED(end) else "done" if end == 0 else "failed" for end in ends), flush=True)
"""


class Worker:
    """A process that starts scoring processes on demand."""

    def __init__(self, model: Path) -> None:
        command = [sys.executable, "-c", WORKER, str(model)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self.line() == "ready"

    def line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def start(self, questions: Path, store: Path, *batch_sizes: int) -> list[int]:
        """Start a process for each batch size, all at once."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps([str(questions), str(store), *batch_sizes]) + "\n")
        self.process.stdin.flush()
        return [int(child) for child in self.line().split()]

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        assert self.process.wait(timeout=30) == 0
        assert self.process.stdout is not None
        self.process.stdout.close()


@pytest.fixture(scope="module")
def worker(model_folder: Callable[[str], Path]) -> Iterator[Worker]:
    started = Worker(model_folder("llava"))
    yield started
    started.close()


@pytest.fixture
def _long_answers(llava: TransformersEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    """As long as those of the processes, so that these are killed in the middle."""
    monkeypatch.setattr(llava, "max_new_tokens", 64)


@pytest.mark.usefixtures("_long_answers")
def test_twenty_kills_lose_nothing_and_double_nothing(
    llava: TransformersEngine, worker: Worker, tmp_path: Path
) -> None:
    questions = write_benchmark(tmp_path, pairs=8)
    _, undisturbed = run(llava, questions, tmp_path / "undisturbed.sqlite", batch_size=2)
    store = tmp_path / "killed.sqlite"
    generator = random.Random(3)
    kills, stored = 0, 0
    for _ in range(20):
        (child,) = worker.start(questions, store, generator.choice((1, 2, 3)))
        time.sleep(generator.uniform(0.005, 0.12))
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)
        kills += worker.line() == "killed"
        with ScoreStore(store) as opened:
            successes, failures = opened.counts()
        assert failures == 0
        assert successes >= stored  # nothing that was stored is lost
        stored = successes
    worker.start(questions, store, 2)
    assert worker.line() == "done"
    assert kills >= 10
    counting = Counting(llava)
    summary, table = run(counting, questions, store, batch_size=2)
    assert (summary.computed, counting.answered, counting.scored) == (0, 0, 0)
    with ScoreStore(store) as opened:
        assert opened.counts() == (6 * 8, 0)
    assert table.column("original_text") == undisturbed.column("original_text")
    np.testing.assert_allclose(table.image_scores, undisturbed.image_scores, atol=1e-4)
    np.testing.assert_allclose(table.prior_scores, undisturbed.prior_scores, atol=1e-4)


@pytest.mark.usefixtures("_long_answers")
def test_two_processes_on_one_store_do_no_harm(llava: TransformersEngine, worker: Worker, tmp_path: Path) -> None:
    questions = write_benchmark(tmp_path, pairs=6)
    store = tmp_path / "shared.sqlite"
    worker.start(questions, store, 1, 3)
    assert worker.line() == "done done"
    summary, table = run(llava, questions, store)
    _, alone = run(llava, questions, tmp_path / "alone.sqlite")
    assert (summary.computed, len(table)) == (0, 4 * 6)
    assert table.column("original_text") == alone.column("original_text")
    np.testing.assert_allclose(table.image_scores, alone.image_scores, atol=1e-4)


class Writing(Counting):
    """An engine whose answers are given; its scores are real."""

    thoughtful = 4 * PAIRS  # which answer ends its thinking: the last one

    def answer_batch(self, queries: Sequence[Query]) -> list[Answered | QueryFailure]:
        results = super().answer_batch(queries)
        text = "It has six.</think>B no" if self.answered == self.thoughtful else "A or yes"
        return [Answered(text, result.scored) for result in results if isinstance(result, Answered)]


def test_one_answer_tells_that_the_model_thinks(
    llava: TransformersEngine, questions: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("unprior.scoring.plan.CHUNK", 3)
    kept: list[ScoreTable] = []
    with ScoreStore(tmp_path / "store.sqlite") as store:
        scoring = ScoringRun(Writing(llava), read_questions(questions), store, batch_size=1)
        summary = scoring.run(keep=kept.append)
        assert scoring.table().arrow.equals(concatenate(kept).arrow)
        # Whoever comes later finds out by looking at what is stored.
        assert sum(part.cut_off for part in StoredRows(scoring.plan, store).chunks()) == 4 * PAIRS - 1
    assert (summary.cut_off, summary.failures) == (4 * PAIRS - 1, ())
    originals = concatenate(kept).column("original")
    assert sum(original is None for original in originals) == 4 * PAIRS - 1
    assert {"B", "no"} & set(originals)


def test_without_a_tag_of_thinking_all_answers_are_read(
    llava: TransformersEngine, questions: Path, tmp_path: Path
) -> None:
    engine = Writing(llava)
    engine.thoughtful = 0
    summary, table = run(engine, questions, tmp_path / "store.sqlite", batch_size=1)
    assert summary.cut_off == 0
    assert set(table.column("original")) == {"A", "yes"}
