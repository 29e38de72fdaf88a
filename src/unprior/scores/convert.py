"""Several score files made into one table."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from unprior._files import check_output_file, refuse_overwriting
from unprior.errors import UnpriorError, warn
from unprior.scores.checked import read_checked
from unprior.scores.priors import with_prior
from unprior.scores.table import ScoreTable, concatenate


def convert_files(
    files: Sequence[Path], out: Path, *, prior: str = "text", skip_invalid: bool = False, **columns: str | None
) -> ScoreTable:
    """Read score tables or published per-example files, in order, and write them as one table.

    Parameters
    ----------
    files, out
        Files to read, and the table to write (``.jsonl`` or ``.parquet``).
    prior
        Prior scores to use, see :func:`unprior.scores.priors.with_prior`.
    skip_invalid
        Leave invalid rows out, with a warning, instead of refusing their file.
    columns
        Values for every row, such as ``split="dev"``; None leaves a column as it is.

    >>> import tempfile
    >>> from unprior import synthesize
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     source, target = Path(folder, "scores.jsonl"), Path(folder, "scores.parquet")
    ...     synthesize(seed=0).write(source)
    ...     convert_files([source], target, split=None, model="mine").values_of("model")
    {'mine'}
    """
    refuse_overwriting(out, *files)
    for number, path in enumerate(files):
        if path.resolve() in [each.resolve() for each in files[:number]]:
            raise UnpriorError(f"{path} is given twice, which would double its rows; give every file once")
    check_output_file(out)
    merged = concatenate([read_checked(path, skip_invalid=skip_invalid) for path in files])
    table = with_prior(merged.with_columns(**{name: each for name, each in columns.items() if each is not None}), prior)
    doubled = len(table) - len(table.codes("model", "benchmark", "example_id")[1])
    if doubled and None not in table.column("example_id"):
        warn(f"{doubled:,} rows have the model, benchmark and name of an earlier one; leave out what is doubled")
    table.write(out)
    return table
