"""The command of the methods that SPC is compared with."""

from __future__ import annotations

from typing import Annotated

import typer

from unprior.cli.calibrate import print_methods
from unprior.cli.console import AsJson, output, print_json
from unprior.cli.estimate import DryRun, print_plan
from unprior.cli.lazy import examples
from unprior.cli.options import takes_config
from unprior.cli.progress import reporting
from unprior.runs.config import RunConfig


@examples(
    "unprior baseline all",
    "unprior baseline vcd nolan --model Qwen/Qwen3-VL-8B-Instruct --benchmark cdh-bench --out run",
)
@takes_config(
    "model", "prompt", "batch_size", "max_new_tokens", "benchmark", "method", "output",
    leave_out=("uncertainty", "baselines"),
    keeps=("method", "batch_size", "max_new_tokens", "allow_censored"),
    texts={
        "out": "Folder for the store, the scores and the answers.",
        "epsilon_cs": "Permitted loss of commonsense accuracy, for SPC and the controls.",
    },
)  # fmt: skip
def baseline(
    names: Annotated[list[str], typer.Argument(metavar="NAME…", help="Methods, all, or open.", show_default=False)],
    *,
    config: RunConfig,
    dry_run: DryRun = False,
    as_json: AsJson = False,
) -> None:
    """Let other methods answer a benchmark, and compare them with SPC and with the original answers.

    Methods that ask the model: focus-on-vision, vcd, mfcd, pai, revis, revis-2.5, nolan. Controls on its scores:
    no-subtraction, fixed-strength, fixed-strength-gated, selected-strength, selected-strength-gated,
    direct-subtraction, cfg-score, learned-rule-fixed, learned-rule-direct, ungated-adaptive. All of these: all.

    Further decoders, which the paper does not have: cad-0.5, cad-1, cad-mask-0.1, cad-mask-0.01. These, vcd, pai and
    nolan are compared on open questions: open.

    Each method is tried first; one that the model cannot run is left out with the reason. What is missing is scored.
    Answers are stored as they come; the same command again computes only what is missing, and another one with the same
    --out adds its methods to the comparison and to the report of a run.
    """
    from unprior.baselines.names import split_names
    from unprior.runs.baselines import run_baselines

    config = config.with_options(baselines=split_names(names))
    if dry_run:
        print_plan(config, as_json=as_json)
        return
    with reporting() as report:
        compared = run_baselines(config, few_threads=True, report=report)
    if as_json:
        print_json(compared.comparison.records())
    else:
        print_methods(compared.comparison)
        for name, reason in compared.left_out.items():
            output.print(f"Left out: {name} ({reason})", soft_wrap=True)
        output.print(f"Answers: {compared.answers}", soft_wrap=True)
    if compared.summary.failures:
        raise typer.Exit(1)
