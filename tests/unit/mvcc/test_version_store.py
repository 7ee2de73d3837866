"""The promises of reading and writing versions beyond the right answer: damage is named, slices are bounded."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import copy
from pathlib import Path
from typing import Any, cast

import pytest

from cortado.errors import DataLoss, SnapshotTooOld
from cortado.store.clock.timestamp import LARGEST, ZERO, Timestamp
from cortado.store.engine.interface import Engine, LentMap, ReadTransaction, Space, Tree
from cortado.store.keys.keyspace import kv_key, kv_range, row_key, row_range
from cortado.store.keys.types import KeyPart, KeyType, LogicalKey
from cortado.store.mvcc.changed import changed_since
from cortado.store.mvcc.damage import Damage
from cortado.store.mvcc.mutations import Mutations
from cortado.store.mvcc.reader import ScanChunk
from cortado.store.mvcc.safepoints import Safepoints
from cortado.store.mvcc.store import VersionStore
from cortado.store.mvcc.versions import checksum, encode_version, is_key_right, suffix_of
from support.engines import open_lmdb

START, END = kv_range("n")


def key(number: int) -> LogicalKey:
    return kv_key("n", b"%05d" % number)


def at(wall_ms: int) -> Timestamp:
    return Timestamp(0, wall_ms, 0)


def put(engine: Engine, store: VersionStore, ts: Timestamp, **payloads: bytes | None) -> None:
    """Put key 5 for the keyword ``k5=b"x"``; delete it for ``k5=None``."""
    mutations = Mutations([key(int(name[1:])) for name in payloads], list(payloads.values()))
    with engine.write() as txn:
        store.apply(txn, mutations, ts)


def fill(engine: Engine, store: VersionStore, count: int) -> None:
    mutations = Mutations([key(number) for number in range(count)], [b"payload %d" % number for number in range(count)])
    with engine.write() as txn:
        store.apply(txn, mutations, at(1))


def damage(engine: Engine, number: int, change: Callable[[bytes], bytes], ts: Timestamp | None = None) -> None:
    """Change the stored value of a key behind the store's back."""
    engine_key = key(number) + suffix_of(ts or at(1))
    with engine.write() as txn:
        value = txn.get(Space.DATA, engine_key)
        assert value is not None
        txn.put(Space.DATA, engine_key, change(value))


def test_rows_of_many_versions_are_scanned_at_any_time_and_mostly_passed_by(engine: Engine) -> None:
    store = VersionStore(engine)
    rows, versions = 60, 12
    for number in range(1, versions + 1):
        put(engine, store, at(number), **{f"k{row}": b"%d" % number for row in range(rows)})
    for number in (1, 5, versions):
        chunk = store.scan_chunk(START, END, at(number))
        assert chunk.keys == [key(row) for row in range(rows)]
        assert chunk.payloads == [b"%d" % number] * rows
        assert chunk.resume is None
    # A slice of rows with this number of versions comes as far as one of rows with a single one.
    for max_rows in (2, 10, 40, rows):
        assert len(store.scan_chunk(START, END, at(versions), max_rows=max_rows).payloads) == max_rows


@pytest.mark.parametrize("count", [3, 9])
def test_as_many_keys_are_read_as_reach_the_bytes_that_were_asked_for(engine: Engine, count: int) -> None:
    store = VersionStore(engine)
    put(engine, store, at(1), **{f"k{number}": bytes(1_000) for number in range(count - 1)})
    wanted = [key(number) for number in range(count)]
    lengths = [len(store.snapshot(at(1)).get_many(wanted, max_bytes=each)) for each in (1, 1_000, 1_900, 1 << 20)]
    assert lengths == [1, 1, 2, count]
    assert [each is None for each in store.snapshot(at(1)).get_many(wanted)] == [n == count - 1 for n in range(count)]


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("wanted", [1, 3])
def test_who_wants_a_few_rows_passes_by_thousands_of_deletes_in_a_few_slices(
    engine: Engine, reverse: bool, wanted: int
) -> None:
    store = VersionStore(engine)
    deleted, live = 6_000, [key(number) for number in range(6_000, 6_010)]
    if reverse:
        live = [key(number) for number in range(10)][::-1]
    first = 10 if reverse else 0
    fill(engine, store, 6_010)
    mutations = Mutations([key(number) for number in range(first, first + deleted)], [None] * deleted)
    with engine.write() as txn:
        store.apply(txn, mutations, at(2))
    start, end, found, slices = START, END, list[LogicalKey](), 0
    while len(found) < len(live):
        chunk = store.scan_chunk(start, end, at(2), reverse=reverse, max_rows=wanted)
        assert len(chunk.keys) <= wanted
        found += chunk.keys
        slices += 1
        if chunk.resume is not None:
            start, end = (start, chunk.resume) if reverse else (chunk.resume, end)
    assert found == live
    assert slices < 2 * len(live)


def test_a_version_is_read_from_its_timestamp_on_and_until_the_next(engine: Engine) -> None:
    store = VersionStore(engine)
    put(engine, store, at(3), k1=b"old")
    put(engine, store, at(5), k1=None)
    put(engine, store, at(7), k1=b"new")
    seen = {wall_ms: store.get(key(1), at(wall_ms)) for wall_ms in range(2, 9)}
    assert {wall_ms: each and each.payload for wall_ms, each in seen.items()} == {
        2: None,
        3: b"old",
        4: b"old",
        5: None,
        6: None,
        7: b"new",
        8: b"new",
    }
    assert seen[4] is not None
    assert seen[4].ts == at(3)


def test_the_outermost_timestamps_are_written_and_read(engine: Engine) -> None:
    store = VersionStore(engine)
    put(engine, store, ZERO, k1=b"first")
    put(engine, store, LARGEST, k1=b"last")
    for ts, payload in ((ZERO, b"first"), (at(9), b"first"), (LARGEST, b"last")):
        version = store.get(key(1), ts)
        assert version is not None
        assert version.payload == payload
        assert store.scan_chunk(START, END, ts).payloads == [payload]


def test_a_later_epoch_is_newer_whatever_its_wall_time(engine: Engine) -> None:
    store = VersionStore(engine)
    put(engine, store, Timestamp(0, 3_187_296_000_000, 0), k1=b"from 2071")
    put(engine, store, Timestamp(1, 1_763_643_600_000, 0), k1=b"after the bump")
    version = store.get(key(1), Timestamp(1, 1_763_643_600_000, 5))
    assert version is not None
    assert version.payload == b"after the bump"


def test_a_key_beside_is_not_a_version(engine: Engine) -> None:
    store = VersionStore(engine)
    put(engine, store, at(1), k1=b"x")
    assert store.get(kv_key("n", b"00001\0"), at(9)) is None
    assert store.get(kv_key("n", b"0000"), at(9)) is None
    assert store.get(kv_key("m", b"00001"), at(9)) is None


FLIPS: dict[str, Callable[[bytes], bytes]] = {
    "kind": lambda value: b"D" + value[1:],
    "payload": lambda value: value[:4] + bytes([value[4] ^ 1]) + value[5:],
    "checksum": lambda value: value[:-1] + bytes([value[-1] ^ 0x80]),
    "cut": lambda value: value[:-3],
    "longer": lambda value: value + b"\0",
    "empty": lambda value: b"",
}


@pytest.mark.parametrize("flip", FLIPS)
@pytest.mark.parametrize("reverse", [False, True])
def test_damage_is_data_loss_that_names_the_key(engine: Engine, flip: str, reverse: bool) -> None:
    store = VersionStore(engine)
    fill(engine, store, 100)
    damage(engine, 42, FLIPS[flip])
    snapshot = store.snapshot(at(9))
    for read in (
        lambda: store.get(key(42), at(9)),
        lambda: snapshot.get(key(42)),
        lambda: snapshot.get_many([key(41), key(42)]),
        lambda: list(snapshot.scan(START, END, reverse=reverse)),
        lambda: store.scan_chunk(key(42), key(43), at(9), reverse=reverse),
    ):
        with pytest.raises(DataLoss) as lost:
            read()
        assert lost.value.what == """kv ("n", b'00042') @0.1.0"""
    assert store.get(key(41), at(9)) is not None
    assert len(store.scan_chunk(START, key(42), at(9), reverse=reverse).keys) == 42


def test_a_value_under_another_key_is_data_loss(engine: Engine) -> None:
    store = VersionStore(engine)
    fill(engine, store, 2)
    with engine.read() as txn:
        other = txn.get(Space.DATA, key(0) + suffix_of(at(1)))
    assert other is not None
    damage(engine, 1, lambda value: other)
    with pytest.raises(DataLoss):
        store.get(key(1), at(9))


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("damaged_at", [1, 5])
def test_a_scan_that_does_not_need_a_damaged_version_goes_on_and_tells_of_it(
    engine: Engine, reverse: bool, damaged_at: int
) -> None:
    """One that was written again since, or that is not visible yet."""
    store = VersionStore(engine)
    told: list[Damage] = []
    store.on_damage = told.append
    fill(engine, store, 3)
    put(engine, store, at(5), k1=b"later")
    damage(engine, 1, FLIPS["payload"], at(damaged_at))
    chunk = store.scan_chunk(START, END, at(9 if damaged_at == 1 else 2), reverse=reverse)
    assert len(chunk.keys) == 3
    assert told == [Damage.at(Space.DATA, key(1) + suffix_of(at(damaged_at)))]
    with pytest.raises(DataLoss, match=rf"00001.*@0\.{damaged_at}\.0"):
        store.scan_chunk(START, END, at(2 if damaged_at == 1 else 9), reverse=reverse)


@pytest.mark.parametrize("flip", ["cut", "longer", "empty", "key"])
def test_a_damaged_version_that_is_not_visible_may_be_another_one(engine: Engine, flip: str) -> None:
    """A flipped bit in a timestamp may make a version invisible: its key's checksum is wrong then."""
    store = VersionStore(engine)
    fill(engine, store, 3)
    put(engine, store, at(5), k1=b"later")
    turned = lambda value: value[:-8] + bytes([value[-8] ^ 1]) + value[-7:-1] + bytes([value[-1] ^ 1])  # noqa: E731
    damage(engine, 1, FLIPS.get(flip, turned), at(5))
    with pytest.raises(DataLoss, match=r"00001.*@0\.5\.0"):
        store.scan_chunk(START, END, at(2))


@pytest.mark.parametrize("at_byte", range(-12, 0))
def test_whether_a_damaged_versions_key_is_right_is_told_by_its_own_checksum(at_byte: int) -> None:
    engine_key, value = encode_version(key(1), b"a payload", at(1))
    place = at_byte % len(value)
    damaged_value = value[:place] + bytes([value[place] ^ 0x40]) + value[place + 1 :]
    assert is_key_right(engine_key, damaged_value)
    for bit in range(8 * len(engine_key)):
        turned = bytearray(engine_key)
        turned[bit // 8] ^= 1 << bit % 8
        assert not is_key_right(bytes(turned), value)


def test_a_flipped_byte_in_the_file_is_data_loss(tmp_path: Path) -> None:
    engine = open_lmdb(tmp_path / "data")
    store = VersionStore(engine)
    put(engine, store, at(1), k1=b"the needle in the file", k2=b"untouched")
    engine.close()
    data = tmp_path / "data" / "engine" / "data.mdb"
    stored = data.read_bytes()
    assert b"the needle" in stored
    data.write_bytes(stored.replace(b"the needle", b"the noodle"))
    engine = open_lmdb(tmp_path / "data")
    store = VersionStore(engine)
    with pytest.raises(DataLoss, match="00001"):
        store.get(key(1), at(9))
    with pytest.raises(DataLoss, match="00001"):
        store.scan_chunk(START, END, at(9))
    assert store.get(key(2), at(9)) is not None
    engine.close()


@pytest.mark.parametrize("kind", [b"p", b"d"])
@pytest.mark.parametrize("read", ["get", "get_many", "scan"])
def test_a_version_of_a_kind_that_is_not_known_is_refused_by_name(engine: Engine, kind: bytes, read: str) -> None:
    store, ts = VersionStore(engine), at(5)
    with engine.write() as txn:
        txn.put(Space.DATA, *_of_kind(kind, encode_version(key(1), b"", ts)))
    reads: dict[str, Callable[[], object]] = {
        "get": lambda: store.get(key(1), ts),
        "get_many": lambda: store.get_many([key(1)], ts),
        "scan": lambda: store.scan_chunk(START, END, ts),
    }
    with pytest.raises(DataLoss, match=f"is of the kind '{kind.decode()}', which this version does not know"):
        reads[read]()


def _of_kind(kind: bytes, item: tuple[bytes, bytes]) -> tuple[bytes, bytes]:
    engine_key, engine_value = item
    body = engine_key + kind + engine_value[1:-4]
    return engine_key, body[len(engine_key) :] + checksum(body).to_bytes(4, "little")


def test_below_the_safepoint_every_read_is_refused(engine: Engine) -> None:
    store = VersionStore(engine)
    fill(engine, store, 3)
    store.safepoints = Safepoints(at(5))
    for read in (
        lambda: store.get(key(1), at(4)),
        lambda: store.snapshot(at(4)).get(key(1)),
        lambda: store.snapshot(at(4)).get_many([key(1)]),
        lambda: list(store.snapshot(at(4)).scan(START, END)),
        lambda: store.scan_chunk(START, END, at(4)),
        lambda: store.split(START, END, 2, at(4)).step(),
    ):
        with pytest.raises(SnapshotTooOld, match=r"timestamp 0\.4\.0, oldest readable 0\.5\.0"):
            read()
    assert len(store.scan_chunk(START, END, at(5)).keys) == 3


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("updated", [False, True])
def test_rows_whose_keys_end_alike_are_all_there(engine: Engine, updated: bool, reverse: bool) -> None:
    """The same flight on every day: keys are first compared by their last eight bytes, which say nothing here."""
    store = VersionStore(engine)
    parts = (KeyPart("day", KeyType.INT64), KeyPart("flight", KeyType.INT64))
    rows = [row_key(7, parts, [day, 1545]) for day in range(100)]
    with engine.write() as txn:
        store.apply(txn, Mutations(rows, [b"payload"] * 100), at(1))
        if updated:
            store.apply(txn, Mutations(rows[::3], [b"updated"] * 34), at(2))
    chunk = store.scan_chunk(*row_range(7, parts, None, None), at(2), reverse=reverse)
    assert chunk.keys == (rows[::-1] if reverse else rows)
    assert chunk.payloads.count(b"updated") == (34 if updated else 0)


@pytest.mark.parametrize("reverse", [False, True])
def test_a_slice_looks_at_a_bounded_number_of_versions(engine: Engine, reverse: bool) -> None:
    """One hot key with many versions, all too new for the reader or all but one too old, between two others."""
    store = VersionStore(engine)
    fill(engine, store, 3)
    with engine.write() as txn:
        items = [encode_version(key(1), b"%d" % wall_ms, at(wall_ms)) for wall_ms in range(10, 3_010)]
        txn.put_many(Space.DATA, sorted(items))
    for ts, payload in ((at(5), b"payload 1"), (at(1_000), b"1000"), (at(9_999), b"3009")):
        chunks: list[ScanChunk] = []
        start, end = START, END
        while not chunks or chunks[-1].resume is not None:
            chunks.append(store.scan_chunk(start, end, ts, reverse=reverse, max_rows=100))
            resume = chunks[-1].resume
            if resume is not None:
                start, end = (start, resume) if reverse else (resume, end)
        # The rest of the hot key is passed by a seek, not by reading thousands of versions.
        assert len(chunks) <= 3
        rows = [row for chunk in chunks for row in chunk.payloads]
        assert rows == [b"payload 0", payload, b"payload 2"][:: -1 if reverse else 1]


def test_a_slice_is_bounded_in_bytes(engine: Engine) -> None:
    store = VersionStore(engine)
    mutations = Mutations([key(number) for number in range(300)], [b"v" * 100_000] * 300)
    with engine.write() as txn:
        store.apply(txn, mutations, at(1))
    chunk = store.scan_chunk(START, END, at(1), max_bytes=3_000_000)
    assert chunk.resume is not None
    assert 30 <= len(chunk.keys) <= 30 + 128


def test_a_scan_may_be_left_early_and_sees_one_timestamp_throughout(engine: Engine) -> None:
    store = VersionStore(engine)
    fill(engine, store, 5_000)
    scan = store.snapshot(at(2)).scan(START, END)
    first = [next(scan) for _ in range(100)]
    put(engine, store, at(3), k0=None, k200=b"changed", k4999=None)
    rest = list(scan)
    assert [row for row, _ in first + rest] == [key(number) for number in range(5_000)]
    assert rest[100][1].payload == b"payload 200"
    assert next(store.snapshot(at(3)).scan(START, END))[0] == key(1)


def test_a_large_split_is_even(engine: Engine) -> None:
    store = VersionStore(engine)
    fill(engine, store, 20_000)
    counting = store.split(START, END, 7, at(1))
    steps = 1
    while not counting.step(1_000):
        steps += 1
    parts = counting.parts()
    assert steps >= 20
    assert len(parts) == 7
    assert sum(part.rows for part in parts) == 20_000
    assert max(part.rows for part in parts) - min(part.rows for part in parts) <= 20


def test_an_empty_range_is_one_empty_part(engine: Engine) -> None:
    counting = VersionStore(engine).split(START, END, 4, at(1))
    assert counting.step()
    assert [(part.start, part.rows) for part in counting.parts()] == [(START, 0)]


@pytest.mark.parametrize("read", ["get", "get_many", "scan"])
def test_whoever_repairs_hears_of_each_damaged_version_by_its_key(engine: Engine, read: str) -> None:
    store = VersionStore(engine)
    reported: list[Damage] = []
    store.on_damage = reported.append
    fill(engine, store, 5)
    for number in (1, 3):
        damage(engine, number, FLIPS["payload"])
    with pytest.raises(DataLoss):
        match read:
            case "get":
                store.get(key(1), at(9))
            case "get_many":
                store.get_many([key(1), key(2), key(3)], at(9))
            case _:
                store.scan_chunk(START, END, at(9))
    numbers = [1] if read == "get" else [1, 3]
    assert reported == [Damage.at(Space.DATA, key(number) + suffix_of(at(1))) for number in numbers]


@pytest.mark.parametrize("beside", [9, 40, None])
def test_that_nothing_is_between_two_keys_is_said_where_both_of_its_neighbours_are_whole(
    engine: Engine, beside: int | None
) -> None:
    store = VersionStore(engine)
    put(engine, store, at(5), **{f"k{number}": b"payload" for number in (8, 9, 40, 41)})
    if beside is not None:
        damage(engine, beside, FLIPS["payload"], at(5))
    assert store.has_none_between(key(10), key(39), at(9)) == (beside is None)
    assert not store.has_none_between(key(10), key(40), at(9))
    assert not store.has_none_between(key(9), key(39), at(9))
    assert not store.has_none_between(key(9), key(39), at(4)), "what is not visible yet is there"
    assert store.snapshot(at(9)).get_many([key(number) for number in range(10, 40)]) == [None] * 30


def test_where_something_is_suspect_each_key_is_searched_for(engine: Engine) -> None:
    store = VersionStore(engine)
    assert store.has_none_between(key(10), key(39), at(9)), "nothing is stored at all"
    store.distrust(Damage(Space.DATA, key(20), key(21), "k20, which lies elsewhere"))
    assert not store.has_none_between(key(10), key(39), at(9))
    with pytest.raises(DataLoss):
        store.snapshot(at(9)).get_many([key(number) for number in range(10, 40)])
    store.safepoints = Safepoints(at(8))
    with pytest.raises(SnapshotTooOld):
        store.has_none_between(key(10), key(39), at(7))


class _RepairedMeanwhile:
    """An engine with a repair that ends beside each read: the missing version is there, its range trusted again."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.repair: Callable[[], None] = lambda: None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)

    @contextmanager
    def read(self) -> Iterator[ReadTransaction]:
        with self._engine.read() as txn:
            yield txn
        self.repair()

    @property
    def mapped(self) -> LentMap | str:
        lent = copy(self._engine.mapped)
        if not isinstance(lent, str):
            lent.tree = self._tree  # type: ignore[method-assign]
        return lent

    @contextmanager
    def _tree(self, space: Space) -> Iterator[Tree | None]:
        mapped = self._engine.mapped
        assert not isinstance(mapped, str)
        with mapped.tree(space) as tree:
            yield tree
        self.repair()

    def point_reader(self, space: Space) -> Callable[[bytes], tuple[bytes, bytes] | None]:
        seek = self._engine.point_reader(space)

        def read(start: bytes) -> tuple[bytes, bytes] | None:
            found = seek(start)
            self.repair()
            return found

        return read


@pytest.mark.parametrize(
    "read",
    [
        lambda store: store.get(key(1), at(9)),
        lambda store: store.get_many([key(0), key(1)], at(9)),
        lambda store: store.scan_chunk(START, END, at(9)),
        lambda store: store.scan_chunk(START, END, at(9), reverse=True),
    ],
    ids=["get", "multi-get", "scan", "reversed scan"],
)
def test_a_read_that_began_before_a_repair_does_not_miss_what_it_brought(
    engine: Engine, read: Callable[[VersionStore], object]
) -> None:
    beside = _RepairedMeanwhile(engine)
    store = VersionStore(cast(Engine, beside))
    put(engine, store, at(1), k0=b"0", k2=b"2")
    store.distrust(Damage(Space.DATA, key(0) + b"\xff" * 13, key(2), "k1, which lies elsewhere"))
    met: list[Damage] = []
    store.on_damage = met.append

    def repair() -> None:
        put(engine, store, at(1), k1=b"1")
        store.trust(START, END)

    beside.repair = repair
    with pytest.raises(DataLoss):
        read(store)
    assert met == [], "it is repaired already"
    found = store.get(key(1), at(9))
    assert found is not None
    assert found.payload == b"1"


def test_keys_are_asked_for_changes_in_bounded_pieces(engine: Engine) -> None:
    """Their values are read, for the checksums: twenty thousand of a mebibyte must not be in memory together."""
    store = VersionStore(engine)
    for number in range(40):
        put(engine, store, at(1), **{f"k{number}": bytes(100_000)})
    put(engine, store, at(3), k39=None)
    newest, pieces = store.newest_items, []

    def counted(*arguments: Any) -> Any:
        items = newest(*arguments)
        pieces.append(sum(len(item[1]) for item in items if item is not None))
        return items

    store.newest_items = counted  # type: ignore[method-assign]
    keys = [key(number) for number in range(40)]
    assert changed_since(store, keys, (), at(3), at(4)) is None
    assert changed_since(store, keys, (), at(2), at(4)) == (key(39), at(3))
    assert len(pieces) > 6
    assert max(pieces) < 1_300_000
