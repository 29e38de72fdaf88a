"""RQ3: does the way to form a proposal matter, or the way to accept it?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from unprior.baselines.answers import MethodAnswers
from unprior.baselines.controls import CONTROLS, ControlResult, run_controls
from unprior.baselines.controls.proposals import FIXED_STRENGTH
from unprior.calibration import SelectivePriorCalibrator
from unprior.evaluation import Share
from unprior.plots.panels import Panels
from unprior.scores import ScoreTable
from unprior.scores.files import finite_or_none
from unprior.studies.common.trade_off import changes_by_task, mean_utility, trade_off_panels, trade_offs
from unprior.studies.common.variants import ComparedRows, SpcVariant
from unprior.studies.study import Study
from unprior.tables.format import format_limit, format_list, format_name, format_points, format_settings, highest
from unprior.tables.model import Row, Section, Table

PAPER = {
    "nolan": "NoLan",
    "ungated-adaptive": "Adaptive strength; always adopt proposal",
    "spc": "SPC",
    "fixed-strength": f"Fixed λ = {FIXED_STRENGTH:g}; always adopt proposal",
    "selected-strength-gated": "Selected fixed strength; SPC revision rule",
    "learned-rule-fixed": "Fixed strength; learned revision rule",
    "learned-rule-direct": "Direct subtraction; learned revision rule",
}
"""The rows of the paper's table in its order, by name of the control."""
_LEARNED = ("learned-rule-fixed", "learned-rule-direct")
_NAMED = 3  # more rows than this that are equally good are counted, not named


@dataclass(frozen=True, slots=True)
class RuleRow(SpcVariant):
    """One way to form and to accept proposals."""

    settings: dict[str, Any] = field(default_factory=dict)
    """What was chosen on the development rows."""
    feasible: bool | None = None
    """Whether the choice keeps ΔCF ≥ 0 and ΔCS ≥ −ε on every development task; None where nothing is chosen."""


@dataclass(frozen=True, slots=True)
class ProposalAgreement:
    """Proposals of a fixed strength and of direct subtraction, with the scales that the learned rules chose."""

    split: str
    """``development`` or ``test``."""
    same: Share
    """Examples with the same proposal."""
    same_answer: Share | None
    """Among the others, those that both rules answer alike; None on development rows, which they do not answer."""


@dataclass(frozen=True, slots=True)
class RevisionRules(ComparedRows):
    """The correction × revision-rule matrix; rows of the paper first, then all other controls.

    >>> from unprior import SelectivePriorCalibrator, synthesize
    >>> table = synthesize(seed=0)
    >>> calibrator = SelectivePriorCalibrator().fit(table)
    >>> result = study_revision_rules(calibrator, table.where(split="dev"), table.where(split="test"))
    >>> [row.name for row in result.rows][:3], len(result.rows)
    (['ungated-adaptive', 'spc', 'fixed-strength'], 11)
    """

    rows: tuple[RuleRow, ...]
    epsilon: float
    agreement: tuple[ProposalAgreement, ...] = ()
    """Of the proposals that the two learned rules judge: on development rows and on test rows."""

    def records(self) -> list[dict[str, Any]]:
        """One record per row and task; agreement of proposals, over all tasks, with the rows of the learned rules."""
        shares: dict[str, float | None] = {f"proposal_agreement_{name}": None for name in ("development", "test")}
        shares |= {f"proposal_agreement_{each.split}": finite_or_none(each.same.value) for each in self.agreement}
        return [
            {
                "method": row.name,
                "label": row.label,
                "epsilon": self.epsilon,
                "settings": format_settings(row.settings),
                "feasible": row.feasible,
                "abstains": row.abstains,
            }
            | (shares if row.name in _LEARNED else dict.fromkeys(shares))
            | result.record()
            for row in self.rows
            for result in row.tasks
        ]

    @property
    def table(self) -> Table:
        """ΔCF/ΔCS by task."""
        sections = []
        for heading, wanted in ((None, True), ("Other controls", False)):
            rows = tuple(
                Row((row.label, *(result.changes for result in row.tasks)), row.name == "spc")
                for row in self.rows
                if (row.name in PAPER) == wanted
            )
            sections += [Section(heading, rows)] if rows else []
        return Table(
            "Correction strength and revision rule",
            ("Method", *(f"{task.upper()} ΔCF/ΔCS" for task in self.tasks)),
            tuple(sections),
            f"Points of accuracy against the common original answers; ε = {format_limit(self.epsilon)}. Rows differ "
            f"in how they form a proposal and in whether they always adopt it, or use the rule of "
            f"{self.of('spc').label} or a learned rule.",
        )

    @property
    def sentences(self) -> tuple[str, ...]:
        """What the gate and the adaptive strength add, and which row is best."""
        spc = self.of("spc")
        sentences = [
            f"No setting of {spc.label} is feasible on the development rows, so that it changes nothing."
            if spc.abstains
            else f"Adopting every adaptive proposal instead of using the rule of {spc.label} changes ΔCF/ΔCS by "
            f"{self._moved('ungated-adaptive')}.",
            f"One selected strength in place of an adaptive one, under the rule of {spc.label}, changes ΔCF/ΔCS by "
            f"{self._moved('selected-strength-gated')}.",
        ]
        if self.agreement:
            sentences.append(_agreement_in_words(self.agreement))
        sentences.append(f"{self._best(self.rows)}, averaged over the tasks.")
        within = [row for row in self.rows if row.feasible]
        if within and self._best(within) != self._best(self.rows):
            sentences.append(f"Of the rows that keep the limit (ε = {format_limit(self.epsilon)}) on the development "
                             f"pairs, {self._best(within)}.")  # fmt: skip
        return tuple(sentences)

    def panels(self) -> Panels | None:
        """ΔCF and ΔCS of every row, one panel per task."""
        rows, spc = [(row.label, row.tasks) for row in self.rows], self.of("spc").label
        return trade_off_panels(rows, bold=(spc,), method=f"controls chosen like {spc}")

    def _best(self, rows: Sequence[RuleRow]) -> str:
        utility = {row.name: mean_utility(row.tasks) for row in rows}
        names = highest(utility)
        named = format_list([format_name(self.of(name).label) for name in names])
        who = named if len(names) <= _NAMED else f"{len(names)} rows"
        return f"{who} {'has' if len(names) == 1 else 'have'} the highest U ({format_points(utility[names[0]])})"

    def _moved(self, name: str) -> str:
        """From SPC to another row, in words."""
        return changes_by_task(self.of(name).tasks, self.of("spc").tasks)


def study_revision_rules(
    calibrator: SelectivePriorCalibrator,
    development: ScoreTable,
    test: ScoreTable,
    baselines: Sequence[MethodAnswers] = (),
) -> RevisionRules:
    """Compare ways to form and to accept proposals, all chosen on the same development rows under the same ε.

    Parameters
    ----------
    calibrator
        Fitted on ``development``; gives ε, version and grid.
    development, test
        Rows to choose on and rows to judge on.
    baselines
        Answers of other methods to the test rows; NoLan is taken if it is among them.
    """
    decisions = calibrator.predict(test)
    own = {} if decisions.settings is None else asdict(decisions.settings)
    settings = {name: value for name, value in own.items() if value is not None}
    results, abstains = trade_offs(test, decisions), decisions.settings is None
    found = [RuleRow("spc", decisions.method, results, abstains, settings=settings, feasible=not abstains)]
    for each in [each for each in baselines if each.info.name == "nolan"][-1:]:
        results = trade_offs(test, each.answers)
        found.append(RuleRow("nolan", each.info.label, results, settings=each.info.settings))
    controls = run_controls(development, test, calibrator=calibrator)
    for control in controls:
        label, results = PAPER.get(control.name, control.label), trade_offs(test, control.answers)
        found.append(RuleRow(control.name, label, results, control.abstains, None, control.settings, control.feasible))
    order = [*PAPER, *(name for name in CONTROLS if name not in PAPER)]
    rows = tuple(sorted(found, key=lambda row: order.index(row.name)))
    return RevisionRules(rows, calibrator.epsilon_cs, _agreement({each.name: each for each in controls}))


def _agreement(controls: Mapping[str, ControlResult]) -> tuple[ProposalAgreement, ...]:
    fixed, direct = (controls[name] for name in _LEARNED)
    assert fixed.proposals is not None  # learned rules always have proposals
    assert direct.proposals is not None
    (dev, test), (other_dev, other_test) = fixed.proposals, direct.proposals
    differ = test != other_test
    alike = Share(int((fixed.answers == direct.answers)[differ].sum()), int(differ.sum()))
    return (
        ProposalAgreement("development", Share(int((dev == other_dev).sum()), len(dev)), None),
        ProposalAgreement("test", Share(int((~differ).sum()), len(test)), alike),
    )


def _agreement_in_words(agreement: Sequence[ProposalAgreement]) -> str:
    parts = [f"{each.same.count} of {each.same.total} {each.split} examples" for each in agreement]
    sentence = f"Proposals of the fixed strength and of direct subtraction agree on {format_list(parts)}"
    differing = agreement[-1].same_answer
    if differing is None or not differing.total:
        return f"{sentence}."
    return f"{sentence}; of the other {differing.total} the learned rules answer {differing.count} alike."


STUDY = Study(
    name="revision-rules",
    title="Correction strength and revision rule",
    asks="Does the way to form a proposal matter, or the way to accept it?",
    how="Standard SPC and every control are chosen on the same development pairs under ε = {epsilon} and judged "
    "against the common original answers; NoLan where its answers are at hand.",
    run=lambda inputs: study_revision_rules(
        inputs.fitted(uncertainty=False), inputs.development, inputs.test, inputs.baselines
    ),
    label="tab:matched-gate-four",
)
