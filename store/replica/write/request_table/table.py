"""The stored records of one group's requests: looked up on the loop, written and forgotten where entries are applied.

A record may be damaged, or hidden by one that is. A request whose record may be hidden is never taken for a new one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Final

from cortado.errors import OutcomeUnknown
from cortado.store.clock.timestamp import TIMESTAMP_BYTES
from cortado.store.engine.interface import ABOVE_KEYS, Engine, ReadTransaction, Space, WriteTransaction
from cortado.store.keys.groups import SEGMENT_BYTES
from cortado.store.mvcc.damage import Damage, damaged_keys
from cortado.store.mvcc.store import VersionStore
from cortado.store.mvcc.versions import Item
from cortado.store.replica.apply.applied_state import AppliedState
from cortado.store.replica.group_range import GroupRange
from cortado.store.replica.snapshots.marker import applied_key
from cortado.store.replica.write.request_table.records import REQUEST_ID_BYTES, Remembered, answer_of

_PAGE_ITEMS: Final = 1_024
"""Records are counted and deleted below a floor in pieces of this size."""
_PAGE_BYTES: Final = 1 << 20
_FIRST_ID: Final = bytes(REQUEST_ID_BYTES)


class RequestTable:
    """Reads through transactions of its own; :meth:`remember` and :meth:`forget` write in that of the entries."""

    def __init__(self, engine: Engine, versions: VersionStore, of: GroupRange) -> None:
        self._engine = engine
        self._versions = versions
        self._segment, self._end = of.requests
        self._state_key = applied_key(of.group_id)
        self._decoded: tuple[bytes | None, AppliedState] = None, AppliedState()

    def find(self, request_id: bytes) -> Remembered | None:
        """Return this request's earlier answer; None if it must be executed. Raises as ``answer_of``, and
        OutcomeUnknown if damage may hide its record."""
        doubted = self._versions.suspect_requests
        with self._engine.read() as txn:
            encoded = txn.get(Space.REQUESTS, self._segment + request_id)
            # The floor of the same transaction: an older one may be below records that were just forgotten.
            floor = self._floor(txn) if encoded is None else _FIRST_ID
        found = answer_of(self._segment, request_id, encoded, floor)
        if found is None and (doubted or self._versions.suspect_requests):
            self._check_not_hidden(request_id, {**doubted, **self._versions.suspect_requests})
        return found

    def not_new(self, request_ids: Sequence[bytes], *, ahead_of: bytes) -> frozenset[bytes]:
        """Return which of these may have been asked before, or begin with a timestamp that is ``ahead_of`` that one;
        all of them if damage may hide records."""
        if self._versions.suspect_requests:
            return frozenset(request_ids)
        with self._engine.read() as txn:
            floor = self._floor(txn)
            found = [
                request_id
                for request_id in request_ids
                if request_id < floor
                or request_id[:TIMESTAMP_BYTES] > ahead_of
                or txn.get(Space.REQUESTS, self._segment + request_id) is not None
            ]
        return frozenset(request_ids if self._versions.suspect_requests else found)

    def oldest(self, from_id: bytes, count_max: int) -> list[tuple[bytes, int]]:
        """Return the first remembered ids at or above ``from_id``, with the bytes of their records.

        A damaged record is passed over. With one bit turned its id may speak of the year 2100; a floor above it would
        refuse every request until then, on every replica.
        """
        start, bytes_max = self._segment + from_id, _PAGE_BYTES
        with self._engine.read() as txn:
            while True:
                # Not up to our end: a record whose segment has turned stands among ours, and would end the page.
                page = txn.page(Space.REQUESTS, start, ABOVE_KEYS, max_items=count_max, max_bytes=bytes_max)
                wrong = set(damaged_keys(page.keys, page.values))
                whole = [
                    (key, len(record))
                    for key, record in zip(page.keys, page.values, strict=True)
                    if key >= start and key not in wrong
                ]
                if whole or page.exhausted:
                    return [(key[SEGMENT_BYTES:], size) for key, size in whole if key < self._end]
                # All records of the page are damaged: read more, to get past them.
                count_max, bytes_max = 2 * count_max, 2 * bytes_max

    def remember(self, txn: WriteTransaction, state: AppliedState, results: Sequence[Item]) -> AppliedState:
        """Store the records of ``results``, by their request ids. Returns the state that counts them."""
        txn.put_many(Space.REQUESTS, [(self._segment + request_id, record) for request_id, record in results])
        return replace(
            state,
            requests=state.requests + len(results),
            request_bytes=state.request_bytes + sum(len(record) for _, record in results),
        )

    def forget(self, txn: WriteTransaction, state: AppliedState, floor: bytes) -> AppliedState:
        """Delete the records below ``floor``. Returns the state that counts them no more."""
        start, end = self._segment + _FIRST_ID, self._segment + floor
        requests, request_bytes, exhausted = state.requests, state.request_bytes, False
        while not exhausted:
            page = txn.page(Space.REQUESTS, start, end, max_items=_PAGE_ITEMS)
            exhausted = page.exhausted
            requests -= len(page.keys)
            request_bytes -= sum(map(len, page.values))
            txn.delete_range(Space.REQUESTS, start, end, max_items=len(page.keys))
        if _damaged(_first(txn, start, 1)):
            stuck_items, stuck_bytes = _forget_stuck(txn, start, end)
            requests, request_bytes = requests - stuck_items, request_bytes - stuck_bytes
        return replace(
            state, requests=requests, request_bytes=request_bytes, request_floor=max(state.request_floor, floor)
        )

    def _floor(self, txn: ReadTransaction) -> bytes:
        encoded = txn.get(Space.META, self._state_key)
        # Asked for each new request; the record differs only after each transaction.
        if encoded != self._decoded[0]:
            self._decoded = encoded, AppliedState.decode_stored(encoded)
        return self._decoded[1].request_floor

    def _check_not_hidden(self, request_id: bytes, doubted: Mapping[Damage, bytes]) -> None:
        key = self._segment + request_id
        for damage, end in doubted.items():
            if damage.start <= key < end:
                problem = f"what is remembered of requests is damaged beside this one ({damage.what})"
                raise OutcomeUnknown(f"{problem}. It was not executed now", request_id.hex())


def _forget_stuck(txn: WriteTransaction, start: bytes, end: bytes) -> tuple[int, int]:
    """Delete damaged records that stand first: a range ends at a record whose key has turned upwards. Records do not
    move, so those before a whole record below ``end`` were below it, too. Returns how many go, and their bytes."""
    records = _first(txn, start, _PAGE_ITEMS)
    wrong = _damaged(records)
    below = [place for place, (key, _) in enumerate(records) if key < end and key not in wrong]
    count = below[-1] + 1 if below else 0
    txn.delete_places(Space.REQUESTS, start, range(count))
    return count, sum(len(record) for _, record in records[:count])


def _first(txn: ReadTransaction, start: bytes, count_max: int) -> list[Item]:
    """Return the records that stand first from ``start`` on, in whatever order their keys are."""
    return [(key, value()) for key, value in islice(txn.walk(Space.REQUESTS, start), count_max)]


def _damaged(records: Sequence[Item]) -> set[bytes]:
    return set(damaged_keys([key for key, _ in records], [record for _, record in records]))
