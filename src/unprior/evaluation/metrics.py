"""Accuracy by side and task, and the metrics of CDH-Bench built on it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike

from unprior.answer_forms import normalize_answer
from unprior.calibration import Decisions
from unprior.errors import UnpriorError, wrong_type
from unprior.evaluation.free_texts import text_positions
from unprior.scores import ScoreTable
from unprior.scores.checked import require_table
from unprior.scores.open_rows import accepted_forms
from unprior.scores.schema import NO_ANSWER, OPEN, OTHER_ANSWER, OTHER_ORDINARY_ANSWER, BoolArray, IntArray


@dataclass(frozen=True, slots=True)
class Share:
    """A count out of a total; without a total the value is NaN, not zero.

    >>> Share(3, 4).value
    0.75
    """

    count: int
    total: int

    @property
    def value(self) -> float:
        """Count divided by total."""
        return self.count / self.total if self.total else float("nan")


@dataclass(frozen=True, slots=True)
class Metrics:
    """How a set of answers does on pairs of counterfactual and commonsense images."""

    cf: Share
    """Right answers on counterfactual images."""
    cs: Share
    """Right answers on commonsense images."""
    ccr: Share
    """Wrong counterfactual answers that equal the pair's commonsense answer; to an open question in any written form
    or by an alias, whether the answer is a candidate or not. No answer is wrong, and equals nothing."""
    attraction: Share
    """Wrong counterfactual answers that are the prior's favourite."""

    @property
    def cfad(self) -> float:
        """Gap between the sides: CS accuracy minus CF accuracy."""
        return self.cs.value - self.cf.value

    @property
    def rpd(self) -> float:
        """The gap relative to CS accuracy."""
        return self.cfad / self.cs.value if self.cs.count else float("nan")


@dataclass(frozen=True, slots=True)
class Change:
    """Answers of a method against the original answers, or another reference, on one side."""

    repairs: int
    """Wrong before, right now."""
    harms: int
    """Right before, wrong now."""
    changed: int
    """Answers that differ, right or wrong."""
    total: int

    @property
    def delta(self) -> float:
        """Change of accuracy."""
        return (self.repairs - self.harms) / self.total if self.total else float("nan")


def utility(delta_cf: float, delta_cs: float, weight: float = 0.5) -> float:
    """U_w = ΔCF + w·ΔCS, the repair–retention trade-off; the paper uses w = 0.5.

    >>> round(utility(0.078, 0.004), 3)
    0.08
    """
    return delta_cf + weight * delta_cs


def as_answers(table: ScoreTable, answers: ArrayLike | Decisions) -> IntArray:
    """Candidate positions, one per row of a table, from decisions, labels or positions; -1 for no answer.

    The answer to an open question may be any text: one that is a form of a candidate has its position, another one is
    -2, or -3 if it is right, or -4 if it is the commonsense answer of the pair; see
    :func:`unprior.evaluation.free_texts.text_positions`.

    >>> from unprior import synthesize
    >>> table = synthesize(seed=0)
    >>> bool((as_answers(table, table.answer) == table.answer_positions).all())
    True
    """
    require_table(table)
    if isinstance(answers, Decisions):
        _refuse_other_rows(table, answers.table)
        return answers.final_positions
    try:
        given = np.asarray(answers)
    except ValueError:
        raise UnpriorError("answers are no list of one answer per row; give labels or positions") from None
    if given.ndim == 0:
        raise wrong_type("answers", answers, "decisions, or a list of labels or positions")
    if given.shape != (len(table),):
        raise UnpriorError(f"{given.size} answers for {len(table)} rows; there must be one per row")
    if given.dtype.kind in "OU":
        given = _positions(table, given.tolist())
    lowest = np.where(table.is_open, OTHER_ORDINARY_ANSWER, NO_ANSWER)
    if not np.issubdtype(given.dtype, np.integer) or (given < lowest).any() or (given >= table.candidate_counts).any():
        raise UnpriorError(
            "answers are labels (a candidate of their row, or None for no answer) or candidate positions (whole "
            "numbers from 0 to K - 1, or -1 for no answer)"
        )
    return given.astype(np.int64)


def _refuse_other_rows(table: ScoreTable, decided: ScoreTable) -> None:
    """Decisions belong to the rows they were made for; about other rows they say nothing."""
    if decided is table or decided.arrow is table.arrow:
        return
    columns = ["pair_id", "side", "task", "candidates", "original"]
    same = len(decided) == len(table) and decided.arrow.select(columns).equals(table.arrow.select(columns))
    if not same:
        raise UnpriorError(
            f"these decisions were made for other rows ({len(decided):,}) than those of the table ({len(table):,}); "
            f"decide about the rows that are evaluated: calibrator.predict(table)"
        )


def _positions(table: ScoreTable, labels: list[Any]) -> IntArray:
    try:
        column = pa.array(labels, pa.string(), from_pandas=True)
    except (pa.ArrowException, UnicodeError):
        raise UnpriorError("answers are of several types; give labels (text, or None for no answer)") from None
    found = text_positions(table, column.to_pylist())
    unknown = np.flatnonzero((found == OTHER_ANSWER) & ~table.is_open)
    if len(unknown):
        row = int(unknown[0])
        raise UnpriorError(
            f"answer {labels[row]!r} of row {row} is not one of its candidates "
            f"({', '.join(table.candidate_lists[row].as_py())})"
        )
    return found


def correct(table: ScoreTable, answers: IntArray) -> BoolArray:
    """Which answers (candidate positions, -1 for none) are right; no answer is wrong."""
    if not table.is_labelled.all():
        raise UnpriorError("some rows have no correct answer; evaluation needs one in every row")
    return table.is_right(answers)


def measure(table: ScoreTable, answers: ArrayLike | Decisions) -> Metrics:
    """Metrics of decisions, or of any answers (candidate positions, -1 for none), to the questions of a table.

    >>> from unprior import synthesize
    >>> table = synthesize(seed=0).where(split="test", task="mc")
    >>> metrics = measure(table, table.original)
    >>> metrics.cf.total, metrics.cs.total, metrics.cs.value > metrics.cf.value
    (230, 230, True)
    """
    answers = as_answers(table, answers)
    right = correct(table, answers)
    wrong_cf = table.is_cf & ~right
    matched, same_as_cs = compare_with_partner(table, answers)
    attracted = wrong_cf & (answers == prior_winners(table))
    return Metrics(
        cf=Share(int((right & table.is_cf).sum()), int(table.is_cf.sum())),
        cs=Share(int((right & ~table.is_cf).sum()), int((~table.is_cf).sum())),
        ccr=Share(int((wrong_cf & same_as_cs).sum()), int((wrong_cf & matched).sum())),
        attraction=Share(int(attracted.sum()), int(wrong_cf.sum())),
    )


def compare(
    table: ScoreTable,
    answers: ArrayLike | Decisions,
    *,
    side: str | None,
    reference: ArrayLike | Decisions | None = None,
) -> Change:
    """Count repairs, harms and changes of ``answers`` on one side, against the original answers or another reference.

    Without a side (None) all rows count, as where images are not paired.

    >>> from unprior import synthesize
    >>> table = synthesize(seed=0)
    >>> compare(table, table.answer, side="cf").harms
    0
    """
    answers = as_answers(table, answers)
    given = table.original_positions if reference is None else as_answers(table, reference)
    rows = np.ones(len(table), dtype=np.bool_) if side is None else table.is_cf == (side == "cf")
    before, after = correct(table, given)[rows], correct(table, answers)[rows]
    return Change(
        repairs=int((~before & after).sum()),
        harms=int((before & ~after).sum()),
        changed=int((answers != given)[rows].sum()),
        total=int(rows.sum()),
    )


def prior_winners(table: ScoreTable) -> IntArray:
    """Candidate that the prior scores put first, for every row; ties go to the first candidate."""
    winner = np.empty(len(table), dtype=np.int64)
    for block in table.blocks():
        winner[block.rows] = block.prior.argmax(axis=0)
    return winner


def compare_with_partner(table: ScoreTable, answers: IntArray) -> tuple[BoolArray, BoolArray]:
    """For every row: is the pair's commonsense example here, and does the answer equal its right answer?"""
    if table.is_open.any():
        return _compare_open_with_partner(table, answers)
    pair, labels = table.codes("model", "benchmark", "task", "pair_id")
    names = table.candidate_lists.flatten().dictionary_encode().indices.to_numpy(zero_copy_only=False)
    cells = table.offsets[:-1] + np.maximum(answers, 0)
    given = np.where(answers < 0, -2, names[cells])
    right = names[table.offsets[:-1] + table.answer_positions]
    expected = np.full(len(labels), -1, dtype=np.int64)
    partner = ~table.is_cf & table.is_matched
    expected[pair[partner]] = right[partner]
    clash = partner & (expected[pair] != right)
    if clash.any():
        _refuse_clash(labels[pair[np.flatnonzero(clash)[0]]])
    return expected[pair] >= 0, expected[pair] == given


def _refuse_clash(label: tuple[Any, ...]) -> None:
    model, benchmark, task, pair_id = label
    raise UnpriorError(
        f"pair {pair_id} ({task}, benchmark {benchmark}, model {model}) has two commonsense examples with "
        f"different answers; evaluate variants of a question in separate tables"
    )


def _compare_open_with_partner(table: ScoreTable, answers: IntArray) -> tuple[BoolArray, BoolArray]:
    """The same with open questions among the rows, whose answers are compared in any written form.

    Of an answer that is no candidate, its position says whether it is the commonsense one.
    """
    matched, same = np.zeros(len(table), dtype=np.bool_), np.zeros(len(table), dtype=np.bool_)
    closed, opened = np.flatnonzero(~table.is_open), np.flatnonzero(table.is_open)
    if len(closed):
        matched[closed], same[closed] = compare_with_partner(table.take(closed), answers[closed])
    part = table.take(opened)
    pair, labels = part.codes("model", "benchmark", "task", "pair_id")
    expected: dict[int, frozenset[str]] = {}
    for row in np.flatnonzero(~part.is_cf & part.is_matched).tolist():
        accepted = accepted_forms(part.answer[row], part.arrow.column("aliases")[row].as_py())
        if expected.setdefault(int(pair[row]), accepted) != accepted:
            _refuse_clash(labels[pair[row]])
    matched[opened] = [code in expected for code in pair.tolist()]
    same[opened] = [
        name is not None and normalize_answer(name) in expected.get(code, ())
        for name, code in zip(part.candidate_names(answers[opened]), pair.tolist(), strict=True)
    ]
    return matched, same | (matched & (answers == OTHER_ORDINARY_ANSWER))


def coverage(table: ScoreTable) -> dict[tuple[str, str | None], Share]:
    """Share of the rows whose candidates hold a right answer, by task and side; only open questions may lack it.

    >>> from unprior import synthesize
    >>> coverage(synthesize(seed=0))["mc", "cf"]
    Share(count=300, total=300)
    """
    code, labels = table.codes("task", "side")
    known = table.is_labelled
    return {
        (str(task), side): Share(int((mine & table.is_covered).sum()), int((mine & known).sum()))
        for number, (task, side) in enumerate(labels)
        for mine in (code == number,)
    }


def open_coverage(table: ScoreTable) -> dict[str, Share]:
    """Share of the open questions whose candidates hold a right answer, by side; empty where there are none.

    What the candidates miss, no calibration can repair.

    >>> from unprior import synthesize
    >>> open_coverage(synthesize(seed=0)), open_coverage(synthesize(seed=0, open_questions=True))["cf"]
    ({}, Share(count=287, total=300))
    """
    return {side: share for (task, side), share in coverage(table).items() if task == OPEN and side is not None}
