"""The request table: a repeated write has one effect, and the first one's answer.

A caller who got no answer sends the same request with the same id again. The id is 20 bytes: a timestamp that this
cluster gave out (12), then random bytes (8). The result of each request is written in the transaction that applies it,
so it is remembered exactly if it happened::

    request id 20  ->  hash of the request 16 | commit timestamp 12 | reply | CRC-32C 4 (little-endian, id and value)

- The same id with the same hash gets the remembered reply. Nothing is executed.
- The same id with another hash is InvalidArgument: the caller reuses ids.
- Ids sort by their timestamps, so the oldest are the first in the table. They are forgotten by age and by count: the
  leader decides (:func:`to_forget`) and says so in the entry, as a *floor*, to just above the last one forgotten; every
  replica deletes what is below. So bounds may differ from node to node, and tables do not. An id below the floor may
  belong to a request that happened or not: OutcomeUnknown, *too old*, and never executed. One whose entry was on its
  way when the floor rose above it is remembered all the same, until the floor rises again.
- An idle group forgets nothing, so the floor stays below every timestamp that a caller can have seen since.
- Only a leader that has applied everything before its term looks here, so over a change of leader the table misses
  nothing. What is in flight is not in the table yet: the node keeps it in mind until it is applied, answered or not.

Refusals are not remembered: they changed nothing, and the same request is worked out again.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import google_crc32c

from cortado.errors import ClockOutOfBounds, DataLoss, InvalidArgument, OutcomeUnknown
from cortado.store.clock.hlc import Clock
from cortado.store.clock.timestamp import TIMESTAMP_BYTES, Timestamp

REQUEST_ID_BYTES: Final = 20
HASH_BYTES: Final = 16

# How many are forgotten per entry at most, beyond as many as it adds: what piled up goes in bounded transactions.
FORGOTTEN_PER_ENTRY_MAX: Final = 1_000


@dataclass(frozen=True, slots=True)
class Remembered:
    """What a request was answered, and at which commit."""

    request_hash: bytes
    ts: Timestamp
    reply: bytes


def encode_remembered(request_id: bytes, remembered: Remembered) -> bytes:
    value = b"".join((remembered.request_hash.ljust(HASH_BYTES, b"\0"), bytes(remembered.ts), remembered.reply))
    return value + _checksum(request_id, value)


def decode_remembered(request_id: bytes, encoded: bytes) -> Remembered:
    """Raises DataLoss where the checksum does not hold."""
    value, checksum = encoded[:-4], encoded[-4:]
    if _checksum(request_id, value) != checksum or len(value) < HASH_BYTES + 12:
        raise DataLoss("a remembered request", request_id.hex())
    hash_end = HASH_BYTES + TIMESTAMP_BYTES
    return Remembered(value[:HASH_BYTES], Timestamp.from_bytes(value[HASH_BYTES:hash_end]), value[hash_end:])


def _checksum(request_id: bytes, value: bytes) -> bytes:
    checksum: int = google_crc32c.value(request_id + value)
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

    That speaks of this node's clock, which another leader's may have passed: a refusal that rests on what this node
    knows, and to be given as such. Its caller takes another id.
    """
    ts_bytes = request_id[:TIMESTAMP_BYTES]
    if ts_bytes <= bytes(clock.last):
        return
    ts, now = Timestamp.from_bytes(ts_bytes), clock.reading()
    ahead_ms, limit_ms = ts.wall_ms - now.wall_ms, AHEAD_FACTOR * clock.max_offset_ms
    if ts.epoch > now.epoch or (ts.epoch == now.epoch and ahead_ms > limit_ms):
        problem = f"request_id begins with a timestamp that is ahead of this cluster's, {now} (got {ts})"
        raise ClockOutOfBounds(ahead_ms, limit_ms, f"{problem}; take a new id, with the time of the leader's clock")


def answer_of(request_id: bytes, request_hash: bytes, encoded: bytes | None, floor: bytes) -> Remembered | None:
    """What the table says of a request: the remembered answer, or None for one that must be executed.

    ``encoded`` and ``floor`` must come from one read transaction. Raises OutcomeUnknown below the floor,
    InvalidArgument where the id was used for another request.
    """
    if encoded is None:
        if request_id < floor:
            since = Timestamp.from_bytes(floor[:TIMESTAMP_BYTES])
            problem = f"the request id is too old: results are remembered from {since} on. It was not executed now"
            raise OutcomeUnknown(problem, request_id.hex())
        return None
    remembered = decode_remembered(request_id, encoded)
    check_same_request(request_hash, remembered.request_hash)
    return remembered


def check_same_request(request_hash: bytes, first_hash: bytes) -> None:
    """Raises InvalidArgument where one id names two requests."""
    if request_hash.ljust(HASH_BYTES, b"\0") != first_hash.ljust(HASH_BYTES, b"\0"):
        raise InvalidArgument("request_id", "was used for another request before")


@dataclass(frozen=True, slots=True)
class Memory:
    """How much is remembered: for ``remember_ms`` of the log's time, and at most so many results and bytes of them."""

    remember_ms: int
    requests_max: int
    bytes_max: int


@dataclass(frozen=True, slots=True)
class Remembering:
    """The state that decides what is forgotten: the log's time, and how much the table holds with what is in flight."""

    last_ts: Timestamp
    epoch_began: Timestamp
    requests: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Forgotten:
    """What an entry forgets: everything below ``floor`` (empty: nothing), which is so many records and bytes."""

    floor: bytes = b""
    requests: int = 0
    bytes: int = 0


NOTHING_FORGOTTEN: Final = Forgotten()


def to_forget(oldest: Iterable[tuple[bytes, int]], state: Remembering, memory: Memory) -> list[tuple[bytes, int]]:
    """Which of the ``oldest`` (id, bytes), in their order, go: what is too old, and what is too much."""
    forgotten: list[tuple[bytes, int]] = []
    excess_requests = state.requests - memory.requests_max
    excess_bytes = state.bytes - memory.bytes_max
    for request_id, size_bytes in oldest:
        ts = Timestamp.from_bytes(request_id[:TIMESTAMP_BYTES])
        # Wall times of two epochs cannot be compared; those of an earlier one age with the new one.
        began_ms = ts.wall_ms if ts.epoch == state.last_ts.epoch else state.epoch_began.wall_ms
        is_too_old = state.last_ts.wall_ms - began_ms > memory.remember_ms
        if not is_too_old and excess_requests <= 0 and excess_bytes <= 0:
            break
        forgotten.append((request_id, size_bytes))
        excess_requests -= 1
        excess_bytes -= size_bytes
    return forgotten


def floor_above(request_id: bytes) -> bytes:
    """The smallest id above ``request_id``: the floor once it is forgotten."""
    # There is no id of all ones: a timestamp so large is refused.
    return (int.from_bytes(request_id) + 1).to_bytes(REQUEST_ID_BYTES)
