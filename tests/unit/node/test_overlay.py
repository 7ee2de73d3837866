"""Reading through the entries in flight: held against a twin that applied it all."""

from __future__ import annotations

import gc
from collections.abc import Callable, Sequence
from weakref import ref

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cortado.errors import ResourceExhausted
from cortado.store.clock.timestamp import Timestamp
from cortado.store.engine.interface import Space
from cortado.store.keys.types import LogicalKey
from cortado.store.mvcc.mutations import Mutations
from cortado.store.mvcc.reader import VALIDATION
from cortado.store.mvcc.seen import NOTHING, Seen
from cortado.store.mvcc.store import VersionStore
from cortado.store.mvcc.versions import Item, encode_version, encode_versions, suffix_of
from cortado.store.replica.feed.recent import Applied, RecentChanges
from cortado.store.replica.write.overlay import Layer, Layers, OverlayReader
from support.dict_reader import DictStore
from support.memory_engine import MemoryEngine

KEYS = st.sampled_from([LogicalKey(bytes([letter])) for letter in b"abcd"])
EXPIRES_MS = {b"gone": 1_000, b"going": 1_001}
"""The expiry of payloads: the twin's wall time is 1,000."""
PAYLOADS = st.one_of(st.none(), st.binary(max_size=3), st.sampled_from(list(EXPIRES_MS)))
KEY, END = LogicalKey(b"k"), LogicalKey(b"l")
WRITES = st.lists(st.dictionaries(KEYS, PAYLOADS, max_size=5), max_size=4)


def mutations(write: dict[LogicalKey, bytes | None]) -> Mutations:
    expiries = {key: EXPIRES_MS[payload] for key, payload in write.items() if payload in EXPIRES_MS}
    return Mutations(list(write), list(write.values()), expiries)


def effects(write: Mutations, ts: Timestamp) -> tuple[list[LogicalKey], list[Item]]:
    return write.keys, encode_versions(write.keys, write.payloads, ts, write.expiries)


def overlaid(
    durable: Sequence[dict[LogicalKey, bytes | None]],
    batches: Sequence[Sequence[dict[LogicalKey, bytes | None]]],
    applied: int,
    *,
    is_indexed: bool,
) -> tuple[OverlayReader, DictStore]:
    """Return a reader over ``durable`` in the engine and ``batches`` in flight, and the twin in which all of it is
    applied. The first ``applied`` of them were in flight, and are in the engine now."""
    engine, twin = DictStore(), DictStore()
    for write in durable:
        for store in (engine, twin):
            store.apply(mutations(write), store.tick())
    layers = Layers([])
    for batch in batches:
        layer = Layer()
        layers.push(layer)
        for write in batch:
            ts = twin.tick()
            twin.apply(mutations(write), ts)
            keys, items = effects(mutations(write), ts)
            layer.add(keys, items)
            layers.wrote(mutations(write), items)
    for batch in batches[:applied]:
        for write in batch:
            engine.apply(mutations(write), engine.tick())
        layers.pop_oldest()
    return OverlayReader(engine.snapshot(), layers.all, newest=layers.newest if is_indexed else None), twin


@given(
    WRITES,
    st.lists(WRITES, min_size=2, max_size=4),
    st.integers(0, 2),
    st.booleans(),
    st.tuples(KEYS, KEYS).map(sorted),
    st.booleans(),
    st.none() | st.integers(0, 5),
)
def test_a_reader_over_what_is_in_flight_sees_what_it_would_see_if_it_were_applied(
    durable: list[dict[LogicalKey, bytes | None]],
    batches: list[list[dict[LogicalKey, bytes | None]]],
    applied: int,
    is_indexed: bool,
    bounds: tuple[LogicalKey, LogicalKey],
    reverse: bool,
    limit: int | None,
) -> None:
    reader, twin = overlaid(durable, batches, applied, is_indexed=is_indexed)
    expected = twin.snapshot()
    keys = [LogicalKey(bytes([letter])) for letter in b"edcba"]
    assert [reader.get(key) for key in keys] == [expected.get(key) for key in keys]
    assert reader.get_many(keys) == expected.get_many(keys)
    start, end = bounds
    assert list(reader.scan(start, end, reverse=reverse, limit=limit)) == list(
        expected.scan(start, end, reverse=reverse, limit=limit)
    )


@given(WRITES, st.lists(WRITES, max_size=5), st.lists(KEYS, min_size=1), st.integers(1, 9))
def test_many_keys_are_read_up_to_the_one_that_reaches_the_bound_of_bytes_in_flight_or_not(
    durable: list[dict[LogicalKey, bytes | None]],
    batches: list[list[dict[LogicalKey, bytes | None]]],
    keys: list[LogicalKey],
    max_bytes: int,
) -> None:
    reader, twin = overlaid(durable, batches, 0, is_indexed=True)
    found = reader.get_many(keys, max_bytes=max_bytes)
    assert found == twin.snapshot().get_many(keys)[: len(found)]
    assert found
    assert sum(len(each.payload) for each in found[:-1] if each is not None) < max_bytes


@given(WRITES, st.lists(WRITES, min_size=1, max_size=5), st.data())
def test_a_reader_of_the_first_layers_sees_nothing_of_the_later_ones(
    durable: list[dict[LogicalKey, bytes | None]],
    batches: list[list[dict[LogicalKey, bytes | None]]],
    data: st.DataObject,
) -> None:
    engine, twin, layers = DictStore(), DictStore(), Layers([])
    for write in durable:
        for store in (engine, twin):
            store.apply(mutations(write), store.tick())
    ends = []
    for batch in batches:
        layers.push(layer := Layer())
        for write in batch:
            ts = twin.tick()
            twin.apply(mutations(write), ts)
            keys, items = effects(mutations(write), ts)
            layer.add(keys, items)
            layers.wrote(mutations(write), items)
        ends.append(twin.now)
    keys = [LogicalKey(bytes([letter])) for letter in b"edcba"]
    for count in data.draw(st.lists(st.integers(1, len(batches)), max_size=4)):
        reader, expected = (
            layers.reader_of_first(count, engine.snapshot(ends[count - 1])),
            twin.snapshot(ends[count - 1]),
        )
        assert [reader.get(key) for key in keys] == [expected.get(key) for key in keys]
        assert reader.get_many(keys) == expected.get_many(keys)
        assert list(reader.scan(keys[-1], keys[0])) == list(expected.scan(keys[-1], keys[0]))


@pytest.mark.parametrize("visible", [False, True])
def test_it_does_not_matter_when_the_engine_shows_what_is_still_in_flight(visible: bool) -> None:
    engine = DictStore()
    write = mutations({LogicalKey(b"a"): b"new", LogicalKey(b"b"): None})
    engine.apply(mutations({LogicalKey(b"b"): b"old"}), engine.tick())
    ts = engine.tick()
    layer = Layer()
    layer.add(*effects(write, ts))
    if visible:
        engine.apply(write, ts)
    reader = OverlayReader(engine.snapshot(), [layer])
    found = list(reader.scan(LogicalKey(b"a"), LogicalKey(b"z")))
    assert [(key, version.payload) for key, version in found] == [(b"a", b"new")]


def test_what_a_large_command_wrote_is_read_with_what_others_of_its_batch_wrote_before_and_after() -> None:
    engine, layer = DictStore(), Layer()
    large = {LogicalKey(b"%03d" % number): b"large" for number in range(100, 300)}
    for write in ({LogicalKey(b"150"): b"before"}, large, {LogicalKey(b"160"): b"after", LogicalKey(b"000"): None}):
        layer.add(*effects(mutations(write), engine.tick()))
        reader = OverlayReader(engine.snapshot(), [layer], has_open_layer=False)
        assert [reader.get(LogicalKey(key)) for key in (b"500", b"0")] == [None, None]
    keys = [LogicalKey(key) for key in (b"000", b"150", b"160", b"299", b"300")]
    expected = [None, b"large", b"after", b"large", None]
    assert [version and version.payload for version in map(reader.get, keys)] == expected
    assert [version and version.payload for version in reader.get_many(keys)] == expected
    assert len(list(reader.scan(LogicalKey(b"0"), LogicalKey(b"9")))) == 200


# --- changes since a time ------------------------------------------------------------------------------------------

A, B, C, D, E = [LogicalKey(bytes([letter])) for letter in b"abcde"]


@given(
    WRITES,
    st.lists(WRITES, min_size=2, max_size=4),
    st.integers(0, 2),
    st.booleans(),
    st.none() | st.integers(1, 3),
    st.lists(KEYS, max_size=3, unique=True),
    st.lists(st.tuples(KEYS, KEYS | st.just(E)).map(sorted).map(tuple), max_size=2),
    st.data(),
)
def test_a_change_is_found_in_flight_and_applied_and_below_the_floor_nothing_is_said_of_ranges(
    durable: list[dict[LogicalKey, bytes | None]],
    batches: list[list[dict[LogicalKey, bytes | None]]],
    applied: int,
    is_indexed: bool,
    entries_max: int | None,
    keys: list[LogicalKey],
    ranges: list[tuple[LogicalKey, LogicalKey]],
    data: st.DataObject,
) -> None:
    reader, twin = overlaid(durable, batches, applied, is_indexed=is_indexed)
    recent = None
    if entries_max is not None:
        # The engine got its contents entry by entry.
        recent = RecentChanges(DictStore().now, entries_max=entries_max, bytes_max=1 << 20)
        ts = DictStore().now
        for write in [*durable, *(write for batch in batches[:applied] for write in batch)]:
            ts = ts.next()
            if write:
                recent.add(Applied(ts, sorted(effects(mutations(write), ts)[1]), 10))
        reader = OverlayReader(reader._base, reader._layers, newest=reader._newest, recent=recent)
    since = DictStore().now
    for _ in range(data.draw(st.integers(0, 8))):
        since = since.next()
    expected = twin.snapshot().changed_since(keys, ranges, since)
    try:
        found = reader.changed_since(keys, ranges, since)
    except ResourceExhausted as refusal:
        assert refusal.resource == VALIDATION
        assert recent is not None
        assert ranges
        assert since < recent.floor
        return
    assert (found is None) == (expected is None)
    if found is not None:
        assert found.key in keys or any(start <= found.key < end for start, end in ranges)
        assert found.ts in [ts for ts, _ in twin.versions[found.key]]
        assert found.ts > since


@pytest.mark.parametrize("is_indexed", [True, False])
def test_t2_and_t3_a_delete_in_flight_is_a_change(is_indexed: bool) -> None:
    reader, twin = overlaid([{A: b"old", B: b"old"}], [[{A: None}]], 0, is_indexed=is_indexed)
    began = DictStore().now.next()
    for asked in (([A], []), ([], [(A, B)])):
        assert reader.changed_since(*asked, began) == (A, twin.now)
        assert reader.changed_since(*asked, twin.now) is None
    assert reader.changed_since([B], [(B, E)], began) is None


def test_t9_a_range_is_asked_of_the_newest_changes_and_not_of_the_engine_at_or_above_their_floor() -> None:
    engine = DictStore()
    recent = RecentChanges(engine.now, entries_max=1, bytes_max=1 << 20)
    times = []
    for key in (A, B, C):
        ts = engine.tick()
        engine.apply(mutations({key: b"x"}), ts)
        recent.add(Applied(ts, effects(mutations({key: b"x"}), ts)[1], 10))
        times.append(ts)
    reader = OverlayReader(engine.snapshot(), [], recent=recent)
    assert recent.floor == times[1]
    assert reader.changed_since([], [(A, E)], times[1]) == (C, times[2])
    assert reader.changed_since([], [(A, C)], times[1]) is None
    with pytest.raises(ResourceExhausted) as refused:
        reader.changed_since([], [(A, C)], times[0])
    assert refused.value.resource == VALIDATION
    # Keys are looked up, however long ago it is; and a change that is found by them needs no range.
    assert reader.changed_since([B], [], times[0]) == (B, times[1])
    assert reader.changed_since([B], [(A, C)], times[0]) == (B, times[1])


def test_a_key_in_flight_that_was_looked_up_is_noted_unless_its_own_entry_wrote_it() -> None:
    engine, layers = DictStore(), [Layer(), Layer()]
    for layer, key in zip(layers, (A, B), strict=True):
        layer.add(*effects(mutations({key: b"x"}), engine.tick()))
    seen = Seen()
    reader = OverlayReader(engine.snapshot(), layers, seen)
    assert reader.changed_since([A, B], [], engine.now) is None
    assert seen.versions == {A: suffix_of(Timestamp(0, 1_000, 1))}


@pytest.mark.parametrize("is_indexed", [False, True])
def test_a_reader_is_gone_with_its_last_user_and_keeps_no_layer_until_a_collection(is_indexed: bool) -> None:
    reader, _ = overlaid([], [[{LogicalKey(b"a"): b"1"}]], 0, is_indexed=is_indexed)
    reader.get(LogicalKey(b"a"))
    is_there = ref(reader)
    gc.disable()
    try:
        del reader
        assert is_there() is None
    finally:
        gc.enable()


@pytest.mark.parametrize("read", [lambda r: r.get(KEY), lambda r: r.get_many([KEY]), lambda r: list(r.scan(KEY, END))])
def test_the_version_before_the_open_batch_is_noted_or_none(read: Callable[[OverlayReader], object]) -> None:
    store = VersionStore(MemoryEngine())
    with store.engine.write() as txn:
        txn.put(Space.DATA, *encode_version(KEY, b"stored", Timestamp(0, 1, 0)))
    appended, opened = Layer(), Layer()
    appended.add([KEY], [encode_version(KEY, b"appended", Timestamp(0, 2, 0))])
    opened.add([KEY], [encode_version(KEY, b"open", Timestamp(0, 3, 0))])
    seen = Seen()
    read(OverlayReader(store.snapshot(Timestamp(0, 4, 0), seen), [appended, opened], seen))
    assert seen.versions.get(KEY, suffix_of(Timestamp(0, 2, 0))) == suffix_of(Timestamp(0, 2, 0))


@pytest.mark.parametrize("read", [lambda r: r.get(KEY), lambda r: r.get_many([KEY]), lambda r: list(r.scan(KEY, END))])
@pytest.mark.parametrize("is_expiring", [False, True])
def test_what_is_collected_elsewhere_is_noted_as_nothing_though_it_is_in_flight_here(
    read: Callable[[OverlayReader], object], is_expiring: bool
) -> None:
    """Another replica has applied the delete, and collected it with the version before it."""
    store, layer, collected = VersionStore(MemoryEngine()), Layer(), Timestamp(0, 3, 0)
    with store.engine.write() as txn:
        txn.put(Space.DATA, *encode_version(KEY, b"before", Timestamp(0, 1, 0)))
    last = (b"expires", 3) if is_expiring else (None, 0)
    layer.add([KEY], [encode_version(KEY, last[0], Timestamp(0, 2, 0), last[1])])
    seen = Seen(collected)
    read(OverlayReader(store.snapshot(Timestamp(0, 4, 0), seen), [layer], seen, has_open_layer=False))
    assert seen.versions == {KEY: NOTHING}
    assert seen.reads(1_000).versions == [NOTHING]
