"""How high the floor of the request table rises: which of its oldest records are too old, or too much. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from cortado.store.clock.timestamp import TIMESTAMP_BYTES, Timestamp
from cortado.store.replica.write.request_table.records import REQUEST_ID_BYTES

# How many are forgotten per entry at most, beyond as many as it adds: records that piled up go in bounded transactions.
FORGOTTEN_PER_ENTRY_MAX: Final = 1_000


@dataclass(frozen=True, slots=True)
class Memory:
    """How much is remembered: for ``remember_ms`` of the log's time, and at most so many results and bytes of them."""

    remember_ms: int
    requests_max: int
    bytes_max: int


@dataclass(frozen=True, slots=True)
class Remembering:
    """The state that decides which records are forgotten: the log's time, and the size of the table together with the
    requests in flight."""

    last_ts: Timestamp
    epoch_began: Timestamp
    requests: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Forgotten:
    """The records that an entry forgets: all below ``floor`` (empty: none), which is so many records and bytes."""

    floor: bytes = b""
    requests: int = 0
    bytes: int = 0


NOTHING_FORGOTTEN: Final = Forgotten()


def to_forget(oldest: Iterable[tuple[bytes, int]], state: Remembering, memory: Memory) -> list[tuple[bytes, int]]:
    """Return which of the ``oldest`` (id, bytes), in their order, go: those that are too old, and the excess."""
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
    """Return the smallest id above ``request_id``: the floor once it is forgotten."""
    # There is no id of all ones: a timestamp so large is refused.
    return (int.from_bytes(request_id) + 1).to_bytes(REQUEST_ID_BYTES)
