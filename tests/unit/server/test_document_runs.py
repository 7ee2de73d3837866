"""Plain puts and gets of documents that are answered together: which are plain, and the state that they rest on."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from cortado.errors import InvalidDocument, KeyLocked
from cortado.proto.v1 import calls_pb2, common_pb2, documents_pb2, schemas_pb2, tables_pb2
from cortado.proto.v1 import large_transactions_pb2 as large
from cortado.store.clock.timestamp import Timestamp
from cortado.store.server.bulk_stream import BulkStream
from cortado.store.server.documents_service import DocumentsService
from cortado.store.server.large_transactions_service import LargeTransactionsService
from support.plain_calls import error, put, request_id
from support.run_documents import DATABASE, EXPIRING, INDEXED, PLAIN, TEXTS, document, key
from support.run_twins import Served, serving, sizes_of_runs


@pytest.fixture
def sizes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return the sizes of the runs of writes that are submitted."""
    return sizes_of_runs(monkeypatch)


def call(number: int, method: str, request: Any) -> calls_pb2.Call:
    return calls_pb2.Call(id=number, method=f"cortado.v1.{method}", request=request.SerializeToString())


def put_document(number: int, row: int, table: str = PLAIN, **fields: Any) -> calls_pb2.Call:
    named = documents_pb2.TableName(database=DATABASE, table=table)
    given = {"table": named, "document": document(row, f"name {number}"), "request_id": request_id(put(number))}
    return call(number, "Documents/Put", documents_pb2.PutDocumentRequest(**given | fields))


def get_document(number: int, row: int, table: str = PLAIN) -> calls_pb2.Call:
    named = documents_pb2.TableName(database=DATABASE, table=table)
    return call(number, "Documents/Get", documents_pb2.GetDocumentRequest(table=named, key=key(row)))


def etag(reply: calls_pb2.CallReply) -> Timestamp:
    assert not reply.status, error(reply)
    return Timestamp.parse(documents_pb2.PutDocumentResponse.FromString(reply.reply).etag)


def found(reply: calls_pb2.CallReply) -> documents_pb2.FoundDocument | None:
    assert not reply.status, error(reply)
    response = documents_pb2.GetDocumentResponse.FromString(reply.reply)
    return response.found if response.HasField("found") else None


def test_documents_of_a_message_are_one_run_and_each_has_a_timestamp_of_its_own(sizes: list[int]) -> None:
    async def scenario(served: Served) -> None:
        replies = await served.call([put_document(number, number % 3) for number in range(1, 8)])
        times = [etag(replies[number]) for number in range(1, 8)]
        assert times == sorted(set(times)) and times[-1].logical == times[0].logical + 6
        assert sizes == [7]
        rows = await served.call([get_document(10 + row, row) for row in range(4)])
        newest = [found(rows[10 + row]) for row in range(4)]
        assert [each and each.etag for each in newest] == [str(times[place]) for place in (5, 6, 4)] + [None]

    serving(scenario, has_tables=True)


def test_documents_expire_as_their_table_says(sizes: list[int]) -> None:
    async def scenario(served: Served) -> None:
        replies = await served.call([put_document(number, number, EXPIRING) for number in (1, 2)])
        expires_ms = {etag(reply).wall_ms + 60 for reply in replies.values()}
        rows = await served.call([get_document(10 + row, row, EXPIRING) for row in (1, 2)])
        assert {each.expires_ms for reply in rows.values() if (each := found(reply))} == expires_ms
        served.clock.now_ms += 60
        await served.call([put_document(3, 3), put_document(4, 4)])
        rows = await served.call([get_document(20 + row, row, EXPIRING) for row in (1, 2)])
        assert [found(reply) for reply in rows.values()] == [None, None]
        assert sizes == [2, 2]

    serving(scenario, has_tables=True)


def test_a_document_that_is_refused_leaves_the_run(sizes: list[int]) -> None:
    async def scenario(served: Served) -> None:
        bad = put_document(3, 3, document=document(3))
        request = documents_pb2.PutDocumentRequest.FromString(bad.request)
        request.document.avro = b"\2"
        bad.request = request.SerializeToString()
        calls = [put_document(1, 1), put_document(2, 2), bad, put_document(4, 4), put_document(5, 5)]
        replies = await served.call(calls)
        assert isinstance(error(replies[3]), InvalidDocument)
        assert etag(replies[1]) < etag(replies[2]) < etag(replies[4]) < etag(replies[5])
        assert sizes == [2, 2]

    serving(scenario, has_tables=True)


def test_a_table_with_an_index_has_no_runs(sizes: list[int]) -> None:
    async def scenario(served: Served) -> None:
        replies = await served.call([put_document(number, number, INDEXED) for number in (1, 2)])
        assert etag(replies[1]) < etag(replies[2])
        assert sizes == []

    serving(scenario, has_tables=True)


def test_documents_are_read_again_where_their_table_is_another_one_by_then(sizes: list[int]) -> None:
    async def scenario(served: Served) -> None:
        await served.call([put_document(1, 1), put_document(2, 2)])
        name = {"database": DATABASE, "name": PLAIN}
        drop = tables_pb2.DropTableRequest(**name, request_id=request_id(put(3)))
        parts = [tables_pb2.KeyPart(path="id")]
        create = tables_pb2.CreateTableRequest(**name, subject="d.rows", key=parts, request_id=request_id(put(4)))
        calls = [call(3, "Tables/DropTable", drop), call(4, "Tables/CreateTable", create)]
        replies = await served.call([*calls, put_document(5, 5), put_document(6, 6)])
        assert etag(replies[5]) < etag(replies[6])
        assert sizes == [2, 2]
        rows = await served.call([get_document(10 + row, row) for row in (1, 2, 5, 6)])
        assert [found(reply) is not None for reply in rows.values()] == [False, False, True, True]

    serving(scenario, has_tables=True)


def test_what_may_be_refused_when_it_is_evaluated_is_evaluated_one_by_one(sizes: list[int]) -> None:
    async def scenario(served: Served) -> None:
        index = tables_pb2.Index(name="by_name", parts=[tables_pb2.KeyPart(path="name")], unique=True)
        create = tables_pb2.CreateIndexRequest(
            database=DATABASE, table=PLAIN, index=index, request_id=request_id(put(1))
        )
        replies = await served.call([call(1, "Tables/CreateIndex", create), put_document(2, 2), put_document(3, 3)])
        assert not replies[1].status and etag(replies[2]) < etag(replies[3])
        assert sizes == [2], "the run began, and was parted"
        assert served.requests.method("cortado.v1.Documents/Put").ok == 2
        assert served.node.process.writes.use().count == 0

    serving(scenario, has_tables=True)


async def stage(served: Served, row: int) -> None:
    """Stage the row by a large transaction that stays open."""
    tables = [large.TransactionTable(database=DATABASE, table=PLAIN)]
    begin = large.BeginLargeTransactionRequest(transaction_id=b"a" * 16, tables=tables)
    await LargeTransactionsService(served.node).begin(begin)
    named = documents_pb2.TableName(database=DATABASE, table=PLAIN)
    start = documents_pb2.BulkStart(table=named, staging=documents_pb2.Staging(transaction_id=b"a" * 16))
    body = document(row).avro
    rows = common_pb2.RowBatch(schema_id=1, bodies=body, lengths=len(body).to_bytes(4, "little"))

    async def requests() -> AsyncIterator[documents_pb2.BulkRequest]:
        yield documents_pb2.BulkRequest(start=start)
        yield documents_pb2.BulkRequest(chunk=documents_pb2.BulkChunk(rows=rows))

    replies = [each async for each in BulkStream(DocumentsService(served.node)).replies(requests())]
    assert documents_pb2.BulkResponse.FromString(replies[-1]).written == 1


def test_beside_an_open_transaction_what_it_has_staged_is_locked(sizes: list[int]) -> None:
    async def scenario(served: Served) -> None:
        await stage(served, 1)
        replies = await served.call([put_document(number, number) for number in (1, 2, 3)])
        assert isinstance(error(replies[1]), KeyLocked)
        assert etag(replies[2]) < etag(replies[3])
        assert sizes == [3], "the run began, and was parted"
        await served.applied()
        assert not served.node.meta.driver.pipeline.requests

    serving(scenario, has_tables=True)


def test_a_row_of_an_older_schema_is_answered_as_it_was_written() -> None:
    async def scenario(served: Served) -> None:
        await served.call([put_document(1, 1), put_document(2, 2)])
        register = schemas_pb2.RegisterSchemaRequest(subject="d.rows", schema=TEXTS[1])
        await served.call([call(3, "Schemas/Register", register)])
        await served.call([put_document(4, 1, document=document(1, version=1)), put_document(5, 5)])
        rows = await served.call([get_document(10 + row, row) for row in (1, 2)])
        assert [each.document.schema_id for reply in rows.values() if (each := found(reply))] == [2, 1]

    serving(scenario, has_tables=True)
