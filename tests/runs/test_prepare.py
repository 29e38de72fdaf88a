"""Asking a model what studies lack, without losing what the run has."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import tiny_models
from hand_questions import write_benchmark
from unprior.engines.load import load_engine
from unprior.runs.config import RunConfig
from unprior.runs.prepare import Preparation
from unprior.runs.score import score_run
from unprior.scores import read_scores


@pytest.mark.filterwarnings("ignore:the candidates hold only:unprior.errors.UnpriorWarning")
def test_preparing_views_keeps_what_was_asked_about_claims(tmp_path: Path) -> None:
    model, questions = tiny_models.build("llava", tmp_path / "model"), write_benchmark(tmp_path, pairs=1)
    rows = [json.loads(line) for line in questions.read_text().splitlines()]
    asked = [row if "options" in row else row | {"claims": ["red", "blue"]} for row in rows]
    questions.write_text("\n".join(map(json.dumps, asked)))
    config = RunConfig.from_options(model=str(model), benchmark=questions, out=tmp_path / "run", prior="canonical")
    before = score_run(config).table()
    Preparation(config, load_engine(**config.loading)).prepare({"views": ("white", "black", "mean")})
    after = read_scores(tmp_path / "run" / "scores.parquet")
    for old, new in zip(before.column("views"), after.column("views"), strict=True):
        blank = {name: scores for name, scores in new if name in ("white", "black", "mean")}
        assert len(blank) == 3
        assert dict(new) == dict(old or ()) | blank
    assert [len(dict(entry or ())) for entry in before.column("views")] == [0, 6, 0, 6]
