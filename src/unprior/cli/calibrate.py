"""The commands of the method: fit, apply, evaluate."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from unprior.cli.console import AsJson, SkipInvalid, flag, output, print_json, print_tables, refuse_overwriting, warn
from unprior.cli.lazy import examples
from unprior.cli.options import option
from unprior.cli.tables import skipped_record
from unprior.errors import UnpriorError

if TYPE_CHECKING:
    from unprior.calibration import SelectivePriorCalibrator
    from unprior.scores import ScoreTable
    from unprior.studies.rq2.changes import Changes
    from unprior.studies.rq2.methods import Methods

Scores = Annotated[
    Path, typer.Argument(metavar="SCORES", help="Score table (.jsonl or .parquet, or a published per-example file).")
]
Model = Annotated[str | None, flag("Input", "Use only the rows of this model.")]
Force = Annotated[
    bool, flag("Input", "Go on although the scores were made otherwise than the calibrator's.", "--force")
]


@examples(
    "unprior fit scores.parquet --out calibrator.json",
    "unprior fit scores.parquet --out calibrator.json --uncertainty --epsilon-cs 0.1",
)
def fit(
    scores: Scores,
    out: Annotated[Path, flag("Output", "Calibrator file to write (.json).", "--out")],
    split: Annotated[str, flag("Input", "Rows to fit on; 'all' for every row.")] = "dev",
    epsilon_cs: Annotated[float, option("epsilon_cs")] = 0.04,
    uncertainty: Annotated[bool, option("uncertainty")] = False,
    model: Model = None,
    allow_censored: Annotated[bool, option("allow_censored")] = False,
    force: Force = False,
    skip_invalid: SkipInvalid = False,
    as_json: AsJson = False,
) -> None:
    """Learn the correction strength and choose the gate on development rows."""
    from unprior.calibration import SelectivePriorCalibrator
    from unprior.calibration.development import refuse_unfit
    from unprior.calibration.show import warn_about_abstaining
    from unprior.scores.checked import labelled_rows, read_checked, sound_rows
    from unprior.scores.pairs import pairs_by_task, refuse_too_few, warnings_about
    from unprior.scores.provenance import Differences, mixed_provenance

    refuse_overwriting(out, scores)
    table = read_checked(scores, skip_invalid=skip_invalid)
    rows = labelled_rows(table, table.mask(model=model, split=_split(split)), scores, skip_invalid=skip_invalid)
    refuse_unfit(table.take(rows))
    development, rows = sound_rows(table, rows, scores, skip_invalid=skip_invalid)
    bounds = int(table.is_bounded[rows].sum())
    if bounds and not allow_censored:
        raise UnpriorError(
            f"{scores}: {_bounds(bounds, int(rows.sum()))}; a calibrator would take them for exact: "
            f"score with vLLM 0.26 or newer, or take them with --allow-censored"
        )
    calibrator = SelectivePriorCalibrator(epsilon_cs=epsilon_cs, uncertainty=uncertainty)
    refuse_too_few(str(scores), pairs_by_task(development))
    mixed = Differences(mixed_provenance(development.provenance), ())
    mixed.warn_or_refuse(f"{scores}: the rows were not all made alike", force=force)
    calibrator.fit(development, split=None)
    calibrator.save(out)
    warn_about_abstaining(calibrator)
    cautions = warnings_about(development, epsilon_cs)
    warn(*cautions, *([_bounds(bounds, int(rows.sum()))] if bounds else []))
    if as_json:
        told = {"bounds": bounds, "warnings": cautions, "skipped": skipped_record(table)}
        print_json(_fit_record(calibrator, out) | told)
        return
    _print_fit(calibrator, out)


@examples(
    "unprior apply calibrator.json scores.parquet --out decisions.jsonl",
    "unprior apply calibrator.json scores.parquet --out decisions.jsonl --explain",
)
def apply(
    calibrator_file: Annotated[Path, typer.Argument(metavar="CALIBRATOR", help="File made by `unprior fit`.")],
    scores: Scores,
    out: Annotated[Path, flag("Output", "Decisions to write (.jsonl or .parquet), one per row.", "--out")],
    explain: Annotated[bool, flag("Output", "Add a sentence that explains each decision.", "--explain")] = False,
    force: Force = False,
    skip_invalid: SkipInvalid = False,
    as_json: AsJson = False,
) -> None:
    """Decide for every row of a score table; rows need no correct answer."""
    from unprior.calibration import SelectivePriorCalibrator
    from unprior.scores.checked import read_checked
    from unprior.scores.files import table_format
    from unprior.tables.terminal import plain_table

    refuse_overwriting(out, scores, calibrator_file)
    table_format(out)
    calibrator = SelectivePriorCalibrator.load(calibrator_file)
    table = read_checked(scores, skip_invalid=skip_invalid)
    differences = calibrator.differences(table.provenance, table.values_of("model"))
    told = f"{scores}: not made like the scores that {calibrator_file} was fitted on"
    differences.warn_or_refuse(told, force=force)
    decisions = calibrator.predict(table)
    decisions.write(out, explanations=explain)
    reasons, revised = decisions.count_reasons(), int(decisions.revised.sum())
    if as_json:
        counts = {str(reason): count for reason, count in reasons.items()}
        record = {"rows": len(decisions), "revised": revised, "reasons": counts}
        print_json(record | {"skipped": skipped_record(table), "out": str(out)})
        return
    output.print(f"{revised:,} of {len(decisions):,} answers revised → {out}", soft_wrap=True)
    overview = plain_table(None, ("Reason", "Rows", "Meaning"), right=("Rows",))
    for reason, count in reasons.items():
        overview.add_row(str(reason), f"{count:,}", reason.meaning)
    output.print(overview)


@examples(
    "unprior evaluate scores.parquet decisions.jsonl",
    "unprior evaluate scores.parquet decisions.jsonl --by subcategory --json",
)
def evaluate(
    scores: Scores,
    decisions: Annotated[
        Path, typer.Argument(metavar="DECISIONS", help="Decisions made from this table by `unprior apply`.")
    ],
    split: Annotated[str, flag("Input", "Rows to evaluate; 'all' for every row.")] = "test",
    model: Model = None,
    baselines: Annotated[
        Path | None, flag("Input", "Answers of other methods, made by `unprior baseline`, to compare with.")
    ] = None,
    by: Annotated[
        str | None, flag("Statistics", "Evaluate the rows of each value of this column apart, such as subcategory.")
    ] = None,
    epsilon_cs: Annotated[
        float, flag("Statistics", "Limit of the controls beside --baselines, chosen on the dev rows of the table.")
    ] = 0.04,
    resamples: Annotated[int, flag("Statistics", "Bootstrap resamples of pairs.", min=1)] = 10_000,
    seed: Annotated[int, flag("Statistics", "Seed of the bootstrap.", min=0)] = 20260712,
    force: Force = False,
    skip_invalid: SkipInvalid = False,
    as_json: AsJson = False,
) -> None:
    """Compare decisions with the original answers, and with other methods: accuracy, intervals, exact tests."""
    from unprior.evaluation import evaluate as evaluate_answers
    from unprior.evaluation.answers import read_final_answers
    from unprior.scores.checked import labelled_rows, read_checked, sound_rows
    from unprior.scores.pairs import warnings_about

    table = read_checked(scores, skip_invalid=skip_invalid)
    rows = labelled_rows(table, table.mask(model=model, split=_split(split)), scores, skip_invalid=skip_invalid)
    judged, rows = sound_rows(table, rows, scores, skip_invalid=skip_invalid)
    final = read_final_answers(decisions, table, rows.nonzero()[0])
    method = _check_origin(decisions, judged, force=force)
    statistics: dict[str, Any] = {"resamples": resamples, "seed": seed}
    evaluation = evaluate_answers(judged, final, **statistics, by=by, method=method)
    methods = None
    if baselines is not None:
        from unprior.baselines.answers import read_answers, read_references
        from unprior.baselines.controls import run_controls
        from unprior.studies.rq2.methods import compare_methods

        development = table.where(model=model, split="dev") if split == "test" else None
        controls = run_controls(development, judged, epsilon_cs=epsilon_cs) if development else []
        answers, references = read_answers(baselines, judged), read_references(baselines)
        methods = compare_methods(judged, final, answers, controls=controls, references=references, **statistics)
    bounds = int(judged.is_bounded.sum())
    cautions = warnings_about(judged)
    warn(*([_bounds(bounds, len(judged))] if bounds else []), *cautions)
    if as_json:
        compared = {} if methods is None else {"methods": methods.records()}
        print_json(evaluation.record() | {"bounds": bounds, "warnings": cautions} | compared)
        return
    print_tables(evaluation.table, evaluation.changes_table)
    if methods is not None:
        print_methods(methods)


def _check_origin(decisions: Path, judged: ScoreTable, *, force: bool) -> str:
    """Decisions belong to the scores they were made from, and their calibrator to scores that were made alike.

    Returns the name of the method that decided.
    """
    from unprior.evaluation.answers import read_origin
    from unprior.scores.provenance import Differences, Provenance, compare_provenance

    origin = read_origin(decisions)
    models = [Provenance(model=name) for name in sorted(filter(None, judged.values_of("model")))]
    other = compare_provenance(origin.scores, judged.provenance or models)
    other.warn_or_refuse(f"{decisions}: not made from these scores", force=force)
    forced = compare_provenance(origin.fitted_on, origin.scores or judged.provenance)
    told = Differences((), (*forced.refused, *forced.noted))  # whoever applied the calibrator knew
    told.warn_or_refuse(f"{decisions}: its calibrator was fitted on scores made otherwise", force=True)
    return origin.method or "SPC"


def print_methods(methods: Methods | Changes) -> None:
    """All methods beside each other, and what they cost where that was measured."""
    from unprior.studies.rq2.cost import Costs
    from unprior.studies.rq2.methods import Methods

    costs = Costs.from_methods(methods) if isinstance(methods, Methods) else None
    print_tables(methods.table, *([costs.table] if costs and costs.rows else []))


def _bounds(count: int, rows: int) -> str:
    return f"{count:,} of {rows:,} rows have a score that is only an upper bound"


def _split(name: str) -> str | None:
    """``--split all`` asks for every row."""
    return None if name == "all" else name


def _fit_record(calibrator: SelectivePriorCalibrator, out: Path) -> dict[str, Any]:
    selection = calibrator.selection_
    return {
        "out": str(out),
        "abstains": calibrator.settings_ is None,
        "settings": None if calibrator.settings_ is None else asdict(calibrator.settings_),
        "rows": calibrator.development_rows_,
        "loss": calibrator.loss_,
        "gradient_norm": calibrator.gradient_norm_,
        "feasible": selection.feasible,
        "searched": selection.searched,
        "changed": selection.changed,
        "tasks": {each.task: {"delta_cf": each.delta_cf, "delta_cs": each.delta_cs} for each in selection.changes},
    }


def _print_fit(calibrator: SelectivePriorCalibrator, out: Path) -> None:
    from unprior.tables.format import format_limit
    from unprior.tables.terminal import plain_table

    selection, settings = calibrator.selection_, calibrator.settings_
    version, limit = "uncertainty-aware" if calibrator.uncertainty else "standard", format_limit(calibrator.epsilon_cs)
    output.print(
        f"Fitted SPC ({version}, ε = {limit}) on {calibrator.development_rows_:,} rows "
        f"(loss {calibrator.loss_:.4f}, gradient {calibrator.gradient_norm_:.1e}); "
        f"{selection.feasible:,} of {selection.searched:,} settings feasible → {out}",
        soft_wrap=True,
    )
    if settings is None:
        return
    chosen = plain_table("Chosen settings", ("Setting", "Value"), right=("Value",))
    for name, value in asdict(settings).items():
        if value is not None:
            chosen.add_row(name.replace("_", " "), f"{value:.4g}")
    changes = ("ΔCF (points)", "ΔCS (points)")
    outcome = plain_table("On the development rows", ("Task", *changes), right=changes)
    for change in selection.changes:
        outcome.add_row(change.task.upper(), f"{100 * change.delta_cf:+.1f}", f"{100 * change.delta_cs:+.1f}")
    output.print(chosen)
    output.print(outcome)
