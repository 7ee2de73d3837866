"""A read uses pieces of a table only as long as they agree with the stored rows."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from cortado.errors import SnapshotTooOld, Unavailable
from cortado.store.clock.timestamp import LARGEST, Timestamp
from cortado.store.engine.interface import ABOVE_KEYS, Space
from cortado.store.keys.keyspace import TABLE_SPACE
from cortado.store.keys.types import LogicalKey
from cortado.store.mvcc.damage import Damage
from cortado.store.mvcc.mutations import Mutations
from cortado.store.mvcc.safepoints import Safepoints
from cortado.store.mvcc.staged import LargeTransaction, Unresolved
from cortado.store.mvcc.store import VersionStore
from support.kept_pieces import END, PIECE_BYTES, START, TABLE, is_found, keep, opened
from support.memory_engine import MemoryEngine

DAMAGE = Damage(Space.DATA, START, END, "some rows")


def at(logical: int) -> Timestamp:
    return Timestamp(0, 1_000, logical)


def a_store(room: int = 1_000) -> VersionStore:
    store = VersionStore(MemoryEngine())
    store.kept.room = lambda: room
    return store


def write(store: VersionStore, ts: Timestamp, *table_ids: int) -> None:
    mutations = Mutations()
    for table_id in table_ids:
        for row in (b"r1", b"r2"):
            mutations.put(LogicalKey(TABLE_SPACE + table_id.to_bytes(4) + row), b"v")
    for key in (b"k1", b"m1", b"s1", b"z1"):
        mutations.put(LogicalKey(key), b"v")
    with store.engine.write() as txn:
        store.apply(txn, mutations, ts)


@pytest.mark.parametrize("others", [(), (TABLE - 1,), (TABLE + 1,), (1, TABLE - 1, TABLE + 1, (1 << 32) - 1)])
def test_a_write_closes_the_pieces_of_each_of_its_tables_and_of_no_other(others: tuple[int, ...]) -> None:
    store = a_store()
    tables = {each: opened(store, at(5), each) for each in (TABLE, *others)}
    write(store, at(6), *others)
    assert {each for each, kept in tables.items() if kept is not None and kept.is_closed} == set(others)
    write(store, at(7), TABLE, *others)
    assert all(kept is not None and kept.is_closed for kept in tables.values())


def test_a_read_below_the_last_write_makes_and_finds_nothing() -> None:
    store = a_store()
    first = opened(store, at(5))
    assert first is not None
    keep(first, at(5))
    write(store, at(8), TABLE)
    assert opened(store, at(7)) is None
    found = opened(store, at(8))
    assert found is not None and not is_found(found, at(8))
    # A read that began before the write goes on.
    keep(first, at(5))
    assert not is_found(first, at(5))
    assert store.kept.bytes == 0


def test_a_table_that_was_not_asked_for_counts_as_written_just_now() -> None:
    store = a_store()
    write(store, at(8), 7)
    assert opened(store, at(7)) is None
    assert opened(store, at(8)) is not None


def test_a_piece_serves_its_own_time_and_later_ones() -> None:
    store = a_store()
    kept = opened(store, at(5))
    assert kept is not None
    keep(kept, at(6))
    assert [is_found(kept, at(ts)) for ts in (5, 6, 7)] == [False, True, True]


@pytest.mark.parametrize(
    "event",
    [
        lambda store: store.distrust(DAMAGE),
        lambda store: store.trust(b"", ABOVE_KEYS),
        lambda store: store.kept.forget(),
    ],
    ids=["damage", "repair", "forget"],
)
def test_what_was_read_before_damage_is_known_or_repaired_is_found_and_kept_no_more(
    event: Callable[[VersionStore], None],
) -> None:
    store = a_store()
    kept, reading = opened(store, at(5)), opened(store, at(5), TABLE + 1)
    assert kept is not None and reading is not None
    keep(kept, at(5))
    event(store)
    # A slice that was read before is done now.
    keep(reading, at(5))
    assert kept.is_closed and reading.is_closed
    assert not is_found(kept, at(5)) and not is_found(reading, at(5))
    assert store.kept.bytes == 0


def test_another_state_counts_as_written_at_its_last_entry() -> None:
    store = a_store()
    assert opened(store, at(5)) is not None
    store.kept.forget(at(9))
    assert opened(store, at(8)) is None
    assert opened(store, at(9)) is not None


def test_nothing_is_found_or_made_while_rows_of_a_committed_transaction_are_not_in_their_place() -> None:
    store = a_store()
    kept = opened(store, at(5))
    assert kept is not None
    keep(kept, at(5))
    bounds = LogicalKey(START), LogicalKey(END)
    store.unresolved = Unresolved([LargeTransaction(b"a" * 16, (bounds,))])
    assert store.kept_table(TABLE, b"reader", at(6)) is kept, "it is open: nothing of it is to be seen"
    store.unresolved = Unresolved([LargeTransaction(b"a" * 16, (bounds,), commit_ts=at(6))])
    assert store.kept_table(TABLE, b"reader", at(6)) is None


def test_a_time_that_cannot_be_read_is_refused_though_a_piece_has_its_rows() -> None:
    store = a_store()
    kept = opened(store, at(5))
    assert kept is not None
    keep(kept, at(5))
    store.safepoints = Safepoints(at(7))
    with pytest.raises(SnapshotTooOld):
        is_found(kept, at(6))
    assert is_found(kept, at(7))
    store.unreadable = "a snapshot is being installed"
    with pytest.raises(Unavailable):
        is_found(kept, LARGEST)


def test_forms_of_different_readers_are_kept_apart() -> None:
    store = a_store()
    kept = opened(store, at(5))
    for _ in range(2):
        other = store.kept_table(TABLE, b"another reader", at(5))
    assert kept is not None and other is not None
    keep(kept, at(5))
    assert is_found(kept, at(5)) and not is_found(other, at(5))


def test_memory_is_given_back_of_the_tables_first_that_were_asked_for_first() -> None:
    store = a_store(room=2 * PIECE_BYTES)
    tables = [opened(store, at(5), TABLE + each) for each in range(3)]
    for kept in tables:
        assert kept is not None
        keep(kept, at(5))
    assert [kept is not None and len(kept.starts) for kept in tables] == [0, 1, 1]
    store.kept_table(TABLE + 1, b"reader", at(5))
    store.kept.shrink(PIECE_BYTES)
    assert [kept is not None and len(kept.starts) for kept in tables] == [0, 1, 0]
    assert store.kept.bytes == PIECE_BYTES
