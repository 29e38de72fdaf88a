"""What a model answered in its own words, evaluated without any scores: the original-model block of the main table."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from unprior._files import open_to_read, parse_json, read_lines
from unprior.answer_forms import is_accepted
from unprior.benchmarks.schema import OPEN, Benchmark, Example
from unprior.errors import UnpriorError, did_you_mean, format_names, format_option
from unprior.evaluation.comparison import group_rows
from unprior.evaluation.metrics import Metrics, Share, correct, measure
from unprior.evaluation.open_judging import OpenJudging
from unprior.prompts import YES_NO, is_cut_off, parse_answer, thinks
from unprior.scores import ScoreTable
from unprior.scores.judge import Judge, require_judge
from unprior.tables.html import as_html
from unprior.tables.model import Table


@dataclass(frozen=True, slots=True)
class Group:
    """Accuracy of a part of the examples."""

    name: str
    right: Share
    """All examples of the part."""
    cf: Share
    cs: Share


@dataclass(frozen=True, slots=True)
class TaskAnswers:
    """The answers of one task."""

    task: str
    right: Share
    unparsed: int
    """Answers in which no candidate could be found, of open questions empty ones; they count as wrong."""
    cut_off: int
    """Answers that end before the model's thinking does; they are not read, and count as wrong, too."""
    metrics: Metrics | None
    """CF, CS and CCR where the examples are paired; its attraction means nothing without scores."""
    f1: float | None
    """F1 with yes as the positive answer, for yes/no questions."""
    said_yes: Share | None
    groups: tuple[Group, ...]
    """By subcategory."""
    judged: Share | None = None
    """Answers to open questions that a judge accepted, of those that it was asked about; None without a judge."""


@dataclass(frozen=True, slots=True)
class AnswersEvaluation:
    """A file of raw answers against a benchmark."""

    benchmark: str
    split: str | None
    """The split that was evaluated; None for all examples."""
    tasks: tuple[TaskAnswers, ...]
    missing: tuple[str, ...]
    """Examples that the file has no answer to; left out."""
    disagreeing: int
    """Lines whose own ``answer`` is not the benchmark's right answer."""
    other_tasks: int = 0
    """Lines that answer questions of a task that the benchmark (or its variant) does not have; left out."""
    judge: str | None = None
    """The function that judged open answers which are no form of a right one; None: exact match alone."""

    @property
    def table(self) -> Table:
        """Accuracy of every task: CF, CS, CFAD, RPD and CCR for pairs, accuracy and F1 otherwise."""
        paired = all(task.metrics is not None for task in self.tasks)
        names = ("CF acc", "CS acc", "CFAD ↓", "RPD ↓", "CCR ↓") if paired else ("Accuracy", "F1 (yes)", "Says yes")
        rows = [(task.task.upper(), *(_paired_cells if paired else _unpaired_cells)(task)) for task in self.tasks]
        return Table.plain("Original answers", ("Task", *names), rows, self._caption())

    @property
    def groups_table(self) -> Table:
        """Right answers by subcategory."""
        columns = {
            f"{task.task.upper()} {side.upper()}" if task.metrics else task.task.upper(): (task, side)
            for task in self.tasks
            for side in (("cf", "cs") if task.metrics else ("right",))
        }
        rows = []
        for name in dict.fromkeys(group.name for task in self.tasks for group in task.groups):
            cells = []
            for task, side in columns.values():
                group = next((group for group in task.groups if group.name == name), None)
                cells.append("–" if group is None else _count(getattr(group, side)))
            rows.append((name, *cells))
        return Table.plain("Right answers by subcategory", ("Subcategory", *columns), rows, "")

    def record(self) -> dict[str, Any]:
        """Everything in the tables, for programs; what is undefined is None."""
        tasks = []
        for task in self.tasks:
            record = asdict(task)
            if task.metrics is not None:
                del record["metrics"]["attraction"]  # needs scores
                values = {"cfad": task.metrics.cfad, "rpd": task.metrics.rpd}
                record["metrics"] |= {name: None if math.isnan(value) else value for name, value in values.items()}
            if task.f1 is not None and math.isnan(task.f1):
                record["f1"] = None
            if task.judged is None:
                del record["judged"]
            tasks.append(record)
        record = asdict(self) | {"tasks": tasks}
        if self.judge is None:
            del record["judge"]
        return record

    @property
    def cautions(self) -> tuple[str, ...]:
        """What a reader should know before relying on the numbers, in sentences."""
        tasks = " and ".join(task.task for task in self.tasks)
        told = {
            f"{self.disagreeing} lines give another right answer than {self.benchmark} does": self.disagreeing,
            f"{self.other_tasks:,} lines are left out: {self.benchmark} has only {tasks} questions": self.other_tasks,
            f"{len(self.missing):,} examples have no answer and are left out": self.missing,
        }
        return tuple(sentence for sentence, holds in told.items() if holds)

    def _repr_html_(self) -> str:
        """Both tables, for notebooks."""
        return as_html(self.table) + as_html(self.groups_table)

    def _caption(self) -> str:
        where = f"{self.benchmark}, split {self.split}" if self.split else self.benchmark
        asked = " and ".join(f"{task.right.total:,} {task.task.upper()}" for task in self.tasks)
        unparsed = sum(task.unparsed for task in self.tasks)
        lacking = "empty" if all(task.task == OPEN for task in self.tasks) else "without a candidate in it"
        caption = f"{where}: {asked} answers; {unparsed or 'none'} {lacking} (counted as wrong)"
        if any(task.cut_off for task in self.tasks):
            cut_off = " and ".join(f"{task.cut_off:,} {task.task.upper()}" for task in self.tasks)
            caption += f"; {cut_off} answers cut off while thinking (not read, counted as wrong)"
        if any(task.task == OPEN for task in self.tasks):
            caption += "; open answers by exact match after normalisation, with aliases"
        for task in self.tasks:
            if task.judged is not None:
                caption += f"; the other {task.judged.total:,} judged by {self.judge}: {task.judged.count:,} right"
        return caption


def evaluate_answers(
    path: Path,
    benchmark: Benchmark,
    *,
    split: str | None = None,
    skip_missing: bool = False,
    judge: Judge | None = None,
) -> AnswersEvaluation:
    """Parse raw answers and measure them.

    An answer to an open question is its first line; it is right if it is a form of the right answer or of an alias,
    see :func:`unprior.answer_forms.normalize_answer`. An empty one is wrong.

    When one answer of the file has a tag of thinking, they are those of a thinking model: then an answer without the
    closing tag was cut off.

    Parameters
    ----------
    path
        JSON lines with ``text`` and either ``example_id`` or ``pair_id``, ``side`` and ``task``. A line may also say
        the right ``answer``, which is compared with the benchmark's.
    benchmark
        What was asked; its images need not be there.
    split
        Only the examples of this split.
    skip_missing
        Leave out examples without an answer instead of refusing the file.
    judge
        A function ``judge(text, answer, aliases, question)`` of your own, see :data:`unprior.scores.judge.Judge`. It is
        asked about open answers which are neither empty nor a form of a right one. There is none by default; results
        tell that it judged.
    """
    if judge is not None:
        require_judge(judge)
    examples = [example for example in benchmark if split is None or example.split == split]
    if not examples:
        known = sorted({str(example.split) for example in benchmark})
        like = did_you_mean(str(split), known)
        raise UnpriorError(
            f"benchmark {benchmark.name} has no example of split {split!r}{like}; it has {', '.join(known)}"
        )
    unlabelled = next((example for example in examples if example.answer is None), None)
    if unlabelled is not None:
        raise UnpriorError(
            f"benchmark {benchmark.name}: example {unlabelled.example_id} has no right answer to compare"
        )
    texts, disagreeing, other_tasks, thinking = _read(path, benchmark)
    missing = tuple(example.example_id for example in examples if example.example_id not in texts)
    if len(missing) == len(examples):
        part = "" if split is None else f"split {split!r} of "
        asked = " and ".join(sorted({example.task for example in examples}))
        raise UnpriorError(
            f"{path}: no answer to any of the {len(examples)} examples of {part}{benchmark.name}, which has {asked} "
            f"questions; is the file of this benchmark, variant and split?"
        )
    if missing and not skip_missing:
        raise UnpriorError(
            f"{path}: no answer to {len(missing)} of {len(examples)} examples of {benchmark.name} "
            f"({format_names(missing)}); add them, or leave these examples out with "
            f"{format_option('skip_missing', True)}"
        )
    answered = [example for example in examples if example.example_id in texts]
    reading = OpenJudging((example for example in benchmark if example.is_open), judge, thinking=thinking)
    rows_of = [_row(example, texts[example.example_id], benchmark.name, reading) for example in answered]
    table = ScoreTable.from_rows(rows_of)
    tasks = tuple(_task(table.take(rows), label[0], reading) for label, rows in group_rows(table, "task").items())
    judged_by = reading.name if any(example.is_open for example in answered) else None
    return AnswersEvaluation(benchmark.name, split, tasks, missing, disagreeing, other_tasks, judged_by)


def _read(path: Path, benchmark: Benchmark) -> tuple[dict[str, str | None], int, int, bool]:
    """Raw answers by example; how many lines know another right answer, or are of a task that is not asked; thinking.

    All lines tell whether the model thinks, also those that are not evaluated.
    """
    absent = {"mc", "qa", OPEN} - {example.task for example in benchmark}
    by_name = {example.example_id: example for example in benchmark}
    by_place: dict[tuple[str, ...], list[Example]] = {}
    for example in benchmark:
        by_place.setdefault(_place(example.pair_id, example.side, example.task), []).append(example)
    texts: dict[str, str | None] = {}
    disagreeing = other_tasks = 0
    thinking = False
    with open_to_read(path) as stream:
        for number, line in read_lines(stream, path):
            where = f"{path}, line {number}"
            record = _parsed(line, where)
            thinking = thinking or thinks([record["text"]])
            if record.get("example_id") is not None:
                found = [by_name[name]] if (name := str(record["example_id"])) in by_name else []
            else:
                found = by_place.get(_place(record.get("pair_id"), record.get("side"), record.get("task")), [])
            if not found and str(record.get("task")).lower() in absent:
                other_tasks += 1
                continue
            if len(found) != 1:
                problem = "several examples fit it; name one by example_id" if found else "no example of that name"
                named = (
                    record.get("example_id") or f"{record.get('pair_id')}, {record.get('side')}, {record.get('task')}"
                )
                raise UnpriorError(f"{where}: {named}: {problem} in benchmark {benchmark.name}")
            example = found[0]
            if example.example_id in texts:
                raise UnpriorError(f"{where}: a second answer to {example.example_id}; keep one of them")
            texts[example.example_id] = record["text"]
            disagreeing += _disagrees(record.get("answer"), example)
    return texts, disagreeing, other_tasks, thinking


def _parsed(line: bytes, where: str) -> dict[str, Any]:
    try:
        record = parse_json(line)
    except (ValueError, RecursionError):
        record = None
    if not isinstance(record, dict):
        raise UnpriorError(f"{where}: not a JSON object; the file may be truncated")
    if "text" not in record or not isinstance(record["text"], str | None):
        raise UnpriorError(f"{where}: no text; each line holds what the model wrote as text, or null")
    return record


def _place(pair: Any, side: Any, task: Any) -> tuple[str, ...]:
    """Pair, side and task as they may be written: “Pair 7” is pair 7."""
    return str(pair).removeprefix("Pair ").strip(), str(side).lower(), str(task).lower()


def _disagrees(told: Any, example: Example) -> bool:
    """Whether a line says another right answer than the benchmark does."""
    if example.is_open and isinstance(told, str):
        return not is_accepted(told, str(example.answer), example.aliases)
    return told not in (None, example.answer)


def _row(example: Example, text: str | None, benchmark: str, reading: OpenJudging) -> dict[str, Any]:
    if example.is_open:
        given = reading.label(example, text)
        candidates = reading.candidates(example, given)
    else:
        given = None if text is None else parse_answer(text, example.labels, thinking=reading.thinking)
        candidates = list(example.labels)
    nothing = [0.0] * len(candidates)  # there are no scores; only what needs none is read off this table
    return {
        "benchmark": benchmark,
        "pair_id": str(example.example_id if example.pair_id is None else example.pair_id),
        "side": example.side,
        "task": example.task,
        "subcategory": example.subcategory,
        "category": example.category,
        "candidates": candidates,
        "image_scores": nothing,
        "prior_scores": nothing,
        "original": given,
        "original_text": text,
        "answer": example.answer,
        "example_id": example.example_id,
    }


def _task(table: ScoreTable, task: str, reading: OpenJudging) -> TaskAnswers:
    right, thinking = correct(table, table.original_positions), reading.thinking
    binary = task != OPEN and all(set(labels) == set(YES_NO) for labels in table.column("candidates"))
    given, true = table.column("original"), table.column("answer")
    cut_off = sum(text is not None and is_cut_off(text, thinking=thinking) for text in table.column("original_text"))
    yes = Share(given.count("yes"), len(given)) if binary else None
    return TaskAnswers(
        task=task,
        right=Share(int(right.sum()), len(table)),
        unparsed=int((table.original_positions < 0).sum()) - cut_off,
        cut_off=cut_off,
        metrics=measure(table, table.original_positions) if table.is_paired.all() else None,
        f1=_f1(given, true) if binary else None,
        said_yes=yes,
        groups=tuple(_group(table, str(label[0] or "–"), rows) for label, rows in _in_order(table)),
        judged=Share(reading.accepted, reading.asked) if task == OPEN and reading.judge is not None else None,
    )


def _in_order(table: ScoreTable) -> list[tuple[tuple[Any, ...], Any]]:
    """Subcategories as they follow in the benchmark, which knows why."""
    return sorted(group_rows(table, "subcategory").items(), key=lambda item: int(item[1][0]))


def _group(table: ScoreTable, name: str, rows: Any) -> Group:
    right = correct(table, table.original_positions)[rows]
    cf, paired = table.is_cf[rows], table.is_paired[rows]

    def share(members: Any) -> Share:
        return Share(int((right & members).sum()), int(members.sum()))

    return Group(name, share(np.ones(len(rows), dtype=np.bool_)), share(cf & paired), share(~cf & paired))


def _f1(given: Sequence[str | None], true: Sequence[str | None]) -> float:
    """F1 with yes as the positive answer; NaN when nobody says yes and nothing is."""
    hits = sum(one == other == "yes" for one, other in zip(given, true, strict=True))
    total = sum(one == "yes" for one in given) + sum(one == "yes" for one in true)
    return 2 * hits / total if total else float("nan")


def _paired_cells(task: TaskAnswers) -> tuple[str, ...]:
    metrics = task.metrics
    assert metrics is not None
    cfad, rpd = _number(metrics.cfad), _number(metrics.rpd)
    return _accuracy(metrics.cf), _accuracy(metrics.cs), cfad, rpd, _accuracy(metrics.ccr)


def _unpaired_cells(task: TaskAnswers) -> tuple[str, ...]:
    f1 = "–" if task.f1 is None else _number(task.f1)
    return _accuracy(task.right), f1, "–" if task.said_yes is None else _number(task.said_yes.value)


def _accuracy(share: Share) -> str:
    return f"{_number(share.value)} ({share.count}/{share.total})"


def _count(share: Share) -> str:
    return f"{share.count}/{share.total}" if share.total else "–"


def _number(value: float) -> str:
    return "–" if math.isnan(value) else f"{value:.3f}"
