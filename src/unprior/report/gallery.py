"""Real examples for the page: what was repaired, what was harmed, and what the gate kept."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest

import numpy as np

from unprior.benchmarks.schema import Benchmark, Example
from unprior.calibration import Decision, Decisions
from unprior.errors import UnpriorError
from unprior.evaluation.comparison import group_rows
from unprior.evaluation.metrics import correct
from unprior.report.html import embed_image
from unprior.scores.schema import OPEN, BoolArray, IntArray

OUTCOMES = {"repaired": "Repaired", "harmed": "Harmed", "kept": "Kept by the gate"}
"""Groups of the gallery and their names."""
DEFAULT_LIMITS = {"repaired": 24, "harmed": 18, "kept": 18}
"""How many examples of each group the page shows at most."""
_IMAGE_SIDE = 280
_IMAGE_QUALITY = 78


@dataclass(frozen=True, slots=True)
class Bar:
    """One score of one candidate, centred over the candidates."""

    value: float
    start: float
    """Left end in percent of the bar's field."""
    width: float
    """Length in percent of the bar's field."""
    first: bool
    """Whether it is the highest of its kind."""


@dataclass(frozen=True, slots=True)
class CandidateBars:
    """One candidate with its three scores."""

    label: str
    text: str | None
    """What a letter stands for, where that is known."""
    correct: bool
    image: Bar
    prior: Bar
    corrected: Bar


@dataclass(frozen=True, slots=True)
class GalleryCard:
    """One example as the gallery shows it."""

    outcome: str
    """A key of ``OUTCOMES``."""
    right: bool
    """Whether the final answer is right."""
    proposal_right: bool
    """Whether the proposal is right (for what the gate kept)."""
    pair: str
    task: str
    side: str
    subcategory: str | None
    question: str | None
    image: str | None
    """A data URI."""
    missing: str | None
    """Why there is no image."""
    original: str
    final: str
    answer: str
    candidates: tuple[CandidateBars, ...]
    zero: float
    """Where score 0 lies in the bars' field, in percent."""
    strength: float
    margin: float
    stable_range: str
    """The strengths for which the proposal stays first, in words."""
    explanation: str


@dataclass(frozen=True, slots=True)
class Gallery:
    """The cards, and of how many examples they were chosen."""

    cards: tuple[GalleryCard, ...]
    totals: dict[str, int]
    """Examples of each outcome in the decisions, shown or not."""

    def shown(self, outcome: str) -> int:
        """How many cards have this outcome."""
        return sum(card.outcome == outcome for card in self.cards)


def choose_gallery(
    decisions: Decisions, benchmark: Benchmark | None = None, limits: dict[str, int] | None = None
) -> Gallery:
    """Choose examples of every outcome, spread over tasks, sides and subcategories in the order of the table.

    >>> from unprior import SelectivePriorCalibrator, synthesize
    >>> table = synthesize(seed=0)
    >>> gallery = choose_gallery(SelectivePriorCalibrator().fit(table).predict(table.where(split="test")))
    >>> gallery.shown("repaired"), gallery.totals["repaired"] >= 24
    (24, True)
    """
    examples = {} if benchmark is None else {example.example_id: example for example in benchmark}
    if examples and not examples.keys() & set(decisions.table.column("example_id")):
        raise UnpriorError(
            f"no row of the score table belongs to an example of benchmark {benchmark.name if benchmark else ''}; "
            f"give the benchmark that was scored (they are joined by example_id)"
        )
    cards, totals = [], {}
    for outcome, members in _outcomes(decisions).items():
        totals[outcome] = int(members.sum())
        chosen = _spread(decisions, members)[: (limits or DEFAULT_LIMITS)[outcome]]
        cards += [_card(decisions, row, outcome, examples) for row in chosen]
    return Gallery(tuple(cards), totals)


def _outcomes(decisions: Decisions) -> dict[str, BoolArray]:
    table = decisions.table
    before, after = correct(table, table.original_positions), correct(table, decisions.final_positions)
    proposal = decisions.proposal_positions
    kept = ~decisions.revised & (proposal >= 0) & (proposal != table.original_positions)
    return {"repaired": ~before & after, "harmed": before & ~after, "kept": kept}


def _spread(decisions: Decisions, members: BoolArray) -> list[int]:
    """Rows in an order that goes round the groups, so that the first few are not all of one kind."""
    rows = np.flatnonzero(members)
    if not len(rows):
        return []
    groups: list[IntArray] = list(group_rows(decisions.table.take(rows), "subcategory", "task", "side").values())
    return [int(rows[row]) for turn in zip_longest(*groups) for row in turn if row is not None]


def _card(decisions: Decisions, row: int, outcome: str, examples: dict[str, Example]) -> GalleryCard:
    table = decisions.table
    record = table.arrow.slice(row, 1).to_pylist()[0]
    example = examples.get(record["example_id"])
    named = with_texts(decisions[row], example)
    labels, texts = record["candidates"], None if example is None else example.texts
    image, missing = (None, None) if example is None else embed_image(example.image, _IMAGE_SIDE, _IMAGE_QUALITY)
    answer = int(table.answer_positions[row])  # negative where no candidate of an open question is right

    def is_right(position: int) -> bool:
        return bool(table.is_right(np.array([position]), np.array([row]))[0])

    shown = table if decisions.stable is None or record["task"] != OPEN else decisions.stable  # one scale for all bars
    cells = slice(table.offsets[row], table.offsets[row + 1])
    image_scores, prior_scores = (scores[cells].tolist() for scores in (shown.image_scores, shown.prior_scores))
    bars, zero = _bars(image_scores, prior_scores, decisions[row].corrected_scores)
    return GalleryCard(
        outcome=outcome,
        right=is_right(decisions.final_positions[row]),
        proposal_right=is_right(decisions.proposal_positions[row]),
        pair=str(record["pair_id"]),
        task=record["task"],
        side=record["side"],
        subcategory=record["subcategory"],
        question=None if example is None else example.question,
        image=image,
        missing=missing,
        original="no answer" if named.original is None else named.original,
        final="no answer" if named.final is None else named.final,
        answer=named.candidates[answer] if answer >= 0 else record["answer"],
        candidates=tuple(
            CandidateBars(label, None if texts is None else texts[position], is_right(position), *kinds)
            for position, (label, *kinds) in enumerate(zip(labels, *bars, strict=True))
        ),
        zero=zero,
        strength=named.strength,
        margin=named.margin,
        stable_range=range_text(named.range_low, named.range_high),
        explanation=named.explain(promise=False),
    )


def range_text(low: float, high: float) -> str:
    """The ends of a stable range in words.

    >>> range_text(0.25, 1.5), range_text(0.5, math.inf), range_text(math.nan, math.nan)
    ('0.25 to 1.50', '0.50 to ∞', 'for no single λ')
    """
    if math.isnan(low):
        return "for no single λ"
    return f"{low:.2f} to {f'{high:.2f}' if math.isfinite(high) else '∞'}"


def with_texts(decision: Decision, example: Example | None) -> Decision:
    """The same decision about “B: six fingers” instead of “B”, so that its sentence can be read alone."""
    if example is None or example.texts is None:
        return decision
    texts = zip(decision.candidates, example.texts, strict=True)
    names: dict[str | None, str] = {label: f"{label}: {text}" for label, text in texts}
    return replace(
        decision,
        candidates=tuple(names.values()),
        original=names.get(decision.original),
        final=names.get(decision.final),
        proposal=names.get(decision.proposal),
        prior_favourite=names[decision.prior_favourite],
    )


def _bars(*kinds: Sequence[float]) -> tuple[list[list[Bar]], float]:
    """Bars of several kinds of scores on one scale around zero, and where zero lies."""
    centred = [np.asarray(scores) - np.mean(scores) for scores in kinds]
    low = min(float(scores.min()) for scores in centred)
    high = max(float(scores.max()) for scores in centred)
    span = (high - low) or 1.0
    zero = -100 * low / span
    bars = []
    for scores in centred:
        best = int(np.argmax(scores))
        lengths = (100 * scores / span).tolist()
        bars.append([
            Bar(float(scores[place]), min(zero, zero + length), abs(length), place == best)
            for place, length in enumerate(lengths)
        ])  # fmt: skip
    return bars, zero
