"""How long a large commit holds the event loop: the loop's longest step while it is evaluated, appended,
stored, committed and applied, by a node alone over LMDB and log files on the disk.

During a step the node does nothing else: it hears no peer, sends no heartbeat, and answers no caller. Each step is
measured twice: by the clock, which also counts waiting for a processor and for Python's interpreter, and by the CPU
time of the loop's own thread. No gRPC: the service gets the request as gRPC would give it.

    python -m benchmarks.loop_holds [documents]
"""

from __future__ import annotations

import asyncio
import gc
import random
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from io import BytesIO
from pathlib import Path
from typing import Final

import fastavro

from cortado.proto.v1 import common_pb2, schemas_pb2, tables_pb2, transactions_pb2
from cortado.store.clock.host_time import HostTime
from cortado.store.engine.data_directory import Identity
from cortado.store.host.host import Host
from cortado.store.process.process import NodeIdentity, Surroundings
from cortado.store.process.snapshot_files import DiskSnapshotFiles
from cortado.store.server.schemas_service import SchemasService
from cortado.store.server.serving import GC_THRESHOLD, SWITCH_INTERVAL_S
from cortado.store.server.stores import Stores
from cortado.store.server.tables_service import TablesService
from cortado.store.server.transactions_service import TransactionsService

DOCUMENTS: Final = 10_000
ROUNDS: Final = 9
LONGEST: Final = 3
"""The number of longest steps that are shown."""
SCHEMA: Final = {
    "type": "record",
    "name": "Reading",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "sensor", "type": "string"},
        {"name": "at", "type": "long"},
        {"name": "value", "type": "double"},
        {"name": "note", "type": "string"},
    ],
}
REGISTERED: Final = (
    '{"type": "record", "name": "Reading", "fields": [{"name": "id", "type": "long"}, '
    '{"name": "sensor", "type": "string"}, {"name": "at", "type": "long"}, {"name": "value", "type": "double"}, '
    '{"name": "note", "type": "string"}]}'
)
INDEXES: Final = {"by_sensor": ("sensor", "at"), "by_value": ("value",)}


class Steps:
    """Milliseconds of each step of the loop while it is listened to: by the clock, and of CPU."""

    def __init__(self) -> None:
        self.clock_ms: list[float] = []
        self.cpu_ms: list[float] = []

    @contextmanager
    def heard(self) -> Iterator[None]:
        run = asyncio.Handle._run  # type: ignore[attr-defined]

        def timed(handle: asyncio.Handle) -> None:
            clock, cpu = time.perf_counter(), time.thread_time()
            run(handle)
            self.cpu_ms.append((time.thread_time() - cpu) * 1000)
            self.clock_ms.append((time.perf_counter() - clock) * 1000)

        asyncio.Handle._run = timed  # type: ignore[attr-defined]
        try:
            yield
        finally:
            asyncio.Handle._run = run  # type: ignore[attr-defined]


def main() -> None:
    documents = int(sys.argv[1]) if len(sys.argv) > 1 else DOCUMENTS
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    with tempfile.TemporaryDirectory(prefix="cortado-bench-") as name:
        rounds = asyncio.run(_measure(Path(name), documents))
    print(f"the longest steps of a commit of {documents:,} documents with {len(INDEXES)} indexes, median of {ROUNDS}")
    for what, of_rounds in (("CPU", [each.cpu_ms for each in rounds]), ("clock", [each.clock_ms for each in rounds])):
        longest = zip(*[sorted(steps, reverse=True)[:LONGEST] for steps in of_rounds], strict=True)
        print(f"{what:6}", ", ".join(f"{statistics.median(each):.1f} ms" for each in longest))


async def _measure(path: Path, documents: int) -> list[Steps]:
    async with running(path) as host:
        schema_id = await created(host, INDEXES)
        # As a server has it.
        gc.collect()
        gc.freeze()
        gc.set_threshold(GC_THRESHOLD, 20, 20)
        service = TransactionsService(host)
        rounds = []
        requests = [_request(schema_id, documents, number) for number in range(ROUNDS + 1)]
        # A measured step begins after an unmeasured one.
        await asyncio.sleep(0)
        for request in requests:
            steps = Steps()
            with steps.heard():
                await service.commit(request)
                await host.meta.reads.applied_to(host.meta.read_ts())
            rounds.append(steps)
    return rounds[1:]


@asynccontextmanager
async def running(path: Path) -> AsyncIterator[Host]:
    stores = Stores.open(path / "data", new_identity=lambda: Identity("bench", "node-1", "disk-1"))
    around = Surroundings(
        engine=stores.engine,
        log_files=stores.log_files,
        snapshot_files=DiskSnapshotFiles(path / "snapshots"),
        host_time=HostTime(lambda: time.time_ns() // 1_000_000, _monotonic_ms, max_offset_ms=500),
        monotonic_ms=_monotonic_ms,
        random=random.Random(0),
    )
    host = Host(NodeIdentity("bench", "node-1", "disk-1"), around)
    await host.start()
    try:
        yield host
    finally:
        await host.stop()
        stores.close()


def _monotonic_ms() -> float:
    return time.monotonic() * 1000


async def created(host: Host, of_indexes: Mapping[str, Sequence[str]], *, are_unique: bool = False) -> int:
    """Create a table with these indexes, each of some fields; return its schema's id."""
    tables, schemas = TablesService(host), SchemasService(host)
    await tables.create_database(tables_pb2.CreateDatabaseRequest(database="bench"))
    await schemas.register(schemas_pb2.RegisterSchemaRequest(subject="bench.readings", schema=REGISTERED))
    indexes = [
        tables_pb2.Index(name=name, parts=[tables_pb2.KeyPart(path=path) for path in paths], unique=are_unique)
        for name, paths in of_indexes.items()
    ]
    key = [tables_pb2.KeyPart(path="id")]
    await tables.create_table(
        tables_pb2.CreateTableRequest(database="bench", name="readings", key=key, indexes=indexes)
    )
    return 1


def _request(schema_id: int, documents: int, number: int) -> transactions_pb2.CommitRequest:
    """Return a commit of new documents, in no order of their keys."""
    chance, schema = random.Random(number), fastavro.parse_schema(SCHEMA)
    request = transactions_pb2.CommitRequest()
    for key in chance.sample(range(number << 32, (number + 1) << 32), documents):
        at, value, note = chance.randrange(1 << 50), chance.random(), "n" * chance.randrange(80)
        body = BytesIO()
        row = {"id": key, "sensor": f"sensor-{key % 977}", "at": at, "value": value, "note": note}
        fastavro.schemaless_writer(body, schema, row)
        put = request.operations.add().put
        put.database, put.table = "bench", "readings"
        put.document.CopyFrom(common_pb2.Document(schema_id=schema_id, avro=body.getvalue()))
    return request


if __name__ == "__main__":
    main()
