"""Slices of scans by the compiled kernel and by Python, and threads of them beside a busy event loop.

Rows of 100 bytes, with one version or with eleven, forwards and backwards, in slices of 2,000: CPU time a row, since a
busy machine blurs everything else. Then 1, 2 and 4 threads scan while an event loop takes turns: how many rows all of
them read a second, and the longest that the loop waited for its turn.

    python -m benchmarks.bench_scans [rows]
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from rich.console import Console

from benchmarks.report import Measurement, machine, show
from cortado.store.clock.timestamp import Timestamp
from cortado.store.engine.data_directory import Identity
from cortado.store.engine.lmdb_engine import LmdbEngine
from cortado.store.keys.keyspace import prefix_range, row_key, row_prefix
from cortado.store.keys.types import KeyPart, KeyType, LogicalKey
from cortado.store.mvcc.kernel.seam import compile_ahead, compiled_folder, load
from cortado.store.mvcc.mutations import Mutations
from cortado.store.mvcc.store import VersionStore

TITLE: Final = "Scan kernel"
ROWS: Final = 200_000
VERSIONED_ROWS: Final = 20_000
VERSIONS: Final = 11
PAYLOAD_BYTES: Final = 100
ROUNDS: Final = 5
THREADS: Final = (1, 2, 4)
THREADED_S: Final = 3.0
LOOP_TURN_S: Final = 0.0005
SWITCH_INTERVAL_S: Final = 0.0005
KEY: Final = (KeyPart("id", KeyType.INT64),)
NEWEST: Final = Timestamp(1, 0, 0)


def run(rows: int = ROWS) -> list[Measurement]:
    """Measure everything; takes about a minute."""
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    with tempfile.TemporaryDirectory(prefix="cortado-bench-") as directory:
        engine = LmdbEngine.open(Path(directory) / "engine", new_identity=lambda: Identity("b", "b", "b"), sync=False)
        _load(engine, 1, rows, 1)
        _load(engine, 2, VERSIONED_ROWS, VERSIONS)
        python, compiled = VersionStore(engine), VersionStore(engine)
        compiled.kernel = load(compiled_folder() or compile_ahead())
        measurements = [
            *_paths(python, compiled, 1, rows, "one version"),
            *_paths(python, compiled, 2, VERSIONED_ROWS, f"{VERSIONS} versions"),
            *_threads(python, compiled),
        ]
        engine.close()
    return measurements


def settings(rows: int = ROWS) -> str:
    """Return one line for the table's head: data and method."""
    return (
        f"{rows:,} rows of {PAYLOAD_BYTES} bytes, {VERSIONED_ROWS:,} of them with {VERSIONS} versions; slices in CPU "
        f"time, the best of {ROUNDS}; threads for {THREADED_S:.0f} s beside a loop that always has a turn to take"
    )


def _load(engine: LmdbEngine, table: int, rows: int, versions: int) -> None:
    store = VersionStore(engine)
    for version in range(1, versions + 1):
        for start in range(0, rows, 10_000):
            keys = [row_key(table, KEY, [row]) for row in range(start, min(start + 10_000, rows))]
            payloads: list[bytes | None] = [b"\0\0\0\1" + b"x" * (PAYLOAD_BYTES - 4)] * len(keys)
            with engine.write() as txn:
                store.apply(txn, Mutations(keys, payloads), Timestamp(0, version, 0))


def _scan(store: VersionStore, table: int, *, reverse: bool = False) -> int:
    """Scan all rows; return how many."""
    start, end = prefix_range(row_prefix(table))
    rows = 0
    resume: LogicalKey | None = start
    while resume is not None:
        chunk = store.scan_chunk(start, end, NEWEST, reverse=reverse)
        rows += len(chunk.payloads)
        resume = chunk.resume
        if resume is not None:
            start, end = (start, resume) if reverse else (resume, end)
    return rows


def _paths(python: VersionStore, compiled: VersionStore, table: int, rows: int, what: str) -> list[Measurement]:
    """Return rows a second of CPU; Python's are the base."""
    found = []
    for reverse in (False, True):
        best = [float("inf")] * 2
        for _ in range(ROUNDS):
            for place, store in enumerate((python, compiled)):
                began = time.process_time()
                assert _scan(store, table, reverse=reverse) == rows
                best[place] = min(best[place], time.process_time() - began)
        way = "backwards" if reverse else "forwards"
        found.append(Measurement(f"slices {way}, {what}", rows / best[1], "rows", "Python's path", rows / best[0]))
    return found


def _threads(python: VersionStore, compiled: VersionStore) -> list[Measurement]:
    found = []
    for threads in THREADS:
        slow, slow_gap_ms, slow_turns = _beside_a_loop(python, threads)
        fast, fast_gap_ms, fast_turns = _beside_a_loop(compiled, threads)
        found += [
            Measurement(f"{threads} threads beside a loop", fast, "rows", "Python's path", slow),
            Measurement(f"the loop's turns beside {threads} threads", fast_turns, "turns", "Python's path", slow_turns),
            Measurement(f"the loop's worst gap beside {threads} threads", fast_gap_ms, "ms", "Python's", slow_gap_ms),
        ]
    return found


def _beside_a_loop(store: VersionStore, threads: int) -> tuple[float, float, float]:
    """Return rows a second of all threads; the loop's worst gap in ms, and its turns a second."""
    stop, read = threading.Event(), [0] * threads

    def scan_on(place: int) -> None:
        while not stop.is_set():
            read[place] += _scan(store, 1)

    async def take_turns() -> tuple[float, int]:
        worst, turns, until = 0.0, 0, time.perf_counter() + THREADED_S
        while (began := time.perf_counter()) < until:
            _work(LOOP_TURN_S / 2)
            await asyncio.sleep(0)
            worst = max(worst, time.perf_counter() - began)
            turns += 1
        return worst, turns

    workers = [threading.Thread(target=scan_on, args=(place,)) for place in range(threads)]
    for worker in workers:
        worker.start()
    worst, turns = asyncio.run(take_turns())
    stop.set()
    for worker in workers:
        worker.join()
    return sum(read) / THREADED_S, 1_000 * worst, turns / THREADED_S


def _work(for_s: float, clock: Callable[[], float] = time.thread_time) -> None:
    """Keep the interpreter busy for ``for_s`` of this thread's CPU time."""
    until = clock() + for_s
    while clock() < until:
        pass


if __name__ == "__main__":
    count = int(sys.argv[1]) if len(sys.argv) > 1 else ROWS
    console = Console()
    console.print(machine())
    show(TITLE, settings(count), run(count), console)
