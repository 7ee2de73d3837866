"""Scan pairs in slices: each slice is one bounded read, and says where the next one begins.

::

    begin_scan(request, read_ts, generation), or resume_scan(request, token, generation)    -> KvScan
    read_slice(source, scan, rows_max=..., bytes_max=...)                                   -> KvSlice(pairs, rest)
    rest.page_token()                                                                       -> to go on in another call

A scan is a value: nothing is held open between slices. All slices read at one timestamp, which travels in the token.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TypeAlias

from cortado.store.clock.timestamp import TIMESTAMP_BYTES, Timestamp
from cortado.store.keys.keyspace import beginning_of_user_keys, user_keys_of
from cortado.store.keys.names import check_namespace
from cortado.store.keys.packing import LENGTH_BYTES, cut, cut_equal, join
from cortado.store.keys.types import LogicalKey
from cortado.store.kv.operations import KvPair
from cortado.store.kv.ranges import KvRange, logical_range
from cortado.store.mvcc.packed import PackedPayloads
from cortado.store.mvcc.paging import PageToken, decode_token, encode_token, request_shape
from cortado.store.mvcc.reader import ScanChunk, ScanSource


@dataclass(frozen=True, slots=True)
class KvScanRequest:
    """A scan's request. ``limit`` counts pairs over all pages, 0 for no limit; ``at`` is the read time as text."""

    namespace: str
    within: KvRange = field(default_factory=KvRange)
    reverse: bool = False
    limit: int = 0
    keys_only: bool = False
    at: str = ""

    def shape(self) -> bytes:
        """Return the shape that a page token is bound to: every field."""
        within = self.within
        return request_shape(
            "kv", self.namespace, within.start, within.end, within.prefix,
            self.reverse, self.limit, self.keys_only, self.at,
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class KvScan:
    """The rest of a scan: stored keys in ``[start, end)`` at ``read_ts``, at most ``remaining`` (None: all)."""

    request: KvScanRequest
    read_ts: Timestamp
    start: LogicalKey
    end: LogicalKey
    remaining: int | None

    def page_token(self) -> bytes:
        """Return the token with which the same request goes on from here."""
        resume = self.end if self.request.reverse else self.start
        return encode_token(PageToken(self.read_ts, resume, self.remaining), self.request.shape())


Joined: TypeAlias = tuple[bytes, bytes]
"""The result of :func:`cortado.store.keys.packing.join`."""


@dataclass(frozen=True, slots=True)
class KvSlice:
    """Keys and values end to end with their lengths, and commit timestamps end to end (12 bytes each), in scan order.
    It may be empty. ``rest`` is None at the scan's end."""

    keys: Joined
    values: Joined
    versions: bytes
    rest: KvScan | None

    def __len__(self) -> int:
        return len(self.versions) // TIMESTAMP_BYTES

    @property
    def pairs(self) -> list[KvPair]:
        """Return the slice pair by pair."""
        versions = cut_equal(self.versions, TIMESTAMP_BYTES)
        # Neighbours often come from one commit, so decode each timestamp once.
        etags = {each: Timestamp.from_bytes(each) for each in set(versions)}
        return list(map(KvPair, cut(*self.keys), cut(*self.values), map(etags.__getitem__, versions)))


def begin_scan(request: KvScanRequest, read_ts: Timestamp, generation: int) -> KvScan:
    """Begin a scan. The namespace means ``generation`` at ``read_ts``. Raises InvalidArgument, KeyTooLong."""
    start, end = logical_range(check_namespace(request.namespace), request.within, generation)
    return KvScan(request, read_ts, start, end, request.limit or None)


def resume_scan(request: KvScanRequest, token: bytes, generation: int) -> KvScan:
    """Return the rest of a scan from a page token. The namespace means ``generation`` at the token's time. Raises as
    :func:`begin_scan`, and InvalidPageToken."""
    page = decode_token(token, request.shape())
    scan = begin_scan(request, page.read_ts, generation)
    resume = LogicalKey(page.resume_within(scan.start, scan.end))
    if request.reverse:
        return replace(scan, end=resume, remaining=page.remaining)
    return replace(scan, start=resume, remaining=page.remaining)


def read_slice(source: ScanSource, scan: KvScan, *, rows_max: int = 2000, bytes_max: int = 1 << 20) -> KvSlice:
    """Read the next pairs: at most ``rows_max``, and about ``bytes_max`` bytes of keys and values."""
    reverse = scan.request.reverse
    rows_max = rows_max if scan.remaining is None else min(rows_max, scan.remaining)
    chunk = source.scan_chunk(
        scan.start, scan.end, scan.read_ts, reverse=reverse, max_rows=rows_max, max_bytes=bytes_max
    )
    remaining = None if scan.remaining is None else scan.remaining - len(chunk.payloads)
    if chunk.resume is None or remaining == 0:
        rest = None
    elif reverse:
        rest = replace(scan, end=chunk.resume, remaining=remaining)
    else:
        rest = replace(scan, start=chunk.resume, remaining=remaining)
    values = _no_values(chunk) if scan.request.keys_only else _values(chunk)
    return KvSlice(_user_keys(scan.request.namespace, chunk), values, chunk.versions(), rest)


def _user_keys(namespace: str, chunk: ScanChunk) -> Joined:
    """Join the user keys. If the kernel packed the slice, it cuts the keys, too, without an object for each."""
    packed, payloads = chunk.packed, chunk.payloads
    if packed is not None and len(packed) and isinstance(payloads, PackedPayloads) and payloads.kernel is not None:
        start = beginning_of_user_keys(namespace, packed.logical_key(0))
        # The keys are in order, so a prefix of the first and the last is a prefix of all.
        if all(packed.logical_key(place).startswith(start) for place in (0, len(packed) - 1)):
            found = payloads.kernel.texts(packed.joined, packed.ends, len(start))
            if found is not None:
                return found[0], found[1].astype("<u4", copy=False).tobytes()
    return join(user_keys_of(namespace, chunk.keys))


def _values(chunk: ScanChunk) -> Joined:
    payloads = chunk.payloads
    if isinstance(payloads, PackedPayloads) and not payloads.head_bytes:
        return payloads.bodies, payloads.lengths().astype("<u4", copy=False).tobytes()
    return join(payloads)


def _no_values(chunk: ScanChunk) -> Joined:
    return b"", bytes(LENGTH_BYTES * len(chunk.payloads))
