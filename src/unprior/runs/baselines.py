"""What `unprior baseline` does: other methods answer a benchmark, and are compared with SPC."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from unprior.errors import UnpriorError, warn
from unprior.progress import Progress, Report, silent
from unprior.runs.config import RunConfig
from unprior.runs.folder import check_folder, find_config
from unprior.runs.questions import load_questions

if TYPE_CHECKING:
    from unprior.scores import ScoreTable
    from unprior.scoring.run import Summary
    from unprior.studies.rq2.changes import Changes
    from unprior.studies.rq2.methods import Methods


@dataclass(frozen=True)
class Compared:
    """Other methods beside SPC."""

    comparison: Methods | Changes
    summary: Summary
    """What was scored."""
    answers: Path
    """The file of their answers."""
    left_out: Mapping[str, str]
    """Methods that were asked for and are not compared, with the reasons."""


def run_baselines(config: RunConfig, *, few_threads: bool = False, report: Report = silent) -> Compared:
    """Let the methods of ``config.method.baselines`` answer a benchmark, and compare them with SPC.

    Each method is tried before anything is scored. One that the model cannot run is left out with a warning; if none is
    left, the model is refused. What is missing is scored first; a report that the folder holds is written again, with
    the new methods.
    """
    from unprior.baselines.names import choose_methods
    from unprior.baselines.suite import ANSWERS, MethodOptions, answer_with_methods, prepare_methods
    from unprior.engines.load import load_engine, with_internals
    from unprior.runs.score import score_all
    from unprior.scoring.benchmark import check_images, warn_about_failures

    method, out, batch_size = config.method, config.output.folder, config.engine.batch_size
    options = MethodOptions.from_names(method.baselines, method.revis_data, method.revis_strength, method.cost_examples)
    config.check(needs_internals=True)
    check_folder(config, ANSWERS)
    earlier = find_config(out)
    names = (*(() if earlier is None else earlier.method.baselines), *method.baselines)
    noted = config.with_options(baselines=tuple(dict.fromkeys(names)))
    benchmark = load_questions(config, report)
    check_images(benchmark)
    engine = with_internals(load_engine(**config.loading, few_threads=few_threads, report=report))
    prepared = prepare_methods(engine, benchmark, out, options, batch_size=batch_size, required=True, report=report)
    noted.write(early=True)
    scored, side = score_all(config, engine, benchmark, report)
    table = scored.table("compare with")
    lost, left_out = answer_with_methods(
        engine, benchmark, out, prepared, table=table, resize=side, batch_size=batch_size,
        cost_examples=options.cost_examples, report=report,
    )  # fmt: skip
    warn_about_failures(lost, "answers", "made")
    if lost:
        raise UnpriorError(
            f"{len(lost):,} answers are missing, so the methods cannot be compared; see the reasons above"
        )
    noted.write()
    report(Progress("Comparing"))
    controls = choose_methods(method.baselines).controls
    compared = compare(table, out / ANSWERS, controls, method.epsilon_cs, uncertainty=method.uncertainty)
    if (out / "report.json").exists():
        from unprior.runs.result import refresh_report

        report(Progress("Writing the report"))
        refresh_report(out, benchmark, report=report)
    return Compared(compared, scored.summary, out / ANSWERS, left_out)


def compare(
    table: ScoreTable, answers: Path, controls: Sequence[str], epsilon_cs: float, *, uncertainty: bool = False
) -> Methods | Changes:
    """Compare methods with SPC on the test pairs; without development rows or pairs with the original answers alone."""
    from unprior.baselines.answers import read_answers, read_references
    from unprior.baselines.suite import fitting_answers
    from unprior.calibration import SelectivePriorCalibrator
    from unprior.calibration.show import warn_about_abstaining
    from unprior.studies.rq2.changes import study_changes
    from unprior.studies.rq2.methods import compare_methods, study_methods

    judged = table.where(split="test") if "test" in table.column("split") else table
    path = fitting_answers(answers, table)
    found, references = ([], {}) if path is None else (read_answers(path, judged), read_references(path))
    paired = bool(table.is_paired.all())
    if not paired or not {"dev", "test"} <= set(table.column("split")):
        if controls:
            warn("controls are chosen on development pairs, which this benchmark does not have; they are left out")
        if not paired:
            return study_changes(judged, found)
        return compare_methods(judged, None, found, references=references)
    development = table.where(split="dev")
    calibrator = SelectivePriorCalibrator(epsilon_cs=epsilon_cs, uncertainty=uncertainty)
    calibrator.fit(development, split=None)
    warn_about_abstaining(calibrator)
    decisions = calibrator.predict(judged)
    return study_methods(decisions, calibrator, development, found, references=references, controls=controls)
