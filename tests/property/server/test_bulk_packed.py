"""Two nodes that load the same chunks: one packs them by the kernel, the other goes through lists.

Both stand on clocks that are set. So their entries, answers and stores have to be the same bytes.
"""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any
from unittest.mock import patch

import pytest

from cortado.errors import CortadoError
from cortado.proto.v1 import common_pb2, documents_pb2, schemas_pb2, tables_pb2
from cortado.schema.documents import encode_document
from cortado.schema.parse import parse_schema
from cortado.store.clock.timestamp import Timestamp
from cortado.store.engine.interface import Space
from cortado.store.host.host import Host
from cortado.store.process.limits import NodeLimits
from cortado.store.replica.write.batch import Batch
from cortado.store.replica.write.log_entry import LogEntry
from cortado.store.server import bulk_stream
from cortado.store.server.bulk_stream import LISTED_CHUNKS, BulkStream
from cortado.store.server.convert import timestamp_message
from cortado.store.server.documents_service import DocumentsService
from cortado.store.server.schemas_service import SchemasService
from cortado.store.server.tables_service import TablesService
from cortado.store.tables.packed_chunk import PackedChunk, pack_chunk
from support.avro_random import damaged
from support.kernels import row_kernel
from support.nodes import NOW_MS, NodeDisk, SetClock, make_node, run, until

SCHEMA = {
    "type": "record",
    "name": "R",
    "fields": [{"name": "id", "type": "long"}, {"name": "name", "type": "string"}, {"name": "n", "type": "int"}],
}
PARSED = parse_schema(json.dumps(SCHEMA))
TABLE = documents_pb2.TableName(database="d", table="t")
SPACES = (Space.DATA, Space.REQUESTS, Space.CHANGES)


@dataclass(frozen=True)
class Load:
    """One stream: its start, and the bodies of its chunks."""

    start: documents_pb2.BulkStart
    chunks: Sequence[Sequence[bytes]]


def loads(seed: int) -> list[Load]:
    """Return loads of chunks that overlap, with keys that come twice, damaged rows and few rows among them."""
    rng = random.Random(seed)
    made = []
    for number in range(4):
        start = documents_pb2.BulkStart(table=TABLE, mode=rng.choice([1, 1, 2]))
        if rng.random() < 0.4:
            start.unchanged_since.CopyFrom(timestamp_message(Timestamp(0, NOW_MS, 500)))
        chunks = []
        for _ in range(rng.randint(1, 6)):
            size = rng.choice([5, 64, 100, 300])
            first = rng.choice([0, 400 * number, rng.randrange(5_000)])
            ids = rng.sample(range(first, first + 2 * size), size) if rng.random() < 0.5 else range(first, first + size)
            bodies = [encode_document(PARSED, {"id": id_, "name": f"a\0{id_}", "n": number}) for id_ in ids]
            if rng.random() < 0.2:
                bodies[rng.randrange(size)] = bodies[0]
            if rng.random() < 0.2:
                bodies[0] = damaged(rng, bodies[0])
            chunks.append(bodies)
        made.append(Load(start, chunks))
    return made


INDEXES = [
    tables_pb2.Index(name="by_n", parts=[tables_pb2.KeyPart(path="n")]),
    tables_pb2.Index(name="by_id", parts=[tables_pb2.KeyPart(path="id")], unique=True),
]


async def make_table(node: Host, *, has_indexes: bool = False) -> int:
    """Make the table d.t, and return its schema's id."""
    registered = await SchemasService(node).register(
        schemas_pb2.RegisterSchemaRequest(subject="d.t", schema=json.dumps(SCHEMA))
    )
    assert isinstance(registered, bytes)
    await TablesService(node).create_database(tables_pb2.CreateDatabaseRequest(database="d"))
    key = [tables_pb2.KeyPart(path="name", descending=True), tables_pb2.KeyPart(path="id")]
    indexes = INDEXES if has_indexes else []
    request = tables_pb2.CreateTableRequest(database="d", name="t", key=key, indexes=indexes)
    await TablesService(node).create_table(request)
    await node.meta.reads.caught_up()
    return schemas_pb2.RegisterSchemaResponse.FromString(registered).version.schema_id


async def serve(
    given: Sequence[Load], *, has_kernel: bool, has_indexes: bool = False
) -> tuple[list[bytes], list[Any], list[Any]]:
    """Return a node's entries, its answers, and all that it has stored."""
    disk, clock, entries = NodeDisk(), SetClock(), list[bytes]()
    node = make_node(disk, clock=clock, limits=NodeLimits(evaluate_slice_ms=60_000))
    node.process.clock._read_physical_ms = clock
    await node.start()
    schema_id = await make_table(node, has_indexes=has_indexes)
    node.meta.store.kernel = row_kernel() if has_kernel else None
    entry_of = Batch.entry

    def noted(batch: Batch, after_index: int, after_term: int) -> LogEntry:
        entry = entry_of(batch, after_index, after_term)
        entries.append(entry.encode())
        return entry

    answers: list[Any] = []
    with patch.object(Batch, "entry", noted):
        for number, load in enumerate(given):

            async def requests(load: Load = load, number: int = number) -> AsyncIterator[documents_pb2.BulkRequest]:
                yield documents_pb2.BulkRequest(start=load.start)
                for sequence, bodies in enumerate(load.chunks):
                    yield chunk_request(schema_id, bodies, number, sequence)

            # While the disk is held, chunks gather in the same batches, however fast the machine is.
            disk.hold()
            answering = asyncio.ensure_future(_answers(node, requests()))
            await until(partial(_are_in_line, node, len(load.chunks), answering), "all are in line")
            disk.release()
            answers.append(await answering)
            clock.now_ms += 1
    await node.meta.reads.applied_to(await node.meta.reads.linearize())
    await node.stop()
    with disk.engine.read() as txn:
        stored = [[(key, value()) for key, value in txn.walk(space, b"\0")] for space in SPACES]
    return entries, answers, stored


def chunk_request(schema_id: int, bodies: Sequence[bytes], load: int, sequence: int) -> documents_pb2.BulkRequest:
    lengths = b"".join(len(body).to_bytes(4, "little") for body in bodies)
    rows = common_pb2.RowBatch(schema_id=schema_id, bodies=b"".join(bodies), lengths=lengths)
    request_id = bytes(Timestamp(0, NOW_MS, 0)) + bytes([load, sequence]) * 4
    return documents_pb2.BulkRequest(chunk=documents_pb2.BulkChunk(sequence=sequence, rows=rows, request_id=request_id))


def _are_in_line(node: Host, chunks: int, answering: asyncio.Future[list[Any]]) -> bool:
    return node.process.writes.use().count == chunks or answering.done()


async def _answers(node: Host, requests: AsyncIterator[documents_pb2.BulkRequest]) -> list[Any]:
    """Return the answers, and the refusal that ended the load."""
    answers: list[Any] = []
    try:
        async for reply in BulkStream(DocumentsService(node)).replies(requests):
            answers.append(reply)  # noqa: PERF401 - those before a refusal count
    except CortadoError as refusal:
        answers.append(repr(refusal))
    return answers


@pytest.fixture
def packed(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Return a list that gets, of each chunk that is tried, whether it was packed."""
    tried: list[bool] = []

    def noted(*given: Any) -> PackedChunk | None:
        found = pack_chunk(*given)
        tried.append(found is not None)
        return found

    monkeypatch.setattr(bulk_stream, "pack_chunk", noted)
    return tried


@pytest.mark.parametrize("has_indexes", [False, True])
@pytest.mark.parametrize("seed", range(12))
def test_a_node_with_the_kernel_is_the_node_without_it(seed: int, has_indexes: bool, packed: list[bool]) -> None:
    async def compare() -> None:
        given = loads(seed)
        by_kernel = await serve(given, has_kernel=True, has_indexes=has_indexes)
        assert any(packed)
        by_lists = await serve(given, has_kernel=False, has_indexes=has_indexes)
        for ours, theirs in zip(by_kernel, by_lists, strict=True):
            assert ours == theirs

    run(compare)


def test_a_chunk_is_packed_for_a_load_alone_and_not_for_a_large_transaction(monkeypatch: pytest.MonkeyPatch) -> None:
    """Staged rows are other items."""
    monkeypatch.setattr(bulk_stream, "pack_chunk", lambda *_: pytest.fail("it was packed"))

    async def scenario() -> None:
        node = make_node(NodeDisk(), clock=SetClock())
        await node.start()
        node.meta.store.kernel = row_kernel()
        stream = BulkStream(DocumentsService(node))
        stream._staging = documents_pb2.Staging(transaction_id=bytes(16))
        assert await stream._prepare(bulk_stream.bulk_chunk(documents_pb2.BulkStart(table=TABLE), CHUNK)) is None
        await node.stop()

    asyncio.run(scenario())


def test_a_load_over_stored_rows_packs_few_chunks_in_vain(packed: list[bool]) -> None:
    async def scenario() -> None:
        node = make_node(NodeDisk(), clock=SetClock())
        await node.start()
        schema_id = await make_table(node, has_indexes=True)
        node.meta.store.kernel = row_kernel()
        rows = [encode_document(PARSED, {"id": id_, "name": f"{id_}", "n": id_}) for id_ in range(64)]
        for loads, (chunks, expected) in enumerate([(1, 1), (2 + LISTED_CHUNKS, 2), (3, 1)]):
            packed.clear()

            async def requests(loads: int = loads, chunks: int = chunks) -> AsyncIterator[documents_pb2.BulkRequest]:
                yield documents_pb2.BulkRequest(start=documents_pb2.BulkStart(table=TABLE, mode=1))
                for sequence in range(chunks):
                    yield chunk_request(schema_id, rows, loads, sequence)
                    await until(lambda: not node.process.writes.use().count, "it is written")

            await _answers(node, requests())
            assert packed == [True] * expected
        await node.stop()

    run(scenario)


CHUNK = documents_pb2.BulkChunk(rows=common_pb2.RowBatch(schema_id=1))
