"""`unprior score`, `ask` and `run` with a served model."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import tiny_models
from faulty_server import FaultyServer
from replayed_vllm import MODEL, ReplayedVllm
from unprior import read_scores
from unprior.engines.load import load_engine
from unprior.engines.transformers.engine import TransformersEngine
from unprior.errors import UnpriorWarning
from unprior.runs.config import RunConfig
from unprior.runs.prepare import Preparation


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> TransformersEngine:
    return TransformersEngine(tiny_models.build("llava", tmp_path_factory.mktemp("llava")), device="cpu")


@pytest.fixture
def url(engine: TransformersEngine) -> Iterator[str]:
    with FaultyServer(ReplayedVllm(engine)) as server:
        yield server.url


@pytest.fixture
def questions(tmp_path: Path) -> str:
    pixels = np.random.default_rng(0).integers(0, 256, (3, 40, 40, 3), dtype=np.uint8)
    rows = []
    for index, picture in enumerate(pixels):
        Image.fromarray(picture).save(tmp_path / f"{index}.png")
        rows.append({"image": f"{index}.png", "question": "Is it red?", "id": f"q{index}"})
    (tmp_path / "mine.jsonl").write_text("\n".join(json.dumps(row) for row in rows), encoding="utf-8")
    return str(tmp_path / "mine.jsonl")


def score(run: Callable, url: str, questions: str, *more: str) -> Any:
    served = ("--engine", "openai", "--base-url", url, "--model", MODEL)
    return run("score", *served, "--benchmark", questions, "--out", "scored", *more)


def test_score_asks_the_server_and_resumes(
    run: Callable, url: str, questions: str, engine: TransformersEngine, tmp_path: Path
) -> None:
    first = score(run, url, questions, "--json").json
    assert (first["computed"], first["failures"], first["censored"]) == (4, [], 0)
    assert score(run, url, questions, "--json", "--concurrency", "2").json["reused"] == 4
    table = read_scores("scored/scores.parquet", require_answers=False)
    assert set(table.column("model")) == {MODEL}
    image = Image.open(tmp_path / "0.png")
    expected = engine.score_candidates(image, "Is it red?\nAnswer with yes or no.", (" yes", " no"))
    assert table.column("image_scores")[0] == pytest.approx(expected.scores, abs=1e-4)
    record = RunConfig.read("scored").engine
    assert (record.name, record.base_urls, record.concurrency) == ("openai", (url,), 2)


def test_censored_examples_are_counted(run: Callable, questions: str, engine: TransformersEngine) -> None:
    with FaultyServer(ReplayedVllm(engine, named=False)) as server:
        refused = score(run, server.url, questions)
        assert refused.code == 1
        assert "3 examples with censored candidates: refused" in refused.out
        assert "shows only the 20 most probable tokens" in " ".join(refused.err.split())
        allowed = score(run, server.url, questions, "--allow-censored")
        assert allowed.code == 0
        assert "3 examples with censored candidates: taken as bounds" in allowed.out


def write_old_record(folder: Path, url: str, questions: str) -> None:
    """What version 0.1.0 left; it did not say whether bounds were allowed."""
    (folder / "run.toml").unlink()
    model = {"model": MODEL, "revision": None, "dtype": "auto", "device": None, "device_map": None, "attention": None,
             "engine": "openai", "base_urls": [url], "folder": None}  # fmt: skip
    record = {"model": model, "benchmark": questions, "variant": None, "seed": 0, "data_dir": None, "resize": None}
    (folder / "run.json").write_text(json.dumps(record), encoding="utf-8")


@pytest.mark.parametrize("old", [False, True])
def test_preparing_views_keeps_bounds_that_were_allowed(
    run: Callable, questions: str, engine: TransformersEngine, old: bool
) -> None:
    with FaultyServer(ReplayedVllm(engine, named=False)) as server:
        score(run, server.url, questions, "--allow-censored")
        before = read_scores("scored/scores.parquet", require_answers=False)
        if old:  # a folder of version 0.1.0 does not say that bounds were allowed
            write_old_record(Path("scored"), server.url, questions)
        config = RunConfig.read("scored")
        assert config.engine.allow_censored is not old
        with pytest.warns(UnpriorWarning, match="shows only the 20 most probable tokens"):
            engine_there = load_engine(**config.loading)
        with pytest.warns(UnpriorWarning, match="hold only"):
            Preparation(config, engine_there).prepare({"views": ("white", "black", "mean")})
    after = read_scores("scored/scores.parquet", require_answers=False)
    assert len(after) == len(before) == 3
    assert {name for name, _ in after.column("views")[0]} == {"white", "black", "mean"}


def test_ask_a_server(run: Callable, url: str, questions: str, tmp_path: Path, engine: TransformersEngine) -> None:
    served = ("--engine", "openai", "--base-url", url, "--model", MODEL)
    told = run("ask", tmp_path / "1.png", "Is it red?", *served, "--json").json
    prior = engine.score_candidates(None, "Is it red?\nAnswer with yes or no.", (" yes", " no"))
    assert [row["prior_score"] for row in told["candidates"]] == pytest.approx(prior.scores, abs=1e-4)


@pytest.mark.parametrize(("gpus", "settings"), [((), {}), (("--tensor-parallel", "2"), {"tensor_parallel_size": 2})])
def test_the_number_of_gpus_reaches_vllm_and_the_record(
    run: Callable,
    questions: str,
    engine: TransformersEngine,
    monkeypatch: pytest.MonkeyPatch,
    gpus: tuple[str, ...],
    settings: dict[str, int],
) -> None:
    loaded: list[dict[str, Any]] = []

    def load(model: Path, **options: Any) -> TransformersEngine:
        loaded.append(options)
        return engine

    monkeypatch.setattr("unprior.engines.vllm.VllmEngine", load)
    assert run("score", "--engine", "vllm", "--model", "m", "--benchmark", questions, "--out", "v", *gpus).code == 0
    assert loaded[0]["options"] == settings
    assert RunConfig.read("v").engine.tensor_parallel == settings.get("tensor_parallel_size", 1)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            ("--engine", "openai"),
            "--engine openai goes with the address of a server, e.g. --base-url",
        ),
        (
            ("--base-url", "http://localhost:1"),
            "--engine openai goes with the address of a server, e.g. --base-url",
        ),
        (("--engine", "other"), "choose one of transformers, vllm, openai"),
        (
            ("--engine", "openai", "--base-url", "http://localhost:1", "--dtype", "float16"),
            "--dtype float16: the engine",
        ),
        (("--engine", "vllm", "--device", "cpu"), "--device cpu: the engine vllm decides that itself"),
        (("--tensor-parallel", "2"), "--tensor-parallel 2 goes with the engine vllm"),
        (
            ("--engine", "openai", "--base-url", "http://localhost:1", "--tensor-parallel", "2"),
            "vllm serve --tensor-parallel-size 2",
        ),
        (("--engine", "vllm", "--baselines", "vcd"), "only the engine transformers permits"),
    ],
)
def test_what_does_not_fit_is_refused_at_once(run: Callable, options: tuple[str, ...], message: str) -> None:
    run("run", "--out", "never", *options).refused(message)
    assert not Path("never").exists()


def test_a_dry_run_tells_what_is_left_and_scores_nothing(run: Callable, url: str, questions: str) -> None:
    before = score(run, url, questions, "--dry-run", "--json").json
    assert (before["examples"], before["stored"]) == (3, 0)
    assert not Path("scored/store.sqlite").exists()
    score(run, url, questions, "--limit", "1")
    assert score(run, url, questions, "--dry-run", "--json").json["examples"] == 2
    shown = score(run, url, questions, "--dry-run").out
    assert "1 example is stored already. Nothing was scored now." in shown
    assert "prompt tokens" in shown
    assert tomllib.loads(shown)["engine"]["base_urls"] == [url]  # remarks and all, it is a file for --config


def test_a_dry_run_counts_open_questions_and_says_what_the_figure_rests_on(
    run: Callable, url: str, questions: str, tmp_path: Path
) -> None:
    closed = score(run, url, questions, "--dry-run", "--json").json
    mine = {"image": "0.png", "question": "What is it?", "task": "open", "id": "open"}
    Path(questions).write_text(f"{Path(questions).read_text(encoding='utf-8')}\n{json.dumps(mine)}", encoding="utf-8")
    both = score(run, url, questions, "--dry-run", "--json").json
    assert (both["examples"], both["open_examples"], both["open_measured"]) == (4, 1, 1)
    assert all(both[name] > closed[name] for name in ("requests", "prompt_tokens", "generated_tokens", "sent_bytes"))
    shown = score(run, url, questions, "--dry-run").out
    assert "# 1 example is an open question: measured on 1 of them, whose answers are not kept." in shown
    assert tomllib.loads(shown)["benchmark"]["name"] == questions
    assert not Path("scored/store.sqlite").exists()


def test_bounds_are_marked_in_the_table(run: Callable, engine: TransformersEngine, questions: str) -> None:
    with FaultyServer(ReplayedVllm(engine, named=False)) as server:
        allowed = score(run, server.url, questions, "--allow-censored", "--json").json
    table = read_scores("scored/scores.parquet", require_answers=False)
    assert allowed["censored"] == table.is_bounded.sum() > 0
    assert table.column("censored")[0] is not None


def test_what_is_odd_about_a_server_is_said_once(run: Callable, engine: TransformersEngine, questions: str) -> None:
    with FaultyServer(ReplayedVllm(engine, replies_as="folder/other")) as server:
        done = score(run, server.url, questions)
    assert done.code == 0
    assert " ".join(done.err.split()).count("the server answers as 'folder/other'") == 1


def test_another_model_behind_the_name_ends_the_run(run: Callable, engine: TransformersEngine, questions: str) -> None:
    replayed = ReplayedVllm(engine)
    with FaultyServer(replayed) as server:
        assert score(run, server.url, questions, "--limit", "1").code == 0
        server.plan = lambda _number, _path, body: setattr(
            replayed, "replies_as", "other" if body and body.get("max_tokens") == 64 else MODEL
        )
        ended = score(run, server.url, questions)
    assert ended.code != 0
    assert "scores of two models must not be mixed" in " ".join((ended.out + ended.err).split())
    assert len(read_scores("scored/scores.parquet", require_answers=False)) == 1
