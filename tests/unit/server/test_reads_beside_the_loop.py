"""Work beside the loop reads applied states alone: the writes over them change on the loop."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractContextManager, aclosing
from typing import Any

import pytest

from cortado.proto.v1 import common_pb2, documents_pb2, kv_pb2, schemas_pb2, tables_pb2, watch_pb2
from cortado.store.engine.interface import WriteTransaction
from cortado.store.host.host import Host
from cortado.store.replica.write.overlay import OverlayReader
from cortado.store.replica.write.pipeline import Pipeline
from cortado.store.server import watch_service
from cortado.store.server.convert import timestamp_message
from cortado.store.server.documents_service import DocumentsService
from cortado.store.server.kv_service import KeyValueService
from cortado.store.server.schemas_service import SchemasService
from cortado.store.server.service import KEYS_ON_THE_LOOP, READ_ON_THE_LOOP_BYTES
from cortado.store.server.tables_service import TablesService
from cortado.store.server.watch_service import WatchService
from support.memory_engine import MemoryEngine
from support.nodes import NodeDisk, make_node, run
from support.run_documents import DATABASE, INDEXED, PLAIN, TEXTS, create_tables, document, key
from support.wire import json_document, put_document

KEYS = KEYS_ON_THE_LOOP + 1
TABLE = documents_pb2.TableName(database=DATABASE, table=PLAIN)
_STEPS = 200


class HeldEngine(MemoryEngine):
    """An engine that stores nothing while it is held."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = threading.Event()
        self.gate.set()

    def write(self) -> AbstractContextManager[WriteTransaction]:
        assert self.gate.wait(60), "a held write was never released"
        return super().write()


class Scene:
    """A node whose newest writes are acknowledged, and not applied until :meth:`released`."""

    def __init__(self) -> None:
        self.engine = HeldEngine()
        self.node: Host = make_node(NodeDisk(self.engine))

    async def start(self) -> None:
        await self.node.start()
        await create_tables(self.node)
        for number in range(KEYS):
            await self.put(number, b"old")
        meta = self.node.meta
        await meta.reads.applied_to(meta.read_ts())
        self.engine.gate.clear()
        for number in range(KEYS):
            await self.put(number, b"new")

    async def put(self, number: int, value: bytes) -> None:
        pair = kv_pb2.KvPutRequest(namespace="n", key=b"%d" % number, value=value)
        await KeyValueService(self.node).put(pair)
        row = documents_pb2.PutDocumentRequest(table=TABLE, document=document(number, value.decode()))
        await DocumentsService(self.node).put(row)

    @property
    def at(self) -> common_pb2.ReadAt:
        return common_pb2.ReadAt(timestamp=timestamp_message(self.node.meta.read_ts()))

    async def released(self, answer: Awaitable[Any]) -> Any:
        """Return the answer. Nothing is applied before it has gone as far as it gets without."""
        asked = asyncio.ensure_future(answer)
        for _ in range(_STEPS):
            await asyncio.sleep(0)
        self.engine.gate.set()
        return await asyncio.wait_for(asked, 60)


Ask = Callable[[Scene], Awaitable[None]]


async def pairs(scene: Scene) -> None:
    request = kv_pb2.KvMultiGetRequest(namespace="n", keys=[b"%d" % number for number in range(KEYS)])
    reply = await scene.released(KeyValueService(scene.node).multi_get(request))
    assert [pair.value for pair in reply.pairs] == [b"new"] * KEYS


async def pairs_beside_own_writes(scene: Scene) -> None:
    own = [put_document(f"{DATABASE}.{PLAIN}", {"id": 100 + number, "name": "own"}) for number in range(65)]
    at = common_pb2.ReadAt(timestamp=scene.at.timestamp, own_writes=own)
    request = kv_pb2.KvGetRequest(namespace="n", key=b"1", at=at)
    reply = await scene.released(KeyValueService(scene.node).get(request))
    assert reply.pair.value == b"new"


def documents(*, at_a_time: bool) -> Ask:
    async def ask(scene: Scene) -> None:
        at = scene.at if at_a_time else None
        request = documents_pb2.MultiGetRequest(table=TABLE, keys=[key(number) for number in range(KEYS)], at=at)
        reply = await scene.released(DocumentsService(scene.node).multi_get(request))
        assert [each.document.avro for each in reply.found] == [document(n, "new").avro for n in range(KEYS)]

    return ask


async def before_another_catalog(scene: Scene) -> common_pb2.ReadAt:
    """Return a time with other tables than now: schemas are looked up in the newest catalog."""
    at = scene.at
    await TablesService(scene.node).drop_table(tables_pb2.DropTableRequest(database=DATABASE, name=INDEXED))
    return at


async def scan(scene: Scene) -> None:
    at = await before_another_catalog(scene)
    request = documents_pb2.ScanRequest(table=TABLE, at=at, format=common_pb2.DOCUMENT_FORMAT_JSON)

    async def rows() -> list[str]:
        found: list[str] = []
        async with aclosing(DocumentsService(scene.node).scan(request)) as replies:
            async for reply in replies:
                found.extend(documents_pb2.ScanResponse.FromString(reply).json_rows)
        return found

    assert len(await scene.released(rows())) == KEYS


async def check_of_a_schema(scene: Scene) -> None:
    request = schemas_pb2.CheckSchemaRequest(subject="d.rows", schema=TEXTS[1])
    assert (await scene.released(SchemasService(scene.node).check(request))).compatible


async def a_schema(scene: Scene) -> None:
    request = schemas_pb2.RegisterSchemaRequest(subject="d.rows", schema=TEXTS[1])
    assert await scene.released(SchemasService(scene.node).register(request))


async def a_large_document(scene: Scene) -> None:
    large = document(1, "n" * READ_ON_THE_LOOP_BYTES)
    request = documents_pb2.PutDocumentRequest(table=TABLE, document=large)
    assert await scene.released(DocumentsService(scene.node).put(request))


async def a_load_of_json(scene: Scene) -> None:
    async def sent() -> AsyncIterator[documents_pb2.BulkRequest]:
        yield documents_pb2.BulkRequest(start=documents_pb2.BulkStart(table=TABLE))
        chunk = documents_pb2.BulkChunk(json_rows=[json_document({"id": 7, "name": "j"}).json])
        yield documents_pb2.BulkRequest(chunk=chunk)

    async def loaded() -> list[bytes]:
        async with aclosing(DocumentsService(scene.node).bulk(sent())) as replies:
            return [reply async for reply in replies]

    (reply,) = await scene.released(loaded())
    assert documents_pb2.BulkResponse.FromString(reply).written == 1


async def a_checked_table(scene: Scene) -> None:
    at = await before_another_catalog(scene)
    request = tables_pb2.CheckTableRequest(database=DATABASE, name=PLAIN, at=at)

    async def checked() -> int:
        async with aclosing(TablesService(scene.node).check_table(request)) as replies:
            return [tables_pb2.CheckTableResponse.FromString(reply).rows_checked async for reply in replies][-1]

    assert await scene.released(checked()) == KEYS


async def a_watch(scene: Scene) -> None:
    options = watch_pb2.WatchOptions(after=common_pb2.ReadAt(timestamp=common_pb2.Timestamp()))
    request = watch_pb2.WatchTableRequest(table=TABLE, options=options, format=common_pb2.DOCUMENT_FORMAT_JSON)
    until = scene.node.meta.read_ts()

    async def watched() -> int:
        changes = 0
        async with aclosing(WatchService(scene.node).table(request)) as replies:
            async for encoded in replies:
                reply = watch_pb2.WatchTableResponse.FromString(encoded)
                changes += len(reply.changes)
                if reply.resolved.wall_ms > until.wall_ms or changes == 2 * KEYS:
                    break
        return changes

    assert await scene.released(watched()) == 2 * KEYS


ASKED: dict[str, Ask] = {
    "pairs": pairs,
    "pairs beside own writes": pairs_beside_own_writes,
    "documents": documents(at_a_time=False),
    "documents at a time": documents(at_a_time=True),
    "a scan at a time": scan,
    "the check of a schema": check_of_a_schema,
    "a schema": a_schema,
    "a large document": a_large_document,
    "a load of JSON": a_load_of_json,
    "a checked table": a_checked_table,
    "a watch": a_watch,
}


@pytest.mark.parametrize("asked", ASKED)
def test_no_other_thread_reads_what_lies_over_the_applied_state(asked: str, monkeypatch: pytest.MonkeyPatch) -> None:
    loop = threading.get_ident()
    # Nodes of other tests may go on in threads of theirs.
    others = {each.ident for each in threading.enumerate()} - {loop}
    elsewhere: list[str] = []

    def watched(kind: type, name: str) -> None:
        method = getattr(kind, name)

        def noted(*arguments: Any, **options: Any) -> Any:
            if threading.get_ident() not in (loop, *others):
                elsewhere.append(f"{kind.__name__}.{name}")
            return method(*arguments, **options)

        monkeypatch.setattr(kind, name, noted)

    for name in ("get", "get_many", "scan", "changed_since"):
        watched(OverlayReader, name)
    watched(Pipeline, "reader")
    monkeypatch.setattr(watch_service, "_ON_LOOP_MAX", 1)

    async def scenario() -> None:
        scene = Scene()
        await scene.start()
        try:
            await ASKED[asked](scene)
        finally:
            scene.engine.gate.set()
            await scene.node.stop()

    run(scenario)
    assert elsewhere == []
