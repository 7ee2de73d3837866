"""Applying the log: mechanical, the same on every replica, one durable transaction a turn.

Everything that an entry changes goes into the transaction that records the entry as applied::

    versions of keys          cortado.store.mvcc
    results of requests       REQUESTS space, the oldest ones forgotten
    the applied state         META space: place, last timestamp, ceiling, epoch, floor

so after a crash at any instant the node stands exactly at the last entry that was synced. An entry says which place it
follows; one that does not follow what is applied stops the node. So does an engine that does not stand where this node
left it: somebody else writes there (the lock file was removed, and a second server started), and what was worked out
against the state before must not overwrite what the other one acknowledged.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from cortado.errors import DataLoss
from cortado.raft.log import Entry
from cortado.store.clock.timestamp import TIMESTAMP_BYTES, ZERO, Timestamp
from cortado.store.engine.interface import Engine, ReadTransaction, Space, WriteTransaction
from cortado.store.mvcc.evaluation import BumpEpoch, RaiseCeiling
from cortado.store.mvcc.reader import Reader
from cortado.store.mvcc.store import VersionStore
from cortado.store.node.commands import Command, LogEntry
from cortado.store.node.requests import (
    FORGOTTEN_PER_ENTRY_MAX,
    REQUEST_ID_BYTES,
    Memory,
    Remembered,
    Remembering,
    answer_of,
    encode_remembered,
    to_forget,
)
from cortado.store.node.state import AppliedState

GROUP_BYTES: Final = 4


class StateMachine:
    """One group's applied state in the engine. :meth:`apply` belongs to the storage thread, the rest to the loop."""

    def __init__(self, engine: Engine, versions: VersionStore, memory: Memory, *, group_id: int = 1) -> None:
        """Raises DataLoss where the stored state is damaged."""
        self._engine = engine
        self._versions = versions
        self._memory = memory
        self._group = group_id.to_bytes(GROUP_BYTES)
        self._state_key = b"applied" + self._group
        self._record_left: bytes | None = None
        self.state = self._load()

    def snapshot(self, read_ts: Timestamp) -> Reader:
        """What is applied, at ``read_ts``."""
        return self._versions.snapshot(read_ts)

    def remembered(self, request_id: bytes, request_hash: bytes) -> Remembered | None:
        """What this request was answered before; None for one that must be executed. Raises as ``answer_of``."""
        with self._engine.read() as txn:
            encoded = txn.get(Space.REQUESTS, self._group + request_id)
            # The floor of the same transaction: in an older one it may be below what was just forgotten.
            floor = self._load_from(txn).request_floor if encoded is None else ZERO
        return answer_of(request_id, request_hash, encoded, floor)

    def apply(self, state: AppliedState, entries: Sequence[Entry]) -> AppliedState:
        """Apply ``entries`` to ``state``, durably, and return the new state.

        Raises ResourceExhausted where there is no room, and nothing was applied; anything else must stop the node.
        """
        with self._engine.write() as txn:
            if txn.get(Space.META, self._state_key) != self._record_left:
                raise DataLoss("the node's state", "another process has written into this data directory")
            for entry in entries:
                state = self._apply_entry(txn, state, entry)
            record = state.encode()
            txn.put(Space.META, self._state_key, record)
        self._record_left = record
        return state

    def _load(self) -> AppliedState:
        with self._engine.read() as txn:
            self._record_left = txn.get(Space.META, self._state_key)
            return self._load_from(txn)

    def _load_from(self, txn: ReadTransaction) -> AppliedState:
        encoded = txn.get(Space.META, self._state_key)
        return AppliedState() if encoded is None else AppliedState.decode(encoded)

    def _apply_entry(self, txn: WriteTransaction, state: AppliedState, entry: Entry) -> AppliedState:
        payload = entry.payload
        log_entry = payload if isinstance(payload, LogEntry) else LogEntry.decode(payload.encode())
        if (log_entry.after_index, log_entry.after_term) != (state.index, state.term):
            after = f"({log_entry.after_index}, {log_entry.after_term})"
            raise DataLoss("the log", f"an entry follows {after}, applied is ({state.index}, {state.term})")
        remembered: list[tuple[bytes, bytes]] = []
        self._versions.apply_all(txn, [(command.mutations, command.ts) for command in log_entry.commands])
        for command in log_entry.commands:
            if command.request_id:
                remembered.append(self._record(command))
            state = _advanced(state, command)
        state = replace(state, index=entry.index, term=entry.term)
        return self._remember(txn, state, remembered) if remembered else state

    def _record(self, command: Command) -> tuple[bytes, bytes]:
        answer = Remembered(command.request_hash, command.ts, command.reply)
        return self._group + command.request_id, encode_remembered(command.request_id, answer)

    def _remember(
        self, txn: WriteTransaction, state: AppliedState, remembered: list[tuple[bytes, bytes]]
    ) -> AppliedState:
        """Add results, and forget old ones: as many as were added, and some more."""
        txn.put_many(Space.REQUESTS, sorted(remembered))
        requests = state.requests + len(remembered)
        request_bytes = state.request_bytes + sum(len(record) for _, record in remembered)
        now = Remembering(state.last_ts, state.epoch_began, requests, request_bytes)
        forgotten = to_forget(self._oldest(txn, now, len(remembered)), now, self._memory)
        if not forgotten:
            return replace(state, requests=requests, request_bytes=request_bytes)
        for request_id, _ in forgotten:
            txn.delete(Space.REQUESTS, self._group + request_id)
        last_forgotten = Timestamp.from_bytes(forgotten[-1][0][:TIMESTAMP_BYTES])
        return replace(
            state,
            requests=requests - len(forgotten),
            request_bytes=request_bytes - sum(size_bytes for _, size_bytes in forgotten),
            request_floor=max(state.request_floor, last_forgotten.next()),
        )

    def _oldest(self, txn: WriteTransaction, now: Remembering, added: int) -> list[tuple[bytes, int]]:
        """The oldest ids that could be forgotten now, with the bytes of their records."""
        start = self._group + bytes(REQUEST_ID_BYTES)
        first = txn.seek(Space.REQUESTS, start)
        if first is None or not to_forget([self._sized(*first)], now, self._memory):
            return []
        end = self._group + b"\xff" * REQUEST_ID_BYTES
        page = txn.page(Space.REQUESTS, start, end, max_items=added + FORGOTTEN_PER_ENTRY_MAX)
        return list(map(self._sized, page.keys, page.values))

    def _sized(self, key: bytes, record: bytes) -> tuple[bytes, int]:
        return key[GROUP_BYTES:], len(record)


def _advanced(state: AppliedState, command: Command) -> AppliedState:
    """The state after one command. Timestamps rise strictly: anything else is a log that must not be applied."""
    if command.ts <= state.last_ts:
        raise DataLoss("the log", f"a command at {command.ts} follows one at {state.last_ts}")
    match command.control:
        case BumpEpoch(epoch):
            if command.ts.epoch != epoch:
                raise DataLoss("the log", f"epoch {epoch} begins at {command.ts}")
            return replace(state, last_ts=command.ts, epoch_began=command.ts)
        case RaiseCeiling(ceiling):
            return replace(state, last_ts=command.ts, ceiling=max(state.ceiling, ceiling))
        case None:
            return replace(state, last_ts=command.ts)
