"""Open answers on worlds that nothing was tuned on, and what an open question costs beside a greedy answer.

Run ``make bench-open``; it prints the tables and puts them into docs/explanation/open-answers.md. Scores and answers of
the worlds are kept in build/open, so that a second run only computes.
"""

from __future__ import annotations

import math
import statistics
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

import tiny_models
from engine import QUESTIONS, Work, best, make_queries
from markdown import markdown, publish
from unprior import ScoreTable, SelectivePriorCalibrator
from unprior.engines.protocol import Query, QueryFailure
from unprior.engines.transformers.engine import TransformersEngine
from unprior.prompts import PromptLayout
from unprior.runs.config import RunConfig
from unprior.runs.prepare import prepare_inputs
from unprior.runs.run import finish_run
from unprior.scores.schema import BoolArray
from unprior.scoring.open_answers import OpenAsker
from unprior.studies.beyond.open_answers import OpenAnswersResult, OpenOutcome, study_open_answers
from unprior.studies.inputs import StudyInputs
from unprior.studies.registry import STUDIES

WORLDS = (921, 922, 923)
"""Worlds of the microworld, of 300 pairs each."""
WORK = Path("build/open")
DRAWS = 40
"""Splits of every world that SPC is fitted on."""
EPSILON = 0.04
ARCHITECTURES = ("llava", "qwen3_vl", "gemma3", "qwen3_5")
"""Those of the engine benchmark."""
_END_ODDS = 3.0
"""Odds of the end token after every token. Models end a short answer with confidence; random weights never would, and
how far from it they are differs between architectures."""


def prepared(seed: int) -> StudyInputs:
    """The embedded model on a world, with open questions, and everything that the study can show."""
    folder = WORK / str(seed)
    finish_run(RunConfig.from_options(benchmark="microworld", seed=seed, task="both", out=folder))
    prepare_inputs(folder, [STUDIES["open-answers"]])
    return StudyInputs.from_run(folder)


def draw_pairs(table: ScoreTable, seed: int) -> BoolArray:
    """Rows of five pairs of every subcategory, drawn at random."""
    random, pairs, groups = np.random.default_rng(seed), table.column("pair_id"), table.column("subcategory")
    chosen: set[Any] = set()
    for group in sorted(set(groups)):
        own = sorted({pair for pair, other in zip(pairs, groups, strict=True) if other == group})
        chosen |= set(random.choice(own, 5, replace=False).tolist())
    return np.isin(pairs, list(chosen))


def over_draws(tables: Sequence[ScoreTable]) -> str:
    """SPC fitted on many draws of 70 pairs of every world, and judged on the other 230."""
    lines = []
    for retention in ("paper", "certified"):
        found = []
        for seed, table in zip(WORLDS, tables, strict=True):
            for draw in range(DRAWS):
                drawn = draw_pairs(table, 1000 * seed + draw)
                rest = table.take(~drawn)
                fitted = SelectivePriorCalibrator(retention=retention).fit(table.take(drawn), split=None)
                changed = fitted.predict(rest)
                change = rest.is_right(changed.final_positions).astype(float) - rest.is_right(rest.original_positions)
                found.append([change[rest.is_cf].mean(), change[~rest.is_cf].mean()])
        cf, cs = 100 * np.mean(found, axis=0)
        exceeded = np.mean([side < -EPSILON for _, side in found])
        lines.append([retention, f"{cf:+.1f} / {cs:+.1f}", f"{cf + 0.5 * cs:+.1f}", f"{100 * exceeded:.0f} %"])
    return markdown(["retention", "mean ΔCF / ΔCS", "U", f"draws with ΔCS below −{100 * EPSILON:g}"], lines)


def _outcomes(results: Sequence[OpenAnswersResult], kind: str) -> str:
    """A line for every method or variant: its changes by world, and their means."""
    lines = []
    for place, first in enumerate(results[0].of(kind)):
        each = [result.of(kind)[place] for result in results]
        assert all(one.name == first.name for one in each)
        lines.append(
            [
                first.label,
                *(f"{_points(one, 'cf')} / {_points(one, 'cs')}" for one in each),
                f"{_mean(each, 'cf'):+.1f} / {_mean(each, 'cs'):+.1f}",
                f"{_mean(each, 'cf') + 0.5 * _mean(each, 'cs'):+.1f}",
                _sums(each, "cf"),
                _sums(each, "cs"),
            ]
        )
    header = ["ΔCF / ΔCS", *(f"world {seed}" for seed in WORLDS), "mean", "U", "CF repairs/harms", "CS repairs/harms"]
    return markdown(header, lines)


def _delta(one: OpenOutcome, side: str) -> float:
    return float(100 * getattr(one.result, side).change.delta)


def _points(one: OpenOutcome, side: str) -> str:
    part = getattr(one.result, side)
    return f"{_delta(one, side):+.1f} [{100 * part.low:+.1f}, {100 * part.high:+.1f}]"


def _mean(each: Sequence[OpenOutcome], side: str) -> float:
    return statistics.fmean(_delta(one, side) for one in each)


def _sums(each: Sequence[OpenOutcome], side: str) -> str:
    changes = [getattr(one.result, side).change for one in each]
    return f"{sum(change.repairs for change in changes)}/{sum(change.harms for change in changes)}"


def _base(results: Sequence[OpenAnswersResult]) -> str:
    lines = []
    for seed, result in zip(WORLDS, results, strict=True):
        original, covered = result.spc.result.original, result.covered
        shares = [original.cf.value, original.cs.value, covered["cf"].value, covered["cs"].value]
        lines.append([str(seed), *(f"{share:.3f}" for share in shares), result.spc.chosen])
    return markdown(["world", "original CF", "original CS", "covered CF", "covered CS", "chosen"], lines)


def cost(architecture: str) -> list[str]:
    """Time and passes of an open question, all told, beside a greedy answer of a word to the same question."""
    with tempfile.TemporaryDirectory() as name:
        engine = TransformersEngine(tiny_models.build(architecture, Path(name), size="bench"), device="cpu")
    end = engine.encoder.end

    def more_ends(_module: Any, _arguments: Any, logits: torch.Tensor) -> torch.Tensor:
        changed = logits.clone()
        changed[..., end] = -math.inf
        changed[..., end] = changed.logsumexp(dim=-1) + math.log(_END_ODDS)
        return changed

    engine.model.get_output_embeddings().register_forward_hook(more_ends)
    layout = PromptLayout()
    images = [query.image for query in make_queries()[::2]]
    asked = [
        Query(image, layout.user_text(question, (), None), ())
        for image, question in zip(images, QUESTIONS, strict=True)
    ]

    def greedy() -> None:
        engine.max_new_tokens, stop = 2, engine.stop_tokens
        engine.stop_tokens = set()  # a word and the end of the turn, whatever the random weights say
        for query in asked:
            engine.original_answer(query.image, query.text)
        engine.stop_tokens = stop

    def openly() -> None:
        engine.max_new_tokens, stop = 2, engine.stop_tokens
        engine.stop_tokens = set()
        for one in asked:  # each question for the first time, one at a time, as `unprior ask --open` does
            (found,) = OpenAsker(engine).ask([one])
            if isinstance(found, QueryFailure):
                raise SystemExit(found.reason)
        engine.stop_tokens = stop

    greedy()
    openly()
    rounds: list[tuple[Work, Work]] = [(best(engine, greedy, 1), best(engine, openly, 1)) for _ in range(3)]
    plain, full = (min(each, key=lambda work: work.seconds) for each in zip(*rounds, strict=True))
    ratio = statistics.median(other.seconds / one.seconds for one, other in rounds)
    count = len(asked)
    return [
        architecture,
        *(f"{1000 * work.seconds / count:.0f} ms" for work in (plain, full)),
        *(f"{work.images / count:.1f}" for work in (plain, full)),
        *(f"{work.tokens / count:.0f}" for work in (plain, full)),
        f"{ratio:.2f}×",
    ]


def report() -> str:
    """All tables."""
    inputs = [prepared(seed) for seed in WORLDS]
    results = [study_open_answers(each) for each in inputs]
    kinds = [kind for kind in dict.fromkeys(each.kind for each in results[0].outcomes) if kind != "method"]
    parts = [
        f"Worlds {', '.join(map(str, WORLDS))}, embedded model, ε = {results[0].epsilon:.2f}, K = {results[0].count}. "
        f"Points with 95 % intervals.",
        _base(results),
        _outcomes(results, "method"),
        f"One split of a world into 70 development and 230 test pairs says little about ΔCS. Over {DRAWS} random "
        f"splits of each world:",
        over_draws([each.table.where(task="open") for each in inputs]),
    ]
    for kind in kinds:
        parts += [f"**{kind}**", _outcomes(results, kind)]
    header = ["open question", "greedy answer", "open", "images, greedy", "open", "tokens, greedy", "open", "ratio"]
    parts.append(markdown(header, [cost(architecture) for architecture in ARCHITECTURES]))
    return "\n\n".join(parts)


if __name__ == "__main__":
    publish(report, "open-answers", __doc__)
