"""RQ3: is it this question's prior that repairs, or would any prior do?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from unprior.baselines.controls.proposals import fixed_strength_answers
from unprior.calibration import ALL_FEATURES, IMAGE_FEATURES, SelectivePriorCalibrator
from unprior.calibration.selection import Ties
from unprior.errors import UnpriorError
from unprior.evaluation import compare, mcnemar
from unprior.evaluation.comparison import group_rows
from unprior.evaluation.metrics import correct, utility
from unprior.evaluation.statistics import BOOTSTRAP_RESAMPLES, BOOTSTRAP_SEED, resample_pairs
from unprior.plots.display import task_name
from unprior.plots.panels import Panels
from unprior.plots.style import FigureStyle
from unprior.scores import ScoreTable
from unprior.scores.files import finite_or_none
from unprior.scores.schema import IntArray
from unprior.studies.common.spread import Spread
from unprior.studies.common.variants import more_or_less, spc_name
from unprior.studies.result import StudyResult
from unprior.studies.rq3 import prior_replacements
from unprior.studies.study import Study
from unprior.tables.format import format_count, format_limit, format_name, format_points, highest
from unprior.tables.model import Row, Section, Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes

CONTROLS = {
    "none": "No prior subtraction (λ = 0)",
    "image": "Image scores as the prior",
    "mean": "Mean development prior",
    "other": "Prior of another question",
    "shuffled": "Prior shuffled across answers",
    "spc": "SPC",
}
"""In the order of the paper."""
SEEDS = tuple(range(20))
"""Twenty, as in the paper."""

_REPLACEMENTS: dict[str, tuple[prior_replacements.Replacement, tuple[str, ...], bool]] = {
    "image": (prior_replacements.image_as_prior, IMAGE_FEATURES, False),
    "mean": (prior_replacements.mean_prior, ALL_FEATURES, False),
    "other": (prior_replacements.prior_of_another_question, ALL_FEATURES, True),
    "shuffled": (prior_replacements.shuffled_prior, ALL_FEATURES, True),
}


@dataclass(frozen=True, slots=True)
class PriorControl:
    """One control on one task: its runs, and SPC's counterfactual answers against each of them."""

    name: str
    epsilon: float
    task: str
    cf: tuple[float, ...]
    """ΔCF of every run."""
    cs: tuple[float, ...]
    """ΔCS of every run."""
    changed: tuple[int, ...]
    """Answers that every run changes, on both sides."""
    p_values: tuple[float, ...]
    """Exact paired test of SPC's CF answers against those of each run; empty for SPC itself."""
    box: tuple[float, ...]
    """2.5, 25, 50, 75 and 97.5 % quantiles of the mean ΔCF over resamples of pairs."""
    abstaining: int
    """Runs in which no setting was feasible."""

    @property
    def gain(self) -> float:
        """ΔCF, the mean over the runs."""
        return float(np.mean(self.cf))

    @property
    def utility(self) -> float:
        """U_0.5 of the mean changes."""
        return utility(self.gain, float(np.mean(self.cs)))

    def record(self) -> dict[str, Any]:
        """Plain numbers; what is undefined is None."""
        record: dict[str, Any] = {
            "control": self.name, "label": CONTROLS[self.name], "epsilon": self.epsilon, "task": self.task,
            "runs": len(self.cf), "abstaining": self.abstaining, "utility": self.utility,
            "mean_changed": float(np.mean(self.changed)), "largest_p": max(self.p_values, default=None),
        }  # fmt: skip
        for side, values in (("cf", self.cf), ("cs", self.cs)):
            spread = Spread.from_values(values)
            record |= {f"delta_{side}": spread.mean, f"sd_{side}": finite_or_none(spread.deviation)}
        ends = ("low", "lower_quartile", "median", "upper_quartile", "high")
        return record | {f"cf_{end}": value for end, value in zip(ends, self.box, strict=True)}


@dataclass(frozen=True, slots=True)
class PriorControls(StudyResult):
    """SPC fitted again with every replacement of its prior scores.

    >>> from unprior import synthesize
    >>> table = synthesize(seed=0)
    >>> result = study_prior_controls(table.where(split="dev"), table.where(split="test"), epsilons=(0.1,), seeds=(0,))
    >>> spc, mean = (result.of(name, "mc") for name in ("spc", "mean"))
    >>> spc.cf[0] > mean.cf[0]
    True
    """

    rows: tuple[PriorControl, ...]

    @property
    def epsilons(self) -> tuple[float, ...]:
        """Limits of commonsense loss; the first is the study's own."""
        return tuple(dict.fromkeys(row.epsilon for row in self.rows))

    @property
    def tasks(self) -> tuple[str, ...]:
        """Tasks of the test rows."""
        return tuple(dict.fromkeys(row.task for row in self.rows))

    def of(self, name: str, task: str, epsilon: float | None = None) -> PriorControl:
        """One control on one task, with the study's own ε unless another is asked for."""
        wanted = self.epsilons[0] if epsilon is None else epsilon
        return next(row for row in self.rows if (row.name, row.task, row.epsilon) == (name, task, wanted))

    def records(self) -> list[dict[str, Any]]:
        """One record per ε, control and task."""
        return [row.record() for row in self.rows]

    @property
    def table(self) -> Table:
        """Mean ± standard deviation of ΔCF and ΔCS, one part per ε."""
        sections = []
        for epsilon in self.epsilons:
            grid = {name: [self.of(name, task, epsilon) for task in self.tasks] for name in CONTROLS}
            best = [
                highest({name: line[place].utility for name, line in grid.items()}) for place in range(len(self.tasks))
            ]
            rows = []
            for name, line in grid.items():
                cells = [Spread.from_values(values).shown() for each in line for values in (each.cf, each.cs)]
                bold = [1 + 2 * place + side for place, names in enumerate(best) for side in (0, 1) if name in names]
                label = _spc(epsilon) if name == "spc" else CONTROLS[name]
                rows.append(Row((label, *cells), bold=name == "spc", bold_cells=tuple(bold)))
            sections.append(Section(f"ε = {format_limit(epsilon)}", tuple(rows)))
        columns = [f"{task.upper()} Δ{side}" for task in self.tasks for side in ("CF", "CS")]
        runs = max(len(row.cf) for row in self.rows)
        return Table(
            "Effect of replacing the prior scores", ("Score used in correction", *columns), tuple(sections),
            f"In points; standard SPC, fitted again with every replacement. Controls that draw prior scores: mean ± "
            f"standard deviation over {format_count(runs, 'seed')}. Bold: highest U = ΔCF + 0.5 ΔCS of the task.",
        )  # fmt: skip

    @property
    def sentences(self) -> tuple[str, ...]:
        """Whether SPC is ahead of its controls, how surely, and whether ε matters."""
        sentences = []
        for task in self.tasks:
            spc = self.of("spc", task)
            best = max((self.of(name, task) for name in CONTROLS if name != "spc"), key=lambda row: row.gain)
            compared = more_or_less(spc.cf[0] - best.gain, "higher than", "lower than", "the same as")
            mean, other = self.of("mean", task), self.of("other", task)
            won = sum(spc.cf[0] > value for value in other.cf)
            sentences.append(
                f"On {task.upper()} {_spc(spc.epsilon)} has a ΔCF of {format_points(spc.cf[0])}, {compared} that of "
                f"the best replacement (“{CONTROLS[best.name]}”, {format_points(best.gain)}); "
                f"p = {mean.p_values[0]:.3g} against the mean development prior, and it is ahead of {won} of "
                f"{len(other.cf)} runs with another question's prior (largest p = {max(other.p_values):.3g})."
            )
        for epsilon in self.epsilons[1:]:
            parts = []
            for task in self.tasks:
                order = self._order(task, epsilon)
                same = "the same" if order == self._order(task, self.epsilons[0]) else "another"
                first = _spc(epsilon) if order[0] == "spc" else format_name(CONTROLS[order[0]])
                parts.append(f"{same} on {task.upper()}, where {first} comes first")
            sentences.append(
                f"With standard SPC and ε = {format_limit(epsilon)} the order by ΔCF is {'; '.join(parts)}."
            )
        return tuple(sentences)

    def _order(self, task: str, epsilon: float) -> list[str]:
        """Controls from the largest mean ΔCF to the smallest; equal ones in the order of the paper, SPC last."""
        return sorted(CONTROLS, key=lambda name: -round(self.of(name, task, epsilon).gain, 9))

    def panels(self) -> Panels | None:
        """Box plots of ΔCF over resamples of pairs, one panel per task, with the study's own ε.

        Boxes span the middle half of the resamples, whiskers the middle 95 %.
        """
        return Panels.per_task(PriorControls._draw, self, self.tasks, 5.2, 3.25, same_scale=True)

    def _draw(self, *, task: str, ax: Axes, style: FigureStyle) -> None:
        ax.axvline(0, color=style.quiet, linewidth=0.8)
        for place, name in enumerate(CONTROLS):
            low, lower, middle, upper, high = (100 * value for value in self.of(name, task).box)
            colour = style.method if name == "spc" else style.control
            # matplotlib's own box plots load pyplot and its global state
            ax.hlines(place, low, high, color=colour, linewidth=1.2, zorder=2)
            ax.vlines([low, high], place - 0.14, place + 0.14, color=colour, linewidth=1.2)
            ax.barh(place, upper - lower, left=lower, height=0.55, color=style.paper, zorder=2)
            ax.barh(place, upper - lower, left=lower, height=0.55, color=colour, alpha=0.35, zorder=3)
            ax.vlines(middle, place - 0.275, place + 0.275, color=colour, linewidth=2.2, zorder=4)
        ax.set_yticks(range(len(CONTROLS)), (CONTROLS | {"spc": _spc(self.epsilons[0])}).values())
        ax.set(ylim=(len(CONTROLS) - 0.4, -0.6), title=task_name(task))
        ax.set_xlabel(f"ΔCF: repair (points)\n{_spc(self.epsilons[0])}")
        ax.tick_params(axis="y", length=0)
        ax.grid(visible=False, axis="y")


def _spc(epsilon: float) -> str:
    return spc_name(epsilon, uncertainty=False)


def study_prior_controls(
    development: ScoreTable,
    test: ScoreTable,
    *,
    epsilons: Sequence[float] = (0.10, 0.04),
    seeds: Sequence[int] = SEEDS,
    resamples: int = BOOTSTRAP_RESAMPLES,
    bootstrap_seed: int = BOOTSTRAP_SEED,
    ties: Ties = "first",
) -> PriorControls:
    """Replace the prior scores of development and test rows, fit and select again, and compare with SPC.

    ``bootstrap_seed`` fixes the resamples of the boxes, ``seeds`` what is drawn or shuffled.
    """
    if not seeds or not epsilons:
        raise UnpriorError("prior controls need at least one seed and one ε")
    fits: dict[str, list[tuple[SelectivePriorCalibrator, ScoreTable]]] = {}
    for name, (replace, features, drawn) in _REPLACEMENTS.items():
        fits[name] = []
        for seed in seeds if drawn else seeds[:1]:
            generator = np.random.default_rng(seed)
            fit, judge = (replace(development, table, generator) for table in (development, test))
            calibrator = SelectivePriorCalibrator(ties=ties, features=features)
            fits[name].append((calibrator.fit(fit, split=None), judge))
    fits["spc"] = [(SelectivePriorCalibrator(ties=ties).fit(development, split=None), test)]
    rows: list[PriorControl] = []
    for epsilon in epsilons:
        runs: dict[str, list[tuple[IntArray, bool]]] = {"none": [(fixed_strength_answers(test, 0.0), False)]}
        for name, fitted in fits.items():
            decided = [calibrator.reselect(epsilon).predict(judge) for calibrator, judge in fitted]
            runs[name] = [(each.final_positions, each.settings is None) for each in decided]
        for (task,), chosen in group_rows(test, "task").items():
            part = test.take(chosen)
            answers = {name: [given[chosen] for given, _ in each] for name, each in runs.items()}
            boxes = _boxes(part, list(answers.values()), resamples, bootstrap_seed)
            for (name, given), box in zip(answers.items(), boxes, strict=True):
                against = [compare(part, answers["spc"][0], side="cf", reference=each) for each in given]
                cf, cs = (tuple(compare(part, each, side=side).delta for each in given) for side in ("cf", "cs"))
                changed = tuple(compare(part, each, side=None).changed for each in given)
                p_values = tuple(mcnemar(each.repairs, each.harms).p_value for each in against if name != "spc")
                abstaining = sum(abstains for _, abstains in runs[name])
                rows.append(PriorControl(name, epsilon, str(task), cf, cs, changed, p_values, box, abstaining))
    return PriorControls(tuple(rows))


def _boxes(
    part: ScoreTable, answers: Sequence[Sequence[IntArray]], resamples: int, seed: int
) -> list[tuple[float, ...]]:
    """Quantiles of ΔCF of every control, averaged over its runs; all controls see the same resamples of pairs."""
    counterfactual = part.take(part.is_cf)
    before = correct(part, part.original_positions)[part.is_cf].astype(np.float64)
    gains = [np.mean([correct(part, given)[part.is_cf] for given in runs], axis=0) - before for runs in answers]
    pair, labels = counterfactual.codes("model", "benchmark", "pair_id")
    sums = [np.bincount(pair, weights=weights, minlength=len(labels)) for weights in (*gains, np.ones(len(pair)))]
    samples = resample_pairs(
        np.stack(sums, axis=1), lambda totals: totals[:, :-1] / totals[:, -1:], resamples=resamples, seed=seed
    )
    return [tuple(np.quantile(column, (0.025, 0.25, 0.5, 0.75, 0.975)).tolist()) for column in samples.T]


STUDY = Study(
    name="prior-controls",
    title="Replacing the prior scores",
    asks="Does the repair come from the prior of this question and these candidates, or would any prior do?",
    how="Standard SPC is fitted and selected again with other prior scores in development and test rows (ε = "
    "{wide_epsilon}, and again with {epsilon}): the image scores, with the seven features that depend on the prior "
    "set to 0; the mean of the centred development priors of the same task and number of candidates, by position; the "
    "prior of another development question (20 seeds); the row's own prior shuffled across its answers, none of which "
    "keeps its own (20 seeds). λ = 0 takes the image scores' winner. Boxes: 10,000 resamples of pairs, seeded controls "
    "averaged over seeds; whiskers span 95 %.",
    run=lambda inputs: study_prior_controls(
        inputs.development,
        inputs.test,
        epsilons=(inputs.wide_epsilon, inputs.epsilon),
        resamples=inputs.resamples,
        bootstrap_seed=inputs.seed,
        ties=inputs.ties,
    ),
    label="tab:supp-attribution",
    figure="fig:evidence-chain",
)
