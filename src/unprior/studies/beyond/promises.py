"""Beyond the paper: what each rule of retention promises about new pairs, and what happened on the test pairs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from unprior.calibration import Decisions
from unprior.evaluation.promise import PromiseCheck, check_promise, exact_interval, harmed_pairs
from unprior.plots.display import task_name
from unprior.plots.panels import Panels
from unprior.plots.style import FigureStyle
from unprior.studies.common.trade_off import TradeOff, trade_offs
from unprior.studies.inputs import StudyInputs
from unprior.studies.result import StudyResult
from unprior.studies.study import Study
from unprior.tables.format import format_changes, format_limit, format_list
from unprior.tables.model import Row, Section, Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True, slots=True)
class HarmOfTask:
    """Harm and repair on one task of the test pairs."""

    change: TradeOff
    harms: int
    pairs: int
    low: float
    high: float
    """Exact 95 % interval of the rate of harm."""

    @property
    def rate(self) -> float:
        """Share of harmed pairs."""
        return self.harms / self.pairs


@dataclass(frozen=True, slots=True)
class RuleOutcome:
    """One rule of retention, its promise and what happened."""

    method: str
    """SPC with its version and ε."""
    rule: str
    promise: str
    """In one sentence."""
    abstains: bool
    check: PromiseCheck | None
    """None for the paper's rule, which promises nothing about new pairs."""
    tasks: tuple[HarmOfTask, ...]

    def verdict(self, task: int) -> str:
        """What happened on a task, by its place, in a word."""
        if self.abstains:
            return "abstains"
        return "no promise" if self.check is None else self.check.tasks[task].verdict


@dataclass(frozen=True, slots=True)
class Promises(StudyResult):
    """Every rule beside the others.

    >>> from unprior import synthesize
    >>> result = study_promises(StudyInputs(synthesize(seed=0)))
    >>> [(rule.rule, rule.verdict(0)) for rule in result.rules]
    [('paper', 'no promise'), ('certified', 'held'), ('expected', 'within')]
    """

    epsilon: float
    delta: float
    rules: tuple[RuleOutcome, ...]

    @property
    def table(self) -> Table:
        """Promise and outcome of every rule by task."""
        sections = []
        for index, first in enumerate(self.rules[0].tasks):
            rows = []
            for rule in self.rules:
                harm = rule.tasks[index]
                rows.append(
                    Row(
                        (
                            rule.method,
                            _PROMISED[rule.rule].format(epsilon=format_limit(self.epsilon)),
                            format_changes(harm.change.cf.delta, harm.change.cs.delta),
                            f"{harm.harms}/{harm.pairs}",
                            f"{harm.rate:.3f} [{harm.low:.3f}, {harm.high:.3f}]",
                            rule.verdict(index),
                        )
                    )
                )
            sections.append(Section(task_name(first.change.task), tuple(rows)))
        return Table(
            "What is promised about new pairs, and what happened",
            ("Method", "Promise", "ΔCF/ΔCS", "Harms", "Rate of harm", "Outcome"),
            tuple(sections),
            f"Harms: commonsense answers of the test pairs that turned from right to wrong; rates with exact 95 % "
            f"intervals. δ = {self.delta:g}. Δ in points.",
            text_columns=2,
        )

    @property
    def sentences(self) -> tuple[str, ...]:
        """The promise of every rule, and whether it held."""
        mixed = [rule.check.mixture_words for rule in self.rules if rule.check is not None]
        return (*map(_words, self.rules), *filter(None, mixed[:1]))

    def records(self) -> list[dict[str, Any]]:
        """One record per rule and task."""
        return [
            {
                "method": rule.method,
                "retention": rule.rule,
                "epsilon": self.epsilon,
                "delta": self.delta,
                "promise": rule.promise,
                "outcome": rule.verdict(place),
                "harms": harm.harms,
                "pairs": harm.pairs,
                "rate": harm.rate,
                "low": harm.low,
                "high": harm.high,
            }
            | harm.change.record()
            for rule in self.rules
            for place, harm in enumerate(rule.tasks)
        ]

    def panels(self) -> Panels | None:
        """The rate of harm of every rule with its interval, beside ε."""
        tasks = [harm.change.task for harm in self.rules[0].tasks]
        return Panels.per_task(Promises._draw, self, tasks, 4.2, 1.5 + 0.32 * len(self.rules))

    def _draw(self, *, task: str, ax: Axes, style: FigureStyle) -> None:
        for place, rule in enumerate(self.rules):
            harm = next(each for each in rule.tasks if each.change.task == task)
            low, high = 100 * (harm.rate - harm.low), 100 * (harm.high - harm.rate)
            colour = style.control if rule.rule == "paper" else style.method
            ax.errorbar(100 * harm.rate, place, xerr=[[low], [high]], fmt="o", color=colour, capsize=3)
        ax.axvline(100 * self.epsilon, color=style.ink, linewidth=1.0, linestyle="--")
        ax.annotate("ε", (100 * self.epsilon, 1.0), xycoords=("data", "axes fraction"), xytext=(0, 2),
                    textcoords="offset points", ha="center")  # fmt: skip
        ax.set_yticks(range(len(self.rules)), [rule.rule for rule in self.rules])
        ax.invert_yaxis()
        ax.margins(y=0.25)
        ax.set_xlim(left=0)
        ax.grid(visible=False, axis="y")
        ax.set(xlabel="harmed commonsense answers (%)", title=task_name(task))


_PROMISED = {
    "paper": "dev. ΔCS ≥ −{epsilon}",
    "certified": "new harm ≤ {epsilon}",
    "expected": "mean harm ≤ {epsilon}",
}


def _words(rule: RuleOutcome) -> str:
    seen = format_list([f"{each.harms} of {each.pairs} on {each.change.task.upper()}" for each in rule.tasks])
    if rule.check is not None:
        happened = rule.check.outcome_words
    else:
        happened = "It changes nothing." if rule.abstains else f"On the test pairs harmed were {seen}."
    return f"{rule.method}: {rule.promise} {happened}"


def study_promises(inputs: StudyInputs) -> Promises:
    """Fit every rule on the development pairs and judge it on the test pairs."""
    paper = inputs.fitted()
    nothing = (
        f"The paper's rule loses at most {100 * inputs.epsilon:.4g} points on the development pairs and promises "
        f"nothing about new ones."
    )
    test, rules = inputs.test, []
    stable = {name: value for name, value in inputs.promise.items() if name in ("prior", "strict")}
    fitted = [("paper", paper)]
    if stable.get("prior", "plain") != "plain":
        own = paper.clone(**stable).fit(inputs.development, split=None)
        fitted.append(("paper", own))
    fitted += [("certified", inputs.certified("certified")), ("expected", inputs.certified("expected"))]
    for rule, calibrator in fitted:
        decisions = calibrator.predict(test)
        certificate = calibrator.certificate_
        check = None if certificate is None else check_promise(certificate, test, decisions.final_positions)
        rules.append(
            RuleOutcome(
                decisions.method, rule, nothing if certificate is None else certificate.sentence,
                calibrator.settings_ is None, check, _harms(decisions),
            )
        )  # fmt: skip
    return Promises(inputs.epsilon, inputs.certified().delta, tuple(rules))


def _harms(decisions: Decisions) -> tuple[HarmOfTask, ...]:
    found = []
    for change in trade_offs(decisions.table, decisions):
        pairs, harms = harmed_pairs(decisions.table, decisions.final_positions, change.task)
        found.append(HarmOfTask(change, harms, pairs, *exact_interval(harms, pairs)))
    return tuple(found)


STUDY = Study(
    name="promises",
    title="Promises about new pairs",
    asks="What does each rule of retention promise about new pairs, and did it hold on the test pairs?",
    how="{method}, and SPC with the same ε as a promise about new pairs: certified (with confidence 1 − δ over the "
    "draw of the development pairs) and expected (on average over draws); each fitted on the development pairs and "
    "judged on the test pairs.",
    run=study_promises,
    takes_open=True,
)
