"""Score stores: a scoring run that goes on from a store that somebody or something changed."""

from __future__ import annotations

import copy
import hashlib
import json
import shutil
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from PIL import Image

from fuzz.case import Case, Target, require
from fuzz.mutate import change_at, changed_bytes, dumps, some_place
from hand_questions import write_benchmark
from unprior.benchmarks.user_file import read_questions
from unprior.engines.protocol import Answered, CandidateScores, Capabilities, Query, QueryFailure
from unprior.prompts import PromptLayout
from unprior.scoring.run import ScoringRun
from unprior.scoring.store import ScoreStore


def make(folder: Path) -> Target:
    """A finished run and its table."""
    return _Stores(folder).run


class _Stores:
    def __init__(self, folder: Path) -> None:
        self.benchmark = read_questions(write_benchmark(folder))
        self.path = folder / "store.sqlite"
        self.table, _ = self._run(self.path)

    def run(self, case: Case) -> bool:
        random = case.random
        path = case.folder / "store.sqlite"
        kind = random.choice(("value", "value", "value", "failure", "gone", "bytes", "schema", "beside"))
        case.note(kind)
        if kind == "bytes":
            content = self.path.read_bytes()
            header = random.random() < 0.5  # the first bytes say what the file is
            path.write_bytes(
                changed_bytes(random, content[:200]) + content[200:] if header else changed_bytes(random, content)
            )
            self._run(path)  # a changed number inside the file cannot be told from the right one
            return True
        shutil.copyfile(self.path, path)
        if kind == "beside":
            (case.folder / f"store.sqlite{random.choice(('-wal', '-shm', '-journal'))}").write_bytes(
                random.randbytes(5000)
            )
        else:
            with closing(sqlite3.connect(path)) as connection, connection:
                self._change(case, connection, kind)
        table, failed = self._run(path)
        if kind == "schema":
            return True
        require(
            table == {name: row for name, row in self.table.items() if name not in failed},
            "a changed store gives another table",
        )
        return not failed

    def _change(self, case: Case, connection: sqlite3.Connection, kind: str) -> None:
        """Spoil a stored result so that it cannot be true, or take it away; then it is computed again, or refused."""
        random = case.random
        if kind == "schema":
            statement = random.choice(
                ("DROP TABLE info", "DROP TABLE result", "ALTER TABLE result DROP COLUMN failure",
                 "PRAGMA user_version = 99", "PRAGMA application_id = 7",
                 "ALTER TABLE result ADD COLUMN more TEXT", "CREATE TABLE other (x)")
            )  # fmt: skip
            case.note(statement)
            connection.execute(statement)
            return
        key, value = random.choice(connection.execute("SELECT key, value FROM result ORDER BY key").fetchall())
        if kind == "gone":
            connection.execute("DELETE FROM result WHERE key = ?", (key,))
        elif kind == "failure":
            connection.execute("UPDATE result SET value = NULL, failure = 'spoilt' WHERE key = ?", (key,))
        else:
            spoilt = self._spoilt(case, json.loads(value))
            connection.execute("UPDATE result SET value = ? WHERE key = ?", (spoilt, key))

    def _spoilt(self, case: Case, value: Any) -> Any:
        random = case.random
        if random.random() < 0.3:
            return random.choice(("", "{", "null", "[]", "3", "NaN", '{"scores": []}', b"\xff\xfe", 7, "[" * 100_000))
        for _ in range(20):
            copied = copy.deepcopy(value)
            changed, note = change_at(random, copied, some_place(random, copied))
            if not _possible(changed):
                case.note(note)
                return dumps(changed).decode("utf-8", "replace")
        return "{"

    def _run(self, path: Path) -> tuple[dict[str, Any], set[str]]:
        """Rows of the table by example, and the examples that are reported as failed."""
        with ScoreStore(path) as store:
            run = ScoringRun(_Instant(), self.benchmark, store)
            failed = {failure.example_id for failure in run.run().failures}
            return {row["example_id"]: row for row in run.table().arrow.to_pylist()}, failed


def _possible(value: Any) -> bool:
    """Whether a stored result could be a true one."""
    if not isinstance(value, dict):
        return False
    scores, counts, text = value.get("scores"), value.get("token_counts"), value.get("text", "")
    numbers = isinstance(scores, list) and all(isinstance(score, int | float) and score == score for score in scores)  # noqa: PLR0124
    whole = isinstance(counts, list) and all(isinstance(count, int) for count in counts)
    return numbers and whole and isinstance(text, str) and "censored" not in value


class _Instant:
    """An engine whose scores are made of the question alone."""

    name = "instant"
    fingerprint = "instant 1"
    identity: dict[str, str] = {"engine": "instant"}  # noqa: RUF012
    capabilities = Capabilities(exact_scores=True)
    model_type = None
    layout = PromptLayout()

    def original_answer(self, image: Image.Image | None, question: str) -> str:
        """Always the same."""
        return "A"

    def score_candidates(self, image: Image.Image | None, question: str, candidates: Sequence[str]) -> CandidateScores:
        """Scores of one question."""
        return _made_up(Query(image, question, tuple(candidates)))

    def score_batch(self, queries: Sequence[Query]) -> list[CandidateScores | QueryFailure]:
        """Scores of many."""
        return [_made_up(query) for query in queries]

    def answer_batch(self, queries: Sequence[Query]) -> list[Answered | QueryFailure]:
        """Scores of many, and the candidate that comes first."""
        made = [_made_up(query) for query in queries]
        best = [
            max(zip(each.scores, query.candidates, strict=True))[1] for each, query in zip(made, queries, strict=True)
        ]
        return [Answered(text.strip(), each) for text, each in zip(best, made, strict=True)]


def _made_up(query: Query) -> CandidateScores:
    seen = b"" if query.image is None else query.image.tobytes()
    digests = [hashlib.sha256(seen + f"{query.text} {each}".encode()).digest() for each in query.candidates]
    return CandidateScores(tuple(-1 - digest[0] / 256 for digest in digests), (1,) * len(digests))
