"""The cost of a table: bulk load into an index, scans past old versions and with a filter that few rows pass,
aggregates, a table check, calls one after another.

Beside each stands the cost of the layers under it, measured in the same run. For the load it is bare py-lmdb, which
puts as many rows, and as many index entries of the same order, in synced transactions of sixteen chunks. The two take
turns, each round into tables of its own. For scan and check it is a bare cursor over those items. For rows with ten old
versions, before any collection, it is a scan of rows with one version, in turns. For a caller that waits for each call
it is gRPC's own round trip (with the same client, to a server that stores nothing) and then, for a put, py-lmdb's put
and synced commit.

Aggregates, and a scan of all rows beside them, are measured in CPU time of the node's process.

    python -m benchmarks.bench_tables [rows]
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import grpc
import lmdb
from rich.console import Console

from benchmarks.bench_grpc import (
    CHUNK_ROWS,
    TABLE,
    bulk_load,
    create_database,
    create_table,
    make_chunks,
    running,
    scan,
)
from benchmarks.report import Measurement, show
from cortado.proto.v1 import (
    documents_pb2,
    documents_pb2_grpc,
    kv_pb2,
    kv_pb2_grpc,
    statistics_pb2,
    statistics_pb2_grpc,
    tables_pb2,
    tables_pb2_grpc,
)
from cortado.store.keys.keyspace import index_key, row_key
from cortado.store.keys.types import KeyPart, KeyType

TITLE: Final = "Tables over gRPC"
ROWS: Final = 200_000
SENSORS: Final = 977
CALLS: Final = 500
TURN_ROWS: Final = 16 * CHUNK_ROWS
FILTER: Final = "sensor = 'sensor-7' and count > 90"
ROUNDS: Final = 3
"""Rounds of loads, whose median counts; rounds of reads, whose best counts."""
SETTLE_S: Final = 1.0
LOAD_AIM: Final = 300_000
CPU_METRIC: Final = "cortado_process_cpu_seconds_total"
CPU_ROUNDS: Final = 5
"""The best round counts."""
COUNT_AND_SUM: Final = ((documents_pb2.AGGREGATE_KIND_COUNT, ""), (documents_pb2.AGGREGATE_KIND_SUM, "value"))
OLD_VERSIONS: Final = 10
OLD_VERSIONS_AIM: Final = 0.5
VERSIONED_ROWS: Final = 20_000
VERSIONED_ROUNDS: Final = 15
"""The best round counts: one takes some hundredths of a second."""


def run(rows: int = ROWS) -> list[Measurement]:
    """Measure everything; takes about half a minute."""
    chunks = list(make_chunks(rows))
    with (
        tempfile.TemporaryDirectory(prefix="cortado-bench-") as name,
        lmdb.open(f"{name}/bare", map_size=64 << 30, max_dbs=1 + ROUNDS) as environment,
        running("raw") as raw,
        running("cortado", f"{name}/node") as channel,
    ):
        create_database(channel)
        bare_load, loaded = _loads(environment, channel, chunks, rows)
        bare_scan = _bare_scan(environment, rows)
        once, overwritten = _versions(channel)
        filtered = max(_filtered(channel, rows) for _ in range(ROUNDS))
        of_cpu = _aggregates(channel, rows)
        checked = max(_checked(channel, rows) for _ in range(ROUNDS))
        calls = _medians(
            lambda i: _get(raw, i),
            lambda i: _bare_put(environment, i),
            lambda i: _put(channel, i),
            lambda i: _get(channel, i),
        )
    raw_s, bare_put_s, put_s, get_s = calls
    trip, both = "gRPC's round trip", "gRPC's round trip, and a put"
    items, past = "py-lmdb, rows and entries", f"scan of rows with {OLD_VERSIONS} old versions"
    return [
        Measurement("bulk load with an index, synced", loaded, "rows", items, bare_load, LOAD_AIM),
        Measurement(past, overwritten, "rows", "scan of rows with one version", once, OLD_VERSIONS_AIM),
        Measurement("scan with a filter, 1 row in 10,000", filtered, "rows", "a bare cursor", bare_scan),
        *of_cpu,
        Measurement("table check, one index", checked, "rows", "a bare cursor, rows and entries", bare_scan / 2),
        Measurement("one caller's gets", 1 / get_s, "calls", trip, 1 / raw_s),
        Measurement("one caller's puts, synced", 1 / put_s, "calls", both, 1 / (raw_s + bare_put_s)),
    ]


def settings(rows: int = ROWS) -> str:
    """Return one line for the table's head: data and method."""
    return (
        f"{rows:,} documents of 10 fields, an index on (sensor, at) in another order than the key, chunks of "
        f"{CHUNK_ROWS:,} rows; loads the median of {ROUNDS}, reads the best of {ROUNDS}, calls the median of {CALLS}; "
        f"{VERSIONED_ROWS:,} rows with old versions, the best of {VERSIONED_ROUNDS} scans; loopback"
    )


# --- a server ------------------------------------------------------------------------------------------------------


def _loads(
    environment: lmdb.Environment, channel: grpc.Channel, chunks: Sequence[tuple[bytes, bytes]], rows: int
) -> tuple[float, float]:
    """Return rows a second into py-lmdb and into a table with an index, in turns. The last table is TABLE."""
    index = tables_pb2.Index(name="by_sensor", parts=[tables_pb2.KeyPart(path=path) for path in ("sensor", "at")])
    bare, ours = [], []
    for turn in reversed(range(ROUNDS)):
        # Background work that the last load left is not this load's.
        time.sleep(SETTLE_S)
        name = f"{TABLE.table}{turn or ''}"
        table = documents_pb2.TableName(database=TABLE.database, table=name)
        bare.append(_bare_load(environment, name, rows))
        ours.append(bulk_load(channel, create_table(channel, table, [index]), chunks, rows, table))
    return statistics.median(bare), statistics.median(ours)


def _versions(channel: grpc.Channel) -> tuple[float, float]:
    """Return rows a second of scans over rows with one version, and with old ones before it, in turns."""
    rows, best = VERSIONED_ROWS, [0.0, 0.0]
    tables = [documents_pb2.TableName(database=TABLE.database, table=name) for name in ("once", "overwritten")]
    for table, versions in zip(tables, (1, 1 + OLD_VERSIONS), strict=True):
        schema_id = create_table(channel, table)
        for version in range(versions):
            bulk_load(channel, schema_id, list(make_chunks(rows, version)), rows, table)
    for _ in range(VERSIONED_ROUNDS):
        best = [max(rate, scan(channel, rows, table)) for rate, table in zip(best, tables, strict=True)]
    return best[0], best[1]


def _filtered(channel: grpc.Channel, rows: int) -> float:
    """Return rows looked at a second."""
    began = time.perf_counter()
    request = documents_pb2.ScanRequest(table=TABLE, filter=FILTER)
    replies = documents_pb2_grpc.DocumentsStub(channel).Scan(request)
    found = sum(len(batch.lengths) // 4 for reply in replies for batch in reply.batches)
    assert found == sum(i % 100 > 90 for i in range(7, rows, SENSORS)), f"{found} rows were found"
    return rows / (time.perf_counter() - began)


def _aggregates(channel: grpc.Channel, rows: int) -> list[Measurement]:
    """Return rows looked at in a second of the node's CPU, below each a scan that sends all rows; in turns."""
    count, total = (documents_pb2.Aggregate(kind=kind, field=field) for kind, field in COUNT_AND_SUM)
    asked = {
        "sum of one column": {"aggregates": [total]},
        "sum of one column, by sensor": {"aggregates": [count, total], "group_by": ["sensor"]},
        "sum of one column, 1 row in 100": {"aggregates": [total], "filter": "count = 7"},
    }
    scan_s, spent_s = float("inf"), dict.fromkeys(asked, float("inf"))
    for _ in range(CPU_ROUNDS):
        began_s = _cpu_s(channel)
        scan(channel, rows)
        scan_s = min(scan_s, _cpu_s(channel) - began_s)
        for name, what in asked.items():
            began_s = _cpu_s(channel)
            replies = list(documents_pb2_grpc.DocumentsStub(channel).Aggregate(_aggregate(what)))
            spent_s[name] = min(spent_s[name], _cpu_s(channel) - began_s)
            assert any(reply.groups.lengths for reply in replies)
    below = "a scan of all rows"
    return [
        Measurement(f"{name}, of a CPU", rows / each_s, "rows", below, rows / scan_s)
        for name, each_s in spent_s.items()
    ]


def _aggregate(what: dict[str, Any]) -> documents_pb2.AggregateRequest:
    return documents_pb2.AggregateRequest(table=TABLE, **what)


def _cpu_s(channel: grpc.Channel) -> float:
    """Return the node's CPU seconds since it was started."""
    request = statistics_pb2.ReadStatisticsRequest(names=[CPU_METRIC])
    found = statistics_pb2_grpc.StatisticsStub(channel).ReadStatistics(request)
    seconds: float = found.metrics[0].samples[0].value
    return seconds


def _checked(channel: grpc.Channel, rows: int) -> float:
    began = time.perf_counter()
    request = tables_pb2.CheckTableRequest(database=TABLE.database, name=TABLE.table)
    replies = list(tables_pb2_grpc.TablesStub(channel).CheckTable(request))
    assert (replies[-1].rows_checked, replies[-1].entries_checked) == (rows, rows)
    assert not any(reply.problems for reply in replies)
    return rows / (time.perf_counter() - began)


def _get(channel: grpc.Channel, i: int) -> None:
    kv_pb2_grpc.KeyValueStub(channel).Get(kv_pb2.KvGetRequest(namespace="bench", key=b"%08d" % i))


def _put(channel: grpc.Channel, i: int) -> None:
    kv_pb2_grpc.KeyValueStub(channel).Put(kv_pb2.KvPutRequest(namespace="bench", key=b"%08d" % i, value=b"v" * 100))


def _medians(*measured: Callable[[int], None]) -> list[float]:
    """Return seconds of each's median call; they alternate call by call, so that a busy machine meets them alike."""
    spent: list[list[float]] = [[] for _ in measured]
    for place in range(CALLS):
        for times, call in zip(spent, measured, strict=True):
            began = time.perf_counter()
            call(place)
            times.append(time.perf_counter() - began)
    return [statistics.median(times) for times in spent]


# --- the limits below ----------------------------------------------------------------------------------------------


def _bare_load(environment: lmdb.Environment, name: str, rows: int) -> float:
    """Return rows a second, each with its entry, into a database of that name."""
    spent_s, database = 0.0, environment.open_db(name.encode())
    for batch in _batches(rows):
        began = time.perf_counter()
        with environment.begin(write=True, db=database) as txn:
            txn.cursor().putmulti(batch)
        spent_s += time.perf_counter() - began
    return rows / spent_s


def _bare_scan(environment: lmdb.Environment, rows: int) -> float:
    """Return items a second."""
    best_s, database = float("inf"), environment.open_db(TABLE.table.encode())
    for _ in range(ROUNDS):
        began = time.perf_counter()
        with environment.begin(db=database) as txn:
            deque(txn.cursor().iternext(), maxlen=0)
        best_s = min(best_s, time.perf_counter() - began)
    return 2 * rows / best_s


def _bare_put(environment: lmdb.Environment, i: int) -> None:
    with environment.begin(write=True, db=environment.open_db(TABLE.table.encode())) as txn:
        txn.put(b"k%08d" % i, b"v" * 105)


def _batches(rows: int) -> Iterator[list[tuple[bytes, bytes]]]:
    """Yield engine keys and values as the server makes them, sorted within each batch."""
    id_part, at_part = KeyPart("id", KeyType.INT64), KeyPart("at", KeyType.TIMESTAMP)
    sensor_part = KeyPart("sensor", KeyType.STRING)
    suffix, row_value, entry_value = b"\xff" * 12, b"v" * 80, b"P" + b"crc-"
    for start in range(0, rows, TURN_ROWS):
        items = []
        for i in range(start, min(start + TURN_ROWS, rows)):
            key = row_key(1, [id_part], [i])
            entry = index_key(1, 1, [sensor_part, at_part], [f"sensor-{i % SENSORS}", i], key[6:], unique=False)
            items += [(key + suffix, row_value), (entry + suffix, entry_value)]
        yield sorted(items)


if __name__ == "__main__":
    _rows = int(sys.argv[1]) if len(sys.argv) > 1 else ROWS
    show(TITLE, settings(_rows), run(_rows), Console())
