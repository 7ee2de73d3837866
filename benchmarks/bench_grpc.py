"""Over gRPC, on loopback, client and server each a process: bulk load and scan of 10-field documents, unary calls.

The limit below is gRPC itself, under the same client code, in the same run: a server of the same methods that stores
nothing (it counts the rows of a chunk, or sends one ready-made reply again and again). Bulk loads are durable: each
chunk is acknowledged after it was synced.

Then the Python client, with threads that each put and get one key at a time. The rate of separate calls is the limit
below calls that share messages on the coalescing stream. Puts are synced. Each is measured twice, one after the other,
and the better counts, since a machine of two cores is never quiet.

    python -m benchmarks.bench_grpc [rows]
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import Final

import fastavro
import grpc
from rich.console import Console

from benchmarks.report import Measurement, show
from cortado.proto.v1 import (
    common_pb2,
    documents_pb2,
    documents_pb2_grpc,
    kv_pb2,
    kv_pb2_grpc,
    schemas_pb2,
    schemas_pb2_grpc,
    tables_pb2,
    tables_pb2_grpc,
)
from cortado.store.client import Client, KeyValue
from cortado.store.server.config import MESSAGE_BYTES_MAX, ServerConfig

TITLE: Final = "gRPC"
ROWS: Final = 200_000
CHUNK_ROWS: Final = 1_000
CHUNKS_AHEAD: Final = 4
UNARY_CALLS: Final = 3_000
UNARY_CALLERS: Final = 32
SCANS: Final = 5
"""The best scan counts: one takes a tenth of a second."""
THREADS: Final = (1, 16, 64, 256)
CALLERS_S: Final = 1.0
WARM_S: Final = 0.2
KEYS: Final = 10_000
PUTS_AIM: Final = 10_000
GETS_AIM: Final = 12_000
"""Gets a second, of 64 threads of one client process, with client and server on two cores."""

SCHEMA: Final = """{"type": "record", "name": "Reading", "fields": [
    {"name": "id", "type": "long"}, {"name": "sensor", "type": "string"},
    {"name": "at", "type": {"type": "long", "logicalType": "timestamp-micros"}},
    {"name": "value", "type": "double"}, {"name": "low", "type": ["null", "double"]},
    {"name": "high", "type": ["null", "double"]}, {"name": "count", "type": "int"},
    {"name": "unit", "type": "string"}, {"name": "ok", "type": "boolean"}, {"name": "note", "type": ["null", "string"]}
]}"""
TABLE: Final = documents_pb2.TableName(database="bench", table="readings")
OPTIONS: Final = [
    ("grpc.max_receive_message_length", MESSAGE_BYTES_MAX),
    ("grpc.max_send_message_length", MESSAGE_BYTES_MAX),
]


def run(rows: int = ROWS) -> list[Measurement]:
    """Measure everything; takes about a minute on two cores."""
    chunks = list(make_chunks(rows))
    with running("raw") as channel:
        raw = {
            "load": bulk_load(channel, 0, chunks, rows),
            "scan": max(scan(channel, rows) for _ in range(SCANS)),
            "unary": _unary(channel, writes=False),
        }
    with tempfile.TemporaryDirectory() as directory, running("cortado", directory) as channel:
        create_database(channel)
        loaded = bulk_load(channel, create_table(channel), chunks, rows)
        scanned = max(scan(channel, rows) for _ in range(SCANS))
        gets, puts = _unary(channel, writes=False), _unary(channel, writes=True)
    with tempfile.TemporaryDirectory() as directory, serving("cortado", directory) as address:
        through_client = [_callers(address, threads, writes) for writes in (True, False) for threads in THREADS]
    return [
        Measurement("bulk load, synced", loaded, "rows", "gRPC alone", raw["load"], 200_000),
        Measurement("streamed scan", scanned, "rows", "gRPC alone", raw["scan"], 1_500_000),
        Measurement(f"unary get, {UNARY_CALLERS} callers", gets, "calls", "gRPC alone", raw["unary"]),
        Measurement(f"unary put, synced, {UNARY_CALLERS} callers", puts, "calls", "gRPC alone", raw["unary"]),
        *through_client,
    ]


def settings(rows: int = ROWS) -> str:
    """Return one line for the table's head: data and method."""
    return (
        f"{rows:,} documents of 10 fields, chunks of {CHUNK_ROWS:,} rows, one connection, loopback; "
        f"scans the best of {SCANS}"
    )


# --- the client ----------------------------------------------------------------------------------------------------


def make_chunks(rows: int, version: int = 0) -> Iterator[tuple[bytes, bytes]]:
    """Yield bodies and lengths of documents with the same keys in every version, and another value in each."""
    schema = fastavro.parse_schema(json.loads(SCHEMA))
    for start in range(0, rows, CHUNK_ROWS):
        buffer, lengths = BytesIO(), bytearray()
        for i in range(start, min(start + CHUNK_ROWS, rows)):
            before = buffer.tell()
            fastavro.schemaless_writer(buffer, schema, _document(i, version))
            lengths += (buffer.tell() - before).to_bytes(4, "little")
        yield buffer.getvalue(), bytes(lengths)


def _document(i: int, version: int) -> dict[str, object]:
    return {
        "id": i,
        "sensor": f"sensor-{i % 977}",
        "at": 1_763_643_600_000_000 + i * 1_000,
        "value": i / 7 + version,
        "low": None if i % 3 == 0 else i / 11,
        "high": i / 5,
        "count": i % 100,
        "unit": "celsius",
        "ok": i % 2 == 0,
        "note": None if i % 4 else f"note {i}",
    }


def create_database(channel: grpc.Channel) -> None:
    tables_pb2_grpc.TablesStub(channel).CreateDatabase(tables_pb2.CreateDatabaseRequest(database=TABLE.database))


def create_table(
    channel: grpc.Channel, table: documents_pb2.TableName = TABLE, indexes: Sequence[tables_pb2.Index] = ()
) -> int:
    """Create the table and return the schema's id. Its database exists."""
    tables, schemas = tables_pb2_grpc.TablesStub(channel), schemas_pb2_grpc.SchemasStub(channel)
    subject = f"{table.database}.{table.table}"
    registered = schemas.Register(schemas_pb2.RegisterSchemaRequest(subject=subject, schema=SCHEMA))
    key = [tables_pb2.KeyPart(path="id")]
    tables.CreateTable(
        tables_pb2.CreateTableRequest(database=table.database, name=table.table, key=key, indexes=indexes)
    )
    return int(registered.version.schema_id)


def bulk_load(
    channel: grpc.Channel,
    schema_id: int,
    chunks: Sequence[tuple[bytes, bytes]],
    rows: int,
    table: documents_pb2.TableName = TABLE,
) -> float:
    """Return rows a second, the last one acknowledged."""

    def requests() -> Iterator[documents_pb2.BulkRequest]:
        yield documents_pb2.BulkRequest(start=documents_pb2.BulkStart(table=table))
        for sequence, (bodies, lengths) in enumerate(chunks):
            batch = common_pb2.RowBatch(schema_id=schema_id, bodies=bodies, lengths=lengths)
            yield documents_pb2.BulkRequest(chunk=documents_pb2.BulkChunk(sequence=sequence, rows=batch))

    began = time.perf_counter()
    written = sum(reply.written for reply in documents_pb2_grpc.DocumentsStub(channel).Bulk(requests()))
    assert written == rows, f"{written} of {rows} rows were written"
    return rows / (time.perf_counter() - began)


def scan(channel: grpc.Channel, rows: int, table: documents_pb2.TableName = TABLE) -> float:
    """Return rows a second, the lengths looked at."""
    began = time.perf_counter()
    read = 0
    request = documents_pb2.ScanRequest(table=table, limit=rows)
    for reply in documents_pb2_grpc.DocumentsStub(channel).Scan(request):
        read += sum(len(batch.lengths) // 4 for batch in reply.batches)
    assert read == rows, f"{read} of {rows} rows were read"
    return rows / (time.perf_counter() - began)


def _unary(channel: grpc.Channel, *, writes: bool) -> float:
    """Return calls a second, with a bounded number in flight."""
    stub = kv_pb2_grpc.KeyValueStub(channel)

    def call(i: int) -> grpc.Future:
        if writes:
            return stub.Put.future(kv_pb2.KvPutRequest(namespace="bench", key=b"%08d" % i, value=b"v" * 100))
        return stub.Get.future(kv_pb2.KvGetRequest(namespace="bench", key=b"%08d" % i))

    began = time.perf_counter()
    in_flight = [call(i) for i in range(UNARY_CALLERS)]
    for i in range(UNARY_CALLERS, UNARY_CALLS):
        in_flight.pop(0).result()
        in_flight.append(call(i))
    for each in in_flight:
        each.result()
    return UNARY_CALLS / (time.perf_counter() - began)


def _callers(address: str, threads: int, writes: bool) -> Measurement:
    """Measure the client's threads, with calls of their own and with merged ones."""
    best = {False: 0.0, True: 0.0}
    for coalesce in (False, True) * 2:
        with Client(address, timeout_s=60, coalesce=coalesce) as client:
            best[coalesce] = max(best[coalesce], _rate(client.kv("bench"), threads, writes=writes))
    name = f"client, {'put, synced' if writes else 'get'}, {threads} thread{'s' if threads > 1 else ''}"
    aim = (PUTS_AIM if writes else GETS_AIM) if threads == 64 else 0
    return Measurement(name, best[True], "calls", "a gRPC call each", best[False], aim)


def _rate(kv: KeyValue, threads: int, *, writes: bool) -> float:
    """Return calls a second of ``threads``, each with one call at a time."""
    value = b"v" * 200
    ends_s = [0.0]
    done = [0] * threads

    def work(thread: int) -> None:
        while time.perf_counter() < ends_s[0]:
            key = b"%05d" % ((thread * 7919 + done[thread]) % KEYS)
            if writes:
                kv.put(key, value)
            else:
                kv.get(key)
            done[thread] += 1

    # The connection, and the first calls' learning, are not measured.
    ends_s[0] = time.perf_counter() + WARM_S
    _join(threading.Thread(target=work, args=(thread,)) for thread in range(threads))
    done[:] = [0] * threads
    began = time.perf_counter()
    ends_s[0] = began + CALLERS_S
    _join(threading.Thread(target=work, args=(thread,)) for thread in range(threads))
    return sum(done) / (time.perf_counter() - began)


def _join(threads: Iterable[threading.Thread]) -> None:
    started = list(threads)
    for thread in started:
        thread.start()
    for thread in started:
        thread.join()


# --- the servers ---------------------------------------------------------------------------------------------------


@contextmanager
def running(kind: str, directory: str = "") -> Iterator[grpc.Channel]:
    """Yield a channel to a server in a process of its own."""
    with serving(kind, directory) as address, grpc.insecure_channel(address, options=OPTIONS) as channel:
        yield channel


@contextmanager
def serving(kind: str, directory: str = "") -> Iterator[str]:
    """Yield the address of a server in a process of its own, ended at the end."""
    command = [sys.executable, "-m", "benchmarks.bench_grpc", kind, directory]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield process.stdout.readline().split()[-1]
    finally:
        process.terminate()
        process.wait()


class _Raw(documents_pb2_grpc.DocumentsServicer):
    """Counts its input, and sends a reply at hand."""

    async def Bulk(self, requests, context):  # type: ignore[no-untyped-def]  # noqa: ARG002, N802
        async for request in requests:
            if request.WhichOneof("message") == "chunk":
                yield documents_pb2.BulkResponse(written=len(request.chunk.rows.lengths) // 4)

    async def Scan(self, request, context):  # type: ignore[no-untyped-def]  # noqa: ARG002, N802
        step = 4_000
        batch = common_pb2.RowBatch(bodies=bytes(70 * step), lengths=bytes(4 * step))
        reply = documents_pb2.ScanResponse(batches=[batch])
        for _ in range(request.limit // step):
            yield reply
        rest = request.limit % step
        yield documents_pb2.ScanResponse(
            batches=[common_pb2.RowBatch(bodies=bytes(70 * rest), lengths=bytes(4 * rest))]
        )


class _RawKv(kv_pb2_grpc.KeyValueServicer):
    """Answers with an empty reply."""

    async def Get(self, request, context):  # type: ignore[no-untyped-def]  # noqa: ARG002, N802
        return kv_pb2.KvGetResponse()


async def _serve_raw() -> None:
    server = grpc.aio.server(options=OPTIONS)
    documents_pb2_grpc.add_DocumentsServicer_to_server(_Raw(), server)  # type: ignore[no-untyped-call]
    kv_pb2_grpc.add_KeyValueServicer_to_server(_RawKv(), server)  # type: ignore[no-untyped-call]
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    print(f"listening on 127.0.0.1:{port}", flush=True)
    await server.wait_for_termination()


def _serve(kind: str, directory: str) -> None:
    if kind == "raw":
        import uvloop

        uvloop.run(_serve_raw())
    else:
        from cortado.store.server import serve

        serve(ServerConfig(data_dir=Path(directory) / "data", listen="127.0.0.1:0"))


if __name__ == "__main__":
    if sys.argv[1:2] in (["raw"], ["cortado"]):
        _serve(sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else "")
    else:
        count = int(sys.argv[1]) if len(sys.argv) > 1 else ROWS
        show(TITLE, settings(count), run(count), Console())
