"""What `--dry-run` prints: the configuration, what is stored already, and what requests to a server will take."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

from unprior._text import one_line
from unprior.cli.console import flag, output, print_json, print_quoted

if TYPE_CHECKING:
    from unprior.runs.config import RunConfig
    from unprior.scoring.cost import RunCost

DryRun = Annotated[
    bool,
    flag(
        "Output",
        "Only show the configuration as a file for --config, what is stored already, and with --engine openai "
        "what it would take: requests, tokens, bytes.",
        "--dry-run",
    ),
]
_LINES = {
    "requests": "requests",
    "prompt_tokens": "prompt tokens",
    "cached_tokens": "of these in the server's cache",
    "generated_tokens": "generated tokens",
    "sent_bytes": "bytes sent",
    "received_bytes": "bytes received",
    "stored_bytes": "bytes stored",
}


def print_plan(config: RunConfig, *, as_json: bool, views: Sequence[str] = (), limit: int | None = None,
               shard: str | None = None) -> None:  # fmt: skip
    """Show what a command would do, and do nothing; a person gets a file for ``--config`` with remarks in it.

    As JSON several models are a list, with the configuration of each.
    """
    from unprior.cli.progress import reporting
    from unprior.runs.run import configs_of_models
    from unprior.runs.score import plan_run

    configs = configs_of_models(config.models, config) if len(config.models) > 1 else [config]
    with reporting() as report:
        plans = [plan_run(each, views=views, limit=limit, shard=shard, report=report) for each in configs]
    if as_json:
        records = [
            {"config": each.as_dict(), "stored_results": plan.stored_results}
            | ({"open_examples": plan.open_examples, "open_measured": plan.open_measured} if plan.open_examples else {})
            | ({} if plan.cost is None else cost_record(plan.cost, plan.stored_examples or 0))
            for each, plan in zip(configs, plans, strict=True)
        ]
        print_json(records[0] if len(records) == 1 else records)
        return
    print_quoted(config.to_toml())
    for each, plan in zip(configs, plans, strict=True):
        results = "1 result is" if plan.stored_results == 1 else f"{plan.stored_results:,} results are"
        _remark(f"{results} stored in {each.output.folder}.")
        if plan.cost is not None:
            with output.capture() as shown:
                print_estimate(plan.cost, plan.stored_examples or 0)
            for line in shown.get().splitlines():
                _remark(line)
        if plan.open_examples:
            _remark(_open_remark(plan.open_examples, plan.open_measured))


def _open_remark(examples: int, measured: int) -> str:
    """What the figures of open questions rest on.

    >>> _open_remark(120, 4)
    '120 examples are open questions: measured on 4 of them, whose answers are not kept. A typical figure, no bound.'
    """
    count = "1 example is an open question" if examples == 1 else f"{examples:,} examples are open questions"
    return f"{count}: measured on {measured} of them, whose answers are not kept. A typical figure, no bound."


def _remark(text: str) -> None:
    """A comment of the file, in one line."""
    print(f"# {one_line(text)}".rstrip())


def print_estimate(cost: RunCost, stored: int) -> None:
    """Show a prediction; ``stored`` examples have all their results already and are not part of it."""
    from unprior.tables.terminal import plain_table

    table = plain_table(None, ("to do", "in total", "per example"), right=("in total", "per example"))
    table.add_row("examples", f"{cost.examples:,.0f}", "")
    for name, shown in _LINES.items():
        value = getattr(cost, name)
        table.add_row(shown, f"{value:,.0f}", f"{value / max(cost.examples, 1):,.1f}")
    output.print(table)
    already = "1 example is" if stored == 1 else f"{stored:,} examples are"
    output.print(f"{already} stored already. Nothing was scored now.", soft_wrap=True)
    output.print("Examples that lack anything count in full; cached tokens are for blocks of 16.", soft_wrap=True)


def cost_record(cost: RunCost, stored: int) -> dict[str, Any]:
    """The same for programs."""
    return {"stored": stored, **{name: round(value) for name, value in asdict(cost).items()}}
