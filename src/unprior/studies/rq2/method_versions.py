"""RQ2: the versions of SPC beside other methods."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from unprior.baselines.answers import Cost, MethodAnswers
from unprior.calibration import Decisions
from unprior.evaluation.statistics import BOOTSTRAP_RESAMPLES, BOOTSTRAP_SEED
from unprior.studies.common.versions import spc_versions
from unprior.studies.rq2.methods import Methods, compare_methods, own_choice
from unprior.studies.study import Study


def study_method_versions(
    versions: Mapping[str, Decisions],
    baselines: Sequence[MethodAnswers] = (),
    *,
    references: Mapping[str, Cost] | None = None,
    resamples: int = BOOTSTRAP_RESAMPLES,
    seed: int = BOOTSTRAP_SEED,
) -> Methods:
    """Compare several versions of SPC, by name, with other methods; all decide about the same test rows.

    >>> from unprior import SelectivePriorCalibrator, synthesize
    >>> table = synthesize(seed=0)
    >>> decisions = SelectivePriorCalibrator().fit(table).predict(table.where(split="test"))
    >>> [row.label for row in study_method_versions({"SPC": decisions, "again": decisions}, resamples=10).rows]
    ['SPC', 'again']
    """
    (label, first), *others = versions.items()
    further = {name: (each.final_positions, own_choice(each)) for name, each in others}
    result = compare_methods(
        first.table, first.final_positions, baselines, references=references, own=own_choice(first), further=further,
        resamples=resamples, seed=seed,
    )  # fmt: skip
    return replace(result, rows=tuple(replace(row, label=label) if row.name == "spc" else row for row in result.rows))


STUDY = Study(
    name="methods",
    question="rq2",
    title="SPC beside other methods",
    asks="Which method repairs most for what it loses?",
    how="All methods against the common original answers to the test pairs, decoders also against the same decoder "
    "with its correction switched off; U = ΔCF + 0.5 ΔCS. SPC in its standard version at ε = {epsilon} and "
    "{wide_epsilon}, and uncertainty-aware at {wide_epsilon}, whose numbers the paper's table has.",
    needs=("scores", "baselines"),
    run=lambda inputs: study_method_versions(
        spc_versions(inputs), inputs.baselines, references=inputs.costs, resamples=inputs.resamples, seed=inputs.seed
    ),
)
