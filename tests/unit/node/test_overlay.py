"""Reading through what is in flight: held against a twin that applied it all."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cortado.store.clock.timestamp import Timestamp
from cortado.store.keys.types import LogicalKey
from cortado.store.mvcc.mutations import Mutations
from cortado.store.mvcc.versions import Item, encode_versions
from cortado.store.node.overlay import Layer, Layers, OverlayReader
from support.dict_reader import DictStore

KEYS = st.sampled_from([LogicalKey(bytes([letter])) for letter in b"abcd"])
WRITES = st.lists(st.dictionaries(KEYS, st.one_of(st.none(), st.binary(max_size=3)), max_size=5), max_size=4)


def mutations(write: dict[LogicalKey, bytes | None]) -> Mutations:
    return Mutations(list(write), list(write.values()))


def effects(write: Mutations, ts: Timestamp) -> tuple[list[LogicalKey], list[Item]]:
    return write.keys, encode_versions(write.keys, write.payloads, ts)


def overlaid(
    durable: Sequence[dict[LogicalKey, bytes | None]],
    batches: Sequence[Sequence[dict[LogicalKey, bytes | None]]],
    applied: int,
    *,
    is_indexed: bool,
) -> tuple[OverlayReader, DictStore]:
    """A reader over ``durable`` in the engine and ``batches`` in flight, and the twin in which all of it is applied.
    The first ``applied`` of them were in flight, and are in the engine now."""
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
            layers.wrote(keys, items)
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
