"""Did a promise hold on labelled rows? Harms by task, exact intervals, and what a finite test may show."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np

from unprior.calibration.certificate import Certificate, mixture_weight
from unprior.calibration.ladder import DELTA
from unprior.scores import ScoreTable
from unprior.scores.schema import BoolArray, IntArray
from unprior.scores.table import FloatArray
from unprior.tables.format import format_limit, format_list
from unprior.tables.model import Table

Verdict = Literal["held", "chance", "broken", "within", "above", "untested", "not covered"]
_LEVEL = 0.95
_SAME_MIXTURE = 1.001
_MANY_HARMS = 400  # so many are split between calibration and test with little chance in it


@dataclass(frozen=True, slots=True)
class TaskPromise:
    """What became of the promise on one task."""

    task: str
    pairs: int
    """Tested pairs with a commonsense question."""
    harms: int
    """Of these, pairs whose right commonsense answer was changed."""
    low: float
    high: float
    """Exact 95 % interval of the rate of harm (Clopper and Pearson)."""
    limit: float
    """The promised rate ε."""
    most: int
    """The most harms that so few tested pairs, mixed as they are, may show while the promise holds."""
    verdict: Verdict
    """``held``: the tested rate is at most ε; ``chance``: it is above, as it may be on so few pairs, or on pairs mixed
    otherwise; ``broken``: more harms than the promise allows; ``within`` and ``above``: a promise about a mean, which
    one calibration cannot test; ``untested``: no original answer was right, so none could be harmed; ``not covered``: a
    task, or subcategories, that it says nothing about."""

    @property
    def rate(self) -> float:
        """Share of harmed pairs."""
        return self.harms / self.pairs if self.pairs else 0.0


@dataclass(frozen=True, slots=True)
class PromiseCheck:
    """A certificate against labelled rows.

    >>> from unprior import SelectivePriorCalibrator, synthesize
    >>> table = synthesize(seed=0)
    >>> fitted = SelectivePriorCalibrator(retention="certified", epsilon_cs=0.06).fit(table)
    >>> test = table.where(split="test")
    >>> check = check_promise(fitted.certificate_, test, fitted.predict(test).final_positions)
    >>> check.held, [each.harms for each in check.tasks]
    (True, [4, 3])
    """

    certificate: Certificate
    """The promise."""
    weight: float
    """How much more frequent a subcategory is among the tested pairs than among those that the promise covers."""
    tasks: tuple[TaskPromise, ...]
    uncovered: int = 0
    """Tested pairs of subcategories that the promise says nothing about; they are not counted."""

    @property
    def held(self) -> bool:
        """Whether nothing contradicts the promise."""
        return all(each.verdict != "broken" for each in self.tasks)

    @property
    def words(self) -> tuple[str, ...]:
        """The promise, and what happened, in sentences."""
        return (self.certificate.sentence, *filter(None, (self.mixture_words, self.outcome_words)))

    @property
    def mixture_words(self) -> str:
        """What it means that the tested pairs are mixed otherwise than those it covers; empty if they are not."""
        told = []
        if self.uncovered:
            told.append(
                f"{self.uncovered:,} tested pairs have subcategories that the promise does not cover and do not count."
            )
        if self.weight > _SAME_MIXTURE:
            told.append(
                f"The tested pairs are mixed otherwise than those that the promise covers: a subcategory is "
                f"{self.weight:.2f} times as frequent, so they may show that much more harm while it holds. A target "
                f"mixture would cover them."
            )
        return " ".join(told)

    @property
    def outcome_words(self) -> str:
        """What the tested pairs show."""
        told = []
        by_verdict: dict[str, list[TaskPromise]] = {}
        for each in self.tasks:
            by_verdict.setdefault(each.verdict, []).append(each)
        for verdict, tasks in by_verdict.items():
            named = format_list([each.task.upper() for each in tasks])
            shown = format_list([f"{each.harms} of {each.pairs} on {each.task.upper()}" for each in tasks])
            rates = format_list([f"{100 * each.rate:.1f} %" for each in tasks])
            limit, most = f"{100 * tasks[0].limit:.3g} %", format_list([str(each.most) for each in tasks])
            told.append(
                {
                    "held": f"It held on the tested pairs: harmed were {shown} ({rates}), at most {limit} promised.",
                    "chance": f"Harmed were {shown} ({rates}), more than {limit}; so few tested pairs may show up to "
                    f"{most} harms while it holds.",
                    "broken": f"It did not hold: harmed were {shown} ({rates}), at most {limit} promised, and {most} "
                    f"harms are the most that so few tested pairs may show while it holds. Are these pairs drawn like "
                    f"the development pairs?",
                    "within": f"Harmed were {shown} ({rates}); one calibration cannot test a promise about the mean.",
                    "above": f"Harmed were {shown} ({rates}), more than {limit}; one calibration cannot test a promise "
                    f"about the mean.",
                    "untested": f"Nothing was tested on {named}: no original answer to a commonsense image is right, "
                    f"so none could be harmed. Are the answers right?",
                    "not covered": f"It does not cover {named}.",
                }[verdict]
            )
        return " ".join(told)

    @property
    def table(self) -> Table:
        """Promise and outcome by task."""
        rows = [
            (
                each.task.upper(),
                f"≤ {format_limit(round(each.limit, 4))}",
                f"{each.harms}/{each.pairs}",
                f"{each.rate:.3f}",
                f"[{each.low:.3f}, {each.high:.3f}]",
                str(each.most),
                each.verdict,
            )
            for each in self.tasks
        ]
        columns = ("Task", "Promised", "Harms", "Rate", "95 % interval", "Most harms", "Verdict")
        return Table.plain("Promise and outcome", columns, rows, " ".join(self.words))

    def record(self) -> dict[str, Any]:
        """Plain values."""
        tasks = [asdict(each) | {"rate": each.rate} for each in self.tasks]
        promised = self.certificate.record(pair_lists=False)
        return {
            "certificate": promised,
            "held": self.held,
            "weight": self.weight,
            "uncovered": self.uncovered,
            "tasks": tasks,
        }


def check_promise(certificate: Certificate, table: ScoreTable, final: IntArray) -> PromiseCheck | None:
    """Compare what a certificate promises with what was decided about labelled rows; None where nothing is promised.

    Parameters
    ----------
    certificate
        The promise.
    table, final
        Rows with answers and sides, and the positions of the final answers to them.
    """
    if certificate.abstains:
        return None
    covered, mixture = {each.task for each in certificate.tasks}, dict(certificate.mixture)
    names = table.column("subcategory")
    known = np.ones(len(table), dtype=np.bool_)
    if mixture and None not in names:
        known = np.array([mixture.get(name, 0.0) > 0 for name in names])
    code, _ = table.codes("pair_id")
    uncovered = len(set(code[~known].tolist()))
    tasks, weight = [], 1.0
    for task in sorted(table.values_of("task")):
        rows = known & table.mask(task=task) & ~table.is_cf
        pairs, harms = harmed_pairs(table, final, task, known)
        low, high = exact_interval(harms, pairs)
        own = 1.0
        if mixture and None not in names and pairs:
            own = mixture_weight(
                _mixture(code[rows], [name for name, row in zip(names, rows, strict=True) if row]), mixture
            )
        most = _most_harms(certificate, pairs, own)
        weight = max(weight, own)
        verdict = _verdict(certificate, harms, pairs, most) if task in covered and pairs else "not covered"
        if verdict != "not covered" and not table.is_right(table.original_positions)[rows].any():
            verdict = "untested"
        tasks.append(TaskPromise(task, pairs, harms, low, high, certificate.epsilon, most, verdict))
    return PromiseCheck(certificate, weight, tuple(tasks), uncovered)


def _verdict(certificate: Certificate, harms: int, pairs: int, most: int) -> Verdict:
    within = harms <= certificate.epsilon * pairs + 1e-9
    if certificate.retention == "expected":
        return "within" if within else "above"
    return "held" if within else "chance" if harms <= most else "broken"


def harmed_pairs(table: ScoreTable, final: IntArray, task: str, known: BoolArray | None = None) -> tuple[int, int]:
    """Pairs with a commonsense question of a task, and those of them with a right answer that was changed."""
    rows = table.mask(task=task) & ~table.is_cf & (True if known is None else known)
    harmed = rows & table.is_right(table.original_positions) & ~table.is_right(final)
    code, _ = table.codes("pair_id")
    return len(np.unique(code[rows])), len(np.unique(code[harmed]))


def exact_interval(count: int, total: int, level: float = _LEVEL) -> tuple[float, float]:
    """Clopper and Pearson's interval of a share.

    >>> [round(end, 4) for end in exact_interval(0, 70)]
    [0.0, 0.0513]
    """
    from scipy.special import betaincinv

    tail = (1.0 - level) / 2
    low = float(betaincinv(count, total - count + 1, tail)) if count else 0.0
    high = float(betaincinv(count + 1, total - count, 1.0 - tail)) if count < total else 1.0
    return low, high


def _mixture(pairs: IntArray, names: Sequence[str]) -> dict[str, float]:
    return dict(Counter(dict(zip(pairs.tolist(), names, strict=True)).values()))


def _most_harms(certificate: Certificate, tested: int, weight: float) -> int:
    """The most harms that a finite number of tested pairs may show while the promise holds for new pairs.

    Calibration and tested pairs are draws alike, so the harmed ones among them are split by chance: more harms than
    these among the tested pairs, while the calibration pairs showed no more than allowed, have a chance of at most δ.
    Pairs that are mixed otherwise may show more, up to the quantile at their own limit.
    """
    from scipy.special import bdtr

    if tested == 0:
        return 0
    most = 0
    if certificate.retention == "certified" and certificate.steps[0] <= _MANY_HARMS:
        most = most_tested_harms(certificate.steps, certificate.calibration, tested, certificate.delta)
        if weight <= _SAME_MIXTURE:
            return most
    limit = min(1.0, certificate.epsilon * weight)
    harms = np.arange(tested + 1)
    quantile = int(harms[bdtr(harms, tested, limit) >= 1.0 - certificate.delta][0]) if limit < 1.0 else tested
    return max(most, quantile)


def most_tested_harms(steps: tuple[int, ...], calibration: int, tested: int, delta: float = DELTA) -> int:
    """The most harms among so many tested pairs, with probability 1 − δ, under steps that so many pairs have passed.

    >>> most_tested_harms((0,), 70, 230)
    8
    """
    from scipy.special import gammaln

    def log_choose(n: FloatArray, k: FloatArray) -> FloatArray:
        return np.asarray(gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1))

    def chance(most: int, allowed: int) -> float:
        """That more than this many are harmed in the test although calibration shows no more than allowed."""
        allowed = min(allowed, calibration)
        if allowed < 0 or most >= tested:
            return 0.0
        # With more harms in total than these, calibration shows more of them.
        totals = np.arange(most + 1.0, min(most + 1 + allowed, tested + calibration) + 1)[:, None]
        seen = np.arange(allowed + 1.0)[None, :]
        in_test = totals - seen
        possible = (in_test > most) & (in_test <= tested)
        logs = (
            log_choose(np.array(float(calibration)), seen)
            + log_choose(np.array(float(tested)), np.clip(in_test, 0, tested))
            - log_choose(np.array(float(calibration + tested)), totals)
        )
        return float(np.exp(np.where(possible, logs, -np.inf)).sum(axis=1).max())

    low, high = -1, tested
    while high - low > 1:
        middle = (low + high) // 2
        enough = sum(chance(middle, step) for step in steps) <= delta
        low, high = (low, middle) if enough else (middle, high)
    return high
