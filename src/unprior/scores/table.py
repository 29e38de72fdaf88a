"""Score tables in memory: validated Arrow columns with NumPy views of what the method computes on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pydantic import ValidationError

from unprior._validation import describe_validation_error
from unprior.errors import InvalidScoresError, RowProblem, UnpriorError
from unprior.scores.block import Block, LabelArray, as_labels
from unprior.scores.conform import conform
from unprior.scores.messages import no_such_row
from unprior.scores.open_rows import merge_open_rows, right_cells
from unprior.scores.provenance import Provenance, from_metadata, merge_provenance, records_about
from unprior.scores.schema import (
    NO_ANSWER,
    OTHER_RIGHT_ANSWER,
    SCHEMA,
    BoolArray,
    IntArray,
    ScoreRow,
    find_problems,
    list_offsets,
    open_rows,
    position_in_row,
    rows_to_arrow,
)

if TYPE_CHECKING:
    import pandas as pd

FloatArray = NDArray[np.float64]


class ScoreTable:
    """Examples with their candidate scores, one row per example; immutable.

    Make one with :meth:`from_rows`, :meth:`from_arrow` or :meth:`read`; all of them validate.

    >>> table = ScoreTable.from_rows([
    ...     {"pair_id": 1, "side": side, "task": "qa", "split": "dev", "candidates": ["yes", "no"],
    ...      "image_scores": scores, "prior_scores": [-0.1, -2.4], "original": "yes", "answer": answer}
    ...     for side, scores, answer in [("cf", [-0.4, -1.1], "no"), ("cs", [-0.1, -2.6], "yes")]
    ... ])
    >>> len(table), table.answer.tolist(), table.answer_positions.tolist()
    (2, ['no', 'yes'], [1, 0])
    >>> len(table.where(side="cf"))
    1
    """

    def __init__(
        self,
        arrow: pa.Table,
        *,
        skipped: tuple[RowProblem, ...] = (),
        lines: Sequence[int] | IntArray | None = None,
        source: str | None = None,
        provenance: Sequence[Provenance] = (),
    ) -> None:
        """Wrap columns that are known to be valid; users call the class methods."""
        self.arrow = arrow
        self.skipped = skipped
        """Invalid rows that were left out on the way in."""
        self.lines: Sequence[int] | IntArray = range(1, len(arrow) + 1) if lines is None else lines
        """Where each row stood in the file it was read from."""
        self.source = source
        """The file it was read from, if it was."""
        self.provenance = tuple(provenance)
        """How the scores were made: one record for each model and benchmark, as far as it is known."""
        self.pairs_are_sound = False
        """Whether its pairs were checked, so that they need not be checked again."""

    @classmethod
    def from_rows(
        cls,
        rows: Sequence[Mapping[str, Any]],
        *,
        skip_invalid: bool = False,
        require_answers: bool = True,
        provenance: Sequence[Provenance] = (),
    ) -> ScoreTable:
        """Validate dictionaries with the fields of :class:`~unprior.scores.ScoreRow`."""
        parsed, lines, problems = [], [], []
        for number, row in enumerate(rows, start=1):
            try:
                parsed.append(ScoreRow.model_validate(dict(row)))
                lines.append(number)
            except ValidationError as error:
                problems.append(RowProblem(number, describe_validation_error(error)))
        return cls.from_arrow(
            rows_to_arrow(parsed),
            source="rows",
            lines=lines,
            earlier_problems=problems,
            skip_invalid=skip_invalid,
            require_answers=require_answers,
            provenance=provenance,
        )

    @classmethod
    def from_arrow(
        cls,
        table: pa.Table,
        *,
        source: str = "table",
        lines: Sequence[int] | None = None,
        earlier_problems: Sequence[RowProblem] = (),
        skip_invalid: bool = False,
        require_answers: bool = True,
        provenance: Sequence[Provenance] = (),
    ) -> ScoreTable:
        """Validate columns; ``lines`` says where each row stood in ``source``.

        Written forms of one answer to an open question become one candidate (:mod:`unprior.scores.open_rows`).
        How the scores were made is read from the schema's metadata unless ``provenance`` says it.
        """
        provenance = provenance or from_metadata(table.schema.metadata, source)
        conformed = conform(table, source)
        found = find_problems(conformed, require_answers=require_answers)
        line_of: Sequence[int] = range(1, len(conformed) + 1) if lines is None else lines
        problems = [*earlier_problems, *(RowProblem(line_of[row], why) for row, why in found.items())]
        problems.sort(key=lambda problem: problem.line)
        if problems and not skip_invalid:
            raise InvalidScoresError(source, len(conformed) + len(earlier_problems), tuple(problems))
        if found:
            keep = np.ones(len(conformed), dtype=np.bool_)
            keep[list(found)] = False
            conformed = conformed.filter(pa.array(keep))
            line_of = [line for line, kept in zip(line_of, keep.tolist(), strict=True) if kept]
        if len(conformed) == 0:
            raise UnpriorError(f"{source}: no {'valid ' if problems else ''}rows; there is nothing to work on")
        return cls(
            merge_open_rows(conformed), skipped=tuple(problems), lines=line_of, source=source, provenance=provenance
        )

    @classmethod
    def read(cls, path: str | Path, *, skip_invalid: bool = False, require_answers: bool = True) -> ScoreTable:
        """Read JSONL or Parquet (also the published artefact layout); see :func:`unprior.read_scores`."""
        from unprior.scores.files import read_scores

        return read_scores(path, skip_invalid=skip_invalid, require_answers=require_answers)

    @classmethod
    def from_pandas(
        cls, frame: pd.DataFrame, *, skip_invalid: bool = False, require_answers: bool = True
    ) -> ScoreTable:
        """Validate a data frame with the columns of :meth:`to_pandas`; missing values count as not given.

        >>> from unprior import synthesize
        >>> table = synthesize(seed=0)
        >>> ScoreTable.from_pandas(table.to_pandas()).arrow.equals(table.arrow)
        True
        """
        from unprior.scores.frames import table_from_pandas

        return table_from_pandas(frame, skip_invalid=skip_invalid, require_answers=require_answers)

    def to_pandas(self) -> pd.DataFrame:
        """A data frame with one row per example: labels and no positions, lists as Python lists.

        >>> from unprior import synthesize
        >>> synthesize(seed=0).to_pandas()["side"].value_counts().to_dict()
        {'cf': 600, 'cs': 600}
        """
        from unprior.scores.frames import table_to_pandas

        return table_to_pandas(self)

    def write(self, path: str | Path) -> None:
        """Write ``.jsonl`` or ``.parquet``; the file appears whole or not at all."""
        from unprior.scores.files import write_scores

        write_scores(self, path)

    def __len__(self) -> int:
        """Count the examples."""
        return int(self.arrow.num_rows)

    def __repr__(self) -> str:
        """Show size and candidate counts."""
        counts = ", ".join(str(count) for count in np.unique(self.candidate_counts))
        return f"ScoreTable({len(self)} rows, K in {{{counts}}})"

    def _repr_html_(self) -> str:
        """Size, models, benchmarks, tasks, splits and the first rows, for notebooks."""
        from unprior.scores.frames import table_html

        return table_html(self)

    def column(self, name: str) -> list[Any]:
        """Values of a column as Python objects."""
        values: list[Any] = self.arrow.column(name).to_pylist()
        return values

    def values_of(self, name: str) -> set[Any]:
        """The different values of a column."""
        return set(pc.unique(self.arrow.column(name)).to_pylist())

    def codes(self, *names: str) -> tuple[IntArray, list[tuple[Any, ...]]]:
        """Group rows by some columns: a group number per row and the values of each group.

        >>> table = ScoreTable.from_rows([
        ...     {"pair_id": 1, "side": side, "task": "qa", "candidates": ["yes", "no"], "original": None,
        ...      "image_scores": [0, -1], "prior_scores": [0, -1], "answer": "no"} for side in ("cf", "cs")])
        >>> table.codes("side")[1]
        [('cf',), ('cs',)]
        """
        code = np.zeros(len(self), dtype=np.int64)
        labels: list[tuple[Any, ...]] = [()]
        for name in names:
            encoded = self.arrow.column(name).combine_chunks().dictionary_encode(null_encoding="encode")
            values = encoded.dictionary.to_pylist()
            indices = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
            combined = code * len(values) + indices
            used, code = np.unique(combined, return_inverse=True)
            labels = [(*labels[key // len(values)], values[key % len(values)]) for key in used.tolist()]
        return code, labels

    def take(self, rows: IntArray | BoolArray) -> ScoreTable:
        """Choose rows by position or by mask."""
        if rows.dtype == np.bool_ and rows.all():
            return self
        chosen = pa.array(rows)
        filtered = self.arrow.filter(chosen) if rows.dtype == np.bool_ else self.arrow.take(chosen)
        return ScoreTable(
            filtered, lines=self._line_numbers[rows], source=self.source, provenance=self._provenance_of(filtered)
        )

    def mask(self, **values: Any) -> BoolArray:
        """Which rows have the given values in the named columns; a value of None asks for nothing.

        No such row is an error that says which values there are.
        """
        unknown = [name for name in values if name not in self.arrow.column_names]
        if unknown:
            raise UnpriorError(f"no column {', '.join(unknown)}; there are {', '.join(self.arrow.column_names)}")
        mask = np.ones(len(self), dtype=np.bool_)
        for name, value in values.items():
            if value is None:
                continue
            try:
                wanted = pa.scalar(value, self.arrow.schema.field(name).type)
                mask &= pc.fill_null(pc.equal(self.arrow.column(name), wanted), False).to_numpy()
            except pa.ArrowException:  # a value of another type, as text for numeric pair ids
                mask[:] = False
            if not mask.any():
                raise UnpriorError(no_such_row(self.column(name), values, name))
        return mask

    def where(self, **values: Any) -> ScoreTable:
        """Rows with the given values, e.g. ``table.where(split="dev", task="mc")``; see :meth:`mask`."""
        return self.take(self.mask(**values))

    def with_columns(self, **values: str) -> ScoreTable:
        """Set text columns such as ``split`` or ``model`` to one value in every row."""
        arrow = self.arrow
        for name, value in values.items():
            column = pa.repeat(pa.scalar(value, pa.string()), len(self))
            arrow = arrow.set_column(arrow.column_names.index(name), name, column)
        renamed = {name: value for name, value in values.items() if name in ("model", "benchmark")}
        return self._changed(arrow, renamed)

    def with_column(self, name: str, values: Sequence[Any]) -> ScoreTable:
        """Replace a column by other valid values, such as the pair ids of pairs that were drawn twice."""
        entries = [list(value.items()) if isinstance(value, Mapping) else value for value in values]
        column = pa.array(entries, None if name == "pair_id" else self.arrow.schema.field(name).type)
        changed = self._set(name, column)
        return changed if name != "aliases" else self._changed(merge_open_rows(changed.arrow), {})

    def with_prior_scores(self, prior: FloatArray) -> ScoreTable:
        """Replace the prior scores, given flattened like :attr:`prior_scores`."""
        return self._with_scores("prior_scores", prior)

    def with_image_scores(self, image: FloatArray) -> ScoreTable:
        """Replace the image scores, given flattened like :attr:`image_scores`."""
        return self._with_scores("image_scores", image)

    @cached_property
    def _line_numbers(self) -> IntArray:
        lines = self.lines
        return np.arange(lines.start, lines.stop) if isinstance(lines, range) else np.asarray(lines, dtype=np.int64)

    @cached_property
    def candidate_lists(self) -> pa.ListArray:
        """Candidates of every row, as one Arrow array."""
        return self.arrow.column("candidates").combine_chunks()

    @cached_property
    def offsets(self) -> IntArray:
        """Where each row starts in the flattened candidates and scores."""
        return list_offsets(self.candidate_lists)

    @cached_property
    def candidate_counts(self) -> IntArray:
        """K of every row."""
        return np.diff(self.offsets)

    @cached_property
    def image_scores(self) -> FloatArray:
        """Image scores of all rows, flattened."""
        return self._flat("image_scores")

    @cached_property
    def prior_scores(self) -> FloatArray:
        """Prior scores of all rows, flattened."""
        return self._flat("prior_scores")

    @cached_property
    def original(self) -> LabelArray:
        """Label of the original answer, None where nothing could be parsed."""
        return as_labels(self.column("original"))

    @cached_property
    def answer(self) -> LabelArray:
        """Label of the correct answer, None where it is unknown."""
        return as_labels(self.column("answer"))

    @cached_property
    def original_positions(self) -> IntArray:
        """Candidate position of the original answer, -1 for null."""
        return position_in_row(self.arrow.column("original").combine_chunks(), self.candidate_lists)

    @cached_property
    def answer_positions(self) -> IntArray:
        """Candidate position of a correct answer, -1 for unknown, -2 for one that is not among the candidates."""
        return position_in_row(self.arrow.column("answer").combine_chunks(), self.candidate_lists)

    @cached_property
    def is_labelled(self) -> BoolArray:
        """Whether the correct answer of each row is known, among its candidates or not."""
        return np.asarray(self.answer_positions != NO_ANSWER)

    @cached_property
    def is_covered(self) -> BoolArray:
        """Whether the candidates of each row hold a right answer."""
        return np.asarray(self.answer_positions >= 0)

    @cached_property
    def is_open(self) -> BoolArray:
        """Whether each row is an open question."""
        return open_rows(self.arrow.column("task"))

    def is_right(self, positions: IntArray, rows: IntArray | None = None) -> BoolArray:
        """Whether the candidates at these positions are right, of all rows or of some; no answer never is.

        Of an open question, several candidates may be right through its aliases.
        """
        chosen = slice(None) if rows is None else rows
        right = (positions >= 0) & (positions == self.answer_positions[chosen])
        if self._right_cells is not None:
            right |= (positions >= 0) & self._right_cells[self.offsets[:-1][chosen] + np.maximum(positions, 0)]
        return np.asarray(right | (self.is_open[chosen] & (positions == OTHER_RIGHT_ANSWER)))

    @cached_property
    def _right_cells(self) -> BoolArray | None:
        return right_cells(self.arrow, self.offsets)

    @cached_property
    def is_cf(self) -> BoolArray:
        """Whether each row shows the counterfactual image."""
        mask: BoolArray = pc.fill_null(pc.equal(self.arrow.column("side"), "cf"), False).to_numpy()
        return mask

    @cached_property
    def is_bounded(self) -> BoolArray:
        """Whether each row has a score that is only an upper bound."""
        marks = self.arrow.column("censored").combine_chunks()
        row_of_mark = np.repeat(np.arange(len(self)), np.diff(list_offsets(marks)))
        return np.bincount(row_of_mark[marks.flatten().to_numpy(zero_copy_only=False)], minlength=len(self)) > 0

    @cached_property
    def is_paired(self) -> BoolArray:
        """Whether each row says which side of a pair it shows."""
        mask: BoolArray = pc.is_valid(self.arrow.column("side")).to_numpy()
        return mask

    @cached_property
    def is_matched(self) -> BoolArray:
        """Whether each row is a side of a matched pair, if it says its side; rows of a log are not."""
        return np.asarray(pc.fill_null(self.arrow.column("matched"), True).to_numpy())

    def blocks(self, max_rows: int = 1 << 15) -> Iterator[Block]:
        """Go through the table in blocks of equal K and bounded size.

        Any mixture of candidate counts is fine; memory is bounded by ``max_rows``.
        """
        for count in np.unique(self.candidate_counts).tolist():
            members = np.flatnonzero(self.candidate_counts == count)
            for start in range(0, len(members), max_rows):
                rows = members[start : start + max_rows]
                cells = self.offsets[rows] + np.arange(count)[:, None]
                yield Block(
                    rows,
                    self.image_scores[cells],
                    self.prior_scores[cells],
                    self.original_positions[rows],
                    self.answer_positions[rows],
                )

    def candidate_names(self, position: IntArray) -> list[str | None]:
        """Candidate text at a position of every row; None for a negative position."""
        cells = pa.array(np.where(position < 0, 0, self.offsets[:-1] + position), mask=position < 0)
        names: list[str | None] = self.candidate_lists.flatten().take(cells).to_pylist()
        return names

    def _with_scores(self, name: str, values: FloatArray) -> ScoreTable:
        lists = pa.ListArray.from_arrays(pa.array(self.offsets.astype(np.int32)), pa.array(values))
        return self._set(name, lists)

    def _set(self, name: str, column: pa.Array) -> ScoreTable:
        return self._changed(self.arrow.set_column(self.arrow.column_names.index(name), name, column), {})

    def with_provenance(self, **changes: Any) -> ScoreTable:
        """Change what is noted about how the scores were made, e.g. ``table.with_provenance(prior="white")``."""
        return self._changed(self.arrow, changes)

    def _changed(self, arrow: pa.Table, noted: Mapping[str, Any]) -> ScoreTable:
        """The same rows with other columns."""
        records = merge_provenance([[record.model_copy(update=dict(noted)) for record in self.provenance]])
        return ScoreTable(arrow, skipped=self.skipped, lines=self.lines, source=self.source, provenance=records)

    def _provenance_of(self, rows: pa.Table) -> tuple[Provenance, ...]:
        """Records of the models and benchmarks that are left among some of the rows."""
        if len(self.provenance) < 2:
            return self.provenance
        return records_about(self.provenance, *(ScoreTable(rows).values_of(name) for name in ("model", "benchmark")))

    def _flat(self, name: str) -> FloatArray:
        values: FloatArray = self.arrow.column(name).combine_chunks().flatten().to_numpy(zero_copy_only=False)
        return values


def concatenate(tables: Sequence[ScoreTable]) -> ScoreTable:
    """Put tables one after the other; numbers and text as pair ids become text."""
    types = {table.arrow.schema.field("pair_id").type for table in tables}
    arrows = [table.arrow for table in tables]
    if len(types) > 1:
        position = SCHEMA.names.index("pair_id")
        arrows = [arrow.set_column(position, "pair_id", arrow.column("pair_id").cast(pa.string())) for arrow in arrows]
    skipped = tuple(problem for table in tables for problem in table.skipped)
    records = merge_provenance(table.provenance for table in tables)
    return ScoreTable(pa.concat_tables(arrows), skipped=skipped, provenance=records)
