"""What `unprior evaluate` does with files: decisions against the original answers and against other methods."""

from __future__ import annotations

from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from unprior._files import as_path
from unprior.calibration.file_certificate import read_certificate
from unprior.errors import warn
from unprior.evaluation import Evaluation, Share, evaluate
from unprior.evaluation.answers import Origin, read_final_answers, read_origin
from unprior.evaluation.logged_answers import read_logged_answers
from unprior.evaluation.metrics import open_coverage
from unprior.evaluation.promise import PromiseCheck, check_promise
from unprior.evaluation.statistics import BOOTSTRAP_RESAMPLES, BOOTSTRAP_SEED
from unprior.scores import ScoreTable
from unprior.scores.checked import count_bounds, labelled_rows, read_checked, sound_rows
from unprior.scores.pairs import warnings_about
from unprior.scores.provenance import Differences, Provenance, compare_provenance
from unprior.tables.format import format_list

if TYPE_CHECKING:
    from unprior.studies.rq2.methods import Methods

AnyPath = str | PathLike[str]


@dataclass(frozen=True, slots=True)
class EvaluatedFile:
    """Decisions of a file compared with the original answers and, where they are given, with other methods."""

    evaluation: Evaluation
    methods: Methods | None
    promise: PromiseCheck | None
    """What became of the calibrator's promise; None where it promised nothing."""
    bounds: int
    """Evaluated rows with a score that is only an upper bound."""
    cautions: tuple[str, ...]
    """The same sentences were given as warnings."""
    coverage: dict[str, Share]
    """Open questions whose candidates hold a right answer, by side; empty where there are none."""

    @property
    def coverage_sentence(self) -> str | None:
        """How often the right answer to an open question is among the candidates; None without open questions."""
        if not self.coverage:
            return None
        sides = [f"{share.count:,} of {share.total:,} on {side.upper()}" for side, share in self.coverage.items()]
        return (
            f"Coverage: the candidates of open questions hold the right answer in {format_list(sides)}. What they "
            f"miss, no calibration can repair."
        )


def evaluate_file(
    scores: AnyPath,
    decisions: AnyPath | None = None,
    *,
    split: str | None = "test",
    model: str | None = None,
    decided_by: str | None = None,
    baselines: AnyPath | None = None,
    by: str | None = None,
    epsilon_cs: float = 0.04,
    resamples: int = BOOTSTRAP_RESAMPLES,
    seed: int = BOOTSTRAP_SEED,
    force: bool = False,
    skip_invalid: bool = False,
) -> EvaluatedFile:
    """Compare the decisions of a file with the original answers, and with other methods.

    Parameters
    ----------
    scores, decisions
        The score table, and the decisions that were made from it. A log of `unprior serve` holds its own decisions,
        which are taken where no others are given.
    decided_by
        Of a log, the calibrator whose decisions are evaluated, by its digest; needed where there are several.
    baselines
        A file of answers of other methods, made by `unprior baseline`, to compare with.
    by, resamples, seed
        See :func:`unprior.evaluation.evaluate`.
    epsilon_cs
        Limit of the controls beside the other methods; they are chosen on the development rows of the table.
    force
        Go on although the decisions were made from other scores.
    split, model, skip_invalid
        See :func:`unprior.calibration.files.fit_file`.
    """
    scores, decisions = as_path("scores", scores), None if decisions is None else as_path("decisions", decisions)
    table = read_checked(scores, skip_invalid=skip_invalid, decided_by=decided_by)
    rows = labelled_rows(table, table.mask(model=model, split=split), scores, skip_invalid=skip_invalid)
    judged, rows = sound_rows(table, rows, scores, skip_invalid=skip_invalid)
    if decisions is None:
        final, decided_by = read_logged_answers(scores, judged)
        origin = Origin(method=f"calibrator {decided_by}")
    else:
        final = read_final_answers(decisions, table, rows.nonzero()[0])
        origin = _check_origin(decisions, judged, force=force)
    statistics: dict[str, Any] = {"resamples": resamples, "seed": seed}
    evaluation = evaluate(judged, final, **statistics, by=by, method=origin.method or "SPC")
    promise = None
    if origin.certificate is not None:
        new = np.array([name != "dev" for name in judged.column("split")])  # its own pairs cannot test a promise
        certificate = read_certificate(origin.certificate, decisions or scores)
        promise = check_promise(certificate, judged.take(new), final[new]) if new.any() else None
    methods = None
    if baselines is not None:
        from unprior.baselines.answers import read_answers, read_references
        from unprior.baselines.controls import run_controls
        from unprior.studies.rq2.methods import compare_methods

        development = table.where(model=model, split="dev") if split == "test" else None
        controls = run_controls(development, judged, epsilon_cs=epsilon_cs) if development else []
        path = as_path("baselines", baselines)
        answers, references = read_answers(path, judged), read_references(path)
        methods = compare_methods(judged, final, answers, controls=controls, references=references, **statistics)
    (bounds, told), cautions = count_bounds(judged), warnings_about(judged)
    for caution in (*([told] if bounds else []), *cautions):
        warn(caution)
    return EvaluatedFile(evaluation, methods, promise, bounds, tuple(cautions), open_coverage(judged))


def _check_origin(decisions: Path, judged: ScoreTable, *, force: bool) -> Origin:
    """Decisions belong to the scores they were made from, and their calibrator to scores that were made alike."""
    origin = read_origin(decisions)
    models = [Provenance(model=name) for name in sorted(filter(None, judged.values_of("model")))]
    other = compare_provenance(origin.scores, judged.provenance or models)
    other.warn_or_refuse(f"{decisions}: not made from these scores", force=force)
    forced = compare_provenance(origin.fitted_on, origin.scores or judged.provenance)
    told = Differences((), (*forced.refused, *forced.noted))  # whoever applied the calibrator knew
    told.warn_or_refuse(f"{decisions}: its calibrator was fitted on scores made in another way", force=True)
    return origin
