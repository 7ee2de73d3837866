"""One record of the request table: its id, its bytes, and its answer to a repeated request.

::

    segment 4 | request id 20  ->  hash 16 | commit timestamp 12 | reply | CRC-32C 4 (little-endian, key and value)
                                   `- of the request 12 | of its principal 4, zeros while roles are off

The segment is that of the group that remembers the request (:class:`~cortado.store.replica.group_range.GroupRange`).
The id is a timestamp that this cluster gave out (12), then random bytes (8), so ids sort by their timestamps.

Only the principal of a request is told its answer. While roles are off, callers and requests have no principal: they
match every principal, so that a request is repeated with one effect also after roles were switched.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import google_crc32c

from cortado.errors import ClockOutOfBounds, DataLoss, InvalidArgument, OutcomeUnknown, TransactionAborted
from cortado.store.auth.owners import tag_of
from cortado.store.clock.hlc import Clock
from cortado.store.clock.timestamp import TIMESTAMP_BYTES, Timestamp, pack_timestamp
from cortado.store.keys.groups import request_id_of

REQUEST_ID_BYTES: Final = 20
HASH_BYTES: Final = 16
_REQUEST_BYTES: Final = 12
"""The bytes of a hash that stand for the request; its other bytes tell principals apart."""
CANCELLED_HASH: Final = b"cancelled".ljust(HASH_BYTES, b"\0")
"""In the place of a request's hash: it was settled before it happened, and never will."""


@dataclass(frozen=True, slots=True)
class Remembered:
    """The answer of a request, and its commit."""

    request_hash: bytes
    ts: Timestamp
    reply: bytes


def owned_hash(request_hash: bytes, principal: str) -> bytes:
    """Return the hash of a request that ``principal`` makes; empty for no principal."""
    return request_hash[:_REQUEST_BYTES] + tag_of(principal)[: HASH_BYTES - _REQUEST_BYTES]


def is_cancelled(request_hash: bytes) -> bool:
    """Return whether the request was settled before it happened, and never will."""
    return request_hash[:_REQUEST_BYTES] == CANCELLED_HASH[:_REQUEST_BYTES]


def encode_remembered(key: bytes, remembered: Remembered) -> bytes:
    """Return the record that stands under ``key``, a segment and an id."""
    value = b"".join((remembered.request_hash.ljust(HASH_BYTES, b"\0"), bytes(remembered.ts), remembered.reply))
    return value + _checksum(key + value)


def encode_each(
    segment: bytes, request_ids: Sequence[bytes], hashes: Sequence[bytes], first: Timestamp, replies: Sequence[bytes]
) -> list[tuple[bytes, bytes]]:
    """Return the ids and records of a run's requests: the first at ``first``, the others at the timestamps that follow
    it in its millisecond."""
    high, low = first.epoch << 48 | first.wall_ms, first.logical
    records: list[tuple[bytes, bytes]] = []
    for place, (request_id, request_hash, reply) in enumerate(zip(request_ids, hashes, replies, strict=True)):
        value = request_hash + pack_timestamp(high, low + place) + reply
        records.append((request_id, value + _checksum(segment + request_id + value)))
    return records


def decode_remembered(key: bytes, encoded: bytes) -> Remembered:
    """Raises DataLoss if the checksum does not hold."""
    value, checksum = encoded[:-4], encoded[-4:]
    if _checksum(key + value) != checksum or len(value) < HASH_BYTES + 12:
        raise DataLoss("a remembered request", request_id_of(key).hex())
    hash_end = HASH_BYTES + TIMESTAMP_BYTES
    return Remembered(value[:HASH_BYTES], Timestamp.from_bytes(value[HASH_BYTES:hash_end]), value[hash_end:])


def _checksum(covered: bytes) -> bytes:
    checksum: int = google_crc32c.value(covered)
    return checksum.to_bytes(4, "little")


def check_form(request_id: bytes) -> None:
    """Raises InvalidArgument for a malformed id."""
    if len(request_id) != REQUEST_ID_BYTES:
        problem = f"must have {REQUEST_ID_BYTES} bytes: a timestamp of this cluster (12), then random bytes (8)"
        raise InvalidArgument("request_id", problem, f"{len(request_id)} bytes")


AHEAD_FACTOR: Final = 4
"""Two leaders' clocks in bounds, one read by a client and one that is asked then, may be some bounds apart."""


def check_not_ahead(request_id: bytes, clock: Clock) -> None:
    """Raises ClockOutOfBounds for an id from beyond the clock's bounds: it would be remembered for ever.

    That speaks of this node's clock, which another leader's may have passed: the refusal rests on this node's
    knowledge, and is to be given as such. Its caller takes another id.
    """
    ts_bytes = request_id[:TIMESTAMP_BYTES]
    if ts_bytes <= bytes(clock.last):
        return
    ts, now = Timestamp.from_bytes(ts_bytes), clock.reading()
    ahead_ms, limit_ms = ts.wall_ms - now.wall_ms, AHEAD_FACTOR * clock.max_offset_ms
    if ts.epoch > now.epoch or (ts.epoch == now.epoch and ahead_ms > limit_ms):
        problem = f"request_id begins with a timestamp that is ahead of this cluster's, {now} (got {ts})"
        raise ClockOutOfBounds(ahead_ms, limit_ms, f"{problem}; take a new id, with the time of the leader's clock")


def answer_of(segment: bytes, request_id: bytes, encoded: bytes | None, floor: bytes) -> Remembered | None:
    """Return the table's answer for a request: the remembered answer, or None for one that must be executed.

    ``encoded`` and ``floor`` must come from one read transaction. Raises OutcomeUnknown below the floor.
    """
    if encoded is None:
        if request_id < floor:
            since = Timestamp.from_bytes(floor[:TIMESTAMP_BYTES])
            problem = f"the request id is too old: results are remembered from {since} on. It was not executed now"
            raise OutcomeUnknown(problem, request_id.hex())
        return None
    return decode_remembered(segment + request_id, encoded)


def check_same_request(request_hash: bytes, first_hash: bytes) -> None:
    """Raises TransactionAborted if the request was settled, InvalidArgument if one id names two requests."""
    check_owner(request_hash, first_hash)
    if is_cancelled(first_hash):
        raise TransactionAborted("settled")
    if _halves(request_hash)[0] != _halves(first_hash)[0]:
        raise _other_request()


def check_owner(request_hash: bytes, first_hash: bytes) -> None:
    """Raises InvalidArgument if the first request was another principal's."""
    asking, first = _halves(request_hash)[1], _halves(first_hash)[1]
    if any(asking) and any(first) and asking != first:
        # The same words as for another request: they do not tell of other principals.
        raise _other_request()


def _halves(request_hash: bytes) -> tuple[bytes, bytes]:
    whole = request_hash.ljust(HASH_BYTES, b"\0")
    return whole[:_REQUEST_BYTES], whole[_REQUEST_BYTES:]


def _other_request() -> InvalidArgument:
    return InvalidArgument("request_id", "was used for another request before")
