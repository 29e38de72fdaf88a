"""Calibrators from files and decisions to files: every row is checked before anything is learned or decided."""

from __future__ import annotations

from dataclasses import dataclass
from os import PathLike
from pathlib import Path

from unprior._files import as_path, check_output_file, refuse_overwriting
from unprior.calibration.calibrator import SelectivePriorCalibrator
from unprior.calibration.decisions import Decisions
from unprior.calibration.development import refuse_unfit
from unprior.calibration.pretrained import check_folder
from unprior.calibration.show import warn_about_abstaining
from unprior.errors import RowProblem, UnpriorError, UnpriorNote, format_option, warn
from unprior.scores.checked import count_bounds, labelled_rows, read_checked, sound_rows
from unprior.scores.files import table_format
from unprior.scores.pairs import pairs_by_task, refuse_too_few, warnings_about
from unprior.scores.provenance import Differences, mixed_provenance

AnyPath = str | PathLike[str]


@dataclass(frozen=True, slots=True)
class FittedFile:
    """A calibrator fitted on a file of scores, and what to know before relying on it."""

    calibrator: SelectivePriorCalibrator
    bounds: int
    """Development rows with a score that is only an upper bound."""
    cautions: tuple[str, ...]
    """The same sentences were given as warnings."""
    skipped: tuple[RowProblem, ...]
    """Invalid rows that were left out."""


def fit_file(
    scores: AnyPath,
    out: AnyPath | None = None,
    calibrator: SelectivePriorCalibrator | None = None,
    *,
    split: str | None = "dev",
    model: str | None = None,
    allow_censored: bool = False,
    force: bool = False,
    skip_invalid: bool = False,
) -> FittedFile:
    """Fit a calibrator on the checked development rows of a score table, and save it.

    Parameters
    ----------
    scores, out
        The score table, and the calibrator file to write; without one nothing is written. A text that ends in ``/`` is
        a folder, which also gets a card.
    calibrator
        What to fit, with its parameters; it stays as it is. By default the paper's.
    split, model
        Rows to fit on; None for all.
    allow_censored
        Take scores that are only upper bounds for exact ones.
    force
        Go on although the rows were not all made alike.
    skip_invalid
        Leave out invalid rows and pairs that are not sound, instead of refusing the file.

    >>> import tempfile
    >>> from unprior import synthesize
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     synthesize(seed=0).write(f"{folder}/scores.parquet")
    ...     fit_file(f"{folder}/scores.parquet").calibrator.development_rows_
    280
    """
    # A path that ends in a slash is a folder, which `Path` forgets.
    folder = as_path("out", out) if isinstance(out, str) and out.endswith("/") else None
    scores, out = as_path("scores", scores), None if out is None else as_path("out", out)
    calibrator = SelectivePriorCalibrator() if calibrator is None else calibrator.clone()
    calibrator.check_parameters()
    if folder is None:
        _check_output(out, scores)
    else:
        check_folder(folder)
    table = read_checked(scores, skip_invalid=skip_invalid)
    rows = labelled_rows(table, table.mask(model=model, split=split), scores, skip_invalid=skip_invalid)
    refuse_unfit(table.take(rows))
    development, _ = sound_rows(table, rows, scores, skip_invalid=skip_invalid)
    bounds, told = count_bounds(development)
    if bounds and not allow_censored:
        raise UnpriorError(
            f"{scores}: {told}; a calibrator would take them for exact: score with vLLM 0.26 or newer, "
            f"or take them with {format_option('allow_censored', True)}"
        )
    refuse_too_few(str(scores), pairs_by_task(development))
    mixed = Differences(mixed_provenance(development.provenance), ())
    mixed.warn_or_refuse(f"{scores}: the rows were not all made alike", force=force)
    calibrator.fit(development, split=None)
    if folder is not None:
        calibrator.save_pretrained(folder)
    elif out is not None:
        calibrator.save(out)
    if not development.is_matched.all():
        told = "the rows come from a log: a pair is an image with all questions about it, of which one harm counts"
        warn(UnpriorNote(f"{scores}: {told}"))
    warn_about_abstaining(calibrator)
    cautions = warnings_about(development, calibrator.epsilon_cs)
    for caution in (*cautions, *([told] if bounds else [])):
        warn(caution)
    return FittedFile(calibrator, bounds, tuple(cautions), table.skipped)


def apply_file(
    calibrator: AnyPath,
    scores: AnyPath,
    out: AnyPath | None = None,
    *,
    explanations: bool = False,
    force: bool = False,
    skip_invalid: bool = False,
) -> Decisions:
    """Decide for every row of a score table with a saved calibrator, and write the decisions.

    ``explanations`` adds a sentence to every decision of the file; ``force`` continues although the
    calibrator was fitted on scores made in another way. For the rest see :func:`fit_file`.
    """
    calibrator, scores = as_path("calibrator", calibrator), as_path("scores", scores)
    out = None if out is None else as_path("out", out)
    _check_output(out, scores, calibrator)
    if out is not None:
        table_format(out)
    fitted = SelectivePriorCalibrator.from_pretrained(calibrator)
    table = read_checked(scores, skip_invalid=skip_invalid)
    differences = fitted.differences(table.provenance, table.values_of("model"))
    differences.warn_or_refuse(f"{scores}: not made like the scores that {calibrator} was fitted on", force=force)
    decisions = fitted.predict(table)
    if out is not None:
        decisions.write(out, explanations=explanations)
    return decisions


def _check_output(out: Path | None, *inputs: Path) -> None:
    if out is not None:
        refuse_overwriting(out, *inputs)
        check_output_file(out)
