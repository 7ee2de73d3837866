"""Apply the log: mechanically, the same on every replica, some entries in one durable transaction::

    removed items             stored keys that the entries name, and the first items of ranges
    versions of keys          as the entries hold them, byte for byte
    the index of changes      CHANGES space: the changed keys (:mod:`cortado.store.replica.feed.index`)
    results of requests       REQUESTS space, those below an entry's floor deleted
    the applied state         META space: place, last timestamp, ceiling, epoch, floor

So after a crash at any instant the data and the applied state speak of the same moment, and the log files hold the
entries behind it. An entry names the place that it follows; one that does not follow the applied state stops the node.
So does an engine that is not as this node left it: another process writes there (the lock file was removed, and a
second server started). Writes worked out against the state before must not overwrite those that it acknowledged.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Final, assert_never

from cortado.errors import CortadoError, DataLoss, ResourceExhausted
from cortado.invariants import invariant
from cortado.raft.configuration import Configuration
from cortado.raft.log import Entry, Nothing
from cortado.raft.registry import Registry
from cortado.store.clock.timestamp import LARGEST, ZERO, Timestamp
from cortado.store.engine.interface import Engine, Space, WriteTransaction
from cortado.store.mvcc.evaluation import AcceptLoss, BumpEpoch, Control, RaiseCeiling, Removal
from cortado.store.mvcc.reader import Reader, suffix_from
from cortado.store.mvcc.safepoints import NO_SAFEPOINTS, Safepoints, safepoints_of
from cortado.store.mvcc.seen import Seen
from cortado.store.mvcc.staged import moves_staged
from cortado.store.mvcc.store import VersionStore
from cortado.store.mvcc.versions import latest_expiry, suffix_of
from cortado.store.replica.apply.applied_state import AppliedState
from cortado.store.replica.apply.own_state import OwnState
from cortado.store.replica.collection.removals import Removals, remove_densely
from cortado.store.replica.features.registration import Registered
from cortado.store.replica.feed.index import IndexWriter
from cortado.store.replica.feed.recent import Applied
from cortado.store.replica.group_range import GroupRange
from cortado.store.replica.repair.ranges import give_up
from cortado.store.replica.write.log_entry import NO_REMOVAL, LogEntry
from cortado.store.replica.write.request_table.table import RequestTable

_LOG: Final = logging.getLogger(__name__)

REQUESTS_ENOUGH: Final = 1_000
"""A transaction ends behind this many requests: a caller that waits for applying also waits for the one under way."""


class StateMachine:
    """One group's applied state in the engine. :meth:`apply` runs on the storage thread, the rest on the loop."""

    def __init__(self, engine: Engine, versions: VersionStore, of: GroupRange) -> None:
        """Raises DataLoss if the stored state is damaged."""
        self._engine = engine
        self._versions = versions
        self._group_id = of.group_id
        self._own = OwnState(engine, of)
        self._record_left: bytes | None = None
        self.state = self.load()
        """The applied state that is durable, as the loop knows it."""
        versions.kept.forget(self.state.last_ts)
        self.newly_applied: list[Applied] = []
        """The last :meth:`apply`'s changes, entry by entry: for the loop, until the next one begins."""
        self.are_safepoints_damaged = False
        """The past is not served until they are repaired, or an entry says which hold now."""
        self.features = Registered(versions, lambda key: self._own.meta(versions, self.state.last_ts).get(key))
        self._was_given_up = False
        self._results = 0
        self.request_table = RequestTable(engine, versions, of)
        """The remembered answers of requests."""
        self.removals = Removals(self._begin())

    @property
    def safepoints(self) -> Safepoints:
        """Return the safepoints of the state that is applied, or just being applied."""
        return self._versions.safepoints

    def replaced(self) -> None:
        """Load again: a snapshot replaced the engine's state. Call it before any reader may read that."""
        self.removals.forget(self._begin())
        self.state = self.load()
        self._versions.kept.forget(self.state.last_ts)

    def repaired(self) -> None:
        """Load repaired items again: perhaps the safepoints, or what features could not read. On the storage thread:
        nothing is applied meanwhile."""
        self._versions.kept.forget()
        if self.are_safepoints_damaged:
            self._load_safepoints(self._newest())
        self.features.repaired(self._newest(), self._own.applied())

    def _begin(self) -> int:
        """Begin with the engine's state. Returns the entry up to which items may have been removed from it."""
        # A store of our own: no other part may read while the state is replaced, nor by the old state's records.
        own = VersionStore(self._engine)
        own.on_damage = lambda damage: self._versions.on_damage(damage)
        newest = self._own.meta(own, LARGEST)
        self._load_safepoints(newest)
        self.features.load(newest, self._own.applied())
        return 0 if self.safepoints == NO_SAFEPOINTS else self.load().index

    def _load_safepoints(self, newest: Reader) -> None:
        try:
            self._versions.safepoints = safepoints_of(newest)
            self.are_safepoints_damaged = False
        except CortadoError as damage:
            _LOG.error("the safepoints cannot be read: reads of the past are refused: %s", damage)
            self._versions.safepoints = Safepoints(self.load().last_ts)
            self.are_safepoints_damaged = True

    def mended(self) -> None:
        """Let the features load again: items were put in place below the log's back. On the loop."""
        self.features.mended(self._newest(), self._own.applied())

    def _newest(self) -> Reader:
        return self._own.meta(self._versions, LARGEST)

    def load(self) -> AppliedState:
        """Return the engine's applied state: at the start, and after a snapshot was installed below this object."""
        self._record_left = encoded = self._own.record()
        return AppliedState.decode_stored(encoded)

    def snapshot(self, read_ts: Timestamp, seen: Seen | None = None) -> Reader:
        """Return the applied state at ``read_ts``; ``seen`` takes notes of its reads."""
        return self._versions.snapshot(read_ts, seen)

    # --- applying ----------------------------------------------------------------------------------------------

    def apply(self, state: AppliedState, entries: Sequence[Entry]) -> AppliedState:
        """Make ``entries``, applied to ``state``, durable, or only the first of them, if these answer
        ``REQUESTS_ENOUGH``. Returns the new state.

        Raises ResourceExhausted if there is no room; then nothing was stored. Any other error must stop the node.
        """
        self.newly_applied = []
        self.features.begin()
        self._results = 0
        with self._taken_back_without_room(), self._engine.write() as txn:
            if txn.get(Space.META, self._own.key) != self._record_left:
                raise DataLoss("the node's state", "another process has written into this data directory")
            before, safepoints = state, self.safepoints
            index = IndexWriter(txn, self._group_id, state.changed_ts)
            for entry in entries:
                last, state = state, self._apply_entry(txn, index, state, entry)
                is_next = state.index == last.index + 1 and state.term >= last.term
                invariant(is_next, "an entry is applied behind the last one", entry.index, entry.term, last)
                if self._results >= REQUESTS_ENOUGH:
                    break
            # Safepoints that stand for damaged ones are too high to cut below.
            cut_below = ZERO if self.are_safepoints_damaged else self.safepoints.cluster
            changed_ts = index.finish(cut_below, has_risen=self.safepoints is not safepoints)
            state = replace(state, changed_ts=changed_ts)
            invariant(state.is_after(before), "what an applied state says does not fall", before, state)
            record = state.encode()
            txn.put(Space.META, self._own.key, record)
        self._record_left = record
        return state

    @contextmanager
    def _taken_back_without_room(self) -> Iterator[None]:
        """Restore this object if nothing is stored: the same entries come again."""
        before = self.safepoints, self.are_safepoints_damaged
        try:
            yield
        except ResourceExhausted:
            self.features.take_back()
            self._versions.safepoints, self.are_safepoints_damaged = before
            raise

    def settle(self, state: AppliedState) -> None:
        """Follow the last applied entries, which are durable and readable, up to ``state``: on the loop, before the
        next are applied."""
        self.state = state
        self.features.settle()
        if self._was_given_up:
            self._versions.kept.forget()
            # Perhaps a feature's record. While damage beside it is in doubt nothing can be told, and the known state
            # stands.
            with suppress(CortadoError):
                self.features.load_again(self._newest(), self._own.applied())
                self._was_given_up = False

    def begin(self, state: AppliedState) -> None:
        """Write the first transaction of a group's first member. Raises as :meth:`apply`."""
        with self._engine.write() as txn:
            txn.put(Space.META, self._own.key, state.encode())
        self.state = self.load()

    def log_reset(self) -> bytes | None:
        """Return how to reset the log to the installed snapshot, if that was not done."""
        with self._engine.read() as txn:
            return txn.get(Space.META, self._own.reset_key)

    def forget_log_reset(self) -> None:
        """Forget the log's reset: it is done. Raises as :meth:`apply`."""
        with self._engine.write() as txn:
            txn.delete(Space.META, self._own.reset_key)

    def _apply_entry(
        self, txn: WriteTransaction, index: IndexWriter, state: AppliedState, entry: Entry
    ) -> AppliedState:
        payload = entry.payload
        if isinstance(payload, Nothing | Configuration | Registry):
            return replace(state, index=entry.index, term=entry.term)
        log_entry = payload if isinstance(payload, LogEntry) else LogEntry.decode(payload.encode())
        _check_follows(log_entry, state)
        if log_entry.removal is not NO_REMOVAL:
            self._remove(txn, entry.index, log_entry.removal)
        # In the order of their engine keys: neighbours share pages.
        txn.put_many(Space.DATA, log_entry.items)
        self._versions.kept.wrote(log_entry.items, log_entry.last_ts)
        was_unordered = self.features.is_unordered
        state = self.features.apply(log_entry.items, state)
        applied = self._applied(entry.index, log_entry)
        self.newly_applied.append(applied)
        if was_unordered or self.features.is_unordered:
            index.restart(log_entry.last_ts, applied.items)
        else:
            is_one = log_entry.first_ts == log_entry.last_ts
            index.add(log_entry.last_ts, applied.items, applied.moved, is_one=is_one)
        for control in log_entry.controls:
            state = self._control(txn, state, control, log_entry.last_ts)
        if log_entry.results:
            self._results += len(log_entry.results)
            state = self.request_table.remember(txn, state, log_entry.results)
        if log_entry.request_floor:
            state = self.request_table.forget(txn, state, log_entry.request_floor)
        return replace(
            state,
            index=entry.index,
            term=entry.term,
            last_ts=log_entry.last_ts,
            expires_to_ms=max(state.expires_to_ms, latest_expiry(log_entry.items)),
        )

    def _applied(self, index: int, log_entry: LogEntry) -> Applied:
        items = log_entry.items
        if not moves_staged(log_entry.removal):
            return Applied(log_entry.last_ts, items, log_entry.size_bytes)
        since = suffix_of(log_entry.first_ts)
        moved = [item for item in items if suffix_from(item[0]) > since]
        self.removals.moved(index, moved)
        items = [item for item in items if suffix_from(item[0]) <= since]
        return Applied(log_entry.last_ts, items, log_entry.size_bytes, moved)

    def _remove(self, txn: WriteTransaction, index: int, removal: Removal) -> None:
        if removal.safepoints is not None:
            # G5: raise them before the transaction ends that removes versions needed by reads below them.
            is_higher = self.are_safepoints_damaged or self.safepoints.is_below(removal.safepoints)
            invariant(is_higher, "safepoints rise", self.safepoints, removal.safepoints)
            self._versions.safepoints = removal.safepoints
            self.are_safepoints_damaged = False
        if removal.is_dense:
            remove_densely(txn, removal.keys)
        else:
            for key in removal.keys:
                txn.delete(Space.DATA, key)
        for each in removal.cleared:
            txn.delete_range(Space.DATA, each.start, each.end, max_items=each.items_max)
        self.removals.add(index, removal)

    def _control(
        self, txn: WriteTransaction, state: AppliedState, control: Control, last_ts: Timestamp
    ) -> AppliedState:
        match control:
            case BumpEpoch(epoch):
                if last_ts.epoch != epoch:
                    raise DataLoss("the log", f"epoch {epoch} begins at {last_ts}")
                return replace(state, epoch_began=last_ts, expires_to_ms=0)
            case RaiseCeiling(ceiling):
                return replace(state, ceiling=max(state.ceiling, ceiling))
            case AcceptLoss(engine_key, is_key_right):
                doubtful = (*self._versions.suspect, *self._versions.suspect_requests)
                give_up(txn, engine_key, is_key_right, doubtful)
                self._was_given_up = True
                return state
            case _:
                assert_never(control)


def _check_follows(log_entry: LogEntry, state: AppliedState) -> None:
    """Raise DataLoss if the entry does not follow ``state``: then the log must not be applied."""
    if (log_entry.after_index, log_entry.after_term) != (state.index, state.term):
        after = f"({log_entry.after_index}, {log_entry.after_term})"
        raise DataLoss("the log", f"an entry follows {after}, applied is ({state.index}, {state.term})")
    if not state.last_ts < log_entry.first_ts <= log_entry.last_ts:
        times = f"{log_entry.first_ts} to {log_entry.last_ts}"
        raise DataLoss("the log", f"an entry of {times} follows one at {state.last_ts}")
