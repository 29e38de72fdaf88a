"""Does a promise still hold? A test of labelled decisions that may be looked at after every single one.

For every task, the harms so far are weighed by a mixture of likelihood ratios against the promised rate ε. While the
rate of this calibrator is at most ε, the chance that this weight ever exceeds 1/α is at most α, however often one looks
(Ville's inequality). The tasks that the promise covers get equal shares of α.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from unprior._files import as_path, is_parquet, open_to_read, parse_json, read_lines
from unprior.answer_forms import is_accepted
from unprior.calibration import Certificate, SelectivePriorCalibrator
from unprior.errors import UnpriorError, format_names, warn
from unprior.evaluation.answers import read_origin
from unprior.plots.style import LIGHT, FigureStyle
from unprior.scores.files import read_parquet
from unprior.scores.schema import OPEN
from unprior.scores.table import FloatArray
from unprior.tables.model import Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ALPHA = 0.05
"""How often the monitor may call for a new calibration although the promise holds, over all time and tasks."""
_LEAST_RATE = 1e-6
_SHOWN_POINTS = 400
_FORMATS = (".svg", ".png", ".pdf")
_REMEDY = 'add the right answer to every decision that you checked, as "answer"'
_MANY = 0.5
"""Share of labels of open questions that may match nothing in their decisions before one should look at the labels."""


@dataclass(frozen=True, slots=True, eq=False)
class TaskMonitor:
    """The labelled decisions about one task, in their order."""

    task: str
    harms: FloatArray
    """Harms so far, after every decision."""
    evidence: FloatArray
    """Natural logarithm of the weight against the promise, after every decision."""
    alarm: int | None
    """The decision, counted from 1 within the task, at which the promise was given up; None while it stands."""
    line: int | None
    """Its line in the file."""
    lower: float
    """Lower end of the confidence sequence of the rate of harm, where the promise was given up, or at the end."""

    @property
    def count(self) -> int:
        """Labelled decisions."""
        return len(self.harms)

    @property
    def rate(self) -> float:
        """Share of harmed answers."""
        return float(self.harms[-1]) / self.count if self.count else 0.0


@dataclass(frozen=True, slots=True)
class Monitor:
    """What labelled decisions say about the promise of a calibrator, over time."""

    sentence: str
    """The promise."""
    epsilon: float
    alpha: float
    tasks: tuple[TaskMonitor, ...]
    unlabelled: int
    """Decisions without an answer, which say nothing."""
    counterfactual: int
    """Labelled decisions about counterfactual images, which the promise is not about."""
    repeated: int = 0
    """Further labelled decisions about a pair, which counts once."""
    uncovered: int = 0
    """Labelled decisions of tasks that the promise does not cover."""
    unmatched: int = 0
    """Open questions among the tested decisions whose answer is no form of what was given or proposed there."""

    shares: int = 1
    """Tasks that share α: all that the promise covers, whether they were seen or not."""

    @property
    def threshold(self) -> float:
        """The evidence that gives the promise of a task up."""
        return self.shares / self.alpha

    @property
    def stands(self) -> bool:
        """Whether the promise was not given up for any task."""
        return all(each.alarm is None for each in self.tasks)

    @property
    def words(self) -> tuple[str, ...]:
        """The promise, and what to do, in sentences."""
        sentences = [self.sentence]
        for each in self.tasks:
            seen = f"{int(each.harms[-1])} of {each.count:,} answers to {each.task.upper()} were harmed"
            if each.task == OPEN and self.unmatched >= each.count:
                sentences.append(f"{seen}, but all {each.count:,} labels match nothing that was given or proposed: "
                                 f"nothing can be told.")  # fmt: skip
            elif each.alarm is None:
                sentences.append(f"{seen} ({100 * each.rate:.1f} %): nothing contradicts it.")
            else:
                then = int(each.harms[each.alarm - 1])
                sentences.append(
                    f"Recalibrate: {seen} ({100 * each.rate:.1f} %). The promise was given up at decision "
                    f"{each.alarm:,}, line {each.line:,}: with {then:,} harms by then, the rate is at least "
                    f"{100 * each.lower:.1f} % with {100 * (1 - self.alpha):g} % confidence."
                )
        return tuple(sentences)

    @property
    def table(self) -> Table:
        """Harms and evidence by task."""
        threshold = self.threshold
        rows = [
            (
                each.task.upper(),
                f"{each.count:,}",
                f"{int(each.harms[-1]):,}",
                f"{each.rate:.3f}",
                f"{each.lower:.3f}",
                f"{np.exp(min(float(each.evidence.max()), 40.0)):.3g}",
                "stands" if each.alarm is None else f"given up at {each.alarm:,}",
            )
            for each in self.tasks
        ]
        columns = ("Task", "Labelled", "Harms", "Rate", "At least", "Evidence", "Promise")
        left = f" Decisions without an answer: {self.unlabelled:,}." if self.unlabelled else ""
        left += f" About counterfactual images: {self.counterfactual:,}." if self.counterfactual else ""
        left += f" Further decisions about a pair that was counted: {self.repeated:,}." if self.repeated else ""
        left += f" Of tasks without a promise: {self.uncovered:,}." if self.uncovered else ""
        left += f" Open answers that nobody gave or proposed: {self.unmatched:,}." if self.unmatched else ""
        return Table.plain(
            f"The promise over time (ε = {self.epsilon:g})",
            columns,
            rows,
            f"Evidence against the promise: its largest value; {threshold:g} gives the promise up. It may be looked at "
            f"after every decision.{left}",
        )

    def record(self) -> dict[str, Any]:
        """Plain values."""
        tasks = [
            {"task": each.task, "labelled": each.count, "harms": int(each.harms[-1]), "rate": each.rate,
             "lower": each.lower, "log_evidence": float(each.evidence.max()), "alarm": each.alarm, "line": each.line}
            for each in self.tasks
        ]  # fmt: skip
        own = {"sentence": self.sentence, "epsilon": self.epsilon, "alpha": self.alpha, "stands": self.stands}
        names = ("unlabelled", "counterfactual", "repeated", "uncovered", "unmatched")
        aside = {name: getattr(self, name) for name in names}
        return own | aside | {"tasks": tasks}

    def plot(self, ax: Axes | None = None, style: FigureStyle | None = None) -> Axes:
        """Draw the rate of harm of every task over its decisions, beside the promised rate; returns the axes."""
        style = style or LIGHT
        with style.applied():
            axes = style.axes_or_new(ax, 6.0, 3.2)
            for each, colour in zip(self.tasks, (style.method, style.control, style.cf, style.cs) * 8, strict=False):
                chosen = np.unique(np.linspace(0, each.count - 1, min(_SHOWN_POINTS, each.count)).astype(int))
                axes.plot(chosen + 1, 100 * each.harms[chosen] / (chosen + 1), color=colour, label=each.task.upper())
                if each.alarm is not None:
                    height = 100 * each.harms[each.alarm - 1] / each.alarm
                    axes.plot(each.alarm, height, "X", color=style.harmed, markersize=9, zorder=4)
                    axes.annotate("given up", (each.alarm, height), xytext=(6, 6), textcoords="offset points")
            axes.axhline(100 * self.epsilon, color=style.ink, linewidth=1.0, linestyle="--", label="promised at most")
            axes.set_ylim(0, 1.45 * max(100 * self.epsilon, axes.get_ylim()[1] / 1.1))  # with room for the legend
            axes.set(xlabel="labelled decisions", ylabel="harmed answers (%)", title="The promise over time")
            axes.legend(loc="upper right", ncols=3)
        return axes

    def save_figure(self, path: Path) -> None:
        """Draw it into a file, whose ending names the format."""
        from unprior._files import replacing

        if path.suffix.lower() not in _FORMATS:
            raise UnpriorError(f"{path}: a figure is written as {', '.join(_FORMATS)}; choose one of these endings")
        with replacing(path) as temporary:
            figure = self.plot().get_figure(root=True)
            assert figure is not None
            figure.savefig(temporary, format=path.suffix[1:].lower(), bbox_inches="tight", dpi=200)


def monitor_file(calibrator: str | PathLike[str], decisions: str | PathLike[str], *, alpha: float = ALPHA) -> Monitor:
    """Test the promise of a saved calibrator on labelled decisions, in the order of their file.

    Parameters
    ----------
    calibrator
        A file of a calibrator with a certificate.
    decisions
        Decisions as `unprior apply` writes them (JSON lines or Parquet), with the right answer of those that were
        checked as ``answer``. Rows with side ``cf`` are left out: the promise is about commonsense images. The answer
        to an open question may be written in any form, and have ``aliases``: a list of other texts that are right.
    alpha
        How often it may call for a new calibration although the promise holds.

    >>> import tempfile
    >>> from unprior import synthesize
    >>> table = synthesize(seed=0)
    >>> fitted = SelectivePriorCalibrator(retention="certified", epsilon_cs=0.06).fit(table)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     fitted.save(f"{folder}/calibrator.json")
    ...     fitted.predict(table.where(split="test")).write(f"{folder}/decisions.jsonl")
    ...     monitor_file(f"{folder}/calibrator.json", f"{folder}/decisions.jsonl")
    Traceback (most recent call last):
        ...
    unprior.errors.UnpriorError: ...decisions.jsonl: no decision has an answer; add the right answer to every ...
    """
    path = as_path("decisions", decisions)
    if not isinstance(alpha, int | float) or not 0.0 < alpha < 1.0:
        raise UnpriorError(f"alpha is {alpha!r}, it is a chance between 0 and 1 (0.05)")
    certificate = SelectivePriorCalibrator.from_pretrained(as_path("calibrator", calibrator)).certificate_
    if certificate is None or certificate.abstains:
        told = "promises nothing about new pairs" if certificate is None else "abstains: it changes no answer"
        raise UnpriorError(f"{calibrator}: this calibrator {told}; fit one with `unprior fit --retention certified`")
    made_with = read_origin(path)
    own = json.loads(json.dumps(certificate.record(pair_lists=False)))
    if made_with.method is not None and made_with.certificate != own:
        raise UnpriorError(f"{path}: these decisions were made by another calibrator than {calibrator}")
    labels = _Labels(certificate)
    for line, record in _decisions(path):
        labels.add(line, record)
    if not labels.seen:
        raise UnpriorError(f"{path}: {labels.why_none}; {_REMEDY}")
    for task, answers in sorted(labels.strange().items()):
        warn(
            f"{path}: the answers {format_names(answers)} of task {task} are never given or proposed there, so they "
            f"can harm nothing; write them as they stand among the candidates"
        )
    lines, tested = labels.unmatched, len(labels.seen.get(OPEN, ()))
    if len(lines) > _MANY * tested:
        warn(
            f"{path}: the answers to {len(lines):,} of {tested:,} open questions match nothing that was given or "
            f"proposed there (lines {format_names([f'{line:,}' for line in lines])}), so they can harm nothing; write "
            f'them as the model does, or add other texts that are right as "aliases"'
        )
    share = alpha / len(certificate.tasks)
    tasks = tuple(_watch(task, labels.seen[task], certificate.epsilon, share) for task in sorted(labels.seen))
    return Monitor(
        certificate.sentence, certificate.epsilon, alpha, tasks, labels.unlabelled, labels.counterfactual,
        labels.repeated, labels.uncovered, len(labels.unmatched), len(certificate.tasks),
    )  # fmt: skip


class _Labels:
    """Labelled decisions by task; each pair counts once, with the first of its decisions that has an answer."""

    def __init__(self, certificate: Certificate) -> None:
        self.covered = {each.task for each in certificate.tasks}
        self.seen: dict[str, list[tuple[int, bool]]] = {}
        self.unlabelled = self.counterfactual = self.repeated = self.uncovered = 0
        self.unmatched: list[int] = []
        """Lines of open questions whose answer is no form of what was given or proposed there."""
        self._pairs: set[tuple[Any, ...]] = set()
        self._answers: dict[str, set[str]] = {}
        self._given: dict[str, set[str]] = {}

    def add(self, line: int, record: dict[str, Any]) -> None:
        task, answer = record["task"], record.get("answer")
        given = {record[name] for name in ("original", "final", "proposal") if record.get(name) is not None}
        self._given.setdefault(task, set()).update(given)
        pair = (record.get("model"), record.get("benchmark"), record.get("pair_id"), task)
        if answer is None:
            self.unlabelled += 1
        elif record.get("side") == "cf":
            self.counterfactual += 1
        elif task not in self.covered:
            self.uncovered += 1
        elif record.get("pair_id") is not None and pair in self._pairs:
            self.repeated += 1
        else:
            self._pairs.add(pair)
            if task == OPEN:
                aliases = record.get("aliases") or ()
                before, after = (is_accepted(record[name], answer, aliases) for name in ("original", "final"))
                if not (before or after or is_accepted(record.get("proposal"), answer, aliases)):
                    self.unmatched.append(line)
            else:
                self._answers.setdefault(task, set()).add(answer)
                before, after = (record[name] == answer for name in ("original", "final"))
            self.seen.setdefault(task, []).append((line, before and not after))

    def strange(self) -> dict[str, list[str]]:
        """Answers that no decision of the task names."""
        found = {task: sorted(answers - self._given[task]) for task, answers in self._answers.items()}
        return {task: answers for task, answers in found.items() if answers}

    @property
    def why_none(self) -> str:
        """Why nothing can be tested."""
        if self.counterfactual or self.uncovered:
            return "all decisions with an answer are about counterfactual images, or of tasks that are not covered"
        return "no decision has an answer"


def _decisions(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    with open_to_read(path) as stream:
        parquet = is_parquet(stream)
        if not parquet:
            for number, line in read_lines(stream, path):
                try:
                    record = parse_json(line)
                except ValueError:
                    record = None
                yield number, _checked(record, path, number)
    if parquet:
        for number, record in enumerate(read_parquet(path).to_pylist(), 1):
            yield number, _checked(record, path, number)


def _checked(record: Any, path: Path, number: int) -> dict[str, Any]:
    if not isinstance(record, dict):
        raise UnpriorError(f"{path}, line {number}: not a JSON object; the file may be truncated")
    for name in ("task", "original", "final"):
        if name not in record:
            raise UnpriorError(f"{path}, line {number}: no {name}; `unprior apply` writes decisions")
    for name in ("original", "final", "answer", "proposal"):
        if not isinstance(record.get(name), str | None) or record.get(name) == "":
            raise UnpriorError(f"{path}, line {number}: the {name} must be a text, as it stands among the candidates")
    aliases = record.get("aliases")
    if aliases is not None and not (isinstance(aliases, list) and all(isinstance(each, str) for each in aliases)):
        raise UnpriorError(f"{path}, line {number}: aliases must be a list of texts")
    if not isinstance(record["task"], str) or record.get("side") not in ("cf", "cs", None):
        raise UnpriorError(f"{path}, line {number}: the task must be a text, and the side cf, cs or null")
    return record


def _watch(task: str, seen: Sequence[tuple[int, bool]], epsilon: float, alpha: float) -> TaskMonitor:
    harms = np.cumsum([harmed for _, harmed in seen]).astype(np.float64)
    evidence = log_evidence(harms, np.arange(1.0, len(harms) + 1), epsilon)
    beyond = np.flatnonzero(evidence >= -np.log(alpha))
    alarm = int(beyond[0]) + 1 if len(beyond) else None
    line = None if alarm is None else seen[alarm - 1][0]
    at = alarm or len(harms)
    return TaskMonitor(task, harms, evidence, alarm, line, _lower_end(float(harms[at - 1]), at, alpha))


def log_evidence(harms: FloatArray, counts: FloatArray, rate: float) -> FloatArray:
    """Logarithm of the mixture of likelihood ratios of rates above ``rate`` against it.

    The mixture is a beta distribution whose mean is about twice the rate, cut off below it.

    >>> log_evidence(np.array([0.0, 8.0]), np.array([50.0, 50.0]), 0.04).round(2).tolist()
    [-1.1, 3.95]
    """
    from scipy.special import betaincc, betaln

    rate = max(rate, _LEAST_RATE)
    if rate >= 1.0:
        return np.zeros_like(harms)
    first, second = 1.0, 1.0 / rate
    with np.errstate(divide="ignore"):
        mixed = betaln(first + harms, second + counts - harms) + np.log(
            betaincc(first + harms, second + counts - harms, rate)
        )
        prior = betaln(first, second) + np.log(betaincc(first, second, rate))
    return np.asarray(mixed - prior - harms * np.log(rate) - (counts - harms) * np.log1p(-rate))


def _lower_end(harms: float, count: int, alpha: float) -> float:
    """The largest rate that so many harms give up; all smaller ones are given up, too."""
    low, high = 0.0, 1.0
    for _ in range(30):
        middle = (low + high) / 2
        given_up = float(log_evidence(np.array([harms]), np.array([float(count)]), middle)[0]) >= -np.log(alpha)
        low, high = (middle, high) if given_up else (low, middle)
    return low
