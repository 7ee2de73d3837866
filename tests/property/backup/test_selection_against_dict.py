"""Which versions belong into a backup, against a dictionary: for every shape, and slices of any size."""

from __future__ import annotations

from unittest.mock import patch

from hypothesis import given
from hypothesis import strategies as st

from cortado.store.clock.timestamp import ZERO, Timestamp
from cortado.store.keys.keyspace import kv_key, kv_range
from cortado.store.keys.types import LogicalKey
from cortado.store.mvcc import archive
from cortado.store.mvcc.archive import Window, read_slice
from cortado.store.mvcc.mutations import Mutations
from cortado.store.mvcc.store import VersionStore
from cortado.store.mvcc.versions import expiry_of, payload_of, timestamp_of
from support.memory_engine import MemoryEngine

History = dict[LogicalKey, dict[int, tuple[bytes | None, int]]]
"""The payloads of each key by time, and when each expires, 0 for never."""
HISTORIES = st.dictionaries(
    st.sampled_from([kv_key("n", bytes([name])) for name in range(5)]),
    st.dictionaries(
        st.integers(1, 12), st.tuples(st.none() | st.binary(max_size=2), st.just(0) | st.integers(1, 13)), max_size=6
    ),
)


def _ts(number: int) -> Timestamp:
    return Timestamp(0, number, 0) if number else ZERO


def _is_seen(versions: dict[int, tuple[bytes | None, int]], newest: int, at: int) -> bool:
    payload, expires_ms = versions.get(newest, (None, 0))
    return payload is not None and not 0 < expires_ms <= at


def _expected(history: History, at: int, since: int | None, *, is_history: bool, with_start: bool) -> set[object]:
    chosen: set[object] = set()
    for key, versions in history.items():
        visible = [ts for ts in versions if ts <= at]
        newest = max(visible, default=0)
        if since is None:
            chosen |= {(key, newest)} if _is_seen(versions, newest, at) else set()
            continue
        chosen |= {(key, ts) for ts in visible if ts > since and (is_history or ts == newest)}
        start = max((ts for ts in versions if ts <= since), default=0)
        if with_start and _is_seen(versions, start, since):
            chosen.add((key, start))
    return chosen


@given(HISTORIES, st.integers(0, 13), st.none() | st.integers(0, 13), st.booleans(), st.booleans(), st.integers(1, 4))
def test_a_window_holds_the_versions_that_a_dictionary_says(
    history: History, at: int, since: int | None, is_history: bool, with_start: bool, items_max: int
) -> None:
    since = None if since is None else min(since, at)
    is_history, with_start = is_history and since is not None, with_start and is_history and since is not None
    engine = MemoryEngine()
    store = VersionStore(engine)
    for key, versions in history.items():
        for ts, (payload, expires_ms) in versions.items():
            with engine.write() as txn:
                store.apply(txn, Mutations([key], [payload], {key: expires_ms} if expires_ms else {}), _ts(ts))
    window = Window(_ts(at), None if since is None else _ts(since), is_history=is_history, with_start=with_start)
    found: list[bytes] = []
    start, end = kv_range("n")
    with patch.object(archive, "_ITEMS_MAX", items_max), patch.object(archive, "_KEYS_MAX", items_max):
        after = b""
        while True:
            piece = read_slice(engine, store, start, end, window, after=after)
            found += piece.keys
            for key, value in zip(piece.keys, piece.values, strict=True):
                payload, expires_ms = history[LogicalKey(key[:-12])][timestamp_of(key[-12:]).wall_ms]
                assert (payload_of(value), expiry_of(value)) == (payload, 0 if payload is None else expires_ms)
            if piece.resume is None:
                break
            after = piece.resume
    assert found == sorted(found)
    said = {(key[:-12], timestamp_of(key[-12:]).wall_ms) for key in found}
    assert len(said) == len(found)
    assert said == _expected(history, at, since, is_history=is_history, with_start=with_start)
