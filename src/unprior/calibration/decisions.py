"""What the calibrator decided for each example, and the sentence that explains it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from unprior._files import as_path
from unprior.calibration.explanation import explain
from unprior.calibration.gate import CONDITIONS, REASONS, Condition, Reason, Settings
from unprior.scores import ScoreTable
from unprior.scores.block import LabelArray, as_labels
from unprior.scores.files import finite_or_none, write_records
from unprior.scores.schema import BoolArray, CodeArray, IntArray
from unprior.scores.table import FloatArray
from unprior.tables.format import format_limit
from unprior.tables.records import to_pandas

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from unprior.plots.style import FigureStyle


@dataclass(frozen=True, slots=True)
class Decision:
    """The decision for one example.

    >>> from unprior import SelectivePriorCalibrator, synthesize
    >>> table = synthesize(seed=0)
    >>> decision = SelectivePriorCalibrator().fit(table).predict(table)[0]
    >>> decision.final in decision.candidates
    True
    """

    candidates: tuple[str, ...]
    original: str | None
    """The model's own answer; None when nothing could be parsed."""
    final: str | None
    """The answer after calibration."""
    revised: bool
    """Whether the proposal replaced the original answer."""
    proposal: str | None
    """The best corrected candidate; None from a calibrator that abstains, or was not fitted on such questions."""
    strength: float
    """Capped λ (standard) or its posterior mean (uncertainty-aware)."""
    margin: float
    """Lead of the proposal over its strongest rival, in probability."""
    condition: Condition | None
    """The support condition that the proposal meets, if any."""
    reason: Reason
    """The condition of a revision, or the first reason why there was none."""
    range_low: float
    """Smallest strength for which the proposal stays first; NaN if there is none."""
    range_high: float
    """Largest strength for which the proposal stays first; may be infinite; NaN if there is none."""
    support: float | None
    """r_U, uncertainty-aware only."""
    distance: float | None
    """d_dev, uncertainty-aware only."""
    corrected_scores: tuple[float, ...]
    """Centred image scores minus strength times centred prior scores, by candidate; of an open question on the scale
    that the calibrator brings them to."""
    prior_favourite: str
    """The candidate that wins without the image."""
    settings: Settings | None
    """The thresholds that were applied; None from a calibrator that abstains."""
    lead: float | None = None
    """Log-odds of the proposal against the original answer (with a certificate only)."""
    needed_lead: float | None = None
    """The lead that a revision must exceed; NaN for a task that the certificate does not cover."""
    promise: str | None = None
    """What the certificate promises about new pairs, in one sentence."""
    is_open: bool = False
    """Whether it is an open question, whose candidates are answers that the model proposed."""

    @property
    def radius(self) -> float:
        """Stability radius: how far the strength may move before the proposal changes."""
        return min(self.strength - self.range_low, self.range_high - self.strength)

    def explain(self, *, promise: bool = True, applied: bool = True) -> str:
        """One sentence a person understands; of a revision with a certificate, one more with the promise.

        A revision that was only observed (``applied=False``) is told as what would be done.
        """
        return explain(self, promise=promise, applied=applied)


def method_name(version: str, epsilon: float) -> str:
    """SPC with its version and limit, as tables and sentences name it.

    >>> method_name("standard", 0.04)
    'SPC (standard, ε = 0.04)'
    """
    return f"SPC ({version}, ε = {format_limit(epsilon)})"


@dataclass(frozen=True)
class Decisions:
    """Decisions for all rows of a table, column by column; index it for one :class:`Decision`.

    >>> from unprior import SelectivePriorCalibrator, synthesize
    >>> table = synthesize(seed=0)
    >>> decisions = SelectivePriorCalibrator().fit(table).predict(table)
    >>> len(decisions), sum(decisions.count_reasons().values()), decisions.to_arrow().num_rows
    (1200, 1200, 1200)
    >>> decisions.explain(0).startswith(("Kept", "Changed"))
    True
    """

    table: ScoreTable
    settings: Settings | None
    """The settings for questions with options, or those of a calibrator of open answers alone."""
    made_with: dict[str, Any]
    """The calibrator that decided: version, ε, and how the scores were made that it was fitted on."""
    final_positions: IntArray
    """Candidate position of the final answer, -1 for null."""
    revised: BoolArray
    proposal_positions: IntArray
    """Candidate position of the proposal; -1 from a calibrator that abstains, or was not fitted on such questions."""
    strength: FloatArray
    margin: FloatArray
    condition: CodeArray
    """Code of the support condition (see ``CONDITIONS``), -1 for none."""
    reason: CodeArray
    """Code of the reason (see ``REASONS``)."""
    range_low: FloatArray
    range_high: FloatArray
    support: FloatArray | None
    distance: FloatArray | None
    lead: FloatArray | None = None
    needed_lead: FloatArray | None = None
    stable: ScoreTable | None = None
    """The scores that were decided on, where a stable prior or the scale of open answers changed the table's own."""
    open_settings: Settings | None = None
    """The settings for open questions."""

    @property
    def method(self) -> str:
        """The method that decided, with its version and limit, as tables and sentences name it.

        >>> from unprior import SelectivePriorCalibrator, synthesize
        >>> table = synthesize(seed=0)
        >>> SelectivePriorCalibrator().fit(table).predict(table).method
        'SPC (standard, ε = 0.04)'
        """
        return method_name(self.made_with["version"], self.made_with["epsilon_cs"])

    @property
    def promise(self) -> str | None:
        """What the calibrator promises about new pairs, in one sentence; None under the paper's rule.

        >>> from unprior import SelectivePriorCalibrator, synthesize
        >>> table = synthesize(seed=0)
        >>> SelectivePriorCalibrator(retention="certified").fit(table).predict(table).promise[:52]
        'On new pairs drawn like these, with 90 % confidence '
        """
        certificate: dict[str, Any] = self.made_with.get("certificate") or {}
        return certificate.get("sentence")

    @property
    def final(self) -> LabelArray:
        """Label of every final answer, None for no answer; compare it with ``table.answer``."""
        return as_labels(self.table.candidate_names(self.final_positions))

    @property
    def proposal(self) -> LabelArray:
        """Label of every proposal; None from a calibrator that abstains."""
        return as_labels(self.table.candidate_names(self.proposal_positions))

    def __len__(self) -> int:
        """Count the decisions."""
        return len(self.final_positions)

    def __iter__(self) -> Iterator[Decision]:
        """Go through the decisions one by one."""
        return (self[row] for row in range(len(self)))

    def __getitem__(self, row: int) -> Decision:
        """Gather everything about one row."""
        row = range(len(self))[row]
        cells = slice(self.table.offsets[row], self.table.offsets[row + 1])
        candidates = tuple(self.table.candidate_lists[row].as_py())
        decided_on = self.table if self.stable is None else self.stable
        image, prior = decided_on.image_scores[cells], decided_on.prior_scores[cells]
        corrected = (image - image.mean()) - self.strength[row] * (prior - prior.mean())

        def name(position: int) -> str | None:
            return candidates[position] if position >= 0 else None

        code, is_open = int(self.condition[row]), bool(self.table.is_open[row])
        return Decision(
            candidates=candidates,
            original=name(int(self.table.original_positions[row])),
            final=name(int(self.final_positions[row])),
            revised=bool(self.revised[row]),
            proposal=name(int(self.proposal_positions[row])),
            strength=float(self.strength[row]),
            margin=float(self.margin[row]),
            condition=CONDITIONS[code] if code >= 0 else None,
            reason=REASONS[int(self.reason[row])],
            range_low=float(self.range_low[row]),
            range_high=float(self.range_high[row]),
            support=None if self.support is None else float(self.support[row]),
            distance=None if self.distance is None else float(self.distance[row]),
            corrected_scores=tuple(corrected.tolist()),
            prior_favourite=candidates[int(np.argmax(prior))],
            settings=self.open_settings if is_open else self.settings,
            lead=None if self.lead is None else float(self.lead[row]),
            needed_lead=None if self.needed_lead is None else float(self.needed_lead[row]),
            promise=self.promise,
            is_open=is_open,
        )

    def explain(self, row: int) -> str:
        """Why this row was revised or left alone, in one sentence."""
        return self[row].explain()

    def count_reasons(self) -> dict[Reason, int]:
        """How often each reason occurs, in the order of the checks."""
        counts = np.bincount(self.reason, minlength=len(REASONS)).tolist()
        return {reason: count for reason, count in zip(REASONS, counts, strict=True) if count}

    def to_arrow(self, *, explanations: bool = False) -> pa.Table:
        """Columns of the decisions with what identifies each row, and if wanted a sentence for each."""
        source = self.table.arrow
        columns: dict[str, pa.Array] = {
            name: source.column(name)
            for name in ("model", "benchmark", "example_id", "pair_id", "side", "task", "split")
            if source.column(name).null_count < len(self)
        }
        columns["original"] = source.column("original")
        columns["final"] = pa.array(self.final, pa.string())
        columns["proposal"] = pa.array(self.proposal, pa.string())
        columns["strength"] = pa.array(self.strength)
        columns["margin"] = pa.array(self.margin)
        columns["revised"] = pa.array(self.revised)
        columns["condition"] = _decode(self.condition, CONDITIONS)
        columns["reason"] = _decode(self.reason, REASONS)
        if self.lead is not None:
            columns["lead"] = pa.array(self.lead)
        columns["range_low"] = pa.array(self.range_low)
        columns["range_high"] = pa.array(self.range_high)
        if self.support is not None:
            columns["support"] = pa.array(self.support)
        if self.distance is not None:
            columns["distance"] = pa.array(self.distance)
        if explanations:
            columns["explanation"] = pa.array([each.explain(promise=False) for each in self], pa.string())
        return pa.table(columns)

    def to_pandas(self, *, explanations: bool = False) -> pd.DataFrame:
        """A data frame with one row per decision: labels and no positions, and if wanted a sentence for each.

        >>> from unprior import SelectivePriorCalibrator, synthesize
        >>> table = synthesize(seed=0)
        >>> frame = SelectivePriorCalibrator().fit(table).predict(table).to_pandas()
        >>> frame.loc[frame["revised"], "final"].isin(["yes", "no"]).any().item()
        True
        """
        return to_pandas(self.to_arrow(explanations=explanations).to_pylist())

    def plot(self, ax: Axes | None = None, style: FigureStyle | None = None) -> Axes:
        """Draw how often each reason occurs, on given axes or on new ones; returns the axes."""
        from unprior.calibration.show import plot_reasons

        return plot_reasons(self, ax, style)

    def _repr_html_(self) -> str:
        """Decisions by reason and the first ones with their explanations, for notebooks."""
        from unprior.calibration.show import decisions_html

        return decisions_html(self)

    def write(self, path: str | Path, *, explanations: bool = False) -> None:
        """Write ``.jsonl`` (one line per row, in order) or ``.parquet``; infinity and NaN become null in JSON."""
        arrow = self.to_arrow(explanations=explanations)
        note = {"scores": [record.record() for record in self.table.provenance], "calibrator": self.made_with}
        write_records(as_path("path", path), arrow, _json_rows(arrow), json.dumps(note, ensure_ascii=False))


def _json_rows(arrow: pa.Table) -> Iterator[dict[str, Any]]:
    for batch in arrow.to_batches(max_chunksize=10_000):
        for row in batch.to_pylist():
            row["range_low"], row["range_high"] = (
                finite_or_none(row["range_low"]),
                finite_or_none(row["range_high"]),
            )
            yield row


def _decode(codes: CodeArray, names: tuple[Any, ...]) -> pa.Array:
    values = pa.array([str(name) for name in names], pa.string())
    return values.take(pa.array(np.where(codes < 0, 0, codes), mask=codes < 0))
