"""Asking a model what the studies lack: other questions, views of the prior, other methods, other benchmarks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unprior.cli.baseline import ANSWERS, MethodOptions, answer_with_methods
from unprior.cli.benchmarks import image_side, prepare
from unprior.cli.console import errors, warn
from unprior.cli.model import looking_inside
from unprior.cli.score import print_failures, score_benchmark
from unprior.errors import UnpriorError
from unprior.runs.folder import RunRecord

if TYPE_CHECKING:
    from unprior.benchmarks.schema import Benchmark
    from unprior.engines.protocol import Engine
    from unprior.scoring.rows import Failure
    from unprior.studies.study import Study

_COMPARED_ELSEWHERE = "nolan"


def prepare_inputs(
    run: Path,
    studies: Sequence[Study],
    *,
    revis_data: Path | None,
    batch_size: int,
    trust_remote_code: bool = False,
) -> None:
    """Compute whatever the studies need and the run folder lacks; what is stored already costs nothing."""
    from unprior.studies.inputs import StudyInputs

    inputs = StudyInputs.from_run(run)
    needs = {need: inputs.missing(need) for study in studies for need in study.missing(inputs)}
    if not needs:
        return
    record = RunRecord.read(run)
    if record.variant is not None:
        raise UnpriorError(f"{run} holds the variant {record.variant}; studies start from a benchmark's own questions")
    engine = replace(record.model, trust_remote_code=trust_remote_code).load()
    Preparation(run, record, engine, revis_data, batch_size).prepare(needs)


class Preparation:
    """One loaded model and what it is asked."""

    def __init__(self, run: Path, record: RunRecord, engine: Engine, revis_data: Path | None, batch_size: int) -> None:
        """Keep what is needed."""
        self.run, self.record, self.engine = run, record, engine
        self.revis_data, self.batch_size = revis_data, batch_size

    def prepare(self, needs: dict[str, tuple[str, ...]]) -> None:
        """Meet the needs, the cheapest first."""
        for variant in (*needs.get("orders", ()), *needs.get("forms", ())):
            try:
                self._variant(variant)
            except UnpriorError as error:  # a benchmark need not have what the variant is made of
                warn(f"{variant} cannot be prepared: {error}")
        if "views" in needs:
            whole = self._load(None)
            self._score(whole, whole, None, views=("white", "black", "mean"))
        if {"baselines", "revis"} & set(needs):
            whole = self._load(None)
            self._answer(whole, ("all",), self.run / ANSWERS)
        if "external" in needs:
            for name in self._present_benchmarks():
                self._external(name)

    def _variant(self, variant: str) -> None:
        from unprior.studies.inputs import VARIANTS

        whole = self._load(variant)
        self._score(whole, _asked(whole), self.run / VARIANTS / f"{variant}.parquet")

    def _external(self, name: str) -> None:
        from unprior.studies.inputs import EXTERNAL

        with errors.status(f"Preparing {name} …"):
            benchmark = prepare(name, self.run, self.record.seed if self._is_drawn(name) else 0, None, self._data_dir)
        if len(benchmark.missing_images()) == len(benchmark.images()):
            return
        folder = self.run / EXTERNAL / name
        self._score(benchmark, benchmark, folder / "scores.parquet")
        self._answer(benchmark, (_COMPARED_ELSEWHERE,), folder / ANSWERS)

    def _present_benchmarks(self) -> list[str]:
        """Other benchmarks whose files are here; for a drawn run its own presence questions."""
        from unprior.benchmarks.data_dir import data_directory
        from unprior.benchmarks.registry import BENCHMARKS

        own = self.record.benchmark
        presence = [f"{own}-presence"] if f"{own}-presence" in BENCHMARKS else []
        folder = data_directory(self._data_dir)
        present = [
            name for name, entry in BENCHMARKS.items() if not entry.drawn and name != own and (folder / name).is_dir()
        ]
        if not presence + present:
            warn(f"no other benchmark is in {folder}; `unprior data get NAME` fetches one")
        return presence + present

    def _is_drawn(self, name: str) -> bool:
        from unprior.benchmarks.registry import BENCHMARKS

        return BENCHMARKS[name].drawn

    @property
    def _data_dir(self) -> Path | None:
        return None if self.record.data_dir is None else Path(self.record.data_dir)

    def _load(self, variant: str | None) -> Benchmark:
        return prepare(self.record.benchmark, self.run, self.record.seed, variant, self._data_dir)

    def _side(self, benchmark: Benchmark) -> int | None:
        return image_side(benchmark, self.engine.model_type, self.record.resize)

    def _score(self, whole: Benchmark, questions: Benchmark, path: Path | None, *, views: tuple[str, ...] = ()) -> None:
        # What is asked is the whole of a variant: rows that no study looks at are not scored.
        asked = questions if path is not None else whole
        options: dict[str, Any] = {
            "resize": self._side(whole),
            "batch_size": self.batch_size,
            "path": path,
            "allow_censored": self.record.allow_censored or self._has_bounds(),
        }
        scored = score_benchmark(self.engine, asked, asked, self.run, views=views, **options)
        self._tell(whole, scored.summary.failures)

    def _has_bounds(self) -> bool:
        """Whether the run's table took bounds for scores; records of version 0.1.0 do not say."""
        from unprior.scores import read_scores

        path = self.run / "scores.parquet"
        return path.exists() and bool(read_scores(path, require_answers=False).is_bounded.any())

    def _answer(self, whole: Benchmark, names: tuple[str, ...], path: Path) -> None:
        try:
            inside = looking_inside(self.engine)
        except UnpriorError as error:
            warn(str(error))
            return
        options = MethodOptions.of(names, self.revis_data if "all" in names else None, None, 16)
        failures = answer_with_methods(
            inside, whole, self.run, options, resize=self._side(whole), batch_size=self.batch_size, path=path
        )
        self._tell(whole, failures)

    def _tell(self, benchmark: Benchmark, failures: Sequence[Failure]) -> None:
        if failures:
            warn(f"{len(failures):,} examples of {benchmark.name} failed")
            print_failures(failures)


def _asked(variant: Benchmark) -> Benchmark:
    """Test examples, and of the question forms also the development examples of the one that SPC is fitted on."""
    from unprior.benchmarks.forms import FITTED_FORM

    return variant.with_examples([each for each in variant if each.split == "test" or each.form == FITTED_FORM])
