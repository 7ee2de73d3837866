"""Changes since a time, in keys and in ranges: the store of versions beside a dictionary of lists.

The rules are numbered as in docs/adr/0034-transactions.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cortado.errors import DataLoss, SnapshotTooOld, Unavailable
from cortado.store.clock.timestamp import Timestamp
from cortado.store.engine.interface import Engine, Space
from cortado.store.keys.types import LogicalKey
from cortado.store.mvcc import changed as changed_module
from cortado.store.mvcc.changed import changed_within
from cortado.store.mvcc.damage import Damage
from cortado.store.mvcc.mutations import Mutations
from cortado.store.mvcc.safepoints import Safepoints
from cortado.store.mvcc.seen import NOTHING, Seen
from cortado.store.mvcc.store import VersionStore
from cortado.store.mvcc.versions import suffix_of
from support.dict_reader import DictStore
from support.memory_engine import MemoryEngine

A, B, C, D = [LogicalKey(each) for each in (b"a", b"b", b"c", b"d")]
# One key begins with another, and their versions must not be taken for each other's.
KEYS = st.sampled_from([A, LogicalKey(b"a\0"), LogicalKey(b"a" + b"\xff" * 12), LogicalKey(b"ab"), B, C])
WRITES = st.dictionaries(KEYS, st.none() | st.binary(max_size=2), max_size=4)
# A bound that begins with a key and goes on lies among that key's versions: it is none.
BOUNDS = st.sampled_from([A, B, C, D])
RANGES = st.lists(st.tuples(BOUNDS, BOUNDS).map(sorted).map(tuple), max_size=3)


def at(wall_ms: int, logical: int = 0) -> Timestamp:
    return Timestamp(0, wall_ms, logical)


def put(store: VersionStore, engine: Engine, ts: Timestamp, **payloads: bytes | None) -> None:
    mutations = Mutations([LogicalKey(key.encode()) for key in payloads], list(payloads.values()))
    with engine.write() as txn:
        store.apply(txn, mutations, ts)


@given(
    st.lists(st.tuples(st.booleans(), WRITES), max_size=8),
    st.lists(KEYS | st.just(D), max_size=4, unique=True),
    RANGES,
    st.data(),
    st.integers(1, 4),
)
def test_a_change_is_found_where_there_is_one_and_nowhere_else(
    history: list[tuple[bool, dict[LogicalKey, bytes | None]]],
    keys: list[LogicalKey],
    ranges: list[tuple[LogicalKey, LogicalKey]],
    data: st.DataObject,
    slice_items: int,
) -> None:
    engine, twin = MemoryEngine(), DictStore()
    store = VersionStore(engine)
    times = [twin.now]
    for is_later, write in history:
        ts = Timestamp(0, twin.now.wall_ms + 1, 0) if is_later else twin.now.next()
        twin.now = ts
        times.append(ts)
        mutations = Mutations(list(write), list(write.values()))
        twin.apply(mutations, ts)
        with engine.write() as txn:
            store.apply(txn, mutations, ts)
    read_ts, since = data.draw(st.sampled_from(times)), data.draw(st.sampled_from(times))
    with patch.object(changed_module, "_SLICE_ITEMS", slice_items):
        found = store.snapshot(read_ts).changed_since(keys, ranges, since)
    expected = twin.snapshot(read_ts).changed_since(keys, ranges, since)
    assert (found is None) == (expected is None)
    if found is not None:
        assert found.key in keys or any(start <= found.key < end for start, end in ranges)
        assert found.ts == max(ts for ts, _ in twin.versions[found.key] if ts <= read_ts)
        assert found.ts > since


def test_t2_a_delete_is_a_change_by_key_and_by_range(engine: Engine) -> None:
    store = VersionStore(engine)
    put(store, engine, at(1), b=b"old")
    put(store, engine, at(3), b=None)
    reader = store.snapshot(at(9))
    for asked in (([B], []), ([], [(A, C)])):
        assert reader.changed_since(*asked, at(2)) == (B, at(3))
        assert reader.changed_since(*asked, at(3)) is None
        assert store.snapshot(at(2)).changed_since(*asked, at(1)) is None


def test_what_came_after_the_read_is_no_change(engine: Engine) -> None:
    store = VersionStore(engine)
    put(store, engine, at(5), b=b"new")
    for asked in (([B], []), ([], [(A, C)])):
        assert store.snapshot(at(4)).changed_since(*asked, at(1)) is None
        assert store.snapshot(at(5)).changed_since(*asked, at(1)) == (B, at(5))


def test_a_long_range_is_searched_in_slices_that_may_end_within_a_key(engine: Engine) -> None:
    store = VersionStore(engine)
    for number in range(1, 9):
        put(store, engine, at(number), b=b"%d" % number)
    put(store, engine, at(9), c=b"last")
    slices, resume = 0, A
    with patch.object(changed_module, "_SLICE_ITEMS", 3):
        while resume is not None:
            changed, resume = changed_within(store, resume, D, at(8), at(20))  # type: ignore[assignment]
            slices += 1
    assert (changed, slices) == ((C, at(9)), 3)


def test_below_what_may_be_collected_nobody_knows_what_changed(engine: Engine) -> None:
    store = VersionStore(engine)
    put(store, engine, at(5), b=b"x")
    store.safepoints = Safepoints(at(4))
    for asked in (([B], []), ([], [(A, C)])):
        with pytest.raises(SnapshotTooOld):
            store.snapshot(at(9)).changed_since(*asked, at(3))
        store.snapshot(at(9)).changed_since(*asked, at(4))


def test_where_the_data_is_no_state_nothing_is_said_of_it(engine: Engine) -> None:
    store = VersionStore(engine)
    store.unreadable = "a snapshot is being installed"
    for asked in (([B], []), ([], [(A, C)])):
        with pytest.raises(Unavailable):
            store.snapshot(at(9)).changed_since(*asked, at(3))


def test_beside_damage_nothing_passes_for_unchanged(engine: Engine) -> None:
    store = VersionStore(engine)
    put(store, engine, at(1), b=b"x")
    store.distrust(Damage(Space.DATA, b"b", b"c", "some key"))
    for asked in (([B], []), ([], [(A, C)])):
        with pytest.raises(DataLoss):
            store.snapshot(at(9)).changed_since(*asked, at(5))


@pytest.mark.parametrize("asked", [([B], []), ([], [(A, C)])], ids=["key", "range"])
def test_a_version_that_does_not_check_is_no_answer(
    engine: Engine, asked: tuple[Sequence[LogicalKey], Sequence[tuple[LogicalKey, LogicalKey]]]
) -> None:
    store = VersionStore(engine)
    put(store, engine, at(7), b=b"x")
    with engine.write() as txn:
        txn.put(Space.DATA, B + suffix_of(at(7)), b"damaged")
    with pytest.raises(DataLoss):
        store.snapshot(at(9)).changed_since(*asked, at(8))


def test_keys_that_were_looked_up_are_noted_for_followers(engine: Engine) -> None:
    store = VersionStore(engine)
    put(store, engine, at(2), a=b"x")
    put(store, engine, at(4), b=b"x")
    put(store, engine, at(5), b=None)
    seen = Seen()
    assert store.snapshot(at(9), seen).changed_since([A, B, C], [], at(8)) is None
    assert seen.versions == {A: suffix_of(at(2)), B: suffix_of(at(5)), C: NOTHING}
