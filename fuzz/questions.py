"""Files of questions and of answers: ``read_questions``, ``evaluate-answers``, ``data gallery`` and ``score``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from fuzz.case import Case, Target, require
from fuzz.commands import command
from fuzz.mutate import changed_bytes, changed_json, dumps
from hand_questions import write_benchmark
from unprior import read_scores
from unprior.benchmarks.user_file import read_questions

_WORDS = (
    "five", "A", "B.", "(C)", "The answer is D", "six", "yes", "No.", "It is no, not yes.", "<think>A",
    "<think>B</think>C", "A</think> B", "", " ", "I cannot tell", "**B**", "a hand", "A or B", "\\boxed{C}", "YES",
    "Nothing", "D D D",
)  # fmt: skip


def make(folder: Path) -> Target:
    """A file of questions with its images, and answers to them."""
    return _Questions(folder).run


class _Questions:
    def __init__(self, folder: Path) -> None:
        import torch

        torch.set_num_threads(1)
        self.path = write_benchmark(folder)
        self.questions = [json.loads(line) for line in self.path.read_text(encoding="utf-8").splitlines()]
        self.folder = folder

    def run(self, case: Case) -> bool:
        random = case.random
        kind = random.choices(("questions", "answers", "score", "gallery"), (5, 5, 0.4, 1))[0]
        case.note(kind)
        if kind == "answers":
            return self._answers(case)
        path = self._changed_questions(case)
        if kind == "score":
            return self._score(case, path)
        if kind == "gallery":
            return command("data", "gallery", path, "--out", case.folder / "gallery.html").accepted
        return _read(path)

    def _changed_questions(self, case: Case) -> Path:
        random = case.random
        for image in self.folder.glob("*.png"):
            (case.folder / image.name).symlink_to(image)
        records: list[Any] = [dict(question) for question in self.questions]
        if random.random() < 0.3:  # only another spelling
            spelled = [{name: record[name] for name in random.sample(list(record), len(record))} for record in records]
            return case.write("questions.jsonl", b"\r\n".join(map(dumps, spelled)) + b"\n\n")
        if random.random() < 0.3:
            return case.write("questions.jsonl", changed_bytes(random, b"\n".join(map(dumps, records))))
        for position in random.sample(range(len(records)), random.choice((1, 1, 2))):
            records[position], note = changed_json(random, records[position])
            case.note(f"question {position + 1}: {note}")
        return case.write("questions.jsonl", b"\n".join(map(dumps, records)))

    def _answers(self, case: Case) -> bool:
        """Answers in another spelling and order are worth the same; changed ones are refused or counted."""
        random = case.random
        answers = [{"example_id": question["id"], "text": random.choice(_WORDS)} for question in self.questions]
        wanted = command(
            "evaluate-answers", self.path, case.write("answers.jsonl", _lines(answers)), "--split", "all", "--json"
        )
        require(wanted.code == 0, f"good answers are refused: {wanted.err}")
        moved = random.sample(answers, len(answers))
        spelled: list[dict[str, Any]] = [
            {"unknown": 1, "text": answer["text"], "example_id": answer["example_id"]} for answer in moved
        ]
        found = command(
            "evaluate-answers", self.path, case.write("moved.jsonl", _lines(spelled)), "--split", "all", "--json"
        )
        require(found.json == wanted.json, f"the order of answers changes the result: {found.json}, {wanted.json}")
        _shares(found.json, len(answers))
        records: list[Any] = list(answers)
        if random.random() < 0.3:
            content = changed_bytes(random, _lines(records))
        else:
            position = random.randrange(len(records))
            records[position], note = changed_json(random, records[position])
            case.note(note)
            content = _lines(records)
        path = case.write("changed.jsonl", content)
        ran = command(
            "evaluate-answers", self.path, path, "--split", "all", "--json", *random.choice(([], ["--skip-missing"]))
        )
        if ran.accepted:
            _shares(ran.json, len(answers))
        return ran.accepted

    def _score(self, case: Case, path: Path) -> bool:
        """Every example is scored or named; the table is one that can be read."""
        ran = command(
            "score", "--benchmark", path, "--model", "embedded", "--out", case.folder / "run", "--json", codes=(0, 1, 2)
        )
        if not ran.accepted:
            return False
        told = ran.json
        if told["out"] is not None:
            table = read_scores(told["out"], require_answers=False)
            require(
                len(table) + len(told["failures"]) == told["examples"],
                f"{told['examples']} examples, {len(table)} rows, {len(told['failures'])} failures",
            )
            require(bool(np.isfinite(table.image_scores).all()), "a score is not finite")
        return True


def _read(path: Path) -> bool:
    """Accepted questions are those that stand in the file."""
    benchmark = read_questions(path)
    lines = [line for line in path.read_bytes().split(b"\n") if line.strip()]
    require(len(benchmark) == len(lines), f"{len(lines)} lines, {len(benchmark)} questions")
    for line, example in zip(lines, benchmark, strict=True):
        record = json.loads(line)
        require(example.question == record["question"], f"a question is read otherwise: {example.question!r}")
        options = record.get("options")
        require(
            example.texts == (None if options is None else tuple(options)),
            f"options are read otherwise: {example.texts}",
        )
        if (answer := record.get("answer")) is not None and example.texts is not None and example.answer is not None:
            meant = example.texts[example.labels.index(example.answer)]
            require(
                str(answer).casefold() in (meant.casefold(), example.answer.casefold()),
                f"another answer: {meant}, {answer}",
            )
    return True


def _lines(records: list[Any]) -> bytes:
    return b"\n".join(map(dumps, records))


def _shares(told: Any, most: int) -> None:
    """No share is more than all."""

    def look(value: Any) -> None:
        if isinstance(value, dict):
            for inner in value.values():
                look(inner)
        elif isinstance(value, list):
            for inner in value:
                look(inner)
        elif isinstance(value, int | float) and not isinstance(value, bool):
            require(abs(value) <= max(100, most), f"a number that cannot be: {value}")

    look(told)
