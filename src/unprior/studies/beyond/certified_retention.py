"""Beyond the paper: how often does the harm on new pairs exceed what was permitted, over draws of development pairs?"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from unprior.calibration import Fixed, SelectivePriorCalibrator
from unprior.calibration.certified import CalibrationRows, certified_settings, certify, constant_strength
from unprior.calibration.ladder import DELTA
from unprior.calibration.stable import StableRows
from unprior.plots.panels import Panels
from unprior.plots.style import FigureStyle
from unprior.scores import ScoreTable
from unprior.studies.common.pools import Outcome, Pool
from unprior.studies.inputs import StudyInputs
from unprior.studies.result import StudyResult, grouped
from unprior.studies.study import Study
from unprior.synthetic import synthesize
from unprior.tables.format import format_count, format_limit, format_list
from unprior.tables.model import Row, Section, Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes

DRAWS = 200
SIZES = (70, 140)
LIMITS = (0.04, 0.06, 0.10)
SEED = 20261117
_SYNTHETIC_SEED, _SYNTHETIC_COPIES = 4107, 5
_RULES = {
    "paper": "paper's rule",
    "split": "certified, split λ",
    "fixed": "certified, λ = 1",
    "expected": "expected, split λ",
}


@dataclass(frozen=True, slots=True)
class Cell:
    """One rule with one number of development pairs and one limit, over many draws."""

    source: str
    pairs: int
    epsilon: float
    rule: str
    draws: int
    exceeded: float
    """Share of draws after which the harm of the worst task exceeds ε in the population."""
    error: float
    """Standard error of that share."""
    delta_cf: float
    """Mean ΔCF over draws and tasks."""
    share: float
    """Of the ΔCF of the paper's rule."""
    harm: float
    """Median harm of the worst task."""
    high_harm: float
    """Its 90 % quantile."""
    abstains: float
    """Share of draws that permit nothing."""

    def keeps(self, delta: float) -> bool:
        """Whether ε is exceeded no more often than promised, but for chance (two standard errors)."""
        return self.exceeded <= delta + 2 * max(self.error, math.sqrt(delta * (1 - delta) / self.draws))


@dataclass(frozen=True, slots=True)
class CertifiedRetention(StudyResult):
    """Every rule over many draws of development pairs from populations.

    >>> result = study_certified_retention({"synthetic": synthesize(seed=1)}, draws=4, sizes=(70,), limits=(0.1,))
    >>> [(cell.rule, cell.draws) for cell in result.cells]
    [('paper', 4), ('split', 4), ('fixed', 4), ('expected', 4)]
    """

    delta: float
    population: dict[str, int]
    """Pairs of every population by its name."""
    cells: tuple[Cell, ...]

    @property
    def table(self) -> Table:
        """Violations, repair and its share of the paper's, by source, n and ε."""
        sections = []
        for (source, pairs), cells in grouped(self.cells, key=lambda cell: (cell.source, cell.pairs)).items():
            rows = []
            for epsilon, of_limit in grouped(cells, key=lambda cell: cell.epsilon).items():
                for index, cell in enumerate(of_limit):
                    rows.append(
                        Row(
                            (
                                format_limit(epsilon) if index == 0 else "",
                                _RULES[cell.rule],
                                f"{cell.exceeded:.2f} ± {cell.error:.2f}",
                                f"{100 * cell.delta_cf:+.1f}",
                                "–" if cell.rule == "paper" or math.isnan(cell.share) else f"{cell.share:.2f}",
                                f"{cell.harm:.3f} / {cell.high_harm:.3f}",
                            ),
                            bold=cell.rule == "split",
                        )
                    )
            sections.append(Section(f"{source}, n = {pairs}", tuple(rows)))
        named = format_list([f"{name} ({pairs:,} pairs)" for name, pairs in self.population.items()])
        return Table(
            "Harm on new pairs over draws of the development pairs",
            ("ε", "Rule", "P(harm > ε)", "ΔCF", "share", "median / 90 % harm"),
            tuple(sections),
            f"{self.cells[0].draws} draws of n pairs, with replacement, from {named}, whose own rates are the truth. "
            f"P: share of draws after which the worst task's harm exceeds ε (± standard error; certified promises at "
            f"most δ = {self.delta:g}, expected promises a mean). share: of the ΔCF of the paper's rule.",
            text_columns=2,
        )

    @property
    def sentences(self) -> tuple[str, ...]:
        """What held and what did not."""
        told = []
        certified = [cell for cell in self.cells if cell.rule in ("split", "fixed")]
        broken = [cell for cell in certified if not cell.keeps(self.delta)]
        verdict = (
            f"The certified rule kept its promise in all {len(certified)} cells, within two standard errors: ε was "
            f"exceeded on at most {100 * max(cell.exceeded for cell in certified):.1f} % of draws, and "
            f"{100 * self.delta:g} % are promised."
        )
        if broken:
            named = format_list(
                [f"{cell.source}, n = {cell.pairs}, ε = {format_limit(cell.epsilon)}" for cell in broken]
            )
            count = format_count(len(broken), "cell")
            verdict = f"The certified rule exceeded ε more often than promised in {count}: {named}."
        told.append(verdict)
        for (source, pairs), cells in grouped(self.cells, key=lambda cell: (cell.source, cell.pairs)).items():
            paper, split = ({cell.epsilon: cell for cell in cells if cell.rule == rule} for rule in ("paper", "split"))
            each = [
                f"on {100 * paper[epsilon].exceeded:.1f} % of draws at ε = {format_limit(epsilon)} (certified: "
                f"{100 * split[epsilon].exceeded:.1f} %, {_share(split[epsilon])} of the repair)"
                for epsilon in paper
            ]
            told.append(f"{source}, {pairs} pairs: the paper's rule exceeds ε {format_list(each)}.")
        return tuple(told)

    def records(self) -> list[dict[str, Any]]:
        """One record per cell."""
        return [
            {
                name: None if isinstance(value, float) and math.isnan(value) else value
                for name, value in asdict(cell).items()
            }
            | {"delta": self.delta}
            for cell in self.cells
        ]

    def panels(self) -> Panels | None:
        """Promised against realised harm of every source, with the smallest number of pairs."""
        drawn = [lambda ax, style, name=name: self._draw(name, ax, style) for name in self.population]
        return Panels(tuple(drawn), 4.2, 3.6)

    def _draw(self, source: str, ax: Axes, style: FigureStyle) -> None:
        pairs = min(cell.pairs for cell in self.cells)
        shown = [cell for cell in self.cells if cell.source == source and cell.pairs == pairs and cell.rule != "fixed"]
        looks = {
            "paper": (style.control, "s", -0.0016),
            "split": (style.method, "o", 0.0),
            "expected": (style.cs, "^", 0.0016),
        }
        for rule, (colour, marker, shift) in looks.items():
            cells = [cell for cell in shown if cell.rule == rule]
            places = [100 * (cell.epsilon + shift) for cell in cells]
            ax.vlines(
                places, [100 * cell.harm for cell in cells], [100 * cell.high_harm for cell in cells], color=colour
            )
            ax.plot(places, [100 * cell.harm for cell in cells], marker, color=colour, markersize=4)
            ax.plot(places, [100 * cell.high_harm for cell in cells], marker, color=colour, label=_RULES[rule])
        most = 100 * max((cell.high_harm for cell in shown), default=0.1)
        limits = [100 * cell.epsilon for cell in shown]
        ends = [0.0, 1.15 * max(most, *limits)]
        ax.plot(ends, ends, color=style.ink, linewidth=1.0, linestyle="--", label="as permitted")
        ax.set_xlim(0, 1.15 * max(limits))
        ax.set_ylim(0, ends[1])
        ax.set(
            xlabel="permitted harm ε (%)",
            ylabel="harm on new pairs (%)\nmedian to 90 % quantile",
            title=f"{source}, n = {pairs}",
        )
        ax.legend(loc="upper left")


def _share(cell: Cell) -> str:
    return "no share" if math.isnan(cell.share) else f"{100 * cell.share:.0f} %"


def study_certified_retention(
    sources: dict[str, ScoreTable],
    *,
    draws: int = DRAWS,
    sizes: Sequence[int] = SIZES,
    limits: Sequence[float] = LIMITS,
    delta: float = DELTA,
    seed: int = SEED,
) -> CertifiedRetention:
    """Fit every rule on many draws of development pairs from populations, and judge it on the whole of them.

    Parameters
    ----------
    sources
        Populations by name; pairs are drawn from them with replacement.
    draws, seed
        How many draws, and their seed.
    sizes, limits
        Numbers of development pairs, and values of ε.
    delta
        How often a certified promise may break.
    """
    cells: list[Cell] = []
    pools = {name: Pool(table) for name, table in sources.items()}
    for name, pool in pools.items():
        rng = np.random.default_rng(seed)
        for size in sizes:
            found: dict[tuple[float, str], list[Outcome | None]] = {}
            for _ in range(draws):
                for key, outcome in _outcomes(pool, pool.draw(rng, size), limits, delta):
                    found.setdefault(key, []).append(outcome)
            cells += _summarise(name, size, found)
    return CertifiedRetention(delta, {name: pool.pairs for name, pool in pools.items()}, tuple(cells))


def _outcomes(
    pool: Pool, drawn: ScoreTable, limits: Sequence[float], delta: float
) -> Iterator[tuple[tuple[float, str], Outcome | None]]:
    """What every rule fitted on one draw does to the population; None where it abstains."""
    paper = SelectivePriorCalibrator().fit(drawn, split=None)
    rows = CalibrationRows(StableRows(drawn))
    for epsilon in limits:
        state = paper.state_.reselect(epsilon)
        yield (epsilon, "paper"), None if state.settings is None else pool.outcome(state.chosen.model, state.settings)
        for rule in ("split", "fixed", "expected"):
            calibrator = SelectivePriorCalibrator(
                epsilon_cs=epsilon, delta=delta, retention="expected" if rule == "expected" else "certified",
                strength=Fixed(1.0) if rule == "fixed" else None,
            )  # fmt: skip
            certificate = certify(calibrator.parameters, rows).certificate
            settings = certified_settings(certificate, 1.0)
            model = constant_strength(certificate.strength)
            yield (epsilon, rule), None if settings is None else pool.outcome(model, settings)


def _summarise(source: str, pairs: int, found: dict[tuple[float, str], list[Outcome | None]]) -> Iterator[Cell]:
    means = {
        key: float(np.mean([each.mean_cf if each else 0.0 for each in outcomes])) for key, outcomes in found.items()
    }
    for (epsilon, rule), outcomes in found.items():
        harms = np.array([each.worst_harm if each else 0.0 for each in outcomes])
        exceeded = float((harms > epsilon + 1e-12).mean())
        of_paper = means[epsilon, "paper"]
        yield Cell(
            source, pairs, epsilon, rule, len(outcomes), exceeded,
            math.sqrt(exceeded * (1 - exceeded) / len(outcomes)), means[epsilon, rule],
            means[epsilon, rule] / of_paper if of_paper > 0 else math.nan,
            float(np.median(harms)), float(np.quantile(harms, 0.9)),
            float(np.mean([each is None for each in outcomes])),
        )  # fmt: skip


def _run(inputs: StudyInputs) -> CertifiedRetention:
    synthetic = synthesize(_SYNTHETIC_SEED, repeats=_SYNTHETIC_COPIES)
    name = inputs.model or "this model"
    sources = {name: inputs.table, "synthetic" if name != "synthetic" else "synthetic, another seed": synthetic}
    return study_certified_retention(sources, draws=DRAWS, delta=inputs.promise.get("delta", DELTA))


STUDY = Study(
    name="certified-retention",
    title="Retention that holds on new pairs",
    asks="How often does the harm on new pairs exceed ε, under the paper's rule and under a certificate?",
    how="All pairs of the run, and 1,500 synthetic ones, stand for a population each. 200 times, n development pairs "
    "are drawn from it with replacement, every rule is fitted on them, and its harm and repair are counted on the "
    "whole population. The paper's rule is the standard version.",
    run=_run,
)
