"""Is what is stored what was written? A piece of a space at a time, and a digest by which replicas are compared.

Of each item the checksum is verified, which covers its key; and each key must be above the one before it, or a search
in the tree would pass it by. What a point read misses is found so: a key of which a bit has turned has a wrong checksum
where it stands, and *its true name* is missing, which only another replica can tell. For that there is the digest.

The digest of a range at a timestamp is BLAKE2b over all versions in it that are not above the timestamp. Replicas that
have applied so far hold the same bytes, so theirs are equal. It is no CRC, since each stored item carries its own: over
anything followed by its CRC-32C, a CRC-32C is the same constant.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable
from hashlib import blake2b
from itertools import compress, islice
from operator import ge, itemgetter
from typing import Final

from cortado.errors import CortadoError, DataLoss, InvalidArgument
from cortado.proto.v1 import inspect_pb2 as pb
from cortado.raft.records import decode_record, decode_stored
from cortado.store.clock.timestamp import Timestamp
from cortado.store.engine.interface import ABOVE_KEYS, Page, Space
from cortado.store.keys.decoded import KeyKind, KeyNames, decode_key
from cortado.store.keys.keyspace import KV_SPACE, META_SPACE, TABLE_SPACE
from cortado.store.mvcc.damage import damaged_keys
from cortado.store.mvcc.reader import suffix_from
from cortado.store.mvcc.versions import DELETE, PUT, RESIDUE, checksum, suffix_of
from cortado.store.node.applied_state import AppliedState
from cortado.store.node.request_table.records import decode_remembered
from cortado.store.node.snapshots.marker import Marker
from cortado.store.server.convert import timestamp_value
from cortado.store.server.inspection.state import Stored, bounded, stored_key

ITEMS_DEFAULT: Final = 4_000
ITEMS_MAX: Final = 10_000
PROBLEMS_MAX: Final = 100
DIGEST_BYTES: Final = 16
_PAGE_BYTES: Final = 1 << 20
_WHOLE_PAGE_BYTES: Final = 4 << 20
"""Of a range whose end is given: it was one piece of another replica, and is to be one here."""

_SPACES: Final = {
    pb.STORED_SPACE_DATA: Space.DATA,
    pb.STORED_SPACE_REQUESTS: Space.REQUESTS,
    pb.STORED_SPACE_LOG: Space.LOG,
    pb.STORED_SPACE_META: Space.META,
}
_KINDS: Final = frozenset((PUT[0], DELETE[0]))
_DATA_SPACES: Final = frozenset((KV_SPACE[0], META_SPACE[0], TABLE_SPACE[0]))
_first_of: Final[Callable[[bytes], int]] = itemgetter(0)

CHECKSUM, ORDER, MALFORMED, SEQUENCE = "CHECKSUM", "ORDER", "MALFORMED", "SEQUENCE"


def verify_range(stored: Stored, request: pb.VerifyRangeRequest) -> pb.VerifyRangeResponse:
    """Verify a piece; the header is the caller's to set. Raises InvalidArgument."""
    space = _SPACES.get(request.space)
    if space is None:
        raise InvalidArgument("space", "is not a space that this server knows", str(request.space))
    items_max = bounded("items_max", request.items_max, ITEMS_DEFAULT, ITEMS_MAX)
    start, page, resume = _page(stored, space, request.start, request.end, items_max)
    found = _Problems(stored.names)
    _check_order(start, page.keys, found)
    reply = pb.VerifyRangeResponse(items=len(page.keys), resume=resume)
    reply.bytes = sum(map(len, page.keys)) + sum(map(len, page.values))
    if space is Space.DATA:
        _check_versions(page, found)
        keys, values = _up_to(page, timestamp_value(request.up_to))
        reply.digest_items, reply.digest = len(keys), digest_of(keys, values)
    else:
        _check_records(space, page, found)
    reply.problems.extend(found.shown)
    reply.problems_left_out = found.left_out
    return reply


def list_items(stored: Stored, request: pb.ListItemsRequest) -> pb.ListItemsResponse:
    """The versions of a piece that are not above a timestamp, each as a digest; the header is the caller's to set."""
    _, page, resume = _page(stored, Space.DATA, request.start, request.end, ITEMS_DEFAULT)
    items = [
        pb.StoredItem(
            key=key,
            digest=blake2b(value, digest_size=DIGEST_BYTES).digest(),
            is_intact=checksum(key + value) == RESIDUE,
        )
        for key, value in zip(*_up_to(page, timestamp_value(request.up_to)), strict=True)
    ]
    return pb.ListItemsResponse(items=items, resume=resume)


def digest_of(keys: list[bytes], values: list[bytes]) -> bytes:
    """BLAKE2b over the lengths of all keys and values (4 bytes, little-endian each), the keys, the values."""
    lengths = array("I", [*map(len, keys), *map(len, values)])
    digest = blake2b(lengths.tobytes(), digest_size=DIGEST_BYTES)
    digest.update(b"".join(keys))
    digest.update(b"".join(values))
    return digest.digest()


def _page(stored: Stored, space: Space, start: bytes, end: bytes, items_max: int) -> tuple[bytes, Page, bytes]:
    """Where it begins, the items, and where the next piece begins (empty at the end)."""
    start = start or b"\0"
    max_bytes = _WHOLE_PAGE_BYTES if end else _PAGE_BYTES
    with stored.engine.read() as txn:
        page = txn.page(space, start, end or ABOVE_KEYS, max_items=items_max, max_bytes=max_bytes)
    if page.exhausted:
        return start, page, b""
    # Of keys out of order the last may be below the start: go on behind the largest, so that there is an end to it.
    return start, page, max(start, max(page.keys)) + b"\0"


def _up_to(page: Page, ts: Timestamp) -> tuple[list[bytes], list[bytes]]:
    """Keys and values of the versions that are not above ``ts``: a later timestamp has a smaller suffix."""
    suffix = suffix_of(ts)
    wanted = [each >= suffix for each in map(suffix_from, page.keys)]
    if all(wanted):
        return page.keys, page.values
    return list(compress(page.keys, wanted)), list(compress(page.values, wanted))


# --- what can be wrong -----------------------------------------------------------------------------------------


class _Problems:
    """Those of a piece: some to be shown, the others counted."""

    def __init__(self, names: Callable[[], KeyNames]) -> None:
        self._names = names
        self.shown: list[pb.StoredProblem] = []
        self.left_out = 0

    def add(self, key: bytes, kind: str, message: str) -> None:
        if len(self.shown) == PROBLEMS_MAX:
            self.left_out += 1
        else:
            self.shown.append(pb.StoredProblem(key=stored_key(key, self._names()), kind=kind, message=message))


def _check_order(start: bytes, keys: list[bytes], found: _Problems) -> None:
    if not any(map(ge, keys, islice(keys, 1, None))) and (not keys or keys[0] >= start):
        return
    before = start
    for place, key in enumerate(keys):
        if key < before or (place and key == before):
            message = f"stands behind {decode_key(before).text()}, which is not below it: searches pass it by"
            found.add(key, ORDER, message)
        before = key


def _check_versions(page: Page, found: _Problems) -> None:
    if not page.keys:
        return
    wrong = set(damaged_keys(Space.DATA, page.keys, page.values))
    for key, value in zip(page.keys, page.values, strict=True) if wrong else ():
        if key in wrong:
            found.add(key, CHECKSUM, f"a stored version of {len(value)} bytes has a wrong checksum")
    if wrong:
        return
    # What is intact was written so: only a defect, or a newer version of the software, makes another key or kind.
    if set(map(_first_of, page.keys)) <= _DATA_SPACES and set(map(_first_of, page.values)) <= _KINDS:
        return
    for key, value in zip(page.keys, page.values, strict=True):
        if key[0] not in _DATA_SPACES or value[0] not in _KINDS:
            found.add(key, MALFORMED, "of no known space or kind, and its checksum is right: a newer version wrote it")


def _check_records(space: Space, page: Page, found: _Problems) -> None:
    before: tuple[int, int] | None = None
    for key, value in zip(page.keys, page.values, strict=True):
        try:
            place = _check_record(space, key, value)
        except CortadoError as damage:
            found.add(key, CHECKSUM, damage.message())
            place = None
        if place is not None:
            if before is not None and (place[0] != before[0] + 1 or place[1] < before[1]):
                message = f"entry {place[0]} of term {place[1]} follows entry {before[0]} of term {before[1]}"
                found.add(key, SEQUENCE, message)
            before = place


def _check_record(space: Space, key: bytes, value: bytes) -> tuple[int, int] | None:
    """Index and term where it is an entry of the log. Raises DataLoss."""
    decoded = decode_key(key)
    match decoded.kind:
        case KeyKind.LOG_ENTRY if space is Space.LOG:
            assert decoded.group_id is not None
            assert decoded.log_index is not None
            return decoded.log_index, decode_record(decoded.group_id, decoded.log_index, value).term
        case KeyKind.HARD_STATE if space is Space.LOG:
            assert decoded.group_id is not None
            decode_stored(decoded.group_id, [(key, value)])
        case KeyKind.REQUEST if space is Space.REQUESTS:
            decode_remembered(decoded.request_id, value)
        case KeyKind.APPLIED if space is Space.META:
            AppliedState.decode(value)
        case KeyKind.INSTALLING if space is Space.META:
            Marker.decode(value)
        case KeyKind.JOINED | KeyKind.LET_IN if space is Space.META:
            pass
        case _:
            raise DataLoss(decoded.text(), f"no key of the space {space}")
    return None
