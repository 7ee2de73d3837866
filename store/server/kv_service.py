"""``cortado.v1.KeyValue``."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import Any, Final

from google.protobuf.message import Message

from cortado.errors import InvalidArgument
from cortado.proto.v1 import kv_pb2
from cortado.store.clock.timestamp import Timestamp
from cortado.store.keys.keyspace import kv_key
from cortado.store.kv.batches import KvBatch, check_operation_count, evaluate_batch
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
)
from cortado.store.kv.ranges import KvRange
from cortado.store.kv.scan import KvScan, KvScanRequest, KvSlice, begin_scan, read_slice, resume_scan
from cortado.store.mvcc.evaluation import Condition, Evaluation
from cortado.store.mvcc.reader import Reader
from cortado.store.node.replica import Replica
from cortado.store.packing import LENGTH_BYTES, cut, join
from cortado.store.server.convert import condition_value, read_at_text
from cortado.store.server.service import SLICE_BYTES_MAX, SLICE_ROWS_MAX, Service, Step

PAGE_PAIRS_MAX: Final = 1_000
PAGE_BYTES_MAX: Final = 512 << 10
"""Of a page that a call asks for, which is read on the event loop: about a millisecond, where it is in memory."""


class KeyValueService(Service):
    """Bytes by bytes, in namespaces."""

    async def get(self, request: kv_pb2.KvGetRequest) -> Message:
        with self.host.reads.place():
            replica = self._replica(request.namespace)
            read_ts = await self.read_ts(replica, request.at)
            pair = get(replica.reader(read_ts), request.namespace, request.key)
        return kv_pb2.KvGetResponse(header=self.header(read_ts), pair=None if pair is None else _pair(pair))

    async def put(self, request: kv_pb2.KvPutRequest) -> bytes:
        put = KvPut(request.key, request.value, condition_value(request.condition, kv=True))

        def evaluate(reader: Reader, commit_ts: Timestamp) -> Evaluation:
            return evaluate_put(reader, commit_ts, request.namespace, put)

        def reply(ts: Timestamp, _value: object) -> Message:
            return kv_pb2.KvPutResponse(header=self.header(ts), etag=str(ts))

        return await self.write(self._replica(request.namespace), request, request.request_id, evaluate, reply)

    async def delete(self, request: kv_pb2.KvDeleteRequest) -> bytes:
        delete = KvDelete(request.key, condition_value(request.condition, kv=True))

        def evaluate(reader: Reader, _commit_ts: Timestamp) -> Evaluation:
            return evaluate_delete(reader, request.namespace, delete)

        def reply(ts: Timestamp, value: object) -> Message:
            assert isinstance(value, KvDeleted)
            return kv_pb2.KvDeleteResponse(header=self.header(ts), existed=value.existed)

        return await self.write(self._replica(request.namespace), request, request.request_id, evaluate, reply)

    async def delete_range(self, request: kv_pb2.KvDeleteRangeRequest) -> bytes:
        within = _range(request.range)

        def evaluate(reader: Reader, _commit_ts: Timestamp) -> Evaluation:
            return evaluate_delete_range(reader, request.namespace, within)

        def reply(ts: Timestamp, value: object) -> Message:
            assert isinstance(value, KvRangeDeleted)
            return kv_pb2.KvDeleteRangeResponse(header=self.header(ts), deleted=value.deleted)

        return await self.write(self._replica(request.namespace), request, request.request_id, evaluate, reply)

    async def batch(self, request: kv_pb2.KvBatchRequest) -> bytes:
        batch = _batch(request)

        def evaluate(reader: Reader, commit_ts: Timestamp) -> Evaluation:
            return evaluate_batch(reader, commit_ts, request.namespace, batch)

        def reply(ts: Timestamp, _value: object) -> Message:
            return kv_pb2.KvBatchResponse(header=self.header(ts), etag=str(ts))

        return await self.write(self._replica(request.namespace), request, request.request_id, evaluate, reply)

    async def scan(self, request: kv_pb2.KvScanRequest) -> AsyncGenerator[bytes, None]:
        with self.host.scans.place():
            replica = self._replica(request.namespace)
            scan = await self._plan(replica, request)
            async with aclosing(
                self.stream(self._step(replica, scan, request.page_size or None, packed=request.packed))
            ) as replies:
                async for reply in replies:
                    yield reply

    async def scan_page(self, request: kv_pb2.KvScanRequest) -> bytes:
        # On the loop: it is bounded, and two changes of thread would cost a good part of what the reading does.
        with self.host.reads.place():
            replica = self._replica(request.namespace)
            scan = await self._plan(replica, request)
            rows_max = min(request.page_size or PAGE_PAIRS_MAX, PAGE_PAIRS_MAX)
            found = read_slice(replica.store, scan, rows_max=rows_max, bytes_max=PAGE_BYTES_MAX)
        return self._scan_reply(scan, found, packed=request.packed)

    async def _plan(self, replica: Replica, request: kv_pb2.KvScanRequest) -> KvScan:
        scan_request = KvScanRequest(
            namespace=request.namespace,
            within=_range(request.range),
            reverse=request.reverse,
            limit=request.limit,
            keys_only=request.keys_only,
            at=read_at_text(request.at),
        )
        if request.page_token:
            scan = resume_scan(scan_request, request.page_token)
            read_ts = await replica.reads.resolve(scan.read_ts)
            return replace(scan, read_ts=await replica.reads.applied_to(read_ts))
        return begin_scan(scan_request, await self.scan_ts(replica, request.at))

    def _replica(self, namespace: str) -> Replica:
        """A namespace lies with one replica, so that a batch is one entry. Raises InvalidArgument."""
        return self.host.replica_of(kv_key(namespace, b""))

    def _step(self, replica: Replica, scan: KvScan, page_left: int | None, *, packed: bool) -> Step:
        """Read a slice; where the page ends with it, or the scan, no step follows."""

        def step() -> tuple[bytes, Step | None]:
            rows_max = SLICE_ROWS_MAX if page_left is None else min(SLICE_ROWS_MAX, page_left)
            found = read_slice(replica.store, scan, rows_max=rows_max, bytes_max=SLICE_BYTES_MAX)
            left = None if page_left is None else page_left - len(found.keys)
            following = (
                None if found.rest is None or left == 0 else self._step(replica, found.rest, left, packed=packed)
            )
            return self._scan_reply(scan, found, packed=packed), following

        return step

    def _scan_reply(self, scan: KvScan, found: KvSlice, *, packed: bool) -> bytes:
        reply = kv_pb2.KvScanResponse(
            header=self.header(scan.read_ts), next_page_token=b"" if found.rest is None else found.rest.page_token()
        )
        if packed:
            _pack(found, reply.packed)
        else:
            add = reply.pairs.add
            for pair in found.pairs:
                add(key=pair.key, value=pair.value, etag=str(pair.etag))
        return reply.SerializeToString()


def _pack(found: KvSlice, into: kv_pb2.KvPackedPairs) -> None:
    into.keys, into.key_lengths = join(found.keys)
    into.values, into.value_lengths = join(found.values)
    into.versions = found.versions


def _pair(pair: KvPair) -> kv_pb2.KvPair:
    return kv_pb2.KvPair(key=pair.key, value=pair.value, etag=str(pair.etag))


def _range(message: kv_pb2.KvRange) -> KvRange:
    return KvRange(message.start, message.end, message.prefix)


def _batch(request: kv_pb2.KvBatchRequest) -> KvBatch:
    """The operations of a batch, however they came. Raises InvalidArgument, TooLarge."""
    if not request.HasField("packed"):
        return KvBatch.of([_operation(each, i) for i, each in enumerate(request.operations)])
    if request.operations:
        raise InvalidArgument("packed", "must not be given together with operations")
    packed = request.packed
    check_operation_count(len(packed.key_lengths) // LENGTH_BYTES)
    keys = _cut(packed.keys, packed.key_lengths, "packed.keys")
    values = _cut(packed.values, packed.value_lengths, "packed.values")
    if len(keys) != len(values):
        raise InvalidArgument("packed.value_lengths", f"are of {len(values)} values, and there are {len(keys)} keys")
    return KvBatch(keys, values, _deletes(packed.deletes, values), _conditions(packed.conditions, len(keys)))


def _cut(joined: bytes, lengths: bytes, field: str) -> tuple[bytes, ...]:
    try:
        return cut(joined, lengths)
    except ValueError as contradiction:
        raise InvalidArgument(field, str(contradiction)) from None


def _deletes(places: Sequence[int], values: Sequence[bytes]) -> frozenset[int]:
    for place in places:
        _check_place(place, len(values), "packed.deletes")
        if values[place]:
            raise InvalidArgument("packed.deletes", "names an operation that has a value", str(place))
    return frozenset(places)


def _conditions(messages: Sequence[kv_pb2.KvPackedCondition], count: int) -> dict[int, Condition]:
    conditions: dict[int, Condition] = {}
    for message in messages:
        place = message.operation
        _check_place(place, count, "packed.conditions")
        if place in conditions:
            raise InvalidArgument("packed.conditions", "has two for one operation", str(place))
        condition = condition_value(message.condition, field=f"operations[{place}].condition", kv=True)
        if condition is not None:
            conditions[place] = condition
    return conditions


def _check_place(place: int, count: int, field: str) -> None:
    if place >= count:
        raise InvalidArgument(field, f"names an operation that is not there: there are {count}", str(place))


def _operation(message: kv_pb2.KvOperation, place: int) -> KvPut | KvDelete:
    kind = message.WhichOneof("operation")
    if kind is None:
        raise InvalidArgument(f"operations[{place}]", "must set one of put and delete")
    change: Any = message.put if kind == "put" else message.delete
    condition = None
    if change.HasField("condition"):
        condition = condition_value(change.condition, field=f"operations[{place}].{kind}.condition", kv=True)
    return KvPut(change.key, change.value, condition) if kind == "put" else KvDelete(change.key, condition)
