"""The leader's choice of what is no longer remembered of requests, made when a batch is sealed.

What is in flight counts already: batches that are appended and not applied add records that the table does not show
yet, and their floors delete records that it still shows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from cortado.invariants import invariant
from cortado.store.node.applied_state import AppliedState
from cortado.store.node.proposals import Batch
from cortado.store.node.request_table.floor import (
    FORGOTTEN_PER_ENTRY_MAX,
    NOTHING_FORGOTTEN,
    Forgotten,
    Memory,
    Remembering,
    floor_above,
    to_forget,
)
from cortado.store.node.state_machine import StateMachine

_PAGE_ITEMS: Final = 128


class Forgetting:
    """Works out floors from this node's bounds."""

    def __init__(self, machine: StateMachine, memory: Memory) -> None:
        self._machine = machine
        self._memory = memory

    def of(self, batch: Batch, applied: AppliedState, in_flight: Sequence[Batch]) -> Forgotten:
        """What ``batch`` is to forget: about as many as it adds, and some more where it has become too many."""
        if not batch.results and not batch.lost_below:
            return NOTHING_FORGOTTEN
        requests, request_bytes = applied.requests + len(batch.results), applied.request_bytes + batch.result_bytes
        floor = applied.request_floor
        for each in in_flight:
            requests += len(each.results) - each.forgotten.requests
            request_bytes += each.result_bytes - each.forgotten.bytes
            floor = max(floor, each.forgotten.floor)
        began = batch.last_ts if batch.epoch else applied.epoch_began
        remembering = Remembering(batch.last_ts, began, requests, request_bytes)
        forgotten = self._choose(floor, remembering, len(batch.results), in_flight)
        if batch.lost_below > max(floor, forgotten.floor):
            forgotten = replace(forgotten, floor=batch.lost_below)
        is_risen = not forgotten.floor or forgotten.floor > floor
        invariant(is_risen, "a floor of requests is above the ones before it", forgotten.floor, floor)
        return forgotten

    def _choose(self, floor: bytes, state: Remembering, added: int, in_flight: Sequence[Batch]) -> Forgotten:
        forgotten_requests = forgotten_bytes = 0
        begun_at = floor
        while forgotten_requests < added + FORGOTTEN_PER_ENTRY_MAX:
            # Mostly nothing goes, and one record tells.
            oldest = self._oldest(floor, _PAGE_ITEMS if forgotten_requests else 1, in_flight)
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

    def _oldest(self, floor: bytes, count_max: int, in_flight: Sequence[Batch]) -> list[tuple[bytes, int]]:
        """The first that are remembered at or above ``floor``: of the table or, where that has no more, in flight."""
        oldest = self._machine.oldest_requests(floor, count_max)
        if len(oldest) == count_max:
            return oldest
        flying = ((id_, len(record)) for batch in in_flight for id_, record in batch.results if id_ >= floor)
        return sorted({*oldest, *flying})[:count_max]
