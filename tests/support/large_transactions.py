"""A table with indexes on a node in this process, and large transactions that stage rows of it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import contextmanager
from unittest.mock import patch

from cortado.proto.v1 import common_pb2, documents_pb2, schemas_pb2, tables_pb2
from cortado.proto.v1 import large_transactions_pb2 as pb
from cortado.schema.documents import decode_document, encode_document
from cortado.schema.fields import select_fields
from cortado.schema.parse import parse_schema
from cortado.store.clock.timestamp import Timestamp
from cortado.store.host.host import Host
from cortado.store.keys.keyspace import STAGED_SPACE, index_range, prefix_range, row_range
from cortado.store.keys.types import KeyPart, KeyType
from cortado.store.mvcc.staged import LargeTransaction
from cortado.store.replica.duties.large_transactions import LargeTransactions
from cortado.store.server.bulk_stream import BulkStream
from cortado.store.server.convert import timestamp_message, timestamp_value
from cortado.store.server.documents_service import DocumentsService
from cortado.store.server.large_transactions_service import LargeTransactionsService
from cortado.store.server.schemas_service import SchemasService
from cortado.store.server.tables_service import TablesService
from cortado.store.tables.rows import decode_payload

FIELDS = [{"name": name, "type": "long"} for name in ("id", "u", "n")]
SCHEMA = {"type": "record", "name": "R", "fields": FIELDS}
PARSED = parse_schema(json.dumps(SCHEMA))
TABLE = documents_pb2.TableName(database="d", table="t")
LONG = [KeyPart("id", KeyType.INT64)]
A, B, C = b"a" * 16, b"b" * 16, b"c" * 16

Row = tuple[int, int, int]
"""Its key, a unique value, and one that is not."""


class Scene:
    """The table d.t (id, u unique, n) on a node."""

    def __init__(self, node: Host, schema_id: int, table_id: int) -> None:
        self.node = node
        self._schema_id = schema_id
        self.table_id = table_id
        self.calls = LargeTransactionsService(node)

    @classmethod
    async def make(cls, node: Host) -> Scene:
        text = json.dumps(SCHEMA)
        registered = await SchemasService(node).register(schemas_pb2.RegisterSchemaRequest(subject="d.t", schema=text))
        tables = TablesService(node)
        await tables.create_database(tables_pb2.CreateDatabaseRequest(database="d"))
        indexes = [
            tables_pb2.Index(name="by_u", parts=[tables_pb2.KeyPart(path="u")], unique=True),
            tables_pb2.Index(name="by_n", parts=[tables_pb2.KeyPart(path="n")]),
        ]
        request = tables_pb2.CreateTableRequest(
            database="d", name="t", key=[tables_pb2.KeyPart(path="id")], indexes=indexes
        )
        await tables.create_table(request)
        assert isinstance(registered, bytes)
        schema_id = schemas_pb2.RegisterSchemaResponse.FromString(registered).version.schema_id
        await node.meta.reads.caught_up()
        catalog = node.meta.catalog(node.meta.reader(node.meta.read_ts()))
        return cls(node, schema_id, catalog.table("d", "t").table_id)

    # --- large transactions ------------------------------------------------------------------------------------

    async def begin(
        self,
        transaction_id: bytes = A,
        label: str = "",
        ttl_ms: int = 0,
        app: tuple[str, int] = ("", 0),
        owner: str = "",
    ) -> pb.LargeTransaction:
        tables = [pb.TransactionTable(database="d", table="t")]
        request = pb.BeginLargeTransactionRequest(
            transaction_id=transaction_id,
            tables=tables,
            label=label,
            ttl_ms=ttl_ms,
            application=app[0],
            version=app[1],
            owner=owner,
        )
        return _transaction(await self.calls.begin(request))

    async def stage(
        self,
        rows: Sequence[Row],
        transaction_id: bytes = A,
        task: int = 0,
        attempt: int = 0,
        mode: documents_pb2.BulkMode = documents_pb2.BULK_MODE_UPSERT,
        since: Timestamp | None = None,
    ) -> documents_pb2.BulkResponse:
        staging = documents_pb2.Staging(transaction_id=transaction_id, task=task, attempt=attempt)
        start = documents_pb2.BulkStart(table=TABLE, mode=mode, staging=staging)
        if since is not None:
            start.unchanged_since.CopyFrom(timestamp_message(since))
        return await self._bulk(rows, start)

    async def stage_deletes(self, ids: Sequence[int], transaction_id: bytes = A) -> documents_pb2.BulkResponse:
        staging = documents_pb2.Staging(transaction_id=transaction_id)
        mode = documents_pb2.BULK_MODE_DELETE
        start = documents_pb2.BulkStart(table=TABLE, mode=mode, staging=staging, columns=["id"])
        return await self._bulk_bodies(
            [encode_document(select_fields(PARSED, ("id",), "d.t"), {"id": each}) for each in ids], start
        )

    async def load(self, rows: Sequence[Row]) -> documents_pb2.BulkResponse:
        """Load rows at once, in no transaction."""
        return await self._bulk(rows, documents_pb2.BulkStart(table=TABLE, mode=documents_pb2.BULK_MODE_UPSERT))

    async def commit(
        self,
        transaction_id: bytes = A,
        attempts: Sequence[tuple[int, int]] = ((0, 0),),
        app: tuple[str, int] = ("", 0),
        owner: str = "",
    ) -> pb.LargeTransaction:
        request = pb.CommitLargeTransactionRequest(
            transaction_id=transaction_id,
            tasks=[task for task, _ in attempts],
            attempts=[attempt for _, attempt in attempts],
            application=app[0],
            version=app[1],
            owner=owner,
        )
        return _transaction(await self.calls.commit(request))

    async def abort(self, transaction_id: bytes = A) -> pb.LargeTransaction:
        return _transaction(await self.calls.abort(pb.AbortLargeTransactionRequest(transaction_id=transaction_id)))

    async def list(self) -> Sequence[pb.LargeTransaction]:
        reply = await self.calls.list(pb.ListLargeTransactionsRequest())
        assert isinstance(reply, pb.ListLargeTransactionsResponse)
        return reply.transactions

    async def resolved(self) -> None:
        """Return once every one that has ended is resolved, here."""
        while any(not each.is_open for each in self.node.meta.store.unresolved.all.values()):
            await asyncio.sleep(0.005)

    # --- rows --------------------------------------------------------------------------------------------------

    async def put(self, row: Row) -> None:
        document = common_pb2.Document(schema_id=self._schema_id, avro=_body(row))
        await DocumentsService(self.node).put(documents_pb2.PutDocumentRequest(table=TABLE, document=document))

    async def delete(self, row_id: int) -> None:
        parts = [common_pb2.Value(int64=row_id)]
        request = documents_pb2.DeleteDocumentRequest(table=TABLE, key=common_pb2.Key(parts=parts))
        await DocumentsService(self.node).delete(request)

    async def rows(self, ts: Timestamp | None = None) -> list[Row]:
        """Return the rows that a scan at ``ts`` sees, or the newest; all entries of both indexes fit them."""
        replica = self.node.meta
        ts = await replica.reads.applied_to(await replica.reads.linearize() if ts is None else ts)
        reader = replica.store.snapshot(ts)
        stored = list(reader.scan(*row_range(self.table_id, LONG)))
        rows = [_row(version.payload) for _, version in stored]
        assert [_row(v.payload) for _, v in reader.scan(*row_range(self.table_id, LONG), reverse=True)] == rows[::-1]
        found = reader.get_many([key for key, _ in stored])
        assert [_row(each.payload) for each in found if each is not None] == rows
        for number in (1, 2):
            entries = list(reader.scan(*index_range(self.table_id, number, LONG)))
            assert len(entries) == len(rows), (number, len(entries), rows)
        return rows

    def staged(self) -> int:
        """Return the number of stored items that are staged, by the applied state."""
        return len(
            list(self.node.meta.store.snapshot(self.node.meta.applied.last_ts).scan(*prefix_range(STAGED_SPACE)))
        )

    async def _bulk(self, rows: Sequence[Row], start: documents_pb2.BulkStart) -> documents_pb2.BulkResponse:
        return await self._bulk_bodies(list(map(_body, rows)), start)

    async def _bulk_bodies(self, bodies: Sequence[bytes], start: documents_pb2.BulkStart) -> documents_pb2.BulkResponse:
        lengths = b"".join(len(each).to_bytes(4, "little") for each in bodies)
        batch = common_pb2.RowBatch(schema_id=self._schema_id, bodies=b"".join(bodies), lengths=lengths)

        async def requests() -> AsyncIterator[documents_pb2.BulkRequest]:
            yield documents_pb2.BulkRequest(start=start)
            yield documents_pb2.BulkRequest(chunk=documents_pb2.BulkChunk(sequence=1, rows=batch))

        replies = [each async for each in BulkStream(DocumentsService(self.node)).replies(requests())]
        assert len(replies) == 1
        return documents_pb2.BulkResponse.FromString(replies[0])


@contextmanager
def nothing_put_in_place() -> Iterator[asyncio.Event]:
    """Keep committed rows where they were staged, until the event that it gives is set."""
    release = asyncio.Event()
    put_in_place = LargeTransactions._put_in_place

    async def held(self: LargeTransactions, transaction: LargeTransaction) -> None:
        await release.wait()
        await put_in_place(self, transaction)

    with patch.object(LargeTransactions, "_put_in_place", held):
        yield release


def committed_at(transaction: pb.LargeTransaction) -> Timestamp:
    assert transaction.state == pb.LargeTransaction.COMMITTED
    return timestamp_value(transaction.committed, "committed")


def _transaction(reply: bytes) -> pb.LargeTransaction:
    return pb.LargeTransactionResponse.FromString(reply).transaction


def _body(row: Row) -> bytes:
    return encode_document(PARSED, dict(zip(("id", "u", "n"), row, strict=True)))


def _row(payload: bytes) -> Row:
    _, body = decode_payload(payload)
    document = decode_document(PARSED, body)
    return document["id"], document["u"], document["n"]
