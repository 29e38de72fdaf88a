"""All studies of one run together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from unprior.baselines.answers import Cost, MethodAnswers
from unprior.calibration import Decisions, SelectivePriorCalibrator
from unprior.errors import UnpriorError
from unprior.scores import ScoreTable
from unprior.studies.rq1.attraction import Attraction, study_attraction
from unprior.studies.rq2.methods import Methods, study_methods
from unprior.studies.rq3.components import Components, study_components
from unprior.studies.rq3.frontier import Frontier, study_frontier
from unprior.studies.rq3.stable_ranges import Ranges, study_ranges
from unprior.studies.rq3.strengths import Strengths, study_strengths


@dataclass(frozen=True, slots=True)
class Studies:
    """The results of all studies of one run."""

    attraction: Attraction
    components: Components
    frontier: Frontier | None
    """None without development rows to fit again on."""
    ranges: Ranges
    strengths: Strengths
    methods: Methods | None
    """None with neither development rows nor answers of other methods."""

    def records(self) -> dict[str, list[dict[str, Any]] | None]:
        """The records of every study by its name."""
        results: dict[str, Any] = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: None if result is None else result.records() for name, result in results.items()}


def run_studies(
    decisions: Decisions,
    calibrator: SelectivePriorCalibrator,
    development: ScoreTable | None = None,
    baselines: Sequence[MethodAnswers] = (),
    references: Mapping[str, Cost] | None = None,
) -> Studies:
    """Run every study on decisions about test rows.

    Parameters
    ----------
    decisions
        Made by ``calibrator`` for the test rows, which need answers and both sides of every pair.
    calibrator
        The fitted calibrator under study.
    development
        The rows it was fitted on; the frontier and the controls are chosen on them and are left out without them.
    baselines, references
        Answers of other methods to the test rows, and costs to compare theirs with.

    >>> from unprior import SelectivePriorCalibrator, synthesize
    >>> table = synthesize(seed=0)
    >>> calibrator = SelectivePriorCalibrator().fit(table)
    >>> result = run_studies(calibrator.predict(table.where(split="test")), calibrator, table.where(split="dev"))
    >>> {name: len(records) for name, records in result.records().items()}
    {'attraction': 30, 'components': 8, 'frontier': 28, 'ranges': 2, 'strengths': 6, 'methods': 22}
    """
    _check_one_source(decisions.table)
    curve = None
    if development is not None:
        curve = study_frontier(calibrator.clone().fit(development, split=None), development, decisions.table)
    constants = (
        []
        if curve is None
        else [
            point.strength
            for point in curve.points
            if (point.method, point.epsilon) == ("fixed_selected", curve.epsilon)
        ]
    )
    methods = None
    if development is not None or baselines:
        methods = study_methods(decisions, calibrator, development, baselines, references=references)
    return Studies(
        attraction=study_attraction(decisions.table),
        components=study_components(decisions),
        frontier=curve,
        ranges=study_ranges(decisions, fixed_strength=constants[0] if constants else None),
        strengths=study_strengths(decisions),
        methods=methods,
    )


def _check_one_source(table: ScoreTable) -> None:
    """Studies speak about one model on one benchmark; a mixture would hide both."""
    _, labels = table.codes("model", "benchmark")
    if len(labels) > 1:
        named = "; ".join(f"{model or '?'} on {benchmark or '?'}" for model, benchmark in labels)
        raise UnpriorError(
            f"the decisions cover several models or benchmarks ({named}); choose one with "
            f"table.where(model=..., benchmark=...) and make one report for each"
        )
