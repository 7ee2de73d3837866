"""Changes since a time, of many keys and ranges at once: stored ones, recent ones, and those in flight."""

from __future__ import annotations

from collections.abc import Sequence
from unittest.mock import Mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cortado.errors import ResourceExhausted, SnapshotTooOld
from cortado.store.clock.timestamp import Timestamp
from cortado.store.keys.types import LogicalKey
from cortado.store.mvcc.mutations import Mutations
from cortado.store.mvcc.reader import VALIDATION
from cortado.store.mvcc.safepoints import Safepoints
from cortado.store.mvcc.versions import encode_in_turn, encode_versions
from cortado.store.replica.feed.recent import Applied, RecentChanges
from cortado.store.replica.write.key_ranges import KeyRanges
from cortado.store.replica.write.overlay import Layer, OverlayReader
from support.dict_reader import DictStore
from support.work import instructions_at_most

Range = tuple[LogicalKey, LogicalKey]
KEYS = st.integers(0, 199).map(lambda number: LogicalKey(b"%03d" % number))
RANGES = st.lists(st.tuples(KEYS, KEYS), max_size=6)
WRITES = st.lists(st.lists(KEYS, min_size=1, max_size=8, unique=True), max_size=5)


@given(RANGES, KEYS)
def test_ranges_cover_what_lies_in_any_of_them(ranges: list[Range], key: LogicalKey) -> None:
    joined = KeyRanges(ranges)
    assert joined.cover(key) == any(start <= key < end for start, end in ranges)
    bounds = [bound for each in joined for bound in each]
    assert bounds == sorted(set(bounds))
    assert len(joined) == len(list(joined)) <= len(ranges)


def written(store: DictStore, recent: RecentChanges | None, writes: Sequence[Sequence[LogicalKey]]) -> list[Layer]:
    """Apply each write, and add it to the recent changes; or, without ``recent``, in flight."""
    layers = []
    for keys in writes:
        ts, mutations = store.tick(), Mutations(sorted(keys), [b"v"] * len(keys))
        store.apply(mutations, ts)
        items = encode_versions(mutations.keys, mutations.payloads, ts)
        if recent is None:
            layer = Layer()
            layer.add(mutations.keys, items)
            layers.append(layer)
        else:
            recent.add(Applied(ts, list(items), 1))
    return layers


@given(WRITES, WRITES, WRITES, RANGES, st.lists(KEYS, max_size=4), st.booleans())
def test_a_change_is_found_wherever_it_is(
    old: list[list[LogicalKey]],
    late: list[list[LogicalKey]],
    in_flight: list[list[LogicalKey]],
    ranges: list[Range],
    few: list[LogicalKey],
    are_many: bool,
) -> None:
    stored, twin = DictStore(), DictStore()
    for store in (stored, twin):
        written(store, RecentChanges(store.now, entries_max=99, bytes_max=99), old)
    start = twin.now
    recent = RecentChanges(start, entries_max=99, bytes_max=99)
    written(stored, recent, late)
    written(twin, RecentChanges(start, entries_max=99, bytes_max=99), late)
    layers = written(twin, None, in_flight)
    keys = [*few, *(LogicalKey(b"other %d" % number) for number in range(100 if are_many else 0))]
    reader = OverlayReader(stored.snapshot(), layers, recent=recent)
    found, expected = reader.changed_since(keys, ranges, start), twin.snapshot().changed_since(keys, ranges, start)
    assert (found is None) == (expected is None)
    if found is not None:
        assert found.key in keys or KeyRanges(ranges).cover(found.key)
        assert found.ts > start


def test_a_run_in_flight_is_as_new_as_its_last_write() -> None:
    keys = [LogicalKey(b"a"), LogicalKey(b"b")]
    layer = Layer()
    layer.add(keys, encode_in_turn(keys, [b"v", b"v"], Timestamp(0, 5, 0)))
    reader = OverlayReader(DictStore().snapshot(), [layer])
    found = reader.changed_since((), [(LogicalKey(b"a"), LogicalKey(b"c"))], Timestamp(0, 5, 0))
    assert found is not None and found.key == b"b"


def test_behind_all_that_is_applied_only_what_is_in_flight_is_looked_at() -> None:
    store, key, other = DictStore(), LogicalKey(b"001"), LogicalKey(b"002")
    written(store, RecentChanges(store.now, entries_max=9, bytes_max=9), [[key], [key, other]])
    applied_ts, before = store.now, store.now.previous()
    layers = written(store, None, [[other]])
    # An older state stands for the one that may not be searched: in it nothing has changed.
    for base, start, changed in ((store.snapshot(), before, True), (store.snapshot(before), applied_ts, False)):
        reader = OverlayReader(base, layers, applied_ts=applied_ts)
        assert (reader.changed_since([key], (), start) is not None) == changed
        found = reader.changed_since([other], (), start)
        assert found is not None and found.ts == store.now
    searched = Mock(wraps=store.snapshot())
    assert OverlayReader(searched, layers, applied_ts=applied_ts).changed_since([key], (), applied_ts) is None
    assert not searched.changed_since.call_args.args[0]


def test_more_keys_than_are_searched_for_in_a_commits_turn_are_searched_for_before() -> None:
    store = DictStore()
    start = store.tick()
    recent = RecentChanges(store.tick(), entries_max=9, bytes_max=9)
    reader = OverlayReader(store.snapshot(), [], recent=recent)
    keys = [LogicalKey(b"%03d" % number) for number in range(200)]
    assert reader.changed_since(keys[:100], (), start) is None
    with pytest.raises(ResourceExhausted) as refused:
        reader.changed_since(keys, (), start)
    assert refused.value.resource == VALIDATION


def test_a_thousand_ranges_are_compared_with_thousands_of_entries_in_one_pass() -> None:
    """One by one it was more than a second, in which a leader is not heard of."""
    store = DictStore()
    start = store.now
    recent = RecentChanges(start, entries_max=5_000, bytes_max=5_000)
    written(store, recent, [[LogicalKey(b"%05d" % number)] for number in range(4_000)])
    ranges = [(LogicalKey(b"other %d" % number), LogicalKey(b"other %d!" % number)) for number in range(1_000)]
    reader = OverlayReader(DictStore().snapshot(Timestamp(0, 1, 0)), [], recent=recent)
    with instructions_at_most(1_000_000):
        assert reader.changed_since((), ranges, start) is None


def test_safepoints_in_flight_count_before_they_are_applied() -> None:
    # T7: the engine may lose a delete, which says that something changed, at any instant from now on.
    store, key = DictStore(), LogicalKey(b"001")
    mutations = Mutations()
    mutations.put(key, b"x")
    store.apply(mutations, Timestamp(0, 5, 0))
    reader = OverlayReader(store.snapshot(Timestamp(0, 9, 0)), [Layer()], safepoints=Safepoints(Timestamp(0, 4, 0)))
    for keys, ranges in (([key], []), ([], [(key, LogicalKey(b"002"))])):
        with pytest.raises(SnapshotTooOld):
            reader.changed_since(keys, ranges, Timestamp(0, 3, 0))
    assert reader.changed_since([key], [], Timestamp(0, 4, 0)) is not None
