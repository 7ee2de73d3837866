"""The processor time of bulk loads in a whole node, from a stream's chunks to its answers and the stored rows.

A node alone over LMDB and log files on the disk; chunks of new rows, sixteen of them under way, as the client's stream
sends them. No gRPC, no peers. The time is that of the process: its loop, and its log and storage threads. Each kind of
load goes both ways, in turns: packed by the compiled kernel, and through lists.

    python -m benchmarks.bench_ingest [kinds]
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from io import BytesIO
from pathlib import Path
from typing import Final

import fastavro
import numpy as np
import uvloop
from rich.console import Console

from benchmarks.loop_holds import SCHEMA, created, running
from benchmarks.report import Measurement, show
from cortado.proto.v1 import common_pb2, documents_pb2, schemas_pb2, tables_pb2
from cortado.store.host.host import Host
from cortado.store.mvcc.kernel.seam import compile_ahead, compiled_folder, load
from cortado.store.server.bulk_stream import BulkStream
from cortado.store.server.convert import timestamp_message
from cortado.store.server.documents_service import DocumentsService
from cortado.store.server.schemas_service import SchemasService
from cortado.store.server.serving import SWITCH_INTERVAL_S
from cortado.store.server.tables_service import TablesService

TITLE: Final = "Bulk loads of a node in one process"
ROWS: Final = 100_000
CHUNK_ROWS: Final = 2_000
IN_FLIGHT: Final = 16
ROUNDS: Final = 5
KINDS: Final = (
    "in order",
    "shuffled",
    "in order, unchanged since",
    "with an index",
    "with a unique index",
    "of an older schema",
    "that expire",
)
INDEXES: Final = {"by_sensor": ("sensor", "at")}
_SCHEMA: Final = fastavro.parse_schema(SCHEMA)
_TABLE: Final = documents_pb2.TableName(database="bench", table="readings")


def settings() -> str:
    """Return one line for the table's head: data and method."""
    return (
        f"rows a second of processor time; documents of five fields, in chunks of {CHUNK_ROWS:,}, {IN_FLIGHT} under "
        f"way, synced; medians of {ROUNDS} rounds of {ROWS:,} new rows, both ways in turns"
    )


def run(kinds: Sequence[str] = ()) -> list[Measurement]:
    """Measure everything, or some kinds; takes some ten seconds for each."""
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    with tempfile.TemporaryDirectory(prefix="cortado-bench-") as name:
        return uvloop.run(_run(Path(name), kinds or KINDS))


async def _run(path: Path, kinds: Sequence[str]) -> list[Measurement]:
    kernel = load(compiled_folder() or compile_ahead())
    found = []
    for place, kind in enumerate(kinds):
        async with running(path / str(place)) as host:
            indexes = INDEXES if kind.endswith("index") else {}
            schema_id = await created(host, indexes, are_unique="unique" in kind)
            if "older" in kind:
                await _register_newer(host)
            if "expire" in kind:
                request = tables_pb2.AlterTableRequest(database=_TABLE.database, name=_TABLE.table, ttl_ms=3_600_000)
                await TablesService(host).alter_table(request)
            rates: dict[bool, list[float]] = {True: [], False: []}
            first = 0
            for _ in range(1 + ROUNDS):
                for is_packed, of_way in rates.items():
                    host.meta.store.kernel = kernel if is_packed else None
                    of_way.append(await _load(host, _chunks(schema_id, first, kind), kind))
                    first += ROWS
        packed, listed = (statistics.median(each[1:]) for each in rates.values())
        found.append(Measurement(kind, packed, "rows", "through lists", listed))
    return found


async def _register_newer(host: Host) -> None:
    """Register a version with one field more."""
    fields = [*SCHEMA["fields"], {"name": "more", "type": "string", "default": ""}]
    newer = json.dumps(SCHEMA | {"fields": fields})
    await SchemasService(host).register(schemas_pb2.RegisterSchemaRequest(subject="bench.readings", schema=newer))


def _chunks(schema_id: int, first: int, kind: str) -> list[common_pb2.RowBatch]:
    """Return new rows, from the key ``first`` on."""
    keys = list(range(first, first + ROWS))
    if kind == "shuffled":
        random.Random(first).shuffle(keys)
    chunks = []
    for begin in range(0, ROWS, CHUNK_ROWS):
        out, ends = BytesIO(), [0]
        for key in keys[begin : begin + CHUNK_ROWS]:
            row = {"id": key, "sensor": f"sensor-{key % 999}", "at": key << 20, "value": key / 7, "note": "n" * 40}
            fastavro.schemaless_writer(out, _SCHEMA, row)
            ends.append(out.tell())
        lengths = np.diff(ends).astype("<u4").tobytes()
        chunks.append(common_pb2.RowBatch(schema_id=schema_id, bodies=out.getvalue(), lengths=lengths))
    return chunks


async def _load(host: Host, chunks: Sequence[common_pb2.RowBatch], kind: str) -> float:
    """Load chunks until they are applied; return rows a second of processor time."""
    start = documents_pb2.BulkStart(table=_TABLE, mode=documents_pb2.BULK_MODE_UPSERT)
    if kind.endswith("since"):
        start.unchanged_since.CopyFrom(timestamp_message(host.process.clock.now()))
    now, slots = bytes(host.process.clock.last), asyncio.Semaphore(IN_FLIGHT)
    messages = [
        documents_pb2.BulkChunk(sequence=place, rows=rows, request_id=now + os.urandom(8)).SerializeToString()
        for place, rows in enumerate(chunks)
    ]

    async def requests() -> AsyncIterator[documents_pb2.BulkRequest]:
        yield documents_pb2.BulkRequest(start=start)
        for message in messages:
            await slots.acquire()
            yield documents_pb2.BulkRequest(chunk=documents_pb2.BulkChunk.FromString(message))

    began, written = time.process_time(), 0
    async for reply in BulkStream(DocumentsService(host)).replies(requests()):
        written += documents_pb2.BulkResponse.FromString(reply).written
        slots.release()
    await host.meta.reads.applied_to(host.meta.read_ts())
    assert written == ROWS
    return ROWS / (time.process_time() - began)


if __name__ == "__main__":
    show(TITLE, settings(), run(sys.argv[1:]), Console())
