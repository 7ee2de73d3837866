"""The version store against a dumb twin, a dictionary of lists: for any commits, at any time, however it is cut.

One suite over both engines, and over the scan kernel. Keys have many lengths, and share long prefixes; timestamps
collide in their first eight bytes, so that every path of the selection is taken.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cortado.store.clock.timestamp import Timestamp
from cortado.store.engine.interface import Engine, Space
from cortado.store.keys.keyspace import kv_key, row_key
from cortado.store.keys.types import KeyPart, KeyType, LogicalKey
from cortado.store.mvcc import chunks
from cortado.store.mvcc import store as store_module
from cortado.store.mvcc.mutations import Mutations
from cortado.store.mvcc.reader import Version
from cortado.store.mvcc.store import VersionStore
from cortado.store.mvcc.versions import encode_versions
from support.engines import open_lmdb
from support.kernels import row_kernel
from support.memory_engine import MemoryEngine

pytestmark = pytest.mark.slow

LOWEST, HIGHEST = LogicalKey(b"\x01"), LogicalKey(b"\xfe")
DAY_AND_FLIGHT = (KeyPart("day", KeyType.INT64), KeyPart("flight", KeyType.INT64))
ROW = (KeyPart("a", KeyType.INT64), KeyPart("b", KeyType.STRING, descending=True))


@pytest.fixture(scope="module", params=["lmdb", "kernel", "memory"])
def engine(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    path: Path = tmp_path_factory.mktemp("engine") / "data"
    opened: Engine = MemoryEngine() if request.param == "memory" else open_lmdb(path)
    with pytest.MonkeyPatch.context() as patches:
        if request.param == "kernel":
            patches.setattr(VersionStore, "kernel", row_kernel())
        yield opened
    opened.close()


@dataclass
class Twin:
    """Every version of every key, oldest first, and when it expires (0: never); None is a delete."""

    versions: dict[LogicalKey, list[tuple[Timestamp, bytes | None, int]]] = field(default_factory=dict)

    def get(self, key: LogicalKey, ts: Timestamp) -> Version | None:
        visible = [each for each in self.versions.get(key, []) if each[0] <= ts]
        if not visible:
            return None
        at, payload, expires_ms = visible[-1]
        if payload is None or (expires_ms and (ts.epoch, ts.wall_ms) >= (at.epoch, expires_ms)):
            return None
        return Version(at, payload, expires_ms)

    def scan(self, start: bytes, end: bytes, ts: Timestamp) -> list[tuple[LogicalKey, Version]]:
        found = ((key, self.get(key, ts)) for key in sorted(self.versions) if start <= key < end)
        return [(key, version) for key, version in found if version is not None]


def fixed_key(number: int) -> LogicalKey:
    return row_key(7, ROW, [number // 3, "abc"[number % 3]])


keys = st.one_of(
    st.integers(0, 8).map(fixed_key),
    st.binary(min_size=1, max_size=3).map(lambda user_key: kv_key("n", user_key)),
    st.sampled_from([b"\0", b"\0\xff", b"\xff" * 9, b"\xff\xff", b"a" * 40]).map(lambda key: kv_key("n", key)),
)
# Pages of one shape take another path: keys of one length, and keys of one length that end alike.
one_length = st.integers(0, 8).map(fixed_key)
ending_alike = st.integers(0, 8).map(lambda number: row_key(8, DAY_AND_FLIGHT, [number, 1545]))
timestamps = st.builds(Timestamp, st.sampled_from([0, 0, 0, 1]), st.integers(1, 4), st.integers(0, 3))
payloads = st.one_of(st.none(), st.sampled_from([b"", b"D", b"P", b"x" * 30]), st.just(b"y" * 5_000))
values = st.tuples(payloads, st.sampled_from([0, 0, 1, 2, 3, 4, 5]))
"""Payloads, and when each expires."""
histories = st.sampled_from([keys, one_length, ending_alike]).flatmap(
    lambda shape: st.lists(
        st.tuples(timestamps, st.dictionaries(shape, values, min_size=1, max_size=8)),
        max_size=10,
        unique_by=lambda commit: commit[0],
    )
)


Written = dict[LogicalKey, tuple[bytes | None, int]]


def mutations_of(changes: Written) -> Mutations:
    expiries = {key: expires_ms for key, (_, expires_ms) in changes.items() if expires_ms}
    return Mutations(list(changes), [payload for payload, _ in changes.values()], expiries)


def build(engine: Engine, history: list[tuple[Timestamp, Written]]) -> tuple[VersionStore, Twin]:
    store, twin = VersionStore(engine), Twin()
    with engine.write() as txn:
        txn.delete_range(Space.DATA, b"", b"\xff")
    for ts, changes in sorted(history, key=lambda commit: commit[0]):
        with engine.write() as txn:
            store.apply(txn, mutations_of(changes), ts)
        for key, (payload, expires_ms) in changes.items():
            twin.versions.setdefault(key, []).append((ts, payload, expires_ms))
    return store, twin


def scan_in_chunks(
    store: VersionStore,
    start: LogicalKey,
    end: LogicalKey,
    ts: Timestamp,
    *,
    reverse: bool,
    max_rows: int,
    max_bytes: int,
) -> list[tuple[LogicalKey, Version]]:
    rows: list[tuple[LogicalKey, Version]] = []
    while True:
        chunk = store.scan_chunk(start, end, ts, reverse=reverse, max_rows=max_rows, max_bytes=max_bytes)
        assert len(chunk.keys) == len(chunk.suffixes) == len(chunk.payloads) <= max_rows + 1
        expiries = [chunk.expiries.get(key, 0) for key in chunk.keys]
        rows += zip(chunk.keys, map(Version, chunk.timestamps(), chunk.payloads, expiries), strict=True)
        if chunk.resume is None:
            return rows
        assert start <= chunk.resume <= end
        start, end = (start, chunk.resume) if reverse else (chunk.resume, end)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(history=histories, read_ts=timestamps, asked=st.lists(keys, max_size=6))
def test_points_are_the_twins(engine: Engine, history: list, read_ts: Timestamp, asked: list[LogicalKey]) -> None:
    store, twin = build(engine, history)
    asked = [*asked, *list(twin.versions)[:5]]
    expected = [twin.get(key, read_ts) for key in asked]
    snapshot = store.snapshot(read_ts)
    assert [store.get(key, read_ts) for key in asked] == expected
    assert [snapshot.get(key) for key in asked] == expected
    assert snapshot.get_many(asked) == expected
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store_module, "_MANY_KEYS", 1)
        assert snapshot.get_many(asked) == expected
        for place, key in enumerate(asked):
            assert snapshot.get_many(asked[place:]) == expected[place:]
            assert snapshot.get_many([key]) == expected[place : place + 1]


@given(
    history=histories,
    read_ts=timestamps,
    bounds=st.one_of(st.just((LOWEST, HIGHEST)), st.tuples(keys, keys).map(sorted)),
    reverse=st.booleans(),
    max_rows=st.integers(1, 12),
    max_bytes=st.sampled_from([1, 200, 6_000, 1 << 20]),
    look=st.sampled_from([(128, 6), (1, 1), (3, 1), (3, 2)]),
)
def test_scans_are_the_twins_however_they_are_cut(
    engine: Engine,
    history: list,
    read_ts: Timestamp,
    bounds: tuple[LogicalKey, LogicalKey],
    reverse: bool,
    max_rows: int,
    max_bytes: int,
    look: tuple[int, int],
) -> None:
    """``look``: after this number of versions it is decided how to go on, and how many of a key are many."""
    store, twin = build(engine, history)
    start, end = bounds
    expected = twin.scan(start, end, read_ts)
    if reverse:
        expected.reverse()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(chunks, "_LOOK_ITEMS", look[0])
        patch.setattr(chunks, "_MANY_VERSIONS", look[1])
        found = scan_in_chunks(store, start, end, read_ts, reverse=reverse, max_rows=max_rows, max_bytes=max_bytes)
    assert found == expected
    snapshot = store.snapshot(read_ts)
    assert list(snapshot.scan(start, end, reverse=reverse)) == expected
    assert list(snapshot.scan(start, end, reverse=reverse, limit=max_rows)) == expected[:max_rows]


@given(history=histories, read_ts=timestamps, parts=st.integers(1, 6), max_keys=st.integers(1, 7))
def test_a_split_counts_what_is_there_and_covers_the_range(
    engine: Engine, history: list, read_ts: Timestamp, parts: int, max_keys: int
) -> None:
    store, twin = build(engine, history)
    counting = store.split(LOWEST, HIGHEST, parts, read_ts)
    while not counting.step(max_keys):
        pass
    found = counting.parts()
    present = [key for key in sorted(twin.versions) if any(at <= read_ts for at, *_ in twin.versions[key])]
    assert len(found) == max(1, min(parts, len(present)))
    assert found[0].start == LOWEST
    ends = [*(part.start for part in found[1:]), HIGHEST]
    assert [part.rows for part in found] == [
        sum(part.start <= key < end for key in present) for part, end in zip(found, ends, strict=True)
    ]
    assert max(part.rows for part in found) - min(part.rows for part in found) <= 1


@given(history=histories)
def test_one_transaction_for_many_commits_is_as_good_as_many(engine: Engine, history: list) -> None:
    build(engine, history)
    with engine.read() as txn:
        one_by_one = txn.page(Space.DATA, b"", b"\xff", max_items=10_000, max_bytes=1 << 30)
    build(engine, [])
    with engine.write() as txn:
        made = [(mutations_of(new), ts) for ts, new in history]
        items = [item for each, ts in made for item in encode_versions(each.keys, each.payloads, ts, each.expiries)]
        txn.put_many(Space.DATA, sorted(items))
    with engine.read() as txn:
        assert txn.page(Space.DATA, b"", b"\xff", max_items=10_000, max_bytes=1 << 30) == one_by_one
