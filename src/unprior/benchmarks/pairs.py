"""The check of pairs for questions, before any model is asked."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from unprior.benchmarks.schema import Benchmark, Example
from unprior.scores.pairs import PairCheck, PairColumns, check_pairs, codes_of, refuse_too_few
from unprior.scores.schema import IntArray


def check_questions(benchmark: Benchmark) -> PairCheck:
    """Look for pairs that are not sound; examples without a pair are left alone.

    >>> from pathlib import Path
    >>> one = Example("1", Path("a.png"), "Is it red?", "qa", ("yes", "no"), pair_id=1, side="cf", split="dev")
    >>> print(check_questions(Benchmark("mine", [one])).problems[0])
    pair 1 (qa): has no commonsense (cs) side
    """
    examples = benchmark.examples
    paired = np.array([None not in (example.pair_id, example.side) for example in examples], dtype=np.bool_)

    def codes(*values: str) -> IntArray:
        return codes_of(pa.array(values, pa.string()))

    def identity(rows: IntArray) -> list[IntArray]:
        return [codes(*(_asked(examples[row]) + str(examples[row].image) for row in rows.tolist()))]

    return check_pairs(
        PairColumns(
            pair=codes(*(str(example.pair_id) for example in examples)),
            task=codes(*(example.task for example in examples)),
            is_cf=np.array([example.side == "cf" for example in examples], dtype=np.bool_),
            is_paired=paired,
            options=codes(*(repr(example.texts or example.labels) for example in examples)),
            identity=identity,
            split=codes(*(str(example.split) for example in examples)),
            describe=lambda row: (str(examples[row].pair_id), examples[row].task),
            line=lambda row: examples[row].line,
            question=codes(*(_asked(example) for example in examples)),
        )
    )


def refuse_unsound_questions(benchmark: Benchmark) -> None:
    """Raise an error that names the pairs that are not sound."""
    check_questions(benchmark).refuse(benchmark.source or f"benchmark {benchmark.name}")


def development_pairs(benchmark: Benchmark) -> dict[str, int]:
    """Number of development pairs of every task; so few that nothing can be learned from them are refused."""
    pairs: dict[str, set[int | str | None]] = {}
    for example in benchmark:
        members = pairs.setdefault(example.task, set())
        if example.split == "dev":
            members.add(example.pair_id)
    counts = {task: len(each) for task, each in pairs.items()}
    refuse_too_few(benchmark.source or f"benchmark {benchmark.name}", counts)
    return counts


def _asked(example: Example) -> str:
    return f"{example.question}\n{example.instruction or ''}"
