"""The server's side of a bulk stream, over a disk that the test holds and fills."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import suppress

import pytest

from cortado.errors import ResourceExhausted
from cortado.proto.v1 import common_pb2, documents_pb2, schemas_pb2, tables_pb2
from cortado.schema.documents import encode_document
from cortado.schema.parse import parse_schema
from cortado.store.host.host import Host
from cortado.store.server import bulk_stream
from cortado.store.server.bulk_stream import BulkStream
from cortado.store.server.documents_service import DocumentsService
from cortado.store.server.schemas_service import SchemasService
from cortado.store.server.tables_service import TablesService
from support.nodes import NodeDisk, run, running_node, until

ROW = {"type": "record", "name": "R", "fields": [{"name": "id", "type": "long"}, {"name": "n", "type": "long"}]}
TABLE = documents_pb2.TableName(database="d", table="t")
START = documents_pb2.BulkRequest(start=documents_pb2.BulkStart(table=TABLE, mode=documents_pb2.BULK_MODE_UPSERT))


async def make_table(node: Host) -> int:
    """Make the table d.t, and return its schema's id."""
    registered = await SchemasService(node).register(
        schemas_pb2.RegisterSchemaRequest(subject="d.t", schema=json.dumps(ROW))
    )
    await TablesService(node).create_database(tables_pb2.CreateDatabaseRequest(database="d"))
    key = [tables_pb2.KeyPart(path="id")]
    await TablesService(node).create_table(tables_pb2.CreateTableRequest(database="d", name="t", key=key))
    assert isinstance(registered, bytes)
    return schemas_pb2.RegisterSchemaResponse.FromString(registered).version.schema_id


def chunk(schema_id: int, sequence: int) -> documents_pb2.BulkRequest:
    """Return a chunk of one row; its key is in every chunk."""
    body = encode_document(parse_schema(json.dumps(ROW)), {"id": 1, "n": sequence})
    rows = common_pb2.RowBatch(schema_id=schema_id, bodies=body, lengths=len(body).to_bytes(4, "little"))
    return documents_pb2.BulkRequest(chunk=documents_pb2.BulkChunk(sequence=sequence, rows=rows))


def test_a_chunk_behind_one_that_had_no_room_is_not_written_before_it() -> None:
    async def scenario() -> None:
        disk = NodeDisk()
        async with running_node(disk) as node:
            schema_id = await make_table(node)
            await node.meta.reads.caught_up()
            before = node.meta.applied.index
            more = asyncio.Event()

            async def requests() -> AsyncIterator[documents_pb2.BulkRequest]:
                yield START
                yield chunk(schema_id, 1)
                await more.wait()
                for sequence in (2, 3, 4):
                    yield chunk(schema_id, sequence)
                await asyncio.Event().wait()

            disk.hold()
            disk.failures.append(ResourceExhausted("the disk is full", 1, "disk"))
            replies = BulkStream(DocumentsService(node)).replies(requests())
            first = asyncio.ensure_future(anext(replies))
            await until(lambda: disk.held == 1, "the first chunk is being stored")
            more.set()
            await until(lambda: node.process.writes.use().count == 4, "the others are evaluated on top of it")
            await asyncio.sleep(0)
            disk.release()
            with pytest.raises(ResourceExhausted):
                await first
            await until(lambda: node.process.writes.use().count == 0, "everything has its answer")
            assert node.meta.applied.index == before
            found = await DocumentsService(node).get(
                documents_pb2.GetDocumentRequest(table=TABLE, key=common_pb2.Key(parts=[common_pb2.Value(int64=1)]))
            )
            assert not found.HasField("found")  # type: ignore[union-attr]

    run(scenario)


def test_a_silent_load_gives_its_place_up_where_others_find_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bulk_stream, "SILENT_S", 0.01)

    async def scenario() -> None:
        async with running_node(NodeDisk()) as node:
            schema_id = await make_table(node)
            is_heard = asyncio.Event()

            async def requests() -> AsyncIterator[documents_pb2.BulkRequest]:
                yield START
                yield chunk(schema_id, 1)
                is_heard.set()
                await asyncio.Event().wait()

            replies = BulkStream(DocumentsService(node)).replies(requests())
            assert await anext(replies)
            waiting = asyncio.ensure_future(anext(replies))
            await is_heard.wait()
            for _ in range(node.process.limits.bulk_streams_max):
                node.process.bulk_streams.enter()
            await until(lambda: _refused(node) and waiting.done(), "it has given its place up")
            with pytest.raises(ResourceExhausted, match="said nothing"):
                await waiting

    run(scenario)


def _refused(node: Host) -> bool:
    with suppress(ResourceExhausted):
        node.process.bulk_streams.enter()
    return True
