"""``cortado.v1.KeyValue``."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import replace
from functools import partial
from typing import Final

from google.protobuf.message import Message

from cortado.errors import ResourceExhausted, TooLarge
from cortado.proto.v1 import kv_pb2
from cortado.store.auth.caller import CALLER, seen_by
from cortado.store.catalog.namespaces import (
    Looked,
    LookedChange,
    NamespaceDropped,
    drop_namespace,
    pairs_range,
    undrop_namespace,
)
from cortado.store.catalog.stored import generation_of
from cortado.store.clock.timestamp import Timestamp
from cortado.store.keys.keyspace import namespaces_range
from cortado.store.keys.types import LogicalKey
from cortado.store.kv.namespaces import list_namespaces
from cortado.store.kv.operations import (
    KvDelete,
    KvDeleted,
    KvPair,
    KvPut,
    KvRangeDeleted,
    evaluate_delete,
    evaluate_delete_range,
    evaluate_put,
    get,
    get_many,
)
from cortado.store.kv.ranges import KvRange
from cortado.store.kv.scan import KvScan, KvScanRequest, KvSlice, begin_scan, read_slice, resume_scan
from cortado.store.mvcc.evaluation import Evaluation
from cortado.store.mvcc.expiry import NEVER
from cortado.store.mvcc.paging import PageToken, decode_token, encode_token, read_ts_of, request_shape
from cortado.store.mvcc.reader import VALIDATION, Reader, ScanSource
from cortado.store.replica.replica import Replica
from cortado.store.server.convert import condition_value, dropped_message, expiry_value, read_at_text
from cortado.store.server.listing import PAGE_ITEMS_MAX
from cortado.store.server.service import (
    KEYS_ON_THE_LOOP,
    SLICE_BYTES_MAX,
    SLICE_MS_MAX,
    SLICE_ROWS_MAX,
    ReplySize,
    Service,
    Step,
    footprint_of,
)
from cortado.store.tables.rows import BATCH_ROWS_MAX
from cortado.store.transactions.reading import TransactionReads

PAGE_PAIRS_MAX: Final = 1_000
_ATTEMPTS: Final = 3
PAGE_BYTES_MAX: Final = 512 << 10
"""The size of a page that a call reads on the event loop: about a millisecond, if it is in memory."""


class KeyValueService(Service):
    """Bytes by bytes, in namespaces."""

    async def get(self, request: kv_pb2.KvGetRequest) -> Message:
        """Return at most one pair; a key that is absent is no error."""
        with self.host.process.reads.place():
            replica = self.host.replica_of_namespace(request.namespace)
            read_ts = await self.read_ts(replica, request.at)
            reader, reads = await self.point_reader(replica, request.at, read_ts)
            pair = get(reader, request.namespace, request.key)
        return kv_pb2.KvGetResponse(
            header=self.header(read_ts),
            pair=None if pair is None else _pair(pair),
            footprint=footprint_of(reads, request.at),
        )

    async def multi_get(self, request: kv_pb2.KvMultiGetRequest) -> Message:
        """Return the pairs in the order of the keys. If they outgrow a reply, or the time for one, return those that
        fit: the caller asks again for the rest. Raises TooLarge above BATCH_ROWS_MAX keys."""
        count = len(request.keys)
        if count > BATCH_ROWS_MAX:
            raise TooLarge("keys", f"must be at most {BATCH_ROWS_MAX}", str(count), count, BATCH_ROWS_MAX)
        is_beside = count > KEYS_ON_THE_LOOP
        with self.host.process.reads.place():
            replica = self.host.replica_of_namespace(request.namespace)
            read_ts = await (self.scan_ts if is_beside else self.read_ts)(replica, request.at)
            reader, reads = await self.point_reader(replica, request.at, read_ts)
            if is_beside:
                reply = await self.host.process.scan(lambda: self._multi_get(request, reader, read_ts))
            else:
                reply = self._multi_get(request, reader, read_ts)
        reply.footprint = footprint_of(reads, request.at)
        return reply

    def _multi_get(
        self, request: kv_pb2.KvMultiGetRequest, reader: Reader, read_ts: Timestamp
    ) -> kv_pb2.KvMultiGetResponse:
        reply = kv_pb2.KvMultiGetResponse(header=self.header(read_ts))
        pairs = get_many(reader, request.namespace, request.keys)
        size = ReplySize(self.host.process.monotonic_ms, may_stop_early=request.may_stop_early)
        for pair in pairs:
            # Filled in place, since a message that is added would be copied.
            if pair is None:
                found = reply.pairs.add()
            else:
                found = reply.pairs.add(key=pair.key, value=pair.value, etag=str(pair.etag), expires_ms=pair.expires_ms)
            if not size.takes(found.ByteSize()):
                del reply.pairs[-1]
                break
        return reply

    async def put(self, request: kv_pb2.KvPutRequest) -> bytes:
        """Write one pair. Raises ConditionFailed, KeyTooLong, TooLarge (the value)."""
        condition, expiry = condition_value(request.condition, kv=True), expiry_value(request) or NEVER
        put = KvPut(request.key, request.value, condition, expiry)

        def evaluate(reader: Reader, commit_ts: Timestamp) -> Evaluation:
            return evaluate_put(reader, commit_ts, request.namespace, put)

        def reply(ts: Timestamp, _value: object) -> Message:
            return kv_pb2.KvPutResponse(etag=str(ts))

        return await self.write(
            self.host.replica_of_namespace(request.namespace), request, request.request_id, evaluate, reply
        )

    async def delete(self, request: kv_pb2.KvDeleteRequest) -> bytes:
        """Delete a pair, and return whether there was one. Raises ConditionFailed."""
        delete = KvDelete(request.key, condition_value(request.condition, kv=True))

        def evaluate(reader: Reader, _commit_ts: Timestamp) -> Evaluation:
            return evaluate_delete(reader, request.namespace, delete)

        def reply(_ts: Timestamp, value: object) -> Message:
            assert isinstance(value, KvDeleted)
            return kv_pb2.KvDeleteResponse(existed=value.existed)

        return await self.write(
            self.host.replica_of_namespace(request.namespace), request, request.request_id, evaluate, reply
        )

    async def delete_range(self, request: kv_pb2.KvDeleteRangeRequest) -> bytes:
        """Delete all pairs in the range in one entry, or none: raises TooLarge beyond the bound of one write."""
        within = _range(request.range)

        def evaluate(reader: Reader, _commit_ts: Timestamp) -> Evaluation:
            return evaluate_delete_range(reader, request.namespace, within)

        def reply(_ts: Timestamp, value: object) -> Message:
            assert isinstance(value, KvRangeDeleted)
            return kv_pb2.KvDeleteRangeResponse(deleted=value.deleted)

        return await self.write(
            self.host.replica_of_namespace(request.namespace), request, request.request_id, evaluate, reply
        )

    async def scan(self, request: kv_pb2.KvScanRequest) -> AsyncGenerator[bytes, None]:
        """Yield pairs in slices until the page, the limit or the range ends."""
        with self.host.process.scans.place():
            replica = self.host.replica_of_namespace(request.namespace)
            scan, reads = await self._plan(replica, request)
            step = _ScanSteps(self, replica, request, reads).step(scan, request.page_size or None)
            async with aclosing(self.stream(step)) as replies:
                async for reply in replies:
                    yield reply

    async def scan_page(self, request: kv_pb2.KvScanRequest) -> bytes:
        """Return the first slice of :meth:`scan` in one reply: at most PAGE_PAIRS_MAX pairs and some PAGE_BYTES_MAX
        bytes."""
        # On the loop: it is bounded, and two changes of thread would cost a good part of the time of the read.
        with self.host.process.reads.place():
            replica = self.host.replica_of_namespace(request.namespace)
            scan, reads = await self._plan(replica, request)
            rows_max = min(request.page_size or PAGE_PAIRS_MAX, PAGE_PAIRS_MAX)
            reply, _ = _ScanSteps(self, replica, request, reads).read(scan, rows_max, PAGE_BYTES_MAX)
        return reply

    async def _plan(self, replica: Replica, request: kv_pb2.KvScanRequest) -> tuple[KvScan, TransactionReads | None]:
        scan_request = KvScanRequest(
            namespace=request.namespace,
            within=_range(request.range),
            reverse=request.reverse,
            limit=request.limit,
            keys_only=request.keys_only,
            at=read_at_text(request.at),
        )
        if request.page_token:
            read_ts = await replica.reads.resolve(read_ts_of(request.page_token))
            read_ts = await replica.reads.applied_to(read_ts)
        else:
            read_ts = await self.scan_ts(replica, request.at)
        reader, reads = await self.point_reader(replica, request.at, read_ts)
        generation = generation_of(reader, request.namespace)
        if request.page_token:
            scan = replace(resume_scan(scan_request, request.page_token, generation), read_ts=read_ts)
        else:
            scan = begin_scan(scan_request, read_ts, generation)
        return scan, reads

    # --- namespaces ----------------------------------------------------------------------------------------------

    async def list_namespaces(self, request: kv_pb2.ListNamespacesRequest) -> Message:
        """Return names that have pairs at that time, and that the caller may know of. A page may be short, or empty
        with a token: it ends after SLICE_MS_MAX of skipping deleted pairs."""
        shape = request_shape("namespaces", read_at_text(request.at))
        start, end = namespaces_range()
        if request.page_token:
            page = decode_token(request.page_token, shape)
            start = LogicalKey(page.resume_within(start, end))
            read_ts = await self.host.meta.reads.resolve(page.read_ts)
        else:
            read_ts = await self.read_ts(self.host.meta, request.at)
        read_ts = await self.host.meta.reads.applied_to(read_ts)
        names_max = min(request.page_size or PAGE_ITEMS_MAX, PAGE_ITEMS_MAX)
        rights = seen_by(CALLER.get())
        among = None if rights is None else rights.namespaces()
        until_ms = self.host.process.monotonic_ms() + SLICE_MS_MAX

        def look() -> tuple[list[str], LogicalKey | None]:
            return list_namespaces(
                self.host.meta.store,
                read_ts,
                start,
                names_max,
                lambda: self.host.process.monotonic_ms() > until_ms,
                among,
            )

        with self.host.process.scans.place():
            names, rest = await self.host.process.scan(look)
        token = b"" if rest is None else encode_token(PageToken(read_ts, rest), shape)
        return kv_pb2.ListNamespacesResponse(header=self.header(read_ts), namespaces=names, next_page_token=token)

    async def drop_namespace(self, request: kv_pb2.DropNamespaceRequest) -> bytes:
        """Drop all pairs at once, in any number: the name gets a new generation. Raises NotFound if it has no pairs."""

        def reply(_ts: Timestamp, value: object) -> Message:
            assert isinstance(value, NamespaceDropped)
            return kv_pb2.DropNamespaceResponse(dropped=dropped_message(value.dropped))

        return await self._write_looked(
            request,
            lambda looked, catalog, ts: drop_namespace(catalog, request.namespace, looked, commit_ts=ts),
            reply,
        )

    async def undrop_namespace(self, request: kv_pb2.UndropNamespaceRequest) -> bytes:
        """Bring back the newest namespace that was dropped under that name, or the one of ``number``. Raises NotFound,
        AlreadyExists."""

        def reply(_ts: Timestamp, _value: object) -> Message:
            return kv_pb2.UndropNamespaceResponse()

        return await self._write_looked(
            request,
            lambda looked, catalog, _: undrop_namespace(catalog, request.namespace, looked, number=request.number),
            reply,
        )

    async def _write_looked(
        self,
        request: kv_pb2.DropNamespaceRequest | kv_pb2.UndropNamespaceRequest,
        change: LookedChange,
        reply: Callable[[Timestamp, object], Message],
    ) -> bytes:
        """Look whether there are pairs, and write; do so again if that has changed meanwhile."""
        for attempts_left in reversed(range(_ATTEMPTS)):
            evaluate = self.changing(partial(change, await self._looked(request.namespace)))
            try:
                return await self.write(
                    self.host.replica_of_namespace(request.namespace), request, request.request_id, evaluate, reply
                )
            except ResourceExhausted as refusal:
                if refusal.resource != VALIDATION or not attempts_left:
                    raise
        raise AssertionError

    async def _looked(self, namespace: str) -> Looked:
        """Search for the first pair beside the loop: it may have to skip many pairs that were deleted of late."""
        replica = self.host.replica_of_namespace(namespace)
        replica.check_serving()
        at = await replica.reads.applied_to(await replica.reads.linearize())
        generation = generation_of(replica.store.snapshot(at), namespace)
        start, end = pairs_range(namespace, generation)
        resume: LogicalKey | None = start
        with self.host.process.scans.place():
            while resume is not None:
                chunk = await self.host.process.scan(partial(replica.store.scan_chunk, resume, end, at, max_rows=1))
                if chunk.keys:
                    return Looked(at, generation, chunk.keys[0])
                resume = chunk.resume
        return Looked(at, generation, None)


class _ScanSteps:
    """The steps of one scan, each a reply."""

    def __init__(
        self, service: Service, replica: Replica, request: kv_pb2.KvScanRequest, reads: TransactionReads | None
    ) -> None:
        self._service = service
        self._at = request.at
        self._packed = request.packed
        self._reads = reads
        self._source: ScanSource = replica.store if reads is None else reads

    def step(self, scan: KvScan, page_left: int | None) -> Step:
        """Return a step that reads a slice; if the page or the scan ends with it, no step follows."""

        def step() -> tuple[bytes, Step | None]:
            rows_max = SLICE_ROWS_MAX if page_left is None else min(SLICE_ROWS_MAX, page_left)
            reply, found = self.read(scan, rows_max, SLICE_BYTES_MAX)
            left = None if page_left is None else page_left - len(found)
            return reply, None if found.rest is None or left == 0 else self.step(found.rest, left)

        return step

    def read(self, scan: KvScan, rows_max: int, bytes_max: int) -> tuple[bytes, KvSlice]:
        """Return one slice, and the reply with it."""
        found = read_slice(self._source, scan, rows_max=rows_max, bytes_max=bytes_max)
        reply = kv_pb2.KvScanResponse(
            header=self._service.header(scan.read_ts),
            next_page_token=b"" if found.rest is None else found.rest.page_token(),
            footprint=footprint_of(self._reads, self._at),
        )
        if self._packed:
            _pack(found, reply.packed)
        else:
            add = reply.pairs.add
            for pair in found.pairs:
                add(key=pair.key, value=pair.value, etag=str(pair.etag))
        return reply.SerializeToString(), found


def _pack(found: KvSlice, into: kv_pb2.KvPackedPairs) -> None:
    into.keys, into.key_lengths = found.keys
    into.values, into.value_lengths = found.values
    into.versions = found.versions


def _pair(pair: KvPair) -> kv_pb2.KvPair:
    return kv_pb2.KvPair(key=pair.key, value=pair.value, etag=str(pair.etag), expires_ms=pair.expires_ms)


def _range(message: kv_pb2.KvRange) -> KvRange:
    return KvRange(message.start, message.end, message.prefix)
