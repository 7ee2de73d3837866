"""Columns of stored rows, whatever schemas wrote them, as one reader's schema has them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from cortado.errors import DataLoss
from cortado.schema.columnar.column import Column
from cortado.schema.columnar.decode import decode_rows
from cortado.schema.columnar.resolve import resolve_columns
from cortado.schema.model import Schema
from cortado.store.tables.runs import join_bodies, rows_by_schema
from cortado.store.tables.view import TableView

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


def decode_columns(
    view: TableView, payloads: Sequence[bytes], reader: Schema, paths: Collection[str] | None
) -> Iterator[tuple[NDArray[np.intp], Mapping[str, Column]]]:
    """For each schema that wrote some of the rows: which, and their columns at ``paths`` (None: every field).

    A field that a writer lacks comes with the reader's default. Raises DataLoss for a body that does not decode.
    """
    for schema_id, rows in rows_by_schema(payloads).items():
        chosen = payloads if len(rows) == len(payloads) else [payloads[row] for row in rows.tolist()]
        bodies, lengths = join_bodies(chosen)
        writer = view.stored_schema(schema_id)
        columns, errors = read_columns(bodies, lengths, writer, reader, paths)
        if errors:
            row, error = next(iter(errors.items()))
            raise DataLoss(f"a row of table {view.table.full_name}", f"row {rows[row]} of a slice: {error}")
        yield rows, columns


def read_columns(
    bodies: bytes,
    lengths: NDArray[np.uint32],
    writer: Schema,
    reader: Schema,
    paths: Collection[str] | None,
) -> tuple[Mapping[str, Column], Mapping[int, Exception]]:
    """Columns at the reader's ``paths``, and why rows did not decode (their places in the columns hold nothing)."""
    if same_schema(writer, reader):
        decoded = decode_rows(writer, bodies, lengths, columns=paths)
        return decoded.columns, decoded.errors
    # The writer may lack a field, or know it by another name: resolution decides from all it has.
    decoded = decode_rows(writer, bodies, lengths)
    return resolve_columns(decoded.columns, writer, reader, paths), decoded.errors


def same_schema(one: Schema, other: Schema) -> bool:
    return one is other or one.fingerprint == other.fingerprint
