"""Versions that expire: which reads see them until when, and which records go with them when they are collected."""

from __future__ import annotations

import pytest

from cortado.store.clock.timestamp import LOGICAL_MAX, Timestamp
from cortado.store.engine.interface import ABOVE_KEYS, Engine, Space
from cortado.store.keys.keyspace import kv_key, kv_range
from cortado.store.keys.types import LogicalKey
from cortado.store.mvcc.garbage import find_garbage
from cortado.store.mvcc.mutations import Mutations
from cortado.store.mvcc.seen import NOTHING, Seen
from cortado.store.mvcc.store import VersionStore
from cortado.store.mvcc.versions import encode_version, suffix_of

EXPIRES_MS = 2_071 * 31_557_600_000 // 1_000 * 1_000
KEY = kv_key("n", b"key")


def put(engine: Engine, ts: Timestamp, payload: bytes | None, expires_ms: int = 0, key: LogicalKey = KEY) -> None:
    with engine.write() as txn:
        VersionStore(engine).apply(txn, Mutations([key], [payload], {key: expires_ms} if expires_ms else {}), ts)


def reads(engine: Engine, ts: Timestamp) -> list[bytes | None]:
    """Return each kind of read's answer for the key."""
    store = VersionStore(engine)
    found = [
        store.get(KEY, ts),
        *store.get_many([KEY], ts),
        *(version for _, version in store.snapshot(ts).scan(*BOUNDS)),
    ]
    assert len({None if each is None else each.expires_ms for each in found}) == 1
    chunks = [store.scan_chunk(*BOUNDS, ts, reverse=reverse) for reverse in (False, True)]
    payloads = [None if each is None else each.payload for each in found]
    return payloads + [payload for chunk in chunks for payload in chunk.payloads or [None]]


BOUNDS = kv_range("n")


@pytest.mark.parametrize("written_ms", [1, 2_026 * 31_557_600_000])
def test_a_read_sees_it_up_to_the_last_moment_before_it_expires(engine: Engine, written_ms: int) -> None:
    put(engine, Timestamp(3, written_ms, 7), b"v", EXPIRES_MS)
    assert set(reads(engine, Timestamp(3, EXPIRES_MS - 1, LOGICAL_MAX))) == {b"v"}
    assert set(reads(engine, Timestamp(3, EXPIRES_MS, 0))) == {None}
    assert set(reads(engine, Timestamp(3, EXPIRES_MS + 1, 0))) == {None}


def test_a_later_epoch_has_no_more_of_what_expires_whatever_its_wall_time(engine: Engine) -> None:
    put(engine, Timestamp(0, 5, 0), b"v", EXPIRES_MS)
    assert set(reads(engine, Timestamp(0, 6, 0))) == {b"v"}
    assert set(reads(engine, Timestamp(1, 6, 0))) == {None}


def test_what_it_replaced_stays_hidden(engine: Engine) -> None:
    put(engine, Timestamp(0, 1, 0), b"old")
    put(engine, Timestamp(0, 3, 0), b"new", 5)
    assert [set(reads(engine, Timestamp(0, at, 0))) for at in range(1, 7)] == [
        {b"old"}, {b"old"}, {b"new"}, {b"new"}, {None}, {None},
    ]  # fmt: skip


def test_one_that_had_expired_when_it_was_written_is_never_seen(engine: Engine) -> None:
    put(engine, Timestamp(0, 1, 0), b"old")
    put(engine, Timestamp(0, 9, 0), b"new", 5)
    assert [set(reads(engine, Timestamp(0, at, 0))) for at in (8, 9, 10)] == [{b"old"}, {None}, {None}]


def test_an_empty_value_that_expires_is_one(engine: Engine) -> None:
    put(engine, Timestamp(0, 1, 0), b"", 5)
    assert set(reads(engine, Timestamp(0, 4, 0))) == {b""}


def test_a_command_that_is_evaluated_ahead_sees_what_is_left_when_it_is_its_turn(engine: Engine) -> None:
    put(engine, Timestamp(0, 1, 0), b"v", 5)
    store, at = VersionStore(engine), Timestamp(0, 2, 0)
    ahead = store.snapshot(at, as_of=Timestamp(0, 5, 0))
    assert (ahead.get(KEY), ahead.get_many([KEY]), list(ahead.scan(*BOUNDS))) == (None, [None], [])
    assert store.snapshot(at).get(KEY) is not None


@pytest.mark.parametrize(("safepoint", "left"), [(4, [6, 1]), (5, [6]), (7, [6])])
def test_an_entry_that_another_row_took_over_stays_when_the_expired_one_goes(
    engine: Engine, safepoint: int, left: list[int]
) -> None:
    """A row with a unique value expires, another one takes the value, and only then the first one is collected."""
    put(engine, Timestamp(0, 1, 0), b"first row", 5)
    put(engine, Timestamp(0, 6, 0), b"second row")
    with engine.read() as txn:
        keys, values, _ = txn.page(Space.DATA, b"", ABOVE_KEYS, max_items=10)
    garbage = find_garbage(list(keys), list(values), Timestamp(0, safepoint, 0), behind=b"", is_cut=False)
    gone = set(garbage.keys) | {key for key in keys for each in garbage.deleted if each.start <= key < each.end}
    assert [key for key in keys if key not in gone] == [KEY + suffix_of(Timestamp(0, at, 0)) for at in left]


@pytest.mark.parametrize(
    ("collected", "is_nothing"), [((0, 4, 9), False), ((0, 5, 0), True), ((0, 9, 0), True), ((1, 0, 0), True)]
)
def test_what_may_be_collected_at_one_replica_sooner_counts_as_nothing_at_both(
    collected: tuple[int, int, int], is_nothing: bool
) -> None:
    seen = Seen(Timestamp(*collected))
    seen.note_item(KEY, *encode_version(KEY, b"v", Timestamp(0, 1, 0), 5))
    assert (seen.versions[KEY] == NOTHING) == is_nothing


def test_one_that_was_written_above_the_safepoint_counts_though_it_has_expired() -> None:
    seen = Seen(Timestamp(0, 7, 0))
    seen.note_item(KEY, *encode_version(KEY, b"v", Timestamp(0, 8, 0), 5))
    assert seen.versions[KEY] != NOTHING
