"""The key-value API: bytes by bytes, ordered, in namespaces."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import Any, Final, NamedTuple, TypeAlias

from cortado.errors import InvalidArgument
from cortado.proto.v1 import common_pb2, kv_pb2
from cortado.store.client.arguments import sequence, text
from cortado.store.client.connection import Connection
from cortado.store.client.values import At, at_to_proto
from cortado.store.clock.timestamp import TIMESTAMP_BYTES, Timestamp
from cortado.store.names import check_namespace
from cortado.store.packing import cut, cut_equal

_PAGE_PAIRS_MAX: Final = 1_000
"""A limit up to which a scan begins with a page of its own: as many as a server puts into one."""


class KvPair(NamedTuple):
    """A live pair; ``etag`` names its version, for a conditional write."""

    key: bytes
    value: bytes
    etag: str


@dataclass(frozen=True, slots=True)
class Put:
    """A write of a batch. At most one condition: absent, present, an etag, or the live value."""

    key: bytes
    value: bytes
    if_absent: bool = False
    if_present: bool = False
    if_match: str | None = None
    if_value: bytes | None = None


@dataclass(frozen=True, slots=True)
class Delete:
    """A removal of a batch, perhaps conditional."""

    key: bytes
    if_present: bool = False
    if_match: str | None = None
    if_value: bytes | None = None


Operation: TypeAlias = Put | Delete


class KeyValue:
    """One namespace. Raises InvalidArgument for a namespace that is not a name."""

    def __init__(self, connection: Connection, namespace: str, *, timeout_s: float) -> None:
        self.namespace = check_namespace(namespace)
        self._connection = connection
        self._stub = connection.stubs.kv
        self._timeout_s = timeout_s

    def get(self, key: bytes, *, at: At = None) -> KvPair | None:
        """The pair of ``key``, or None. ``at`` reads in the past."""
        request = kv_pb2.KvGetRequest(namespace=self.namespace, key=_bytes(key, "key"), at=at_to_proto(at))
        reply = self._connection.call(self._stub.Get, request, timeout_s=self._timeout_s)
        return _pair(reply.pair) if reply.HasField("pair") else None

    def put(
        self,
        key: bytes,
        value: bytes,
        *,
        if_absent: bool = False,
        if_present: bool = False,
        if_match: str | None = None,
        if_value: bytes | None = None,
    ) -> str:
        """Stores ``value`` durably and returns its etag.

        Raises ConditionFailed where the condition does not hold: the key is absent, is present, has the etag
        ``if_match``, or holds ``if_value`` (compare-and-set).
        """
        request = kv_pb2.KvPutRequest(
            namespace=self.namespace,
            key=_bytes(key, "key"),
            value=_bytes(value, "value"),
            condition=condition(if_absent=if_absent, if_present=if_present, if_match=if_match, if_value=if_value),
        )
        etag: str = self._connection.write(self._stub.Put, request, timeout_s=self._timeout_s).etag
        return etag

    def delete(
        self, key: bytes, *, if_present: bool = False, if_match: str | None = None, if_value: bytes | None = None
    ) -> bool:
        """Deletes ``key`` durably; True where it existed. Raises ConditionFailed."""
        request = kv_pb2.KvDeleteRequest(
            namespace=self.namespace,
            key=_bytes(key, "key"),
            condition=condition(if_present=if_present, if_match=if_match, if_value=if_value),
        )
        existed: bool = self._connection.write(self._stub.Delete, request, timeout_s=self._timeout_s).existed
        return existed

    def delete_range(self, start: bytes = b"", end: bytes = b"", *, prefix: bytes | None = None) -> int:
        """Deletes ``[start, end)``, or all keys that begin with ``prefix``, at once; returns how many there were.

        A range must be given: to delete a whole namespace, say ``prefix=b""``. Raises TooLarge where the range holds
        more keys than one commit may change.
        """
        if prefix is None and not start and not end:
            raise InvalidArgument(
                "range", "must be given: start, end or prefix (an empty prefix is the whole namespace)"
            )
        request = kv_pb2.KvDeleteRangeRequest(namespace=self.namespace, range=_range(start, end, prefix))
        reply = self._connection.write(self._stub.DeleteRange, request, timeout_s=self._timeout_s)
        deleted: int = reply.deleted
        return deleted

    def scan(
        self,
        start: bytes = b"",
        end: bytes = b"",
        *,
        prefix: bytes | None = None,
        reverse: bool = False,
        limit: int | None = None,
        at: At = None,
    ) -> Iterator[KvPair]:
        """Pairs of ``[start, end)``, or with ``prefix``, in key order, all as of one timestamp."""
        request = kv_pb2.KvScanRequest(
            namespace=self.namespace,
            range=_range(start, end, prefix),
            reverse=reverse,
            limit=check_limit(limit),
            at=at_to_proto(at),
            packed=True,
        )
        return self._pairs(request) if limit != 0 else iter(())

    def _pairs(self, request: kv_pb2.KvScanRequest) -> Iterator[KvPair]:
        if 0 < request.limit <= _PAGE_PAIRS_MAX:
            # Most often all of it, for less than a stream costs.
            page = self._connection.call(self._stub.ScanPage, request, timeout_s=self._timeout_s)
            yield from _unpacked(page.packed)
            if not page.next_page_token:
                return
            request.page_token = page.next_page_token
        for reply in self._connection.replies(self._stub.Scan, request, timeout_s=self._timeout_s):
            yield from _unpacked(reply.packed)
            # Of a server that does not pack.
            yield from map(_pair, reply.pairs)

    def batch(self, operations: Sequence[Operation]) -> str:
        """All or nothing; returns the etag of everything written. A key may appear once. Raises ConditionFailed."""
        request = kv_pb2.KvBatchRequest(namespace=self.namespace)
        add = request.operations.add
        for each in sequence(operations, "operations"):
            _fill(add(), each)
        etag: str = self._connection.write(self._stub.Batch, request, timeout_s=self._timeout_s).etag
        return etag


def condition(
    *,
    if_absent: bool = False,
    if_present: bool = False,
    if_match: str | None = None,
    if_value: bytes | None = None,
) -> common_pb2.Condition | None:
    """The condition asked for, or None. Raises InvalidArgument for more than one."""
    given: dict[str, Any] = {}
    if if_absent:
        given["absent"] = True
    if if_present:
        given["present"] = True
    if if_match is not None:
        given["etag"] = text(if_match, "if_match")
    if if_value is not None:
        given["value"] = _bytes(if_value, "if_value")
    if len(given) > 1:
        raise InvalidArgument(
            "condition", "must be one of if_absent, if_present, if_match and if_value", str(list(given))
        )
    return common_pb2.Condition(**given) if given else None


def check_limit(limit: int | None) -> int:
    """A limit as the API carries it, 0 for none. Raises InvalidArgument."""
    if limit is None:
        return 0
    if isinstance(limit, bool) or not isinstance(limit, int) or not 0 <= limit < 1 << 63:
        raise InvalidArgument("limit", "must be a whole number, 0 or more", repr(limit))
    return limit


_NO_CONDITION: Final = (False, False, None, None)


def _condition_of(
    if_absent: bool, if_present: bool, if_match: str | None, if_value: bytes | None
) -> common_pb2.Condition:
    made = condition(if_absent=if_absent, if_present=if_present, if_match=if_match, if_value=if_value)
    return common_pb2.Condition() if made is None else made


def _fill(message: kv_pb2.KvOperation, operation: Operation) -> None:
    """Where there are thousands, filling in is several times as fast as making messages and copying them."""
    match operation:
        case Put():
            write = message.put
            write.key, write.value = _bytes(operation.key, "key"), _bytes(operation.value, "value")
            asked = (operation.if_absent, operation.if_present, operation.if_match, operation.if_value)
            if asked != _NO_CONDITION:
                write.condition.CopyFrom(_condition_of(*asked))
        case Delete():
            remove = message.delete
            remove.key = _bytes(operation.key, "key")
            asked = (False, operation.if_present, operation.if_match, operation.if_value)
            if asked != _NO_CONDITION:
                remove.condition.CopyFrom(_condition_of(*asked))
        case _:
            raise InvalidArgument("operations", "must be Put or Delete", type(operation).__name__)


def _range(start: bytes, end: bytes, prefix: bytes | None) -> kv_pb2.KvRange:
    if prefix is None:
        return kv_pb2.KvRange(start=_bytes(start, "start"), end=_bytes(end, "end"))
    if start or end:
        raise InvalidArgument("prefix", "must not be given together with start or end")
    return kv_pb2.KvRange(prefix=_bytes(prefix, "prefix"))


def _unpacked(packed: kv_pb2.KvPackedPairs) -> Iterator[KvPair]:
    versions = cut_equal(packed.versions, TIMESTAMP_BYTES)
    # What was written at once has one timestamp, and neighbours often were.
    etags = {each: str(Timestamp.from_bytes(each)) for each in set(versions)}
    pairs = zip(
        cut(packed.keys, packed.key_lengths),
        cut(packed.values, packed.value_lengths),
        map(etags.__getitem__, versions),
        strict=True,
    )
    # As KvPair._make, without a call of Python's for each.
    return map(tuple.__new__, repeat(KvPair), pairs)


def _pair(pair: kv_pb2.KvPair) -> KvPair:
    return KvPair(pair.key, pair.value, pair.etag)


def _bytes(value: bytes, field: str) -> bytes:
    if type(value) is bytes:
        return value
    if not isinstance(value, bytes | bytearray | memoryview):
        raise InvalidArgument(field, "must be bytes", type(value).__name__)
    return bytes(value)
