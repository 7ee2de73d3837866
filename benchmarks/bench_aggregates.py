"""One aggregate read by one stream thread, by two, and from kept columns, in turns: in wall time, and in CPU time of
the process.

Documents of ten fields, in a store of their own, without a node and without gRPC: the steps of an aggregate as a node
runs them, each on the threads that it would have. On a busy machine wall time says little: two threads wait for
processors then, and for each other.

    python -m benchmarks.bench_aggregates [rows]
"""

from __future__ import annotations

import asyncio
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

from rich.console import Console

from benchmarks.bench_grpc import CHUNK_ROWS, SCHEMA, make_chunks
from benchmarks.report import Measurement, show
from cortado.store.aggregate.bind import Aggregate, Kind
from cortado.store.catalog.catalog import Catalog
from cortado.store.catalog.declare import PartDeclaration, create_database, create_table
from cortado.store.catalog.registry import register_schema
from cortado.store.clock.timestamp import Timestamp
from cortado.store.engine.data_directory import Identity
from cortado.store.engine.lmdb_engine import LmdbEngine
from cortado.store.keys.keyspace import row_key
from cortado.store.keys.packing import cut
from cortado.store.mvcc.dividing import divided
from cortado.store.mvcc.evaluation import Evaluation
from cortado.store.mvcc.kept import KeptTable
from cortado.store.mvcc.kernel.seam import compile_ahead, compiled_folder, load
from cortado.store.mvcc.mutations import Mutations
from cortado.store.mvcc.store import VersionStore
from cortado.store.process.scan_threads import ScanThreads
from cortado.store.server.service import SLICE_BYTES_MAX, SLICE_MS_MAX, SLICE_ROWS_MAX
from cortado.store.tables.aggregate import AggregatePlan, AggregateScan, plan_aggregate
from cortado.store.tables.aggregating import Beside, aggregate_step, begin_aggregate
from cortado.store.tables.kept_columns import kept_columns
from cortado.store.tables.rows import encode_payload
from cortado.store.tables.scan import Budget, Scan

TITLE: Final = "Aggregates on several threads, and from kept columns"
ROWS: Final = 2_000_000
DISTINCT_ROWS: Final = 10_000
"""Bodies that are made; then they repeat under other keys."""
ROUNDS: Final = 7
THREADS: Final = (1, 2)
KEPT_BYTES_MAX: Final = 128 << 20
SWITCH_INTERVAL_S: Final = 0.0005
ASKED: Final = {
    "sum of one column": ((), [Aggregate(Kind.SUM, "value")]),
    "count and sum, by one of 977 strings": (("sensor",), [Aggregate(Kind.COUNT), Aggregate(Kind.SUM, "value")]),
}


class Turn(NamedTuple):
    """The seconds that one aggregate took."""

    wall_s: float
    cpu_s: float


def run(rows: int = ROWS) -> list[Measurement]:
    """Measure everything; takes about half a minute."""
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    with tempfile.TemporaryDirectory(prefix="cortado-bench-") as directory:
        engine = LmdbEngine.open(Path(directory) / "engine", new_identity=lambda: Identity("b", "b", "b"), sync=False)
        store = VersionStore(engine)
        read_ts = _load(store, rows)
        store.kernel = load(compiled_folder() or compile_ahead())
        store.kept.room = lambda: KEPT_BYTES_MAX
        catalog, found = Catalog(store.snapshot(read_ts)), list[Measurement]()
        for name, (group_by, aggregates) in ASKED.items():
            asked = AggregateScan(Scan("bench", "readings"), group_by, aggregates)
            turns = asyncio.run(_turns(store, plan_aggregate(catalog, asked, read_ts)))
            for place, what in enumerate(("wall time", "CPU time")):
                one, two, kept = (statistics.median(turn[place] for turn in each) for each in turns)
                found.append(Measurement(f"{name}, {what}", rows / two, "rows", "one thread", rows / one))
                found.append(
                    Measurement(f"the same from kept columns, {what}", rows / kept, "rows", "read", rows / one)
                )
        engine.close()
    return found


def settings(rows: int = ROWS) -> str:
    """Return one line for the table's head: data and method."""
    return f"{rows:,} documents of ten fields; one stream thread beside two and kept columns, medians of {ROUNDS} turns"


def _load(store: VersionStore, rows: int) -> Timestamp:
    """Make the table, and return a timestamp at which all rows are there."""
    ts = Timestamp(0, 1, 0)

    def write(evaluate: Callable[[Catalog], Evaluation]) -> None:
        nonlocal ts
        ts = ts.next()
        mutations = evaluate(Catalog(store.snapshot(ts))).mutations
        with store.engine.write() as transaction:
            store.apply(transaction, mutations, ts)

    write(lambda catalog: create_database(catalog, "bench"))
    write(lambda catalog: register_schema(catalog, "bench.readings", SCHEMA))
    key = [PartDeclaration("id")]
    write(lambda catalog: create_table(catalog, "bench", "readings", key=key, indexes=(), commit_ts=ts))
    catalog = Catalog(store.snapshot(ts))
    table, (schema_id, _) = catalog.table("bench", "readings"), catalog.newest_schema("bench.readings")
    chunks = make_chunks(min(rows, DISTINCT_ROWS))
    payloads: list[bytes | None] = [encode_payload(schema_id, body) for chunk in chunks for body in cut(*chunk)]
    for first in range(0, rows, CHUNK_ROWS):
        numbers = range(first, min(rows, first + CHUNK_ROWS))
        keys = [row_key(table.table_id, table.key, [number]) for number in numbers]
        mutations = Mutations(keys, [payloads[number % len(payloads)] for number in numbers])
        with store.engine.write() as transaction:
            store.apply(transaction, mutations, ts)
    return ts


async def _turns(store: VersionStore, plan: AggregatePlan) -> list[list[Turn]]:
    """Return the turns of one thread, of two, and of one with kept columns."""
    pools = [ScanThreads(None) for _ in THREADS]
    for threads, pool in zip(THREADS, pools, strict=True):
        pool.widen(threads)
    turns: list[list[Turn]] = [[], [], []]
    for number in range(ROUNDS + 2):
        for place, pool in enumerate((*pools, pools[0])):
            kept = kept_columns(store, plan.scan) if place == len(pools) else None
            wall_s, cpu_s = time.perf_counter(), time.process_time()
            await _aggregate(store, plan, pool, kept)
            # The first turns fill caches; the second read since the last write fills the columns.
            if number > 1:
                turns[place].append(Turn(time.perf_counter() - wall_s, time.process_time() - cpu_s))
    for pool in pools:
        pool.stop()
    return turns


async def _aggregate(store: VersionStore, plan: AggregatePlan, threads: ScanThreads, kept: KeptTable | None) -> None:
    state = begin_aggregate(plan, None, _monotonic_ms(), kept)
    beside = Beside(partial(divided, store.engine), threads)
    budget = Budget(SLICE_ROWS_MAX, SLICE_BYTES_MAX, SLICE_MS_MAX, _monotonic_ms)
    page = None
    while page is None or page.next is not None:
        page = await threads.scan_stream(lambda: aggregate_step(store, plan, state, budget, beside)) or page


def _monotonic_ms() -> float:
    return time.monotonic() * 1_000


if __name__ == "__main__":
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else ROWS
    show(TITLE, settings(rows), run(rows), Console())
