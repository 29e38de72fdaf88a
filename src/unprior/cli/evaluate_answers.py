"""Raw answers of any model against a benchmark, without scores and without images."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from unprior.cli.console import AsJson, flag, print_json, print_tables, warn
from unprior.cli.data import ColumnNames, DataDir, VariantName, WorldSeed, look_up
from unprior.cli.lazy import examples


@examples(
    "unprior evaluate-answers cdh-bench answers.jsonl",
    "unprior evaluate-answers questions.jsonl answers.jsonl --split all --skip-missing",
)
def evaluate_answers(
    benchmark: Annotated[
        str, typer.Argument(metavar="BENCHMARK", help="A benchmark, or a file or table of questions.")
    ],
    answers: Annotated[
        Path,
        typer.Argument(
            metavar="ANSWERS", help="JSON lines with text, and example_id or pair_id, side and task, of each answer."
        ),
    ],
    split: Annotated[
        str | None, flag("Input", "Examples to evaluate; 'all' for every one. By default test, where there is one.")
    ] = None,
    variant: VariantName = None,
    column: ColumnNames = None,
    seed: WorldSeed = 0,
    data_dir: DataDir = None,
    skip_missing: Annotated[
        bool, flag("Input", "Leave out examples that have no answer, instead of refusing.", "--skip-missing")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Parse what a model wrote and print the original-model block of the main table, by subcategory, too."""
    from unprior.evaluation import raw_answers
    from unprior.scores.checked import warn_about_cut_off

    questions = look_up(benchmark, seed, variant, data_dir, column)
    if split is None:
        split = "test" if any(example.split == "test" for example in questions) else "all"
    chosen = None if split == "all" else split
    result = raw_answers.evaluate_answers(answers, questions, split=chosen, skip_missing=skip_missing)
    warn(*result.cautions)
    warn_about_cut_off(sum(task.cut_off for task in result.tasks), sum(task.right.total for task in result.tasks))
    if as_json:
        print_json(result.record())
        return
    print_tables(result.table, result.groups_table)
