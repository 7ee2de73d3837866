"""Chunks: the unit of a bulk load's messages and commits.

Rows come as documents, which are encoded here and collected, or as runs of Avro, which are cut if they are too
large.
"""

from __future__ import annotations

import struct
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from cortado.errors import CortadoError, InvalidArgument, InvalidDocument
from cortado.proto.v1 import common_pb2
from cortado.store.client.arguments import shown, whole
from cortado.store.client.documents import RowBatch, row_batch
from cortado.store.client.streams import Rows, any_of

Refuse: TypeAlias = Callable[[int, CortadoError], None]
"""Told the place of a row that cannot be sent, and why."""

CHUNK_BYTES_MAX: Final = 2 << 20
CHUNK_ROWS_MAX: Final = 10_000


@dataclass(slots=True)
class Chunk:
    """Rows on their way; ``rows[i]`` is the place of the chunk's row ``i`` among all rows of the load."""

    batch: common_pb2.RowBatch
    rows: range | list[int]


def chunk_limits(chunk_rows: int) -> int:
    """Return ``chunk_rows`` if a chunk may have that many. Raises InvalidArgument."""
    if isinstance(chunk_rows, bool) or not isinstance(chunk_rows, int) or not 1 <= chunk_rows <= CHUNK_ROWS_MAX:
        raise InvalidArgument("chunk_rows", f"must be between 1 and {CHUNK_ROWS_MAX}", shown(chunk_rows))
    return chunk_rows


def chunks_of_batch(schema_id: int, bodies: bytes, lengths: bytes, first_row: int) -> Iterator[Chunk]:
    """Yield the rows as chunks no larger than a commit may be. Raises InvalidArgument if lengths and bodies
    disagree."""
    if len(lengths) % 4:
        raise InvalidArgument("lengths", "must have 4 bytes a row", f"{len(lengths)} bytes")
    rows = len(lengths) // 4
    if rows <= CHUNK_ROWS_MAX and len(bodies) <= CHUNK_BYTES_MAX:
        if rows:
            batch = common_pb2.RowBatch(schema_id=schema_id, bodies=bodies, lengths=lengths)
            yield Chunk(batch, range(first_row, first_row + rows))
        return
    sizes = struct.unpack(f"<{rows}I", lengths)
    if sum(sizes) != len(bodies):
        raise InvalidArgument("lengths", f"must add up to the bodies' {len(bodies)} bytes", f"{sum(sizes)} bytes")
    row = start = 0
    while row < rows:
        end_row, end = row, start
        while (
            end_row < rows
            and end_row - row < CHUNK_ROWS_MAX
            and (end == start or end - start + sizes[end_row] <= CHUNK_BYTES_MAX)
        ):
            end += sizes[end_row]
            end_row += 1
        batch = common_pb2.RowBatch(
            schema_id=schema_id, bodies=bodies[start:end], lengths=lengths[row * 4 : end_row * 4]
        )
        yield Chunk(batch, range(first_row + row, first_row + end_row))
        row, start = end_row, end


class _PendingChunk:
    """Rows that are collected for one chunk."""

    def __init__(self) -> None:
        self.rows: list[int] = []
        self._schema_id = 0
        self._bodies: list[bytes] = []
        self._size = 0

    def takes(self, schema_id: int, body: bytes, rows_max: int) -> bool:
        fits = len(self.rows) < rows_max and self._size + len(body) <= CHUNK_BYTES_MAX
        return fits and schema_id == self._schema_id

    def add(self, row: int, schema_id: int, body: bytes) -> None:
        self.rows.append(row)
        self._schema_id = schema_id
        self._bodies.append(body)
        self._size += len(body)

    def close(self) -> Chunk:
        return Chunk(row_batch(self._schema_id, self._bodies), self.rows)


async def chunks_of_documents(
    documents: Rows[Any], encode: Callable[[Any], Awaitable[tuple[int, bytes]]], chunk_rows: int, refuse: Refuse
) -> AsyncGenerator[Chunk, None]:
    """Yield chunks of at most ``chunk_rows`` documents, each of one schema; refuse those that cannot be encoded."""
    pending = _PendingChunk()
    row = -1
    async with aclosing(any_of(documents)) as source:
        async for document in source:
            row += 1
            try:
                schema_id, body = await encode(document)
            except InvalidArgument as error:
                if isinstance(error, InvalidDocument):
                    error.row = row
                refuse(row, error)
                continue
            if pending.rows and not pending.takes(schema_id, body, chunk_rows):
                yield pending.close()
                pending = _PendingChunk()
            pending.add(row, schema_id, body)
    if pending.rows:
        yield pending.close()


async def chunks_of_batches(batches: Rows[tuple[int, bytes, bytes] | RowBatch]) -> AsyncGenerator[Chunk, None]:
    """Yield runs of Avro (schema id, bodies, lengths) as chunks; rows are counted over all of them."""
    first_row = 0
    async with aclosing(any_of(batches)) as source:
        async for batch in source:
            if isinstance(batch, RowBatch):
                batch = (batch.schema_id, batch.bodies, batch.lengths)
            if not isinstance(batch, Sequence) or len(batch) != 3:
                problem = "must be tuples of schema id, bodies and lengths"
                raise InvalidArgument("batches", problem, type(batch).__name__)
            schema_id, bodies, lengths = batch
            whole(schema_id, "schema_id", 1, (1 << 32) - 1)
            # numpy's arrays are taken as they are.
            for chunk in chunks_of_batch(schema_id, bytes(bodies), bytes(lengths), first_row):
                yield chunk
            first_row += len(bytes(lengths)) // 4
