"""Services on a host with two groups: each call is answered by the replica that holds its keys."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import replace
from json import loads

import pytest

from cortado.errors import InvalidArgument, NotFound
from cortado.proto.v1 import common_pb2, documents_pb2, schemas_pb2, tables_pb2, transactions_pb2, watch_pb2
from cortado.store.engine.interface import ABOVE_KEYS
from cortado.store.host.host import Host
from cortado.store.keys.groups import SEGMENT_BYTES
from cortado.store.keys.keyspace import TABLE_SPACE
from cortado.store.replica.controls import higher_ceiling
from cortado.store.replica.group_range import FIRST_KEY, META_GROUP, GroupRange
from cortado.store.server.documents_service import DocumentsService
from cortado.store.server.schemas_service import SchemasService
from cortado.store.server.tables_service import TablesService
from cortado.store.server.transactions_service import TransactionsService
from cortado.store.server.watch_service import WatchService
from support.node_world import World

SCHEMA = '{"type": "record", "name": "R", "fields": [{"name": "id", "type": "string"}, {"name": "n", "type": "int"}]}'
TABLE = documents_pb2.TableName(database="d", table="t")
GROUPS = (
    replace(META_GROUP, data=(FIRST_KEY, TABLE_SPACE)),
    GroupRange(2, (TABLE_SPACE, ABOVE_KEYS), (2).to_bytes(SEGMENT_BYTES)),
)
JSON = common_pb2.DOCUMENT_FORMAT_JSON


def json_of(name: str, number: int) -> str:
    return f'{{"id": "{name}", "n": {number}}}'


def document(name: str, number: int) -> common_pb2.Document:
    return common_pb2.Document(json=json_of(name, number))


def key(name: str) -> common_pb2.Key:
    return common_pb2.Key(parts=[common_pb2.Value(string=name)])


def on_two_groups(scenario: Callable[[Host], Awaitable[None]]) -> None:
    """Run it on a node with a table in the second group."""
    world = World(groups=GROUPS)

    async def made() -> None:
        [node] = await world.grow("n1")
        tables = TablesService(node)
        await tables.create_database(tables_pb2.CreateDatabaseRequest(database="d"))
        await SchemasService(node).register(schemas_pb2.RegisterSchemaRequest(subject="s", schema=SCHEMA))
        by_id = [tables_pb2.KeyPart(path="id")]
        await tables.create_table(tables_pb2.CreateTableRequest(database="d", name="t", subject="s", key=by_id))
        # A read of the second group is at that group's newest time, which must be above the table's.
        await node.replicas[2].keep_house(higher_ceiling(node.process.clock.now()))
        await world.settled()
        await scenario(node)

    world.run(made)


def in_the_second(scenario: Callable[[Host], Awaitable[None]]) -> None:
    """Run it as :func:`on_two_groups` does: the second group alone grows."""

    async def watched(node: Host) -> None:
        first, second = node.replicas.values()
        before = first.log.last, second.log.last
        await scenario(node)
        assert first.log.last == before[0]
        assert second.log.last > before[1]

    on_two_groups(watched)


async def put(node: Host, name: str, number: int) -> None:
    await DocumentsService(node).put(documents_pb2.PutDocumentRequest(table=TABLE, document=document(name, number)))


async def rows(node: Host) -> list[str]:
    request = documents_pb2.ScanRequest(table=TABLE, format=JSON)
    replies = [documents_pb2.ScanResponse.FromString(each) async for each in DocumentsService(node).scan(request)]
    return [row for reply in replies for row in reply.json_rows]


def test_documents_are_written_and_read_in_the_group_of_their_table() -> None:
    async def scenario(node: Host) -> None:
        documents = DocumentsService(node)
        await put(node, "a", 1)
        await put(node, "b", 2)
        changes = documents_pb2.UpdateDocumentRequest(table=TABLE, key=key("a"), changes_json='{"n": 7}', format=JSON)
        await documents.update(changes)
        await documents.delete(documents_pb2.DeleteDocumentRequest(table=TABLE, key=key("b")))
        found = await documents.get(documents_pb2.GetDocumentRequest(table=TABLE, key=key("a"), format=JSON))
        several = await documents.multi_get(
            documents_pb2.MultiGetRequest(table=TABLE, keys=[key("a"), key("b")], format=JSON)
        )
        assert [each.document.json for each in several.found] == [found.found.document.json, ""]
        assert await rows(node) == [found.found.document.json] == [json_of("a", 7)]
        parts = await documents.split(documents_pb2.SplitRequest(table=TABLE, parts=1))
        assert len(parts.ranges) == 1
        with pytest.raises(NotFound):
            await documents.get(
                documents_pb2.GetDocumentRequest(
                    table=documents_pb2.TableName(database="d", table="none"), key=key("a"), format=JSON
                )
            )

    in_the_second(scenario)


def test_a_load_goes_to_the_group_of_its_table() -> None:
    async def scenario(node: Host) -> None:
        async def requests() -> AsyncIterator[documents_pb2.BulkRequest]:
            yield documents_pb2.BulkRequest(start=documents_pb2.BulkStart(table=TABLE))
            yield documents_pb2.BulkRequest(
                chunk=documents_pb2.BulkChunk(sequence=1, json_rows=[json_of("a", 1), json_of("b", 2)])
            )

        stream = DocumentsService(node).bulk(requests())
        replies = [documents_pb2.BulkResponse.FromString(each) async for each in stream]
        assert [each.written for each in replies] == [2]
        assert len(await rows(node)) == 2

    in_the_second(scenario)


def test_a_table_is_checked_in_its_group() -> None:
    async def scenario(node: Host) -> None:
        await put(node, "a", 1)
        request = tables_pb2.CheckTableRequest(database="d", name="t")
        replies = [
            tables_pb2.CheckTableResponse.FromString(each) async for each in TablesService(node).check_table(request)
        ]
        assert (replies[-1].rows_checked, replies[-1].done) == (1, True)

    in_the_second(scenario)


def test_the_changes_of_a_table_are_those_of_its_group() -> None:
    async def scenario(node: Host) -> None:
        watch = WatchService(node)
        await put(node, "a", 1)
        options = watch_pb2.WatchOptions(initial_state=True, resolved_interval_ms=20)
        request = watch_pb2.WatchTableRequest(table=TABLE, options=options, format=JSON)
        async with aclosing(watch.table(request)) as stream:
            replies = [watch_pb2.WatchTableResponse.FromString(await anext(stream))]
            await put(node, "b", 2)
            while sum(len(each.changes) for each in replies) < 2:
                replies.append(watch_pb2.WatchTableResponse.FromString(await anext(stream)))
        told = [loads(change.document.json) for each in replies for change in each.changes]
        assert told == [{"id": "a", "n": 1}, {"id": "b", "n": 2}]
        window = watch_pb2.WindowRequest(
            table=watch_pb2.WindowOfTable(table=TABLE), after=common_pb2.ReadAt(timestamp=common_pb2.Timestamp())
        )
        assert (await watch.window(window)).changes == 2

    in_the_second(scenario)


def commit_of(*operations: common_pb2.Operation, request_id: bytes = b"") -> transactions_pb2.CommitRequest:
    return transactions_pb2.CommitRequest(
        operations=operations, isolation=transactions_pb2.ISOLATION_SNAPSHOT, request_id=request_id
    )


def test_a_commit_is_of_one_group_and_is_settled_there() -> None:
    async def scenario(node: Host) -> None:
        transactions = TransactionsService(node)
        of_document = common_pb2.Operation(
            put=common_pb2.DocumentPut(database="d", table="t", document=document("a", 1))
        )
        of_pair = common_pb2.Operation(put_pair=common_pb2.KvPut(namespace="n", key=b"k", value=b"v"))
        with pytest.raises(InvalidArgument, match="one group"):
            await transactions.commit(commit_of(of_document, of_pair))
        request_id = bytes(node.process.clock.now()) + bytes(8)
        await transactions.commit(commit_of(of_document, request_id=request_id))
        assert await rows(node) == [json_of("a", 1)]
        settled = await transactions.settle(transactions_pb2.SettleRequest(request_id=request_id))
        assert settled.happened

    on_two_groups(scenario)
