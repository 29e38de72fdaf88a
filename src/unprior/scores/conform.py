"""Bringing Arrow columns to the types of a score table."""

from __future__ import annotations

import pyarrow as pa

from unprior.errors import UnpriorError
from unprior.scores.schema import REQUIRED, SCHEMA


def _is_text(kind: pa.DataType) -> bool:
    value = kind.value_type if pa.types.is_dictionary(kind) else kind
    return bool(pa.types.is_string(value) or pa.types.is_large_string(value) or pa.types.is_null(value))


def _are_numbers(kind: pa.DataType) -> bool:
    """Lists of numbers; Arrow would also make numbers of truth values and of text."""
    value = getattr(kind, "value_type", kind)
    numbers = (pa.types.is_floating, pa.types.is_integer, pa.types.is_decimal, pa.types.is_null)
    return any(is_kind(value) for is_kind in numbers)


def conform(table: pa.Table, source: str) -> pa.Table:
    """Bring columns to the schema's types and order; complain about a column that cannot be."""
    absent = [name for name in REQUIRED if name not in table.column_names]
    if absent:
        raise UnpriorError(
            f"{source}: no column {', '.join(absent)}; a score table needs the columns {', '.join(REQUIRED)}"
        )
    columns = {}
    for field in SCHEMA:
        if field.name not in table.column_names:
            columns[field.name] = pa.nulls(len(table), field.type)
            continue
        column = table.column(field.name).combine_chunks()
        if isinstance(column, pa.ChunkedArray):  # a table without rows has no chunk to combine
            column = pa.array([], column.type)
        wanted = field.type
        if field.name == "pair_id":
            wanted = pa.int64() if pa.types.is_integer(column.type) else pa.string()
            if not (pa.types.is_integer(column.type) or _is_text(column.type)):
                raise UnpriorError(f"{source}: column pair_id is {column.type}, it must be whole numbers or text")
        if field.name in ("image_scores", "prior_scores") and not _are_numbers(column.type):
            raise UnpriorError(f"{source}: column {field.name} is {column.type}, it must be lists of numbers")
        try:
            columns[field.name] = column.cast(wanted)
        except (pa.ArrowException, UnicodeError) as error:
            raise UnpriorError(
                f"{source}: column {field.name} is {column.type}, it must be {wanted} ({error})"
            ) from None
        try:
            columns[field.name].validate(full=True)
        except pa.ArrowException as error:  # Parquet and other programs do not check the text they write
            raise UnpriorError(f"{source}: column {field.name} is not whole or not UTF-8 ({error})") from None
    return pa.table(columns)
