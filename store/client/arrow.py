"""Rows as Arrow record batches, both ways, many at a time.

::

    scan_batches ── runs of rows, each of the version that wrote it
       │  collected by version until there are enough for a batch
    decode_rows ── only the columns that are wanted; every row is checked in full
    resolve_columns ── the version that reads: defaults, promotions, renamings
    to_record_batch ── in key order again

One loop serves :meth:`AsyncTable.scan_arrow` and the Spark connector. Columns are chosen here and not at the server,
which would have to decode and encode every row for it: a client's time is its own, a server's is everyone's.

numpy, pyarrow and the columnar codec are imported when this module is, and the client imports it only when Arrow is
asked for: an application that never does needs none of them.
"""

from __future__ import annotations

import sys
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any, Final, cast

from cortado.errors import InvalidArgument, InvalidDocument
from cortado.extras import needing
from cortado.schema.documents import encode_document
from cortado.schema.fields import select_fields
from cortado.schema.model import NO_DEFAULT, Schema
from cortado.store.client.arguments import iterable
from cortado.store.client.chunks import CHUNK_ROWS_MAX
from cortado.store.client.documents import RowBatch
from cortado.store.client.scans import ARROW_BATCH_ROWS
from cortado.store.client.streams import ArrowStream, Rows, any_of

with needing("arrow", "Arrow"):
    import numpy as np
    import pyarrow as pa

    from cortado.schema.columnar.arrow import arrow_schema, from_record_batch, to_record_batch
    from cortado.schema.columnar.decode import decode_rows
    from cortado.schema.columnar.encode import encode_rows
    from cortado.schema.columnar.resolve import resolve_columns, writer_columns

BATCH_ROWS_MAX: Final = 1 << 31
BYTES_PER_BATCH: Final = 16 << 20
"""Bytes of Avro bodies at which a batch is cut, if its documents are large."""


# --- reading -------------------------------------------------------------------------------------------------------


async def record_batches(
    batches: AsyncGenerator[RowBatch, None], reader: Schema, batch_rows: int
) -> AsyncGenerator[pa.RecordBatch, None]:
    """Yield rows of any versions, in their order, as ``reader`` sees them, about ``batch_rows`` at a time."""
    collected = _Collected(reader)
    async with aclosing(batches):
        async for batch in batches:
            collected.add(batch)
            if collected.rows >= batch_rows or collected.bytes >= BYTES_PER_BATCH:
                yield collected.record_batch()
                collected = _Collected(reader)
    if collected.rows:
        yield collected.record_batch()


def collected(batches: Sequence[RowBatch], reader: Schema) -> pa.RecordBatch:
    """Return rows of any versions, in their order, as ``reader`` sees them; an empty batch for no rows."""
    if not batches:
        return to_record_batch(decode_rows(reader, b"", np.zeros(0, "<u4")).columns, reader)
    rows = _Collected(reader)
    for batch in batches:
        rows.add(batch)
    return rows.record_batch()


@dataclass(slots=True)
class _Run:
    """The rows of one writer's schema among those collected; ``places`` are theirs in key order."""

    bodies: list[bytes] = field(default_factory=list)
    lengths: list[bytes] = field(default_factory=list)
    places: list[range] = field(default_factory=list)

    def add(self, batch: RowBatch, first: int) -> None:
        self.bodies.append(batch.bodies)
        self.lengths.append(batch.lengths)
        self.places.append(range(first, first + len(batch)))


class _Collected:
    """Rows on their way into one record batch."""

    def __init__(self, reader: Schema) -> None:
        self.rows = 0
        self.bytes = 0
        self._reader = reader
        self._runs: dict[Schema, _Run] = {}

    def add(self, batch: RowBatch) -> None:
        run = self._runs.get(batch.schema)
        if run is None:
            run = self._runs[batch.schema] = _Run()
        run.add(batch, self.rows)
        self.rows += len(batch)
        self.bytes += len(batch.bodies)

    def record_batch(self) -> pa.RecordBatch:
        parts = [_decoded(writer, self._reader, run) for writer, run in self._runs.items()]
        if len(parts) == 1:
            return parts[0]
        places = np.concatenate([np.asarray(place) for run in self._runs.values() for place in run.places])
        joined = pa.Table.from_batches(parts).combine_chunks()
        return joined.take(pa.array(np.argsort(places))).combine_chunks().to_batches()[0]


def _decoded(writer: Schema, reader: Schema, run: _Run) -> pa.RecordBatch:
    lengths = np.frombuffer(b"".join(run.lengths), "<u4")
    bodies = run.bodies[0] if len(run.bodies) == 1 else b"".join(run.bodies)
    wanted = None if writer is reader else writer_columns(writer, reader)
    decoded = decode_rows(writer, bodies, lengths, columns=wanted)
    for error in decoded.errors.values():
        raise error
    columns = decoded.columns if writer is reader else resolve_columns(decoded.columns, writer, reader)
    return to_record_batch(columns, reader)


def table_of_batches(batches: Sequence[pa.RecordBatch], reader: Schema) -> pa.Table:
    """Return the rows of some batches in one table; without any, an empty one of the same schema."""
    return pa.Table.from_batches(batches, arrow_schema(reader))


def table_of(schema: Schema, rows: Sequence[Sequence[Any]], places: Sequence[int], names: Sequence[str]) -> pa.Table:
    """Return the columns at ``places`` of rows of that schema, under these names."""
    fields = [field.name for field in schema.record.fields]
    bodies = [encode_document(schema, dict(zip(fields, row, strict=True))) for row in rows]
    batch = to_record_batch(decode_rows(schema, b"".join(bodies), list(map(len, bodies))).columns, schema)
    chosen = [batch.schema.field(place).with_name(name) for place, name in zip(places, names, strict=True)]
    return pa.Table.from_arrays([batch.column(place) for place in places], schema=pa.schema(chosen))


# --- writing -------------------------------------------------------------------------------------------------------


def record_batches_of(source: Rows[pa.RecordBatch] | pa.RecordBatch | ArrowStream) -> Rows[pa.RecordBatch]:
    """Return the record batches of an Arrow object, or of a data frame. Raises InvalidArgument."""
    pandas = sys.modules.get("pandas")
    if pandas is not None and isinstance(source, pandas.DataFrame):
        source = _table_of_pandas(source)
    if isinstance(source, pa.RecordBatch):
        return [source]
    if isinstance(source, pa.Table):
        return cast("Rows[pa.RecordBatch]", source.to_batches(max_chunksize=ARROW_BATCH_ROWS))
    if hasattr(source, "__arrow_c_stream__"):
        try:
            return cast("Rows[pa.RecordBatch]", pa.RecordBatchReader.from_stream(source))
        except (pa.ArrowException, TypeError) as error:
            raise InvalidArgument("batches", f"must be a stream of rows: {error}", type(source).__name__) from None
    return iterable(source, "batches")


def _table_of_pandas(frame: Any) -> pa.Table:
    """Return its columns, and the levels of its index that have names: one without a name only counts rows."""
    names = [name for name in frame.index.names if name is not None]
    try:
        return pa.Table.from_pandas(frame.reset_index(names) if names else frame, preserve_index=False)
    except (pa.ArrowException, ValueError) as error:
        raise InvalidArgument("batches", f"must be a frame that Arrow can hold: {error}") from None


async def rows_of_arrow(
    batches: Rows[pa.RecordBatch],
    schema_id: int,
    schema: Schema,
    table_name: str,
    chunk_rows: int,
    columns: tuple[str, ...] = (),
    *,
    truncates: bool = False,
) -> AsyncGenerator[tuple[int, bytes, bytes], None]:
    """Yield record batches as runs of Avro, ``chunk_rows`` rows each, with all columns or only ``columns``.

    Raises as :meth:`AsyncTable.put_arrow` does.
    """
    first_row = 0
    async with aclosing(any_of(batches)) as source:
        async for batch in source:
            if not isinstance(batch, pa.RecordBatch):
                raise InvalidArgument("batches", "must be Arrow record batches", type(batch).__name__)
            if not batch.num_rows:
                continue
            try:
                bodies, lengths = encode_batch(batch, schema, table_name, columns, truncates=truncates)
            except InvalidDocument as error:
                error.row += first_row
                raise
            for piece in _pieces(bodies, lengths, chunk_rows):
                yield schema_id, *piece
            first_row += batch.num_rows


def encode_batch(
    batch: pa.RecordBatch,
    schema: Schema,
    table_name: str,
    columns: tuple[str, ...] = (),
    *,
    truncates: bool = False,
) -> tuple[bytes, np.ndarray[Any, Any]]:
    """Return the bodies of a batch's rows, end to end, and their lengths in bytes. Raises as
    :meth:`AsyncTable.put_arrow`."""
    if columns:
        for name in columns:
            if name not in batch.schema.names:
                raise InvalidArgument(f"column {name}", "is one of those to write", "no column")
        parts = select_fields(schema, columns, table_name)
        chosen = from_record_batch(batch.select(list(columns)), parts, truncates=truncates)
        return encode_rows(parts, chosen, batch.num_rows)
    given = select_fields(schema, tuple(batch.schema.names), table_name)
    for declared in schema.record.fields:
        if declared.default is NO_DEFAULT and given.record.field(declared.name) is None:
            raise InvalidArgument(
                f"column {declared.name}", f"is required by {table_name}: it has no default", "no column"
            )
    values = from_record_batch(batch, given, truncates=truncates)
    absent = tuple(each.name for each in schema.record.fields if each.name not in values)
    if absent:
        # To a reader a field that the writer lacks is its default.
        values |= resolve_columns(values, given, select_fields(schema, absent, table_name))
    return encode_rows(schema, values, batch.num_rows)


def _pieces(bodies: bytes, lengths: np.ndarray[Any, Any], chunk_rows: int) -> Iterator[tuple[bytes, bytes]]:
    """Yield pieces of at most ``chunk_rows`` rows, as even as they can be."""
    rows = len(lengths)
    pieces = -(-rows // min(chunk_rows, CHUNK_ROWS_MAX))
    ends = np.cumsum(lengths, dtype=np.int64)
    cuts = np.linspace(0, rows, pieces + 1).round().astype(np.int64)
    for start, end in zip(cuts[:-1].tolist(), cuts[1:].tolist(), strict=True):
        first = int(ends[start - 1]) if start else 0
        yield bodies[first : int(ends[end - 1])], lengths[start:end].astype("<u4").tobytes()
