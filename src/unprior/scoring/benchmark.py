"""A model on a benchmark: asks what is not stored yet and writes the score table, as `unprior score` does."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from numbers import Integral
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from unprior._files import as_path
from unprior.benchmarks.schema import OPEN, Benchmark
from unprior.calibration.stable import check_prior
from unprior.engines.load import BATCH_SIZE, CANDIDATES, MAX_SIDE
from unprior.engines.protocol import MIN_MASS, Engine, require_engine
from unprior.errors import FailedExamplesWarning, UnpriorError, UnpriorNote, format_option, require_type, warn
from unprior.progress import Report, check_report, silent
from unprior.scores.checked import warn_about_cut_off
from unprior.scores.files import writing_scores
from unprior.scoring.open_answers import check_candidates
from unprior.scoring.rows import Failure, StoredRows
from unprior.scoring.run import AnyRun, ScoringRun, Summary
from unprior.scoring.shards import ShardFolder
from unprior.scoring.store import ScoreStore

if TYPE_CHECKING:
    from unprior.scores import ScoreTable

STORE, TABLE, SHARDS = "store.sqlite", "scores.parquet", "shards"
_NAMED_IMAGES = 10


@dataclass(frozen=True, slots=True)
class Scored:
    """What scoring gave: a summary, and the file of the table if anything could be scored."""

    summary: Summary
    path: Path | None

    def table(self, needed_to: str = "show") -> ScoreTable:
        """The table; without one there is nothing to do."""
        from unprior.scores import read_scores

        if self.path is None:
            raise UnpriorError(f"no example could be scored, so there is nothing to {needed_to}")
        return read_scores(self.path, require_answers=False)


def score(
    engine: Engine,
    benchmark: Benchmark,
    out: str | Path,
    *,
    views: Sequence[str] = (),
    resize: int | None = None,
    batch_size: int = BATCH_SIZE,
    allow_censored: bool = False,
    limit: int | None = None,
    shard: str | None = None,
    prior: str = "plain",
    candidates: int = CANDIDATES,
    report: Report = silent,
) -> ScoreTable:
    """Ask a model every question of a benchmark; score its candidate answers with and without the image.

    Results are stored as they come; the same call again computes only what is missing. What could not be scored is left
    out of the table, with a warning.

    Parameters
    ----------
    engine
        The model, see :func:`unprior.engines.load.load_engine`.
    benchmark
        The questions, see :func:`unprior.benchmarks.registry.load_benchmark`.
    out
        Folder for the store and the score table.
    views
        Further estimates of the prior: ``white``, ``black``, ``mean``.
    resize
        Side of the square that images are brought to; 0 leaves them as they are, None follows the paper.
    batch_size
        Questions in one pass; results do not depend on it.
    allow_censored
        Take bounds for candidates outside the top tokens that a server shows.
    limit, shard
        Only the first examples, and of these only part i of n, written as ``"i/n"``. The table has everything that is
        stored for the benchmark.
    prior
        What else is asked about yes/no questions with two claims: ``plain`` (nothing), ``symmetric`` (without the
        image, claims exchanged) or ``canonical`` (in the form that SPC is fitted on, in both claim orders).
    candidates
        Different answers that are kept of those that the model proposes to an open question.
    report
        Told how far it is.

    >>> import tempfile
    >>> from unprior.benchmarks.registry import load_benchmark
    >>> from unprior.engines.load import load_engine
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     world = load_benchmark("microworld", Path(folder))
    ...     len(score(load_engine("embedded"), world, folder, limit=4))
    4
    """
    require_engine(engine)
    require_type("benchmark", benchmark, Benchmark, "questions, see unprior.load_benchmark")
    require_type("views", views, (list, tuple), "a list, such as ['white']")
    check_side(resize)
    require_type("batch_size", batch_size, Integral, "a whole number")
    require_type("allow_censored", allow_censored, bool, "True or False")
    check_prior(prior)
    check_candidates(candidates)
    check_report(report)
    scored = score_benchmark(
        engine, benchmark, as_path("out", out), questions=part_of(benchmark, limit, shard), views=views,
        resize=image_side(benchmark, engine.model_type, resize), batch_size=batch_size, allow_censored=allow_censored,
        prior=prior, candidates=candidates, report=report,
    )  # fmt: skip
    return scored.table()


def score_benchmark(
    engine: Engine,
    benchmark: Benchmark,
    out: Path,
    *,
    questions: Benchmark | None = None,
    views: Sequence[str] = (),
    resize: int | None = None,
    batch_size: int = BATCH_SIZE,
    path: Path | None = None,
    allow_censored: bool = False,
    prior: str = "plain",
    candidates: int = CANDIDATES,
    all_candidates: bool = False,
    report: Report = silent,
) -> Scored:
    """Score a benchmark, or ``questions``, a part of it; write the table of all that is stored by now.

    The store lies in ``out``, and so does the table unless it has a ``path`` of its own. ``resize`` is the side of the
    square that images are brought to; None leaves them. ``all_candidates`` keeps all answers that the model proposes to
    an open question in the table, instead of so many ``candidates``.
    """
    with ScoreStore(out / STORE) as store:
        run = ScoringRun(
            engine, benchmark if questions is None else questions, store, views=views, resize_to=resize,
            batch_size=batch_size, full_benchmark=benchmark, allow_censored=allow_censored, prior=prior,
            candidates=candidates, all_candidates=all_candidates,
        )  # fmt: skip
        ShardFolder(Path(store.info().get(SHARDS, out / SHARDS))).merge_leftovers(store)  # of a job that was killed
        store.set_info(engine.identity)
        return write_run(run, benchmark, path or out / TABLE, report)


def write_run(run: AnyRun, full_benchmark: Benchmark, path: Path, report: Report = silent) -> Scored:
    """Run, and write the table of everything that is stored for the full benchmark, so that parts add up to one."""
    everything = len(run.plan.benchmark) == len(full_benchmark)
    with _writing_table(path) as written:
        summary = run.run(report, written.add if everything else None)
        if not everything and len(summary.failures) < summary.examples:
            plan = run.plan.for_benchmark(full_benchmark)
            rows = StoredRows(
                plan, run.store, allow_censored=run.rows.allow_censored, all_candidates=run.rows.candidates is None
            )
            for chunk in rows.chunks():
                if table := chunk.table():
                    written.add(table)
    warn_about_cut_off(summary.cut_off, summary.examples - len(summary.failures))
    if run.store.damaged:
        warn(f"{run.store.path}: {len(run.store.damaged):,} stored results were damaged and have been computed again")
    warn_about_failures(summary.failures, f"of {summary.examples:,} examples of {run.plan.benchmark.name}", "scored")
    return Scored(summary, written.path)


def warn_about_failures(failures: Sequence[Failure], among: str, done: str) -> None:
    """Name the examples that could not be done, and why, if there are any."""
    if failures:
        named = ((failure.example_id, failure.reason) for failure in failures)
        warn(FailedExamplesWarning(f"{len(failures):,} {among} could not be {done}", named))


@dataclass
class _WrittenTable:
    """A score table on its way to a file."""

    add: Callable[[ScoreTable], None]
    """Takes the next rows."""
    path: Path | None = None
    """The file, when it has rows and is whole."""


@contextmanager
def _writing_table(path: Path) -> Iterator[_WrittenTable]:
    """Write a table as its chunks come; a warning follows if the candidates mean little to the model."""
    masses: list[Any] = []
    with writing_scores(path) as write:

        def add(table: ScoreTable) -> None:
            mass = np.add.reduceat(np.exp(table.image_scores), table.offsets[:-1])
            masses.append(mass[np.array(table.column("task")) != OPEN])  # open candidates are the model's own
            write(table)

        written = _WrittenTable(add)
        yield written
    if not masses:
        return
    written.path = path
    all_masses = np.concatenate(masses)
    mass = np.median(all_masses) if len(all_masses) else 1.0
    if mass < MIN_MASS:  # scores of candidates that the model hardly considers mean little
        warn(
            f"the candidates hold only {mass:.1%} of the model's probability (median): it would rather say "
            f"something else; check the prompt layout and the chat template"
        )


def part_of(benchmark: Benchmark, limit: int | None = None, shard: str | None = None) -> Benchmark:
    """The first examples of a benchmark, and of these part i of n, written as ``"i/n"``."""
    if limit is not None:
        require_type("limit", limit, Integral, "a whole number")
        if limit < 1:
            raise UnpriorError(f"{format_option('limit', limit)}: give at least 1")
    examples = list(benchmark)[:limit]
    if shard is not None:
        require_type("shard", shard, str, "a text, such as '2/4'")
        told = format_option("shard", shard)
        part, _, parts = shard.partition("/")
        if not ((part + parts).isascii() and part.isdigit() and parts.isdigit() and 1 <= int(part) <= int(parts)):
            raise UnpriorError(f"{told}: give part and number of parts as i/n with i from 1 to n, e.g. 2/4")
        examples = examples[int(part) - 1 :: int(parts)]
        if not examples:
            raise UnpriorError(f"{told}: there are fewer examples than parts, this part is empty")
    return benchmark.with_examples(examples)


def check_images(benchmark: Benchmark) -> None:
    """Name the images that are not there, before a model is loaded; without any image there is nothing to do."""
    missing, total = benchmark.missing_images(), len(benchmark.images())
    if not missing:
        return
    names = "".join(f"\n  {path}" for path in missing[:_NAMED_IMAGES])
    more = f"\n  … and {len(missing) - _NAMED_IMAGES:,} more" if len(missing) > _NAMED_IMAGES else ""
    what = f"{len(missing):,} of {total:,} images of {benchmark.name} are missing:{names}{more}"
    by_hand = f" It needs {benchmark.card.by_hand}." if benchmark.card and benchmark.card.by_hand else ""
    if len(missing) == total:
        raise UnpriorError(f"{what}\nPut them there and try again.{by_hand}")
    warn(f"{what}\nTheir examples will have no scores.{by_hand}")


def check_side(resize: object) -> None:
    """Refuse a size that images cannot be brought to.

    >>> check_side(-5)
    Traceback (most recent call last):
        ...
    unprior.errors.UnpriorError: resize=-5 (command line: --resize -5): give a whole number from 0 to 8192
    """
    whole = isinstance(resize, Integral) and not isinstance(resize, bool)
    if resize is not None and not (whole and 0 <= int(resize) <= MAX_SIDE):  # type: ignore[call-overload]
        raise UnpriorError(f"{format_option('resize', resize)}: give a whole number from 0 to {MAX_SIDE}")


def image_side(benchmark: Benchmark, model_type: str | None, resize: int | None) -> int | None:
    """The square size of images: as asked for (0 leaves them), else as in the paper, with a note."""
    if resize is not None:
        return resize or None
    side = None if benchmark.card is None else benchmark.card.image_side(model_type)
    if side is not None:
        warn(
            UnpriorNote(
                f"Images of {benchmark.name} are brought to {side}×{side} for {model_type}, as in the paper; "
                f"{format_option('resize')} chooses another size, {format_option('resize', 0)} leaves them."
            )
        )
    return side
