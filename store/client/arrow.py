"""Rows as Arrow record batches, both ways, a whole batch at a time.

numpy, pyarrow and the columnar codec are imported when this module is, and the client imports it only when Arrow is
asked for: an application that never does needs none of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from cortado.errors import InvalidDocument, Unsupported
from cortado.schema.model import Schema
from cortado.store.client.bulk import BulkResult
from cortado.store.client.documents import RowBatch

try:
    import numpy as np
    import pyarrow as pa

    from cortado.schema.columnar.arrow import arrow_schema, from_record_batch, to_record_batch
    from cortado.schema.columnar.decode import decode_rows
    from cortado.schema.columnar.encode import encode_rows
    from cortado.schema.columnar.resolve import resolve_columns
except ModuleNotFoundError as error:
    if (error.name or "").startswith("cortado"):
        raise
    problem = f"{error.name} is not installed; install it with: pip install 'cortado[spark]'"
    raise Unsupported("Arrow without its libraries", problem) from None

if TYPE_CHECKING:
    from cortado.store.client.table import Table


def scan_arrow(table: Table, *bounds: Any, **options: Any) -> Iterator[pa.RecordBatch]:
    """The rows of :meth:`Table.scan_batches`, each batch with the columns of the table's schema (or ``columns``).

    Old and new rows come alike: what an older version wrote is resolved to the newest one.
    """
    batches = table.scan_batches(*bounds, **options)
    return (_record_batch(table, batch) for batch in batches)


def _record_batch(table: Table, batch: RowBatch) -> pa.RecordBatch:
    if batch.schema_id:
        writer, reader = table.codec.reader_of(batch.schema_id)
    else:
        writer, reader = batch.schema, None
    decoded = decode_rows(writer, batch.bodies, np.frombuffer(batch.lengths, "<u4"))
    for row, error in decoded.errors.items():
        raise InvalidDocument(error.field, error.problem, error.value, row)
    columns = decoded.columns if reader is None else resolve_columns(decoded.columns, writer, reader)
    return to_record_batch(columns, reader or writer)


def bulk_arrow(table: Table, batches: Iterable[pa.RecordBatch], **options: Any) -> BulkResult:
    """Stores the rows of record batches with :meth:`Table.bulk_batches`. Raises InvalidDocument by column."""
    version, schema = table.codec.schema()
    return table.bulk_batches((_avro(version.schema_id, schema, batch) for batch in batches), **options)


def _avro(schema_id: int, schema: Schema, batch: pa.RecordBatch) -> tuple[int, bytes, bytes]:
    bodies, lengths = encode_rows(schema, from_record_batch(batch, schema), batch.num_rows)
    return schema_id, bytes(bodies), np.ascontiguousarray(lengths, "<u4").tobytes()


def schema_of(table: Table) -> pa.Schema:
    """The Arrow schema of a whole document, as it is read now."""
    return arrow_schema(table.codec.schema()[1])
