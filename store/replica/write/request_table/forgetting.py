"""The leader's choice of the requests that are forgotten: how high the floor of the request table rises.

The oldest records go that are too old, or too many. The choice is made when a batch is sealed.

Batches in flight count already: those that are appended and not applied add records that the table does not show yet,
and their floors delete records that it still shows.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from heapq import nsmallest
from typing import Final

from cortado.invariants import invariant
from cortado.store.clock.timestamp import TIMESTAMP_BYTES, Timestamp
from cortado.store.replica.apply.applied_state import AppliedState
from cortado.store.replica.write.batch import NOTHING_FORGOTTEN, Batch, Forgotten
from cortado.store.replica.write.request_table.records import REQUEST_ID_BYTES
from cortado.store.replica.write.request_table.table import RequestTable

FORGOTTEN_PER_ENTRY_MAX: Final = 1_000
"""An entry forgets at most so many more than it adds: records that piled up go in bounded transactions."""
_PAGE_ITEMS: Final = 128


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


class Forgetting:
    """Works out floors from this node's bounds."""

    def __init__(self, table: RequestTable, memory: Memory) -> None:
        self._table = table
        self._memory = memory
        self._in_flight: deque[Batch] = deque()
        # The records that they add, less those that they forget; and the highest of their floors, or of one that is
        # applied.
        self._requests = self._request_bytes = 0
        self._floor = b""

    def appended(self, batch: Batch) -> None:
        """``batch`` is in flight from now on."""
        self._in_flight.append(batch)
        self._count(batch, 1)
        self._floor = max(self._floor, batch.forgotten.floor)

    def applied(self, batch: Batch) -> None:
        """``batch``, the oldest in flight, is applied."""
        invariant(self._in_flight.popleft() is batch, "what was appended first is applied first", batch.index)
        self._count(batch, -1)
        is_summed = bool(self._in_flight) or self._requests == self._request_bytes == 0
        invariant(is_summed, "no requests are in flight where no batch is", self._requests, self._request_bytes)

    def restart(self, in_flight: Sequence[Batch]) -> None:
        """The other batches that were in flight never happen."""
        self._in_flight.clear()
        self._requests = self._request_bytes = 0
        self._floor = b""
        for each in in_flight:
            self.appended(each)

    def _count(self, batch: Batch, sign: int) -> None:
        self._requests += sign * (len(batch.results) - batch.forgotten.requests)
        self._request_bytes += sign * (batch.result_bytes - batch.forgotten.bytes)

    def of(self, batch: Batch, applied: AppliedState) -> Forgotten:
        """Return the records that ``batch`` is to forget: about as many as it adds, and some more if the table has
        become too large."""
        if not batch.results and not batch.lost_below:
            return NOTHING_FORGOTTEN
        requests = applied.requests + self._requests + len(batch.results)
        request_bytes = applied.request_bytes + self._request_bytes + batch.result_bytes
        floor = max(applied.request_floor, self._floor)
        began = batch.last_ts if batch.epoch else applied.epoch_began
        remembering = Remembering(batch.last_ts, began, requests, request_bytes)
        forgotten = self._choose(floor, remembering, len(batch.results))
        if batch.lost_below > max(floor, forgotten.floor):
            forgotten = replace(forgotten, floor=batch.lost_below)
        is_risen = not forgotten.floor or forgotten.floor > floor
        invariant(is_risen, "a floor of requests is above the ones before it", forgotten.floor, floor)
        return forgotten

    def _choose(self, floor: bytes, state: Remembering, added: int) -> Forgotten:
        forgotten_requests = forgotten_bytes = 0
        begun_at = floor
        while forgotten_requests < added + FORGOTTEN_PER_ENTRY_MAX:
            # Mostly nothing goes, and one record tells.
            oldest = self._oldest(floor, _PAGE_ITEMS if forgotten_requests else 1, state)
            going = to_forget(oldest, state, self._memory)
            if going:
                going_bytes = sum(size_bytes for _, size_bytes in going)
                floor = floor_above(going[-1][0])
                forgotten_requests += len(going)
                forgotten_bytes += going_bytes
                state = Remembering(
                    state.last_ts, state.epoch_began, state.requests - len(going), state.bytes - going_bytes
                )
            if not going or len(going) < len(oldest):
                break
        return Forgotten(floor if floor != begun_at else b"", forgotten_requests, forgotten_bytes)

    def _oldest(self, floor: bytes, count_max: int, state: Remembering) -> list[tuple[bytes, int]]:
        """Return the first records at or above ``floor``: from the table or, if there are too many and it has no more
        of them, in flight. One that is too old goes once it is in the table."""
        oldest = self._table.oldest(floor, count_max)
        is_too_much = state.requests > self._memory.requests_max or state.bytes > self._memory.bytes_max
        if len(oldest) == count_max or not is_too_much:
            return oldest
        flying = ((id_, len(record)) for batch in self._in_flight for id_, record in batch.results if id_ >= floor)
        return nsmallest(count_max, {*oldest, *flying})


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
