"""What `unprior publish` does: a calibrator with its card into a folder, or to the hub."""

from __future__ import annotations

from os import PathLike
from pathlib import Path

from unprior._files import as_path, is_file
from unprior.calibration import SelectivePriorCalibrator
from unprior.errors import UnpriorError, format_option, warn
from unprior.evaluation import Evaluation, evaluate
from unprior.scores import read_scores
from unprior.scores.pairs import sound_pairs

_SCORES = "scores.parquet"


def publish_calibrator(
    source: str | PathLike[str],
    out: str | PathLike[str] | None = None,
    repo_id: str | None = None,
    *,
    revision: str | None = None,
    private: bool = False,
) -> list[str]:
    """Write a calibrator with its card; gives where it is then.

    Parameters
    ----------
    source
        A run folder, whose test rows are evaluated for the card, or a calibrator as
        :meth:`~unprior.SelectivePriorCalibrator.from_pretrained` takes it.
    out, repo_id
        A folder, a repository of the hub, or both.
    revision, private
        Of the repository: the branch to write to, and whether a new one is private.
    """
    if out is None and repo_id is None:
        raise UnpriorError(f"give a folder by {format_option('out')}, or a repository of the hub, --repo owner/name")
    if repo_id is None and (revision is not None or private):
        raise UnpriorError("--revision and --private go with --repo")
    if out is not None:
        _refuse_other_run(as_path("out", out), as_path("source", source))
    calibrator = SelectivePriorCalibrator.from_pretrained(as_path("source", source))
    results = _evaluate(calibrator, Path(source))
    places = []
    if out is not None:
        calibrator.save_pretrained(as_path("out", out), results)
        places.append(str(out))
    if repo_id is not None:
        places.append(calibrator.push_to_hub(repo_id, results, revision=revision, private=private or None))
    return places


def _refuse_other_run(out: Path, source: Path) -> None:
    """A run keeps the calibrator that its decisions were made with."""
    own = [each for each in (source, source.parent) if is_file(each / _SCORES)]
    if is_file(out / _SCORES) and not any(out.samefile(each) for each in own):
        raise UnpriorError(
            f"{out}: this is the folder of another run, whose calibrator would be replaced; choose another"
        )


def _evaluate(calibrator: SelectivePriorCalibrator, folder: Path) -> Evaluation | None:
    """What the calibrator does to the test rows of a run; None without such rows."""
    if not is_file(folder / _SCORES):
        return None
    table, check = sound_pairs(read_scores(folder / _SCORES))
    if check.total:
        warn(f"{check.total:,} pairs of {folder / _SCORES} are left out, the first because of {check.problems[0]}")
    differences = calibrator.differences(table.provenance, table.values_of("model"))
    differences.warn_or_refuse(f"{folder / _SCORES}: not made like the scores that the calibrator was fitted on")
    if "test" not in table.values_of("split"):
        return None
    test = table.where(split="test")
    return evaluate(test, calibrator.predict(test))
