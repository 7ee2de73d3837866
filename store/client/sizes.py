"""Sizes: how many rows tables have, and how many bytes are stored of them, of indexes and of databases."""

from __future__ import annotations

from dataclasses import dataclass

from cortado.proto.v1 import tables_pb2 as pb
from cortado.store.client.connection import Connection
from cortado.store.client.public_faces import public_face
from cortado.store.keys.names import check_database, split_table_name


@dataclass(frozen=True, slots=True)
class Size:
    """``count`` rows of a table, or entries of an index: exact, unless it ``is_estimated``.
    ``bytes`` of keys and values have all versions of them together, old ones and deletes too, as they are stored."""

    count: int
    is_estimated: bool
    bytes: int


@dataclass(frozen=True, slots=True)
class TableSize:
    """Of a table: its ``rows``, and the entries of each index by its name."""

    database: str
    name: str
    rows: Size
    indexes: dict[str, Size]

    @property
    def full_name(self) -> str:
        """``database.name``."""
        return f"{self.database}.{self.name}"

    @property
    def bytes(self) -> int:
        """Bytes of its rows and of all of its indexes."""
        return self.rows.bytes + sum(each.bytes for each in self.indexes.values())


@dataclass(frozen=True, slots=True)
class DatabaseSize:
    """A database's size: the number of its ``tables``, and the ``rows`` of all of them. Their bytes include indexes,
    and dropped tables that are not cleared yet."""

    name: str
    tables: int
    rows: Size


@public_face
class AsyncSizes:
    """How much is stored, sampled if the engine's pages are many: a call takes milliseconds a table."""

    def __init__(self, connection: Connection, *, timeout_s: float) -> None:
        self._connection = connection
        self._timeout_s = timeout_s
        self._stub = connection.stubs.tables

    async def table(self, full_name: str) -> TableSize:
        """Return the size of one table. Raises NotFound."""
        database, name = split_table_name(full_name)
        request = pb.TableSizesRequest(database=database, name=name)
        reply = await self._connection.call(self._stub.TableSizes, request, timeout_s=self._timeout_s)
        return _table(reply.tables[0])

    async def tables(self, database: str | None = None) -> list[TableSize]:
        """Return the sizes of the readable tables, of one database or of all. Raises NotFound."""
        found: list[TableSize] = []
        request = pb.TableSizesRequest(database="" if database is None else check_database(database))
        while True:
            reply = await self._connection.call(self._stub.TableSizes, request, timeout_s=self._timeout_s)
            found += map(_table, reply.tables)
            if not reply.next_page_token:
                return found
            request.page_token = reply.next_page_token

    async def databases(self) -> list[DatabaseSize]:
        """Return the sizes of all databases that may be read as a whole."""
        found: list[DatabaseSize] = []
        request = pb.DatabaseSizesRequest()
        while True:
            reply = await self._connection.call(self._stub.DatabaseSizes, request, timeout_s=self._timeout_s)
            found += [DatabaseSize(each.name, each.tables, _size(each.rows)) for each in reply.databases]
            if not reply.next_page_token:
                return found
            request.page_token = reply.next_page_token


def _table(found: pb.TableSize) -> TableSize:
    return TableSize(
        found.database, found.name, _size(found.rows), {each.name: _size(each.size) for each in found.indexes}
    )


def _size(found: pb.Size) -> Size:
    return Size(found.count, found.is_estimated, found.bytes)
