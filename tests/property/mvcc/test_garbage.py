"""The garbage, against a look at one version after the other; and that no read above the safepoint misses it."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cortado.store.clock.timestamp import Timestamp
from cortado.store.engine.interface import ABOVE_KEYS, Space
from cortado.store.keys.types import LogicalKey
from cortado.store.mvcc.garbage import Garbage, find_garbage
from cortado.store.mvcc.versions import Item, encode_version
from cortado.store.replica.collection.removals import remove_densely
from cortado.store.replica.collection.slices import Place, look
from support.memory_engine import MemoryEngine

TIMES_MAX = 12


def at(wall_ms: int) -> Timestamp:
    return Timestamp(0, wall_ms, 0)


History = dict[bytes, dict[int, int]]
"""The versions of each key by time, with their expiry: 0 is a delete, and a version without an expiry has one far
away."""

NEVER = 1 << 40
histories = st.dictionaries(
    st.sampled_from([b"a", b"bb", b"c", b"d" * 20]),
    st.dictionaries(
        st.integers(1, TIMES_MAX), st.sampled_from([0, NEVER]) | st.integers(1, TIMES_MAX + 1), min_size=1, max_size=6
    ),
    max_size=4,
)


def stored(history: History) -> list[Item]:
    items = [
        encode_version(LogicalKey(key), b"v%d" % time if expires else None, at(time), expires if expires < NEVER else 0)
        for key, versions in history.items()
        for time, expires in versions.items()
    ]
    return sorted(items)


def read(items: list[Item], time: int) -> dict[bytes, bytes]:
    """Return the values that a read at ``time`` sees: engine values by logical key, without deletes and expired
    ones."""
    found: dict[bytes, bytes] = {}
    for key, value in items:
        if key[-12:] >= encode_version(LogicalKey(b""), None, at(time))[0]:
            found.setdefault(key[:-12], value)
    return {
        key: value
        for key, value in found.items()
        if value[:1] == b"P" or (value[:1] == b"E" and int.from_bytes(value[1:7]) > time)
    }


def without(items: list[Item], garbage: Garbage) -> list[Item]:
    gone = set(garbage.keys)
    return [
        (key, value)
        for key, value in items
        if key not in gone and not any(each.start <= key < each.end for each in garbage.deleted)
    ]


def expected(history: History, safepoint: int) -> set[tuple[bytes, int]]:
    """Return the garbage by G1, G4 and G7, one key after the other."""
    gone = set()
    for key, versions in history.items():
        visible = sorted(time for time in versions if time <= safepoint)
        if visible:
            gone |= {(key, time) for time in visible[:-1]}
            if versions[visible[-1]] <= safepoint:
                gone.add((key, visible[-1]))
    return gone


@given(histories, st.integers(0, TIMES_MAX + 1))
def test_what_goes_is_what_no_read_needs_and_all_of_it(history: History, safepoint: int) -> None:
    items = stored(history)
    garbage = find_garbage(
        [key for key, _ in items], [value for _, value in items], at(safepoint), behind=b"", is_cut=False
    )
    left = without(items, garbage)
    gone = {(key[:-12], key) for key, _ in items} - {(key[:-12], key) for key, _ in left}
    assert len(gone) == len(expected(history, safepoint))
    for time in range(safepoint, TIMES_MAX + 2):
        assert read(left, time) == read(items, time)


@given(histories, st.integers(0, TIMES_MAX + 1))
def test_the_next_look_is_worth_it_from_the_time_that_is_told(history: History, safepoint: int) -> None:
    items = stored(history)
    keys, values = [key for key, _ in items], [value for _, value in items]
    next_ts = find_garbage(keys, values, at(safepoint), behind=b"", is_cut=False).next_ts
    now = expected(history, safepoint)
    later = [time for time in range(safepoint, TIMES_MAX + 2) if expected(history, time) - now]
    if later:
        assert next_ts is not None
        # A version above a delete that is garbage already is looked at once too often.
        assert at(safepoint) < next_ts <= at(later[0])


@given(histories, st.integers(0, TIMES_MAX + 1), st.integers(2, 6))
def test_slices_of_any_size_come_to_the_same_and_never_lay_an_old_row_open(
    history: History, safepoint: int, items_max: int
) -> None:
    engine = MemoryEngine()
    items = stored(history)
    with engine.write() as txn:
        txn.put_many(Space.DATA, items)
    while True:
        removed, place = 0, Place(b"")
        following: Place | None = place
        while following is not None:
            found = look(
                engine, following, ABOVE_KEYS, at(safepoint), items_max=items_max, bytes_max=1 << 20, on_damage=_never
            )
            following = found.next
            with engine.write() as txn:
                for key in found.garbage.keys:
                    removed += txn.delete(Space.DATA, key)
                for each in found.garbage.deleted:
                    removed += txn.delete_range(Space.DATA, each.start, each.end, max_items=each.items_max)
            with engine.read() as txn:
                left = list(zip(*txn.page(Space.DATA, b"", ABOVE_KEYS, max_items=100)[:2], strict=True))
            for time in range(safepoint, TIMES_MAX + 2):
                assert read(left, time) == read(items, time)
        if not removed:
            break
    # The delete of a key that has more versions than a slice holds stays until it has fewer.
    gone, may_go = len(items) - len(left), expected(history, safepoint)
    has_too_many = {key for key, versions in history.items() if len(versions) >= items_max}
    assert len({each for each in may_go if each[0] not in has_too_many}) <= gone <= len(may_go)


def _never(_damage: object) -> None:
    raise AssertionError("nothing is damaged here")


@given(histories, st.data())
def test_what_is_removed_densely_is_what_is_removed_one_by_one(history: History, data: st.DataObject) -> None:
    items = stored(history)
    keys = sorted({key for key, _ in items} | {b"a" + b"\xee" * 12})
    chosen = data.draw(st.lists(st.sampled_from(keys), min_size=1, unique=True).map(sorted))
    engines = MemoryEngine(), MemoryEngine()
    for engine in engines:
        with engine.write() as txn:
            txn.put_many(Space.DATA, items)
    with engines[0].write() as txn:
        remove_densely(txn, chosen)
    with engines[1].write() as txn:
        for key in chosen:
            txn.delete(Space.DATA, key)
    pages = []
    for engine in engines:
        with engine.read() as look_txn:
            pages.append(look_txn.page(Space.DATA, b"", ABOVE_KEYS, max_items=1_000))
    assert pages[0] == pages[1]


@pytest.mark.parametrize(("value_bytes", "is_packed"), [(1_000, True), (3_000, False), (400_000, False)])
def test_what_is_packed_is_small_since_a_transaction_is_in_memory(value_bytes: int, is_packed: bool) -> None:
    engine, written = MemoryEngine(), []
    items = [encode_version(LogicalKey(b"%04d" % row), bytes(value_bytes), at(1)) for row in range(200)]
    with engine.write() as txn:
        txn.put_many(Space.DATA, items)
        put_many = txn.put_many

        def counting(space: Space, kept: Iterable[Item]) -> None:
            written.extend(kept := list(kept))
            put_many(space, kept)

        txn.put_many = counting
        remove_densely(txn, [key for key, _ in items[::2]])
    assert written == (items[1:-1:2] if is_packed else [])
    with engine.read() as look_txn:
        assert look_txn.keys(Space.DATA, b"", ABOVE_KEYS, max_items=1_000)[0] == [key for key, _ in items[1::2]]
