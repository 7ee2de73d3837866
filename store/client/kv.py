"""The key-value API: pairs of bytes, ordered by key, in namespaces."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Iterator, Sequence
from contextlib import aclosing
from itertools import repeat
from struct import pack
from typing import Any, Final, NamedTuple, TypeAlias

from cortado.errors import InvalidArgument
from cortado.proto.v1 import common_pb2, kv_pb2, transactions_pb2, watch_pb2
from cortado.store.client.arguments import flag, sequence, shown
from cortado.store.client.connection import Connection
from cortado.store.client.operations import addition, required
from cortado.store.client.public_faces import public_face
from cortado.store.client.streams import items
from cortado.store.client.values import At, Expires, at_to_proto, etag_text, expiry_to_proto
from cortado.store.client.watch import AsyncWatch, WatchOptions
from cortado.store.client.windows import ChangeWindow, WindowOptions, window_of_pairs
from cortado.store.clock.timestamp import TIMESTAMP_BYTES, texts_of
from cortado.store.keys.names import check_namespace
from cortado.store.keys.packing import cut, cut_equal, join

_PAGE_PAIRS_MAX: Final = 1_000
"""A limit up to which a scan begins with a page of its own: as many as a server puts into one."""


class KvPair(NamedTuple):
    """A live pair; ``etag`` names its version, for a conditional write. It expires at the wall time ``expires_ms``, in
    milliseconds since 1970; 0 for never, and in a scan's pairs."""

    key: bytes
    value: bytes
    etag: str
    expires_ms: int = 0


class Put(NamedTuple):
    """A write of a batch. At most one condition: absent, present, an etag, or the live value. It expires as with
    :meth:`AsyncKeyValue.put`."""

    key: bytes
    value: bytes
    if_absent: bool = False
    if_present: bool = False
    if_etag: str | None = None
    if_value: bytes | None = None
    expires: Expires = None


class Delete(NamedTuple):
    """A removal of a batch, perhaps conditional."""

    key: bytes
    if_present: bool = False
    if_etag: str | None = None
    if_value: bytes | None = None


Operation: TypeAlias = Put | Delete


_KEYS_MAX: Final = 1_000
"""Keys of one request, as many as of one for documents."""


@public_face
class AsyncKeyValue:
    """One namespace. Raises InvalidArgument for a namespace that is not a name.

    The namespace of a transaction is this, too. Its writes wait for the commit, and return None.
    """

    def __init__(self, connection: Connection, namespace: str, *, timeout_s: float) -> None:
        self.namespace = check_namespace(namespace)
        self._connection = connection
        self._stub = connection.stubs.kv
        self._timeout_s = timeout_s

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.namespace!r})"

    async def get(self, key: bytes, *, at: At = None, validate: bool = False) -> KvPair | None:
        """Return the pair of ``key``, or None. ``at`` reads in the past.

        In a transaction with ``validate`` a change of it before the commit is a conflict, under any isolation.
        """
        read_at = self._connection.read_at(at, validate=validate)
        request = kv_pb2.KvGetRequest(namespace=self.namespace, key=_bytes(key, "key"), at=read_at)
        reply = await self._connection.call(self._stub.Get, request, timeout_s=self._timeout_s)
        return _pair(reply.pair) if reply.HasField("pair") else None

    async def get_many(self, keys: Sequence[bytes], *, at: At = None) -> list[KvPair | None]:
        """Return the pairs of ``keys``, in their order, None for a missing one; all as of one timestamp.

        Their number and size are not bounded: they come in as many replies as needed.
        """
        listed = [_bytes(key, "key") for key in sequence(keys, "keys")]
        pairs: list[KvPair | None] = []
        read_at = at_to_proto(at)
        while len(pairs) < len(listed):
            request = kv_pb2.KvMultiGetRequest(
                namespace=self.namespace,
                keys=listed[len(pairs) : len(pairs) + _KEYS_MAX],
                at=read_at,
                may_stop_early=True,
            )
            reply = await self._connection.call(self._stub.MultiGet, request, timeout_s=self._timeout_s)
            pairs += [_pair(pair) if pair.etag else None for pair in reply.pairs]
            read_at = common_pb2.ReadAt(timestamp=reply.header.timestamp)
        return pairs

    async def put(
        self,
        key: bytes,
        value: bytes,
        *,
        if_absent: bool = False,
        if_present: bool = False,
        if_etag: str | None = None,
        if_value: bytes | None = None,
        expires: Expires = None,
    ) -> str:
        """Store ``value`` durably and return its etag. It ``expires`` after a timedelta or at a datetime, else never.

        Raises ConditionFailed if the condition does not hold: the key is absent, is present, has the etag
        ``if_etag``, or holds ``if_value`` (compare-and-set).
        """
        request = kv_pb2.KvPutRequest(
            namespace=self.namespace,
            key=_bytes(key, "key"),
            value=_bytes(value, "value"),
            condition=condition(if_absent=if_absent, if_present=if_present, if_etag=if_etag, if_value=if_value),
            expiry=expiry_to_proto(expires),
        )
        reply = await self._connection.write(self._stub.Put, request, timeout_s=self._timeout_s)
        etag: str = reply.etag
        return etag

    async def delete(
        self, key: bytes, *, if_present: bool = False, if_etag: str | None = None, if_value: bytes | None = None
    ) -> bool:
        """Delete ``key`` durably; True if it existed. Raises ConditionFailed."""
        request = kv_pb2.KvDeleteRequest(
            namespace=self.namespace,
            key=_bytes(key, "key"),
            condition=condition(if_present=if_present, if_etag=if_etag, if_value=if_value),
        )
        reply = await self._connection.write(self._stub.Delete, request, timeout_s=self._timeout_s)
        existed: bool = reply.existed
        return existed

    async def add(self, key: bytes, delta: int, *, min: int | None = None, max: int | None = None) -> int:
        """Add to the counter of ``key``, 8 bytes, signed and big-endian, or 0 if it is missing; return the sum.

        It conflicts with no other add. Raises OutOfBounds if the sum would leave ``[min, max]`` or 64 bits,
        InvalidArgument if the value is no counter.
        """
        add = common_pb2.KvAdd(namespace=self.namespace, key=_bytes(key, "key"), **addition(delta, min, max))
        total: int = (await self._commit([common_pb2.Operation(add_pair=add)])).sums[0]
        return total

    async def require(
        self,
        key: bytes,
        *,
        if_absent: bool = False,
        if_present: bool = False,
        if_etag: str | None = None,
        if_value: bytes | None = None,
    ) -> None:
        """Change nothing; raise ConditionFailed if the condition does not hold, as :meth:`put`. In a transaction, it
        must hold at the commit."""
        asked = condition(if_absent=if_absent, if_present=if_present, if_etag=if_etag, if_value=if_value)
        wanted = required(asked, "if_absent, if_present, if_etag and if_value")
        check = common_pb2.KvCheck(namespace=self.namespace, key=_bytes(key, "key"), condition=wanted)
        await self._commit([common_pb2.Operation(check_pair=check)])

    async def delete_range(self, start: bytes = b"", end: bytes = b"", *, prefix: bytes | None = None) -> int:
        """Delete ``[start, end)``, or all keys that begin with ``prefix``, at once; return how many there were.

        A range must be given: to delete a whole namespace, say ``prefix=b""``. Raises TooLarge if the range holds
        more keys than one commit may change.
        """
        if prefix is None and not start and not end:
            raise InvalidArgument(
                "range", "must be given: start, end or prefix (an empty prefix is the whole namespace)"
            )
        request = kv_pb2.KvDeleteRangeRequest(namespace=self.namespace, range=range_of(start, end, prefix))
        reply = await self._connection.write(self._stub.DeleteRange, request, timeout_s=self._timeout_s)
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
        keys_only: bool = False,
    ) -> AsyncIterator[KvPair]:
        """Yield pairs of ``[start, end)``, or with ``prefix``, in key order, all as of one timestamp.

        With ``keys_only`` the values are empty: the server does not send them. Closing the iterator stops the server's
        work.
        """
        return items(
            self._scan_pages(start, end, prefix=prefix, reverse=reverse, limit=limit, at=at, keys_only=keys_only)
        )

    def _scan_pages(
        self,
        start: bytes = b"",
        end: bytes = b"",
        *,
        prefix: bytes | None = None,
        reverse: bool = False,
        limit: int | None = None,
        at: At = None,
        keys_only: bool = False,
    ) -> AsyncGenerator[Iterable[KvPair], None]:
        """Yield pages of pairs as they come; otherwise as :meth:`scan`."""
        request = kv_pb2.KvScanRequest(
            namespace=self.namespace,
            range=range_of(start, end, prefix),
            reverse=flag(reverse, "reverse"),
            limit=check_limit(limit),
            at=at_to_proto(at),
            keys_only=flag(keys_only, "keys_only"),
            packed=True,
        )
        return self._pages(request, is_empty=limit == 0)

    async def _open_page(
        self, within: kv_pb2.KvRange, token: bytes, *, rows_max: int, reverse: bool, at: At, keys_only: bool
    ) -> tuple[list[KvPair], bytes]:
        """Return up to ``rows_max`` pairs of a range, fewer if they are large, and the token from which the same scan
        goes on, as of the same timestamp; empty at the end. The first page has an empty token."""
        request = kv_pb2.KvScanRequest(
            namespace=self.namespace,
            range=within,
            reverse=reverse,
            page_size=rows_max,
            page_token=token,
            at=at_to_proto(at),
            keys_only=keys_only,
            packed=True,
        )
        page = await self._connection.call(self._stub.ScanPage, request, timeout_s=self._timeout_s)
        return list(unpacked(page.packed)), page.next_page_token

    async def _pages(self, request: kv_pb2.KvScanRequest, *, is_empty: bool) -> AsyncGenerator[Iterable[KvPair], None]:
        if is_empty:
            return
        if 0 < request.limit <= _PAGE_PAIRS_MAX:
            # Most often all of it, for less than a stream costs.
            page = await self._connection.call(self._stub.ScanPage, request, timeout_s=self._timeout_s)
            yield unpacked(page.packed)
            if not page.next_page_token:
                return
            request.page_token = page.next_page_token
        replies = self._connection.replies(self._stub.Scan, request, timeout_s=self._timeout_s)
        async with aclosing(replies):
            async for reply in replies:
                # A server that does not pack has them one by one. All leave the reply before the caller reads them.
                pairs = iter([*map(_pair, reply.pairs)]) if reply.pairs else unpacked(reply.packed)
                del reply
                yield pairs

    def watch(
        self,
        start: bytes = b"",
        end: bytes = b"",
        *,
        prefix: bytes | None = None,
        after: At = None,
        until: At = None,
        initial_state: bool = False,
        with_previous: bool = False,
        resolved_ms: int = 1_000,
    ) -> AsyncWatch[bytes, bytes]:
        """Watch ``[start, end)``, or ``prefix``: an iterator of Changed, Deleted and Resolved, in the order of the
        commits, which resumes by itself.

        Changes come ``after`` a timestamp (or its text, or a datetime with a zone), by default from now on. With
        ``initial_state`` the pairs as they are then come first. ``until`` ends it, or a state that is newer than
        that; otherwise it has no end.
        ``with_previous`` adds the replaced value to each change. At least every ``resolved_ms`` there is an event.
        """
        return self._watch(
            range_of(start, end, prefix), WatchOptions(after, until, initial_state, with_previous, resolved_ms)
        )

    def progress(
        self,
        start: bytes = b"",
        end: bytes = b"",
        *,
        prefix: bytes | None = None,
        after: At = None,
        until: At = None,
        resolved_ms: int = 1_000,
    ) -> AsyncWatch[bytes, bytes]:
        """Watch without the changes: Resolved alone, when the range has changed, and at least every ``resolved_ms``.
        Otherwise as :meth:`watch`. For callers that read the changes in :meth:`windows <window>`."""
        options = WatchOptions(after, until, resolved_ms=resolved_ms, progress_only=True)
        return self._watch(range_of(start, end, prefix), options)

    def _watch(self, within: kv_pb2.KvRange, options: WatchOptions) -> AsyncWatch[bytes, bytes]:
        # It is a source of documents' changes too, which brings schemas.
        from cortado.store.client.watch_sources import PairSource

        self._connection.check_present("watching")
        source = PairSource(self.namespace, within)
        return AsyncWatch(self._connection, source, options, timeout_s=self._timeout_s)

    async def window(
        self,
        start: bytes = b"",
        end: bytes = b"",
        *,
        after: At,
        until: At = None,
        changes_max: int | None = None,
        bytes_max: int | None = None,
        parts: int = 1,
    ) -> ChangeWindow[bytes]:
        """Return the window of the next changes of ``[start, end)`` ``after`` a timestamp: its end, and up to ``parts``
        ranges with about equally many changes. Read each by a :meth:`watch` up to the end.

        It ends with a whole commit: at ``until`` (by default the newest), or before the first commit that would make
        it more than ``changes_max`` changes, or than ``bytes_max`` bytes of stored keys and values. The node
        counts no more than 65,536, or one commit. With the ``until`` that it returned, the same window comes again.
        Raises SnapshotTooOld.
        """
        self._connection.check_present("watching")
        options = WindowOptions(after, until, changes_max, bytes_max, parts)
        of = watch_pb2.WindowOfPairs(namespace=self.namespace, range=range_of(start, end, None))
        return await window_of_pairs(self._connection, of, options, self._timeout_s)

    async def batch(self, operations: Sequence[Operation]) -> str:
        """Write all or nothing, in their order; return the etag of everything written. Raises ConditionFailed."""
        etag: str = (await self._commit(_packed(self.namespace, sequence(operations, "operations")))).etag
        return etag

    async def _commit(self, operations: Iterable[common_pb2.Operation]) -> Any:
        request = transactions_pb2.CommitRequest(operations=operations)
        commit = self._connection.stubs.transactions.Commit
        return await self._connection.write(commit, request, timeout_s=self._timeout_s)


def condition(
    *,
    if_absent: bool = False,
    if_present: bool = False,
    if_etag: str | None = None,
    if_value: bytes | None = None,
) -> common_pb2.Condition | None:
    """Return the condition asked for, or None. Raises InvalidArgument for more than one."""
    if if_absent is False and if_present is False and if_etag is None and if_value is None:
        return None
    given: dict[str, Any] = {}
    if flag(if_absent, "if_absent"):
        given["absent"] = True
    if flag(if_present, "if_present"):
        given["present"] = True
    if if_etag is not None:
        given["etag"] = etag_text(if_etag)
    if if_value is not None:
        given["value"] = _bytes(if_value, "if_value")
    if len(given) > 1:
        raise InvalidArgument("condition", "must be one alone", ", ".join(f"if_{name}" for name in given))
    return common_pb2.Condition(**given) if given else None


def check_limit(limit: int | None) -> int:
    """Return a limit as the API carries it, 0 for None. Raises InvalidArgument."""
    if limit is None:
        return 0
    if isinstance(limit, bool) or not isinstance(limit, int) or not 0 <= limit < 1 << 63:
        raise InvalidArgument("limit", "must be a whole number, 0 or more", shown(limit))
    return limit


_PUT_ALWAYS: Final = Put(b"", b"")[2:]
_DELETE_ALWAYS: Final = Delete(b"")[1:]


def _packed(namespace: str, operations: Sequence[Operation]) -> Iterator[common_pb2.Operation]:
    """Yield each run of operations without conditions as one: for thousands, two long fields are made several times as
    fast as a message for each. Those with a condition stand for themselves. Raises InvalidArgument."""
    run = _Run(namespace)
    for operation in operations:
        match operation:
            case Put():
                key, value = _bytes(operation.key, "key"), _bytes(operation.value, "value")
                if operation[2:] == _PUT_ALWAYS:
                    run.keys.append(key)
                    run.values.append(value)
                    continue
                asked = condition(**_asked(operation))
                single = common_pb2.Operation(
                    put_pair=common_pb2.KvPut(
                        namespace=namespace,
                        key=key,
                        value=value,
                        condition=asked,
                        expiry=expiry_to_proto(operation.expires),
                    )
                )
            case Delete():
                key = _bytes(operation.key, "key")
                if operation[1:] == _DELETE_ALWAYS:
                    run.deletes.append(len(run.keys))
                    run.keys.append(key)
                    run.values.append(b"")
                    continue
                asked = condition(**_asked(operation))
                single = common_pb2.Operation(
                    delete_pair=common_pb2.KvDelete(namespace=namespace, key=key, condition=asked)
                )
            case _:
                raise InvalidArgument("operations", "must be Put or Delete", type(operation).__name__)
        yield from run.take()
        yield single
    yield from run.take()


class _Run:
    """Operations without conditions."""

    def __init__(self, namespace: str) -> None:
        self._namespace = namespace
        self.keys: list[bytes] = []
        self.values: list[bytes] = []
        self.deletes: list[int] = []

    def take(self) -> Iterator[common_pb2.Operation]:
        """Take all of them as one operation, if there are any; then it is empty."""
        if self.keys:
            operation = common_pb2.Operation()
            packed = operation.packed_pairs
            packed.namespace = self._namespace
            packed.keys, packed.key_lengths = join(self.keys)
            packed.values, packed.value_lengths = join(self.values)
            packed.deletes = pack(f"<{len(self.deletes)}I", *self.deletes)
            self.keys, self.values, self.deletes = [], [], []
            yield operation


def _asked(operation: Operation) -> dict[str, Any]:
    """Return the conditions among its fields."""
    return {name: given for name, given in operation._asdict().items() if name.startswith("if_")}


def range_of(start: bytes, end: bytes, prefix: bytes | None) -> kv_pb2.KvRange:
    if prefix is None:
        return kv_pb2.KvRange(start=_bytes(start, "start"), end=_bytes(end, "end"))
    if start or end:
        raise InvalidArgument("prefix", "must not be given together with start or end")
    return kv_pb2.KvRange(prefix=_bytes(prefix, "prefix"))


def unpacked(packed: kv_pb2.KvPackedPairs) -> Iterator[KvPair]:
    """Return the pairs of a page that came packed."""
    versions = cut_equal(packed.versions, TIMESTAMP_BYTES)
    # The pairs of one commit share a timestamp, and neighbours often do.
    distinct = list(set(versions))
    etags = dict(zip(distinct, texts_of(b"".join(distinct)), strict=True))
    pairs = zip(
        cut(packed.keys, packed.key_lengths),
        cut(packed.values, packed.value_lengths),
        map(etags.__getitem__, versions),
        repeat(0, len(versions)),
        strict=True,
    )
    # As KvPair._make, without a call of Python's for each.
    return map(tuple.__new__, repeat(KvPair), pairs)


def _pair(pair: kv_pb2.KvPair) -> KvPair:
    return KvPair(pair.key, pair.value, pair.etag, pair.expires_ms)


def _bytes(value: bytes, field: str) -> bytes:
    if type(value) is bytes:
        return value
    if not isinstance(value, bytes | bytearray | memoryview):
        raise InvalidArgument(field, "must be bytes", type(value).__name__)
    return bytes(value)
