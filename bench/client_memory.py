"""The memory of a process that scores many examples over HTTP; Linux tells it, for every part of the work."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from PIL import Image

from instant_server import MODEL
from unprior.benchmarks.user_file import read_questions
from unprior.engines.openai.engine import HttpEngine
from unprior.scores.files import read_scores, writing_scores
from unprior.scoring.run import ScoringRun
from unprior.scoring.store import ScoreStore

_IMAGES = 50
_SIDE = 32
_CONCURRENCY = 64


@dataclass(frozen=True, slots=True)
class Used:
    """Resident memory in bytes."""

    loaded: int
    """With everything imported, the engine ready and the questions read."""
    scoring: int
    """Peak while they are scored and the table is written, as `unprior score` does it."""
    table: int
    """With the whole table in memory, as fitting needs it."""
    seconds: float
    """Time of scoring."""


def measure_memory(url: str, examples: int) -> Used:
    """Score so many examples in a process of their own."""
    command = [sys.executable, __file__, url, str(examples)]
    printed = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True).stdout
    return Used(**json.loads(printed))


def score(url: str, examples: int) -> Used:
    """Score a file of different questions and write the table."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_questions(folder, examples)
        benchmark = read_questions(folder / "questions.jsonl")
        engine = HttpEngine(MODEL, [url], concurrency=_CONCURRENCY)
        loaded = _resident()
        start = time.perf_counter()
        with ScoreStore(folder / "store.sqlite") as store:
            _forget_peak()
            run = ScoringRun(engine, benchmark, store)
            with writing_scores(folder / "scores.parquet") as add:
                summary = run.run(keep=add)
            scoring, seconds = _peak(), time.perf_counter() - start
            if summary.failures or summary.computed != 2 * examples:
                raise SystemExit(f"{len(summary.failures)} examples failed")
        _forget_peak()
        table = read_scores(folder / "scores.parquet")
        if len(table) != examples:
            raise SystemExit("rows are missing")
        whole = _peak()
        engine.close()
    return Used(loaded, scoring, whole, seconds)


def write_questions(folder: Path, examples: int) -> None:
    generator = np.random.default_rng(0)
    for number in range(_IMAGES):
        pixels = generator.integers(0, 256, (_SIDE, _SIDE, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(folder / f"{number}.png")
    with (folder / "questions.jsonl").open("w", encoding="utf-8") as stream:
        for number in range(examples):
            asked = {"image": f"{number % _IMAGES}.png", "question": f"Is thing {number} in the picture blue?"}
            stream.write(json.dumps(asked | {"answer": "no", "id": f"example-{number}"}) + "\n")


def show_bytes(value: int) -> str:
    return f"{value / 2**20:,.0f} MB"


def _status(field: str) -> int:
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return 1024 * int(next(line for line in lines if line.startswith(field)).split()[1])


def _resident() -> int:
    return _status("VmRSS:")


def _peak() -> int:
    return _status("VmHWM:")


def _forget_peak() -> None:
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")


if __name__ == "__main__":
    print(json.dumps(asdict(score(sys.argv[1], int(sys.argv[2])))))
