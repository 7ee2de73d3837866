"""One bulk stream: many chunks in flight, in order, an answer for each.

::

    caller ──chunk 1, 2, 3 ...──► read ──► budget ──► prepare ──► the node ────┐  each a proposal of its own;
           ◄──answers 1, 2 ...────────── in the order of the chunks ◄──────────┘  several fit into one turn

Reading runs ahead of answering by a bounded number of chunks, so a caller may send without waiting, and one that does
wait gets its answer at once. If the process's budget (:mod:`cortado.store.process.budget`) has no room for a chunk, or
the node's queue of writes is full, reading waits: the caller feels it as back pressure. Rows are refused one by one in
their chunk's answer. A problem of a whole chunk ends the stream; chunks without an answer may be sent again under their
request ids.

Chunks are written in their order, or not at all: if one is refused, those behind it are refused too, even if there is
room for them. Else a chunk that is sent again would overwrite later rows of its own load.

A load that sends nothing for ``SILENT_S`` and has no chunk in flight gives its place up if other loads found none
meanwhile.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import TYPE_CHECKING, Final, TypeAlias

from cortado.errors import CortadoError, InvalidArgument, NotFound, ResourceExhausted, Unavailable
from cortado.proto.v1 import common_pb2, documents_pb2
from cortado.store.auth.caller import asking
from cortado.store.auth.owners import ANYBODY, Asker
from cortado.store.clock.timestamp import Timestamp
from cortado.store.mvcc.evaluation import Evaluation
from cortado.store.mvcc.packed_rows import PackedWrite
from cortado.store.mvcc.reader import Reader
from cortado.store.process.admission import GatePlace
from cortado.store.process.budget import CHUNK_COST, ROW_BYTES, Held
from cortado.store.replica.write.proposals import Proposal, WriteResult
from cortado.store.replica.write.request_table.records import HASH_BYTES, owned_hash
from cortado.store.server.document_messages import bulk_chunk
from cortado.store.staging.stage import attempt_of, open_record, stage
from cortado.store.tables.bulk import check_named, evaluate_bulk
from cortado.store.tables.chunk import Prepared, prepare_chunk
from cortado.store.tables.operations import BulkChunk, BulkMode, BulkWritten, JsonRows
from cortado.store.tables.packed_chunk import PackedChunk, pack_chunk
from cortado.store.tables.rows import BATCH_ROWS_MAX
from cortado.store.wire.rpc_errors import to_row_error

if TYPE_CHECKING:
    from cortado.store.catalog.catalog import Catalog
    from cortado.store.server.service import Service

# Above it, the errors of further rows come without their fields, so that the answer fits into a message.
_ERROR_BYTES_MAX: Final = 4 << 20
_SHORT_MESSAGE_CHARS: Final = 100
LENGTH_BYTES: Final = 4
SILENT_S: Final = 10.0
_RETRY_DELAY_MS: Final = 1_000
LISTED_CHUNKS: Final = 16
"""Chunks that a load prepares as lists after one that was packed in vain: its rows are stored already, mostly."""

_Prepared: TypeAlias = Prepared | PackedChunk


@dataclass(frozen=True, slots=True)
class _Arrived:
    """A chunk, and the other fields of its message."""

    chunk: BulkChunk
    sequence: int
    request_id: bytes
    request_hash: bytes
    size_bytes: int

    @classmethod
    def of(cls, start: documents_pb2.BulkStart, message: documents_pb2.BulkChunk, size_bytes: int) -> _Arrived:
        """Return the chunk of a message. Raises InvalidArgument."""
        request_hash = _hash(start, message) if message.request_id else b""
        return cls(bulk_chunk(start, message), message.sequence, message.request_id, request_hash, size_bytes)


class BulkStream:
    """Serves one stream of a service's node."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._slots = asyncio.Semaphore(service.host.process.limits.bulk_chunks_max)
        self._answers: asyncio.Queue[asyncio.Future[WriteResult] | None] = asyncio.Queue()
        self._newest: Proposal | None = None
        self._is_broken = False
        self._replica = service.host.meta
        self._table_id = 0
        self._staging: documents_pb2.Staging | None = None
        self._asked_by: Callable[[], Asker] = lambda: ANYBODY
        self._messages = self._in_flight = 0
        self._is_silent = False
        self._is_in_vain = False
        """The last chunk that was packed was not written so."""
        self._to_list = 0
        """How many of the next chunks are not packed."""

    async def replies(self, requests: AsyncIterator[documents_pb2.BulkRequest]) -> AsyncGenerator[bytes, None]:
        """Yield the answers, in the order of the chunks. Raises InvalidArgument, NotFound, and the refusal of a
        chunk."""
        reading = asyncio.ensure_future(self._read(requests))
        looking = asyncio.ensure_future(self._end_silence(reading))
        answer: asyncio.Future[WriteResult] | None = None
        try:
            while (answer := await self._answers.get()) is not None:
                result = await answer
                self._slots.release()
                self._in_flight -= 1
                yield self._service.with_header(result)
            await reading
        finally:
            # Chunks that were proposed go on in the node; only the waiting ends.
            await _cancelled([looking, reading, *self._unanswered(answer)])

    async def _end_silence(self, reading: asyncio.Task[None]) -> None:
        """Give the place up to other loads that want one, once the caller is silent. Runs until it is cancelled."""
        places = self._service.host.process.bulk_streams
        while not self._is_silent:
            messages, refused = self._messages, places.refused
            await asyncio.sleep(SILENT_S)
            self._is_silent = self._messages == messages and places.refused > refused and not self._in_flight
        reading.cancel()

    def _unanswered(self, current: asyncio.Future[WriteResult] | None) -> list[asyncio.Future[WriteResult]]:
        left = [] if current is None else [current]
        while not self._answers.empty():
            answer = self._answers.get_nowait()
            if answer is not None:
                left.append(answer)
        return left

    async def _read(self, requests: AsyncIterator[documents_pb2.BulkRequest]) -> None:
        try:
            start: documents_pb2.BulkStart | None = None
            async for request in requests:
                self._messages += 1
                if start is None:
                    start = _start_of(request)
                    # An unknown table is refused before the first reply.
                    self._replica = self._service.host.replica_of_table(start.table.database, start.table.table)
                    catalog = self._service.catalog(self._replica, await self._replica.reads.linearize())
                    self._table_id = catalog.table(start.table.database, start.table.table).table_id
                    if start.HasField("staging"):
                        attempt_of(start.staging.task, start.staging.attempt)
                        self._asked_by = asking()
                        open_record(catalog.reader, start.staging.transaction_id, self._asked_by())
                        self._staging = start.staging
                    continue
                if request.WhichOneof("message") != "chunk":
                    raise InvalidArgument("message", "must be a chunk: the stream has started")
                message = request.chunk
                del request
                size_bytes = message.ByteSize()
                held = self._service.host.process.budget.chunks.add(size_bytes)
                try:
                    await self._slots.acquire()
                    self._in_flight += 1
                    cost_bytes = CHUNK_COST * size_bytes + ROW_BYTES * _rows_of(message)
                    await self._service.host.process.budget.chunks.enter(held, cost_bytes)
                    arrived = _Arrived.of(start, message, size_bytes)
                    # The chunk has its own copy of the rows.
                    del message
                    self._answers.put_nowait(await self._submit(arrived, held))
                    del arrived
                except BaseException:
                    held.leave()
                    raise
        except asyncio.CancelledError:
            if not self._is_silent:
                raise
            problem = f"the load said nothing for {SILENT_S:.0f} s, and others found no place: begin it again"
            limit = self._service.host.process.limits.bulk_streams_max
            raise ResourceExhausted(problem, _RETRY_DELAY_MS, "bulk streams", limit) from None
        finally:
            self._answers.put_nowait(None)

    async def _submit(self, arrived: _Arrived, held: Held) -> asyncio.Future[WriteResult]:
        """Submit an admitted chunk, and return the future of its answer."""
        chunk, sequence = arrived.chunk, arrived.sequence
        prepared = await self._prepare(chunk)
        before: Proposal | None = None

        def evaluate(reader: Reader, commit_ts: Timestamp) -> Evaluation:
            self._is_broken |= before is not None and isinstance(before.outcome, CortadoError)
            if self._is_broken:
                raise Unavailable("a chunk before it was refused: send both again")
            catalog = self._replica.catalog(reader)
            if catalog.table(chunk.database, chunk.table).table_id != self._table_id:
                # Half of a load would lie in the one, half in the other.
                raise NotFound("table", f"{chunk.database}.{chunk.table} as when the load began: it is another one now")
            if self._staging is not None:
                return self._staged(reader, commit_ts, catalog, chunk, prepared)
            evaluation = evaluate_bulk(reader, commit_ts, catalog, chunk, prepared)
            if isinstance(prepared, PackedChunk):
                self._is_in_vain = not isinstance(evaluation.mutations, PackedWrite)
                self._to_list = LISTED_CHUNKS if self._is_in_vain else 0
            return evaluation

        def encode_reply(_ts: Timestamp, value: object) -> bytes:
            assert isinstance(value, BulkWritten)
            return documents_pb2.BulkResponse(
                sequence=sequence,
                written=value.written,
                errors=_row_errors(value.errors),
            ).SerializeToString()

        await self._service.host.process.writes.wait(arrived.size_bytes)
        before = self._newest
        submitted = self._replica.submit(
            evaluate,
            size_bytes=arrived.size_bytes,
            request_id=arrived.request_id,
            request_hash=arrived.request_hash,
            encode_reply=encode_reply,
            places=(GatePlace(self._service.host.process.writes, arrived.size_bytes), held),
        )
        self._newest = submitted if isinstance(submitted, Proposal) else None
        return asyncio.ensure_future(self._replica.answer(submitted))

    def _staged(
        self, reader: Reader, commit_ts: Timestamp, catalog: Catalog, chunk: BulkChunk, prepared: _Prepared | None
    ) -> Evaluation:
        """Evaluate the chunk, and stage its writes until a large transaction is committed."""
        staging, since = self._staging, chunk.unchanged_since
        assert staging is not None
        if since is not None:
            check_named(catalog.table(chunk.database, chunk.table), since)
            # This finds a key that comes twice; the stager finds rows that were stored before.
            chunk = replace(chunk, unchanged_since=commit_ts.previous())
        return stage(
            reader,
            self._replica.store.unresolved,
            staging.transaction_id,
            attempt_of(staging.task, staging.attempt),
            evaluate_bulk(reader, commit_ts, catalog, chunk, prepared, keep_deletes=True),
            is_unchanged=chunk.mode not in (BulkMode.UPSERT, BulkMode.DELETE),
            unchanged_since=since,
            asker=self._asked_by(),
        )

    async def _prepare(self, chunk: BulkChunk) -> _Prepared | None:
        """Read a chunk's rows, ahead of its turn. Return None if they cannot be read by the applied catalog. Writes in
        flight may still make it possible (a schema that was registered just now); else the chunk is refused in its
        turn."""
        catalog, kernel = self._service.catalog(self._replica), self._replica.store.kernel
        try:
            if self._to_list:
                self._to_list -= 1
            elif kernel is not None and self._staging is None:
                # Until it is evaluated, it is the only one that may be in vain.
                self._to_list = LISTED_CHUNKS if self._is_in_vain else 0
                packed = pack_chunk(catalog, chunk, kernel.row_maker)
                if packed is not None:
                    return packed
            if isinstance(chunk.rows, JsonRows):  # Read one by one, in up to seconds: beside the loop.
                applied = self._service.applied_catalog(self._replica)
                return await self._service.host.process.scan(lambda: prepare_chunk(applied, chunk))
            return prepare_chunk(catalog, chunk)
        except CortadoError:
            return None


def _start_of(request: documents_pb2.BulkRequest) -> documents_pb2.BulkStart:
    if request.WhichOneof("message") != "start":
        raise InvalidArgument("message", "must be start, first and once")
    return request.start


def _rows_of(message: documents_pb2.BulkChunk) -> int:
    """Return the number of rows as the message's sizes state it. More than a chunk may have are refused before they
    cost memory."""
    return min(max(len(message.json_rows), len(message.rows.lengths) // LENGTH_BYTES), BATCH_ROWS_MAX)


def _row_errors(errors: tuple[tuple[int, CortadoError], ...]) -> list[common_pb2.RowError]:
    messages = []
    size_bytes = 0
    for row, error in errors:
        message = to_row_error(row, error)
        size_bytes += message.ByteSize()
        if size_bytes > _ERROR_BYTES_MAX:
            message.ClearField("metadata")
            message.message = message.message[:_SHORT_MESSAGE_CHARS]
        messages.append(message)
    return messages


def _hash(start: documents_pb2.BulkStart, chunk: documents_pb2.BulkChunk) -> bytes:
    digest = blake2b(b"bulk", digest_size=HASH_BYTES)
    digest.update(start.SerializeToString(deterministic=True))
    digest.update(chunk.SerializeToString(deterministic=True))
    return owned_hash(digest.digest(), asking()().principal)


async def _cancelled(futures: list[asyncio.Future[WriteResult] | asyncio.Task[None]]) -> None:
    """Cancel the futures that still run, and take the outcomes of the others."""
    for each in futures:
        each.cancel()
    for each in futures:
        with suppress(asyncio.CancelledError, Exception):
            await each
