"""Databases and tables: making them, listing them, describing them, checking them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass

from cortado.errors import CortadoError, IndexNotReady, Internal, InvalidArgument, NotFound
from cortado.proto.v1 import common_pb2, tables_pb2
from cortado.store.catalog.descriptors import IndexDescriptor, IndexState, TableDescriptor
from cortado.store.client.arguments import callback, flag, optional_text, sequence, shown, text, texts, whole
from cortado.store.client.caches import TableCache
from cortado.store.client.connection import Connection
from cortado.store.client.drops import DroppedDatabase, DropRecord, UndroppedDatabase, record_from_proto, record_number
from cortado.store.client.values import At, at_to_proto, timestamp_of
from cortado.store.clock.retentions import KEEP_ALL
from cortado.store.clock.timestamp import TTL_MS_MAX, ZERO, Timestamp
from cortado.store.keys.names import check_database, check_index, check_table, split_table_name
from cortado.store.keys.types import KeyPart, KeyType


@dataclass(frozen=True, slots=True)
class Index:
    """An index to make: its name and its parts, each a field path, perhaps followed by ``desc``."""

    name: str
    parts: Sequence[str]
    unique: bool = False


@dataclass(frozen=True, slots=True)
class CheckProblem:
    """One thing wrong in a table: ``index`` is empty for the row itself."""

    index: str
    kind: str
    key: str
    message: str


@dataclass(frozen=True, slots=True)
class CheckReport:
    """The result of a check at ``ts``. A table is sound if ``problems`` is empty."""

    rows_checked: int
    entries_checked: int
    problems: tuple[CheckProblem, ...]
    ts: Timestamp
    repaired: int = 0
    """Entries that were put or deleted, if a repair was asked for."""
    left: int = 0
    """Rows and entries that a repair could not put right."""


class AsyncTables:
    """The catalogue's calls. Table names are ``database.table``."""

    def __init__(
        self, connection: Connection, cache: TableCache, *, timeout_s: float, at: common_pb2.ReadAt | None = None
    ) -> None:
        """``at``: tables are described as they were then, and ``cache`` is of that time."""
        self._connection = connection
        self._stub = connection.stubs.tables
        self._cache = cache
        self._timeout_s = timeout_s
        self._at = at

    async def create_database(self, name: str) -> None:
        """Create a database. Raises AlreadyExists."""
        request = tables_pb2.CreateDatabaseRequest(database=check_database(name))
        await self._connection.write(self._stub.CreateDatabase, request, timeout_s=self._timeout_s)

    async def databases(self) -> list[str]:
        """Return all databases, by name."""
        request = tables_pb2.ListDatabasesRequest()
        reply = await self._connection.call(self._stub.ListDatabases, request, timeout_s=self._timeout_s)
        return [*reply.databases]

    async def create(
        self,
        full_name: str,
        key: Sequence[str],
        subject: str | None,
        indexes: Sequence[Index],
        retention_ms: int,
        ttl_ms: int,
    ) -> TableDescriptor:
        """Create a table whose documents follow ``subject`` (by default the table's full name).

        ``key`` and the indexes' parts are field paths of the subject's newest schema, each perhaps followed by
        ``desc``. Raises NotFound for the database or the subject, AlreadyExists, InvalidArgument (a field).
        """
        database, name = split_table_name(full_name)
        request = tables_pb2.CreateTableRequest(
            database=database,
            name=name,
            subject=optional_text(subject, "subject"),
            key=_parts(key, "key"),
            indexes=[
                tables_pb2.Index(
                    name=index.name, parts=_parts(index.parts, f"indexes.{index.name}"), unique=index.unique
                )
                for index in _indexes(indexes)
            ],
            retention_ms=_retention(retention_ms),
            ttl_ms=_ttl(ttl_ms),
        )
        reply = await self._connection.write(self._stub.CreateTable, request, timeout_s=self._timeout_s)
        return self._remember(reply.table)

    async def alter(self, full_name: str, retention_ms: int | None, ttl_ms: int | None) -> TableDescriptor:
        """Alter a table. Raises NotFound, InvalidArgument, TooLarge."""
        database, name = split_table_name(full_name)
        request = tables_pb2.AlterTableRequest(
            database=database,
            name=name,
            retention_ms=None if retention_ms is None else _retention(retention_ms),
            ttl_ms=None if ttl_ms is None else _ttl(ttl_ms),
        )
        reply = await self._connection.write(self._stub.AlterTable, request, timeout_s=self._timeout_s)
        return self._remember(reply.table)

    # --- drops and undrops -----------------------------------------------------------------------------------

    async def drop(self, full_name: str) -> DropRecord:
        """Drop a table. Raises NotFound."""
        database, name = split_table_name(full_name)
        request = tables_pb2.DropTableRequest(database=database, name=name)
        reply = await self._connection.write(self._stub.DropTable, request, timeout_s=self._timeout_s)
        self._cache.forget(full_name)
        return record_from_proto(reply.dropped)

    async def truncate(self, full_name: str) -> DropRecord:
        """Truncate a table. Raises NotFound."""
        database, name = split_table_name(full_name)
        request = tables_pb2.TruncateTableRequest(database=database, name=name)
        reply = await self._connection.write(self._stub.TruncateTable, request, timeout_s=self._timeout_s)
        self._remember(reply.table)
        return record_from_proto(reply.dropped)

    async def rename(self, full_name: str, new_name: str, replaces: TableDescriptor | None) -> TableDescriptor:
        """Rename a table. Raises NotFound, AlreadyExists, InvalidArgument."""
        database, name = split_table_name(full_name)
        if not isinstance(replaces, TableDescriptor | None):
            raise InvalidArgument("replaces", "must be a table as describe gives it", type(replaces).__name__)
        request = tables_pb2.RenameTableRequest(
            database=database,
            name=name,
            new_name=check_table(new_name, "new_name"),
            replaces=0 if replaces is None else replaces.table_id,
        )
        reply = await self._connection.write(self._stub.RenameTable, request, timeout_s=self._timeout_s)
        self._cache.forget(full_name)
        return self._remember(reply.table)

    async def undrop(self, full_name: str, as_name: str | None, number: int | None) -> TableDescriptor:
        """Undrop a table. Raises NotFound, AlreadyExists, InvalidArgument."""
        database, name = split_table_name(full_name)
        request = tables_pb2.UndropTableRequest(
            database=database,
            name=name,
            as_name="" if as_name is None else check_table(as_name, "as_name"),
            number=record_number(number),
        )
        reply = await self._connection.write(self._stub.UndropTable, request, timeout_s=self._timeout_s)
        return self._remember(reply.table)

    async def drop_database(self, name: str, *, cascade: bool) -> DroppedDatabase:
        """Drop a database. Raises NotFound, InvalidArgument, TooLarge."""
        request = tables_pb2.DropDatabaseRequest(database=check_database(name), cascade=flag(cascade, "cascade"))
        reply = await self._connection.write(self._stub.DropDatabase, request, timeout_s=self._timeout_s)
        for each in reply.tables:
            self._cache.forget(each)
        return DroppedDatabase(record_from_proto(reply.dropped), tuple(reply.tables))

    async def undrop_database(self, name: str, as_name: str | None, number: int | None) -> UndroppedDatabase:
        """Undrop a database. Raises NotFound, AlreadyExists, InvalidArgument."""
        request = tables_pb2.UndropDatabaseRequest(
            database=check_database(name),
            as_name="" if as_name is None else check_database(as_name, "as_name"),
            number=record_number(number),
        )
        reply = await self._connection.write(self._stub.UndropDatabase, request, timeout_s=self._timeout_s)
        return UndroppedDatabase(reply.database, tuple(reply.tables), tuple(reply.cleared))

    async def dropped(self) -> list[DropRecord]:
        """Return all drops that are not cleared yet."""
        found: list[DropRecord] = []
        request = tables_pb2.ListDroppedRequest()
        while True:
            reply = await self._connection.call(self._stub.ListDropped, request, timeout_s=self._timeout_s)
            found += map(record_from_proto, reply.dropped)
            if not reply.next_page_token:
                return found
            request.page_token = reply.next_page_token

    # --- what there is ---------------------------------------------------------------------------------------

    async def list(self, database: str | None) -> list[TableDescriptor]:
        """Return the tables of one database, or of all. Raises NotFound."""
        found: list[TableDescriptor] = []
        request = tables_pb2.ListTablesRequest(database="" if database is None else check_database(database))
        while True:
            reply = await self._connection.call(self._stub.ListTables, request, timeout_s=self._timeout_s)
            found += [self._remember(table) for table in reply.tables]
            if not reply.next_page_token:
                return found
            request.page_token = reply.next_page_token

    async def describe(self, full_name: str) -> TableDescriptor:
        """Return the table as it is. Raises NotFound."""
        database, name = split_table_name(full_name)
        request = tables_pb2.DescribeTableRequest(database=database, name=name, at=self._at)
        try:
            reply = await self._connection.call(self._stub.DescribeTable, request, timeout_s=self._timeout_s)
        except NotFound:
            self._cache.forget(full_name)
            raise
        return self._remember(reply.table)

    async def no_index(self, table: TableDescriptor, index: str) -> CortadoError:
        """Return the error about an index missing in ``table``: it was begun after the time of the reads, or never."""
        # A read time without a value is now, in a view too.
        now = AsyncTables(self._connection, TableCache(), timeout_s=self._timeout_s, at=common_pb2.ReadAt())
        with suppress(NotFound):
            found = await now.describe(table.full_name)
            later = found.index(index) if found.table_id == table.table_id else None
            if later is not None:
                ready_ts = str(later.ready_ts) if later.state is IndexState.READY else ""
                problem = "was begun after the time of this read"
                return IndexNotReady(f"{index} of table {table.full_name}", problem, ready_ts)
        return NotFound("index", f"{index} of table {table.full_name}")

    async def create_index(self, full_name: str, index: Index) -> tuple[IndexDescriptor, int]:
        """Begin an index; return it and its job's number. Raises NotFound, AlreadyExists, InvalidArgument."""
        database, name = split_table_name(full_name)
        [given] = _indexes([index])
        request = tables_pb2.CreateIndexRequest(
            database=database,
            table=name,
            index=tables_pb2.Index(name=given.name, parts=_parts(given.parts, "index.parts"), unique=given.unique),
        )
        reply = await self._connection.write(self._stub.CreateIndex, request, timeout_s=self._timeout_s)
        started = self._remember(reply.table).index(given.name)
        assert started is not None
        return started, reply.job_id

    async def built(self, full_name: str, started: IndexDescriptor) -> IndexDescriptor:
        """Return the index after its job's end. Raises IndexNotReady if the job failed, NotFound if it is gone."""
        found = (await self.describe(full_name)).index(started.name)
        if found is None or found.index_id != started.index_id:
            raise NotFound("index", f"{started.name} of table {full_name}: it was dropped")
        found.check_ready(full_name, found.ready_ts)
        return found

    async def drop_index(self, full_name: str, index: str) -> None:
        """Drop an index. Raises NotFound."""
        database, name = split_table_name(full_name)
        request = tables_pb2.DropIndexRequest(database=database, table=name, index=check_index(index))
        self._remember((await self._connection.write(self._stub.DropIndex, request, timeout_s=self._timeout_s)).table)

    async def known(self, full_name: str) -> TableDescriptor:
        """Return the table as this client last saw it; described if it has not. Raises NotFound."""
        return self._cache.get(full_name) or await self.describe(full_name)

    async def as_of(self, at: At, full_name: str) -> AsyncTables:
        """Return these calls, or calls that describe tables as they were then, if the name may have meant another
        table."""
        then = at_to_proto(at)
        kind = None if then is None else then.WhichOneof("kind")
        if then is None or kind not in ("timestamp", "wall_ms"):
            return self
        with suppress(NotFound):
            named_ts = (await self.known(full_name)).named_ts
            is_since = (
                named_ts.wall_ms <= then.wall_ms if kind == "wall_ms" else named_ts <= timestamp_of(then.timestamp)
            )
            if is_since:
                return self
        return AsyncTables(self._connection, TableCache(), timeout_s=self._timeout_s, at=then)

    def within(self, timeout_s: float) -> AsyncTables:
        """Return these calls, each taking no longer than that."""
        return AsyncTables(self._connection, self._cache, timeout_s=min(timeout_s, self._timeout_s), at=self._at)

    def keeping(self, table: TableDescriptor) -> AsyncTables:
        """Return these calls with a cache of their own that knows ``table``; other callers' caches stay as they are."""
        cache = TableCache()
        cache.put(table)
        return AsyncTables(self._connection, cache, timeout_s=self._timeout_s, at=self._at)

    async def described_at(self, after: At, full_name: str) -> TableDescriptor:
        """Return the table that the name meant then, or if it meant none, means now. Raises NotFound."""
        tables = await self.as_of(after, full_name)
        with suppress(NotFound):
            return await tables.known(full_name)
        return await self.describe(full_name)

    def forget(self, full_name: str) -> None:
        """Forget the table: there is a sign that it has changed since this client last saw it."""
        self._cache.forget(full_name)

    async def check(
        self, full_name: str, at: At, progress: Callable[[int, int], None] | None, repair: bool = False
    ) -> CheckReport:
        """Prove that every index matches the rows exactly. ``progress`` is told rows and entries."""
        database, name = split_table_name(full_name)
        request = tables_pb2.CheckTableRequest(
            database=database, name=name, at=at_to_proto(at), repair=flag(repair, "repair")
        )
        callback(progress, "progress")
        problems: list[CheckProblem] = []
        reply = None
        replies = self._connection.replies(self._stub.CheckTable, request, timeout_s=self._timeout_s)
        async with aclosing(replies):
            async for reply in replies:
                problems += [CheckProblem(each.index, each.kind, each.key, each.message) for each in reply.problems]
                if progress is not None:
                    progress(reply.rows_checked, reply.entries_checked)
        if reply is None or not reply.done:
            raise Internal(f"the check of {full_name} ended early")
        return CheckReport(
            reply.rows_checked,
            reply.entries_checked,
            tuple(problems),
            timestamp_of(reply.header.timestamp),
            reply.repaired,
            reply.left,
        )

    def _remember(self, table: tables_pb2.Table) -> TableDescriptor:
        descriptor = descriptor_from_proto(table)
        self._cache.put(descriptor)
        return descriptor


def parse_part(text: str, field: str) -> tuple[str, bool]:
    """Return path and direction of ``path``, ``path asc`` or ``path desc``. Raises InvalidArgument naming ``field``."""
    words = text.split() if isinstance(text, str) else []
    match words:
        case [path] | [path, "asc"]:
            return path, False
        case [path, "desc"]:
            return path, True
    raise InvalidArgument(field, "must be a field path, perhaps followed by desc", shown(text))


def descriptor_from_proto(table: tables_pb2.Table) -> TableDescriptor:
    """Return a table's description as a value."""
    return TableDescriptor(
        table_id=table.table_id,
        database=table.database,
        name=table.name,
        subject=table.subject,
        key=tuple(_part_from_proto(part) for part in table.key),
        indexes=tuple(map(_index_from_proto, table.indexes)),
        version=table.version,
        retention_ms=table.retention_ms,
        named_ts=timestamp_of(table.named),
        ttl_ms=table.ttl_ms,
    )


def _retention(retention_ms: int) -> int:
    return whole(retention_ms, "retention_ms", KEEP_ALL, (1 << 63) - 1)


def _ttl(ttl_ms: int) -> int:
    return whole(ttl_ms, "ttl_ms", 0, TTL_MS_MAX)


def _index_from_proto(index: tables_pb2.Index) -> IndexDescriptor:
    # A server of before there were states has indexes that are ready.
    state = tables_pb2.IndexState.Name(index.state).removeprefix("INDEX_STATE_").lower()
    return IndexDescriptor(
        index_id=index.index_id,
        name=index.name,
        parts=tuple(_part_from_proto(part) for part in index.parts),
        unique=index.unique,
        state=IndexState(state) if index.state else IndexState.READY,
        ready_ts=timestamp_of(index.ready) if index.HasField("ready") else ZERO,
        job_id=index.job_id,
        failure=index.failure,
        failed_keys=tuple(index.failed_keys),
    )


def _indexes(indexes: Sequence[Index]) -> Sequence[Index]:
    given = sequence(indexes, "indexes")
    for place, index in enumerate(given):
        if not isinstance(index, Index):
            raise InvalidArgument(f"indexes[{place}]", "must be an Index", type(index).__name__)
        text(index.name, f"indexes[{place}].name")
        flag(index.unique, f"indexes[{place}].unique")
    return given


def _parts(paths: Sequence[str], field: str) -> list[tables_pb2.KeyPart]:
    parsed = [parse_part(path, field) for path in texts(paths, field)]
    return [tables_pb2.KeyPart(path=path, descending=descending) for path, descending in parsed]


def _part_from_proto(part: tables_pb2.KeyPart) -> KeyPart:
    name = tables_pb2.KeyType.Name(part.type).removeprefix("KEY_TYPE_").lower()
    return KeyPart(part.path, KeyType(name), part.descending)
