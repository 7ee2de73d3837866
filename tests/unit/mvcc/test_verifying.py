"""A pass over the stored items meets every changed item, and says where its true key must be."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from cortado.errors import DataLoss
from cortado.store.clock.timestamp import Timestamp
from cortado.store.engine.interface import Space
from cortado.store.engine.lmdb_engine import LmdbEngine
from cortado.store.keys.codec import successor_of_prefix
from cortado.store.keys.types import LogicalKey
from cortado.store.mvcc.damage import Damage
from cortado.store.mvcc.mutations import Mutations
from cortado.store.mvcc.store import VersionStore
from cortado.store.mvcc.verifying import VerifyingPass
from cortado.store.mvcc.versions import suffix_of
from support.engines import open_lmdb
from support.flips import flipped
from support.memory_engine import MemoryEngine

KEYS = [LogicalKey(b"key-%02d\x00" % number) for number in range(12)]
TIMES = [Timestamp(0, 1_700_000_000_000 + 1_000 * number, 7) for number in range(3)]
LATER = Timestamp(0, 1_800_000_000_000, 0)
PAYLOAD = b"v" * 300
"""So that the keys take several pages."""


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LmdbEngine]:
    """Yield an engine with three versions of each key."""
    opened = open_lmdb(tmp_path_factory.mktemp("verifying") / "data")
    for ts in TIMES:
        with opened.write() as txn:
            VersionStore(opened).apply(txn, Mutations(list(KEYS), [PAYLOAD + bytes(ts)] * len(KEYS)), ts)
    yield opened
    opened.close()


def everything(engine: LmdbEngine | MemoryEngine, items_max: int) -> tuple[list[Damage], int]:
    """Return the findings of a whole pass, and how many items it read."""
    under_way, found, items = VerifyingPass(engine), list[Damage](), 0
    for _ in range(10_000):
        piece = under_way.step(items_max, 1 << 20)
        found += piece.damage
        items += piece.items
        if piece.is_last:
            return found, items
    raise AssertionError("a pass that never ends")


def data_file(engine: LmdbEngine) -> Path:
    return engine.path / "engine" / "data.mdb"


@pytest.mark.parametrize("items_max", [1, 2, 3, 7, 1_000])
def test_what_is_whole_is_read_once_and_nothing_is_said(engine: LmdbEngine, items_max: int) -> None:
    assert everything(engine, items_max) == ([], len(KEYS) * len(TIMES))


@pytest.mark.parametrize("items_max", [1, 2, 3, 7])
def test_where_a_pass_stands_may_be_collected_before_its_next_step(items_max: int) -> None:
    collected = MemoryEngine()
    for ts in TIMES:
        with collected.write() as txn:
            VersionStore(collected).apply(txn, Mutations(list(KEYS), [PAYLOAD] * len(KEYS)), ts)
    with collected.read() as view:
        stored = view.page(Space.DATA, b"", successor_of_prefix(b"key"), max_items=1_000).keys
    under_way = VerifyingPass(collected)
    assert under_way.step(items_max, 1 << 20).damage == []
    with collected.write() as txn:
        assert txn.delete(Space.DATA, stored[items_max - 1])
    assert under_way.step(items_max, 1 << 20).damage == []


@pytest.mark.parametrize("items_max", [1, 2, 7, 1_000])
@pytest.mark.parametrize("key", [KEYS[0], KEYS[5], KEYS[-1]])
@pytest.mark.parametrize("version", [0, 1, 2])
def test_each_flipped_bit_of_a_stored_key_is_found_with_the_place_of_the_true_key(
    engine: LmdbEngine, key: LogicalKey, version: int, items_max: int
) -> None:
    true_key = key + suffix_of(TIMES[version])
    for bit in range(8 * len(true_key)):
        with flipped(data_file(engine), true_key, bit):
            found, _ = everything(engine, items_max)
            assert any(each.start <= true_key < each.end for each in found), f"bit {bit}: {found}"
            assert all(each.space is Space.DATA for each in found)


def test_what_was_found_is_never_missed_by_a_read_again(engine: LmdbEngine) -> None:
    """Neither is the row absent, nor an older one the newest, once the pass has been there."""
    key = KEYS[5]
    missed = 0
    for bit in range(8 * 12):
        true_key = key + suffix_of(TIMES[-1])
        with flipped(data_file(engine), true_key, len(key) * 8 + bit):
            store = VersionStore(engine)
            missed += not is_lost_or_right(store, key)
            for each in everything(engine, 100)[0]:
                store.distrust(each)
            assert is_lost_or_right(store, key), f"bit {bit}"
            assert is_lost_or_right(store, KEYS[0]), f"bit {bit}"
            store.trust(b"", b"\xff" * 20)
            assert store.suspect == ()
    assert missed > 5, "the flips that this is about did not occur"


def is_lost_or_right(store: VersionStore, key: LogicalKey) -> bool:
    """Return whether each way to read the key gives the right version, or DataLoss."""
    for read in (lambda: store.get(key, LATER), lambda: store.get_many([key], LATER)[0]):
        try:
            version = read()
        except DataLoss:
            continue
        if version is None or version.ts != TIMES[-1]:
            return False
    for reverse in (False, True):
        try:
            rows = dict(store.snapshot(LATER).scan(KEYS[0], LogicalKey(b"l"), reverse=reverse))
        except DataLoss:
            continue
        if rows.get(key) is None or rows[key].ts != TIMES[-1]:
            return False
    return True


def test_reads_beside_what_is_damaged_go_on(engine: LmdbEngine) -> None:
    store, told = VersionStore(engine), list[Damage]()
    store.on_damage = told.append
    true_key = KEYS[5] + suffix_of(TIMES[-1])
    # Its last bit but some: it stays where it is, under another timestamp.
    with flipped(data_file(engine), true_key, 8 * len(true_key) - 1):
        for each in everything(engine, 100)[0]:
            store.distrust(each)
        for key in KEYS:
            if key != KEYS[5]:
                assert store.get(key, LATER) is not None
        with pytest.raises(DataLoss):
            store.get(KEYS[5], LATER)
    assert told


def test_damaged_values_and_remembered_requests_are_found() -> None:
    engine = MemoryEngine()
    with engine.write() as txn:
        VersionStore(engine).apply(txn, Mutations(list(KEYS), [PAYLOAD] * len(KEYS)), TIMES[0])
        txn.put(Space.DATA, KEYS[3] + suffix_of(TIMES[0]), b"Pbroken")
        txn.put(Space.REQUESTS, b"\0\0\0\1" + bytes(20), b"broken")
    found, items = everything(engine, 5)
    assert [each.space for each in found] == [Space.DATA, Space.REQUESTS]
    assert found[0].start <= KEYS[3] + suffix_of(TIMES[0]) < found[0].end
    assert items == len(KEYS) + 1


def test_a_run_of_damaged_items_is_one_place_and_a_pass_over_nothing_else_ends() -> None:
    engine = MemoryEngine()
    with engine.write() as txn:
        for number in range(50):
            txn.put(Space.DATA, b"k%03d" % number, b"Pbroken")
    found, _ = everything(engine, 1)
    assert len(found) == 1
    assert found[0].start == b""
    assert found[0].end > b"k049"


@pytest.mark.parametrize("byte", [b"j", b"{"], ids=["below all", "above all"])
@pytest.mark.parametrize("number", range(len(KEYS)))
def test_what_a_stray_key_makes_searches_miss_is_reported_with_it(engine: LmdbEngine, number: int, byte: bytes) -> None:
    """The first byte of a key turns: each version of the others is found, or in a range that was reported."""
    bit = (KEYS[number][0] ^ byte[0]).bit_length() - 1
    with flipped(data_file(engine), KEYS[number] + suffix_of(TIMES[1]), bit):
        store = VersionStore(engine)
        for damage in everything(engine, 1_000)[0]:
            store.distrust(damage)
        for key in KEYS:
            for ts in (*TIMES, LATER):
                expected = PAYLOAD + bytes(max(each for each in TIMES if each <= ts))
                with suppress(DataLoss):
                    version = store.get(key, ts)
                    assert version is not None, (key, ts)
                    assert version.payload == expected
                with suppress(DataLoss):
                    chunk = store.scan_chunk(key, LogicalKey(successor_of_prefix(key)), ts)
                    assert chunk.payloads == [expected], (key, ts)
