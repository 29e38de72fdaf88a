"""What `unprior export` does: a finished run in the format of another program, one file per target."""

from __future__ import annotations

import os
from contextlib import suppress
from importlib import import_module
from importlib.util import find_spec
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from unprior._files import as_path, check_output_file, exists, is_file, refuse_overwriting
from unprior.errors import UnpriorError, did_you_mean, format_names, format_option, require_type, warn
from unprior.progress import Report, check_report, silent

if TYPE_CHECKING:
    from unprior.runs.recorded import RecordedRun

_SCORES, _DECISIONS = "scores.parquet", "decisions.jsonl"
_OTHERS = ("calibrator.json", "run.toml", "run.json", "report.json", "report.html", "baselines.parquet")
"""What a run folder may hold beside these two."""


class Target(NamedTuple):
    """A program that runs can be exported to."""

    package: str
    """What has to be installed for it."""
    extra: str
    """The extra of this package that installs it."""
    suffixes: tuple[str, ...]
    """How its files end; the first by default."""
    module: str
    """Where ``write_log`` is, a module of ``unprior.runs``."""

    def require(self) -> None:
        """Refuse to begin without the program's package."""
        if find_spec(self.package) is None:
            raise UnpriorError(
                f"this export needs {self.package}, which is not installed; install it with: "
                f"pip install 'unprior[{self.extra}]'"
            )

    def write(self, path: Path, run: RecordedRun, **options: Any) -> None:
        """Write a run; see ``write_log`` of the module."""
        import_module(f"unprior.runs.{self.module}").write_log(path, run, **options)


TARGETS = {"inspect": Target("inspect_ai", "inspect", (".eval", ".json"), "export_inspect")}
"""Programs by name. To add one: write its file, and add one line here."""


def export_run(
    run: str | PathLike[str],
    to: str = "inspect",
    out: str | PathLike[str] | None = None,
    *,
    split: str | None = "test",
    images: bool = True,
    force: bool = False,
    report: Report = silent,
) -> list[Path]:
    """Write a finished run, or each of several in one folder, for another program; gives the files.

    Parameters
    ----------
    run
        The folder of a run, or a folder of such folders, as a run of several models leaves it.
    to
        The program: ``inspect``, for logs of Inspect (inspect_ai).
    out
        A file, or a folder for files that are named after the run folders; by default in each run folder.
    split
        Rows to export: ``test``, ``dev``, or None for all. Metrics are those of the test rows wherever they are among
        them.
    images
        Whether the images are put into the file.
    force
        Replace files that are there already.
    report
        Told how far it is.

    >>> export_run("nowhere", to="inspekt")
    Traceback (most recent call last):
        ...
    unprior.errors.UnpriorError: to='inspekt' (command line: --to inspekt): no such target (did you mean inspect?); \
choose from inspect
    """
    from unprior.runs.recorded import RecordedRun

    require_type("to", to, str, "the name of a target, such as 'inspect'")
    require_type("split", split, str | None, "the name of a split, such as 'test', or None for all rows")
    for name, value in (("images", images), ("force", force)):
        require_type(name, value, bool, "True or False")
    check_report(report)
    if to not in TARGETS:
        raise UnpriorError(
            f"{format_option('to', to)}: no such target{did_you_mean(to, TARGETS)}; choose from {', '.join(TARGETS)}"
        )
    target = TARGETS[to]
    folders = find_runs(as_path("run", run))
    paths = _places(folders, None if out is None else as_path("out", out), to, target)
    _refuse_same(folders, paths)
    target.require()
    for path in paths:
        check_output_file(path)
        for folder in folders:
            refuse_overwriting(path, *_files_of(folder))
    if (there := [str(path) for path in paths if exists(path)]) and not force:
        raise UnpriorError(
            f"{format_names(there)}: already there; choose another name by {format_option('out')}, or replace it with "
            f"{format_option('force', True)}"
        )
    # All are read before any is written: a run that cannot be read leaves nothing half done.
    runs = [RecordedRun.from_folder(folder, split=split, report=report) for folder in folders]
    for recorded, path in zip(runs, paths, strict=True):
        target.write(path, recorded, images=images, report=report)
    return paths


def find_runs(folder: Path) -> list[Path]:
    """The folder itself if it holds a run, else those of the runs in it; unfinished ones are warned about.

    >>> find_runs(Path("nowhere"))
    Traceback (most recent call last):
        ...
    unprior.errors.UnpriorError: nowhere: no such folder; give the folder of a run, made by `unprior run`
    """
    if not folder.is_dir():
        what = "this is a file" if exists(folder) else "no such folder"
        raise UnpriorError(f"{folder}: {what}; give the folder of a run, made by `unprior run`")
    if is_file(folder / _SCORES):
        return [folder]
    below = sorted(path.parent for path in folder.glob(f"*/{_SCORES}"))
    finished = [each for each in below if is_file(each / _DECISIONS)]
    if not below:
        raise UnpriorError(
            f"{folder}: this is no run, for there is no {_SCORES} in it or one folder below; give a folder that "
            f"`unprior run` made"
        )
    if not finished:
        names = format_names([str(each) for each in below])
        raise UnpriorError(f"{names}: there is no {_DECISIONS}; `unprior run` makes it")
    for each in below:
        if each not in finished:
            warn(f"{each} is left out: there is no {_DECISIONS}; `unprior run --out {each}` makes it")
    return finished


def _refuse_same(folders: list[Path], paths: list[Path]) -> None:
    """Refuse to write two runs to one file; several names of one run may lead to one."""
    runs: dict[str, Path] = {}
    for folder, path in zip(folders, paths, strict=True):
        first = runs.setdefault(os.path.realpath(path), folder)
        if not first.samefile(folder):
            raise UnpriorError(
                f"{path}: this would be the file of both {first} and {folder}; give another folder by "
                f"{format_option('out')}"
            )


def _files_of(folder: Path) -> list[Path]:
    """What a run was made from and consists of: its own files, and the file of its questions."""
    from unprior.runs.folder import find_config

    files = [folder / name for name in (_SCORES, _DECISIONS, *_OTHERS)]
    with suppress(UnpriorError):  # who reads the run is told
        config = find_config(folder)
        files += [] if config is None or not is_file(Path(config.benchmark.name)) else [Path(config.benchmark.name)]
    return files


def _places(folders: list[Path], out: Path | None, to: str, target: Target) -> list[Path]:
    """Where the file of every run goes."""
    suffix = target.suffixes[0]
    if out is None:
        return [folder / f"{to}{suffix}" for folder in folders]
    if out.suffix in target.suffixes and not out.is_dir():
        if len(folders) > 1:
            raise UnpriorError(
                f"{out}: this is one file for {len(folders)} runs; give a folder by {format_option('out')}"
            )
        return [out]
    if out.suffix and not out.is_dir():
        raise UnpriorError(f"{out}: end its name with {' or '.join(target.suffixes)}, or give a folder that is there")
    # By the name that was given: links of several names may lead to folders of one name.
    return [out / f"{Path(os.path.normpath(folder.absolute())).name}{suffix}" for folder in folders]
