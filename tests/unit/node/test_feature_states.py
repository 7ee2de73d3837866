"""The state of restores, large transactions and roles in memory: loaded, applied, taken back, settled."""

from __future__ import annotations

from typing import Any
from unittest.mock import Mock

import pytest

from cortado.errors import DataLoss, Restoring, Unavailable
from cortado.store.auth.stored import AUTH_KEY, Switch, encode_switch
from cortado.store.clock.timestamp import Timestamp
from cortado.store.engine.interface import Space
from cortado.store.keys.keyspace import table_range
from cortado.store.mvcc.mutations import Mutations
from cortado.store.mvcc.reader import Reader
from cortado.store.mvcc.store import VersionStore
from cortado.store.mvcc.versions import Item, encode_version
from cortado.store.replica.apply.applied_state import AppliedState
from cortado.store.replica.features.large_transactions import LargeTransactionsInLog
from cortado.store.replica.features.restore import RestoreInLog
from cortado.store.replica.features.restoring import RESTORE_KEY, UNREADABLE, RestoreState
from cortado.store.replica.features.roles import RolesInLog
from cortado.store.staging.records import UNRESOLVED_KEY, LargeState, Record, StagedTable, record_key
from support.memory_engine import MemoryEngine

STATE = AppliedState()
AT = [Timestamp(0, wall_ms, 0) for wall_ms in range(10)]
UNDER_WAY = RestoreState("r", AT[1], parts=1)
A = b"a" * 16
TABLE = StagedTable(7, "d", "t", ())
DAMAGE = DataLoss("a key", "damaged")


def stored(*items: Item) -> Reader:
    """Return the newest state of a store with these versions."""
    store = VersionStore(MemoryEngine())
    with store.engine.write() as txn:
        txn.put_many(Space.DATA, sorted(items))
    return store.snapshot(AT[9])


def damaged() -> Any:
    return Mock(get=Mock(side_effect=DAMAGE))


def restore_at(wall_ms: int, state: RestoreState | None) -> Item:
    return encode_version(RESTORE_KEY, None if state is None else state.encode(), AT[wall_ms])


def record_at(wall_ms: int, state: LargeState, *, is_resolved: bool = False) -> Item:
    commit_ts = AT[wall_ms] if state is LargeState.COMMITTED else None
    record = Record(A, AT[1], (TABLE,), state=state, commit_ts=commit_ts, is_resolved=is_resolved)
    return encode_version(record_key(A), record.encode(), AT[wall_ms])


# --- a restore -------------------------------------------------------------------------------------------------


def test_a_restore_closes_from_the_entry_that_begins_it_once_that_is_settled() -> None:
    restore = RestoreInLog(lambda: False)
    for began, state, item in ((True, UNDER_WAY, restore_at(1, UNDER_WAY)), (False, None, restore_at(2, None))):
        restore.begin()
        restore.apply([item], STATE)
        assert (restore.is_unordered, restore.is_closed) == (began, not began), "entries do, and callers do not yet"
        before = restore.disruptions
        restore.settle()
        assert (restore.is_closed, restore.state, restore.disruptions) == (began, state, before + 1)
        assert not began or restore.progress == UNDER_WAY.progress
    with pytest.raises(AssertionError):
        restore.refusal()


def test_a_restore_that_was_not_stored_is_taken_back_and_counts_once() -> None:
    restore = RestoreInLog(lambda: False)
    for _ in range(3):
        restore.begin()
        restore.apply([restore_at(1, UNDER_WAY)], STATE)
        restore.take_back()
        assert not restore.is_unordered
    restore.begin()
    restore.apply([restore_at(1, UNDER_WAY)], STATE)
    restore.settle()
    assert restore.disruptions == 1


def test_a_restore_is_loaded_and_one_that_is_unreadable_or_doubted_closes_until_it_is_repaired() -> None:
    doubts = [False]
    restore = RestoreInLog(lambda: doubts[0])
    newest = stored(restore_at(1, UNDER_WAY))
    restore.load(newest, STATE)
    assert restore.state == UNDER_WAY
    assert isinstance(restore.refusal(), Restoring)
    with pytest.raises(DataLoss):
        restore.load(damaged(), STATE)
    assert restore.state == UNDER_WAY, "it stays as it is"
    restore.unread()
    assert restore.state is UNREADABLE
    assert isinstance(restore.refusal(), Unavailable)
    with pytest.raises(DataLoss):
        restore.repaired(damaged(), STATE)
    doubts[0] = True
    restore.repaired(newest, STATE)
    restore.mended(newest, STATE)
    assert restore.state is UNREADABLE, "another feature is unreadable"
    doubts[0] = False
    restore.repaired(newest, STATE)
    assert restore.state is UNREADABLE, "the loop follows when it is told"
    restore.mended(newest, STATE)
    assert restore.state == UNDER_WAY
    restore.repaired(stored(), STATE)
    restore.mended(newest, STATE)
    assert restore.state == UNDER_WAY, "one that can be read is not loaded again"


# --- large transactions ----------------------------------------------------------------------------------------


def test_readers_know_a_committed_transaction_at_once_and_a_resolved_one_until_that_is_durable() -> None:
    store = VersionStore(MemoryEngine())
    large = LargeTransactionsInLog(store)
    start, end = table_range(TABLE.table_id)
    large.begin()
    large.apply([record_at(3, LargeState.COMMITTED)], STATE)
    assert A in store.unresolved.all
    assert not large.durable
    assert large.late_from(start, end) == AT[3]
    assert large.late_from(b"", start) is None
    large.settle()
    assert A in large.durable.all
    assert large.broken() == [(start, end)]
    large.begin()
    assert large.broken() == []
    large.apply([record_at(4, LargeState.COMMITTED, is_resolved=True)], STATE)
    assert large.is_moving, "its last rows may not be in their place yet"
    large.settle()
    assert not large.is_moving
    assert not large.durable


def test_a_transaction_that_was_not_stored_begins_again_with_the_durable_ones() -> None:
    store = VersionStore(MemoryEngine())
    large = LargeTransactionsInLog(store)
    for _ in range(2):
        large.begin()
        large.apply([record_at(3, LargeState.COMMITTED)], STATE)
        large.take_back()
        assert len(large.broken()) == 1, "it is committed by the same entry again"
    large.begin()
    large.settle()
    assert not store.unresolved


def test_large_transactions_are_loaded_and_unreadable_ones_until_they_are_repaired() -> None:
    store = VersionStore(MemoryEngine())
    large = LargeTransactionsInLog(store)
    newest = stored(record_at(3, LargeState.OPEN), encode_version(UNRESOLVED_KEY, A, AT[3]))
    with pytest.raises(DataLoss):
        large.load(damaged(), STATE)
    large.unread()
    assert large.is_unreadable
    with pytest.raises(DataLoss):
        large.repaired(damaged(), STATE)
    assert large.is_unreadable
    large.repaired(newest, STATE)
    assert not large.is_unreadable
    assert A in store.unresolved.all
    large.repaired(stored(), STATE)
    assert A in large.durable.all, "those that can be read are not loaded again"
    large.begin()
    large.settle()
    assert A in large.durable.all


# --- roles -----------------------------------------------------------------------------------------------------


def switch(wall_ms: int, *, enabled: bool) -> Item:
    return encode_version(AUTH_KEY, encode_switch(Switch(enabled)), AT[wall_ms])


def test_roles_change_for_callers_once_the_entry_is_settled_and_followed() -> None:
    roles = RolesInLog(lambda _key: None)
    roles.begin()
    state = roles.apply([switch(1, enabled=True)], STATE)
    assert state.roles_on
    assert not roles.is_behind
    roles.settle()
    assert roles.is_behind
    roles.follow([], [])
    assert roles.committed.is_enabled
    assert not roles.is_behind
    roles.begin()
    roles.settle()
    assert not roles.is_behind, "another transaction changes nothing"


def test_roles_in_flight_decide_writes_first_and_calls_once_they_are_committed() -> None:
    roles = RolesInLog(lambda _key: None)
    change = Mutations()
    change.put(AUTH_KEY, encode_switch(Switch(True)))
    roles.follow([], [change])
    assert (roles.committed.is_enabled, roles.appended.is_enabled) == (False, True)
    roles.follow([change], [])
    assert (roles.committed.is_enabled, roles.appended.is_enabled) == (True, True)


def test_damaged_roles_refuse_every_call_and_are_loaded_again_when_mended() -> None:
    roles = RolesInLog(lambda _key: None)
    on = AppliedState(roles_on=True)
    roles.load(damaged(), on)
    roles.follow([], [])
    assert roles.committed.problem
    roles.mended(stored(switch(1, enabled=True)), on)
    roles.follow([], [])
    assert (roles.committed.is_enabled, roles.committed.problem) == (True, "")
