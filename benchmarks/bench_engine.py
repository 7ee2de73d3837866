"""Inside the engine: points, durable puts and scans of versions, each beside bare py-lmdb with the same bytes.

The bare environment holds the same items and has the same settings for durability (two flushes a commit). The two take
turns: reads round by round, and the best round counts; single puts one by one, and the median counts. Bare py-lmdb gets
and iterates engine keys; the engine finds the version by timestamp, checks its checksum, and hands logical rows out.

Reads, which wait for nothing here (the data is in memory), are measured in the process's CPU time, so that a busy
machine doesn't blur the comparison; writes, which wait for the disk, in elapsed time.

    python -m benchmarks.bench_engine [rows]
"""

from __future__ import annotations

import os
import random
import statistics
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import lmdb
from rich.console import Console

from benchmarks.report import Measurement, machine, show
from cortado.store.clock.timestamp import Timestamp
from cortado.store.engine.data_directory import Identity
from cortado.store.engine.interface import Space
from cortado.store.engine.lmdb_engine import LmdbEngine
from cortado.store.keys.keyspace import prefix_range, row_key, row_prefix
from cortado.store.keys.types import KeyPart, KeyType, LogicalKey
from cortado.store.mvcc.mutations import Mutations
from cortado.store.mvcc.store import VersionStore

TITLE: Final = "Engine and versions"
ROWS: Final = 300_000
PAYLOAD_BYTES: Final = 100
BATCH_ROWS: Final = 1_000
OLD_VERSIONS: Final = 10
VERSIONED_ROWS: Final = 30_000
ROUNDS: Final = 7
GETS: Final = 20_000
PUTS: Final = 1_000
KEY: Final = (
    KeyPart("time", KeyType.TIMESTAMP),
    KeyPart("carrier", KeyType.STRING),
    KeyPart("flight", KeyType.INT64),
)


@dataclass(frozen=True, slots=True)
class Stores:
    """The engine under test and the bare environment with the same items."""

    engine: LmdbEngine
    versions: VersionStore
    environment: lmdb.Environment
    database: lmdb._Database
    keys: list[LogicalKey]
    newest: Timestamp


def run(rows: int = ROWS) -> list[Measurement]:
    """Measure everything; takes about half a minute, and a few hundred megabytes in the temporary directory."""
    with tempfile.TemporaryDirectory(prefix="cortado-bench-") as directory:
        path = Path(directory)
        engine = LmdbEngine.open(path / "engine", new_identity=lambda: Identity("bench", "bench", "bench"))
        (path / "bare").mkdir()
        with lmdb.open(str(path / "bare"), map_size=64 << 30, max_dbs=8, max_spare_txns=4) as environment:
            keys = _keys(rows)
            loads = _load(engine, environment, keys)
            database = environment.open_db(b"data")
            newest = Timestamp(0, rows, 0)
            stores = Stores(engine, VersionStore(engine), environment, database, keys, newest)
            # Scans first: the puts of single rows leave second versions behind.
            scans = _scans(stores)
            measurements = [*_points(stores), *loads, *scans, *_updated(stores), _overwritten(stores)]
        engine.close()
    return measurements


def settings(rows: int = ROWS) -> str:
    """Return one line for the table's head: data and method."""
    return (
        f"{rows:,} rows of {PAYLOAD_BYTES} bytes, three-part keys, each commit synced; reads in CPU time, puts "
        f"elapsed; {VERSIONED_ROWS:,} rows with old versions, and as many without"
    )


def _keys(rows: int, table: int = 1) -> list[LogicalKey]:
    carriers = ("AA", "B6", "DL", "EV", "UA", "WN")
    return [row_key(table, KEY, [i // 60 * 60_000_000, carriers[i // 10 % 6], 100 + i % 10]) for i in range(rows)]


def _best(*measured: Callable[[], object]) -> list[float]:
    """Return the CPU seconds of the best round of each; they take turns."""
    best = [float("inf")] * len(measured)
    for _ in range(ROUNDS):
        for place, call in enumerate(measured):
            began = time.process_time()
            call()
            best[place] = min(best[place], time.process_time() - began)
    return best


def _medians(calls: int, *measured: Callable[[int], object]) -> list[float]:
    """Return the seconds of each's median call; they alternate call by call, so that a busy disk meets them alike."""
    spent: list[list[float]] = [[] for _ in measured]
    for place in range(calls):
        for times, call in zip(spent, measured, strict=True):
            began = time.perf_counter()
            call(place)
            times.append(time.perf_counter() - began)
    return [statistics.median(times) for times in spent]


def _load(engine: LmdbEngine, environment: lmdb.Environment, keys: list[LogicalKey]) -> list[Measurement]:
    """Fill both in synced batches, taking turns."""
    versions, database = VersionStore(engine), environment.open_db(b"data")
    _, end = prefix_range(row_prefix(1))
    spent_s, spent_bare_s = 0.0, 0.0
    for start in range(0, len(keys), BATCH_ROWS):
        batch = Mutations(keys[start : start + BATCH_ROWS], [os.urandom(PAYLOAD_BYTES) for _ in range(BATCH_ROWS)])
        ts = Timestamp(0, start + 1, 0)
        began = time.perf_counter()
        with engine.write() as txn:
            versions.apply(txn, batch, ts)
        spent_s += time.perf_counter() - began
        with engine.read() as txn:
            page = txn.page(Space.DATA, batch.keys[0], end, max_items=BATCH_ROWS, max_bytes=1 << 30)
        items = list(zip(page.keys, page.values, strict=True))
        began = time.perf_counter()
        with environment.begin(write=True, db=database) as bare:
            bare.cursor().putmulti(items)
        spent_bare_s += time.perf_counter() - began
    name, below = f"load, {BATCH_ROWS:,} a commit", "putmulti of the same items"
    return [Measurement(name, len(keys) / spent_s, "rows", below, len(keys) / spent_bare_s)]


def _points(stores: Stores) -> list[Measurement]:
    asked = random.Random(7).choices(stores.keys, k=GETS)
    snapshot = stores.versions.snapshot(stores.newest)
    with stores.engine.read() as txn:
        engine_keys = [item[0] for item in txn.seek_many(Space.DATA, asked) if item is not None]
    environment, database = stores.environment, stores.database

    def get() -> None:
        for key in asked:
            snapshot.get(key)

    def get_bare() -> None:
        for engine_key in engine_keys:
            with environment.begin(db=database) as txn:
                txn.get(engine_key)

    def put(place: int) -> None:
        with stores.engine.write() as txn:
            stores.versions.apply(txn, Mutations([asked[place]], [b"p" * PAYLOAD_BYTES]), stores.newest)

    def put_bare(place: int) -> None:
        with environment.begin(write=True, db=database) as txn:
            txn.put(engine_keys[place], b"p" * (PAYLOAD_BYTES + 5))

    def get_many() -> None:
        for start in range(0, GETS, BATCH_ROWS):
            snapshot.get_many(asked[start : start + BATCH_ROWS])

    get_s, get_bare_s, get_many_s = _best(get, get_bare, get_many)
    put_s, put_bare_s = _medians(PUTS, put, put_bare)
    return [
        Measurement("point get", GETS / get_s, "gets", "get in a transaction", GETS / get_bare_s, 0.5),
        Measurement("get of many", GETS / get_many_s, "gets", "get in a transaction", GETS / get_bare_s),
        Measurement("durable put of one", 1 / put_s, "puts", "put and synced commit", 1 / put_bare_s, 0.5),
    ]


def _scans(stores: Stores) -> list[Measurement]:
    rows, below = len(stores.keys), "cursor over the same items"
    payloads_s, all_s, reverse_s, split_s, bare_s = _best(
        lambda: _scan(stores, stores.newest),
        lambda: _scan(stores, stores.newest, whole=True),
        lambda: _scan(stores, stores.newest, reverse=True),
        lambda: _split(stores),
        lambda: _iterate(stores),
    )
    bare = rows / bare_s
    return [
        Measurement("scan, payloads", rows / payloads_s, "rows", below, bare, 1 / 3),
        Measurement("scan, keys, times and payloads", rows / all_s, "rows", below, bare, 1 / 3),
        Measurement("scan backwards, payloads", rows / reverse_s, "rows", below, bare, 1 / 3),
        Measurement("count for a split", rows / split_s, "rows", below, bare),
    ]


def _updated(stores: Stores) -> list[Measurement]:
    """Measure scans once every third row has a second version, and every thirtieth is deleted."""
    changed = stores.keys[::3]
    newer = Timestamp(0, stores.newest.wall_ms + 1_000, 0)
    payloads = [None if place % 10 == 0 else b"n" * PAYLOAD_BYTES for place in range(len(changed))]
    with stores.engine.write() as txn:
        stores.versions.apply(txn, Mutations(changed, payloads), newer)
    rows = len(stores.keys) - len(payloads[::10])
    now_s, before_s, bare_s = _best(
        lambda: _scan(stores, newer),
        lambda: _scan(stores, stores.newest),
        lambda: _iterate(stores),
    )
    bare, below = len(stores.keys) / bare_s, "cursor, one version a row"
    return [
        Measurement("scan with old versions and deletes", rows / now_s, "rows", below, bare),
        Measurement("the same, as of before", len(stores.keys) / before_s, "rows", below, bare),
    ]


def _overwritten(stores: Stores) -> Measurement:
    """Compare rows that were overwritten ten times with rows that were written once; nothing was collected."""
    once, overwritten = _keys(VERSIONED_ROWS, 2), _keys(VERSIONED_ROWS, 3)
    ts = stores.newest
    for number, keys in enumerate((once, *(overwritten,) * (1 + OLD_VERSIONS))):
        ts = Timestamp(0, stores.newest.wall_ms + 2_000 + number, 0)
        for start in range(0, VERSIONED_ROWS, BATCH_ROWS):
            batch = keys[start : start + BATCH_ROWS]
            with stores.engine.write() as txn:
                stores.versions.apply(txn, Mutations(batch, [os.urandom(PAYLOAD_BYTES) for _ in batch]), ts)
    once_s, overwritten_s = _best(
        lambda: _scan(stores, ts, table=2),
        lambda: _scan(stores, ts, table=3),
    )
    rate, below = VERSIONED_ROWS / overwritten_s, VERSIONED_ROWS / once_s
    name = f"scan of rows with {OLD_VERSIONS} old versions"
    return Measurement(name, rate, "rows", "scan of rows with one version", below, 0.5)


def _scan(stores: Stores, ts: Timestamp, *, reverse: bool = False, whole: bool = False, table: int = 1) -> int:
    start, end = prefix_range(row_prefix(table))
    rows = 0
    while True:
        chunk = stores.versions.scan_chunk(start, end, ts, reverse=reverse)
        rows += len(chunk.payloads)
        if whole:
            assert len(chunk.keys) == len(chunk.suffixes)
        if chunk.resume is None:
            return rows
        start, end = (start, chunk.resume) if reverse else (chunk.resume, end)


def _split(stores: Stores) -> None:
    start, end = prefix_range(row_prefix(1))
    counting = stores.versions.split(start, end, 4, stores.newest)
    while not counting.step():
        pass
    counting.parts()


def _iterate(stores: Stores) -> None:
    with stores.environment.begin(db=stores.database) as txn:
        deque(txn.cursor().iternext(), maxlen=0)


if __name__ == "__main__":
    _rows = int(sys.argv[1]) if len(sys.argv) > 1 else ROWS
    _console = Console()
    _console.print(machine())
    show(TITLE, settings(_rows), run(_rows), _console)
