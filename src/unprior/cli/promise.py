"""The commands about promises: what pairs can promise, and whether a promise still holds."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from unprior.cli.console import AsJson, flag, output, print_json, print_tables
from unprior.cli.lazy import examples
from unprior.cli.options import option


@examples(
    "unprior plan --epsilon 0.04 --pairs 70",
    "unprior plan --epsilon 0.02 --target-mixture cdh-bench",
)
def plan(
    epsilon: Annotated[
        float, flag("Method", "ε: the largest rate of harm on new pairs.", "--epsilon", "--epsilon-cs")
    ] = 0.04,
    pairs: Annotated[
        int | None, flag("Method", "Development pairs that there will be; by default several numbers.", min=1)
    ] = None,
    delta: Annotated[float, option("delta")] = 0.1,
    tasks: Annotated[int, flag("Method", "Tasks that are promised together, such as MC and QA.", min=1, max=20)] = 2,
    target_mixture: Annotated[str | None, option("target_mixture")] = None,
    as_json: AsJson = False,
) -> None:
    """Say what so many development pairs can promise about new ones, before anyone labels anything."""
    from unprior.runs.promise import plan_promise

    planned = plan_promise(epsilon, pairs, delta=delta, tasks=tasks, target_mixture=target_mixture)
    if as_json:
        print_json(planned.record())
        return
    print_tables(planned.table)
    for sentence in planned.words:
        output.print(sentence)


@examples(
    "unprior monitor calibrator.json decisions.jsonl",
    "unprior monitor calibrator.json decisions.jsonl --figure promise.svg --alpha 0.01",
)
def monitor(
    calibrator: Annotated[Path, typer.Argument(metavar="CALIBRATOR", help="Calibrator with a certificate.")],
    decisions: Annotated[
        Path,
        typer.Argument(metavar="DECISIONS", help='Decisions of `unprior apply`, with "answer" where one was checked.'),
    ],
    alpha: Annotated[
        float, flag("Statistics", "How often it may call for a new calibration although the promise holds.")
    ] = 0.05,
    figure: Annotated[
        Path | None, flag("Output", "Also draw the harm over time (.svg, .png or .pdf).", "--figure")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Test the promise of a calibrator on labelled decisions; look as often as you like.

    Exit code 1 says that the promise was given up: calibrate again.
    """
    from unprior._files import refuse_overwriting
    from unprior.evaluation.monitor import monitor_file

    if figure is not None:
        refuse_overwriting(figure, calibrator, decisions)
    watched = monitor_file(calibrator, decisions, alpha=alpha)
    if figure is not None:
        watched.save_figure(figure)
    if as_json:
        print_json(watched.record())
    else:
        print_tables(watched.table)
        for sentence in watched.words:
            output.print(sentence)
    if not watched.stands:
        raise typer.Exit(1)
