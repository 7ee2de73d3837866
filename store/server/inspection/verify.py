"""Verification of stored data: does it hold the bytes that were written? It takes a piece of a space at a time, and
makes a digest to compare replicas by.

The log lies in files of its own, and is verified a segment at a time (``log_segments.py``). Each item of the engine has
a checksum, which covers its key, and is verified. Each key must be above the one before it, or a search in the tree
would pass it by. This finds damage that a point read misses: if a bit of a key has turned, its item has a wrong
checksum, and *its true key* is missing. Only another replica can tell that key; for this there is the digest.

The digest of a range at a timestamp is BLAKE2b over the versions that a read at that time finds in it: for each key the
newest version that is not above the timestamp, unless that is a delete. Replicas that have applied so far find the same
versions, so their digests are equal. Older versions, deletes, and staged rows of large transactions do not count: each
replica removes them in its own time, and committed rows count once they are in their place. It is no CRC, since each
stored item carries its own: a CRC-32C over any bytes followed by their CRC-32C is the same constant.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Generator
from hashlib import blake2b
from itertools import compress, islice
from operator import ge, itemgetter
from typing import Final, TypeVar

from cortado.errors import CortadoError, DataLoss, InvalidArgument
from cortado.proto.v1 import inspect_pb2 as pb
from cortado.raft.records import decode_hard_state
from cortado.store.clock.timestamp import Timestamp
from cortado.store.engine.interface import ABOVE_KEYS, Page, ReadTransaction, Space
from cortado.store.keys.decoded import KeyKind, decode_key
from cortado.store.keys.keyspace import KV_SPACE, META_SPACE, STAGED_SPACE, TABLE_SPACE
from cortado.store.mvcc.damage import damaged_keys
from cortado.store.mvcc.reader import logical_of, suffix_from
from cortado.store.mvcc.versions import (
    DELETE_KIND,
    EXPIRING_KIND,
    PUT_KIND,
    RESIDUE,
    checksum,
    has_expired,
    suffix_of,
)
from cortado.store.replica.apply.applied_state import AppliedState
from cortado.store.replica.snapshots.marker import Marker
from cortado.store.replica.write.request_table.records import decode_remembered
from cortado.store.server.convert import timestamp_value
from cortado.store.server.inspection.log_segments import LogSegments, verify_segment
from cortado.store.server.inspection.problems import CHECKSUM, MALFORMED, ORDER, Problems
from cortado.store.server.inspection.state import Stored, bounded

T = TypeVar("T")

ITEMS_DEFAULT: Final = 4_000
ITEMS_MAX: Final = 10_000
DIGEST_BYTES: Final = 16
_PAGE_BYTES: Final = 1 << 20
_WHOLE_PAGE_BYTES: Final = 4 << 20
"""For a range with an end: it was one piece of another replica, and is to be one here."""

_SPACES: Final = {
    pb.STORED_SPACE_DATA: Space.DATA,
    pb.STORED_SPACE_REQUESTS: Space.REQUESTS,
    pb.STORED_SPACE_META: Space.META,
}
_KINDS: Final = frozenset((PUT_KIND, DELETE_KIND, EXPIRING_KIND))
_DATA_SPACES: Final = frozenset((KV_SPACE[0], META_SPACE[0], STAGED_SPACE[0], TABLE_SPACE[0]))
_first_of: Final[Callable[[bytes], int]] = itemgetter(0)


def verify_range(
    stored: Stored, log: LogSegments, request: pb.VerifyRangeRequest
) -> Generator[None, None, pb.VerifyRangeResponse]:
    """Verify a piece, with pauses if it takes long; the caller sets the header. Raises InvalidArgument."""
    items_max = bounded("items_max", request.items_max, ITEMS_DEFAULT, ITEMS_MAX)
    found = Problems(stored.names)
    if request.space == pb.STORED_SPACE_LOG:
        verified = yield from verify_segment(log, request.start, request.end, found)
        reply = pb.VerifyRangeResponse(items=verified.records, bytes=verified.size_bytes, resume=verified.resume)
    else:
        reply = _verify_space(stored, request, items_max, found)
    reply.problems.extend(found.shown)
    reply.problems_left_out = found.left_out
    return reply


def go_on(steps: Generator[None, None, T]) -> T | None:
    """Run up to the next pause and return None; or to the end, and return the result."""
    try:
        next(steps)
    except StopIteration as end:
        result: T = end.value
        return result
    return None


def go_through(steps: Generator[None, None, T]) -> T:
    """Run to the end, without a pause, and return the result."""
    while (result := go_on(steps)) is None:
        """There is more."""
    return result


def _verify_space(
    stored: Stored, request: pb.VerifyRangeRequest, items_max: int, found: Problems
) -> pb.VerifyRangeResponse:
    space = _SPACES.get(request.space)
    if space is None:
        raise InvalidArgument("space", "is not a space that this server knows", str(request.space))
    up_to = timestamp_value(request.up_to)
    start, page, resume, seen = _page(stored, space, request.start, request.end, items_max, up_to)
    _check_order(start, page.keys, found)
    reply = pb.VerifyRangeResponse(items=len(page.keys), resume=resume)
    reply.bytes = sum(map(len, page.keys)) + sum(map(len, page.values))
    if space is Space.DATA:
        _check_versions(page, found)
        keys, values = _found_by_reads(page, up_to, seen)
        reply.digest_items, reply.digest = len(keys), digest_of(keys, values)
    else:
        _check_records(space, page, found)
    return reply


def list_items(stored: Stored, request: pb.ListItemsRequest) -> pb.ListItemsResponse:
    """Return the items that a read at a timestamp finds in a piece, each as a digest; the caller sets the header."""
    up_to = timestamp_value(request.up_to)
    _, page, resume, seen = _page(stored, Space.DATA, request.start, request.end, ITEMS_DEFAULT, up_to)
    items = [
        pb.StoredItem(
            key=key,
            digest=blake2b(value, digest_size=DIGEST_BYTES).digest(),
            is_intact=checksum(key + value) == RESIDUE,
        )
        for key, value in zip(*_found_by_reads(page, up_to, seen), strict=True)
    ]
    return pb.ListItemsResponse(items=items, resume=resume)


def digest_of(keys: list[bytes], values: list[bytes]) -> bytes:
    """Return the BLAKE2b over the lengths of all keys and values (4 bytes, little-endian each), the keys, the
    values."""
    lengths = array("I", [*map(len, keys), *map(len, values)])
    digest = blake2b(lengths.tobytes(), digest_size=DIGEST_BYTES)
    digest.update(b"".join(keys))
    digest.update(b"".join(values))
    return digest.digest()


def _page(
    stored: Stored, space: Space, start: bytes, end: bytes, items_max: int, up_to: Timestamp
) -> tuple[bytes, Page, bytes, bytes]:
    """Return the start of the piece, its items, the start of the next piece (empty at the end), and a logical key (or
    empty): a read at ``up_to`` finds that key's version before the piece."""
    start = start or b"\0"
    max_bytes = _WHOLE_PAGE_BYTES if end else _PAGE_BYTES
    with stored.engine.read() as txn:
        page = txn.page(space, start, end or ABOVE_KEYS, max_items=items_max, max_bytes=max_bytes)
        seen = _seen_before(txn, start, page.keys, up_to) if space is Space.DATA else b""
    if page.exhausted:
        return start, page, b"", seen
    # If keys are out of order, the last may be below the start: go on behind the largest, so that this ends.
    return start, page, max(start, max(page.keys)) + b"\0", seen


def _seen_before(txn: ReadTransaction, start: bytes, keys: list[bytes], up_to: Timestamp) -> bytes:
    """Return the logical key with a visible version before the piece: a piece may begin among the versions of a key,
    and on each replica at another one of them."""
    if not keys:
        return b""
    logical = logical_of(keys[0])
    newest = txn.seek(Space.DATA, logical + suffix_of(up_to))
    return logical if newest is not None and newest[0] < start and logical_of(newest[0]) == logical else b""


def _found_by_reads(page: Page, up_to: Timestamp, seen: bytes) -> tuple[list[bytes], list[bytes]]:
    """Return keys and values of the versions of a page that reads at ``up_to`` find. A damaged value may have been of
    any kind, so it counts: another replica tells."""
    suffix = suffix_of(up_to)
    # A set, since keys that are out of their order lie between the versions of others.
    known = {seen}
    wanted: list[bool] = []
    for key, value in zip(page.keys, page.values, strict=True):
        # A later timestamp has a smaller suffix.
        is_newest = suffix_from(key) >= suffix and logical_of(key) not in known and key[:1] != STAGED_SPACE
        if is_newest:
            known.add(logical_of(key))
        wanted.append(is_newest and (_is_seen(key, value, suffix) or checksum(key + value) != RESIDUE))
    return list(compress(page.keys, wanted)), list(compress(page.values, wanted))


def _is_seen(key: bytes, value: bytes, as_of: bytes) -> bool:
    """Return whether a read sees its key's newest version. One replica collects expired versions sooner than another,
    as it does deletes."""
    kind = value[0]
    return kind != DELETE_KIND and not (kind == EXPIRING_KIND and has_expired(key, value, as_of))


# --- checks ----------------------------------------------------------------------------------------------------


def _check_order(start: bytes, keys: list[bytes], found: Problems) -> None:
    if not any(map(ge, keys, islice(keys, 1, None))) and (not keys or keys[0] >= start):
        return
    before = start
    for place, key in enumerate(keys):
        if key < before or (place and key == before):
            message = f"stands behind {decode_key(before).text()}, which is not below it: searches pass it by"
            found.add(key, ORDER, message)
        before = key


def _check_versions(page: Page, found: Problems) -> None:
    if not page.keys:
        return
    wrong = set(damaged_keys(page.keys, page.values))
    for key, value in zip(page.keys, page.values, strict=True) if wrong else ():
        if key in wrong:
            found.add(key, CHECKSUM, f"a stored version of {len(value)} bytes has a wrong checksum")
    if wrong:
        return
    # An intact item was written so: only a defect, or a newer version of the software, makes another key or kind.
    if set(map(_first_of, page.keys)) <= _DATA_SPACES and set(map(_first_of, page.values)) <= _KINDS:
        return
    for key, value in zip(page.keys, page.values, strict=True):
        if key[0] not in _DATA_SPACES or value[0] not in _KINDS:
            found.add(key, MALFORMED, "of no known space or kind, and its checksum is right: a newer version wrote it")


def _check_records(space: Space, page: Page, found: Problems) -> None:
    for key, value in zip(page.keys, page.values, strict=True):
        try:
            _check_record(space, key, value)
        except CortadoError as damage:
            found.add(key, CHECKSUM, damage.message())


def _check_record(space: Space, key: bytes, value: bytes) -> None:
    """Check a record. Raises DataLoss if it is damaged."""
    decoded = decode_key(key)
    match decoded.kind:
        case KeyKind.REQUEST if space is Space.REQUESTS:
            decode_remembered(key, value)
        case KeyKind.APPLIED if space is Space.META:
            AppliedState.decode(value)
        case KeyKind.INSTALLING if space is Space.META:
            Marker.decode(value)
        case KeyKind.LOG_RESET if space is Space.META:
            assert decoded.group_id is not None
            decode_hard_state(decoded.group_id, value)
        case KeyKind.JOINED | KeyKind.LET_IN if space is Space.META:
            pass
        case _:
            raise DataLoss(decoded.text(), f"no key of the space {space}")
