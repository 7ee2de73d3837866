"""The common part of all services: headers, reads at a time, writes with a request id, streams of slices.

A service has one method for each call of its ``.proto`` file; :mod:`cortado.store.server.rpc` finds it by its name. The
``.proto`` file and ``docs/api`` hold a call's meaning, its fields, their units and its errors; a docstring here has
only the rest. There are three kinds::

    a write    answers when its entry is committed, with the bytes that a repetition is answered with, too
    a read     chooses a timestamp, waits until that can be read here, and answers with a message
    a stream   yields serialized replies, one for each slice that a scan thread has read

All raise NotLeader and Unavailable if this node cannot answer, and ResourceExhausted if a gate is full.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import suppress
from hashlib import blake2b
from typing import Any, Final, TypeAlias, TypeVar

from google.protobuf.message import Message

from cortado.errors import ResourceExhausted, TimestampInFuture, TooLarge, Unavailable
from cortado.proto.v1 import cluster_pb2, common_pb2
from cortado.store.auth.caller import CALLER, asking, check_renamed
from cortado.store.auth.roles import table_resource
from cortado.store.catalog.catalog import Catalog
from cortado.store.catalog.descriptors import TableDescriptor
from cortado.store.clock.timestamp import Timestamp
from cortado.store.host.host import Host
from cortado.store.keys.types import LogicalKey
from cortado.store.mvcc.evaluation import Evaluate, Evaluation
from cortado.store.mvcc.mutations import Mutations
from cortado.store.mvcc.reader import Reader
from cortado.store.mvcc.transacting import DECODING, Origin
from cortado.store.process.limits import check_bound
from cortado.store.replica.replica import Replica, Role
from cortado.store.replica.write.proposals import WriteResult
from cortado.store.replica.write.request_table.records import HASH_BYTES, owned_hash
from cortado.store.server.config import MESSAGE_BYTES_MAX
from cortado.store.server.convert import read_at, timestamp_message
from cortado.store.server.operation_messages import operation_count, operations_of
from cortado.store.tables.operations import DocumentInput
from cortado.store.tables.prepared import PreparedDocument
from cortado.store.tables.write import prepare_documents
from cortado.store.transactions.commit import Staged, check_operations
from cortado.store.transactions.limits import TransactionLimits
from cortado.store.transactions.reading import TransactionReads

Outcome = TypeVar("Outcome")

REGION_EPOCH: Final = 1
"""All keys are in one region, and its range never changed."""

# Own writes take some tens of microseconds each: more of them are staged beside the loop.
_OPERATIONS_ON_THE_LOOP: Final = 64
READ_ON_THE_LOOP_BYTES: Final = 16 << 10
DECODED_ON_THE_LOOP_BYTES: Final = 64 << 10
"""The bytes of documents that operations change or pass by: JSON and numbers take half a microsecond a byte."""

# The overhead of an item within a reply: its tag and its length.
_ITEM_BYTES: Final = 5
KEYS_ON_THE_LOOP: Final = 16
"""Values may be large: more keys than these are read beside the loop."""

SLICE_ROWS_MAX: Final = 4_000
SLICE_BYTES_MAX: Final = 1 << 20
SLICE_MS_MAX: Final = 10.0

RESOLVED_INTERVAL_MS: Final = 1_000
RESOLVED_INTERVAL_MS_MAX: Final = 60_000

Step: TypeAlias = "Callable[[], tuple[bytes | None, Step | None]]"
"""One slice of a stream: the reply that it makes, serialized, if it makes one, and the step after it."""

_OnlyHeader: Final = cluster_pb2.AcceptLossResponse
"""Every reply has its header as its first field, so each begins with the bytes of this one."""


class Service:
    """Base of the services: they hold the host and nothing else; the data lies with a replica."""

    def __init__(self, host: Host) -> None:
        self.host = host
        self._last_header: tuple[Timestamp | None, common_pb2.Header] = None, common_pb2.Header()

    @property
    def transaction_limits(self) -> TransactionLimits:
        """The limits of a transaction at this node."""
        limits = self.host.process.limits
        return TransactionLimits(
            limits.transaction_operations_max,
            limits.transaction_bytes_max,
            limits.footprint_keys_max,
            limits.footprint_ranges_max,
        )

    def header(self, ts: Timestamp) -> common_pb2.Header:
        """Return the header for a reply. Copy it, and do not change it: reads that share a round share it."""
        last_ts, header = self._last_header
        term = self.host.meta.term
        if last_ts is ts and header.term == term:
            return header
        identity = self.host.process.identity
        header = common_pb2.Header(
            cluster_id=identity.cluster_id,
            node_id=identity.node_id,
            term=term,
            timestamp=timestamp_message(ts),
            region_id=self.host.meta.group_id,
            region_epoch=REGION_EPOCH,
        )
        self._last_header = ts, header
        return header

    def catalog(self, replica: Replica, read_ts: Timestamp | None = None) -> Catalog:
        """Return the catalog that the replica sees at ``read_ts``, or the newest, to be read on the loop.

        Acknowledged changes are seen after :meth:`newest`, or after :meth:`read_ts` if the request names no time.
        """
        return replica.catalog(replica.reader(replica.read_ts() if read_ts is None else read_ts))

    def applied_catalog(self, replica: Replica) -> Catalog:
        """Return the newest catalog that is applied, to be read on any thread."""
        return replica.catalog(replica.store.snapshot(replica.applied.last_ts))

    async def newest_applied_catalog(self, replica: Replica) -> Catalog:
        """Return the catalog as :meth:`applied_catalog` does, once it has all that :meth:`catalog` has now."""
        await replica.reads.applied_to(replica.read_ts())
        return self.applied_catalog(replica)

    def catalog_at(self, replica: Replica, read_ts: Timestamp, at: common_pb2.ReadAt) -> Catalog:
        """Return the catalog of a read at ``read_ts``, the timestamp of ``at``: the tables of that time, since a name
        may mean another table by now, and the newest schemas.

        A read that names no time uses the newest state of both.
        """
        if at.WhichOneof("kind") is None:
            return self.catalog(replica, read_ts)
        return self._catalog_of(replica, read_ts, self.catalog(replica))

    async def applied_catalog_at(self, replica: Replica, read_ts: Timestamp, at: common_pb2.ReadAt) -> Catalog:
        """Return the catalog as :meth:`catalog_at` does, for a ``read_ts`` that is applied, to be read on any
        thread."""
        if at.WhichOneof("kind") is None:
            return self.catalog(replica, read_ts)
        return await self.applied_catalog_of(replica, read_ts)

    async def applied_catalog_of(self, replica: Replica, read_ts: Timestamp) -> Catalog:
        """Return the catalog of a read that names the time ``read_ts``, which is applied, to be read on any thread."""
        return self._catalog_of(replica, read_ts, await self.newest_applied_catalog(replica))

    def _catalog_of(self, replica: Replica, read_ts: Timestamp, newest: Catalog) -> Catalog:
        """Return the catalog of a read that names the time ``read_ts``. The lookup of a table that has another name by
        now raises PermissionDenied, unless the caller may read by that name, too."""
        caller = CALLER.get()

        def check(then: TableDescriptor, now: TableDescriptor) -> None:
            check_renamed(caller, table_resource(then.database, then.name), table_resource(now.database, now.name))

        return newest.named_as_in(self.catalog(replica, read_ts), check)

    async def newest(self) -> Timestamp:
        """Return a timestamp at which all acknowledged writes are seen. Raises NotLeader, Unavailable."""
        return await self.host.meta.reads.linearize()

    def read_ts(self, replica: Replica, at: common_pb2.ReadAt) -> Awaitable[Timestamp]:
        """Return the timestamp of a request's ``at`` at the replica. Raises InvalidArgument, TimestampInFuture,
        NotLeader, Unavailable."""
        return replica.reads.resolve(read_at(at, self.host.process.clock.epoch))

    async def scan_ts(self, replica: Replica, at: common_pb2.ReadAt) -> Timestamp:
        """Return the timestamp as :meth:`read_ts` does, once all commits up to it are applied: for reads from the
        engine alone."""
        return await replica.reads.applied_to(await self.read_ts(replica, at))

    def check_not_ahead(self, replica: Replica, after: Timestamp, field: str) -> None:
        """Check the start of a watch: after a far future time it would be silent until then. Raises TimestampInFuture
        that names ``field``, Unavailable."""
        clock = self.host.process.clock
        newest = max(replica.read_ts(), clock.last)
        bound_ms = max(newest.wall_ms, clock.physical_ms) + clock.max_offset_ms
        if after.epoch <= newest.epoch and after.wall_ms <= bound_ms:
            return
        if replica.role is Role.LEADER:
            problem = f"is more than {clock.max_offset_ms} ms ahead of the server's clock"
            raise TimestampInFuture(field, problem, str(after), str(newest))
        raise Unavailable(f"this replica has applied what is committed up to {replica.read_ts()}", retry_delay_ms=100)

    async def transaction_reads(
        self, replica: Replica, at: common_pb2.ReadAt, read_ts: Timestamp
    ) -> TransactionReads | None:
        """Return the reads of a transaction at ``read_ts``, if it wants its own writes seen or its reads noted; None
        for other readers. Raises the errors that the own writes would be refused with."""
        if not at.own_writes and not at.footprint:
            return None
        return TransactionReads(replica.store, *await self._own_writes(replica, at, read_ts))

    async def _own_writes(
        self, replica: Replica, at: common_pb2.ReadAt, read_ts: Timestamp
    ) -> tuple[Mutations, Collection[LogicalKey]]:
        """Return the own writes, and the rows that they add to. Quick ones are staged on the loop; others, once found
        to be slow, beside it."""
        if not at.own_writes:
            return Mutations(), ()
        if len(at.own_writes) <= _OPERATIONS_ON_THE_LOOP and at.ByteSize() <= READ_ON_THE_LOOP_BYTES:
            try:
                origin = Origin(replica.reader(read_ts), decoded_bytes_max=DECODED_ON_THE_LOOP_BYTES)
                return _staged(at, origin, self.catalog_at(replica, read_ts, at), self.transaction_limits)
            except ResourceExhausted as refusal:
                if refusal.resource != DECODING:
                    raise
        base = replica.store.snapshot(await replica.reads.applied_to(read_ts))
        catalog = await self.applied_catalog_at(replica, read_ts, at)
        return await self.host.process.scan(lambda: _staged(at, Origin(base), catalog, self.transaction_limits))

    async def point_reader(
        self, replica: Replica, at: common_pb2.ReadAt, read_ts: Timestamp
    ) -> tuple[Reader, TransactionReads | None]:
        """Return the reader for reads by key, and the :meth:`transaction_reads`, for the footprint. It may see writes
        that are committed and not applied yet, so it reads on the loop alone, unless ``read_ts`` is applied. Raises as
        that does."""
        reads = await self.transaction_reads(replica, at, read_ts)
        reader = replica.reader(read_ts)
        return (reader if reads is None else reads.reader(reader)), reads

    async def write(
        self,
        replica: Replica,
        request: Message,
        request_id: bytes,
        evaluate: Evaluate,
        reply: Callable[[Timestamp, object], Message],
    ) -> bytes:
        """Write at the replica; return the reply's bytes, this call's or those of the first with this id. ``reply``
        leaves out the header."""
        submitted = replica.submit(
            evaluate,
            size_bytes=request.ByteSize(),
            request_id=request_id,
            request_hash=request_hash(request) if request_id else b"",
            encode_reply=lambda ts, value: reply(ts, value).SerializeToString(),
        )
        return self.with_header(await replica.answer(submitted))

    async def change(
        self, request: Any, evaluate: Evaluate, kind: type[Outcome], reply: Callable[[Outcome], Message]
    ) -> bytes:
        """Write at the meta group, as :meth:`write` does; ``evaluate`` ends with an outcome of ``kind``."""

        def told(_ts: Timestamp, value: object) -> Message:
            assert isinstance(value, kind)
            return reply(value)

        return await self.write(self.host.meta, request, request.request_id, evaluate, told)

    async def change_catalog(
        self,
        request: Any,
        change: Callable[[Catalog, Timestamp], Evaluation],
        kind: type[Outcome],
        reply: Callable[[Outcome], Message],
    ) -> bytes:
        """Change the catalog, as :meth:`change` does."""
        return await self.change(request, self.changing(change), kind, reply)

    def changing(self, change: Callable[[Catalog, Timestamp], Evaluation]) -> Evaluate:
        """Return the evaluation of a change of the catalog. Objects that it creates count for the present caller."""
        asked_by = asking()
        return lambda reader, commit_ts: change(self.host.meta.catalog(reader, asked_by()), commit_ts)

    def with_header(self, result: WriteResult) -> bytes:
        """Return a write's whole reply. Its header is not remembered: two thirds of a put's reply were the names of a
        cluster and a node. The answering node makes a new one, with the commit timestamp of the write."""
        return _OnlyHeader(header=self.header(result.ts)).SerializeToString() + result.reply

    async def prepare(
        self, replica: Replica, request: Message, documents: Mapping[int, tuple[str, str, DocumentInput]]
    ) -> Mapping[int, PreparedDocument | None]:
        """Read the documents of a large request beside the loop, in slices; evaluation reads those of a small one."""
        prepared: dict[int, PreparedDocument | None] = {}
        if request.ByteSize() <= READ_ON_THE_LOOP_BYTES:
            return prepared
        catalog = await self.newest_applied_catalog(replica)
        reading = zip(documents, prepare_documents(catalog, list(documents.values())), strict=False)

        def slice_of_them() -> bool:
            until_ms = self.host.process.monotonic_ms() + SLICE_MS_MAX
            for place, document in reading:
                prepared[place] = document
                if self.host.process.monotonic_ms() > until_ms:
                    return True
            return False

        with self.host.process.reads.place():
            while await self.host.process.scan(slice_of_them):
                pass
        return prepared

    async def stream(self, step: Step | None) -> AsyncGenerator[bytes, None]:
        """Run ``step`` and those after it on a scan thread, one ahead of the sent reply.

        A caller that goes away or is slow stops it: at most two slices are made in vain.
        """
        ahead: asyncio.Future[tuple[bytes | None, Step | None]] | None = None
        try:
            while step is not None or ahead is not None:
                if ahead is None:
                    assert step is not None
                    ahead = asyncio.ensure_future(self.host.process.scan_stream(step))
                reply, step = await ahead
                ahead = None if step is None else asyncio.ensure_future(self.host.process.scan_stream(step))
                if reply is not None:
                    yield reply
                step = None
        finally:
            if ahead is not None:
                ahead.cancel()
                with suppress(asyncio.CancelledError):
                    await ahead


def resolved_interval_ms(asked: int, field: str) -> int:
    """Return the interval of a watch's resolved timestamps; 0 asks for a second. Raises InvalidArgument that names
    ``field``."""
    interval_ms = asked or RESOLVED_INTERVAL_MS
    check_bound(field, interval_ms, 1, RESOLVED_INTERVAL_MS_MAX)
    return interval_ms


def _staged(
    at: common_pb2.ReadAt, origin: Origin, catalog: Catalog, limits: TransactionLimits
) -> tuple[Mutations, Collection[LogicalKey]]:
    check_operations(operation_count(at.own_writes), limits, "at.own_writes")
    staged = Staged(origin, catalog, limits, "at.own_writes")
    staged.run(operations_of(catalog, at.own_writes, "at.own_writes"))
    return staged.mutations(), staged.added


class ReplySize:
    """The size of a reply, item by item."""

    def __init__(self, clock_ms: Callable[[], float], *, may_stop_early: bool) -> None:
        self._clock_ms = clock_ms
        self._may_stop_early = may_stop_early
        self._until_ms = clock_ms() + SLICE_MS_MAX
        self._size_bytes = 0

    def takes(self, item_bytes: int) -> bool:
        """Return whether one more item belongs into this reply; the first always does. Raises TooLarge if all must, and
        cannot."""
        is_first = not self._size_bytes
        self._size_bytes += item_bytes + _ITEM_BYTES
        if self._may_stop_early:
            return is_first or (self._size_bytes <= SLICE_BYTES_MAX and self._clock_ms() <= self._until_ms)
        if self._size_bytes > MESSAGE_BYTES_MAX:
            problem = f"would have more than {MESSAGE_BYTES_MAX} bytes: ask for fewer keys, or set may_stop_early"
            raise TooLarge("reply", problem, length=self._size_bytes, limit=MESSAGE_BYTES_MAX)
        return True


def footprint_of(reads: TransactionReads | None, at: common_pb2.ReadAt) -> bytes:
    """Return the footprint of the reads since the last reply, if the request asks for it."""
    return reads.take_footprint().encode() if reads is not None and at.footprint else b""


def request_hash(request: Message) -> bytes:
    """Return a hash of the message's type, which stands for the method, and of all fields: equal for equal requests of
    one principal."""
    return request_hashes([request])[0]


def request_hashes(requests: Sequence[Message]) -> list[bytes]:
    """Return the :func:`request_hash` of each; all are of one kind."""
    of_kind = blake2b(requests[0].DESCRIPTOR.full_name.encode(), digest_size=HASH_BYTES)
    principal, hashes = asking()().principal, []
    for request in requests:
        digest = of_kind.copy()
        digest.update(request.SerializeToString(deterministic=True))
        hashes.append(owned_hash(digest.digest(), principal))
    return hashes
