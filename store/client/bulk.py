"""The bulk stream: many rows, in chunks, each chunk one commit, each row with its own result.

Chunks travel on one stream that goes both ways. A bounded number of them is under way; each is answered by its number::

    client   start  chunk 0  chunk 1  chunk 2   ...            chunk 1  chunk 2
    server                            answer 0  stream breaks           answer 1 ...

When the stream breaks, a new one begins. Every chunk without an answer is sent again *under the same request id*. A
chunk that had been written is answered from memory and not written twice. When no answer comes in time the outcome of
those chunks is unknown, and the caller is told so.
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Final

from cortado.errors import (
    Broken,
    Cancelled,
    Conflict,
    CortadoError,
    DeadlineExceeded,
    DidNotHappen,
    Internal,
    KeyLocked,
    OutcomeUnknown,
    QuotaExceeded,
    TryAgain,
)
from cortado.proto.v1 import documents_pb2
from cortado.store.client.channel import Channel
from cortado.store.client.chunks import Chunk
from cortado.store.client.connection import Connection
from cortado.store.client.notebook import grid
from cortado.store.client.retry import Attempts, Failed, Failure, before_a_write
from cortado.store.client.runtime import Stream
from cortado.store.client.values import timestamp_of
from cortado.store.clock.timestamp import ZERO, Timestamp
from cortado.store.wire.rpc_errors import from_row_error

CHUNKS_IN_FLIGHT_MAX: Final = 16
ERRORS_KEPT_MAX: Final = 1_000


@dataclass(frozen=True, slots=True)
class RefusedRow:
    """A row that was not written: its place among all rows, from 0, and why."""

    row: int
    error: CortadoError


@dataclass(slots=True)
class BulkResult:
    """The outcome of a load. ``errors`` holds the first thousand refused rows, ``refused`` counts all of them.

    ``ts`` is the newest commit's timestamp: a read at it, or later, sees every row that was written.
    """

    written: int = 0
    refused: int = 0
    errors: list[RefusedRow] = field(default_factory=list)
    ts: Timestamp = ZERO

    def _refuse(self, row: int, error: CortadoError) -> None:
        self.refused += 1
        if len(self.errors) < ERRORS_KEPT_MAX:
            self.errors.append(RefusedRow(row, error))

    def _repr_html_(self) -> str:
        """Return HTML for notebooks: how many rows were written, and why others were refused."""
        refused = [(each.row, type(each.error).__name__, str(each.error)) for each in self.errors]
        columns = ("row", "error", "message") if refused else ()
        return grid(f"{self.written} rows written, {self.refused} refused", columns, refused)


class BulkLoad:
    """One bulk load. ``timeout_s`` bounds the time without any answer."""

    def __init__(
        self,
        connection: Connection,
        start: documents_pb2.BulkStart,
        *,
        timeout_s: float,
        progress: Callable[[int], None] | None = None,
    ) -> None:
        self._connection = connection
        self._start = start
        self._timeout_s = timeout_s
        self._progress = progress
        # Each with the time at which it was first sent.
        self._in_flight: deque[tuple[documents_pb2.BulkRequest, Chunk, float]] = deque()
        self._sequence = 0
        self._maybe_written = False
        # Unanswered chunks before it may have been written.
        self._open_below = 0
        self.result = BulkResult()

    async def run(self, chunks: AsyncGenerator[Chunk, None]) -> BulkResult:
        """Send every chunk and wait for every answer. Raises errors that end the whole load, such as NotFound. Rows
        staged for a large transaction are all or nothing: that load ends with the first row that is refused."""
        staging = self._connection.staging()
        if staging is not None:
            self._start.staging.CopyFrom(staging)
            self._connection = self._connection.base
        start = documents_pb2.BulkRequest(start=self._start).SerializeToString()
        method = self._connection.stubs.documents.Bulk
        async with aclosing(chunks):
            attempts = self._new_attempts()
            while True:
                channel = self._channel()
                try:
                    with self._connection.stream(channel, method, None, self._timeout_s) as stream:
                        stream.send(start)
                        for request, _, _ in self._in_flight:
                            stream.send(request.SerializeToString())
                        while await self._fill(chunks, stream):
                            self._take(await self._reply(stream))
                            attempts = self._new_attempts()
                            self._check_staged()
                        self._check_staged()
                        return self.result
                except Failed as failed:
                    failure = failed.failure
                await self._rest_after(attempts, failure, channel)

    async def _reply(self, stream: Stream) -> documents_pb2.BulkResponse:
        """Return the next answer. Raises Failed."""
        reply: documents_pb2.BulkResponse | None = await stream.receive()
        if reply is None:
            ended = Internal("the server ended the bulk stream before it had answered every chunk")
            raise Failed(Failure(ended, answered=False, sent=True))
        self._connection.observe(reply.header)
        return reply

    async def _fill(self, source: AsyncGenerator[Chunk, None], stream: Stream) -> bool:
        """Send until enough chunks are under way; False once there are none."""
        while len(self._in_flight) < CHUNKS_IN_FLIGHT_MAX:
            chunk = await self._next(source)
            if chunk is None:
                break
            message = documents_pb2.BulkChunk(
                sequence=self._sequence,
                rows=chunk.batch,
                request_id=await self._new_request_id(),
            )
            self._sequence += 1
            request = documents_pb2.BulkRequest(chunk=message)
            self._in_flight.append((request, chunk, self._connection.environment.monotonic_s()))
            stream.send(request.SerializeToString())
            await self._connection.runtime.give_way()
        return bool(self._in_flight)

    def _take(self, reply: documents_pb2.BulkResponse) -> None:
        sequences = [request.chunk.sequence for request, _, _ in self._in_flight]
        if reply.sequence not in sequences:
            raise Internal(f"the server answered chunk {reply.sequence}, which is not under way")
        refused = [(each.row, from_row_error(each)) for each in reply.errors]
        self._maybe_written = True
        place = sequences.index(reply.sequence)
        _, chunk, sent_s = self._in_flight[place]
        del self._in_flight[place]
        for row, error in refused:
            position = chunk.rows[row]
            if "row" in error.fields():
                setattr(error, "row", position)  # noqa: B010 - only some classes have it
            self.result._refuse(position, error)
        self.result.written += reply.written
        ts = timestamp_of(reply.header.timestamp)
        self._connection.request_ids.observe(ts, sent_s)
        self.result.ts = max(self.result.ts, ts)
        if self._progress is not None:
            self._progress(self.result.written + self.result.refused)

    def _check_staged(self) -> None:
        """Raise the error of the first refused row, if the transaction would lack it."""
        if self._start.HasField("staging") and self.result.refused:
            raise self.result.errors[0].error

    def _new_attempts(self) -> Attempts:
        # Whether the load counts as a write depends on the chunks that are under way when it fails.
        return self._connection.attempts(b"", self._timeout_s)

    async def _rest_after(self, attempts: Attempts, failure: Failure, channel: Channel) -> None:
        if failure.may_have_happened:
            self._maybe_written = True
            self._open_below = self._sequence
        try:
            await self._connection.rest_after(attempts, failure, channel)
        except CortadoError as error:
            raise self._end(error) from None

    def _channel(self) -> Channel:
        try:
            return self._connection.leader_channel()
        except Cancelled as closed:
            raise self._end(closed) from None

    async def _next(self, source: AsyncGenerator[Chunk, None]) -> Chunk | None:
        """Return the next chunk. To encode rows the cluster may have to be asked for a schema."""
        try:
            with before_a_write():
                return await anext(source, None)
        except (TryAgain, DeadlineExceeded, Cancelled, Internal) as error:
            if not self._in_flight:
                raise
            raise self._unknown(error) from None

    async def _new_request_id(self) -> bytes:
        """Return a new id. It asks for the server's time if the source of rows was slow, and then may find no
        server."""
        try:
            return await self._connection.new_request_id(self._timeout_s)
        except (TryAgain, DeadlineExceeded, Cancelled, Internal) as error:
            if not self._in_flight:
                raise
            raise self._unknown(error) from None

    def _end(self, error: CortadoError) -> CortadoError:
        """Return the error for the caller, if the load ends by ``error`` between two streams."""
        if not self._in_flight:
            return error
        if isinstance(error, TryAgain | Cancelled) and not self._maybe_written:
            return error
        is_open = self._in_flight[0][0].chunk.sequence < self._open_below
        # A server that refuses has answered all chunks before the one that it refuses.
        is_refused = isinstance(error, DidNotHappen | Conflict | Broken | KeyLocked | QuotaExceeded)
        return error if is_refused and not is_open else self._unknown(error)

    def _unknown(self, error: CortadoError) -> OutcomeUnknown:
        """Return the error for the caller about chunks that were sent and not answered."""
        first, last = self._in_flight[0][1].rows[0], self._in_flight[-1][1].rows[-1]
        request_id = self._in_flight[0][0].chunk.request_id.hex()
        return OutcomeUnknown(f"rows {first} to {last} of the bulk load: {error}", request_id)
