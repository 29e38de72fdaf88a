"""The commands of the method: fit, apply, evaluate."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from unprior.cli.console import AsJson, SkipInvalid, flag, output, print_json, print_tables
from unprior.cli.lazy import examples
from unprior.cli.options import option
from unprior.cli.tables import skipped_record

if TYPE_CHECKING:
    from unprior.calibration import SelectivePriorCalibrator
    from unprior.calibration.state import FittedState
    from unprior.studies.rq2.changes import Changes
    from unprior.studies.rq2.methods import Methods

Scores = Annotated[
    Path, typer.Argument(metavar="SCORES", help="Score table (.jsonl or .parquet, or a published per-example file).")
]
Model = Annotated[str | None, flag("Input", "Use only the rows of this model.")]
Force = Annotated[
    bool, flag("Method", "Continue although the calibrator was fitted on scores made in another way.", "--force")
]


@examples(
    "unprior fit scores.parquet --out calibrator.json",
    "unprior fit scores.parquet --out calibrator/ --retention certified --epsilon-cs 0.06",
)
def fit(
    scores: Scores,
    out: Annotated[
        str,
        flag("Output", "Calibrator file to write (.json); a folder, ending in /, also gets a card.", "--out"),
    ],
    split: Annotated[str, flag("Input", "Rows to fit on; 'all' for every row.")] = "dev",
    epsilon_cs: Annotated[float, option("epsilon_cs")] = 0.04,
    uncertainty: Annotated[bool, option("uncertainty")] = False,
    retention: Annotated[str, option("retention")] = "paper",
    delta: Annotated[float, option("delta")] = 0.1,
    strength: Annotated[str | None, option("strength")] = None,
    target_mixture: Annotated[str | None, option("target_mixture")] = None,
    prior: Annotated[str, option("prior", "Prior of two-claim questions: plain, symmetric, canonical.")] = "plain",
    strict: Annotated[bool, option("strict")] = False,
    model: Model = None,
    allow_censored: Annotated[bool, option("allow_censored")] = False,
    force: Force = False,
    skip_invalid: SkipInvalid = False,
    as_json: AsJson = False,
) -> None:
    """Learn the correction strength and choose the gate on development rows."""
    from unprior._files import refuse_overwriting
    from unprior.calibration.files import fit_file
    from unprior.runs.config import MethodConfig

    if target_mixture is not None:
        refuse_overwriting(Path(out), Path(target_mixture))
    method = MethodConfig(
        epsilon_cs=epsilon_cs, uncertainty=uncertainty, retention=retention, delta=delta, strength=strength,
        target_mixture=target_mixture, prior=prior, strict=strict,
    )  # fmt: skip
    fitted = fit_file(
        scores, out, method.calibrator, split=_split(split), model=model, allow_censored=allow_censored, force=force,
        skip_invalid=skip_invalid,
    )  # fmt: skip
    if as_json:
        told = {"bounds": fitted.bounds, "warnings": list(fitted.cautions), "skipped": skipped_record(fitted.skipped)}
        print_json(_fit_record(fitted.calibrator, out) | told)
        return
    _print_fit(fitted.calibrator, out)


@examples(
    "unprior apply calibrator.json scores.parquet --out decisions.jsonl",
    "unprior apply calibrator.json scores.parquet --out decisions.jsonl --explain",
)
def apply(
    calibrator_file: Annotated[
        Path,
        typer.Argument(metavar="CALIBRATOR", help="File or folder made by `unprior fit`, or a repository of the hub."),
    ],
    scores: Scores,
    out: Annotated[Path, flag("Output", "Decisions to write (.jsonl or .parquet), one per row.", "--out")],
    explain: Annotated[bool, flag("Output", "Add a sentence that explains each decision.", "--explain")] = False,
    force: Force = False,
    skip_invalid: SkipInvalid = False,
    as_json: AsJson = False,
) -> None:
    """Decide for every row of a score table; rows need no correct answer."""
    from unprior.calibration.files import apply_file
    from unprior.calibration.show import reasons_table, revised_in_words

    decisions = apply_file(calibrator_file, scores, out, explanations=explain, force=force, skip_invalid=skip_invalid)
    if as_json:
        counts = {str(reason): count for reason, count in decisions.count_reasons().items()}
        record = {"rows": len(decisions), "revised": int(decisions.revised.sum()), "reasons": counts}
        print_json(record | {"skipped": skipped_record(decisions.table.skipped), "out": str(out)})
        return
    output.print(f"{revised_in_words(decisions)} → {out}", soft_wrap=True)
    print_tables(reasons_table(decisions))


@examples(
    "unprior evaluate scores.parquet decisions.jsonl",
    "unprior evaluate scores.parquet decisions.jsonl --by subcategory --json",
)
def evaluate(
    scores: Scores,
    decisions: Annotated[
        Path | None,
        typer.Argument(
            metavar="[DECISIONS]",
            help="Decisions made from this table by `unprior apply`; a log of `unprior serve` holds its own.",
        ),
    ] = None,
    split: Annotated[str, flag("Input", "Rows to evaluate; 'all' for every row.")] = "test",
    model: Model = None,
    decided_by: Annotated[
        str | None, flag("Input", "Of a log, evaluate the decisions of the calibrator with this digest.")
    ] = None,
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
    from unprior.runs.evaluate import evaluate_file

    evaluated = evaluate_file(
        scores, decisions, split=_split(split), model=model, decided_by=decided_by, baselines=baselines, by=by,
        epsilon_cs=epsilon_cs, resamples=resamples, seed=seed, force=force, skip_invalid=skip_invalid,
    )  # fmt: skip
    evaluation, methods, promise = evaluated.evaluation, evaluated.methods, evaluated.promise
    if as_json:
        compared: dict[str, Any] = {} if methods is None else {"methods": methods.records()}
        compared |= {} if promise is None else {"promise": promise.record()}
        shares = {side: [share.count, share.total] for side, share in evaluated.coverage.items()}
        compared |= {"coverage": shares} if shares else {}
        cautions = {"bounds": evaluated.bounds, "warnings": list(evaluated.cautions)}
        print_json(evaluation.record() | cautions | compared)
        return
    print_tables(evaluation.table, evaluation.changes_table, *([] if promise is None else [promise.table]))
    if evaluated.coverage_sentence is not None:
        output.print(evaluated.coverage_sentence, soft_wrap=True)
    if methods is not None:
        print_methods(methods)


def print_methods(methods: Methods | Changes) -> None:
    """All methods beside each other, and what they cost where that was measured."""
    from unprior.studies.rq2.cost import Costs
    from unprior.studies.rq2.methods import Methods

    costs = Costs.from_methods(methods) if isinstance(methods, Methods) else None
    print_tables(methods.table, *([costs.table] if costs and costs.rows else []))


def _split(name: str) -> str | None:
    """``--split all`` asks for every row."""
    return None if name == "all" else name


def _fit_record(calibrator: SelectivePriorCalibrator, out: str) -> dict[str, Any]:
    state = calibrator.state_
    record = {"out": out} | _part_record(state)
    record |= {} if state.open is None else {"open": _part_record(state.open)}
    return record | ({} if state.certificate is None else {"certificate": state.certificate.record()})


def _part_record(state: FittedState) -> dict[str, Any]:
    """What was fitted on questions with options, or on open questions."""
    selection = state.selection
    return {
        "abstains": state.settings is None,
        "settings": None if state.settings is None else asdict(state.settings),
        "rows": state.development_rows,
        "loss": state.chosen.loss,
        "gradient_norm": state.chosen.gradient_norm,
        "feasible": selection.feasible,
        "searched": selection.searched,
        "changed": selection.changed,
        "tasks": {each.task: {"delta_cf": each.delta_cf, "delta_cs": each.delta_cs} for each in selection.changes},
    } | ({} if state.scale is None else {"scale": state.scale.record()})


def _print_fit(calibrator: SelectivePriorCalibrator, out: str) -> None:
    from unprior.calibration.decisions import method_name
    from unprior.calibration.show import outcome_table, settings_table

    state = calibrator.state_
    name = method_name(state.parameters.version, calibrator.epsilon_cs)
    for part in filter(None, (state, state.open)):
        rows = f"{part.development_rows:,} {'rows' if part.scale is None else 'rows of open questions'}"
        told = ""
        if part.certificate is None:
            told = (
                f" (loss {part.chosen.loss:.4f}, gradient {part.chosen.gradient_norm:.1e}); "
                f"{part.selection.feasible:,} of {part.selection.searched:,} settings feasible"
            )
        output.print(f"Fitted {name} on {rows}{told} → {out}", soft_wrap=True)
        if part.settings is not None:
            print_tables(settings_table(part), outcome_table(part))
    if state.certificate is not None and state.settings is not None:
        output.print(state.certificate.sentence)
