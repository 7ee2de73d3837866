"""Atomic batches: puts, updates and deletes on the tables of one database, all or nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, Self

from cortado.errors import InvalidArgument
from cortado.proto.v1 import common_pb2, transactions_pb2
from cortado.store.client.connection import Connection
from cortado.store.client.document_types import DataclassInstance
from cortado.store.client.public_faces import public_face
from cortado.store.client.put_mode import PutMode, put_condition
from cortado.store.client.retry import before_a_write
from cortado.store.client.table import AsyncTable
from cortado.store.client.values import Expires, KeyLike, etag_condition, expiry_to_proto
from cortado.store.keys.names import check_database, check_table


@public_face
class AsyncBatch:
    """Collects operations, and commits them at the end of its ``async with`` block, unless that ends by an exception::

    async with client.batch("flights") as batch:
        await batch.put("airlines", {"carrier": "ZZ", "name": "Zed Air"})
        await batch.delete("planes", ("N14228",))
    print(batch.etag)

    They count in their order: an operation sees those before it. Table names are those within the database.
    """

    def __init__(
        self, connection: Connection, database: str, table: Callable[[str], AsyncTable], *, timeout_s: float
    ) -> None:
        self.database = check_database(database)
        self._connection = connection
        self._table = table
        self._timeout_s = timeout_s
        self._operations: list[common_pb2.Operation] = []
        self.etag = ""
        """The etag of everything written, once committed."""

    def __len__(self) -> int:
        return len(self._operations)

    async def put(
        self,
        table: str,
        document: Mapping[str, Any] | DataclassInstance,
        *,
        mode: PutMode = "upsert",
        if_match: str | None = None,
        expires: Expires = None,
    ) -> None:
        """As :meth:`AsyncTable.put`, at the commit. Raises InvalidDocument at once."""
        with before_a_write():
            put = common_pb2.DocumentPut(
                database=self.database,
                table=table,
                document=await self._of(table).document_to_proto(document),
                condition=put_condition(mode, if_match),
                expiry=expiry_to_proto(expires),
            )
        self._operations.append(common_pb2.Operation(put=put))

    async def update(
        self,
        table: str,
        key: KeyLike,
        changes: Mapping[str, Any],
        *,
        if_match: str | None = None,
        expires: Expires = None,
    ) -> None:
        """As :meth:`AsyncTable.update`, at the commit. Raises InvalidArgument or InvalidDocument at once."""
        handle = self._of(table)
        with before_a_write():
            update = common_pb2.DocumentUpdate(
                database=self.database,
                table=table,
                key=await handle.key(key),
                changes_json=await handle.changes_to_json(changes),
                condition=etag_condition(if_match),
                expiry=expiry_to_proto(expires),
            )
        self._operations.append(common_pb2.Operation(update=update))

    async def delete(self, table: str, key: KeyLike, *, if_match: str | None = None) -> None:
        """As :meth:`AsyncTable.delete`, at the commit. Raises InvalidArgument at once."""
        with before_a_write():
            delete = common_pb2.DocumentDelete(
                database=self.database,
                table=table,
                key=await self._of(table).key(key),
                condition=etag_condition(if_match),
            )
        self._operations.append(common_pb2.Operation(delete=delete))

    async def commit(self) -> str:
        """Write everything durably and at once; return the etag. Raises the refusal of any one operation."""
        if self.etag:
            raise InvalidArgument("batch", "was committed before", self.etag)
        if not self._operations:
            raise InvalidArgument("batch", "must hold at least one operation")
        request = transactions_pb2.CommitRequest(operations=self._operations)
        commit = self._connection.stubs.transactions.Commit
        reply = await self._connection.write(commit, request, timeout_s=self._timeout_s)
        self.etag = reply.etag
        return self.etag

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if kind is None and self._operations and not self.etag:
            await self.commit()

    def _of(self, table: str) -> AsyncTable:
        return self._table(f"{self.database}.{check_table(table)}")
