"""Changes of a table as Arrow record batches: the form in which a stream, or a backfill, takes them.

::

    the table's columns ... | _op | _ts {epoch, wall_ms, logical} | _commit_time | _previous {the table's columns}
    a put: the document     | put
    a delete: its key alone | delete

They come from a watch that ends, so the order is the watch's, none is left out, and none comes twice. Each of its
replies becomes one batch, by column, as :mod:`cortado.store.client.arrow` decodes rows.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

import numpy as np
import pyarrow as pa

from cortado.errors import InvalidArgument
from cortado.proto.v1 import common_pb2, watch_pb2
from cortado.schema.columnar.arrow import arrow_schema
from cortado.schema.model import Schema
from cortado.store.client.arguments import whole
from cortado.store.client.arrow import BATCH_ROWS_MAX, collected
from cortado.store.client.documents import AsyncDocumentCodec, RowBatch
from cortado.store.client.values import Key, key_from_proto
from cortado.store.client.watch import AsyncWatch
from cortado.store.client.watch_sources import DocumentSource
from cortado.store.clock.timestamp import TIMESTAMP_BYTES, Timestamp
from cortado.store.keys.types import KeyPart

OP: Final = "_op"
TS: Final = "_ts"
COMMIT_TIME: Final = "_commit_time"
PREVIOUS: Final = "_previous"
PUT: Final = "put"
DELETE: Final = "delete"
_TS_TYPE: Final = pa.struct([("epoch", pa.int32()), ("wall_ms", pa.int64()), ("logical", pa.int64())])
_COMMIT_TIME_TYPE: Final = pa.timestamp("us", tz="UTC")
_TS_BYTES: Final = np.dtype([("epoch", ">u2"), ("wall_high", ">u2"), ("wall_low", ">u4"), ("logical", ">u4")])


@dataclass(frozen=True, slots=True)
class PackedChanges:
    """Some neighbouring changes, in their order; ``versions`` are their timestamps end to end."""

    batch: pa.RecordBatch | None
    versions: bytes

    def __len__(self) -> int:
        return len(self.versions) // TIMESTAMP_BYTES

    def __getitem__(self, part: slice) -> PackedChanges:
        begin, end, _ = part.indices(len(self))
        batch = None if self.batch is None else self.batch.slice(begin, end - begin)
        return PackedChanges(batch, self.versions[begin * TIMESTAMP_BYTES : end * TIMESTAMP_BYTES])

    def up_to(self, ts: Timestamp) -> PackedChanges:
        """Return the changes at or below ``ts``."""

        def version(place: int) -> bytes:
            return self.versions[place * TIMESTAMP_BYTES : (place + 1) * TIMESTAMP_BYTES]

        return self[: bisect_right(range(len(self)), bytes(ts), key=version)]


class PackedWatch(AsyncWatch[Any, Any]):
    """A watch whose events are PackedChanges and Resolved."""

    def _up_to(self, changes: Any, ts: Timestamp) -> Any:
        return changes.up_to(ts)

    def _give(self, changes: Any) -> None:
        if changes:
            self._events.append(changes)


class PackedSource(DocumentSource):
    """The changes of a reply as one record batch."""

    def read_as(self, reader: Schema, key: Sequence[KeyPart], codec: AsyncDocumentCodec, *, has_previous: bool) -> None:
        """Set how changes are read, before the first reply. Raises InvalidArgument if a field has the name of another
        column."""
        self._reader = reader
        self._key = key
        self._packed_codec = codec
        self._has_previous = has_previous
        self.schema = schema_of_changes(reader, key, has_previous=has_previous)

    async def changes(self, reply: watch_pb2.WatchTableResponse) -> Any:
        packed = reply.packed
        versions = packed.versions
        if not versions:
            return PackedChanges(None, b"")
        count = len(versions) // TIMESTAMP_BYTES
        deletes = list(packed.deletes)
        puts = await self._read(packed.rows)
        places = np.full(count, -1, np.int64)
        places[deletes] = np.arange(len(deletes)) + puts.num_rows
        places[places < 0] = np.arange(puts.num_rows)
        rows = self._rows(puts, list(map(key_from_proto, packed.deleted)), pa.array(places))
        ops = np.full(count, PUT, object)
        ops[deletes] = DELETE
        columns = [*rows, pa.array(ops, pa.string()), *_times(versions)]
        if self._has_previous:
            columns.append(await self._previous(packed, count))
        return PackedChanges(pa.RecordBatch.from_arrays(columns, schema=self.schema), versions)

    async def _read(self, runs: Sequence[common_pb2.RowBatch]) -> pa.RecordBatch:
        batches = []
        for run in runs:
            writer, _ = await self._packed_codec.reader_of(run.schema_id)
            batches.append(RowBatch(run.schema_id, run.bodies, run.lengths, b"", writer))
        return collected(batches, self._reader)

    def _rows(self, puts: pa.RecordBatch, deleted: list[Key], places: pa.Array) -> list[pa.Array]:
        if not deleted:
            return list(puts.columns)
        of_deletes = [_document(key, self._key) for key in deleted]
        columns = []
        for name, column in zip(puts.schema.names, puts.columns, strict=True):
            type_ = column.type
            of_column = pa.array([_cell(each.get(name), type_) for each in of_deletes], type_)
            columns.append(pa.concat_arrays([column, of_column]).take(places))
        return columns

    async def _previous(self, packed: watch_pb2.TablePackedChanges, count: int) -> pa.Array:
        replaced = await self._read(packed.replaced)
        places = np.full(count, 0, np.int64)
        places[list(packed.replacing)] = np.arange(replaced.num_rows)
        is_missing = np.ones(count, bool)
        is_missing[list(packed.replacing)] = False
        fields = list(self.schema.field(PREVIOUS).type)
        return pa.StructArray.from_arrays(replaced.columns, fields=fields).take(pa.array(places, mask=is_missing))


def schema_of_changes(reader: Schema, key: Sequence[KeyPart], *, has_previous: bool) -> pa.Schema:
    """Return the batches' schema: only fields of the primary key are never null."""
    of_table = arrow_schema(reader)
    named = {part.path.partition(".")[0] for part in key}
    fields = [field.with_nullable(field.nullable or field.name not in named) for field in of_table]
    fields += [pa.field(OP, pa.string(), False), pa.field(TS, _TS_TYPE, False)]
    fields.append(pa.field(COMMIT_TIME, _COMMIT_TIME_TYPE, False))
    if has_previous:
        fields.append(pa.field(PREVIOUS, pa.struct([each.with_nullable(True) for each in of_table])))
    for name in {OP, TS, COMMIT_TIME, PREVIOUS}.intersection(of_table.names):
        raise InvalidArgument(f"field {name}", "has the name of a column of changes: select others, or rename it")
    return pa.schema(fields)


async def batches_of_changes(watch: PackedWatch, batch_rows: int) -> AsyncGenerator[pa.RecordBatch, None]:
    """Yield the changes of a watch that ends, about ``batch_rows`` at a time."""
    whole(batch_rows, "batch_rows", 1, BATCH_ROWS_MAX)
    found: list[pa.RecordBatch] = []
    async with watch:
        while (event := watch._ready()) is not None or await watch._fill():
            if not isinstance(event, PackedChanges):
                continue
            found.append(event.batch)
            if sum(each.num_rows for each in found) >= batch_rows:
                for batch in _joined(found, batch_rows):
                    yield batch
                found = []
    for batch in _joined(found, batch_rows):
        yield batch


def _joined(batches: list[pa.RecordBatch], batch_rows: int) -> list[pa.RecordBatch]:
    if not batches:
        return []
    joined = pa.Table.from_batches(batches).combine_chunks()
    return list(joined.to_batches(max_chunksize=batch_rows))


def _times(versions: bytes) -> list[pa.Array]:
    stamps = np.frombuffer(versions, _TS_BYTES)
    wall_ms = stamps["wall_high"].astype(np.int64) << 32 | stamps["wall_low"].astype(np.int64)
    columns = [
        pa.array(stamps["epoch"].astype(np.int32)),
        pa.array(wall_ms),
        pa.array(stamps["logical"].astype(np.int64)),
    ]
    commit_time = pa.array(wall_ms * 1_000, pa.int64()).cast(_COMMIT_TIME_TYPE)
    return [pa.StructArray.from_arrays(columns, fields=list(_TS_TYPE)), commit_time]


def _document(key: Key, parts: Sequence[KeyPart]) -> dict[str, Any]:
    """Return a document with nothing but its primary key."""
    document: dict[str, Any] = {}
    for value, part in zip(key, parts, strict=True):
        *outer, name = part.path.split(".")
        within = document
        for each in outer:
            within = within.setdefault(each, {})
        within[name] = value
    return document


def _cell(value: Any, type_: pa.DataType) -> Any:
    if isinstance(value, UUID):
        return str(value) if pa.types.is_string(type_) else value.bytes
    if isinstance(value, dict):
        return {name: _cell(each, type_.field(name).type) for name, each in value.items()}
    return value
