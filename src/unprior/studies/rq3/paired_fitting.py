"""RQ3: why fitting and selection need both images of a pair."""

from __future__ import annotations

from dataclasses import dataclass

from unprior.calibration import SelectivePriorCalibrator
from unprior.calibration.selection import Ties
from unprior.scores import ScoreTable
from unprior.studies.common.variants import Variants, more_or_less
from unprior.studies.study import Study
from unprior.tables.format import format_count, format_points


@dataclass(frozen=True, slots=True)
class PairedFitting(Variants):
    """Fitted and selected on both sides, fitted on both and selected on one, fitted and selected on one.

    >>> from unprior import synthesize
    >>> table = synthesize(seed=0)
    >>> result = study_paired_fitting(table.where(split="dev"), table.where(split="test"))
    >>> [variant.name for variant in result.rows]
    ['both', 'select_cf', 'cf']
    """

    title = "Use of CF and CS development data"
    differ_in = "Development data"
    caption = "Selection on CF alone does not observe whether CS answers are right."
    digits = 2
    counts = True

    @property
    def sentences(self) -> tuple[str, ...]:
        """What is lost on commonsense images when fitting or selection does not use them."""
        sentences = []
        for task in self.tasks:
            both, select_cf, cf = (each.on(task) for each in self.rows)
            sentences += [
                f"On {task.upper()} {self.method}, with settings chosen without CS outcomes, has "
                f"{more_or_less(select_cf.cf.delta - both.cf.delta)} ΔCF ({format_points(select_cf.cf.delta)} against "
                f"{format_points(both.cf.delta)}) and {more_or_less(select_cf.cs.delta - both.cs.delta)} ΔCS "
                f"({format_points(select_cf.cs.delta)} against {format_points(both.cs.delta)}).",
                f"On {task.upper()} {self.method}, fitted without CS examples as well, gives {cf.changes}, with "
                f"{format_count(cf.cs.harms, 'CS harm')} and {format_count(cf.cs.repairs, 'CS repair')}.",
            ]
        return tuple(sentences)


def study_paired_fitting(
    development: ScoreTable, test: ScoreTable, *, epsilon: float = 0.04, ties: Ties = "first"
) -> PairedFitting:
    """Fit and select with both sides of the development pairs, and with less."""
    spc = SelectivePriorCalibrator(epsilon_cs=epsilon, ties=ties)
    calibrators: tuple[tuple[str, str, SelectivePriorCalibrator], ...] = (
        ("both", "Fit and select on CF and CS", spc),
        ("select_cf", "Fit on CF and CS; select on CF", spc.clone(select_on="cf")),
        ("cf", "Fit and select on CF", spc.clone(fit_on="cf", select_on="cf")),
    )
    return PairedFitting.from_decisions(
        (name, label, calibrator.fit(development, split=None).predict(test)) for name, label, calibrator in calibrators
    )


STUDY = Study(
    name="paired-fitting",
    title="Paired fitting and selection",
    asks="What happens when fitting or selection does not use the commonsense side of the pairs?",
    how="Standard SPC, ε = {epsilon}. Selection on CF alone looks at counterfactual rows only: feasible means ΔCF ≥ 0 "
    "on every task, and the best setting has the largest mean ΔCF. Fitting on CF alone leaves commonsense rows out of "
    "the strength model and its standardisation too.",
    run=lambda inputs: study_paired_fitting(inputs.development, inputs.test, epsilon=inputs.epsilon, ties=inputs.ties),
    label="tab:paired-calibration-full",
)
