"""Asking a model what the studies lack: other questions, views of the prior, other methods, other benchmarks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unprior.errors import UnpriorError, warn
from unprior.progress import Progress, Report, silent
from unprior.runs.config import RunConfig
from unprior.runs.questions import drawing, load_questions

if TYPE_CHECKING:
    from unprior.benchmarks.schema import Benchmark
    from unprior.engines.protocol import Engine
    from unprior.studies.study import Study

_COMPARED_ELSEWHERE = "nolan"


def prepare_inputs(
    run: Path,
    studies: Sequence[Study],
    *,
    revis_data: Path | None = None,
    batch_size: int | None = None,
    trust_remote_code: bool = False,
    few_threads: bool = False,
    report: Report = silent,
) -> None:
    """Compute whatever the studies need or want and the run folder lacks; what is stored already costs nothing."""
    from unprior.engines.load import load_engine
    from unprior.scoring.plan import engine_provenance
    from unprior.studies.inputs import StudyInputs

    inputs = StudyInputs.from_run(run)
    needs = {need: inputs.missing(need) for study in studies for need in study.missing(inputs, wanted=True)}
    if not needs:
        return
    config = RunConfig.read(run)
    if config.benchmark.variant is not None:
        raise UnpriorError(
            f"{run} holds the variant {config.benchmark.variant}; studies start from a benchmark's own questions"
        )
    given = {"revis_data": revis_data, "batch_size": batch_size}
    changed = {name: value for name, value in given.items() if value is not None}
    config = config.with_options(**changed, trust_remote_code=trust_remote_code)
    engine = load_engine(**config.loading, few_threads=few_threads, report=report)
    other = inputs.other_model([engine_provenance(engine, None)])
    if other:
        raise UnpriorError(
            f"{run}: its configuration names another model than that of scores.parquet ({other}), whose answers do not "
            f"belong beside these scores; put the two together that belong together"
        )
    Preparation(config, engine, report).prepare(needs)


class Preparation:
    """One loaded model and what it is asked."""

    def __init__(self, config: RunConfig, engine: Engine, report: Report = silent) -> None:
        """``config`` is that of the run folder that is added to."""
        self.config, self.engine, self.report = config, engine, report
        self.run = config.output.folder

    def prepare(self, needs: dict[str, tuple[str, ...]]) -> None:
        """Meet the needs, the cheapest first."""
        from unprior.benchmarks.variants import GIVEN
        from unprior.studies.inputs import FORMS

        forms = [FORMS] if {"forms", "canonical"} & set(needs) else []
        work: dict[str, Callable[[], None]] = {
            variant: partial(self._variant, variant)
            for variant in (*needs.get("orders", ()), *forms, *needs.get(GIVEN, ()))
        }
        if {"open", "open-methods"} & set(needs):
            work["open"] = partial(self._open, methods="open-methods" in needs)
        for name, prepare in work.items():
            try:
                prepare()
            except UnpriorError as error:  # a benchmark need not have what the questions are made of
                warn(f"{name} cannot be prepared: {error}")
        if "views" in needs:
            self._score(load_questions(self.config, self.report), None, views=("white", "black", "mean"))
        if {"baselines", "revis"} & set(needs):
            self._answer(load_questions(self.config, self.report), ("all",), None)
        if "external" in needs:
            for name in self._present_benchmarks():
                self._external(name)

    def _variant(self, variant: str) -> None:
        """Test examples, and the development examples of questions that SPC is fitted on."""
        from unprior.benchmarks.forms import FITTED_FORM
        from unprior.benchmarks.variants import GIVEN
        from unprior.studies.inputs import FORMS, VARIANTS

        questions = load_questions(self.config, self.report, variant=variant)
        asked = [each for each in questions if each.split == "test" or each.form == FITTED_FORM or variant == GIVEN]
        # The canonical questions are among the forms, so that their scores cost little more.
        prior = "canonical" if variant == FORMS else None
        self._score(questions.with_examples(asked), self.run / VARIANTS / f"{variant}.parquet", prior=prior)

    def _open(self, *, methods: bool) -> None:
        """Open questions with all that the model proposes, and what other decoders answer to them."""
        from unprior.baselines.names import OPEN_METHODS
        from unprior.baselines.suite import ANSWERS
        from unprior.studies.inputs import OPEN_FOLDER

        questions = load_questions(self.config.with_options(task="open"), self.report)
        folder = self.run / OPEN_FOLDER
        self._score(questions, folder / "scores.parquet", all_candidates=True)
        if methods:
            self._answer(questions, OPEN_METHODS, folder / ANSWERS)

    def _external(self, name: str) -> None:
        from unprior.baselines.suite import ANSWERS
        from unprior.benchmarks.registry import BENCHMARKS, load_benchmark
        from unprior.studies.inputs import EXTERNAL

        self.report(Progress(f"Preparing {name}"))
        asked = self.config.benchmark
        benchmark = load_benchmark(
            name, self.run, asked.seed if BENCHMARKS[name].drawn else 0, data_dir=asked.data_dir,
            report=drawing(self.report),
        )  # fmt: skip
        if len(benchmark.missing_images()) == len(benchmark.images()):
            return
        folder = self.run / EXTERNAL / name
        self._score(benchmark, folder / "scores.parquet")
        self._answer(benchmark, (_COMPARED_ELSEWHERE,), folder / ANSWERS)

    def _present_benchmarks(self) -> list[str]:
        """Other benchmarks whose files are here; for a drawn run its own presence questions."""
        from unprior.benchmarks.data_dir import data_directory
        from unprior.benchmarks.registry import BENCHMARKS

        own = self.config.benchmark.name
        presence = [f"{own}-presence"] if f"{own}-presence" in BENCHMARKS else []
        folder = data_directory(self.config.benchmark.data_dir)
        present = [
            name for name, entry in BENCHMARKS.items() if not entry.drawn and name != own and (folder / name).is_dir()
        ]
        if not presence + present:
            warn(f"no other benchmark is in {folder}; `unprior data get NAME` fetches one")
        return presence + present

    def _side(self, benchmark: Benchmark) -> int | None:
        from unprior.scoring.benchmark import image_side

        return image_side(benchmark, self.engine.model_type, self.config.benchmark.resize)

    def _score(
        self,
        benchmark: Benchmark,
        path: Path | None,
        *,
        views: tuple[str, ...] = (),
        prior: str | None = None,
        all_candidates: bool = False,
    ) -> None:
        from unprior.scoring.benchmark import score_benchmark

        score_benchmark(
            self.engine, benchmark, self.run, views=views, resize=self._side(benchmark), path=path,
            batch_size=self.config.engine.batch_size, report=self.report,
            allow_censored=self.config.engine.allow_censored or self._has_bounds(),
            prior=prior or self.config.method.prior, candidates=self.config.benchmark.candidates,
            all_candidates=all_candidates,
        )  # fmt: skip

    def _has_bounds(self) -> bool:
        """Whether the run's table took bounds for scores; records of version 0.1.0 do not say."""
        from unprior.scores import read_scores

        path = self.run / "scores.parquet"
        return path.exists() and bool(read_scores(path, require_answers=False).is_bounded.any())

    def _answer(self, benchmark: Benchmark, names: tuple[str, ...], path: Path | None) -> None:
        from unprior.baselines.suite import MethodOptions, answer_with_methods, prepare_methods
        from unprior.engines.load import with_internals
        from unprior.scores import read_scores
        from unprior.scoring.benchmark import warn_about_failures

        try:
            engine = with_internals(self.engine)
        except UnpriorError as error:
            warn(str(error))
            return
        options = MethodOptions.from_names(names, self.config.method.revis_data if "all" in names else None)
        scores = (path.parent if path else self.run) / "scores.parquet"
        table = read_scores(scores, require_answers=False) if scores.exists() else None
        places: dict[str, Any] = {
            "path": path, "batch_size": self.config.engine.batch_size, "report": self.report,
        }  # fmt: skip
        prepared = prepare_methods(engine, benchmark, self.run, options, **places)
        answered = answer_with_methods(
            engine, benchmark, self.run, prepared, table=table, resize=self._side(benchmark), **places
        )
        warn_about_failures(answered.failures, f"answers to {benchmark.name}", "made")
