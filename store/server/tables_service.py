"""``cortado.v1.Tables``: databases, tables, indexes, and the proof that indexes agree with their rows."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import aclosing
from functools import partial
from typing import Final, TypeAlias

from google.protobuf.message import Message

from cortado.errors import InvalidArgument, InvalidPageToken, KeyLocked
from cortado.proto.v1 import tables_pb2 as pb
from cortado.store.auth.caller import CALLER, asking, seen_by
from cortado.store.auth.roles import Rights, database_resource, table_resource
from cortado.store.catalog.catalog import Catalog
from cortado.store.catalog.declare import (
    IndexDeclaration,
    PartDeclaration,
    TableAltered,
    TableCreated,
    TableTimes,
    alter_table,
    create_database,
    create_table,
)
from cortado.store.catalog.descriptors import Dropped, IndexDescriptor, TableDescriptor
from cortado.store.catalog.drop import (
    TableDropped,
    TableNamed,
    TableTruncated,
    drop_table,
    rename_table,
    truncate_table,
    undrop_table,
)
from cortado.store.catalog.drop_database import DatabaseDropped, DatabaseUndropped, drop_database, undrop_database
from cortado.store.clock.timestamp import ZERO, Timestamp
from cortado.store.keys.types import KeyPart, LogicalKey
from cortado.store.mvcc.evaluation import Evaluation
from cortado.store.mvcc.reader import Reader
from cortado.store.server.convert import dropped_message, read_at_text, timestamp_message
from cortado.store.server.listing import next_page
from cortado.store.server.service import Step
from cortado.store.server.sizes_service import SizesService
from cortado.store.tables.build import IndexBegun, IndexDropped, begin_build, drop_index
from cortado.store.tables.check import CheckPage, CheckPlan, CheckPosition, CheckProblem, check_step, plan_check
from cortado.store.tables.repair import REPAIRED_MAX, Repaired, evaluate_repair

Suspects: TypeAlias = deque[LogicalKey] | None
"""Keys that were found, and are to be repaired; None if no repair is wanted."""

REPLY_PROBLEMS_MAX: Final = 1_000
"""Each names a key or two: this number fits into a message."""
_NUMBER_DIGITS: Final = 10


class TablesService(SizesService):
    """The catalog's changes, and table check."""

    async def create_database(self, request: pb.CreateDatabaseRequest) -> bytes:
        return await self.change_catalog(
            request,
            lambda catalog, _: create_database(catalog, request.database),
            object,
            lambda _: pb.CreateDatabaseResponse(),
        )

    async def list_databases(self, _request: pb.ListDatabasesRequest) -> Message:
        """Return the databases that the caller may know of: those that it has no right in are left out."""
        read_ts, rights = await self.newest(), seen_by(CALLER.get())
        names = self.catalog(self.host.meta, read_ts).databases()
        seen = [each for each in names if rights is None or rights.sees(database_resource(each))]
        return pb.ListDatabasesResponse(header=self.header(read_ts), databases=seen)

    async def create_table(self, request: pb.CreateTableRequest) -> bytes:
        """Create a table; its key and indexes are checked against the newest version of the subject's schema. Raises
        InvalidArgument naming the part, AlreadyExists, NotFound (database, subject)."""
        key = _parts(request.key, "key")
        indexes = [_index_declaration(index, f"indexes[{i}]") for i, index in enumerate(request.indexes)]
        times = TableTimes(request.retention_ms, request.ttl_ms)

        def change(catalog: Catalog, commit_ts: Timestamp) -> Evaluation:
            return create_table(
                catalog,
                request.database,
                request.name,
                key=key,
                indexes=indexes,
                subject=request.subject,
                times=times,
                commit_ts=commit_ts,
            )

        return await self.change_catalog(
            request, change, TableCreated, lambda made: pb.CreateTableResponse(table=_table(made.table))
        )

    async def list_tables(self, request: pb.ListTablesRequest) -> Message:
        """Return a page of tables, decoded on the scan thread. All pages of a listing are of one timestamp."""
        replica, rights = self.host.meta, seen_by(CALLER.get())
        newest = await self.scan_ts(replica, request.at)
        is_of_now = request.at.WhichOneof("kind") is None
        # A rename that was acknowledged a moment ago hides a table already.
        now_ts = newest if is_of_now else await replica.reads.applied_to(replica.read_ts())

        def seen(ts: Timestamp, after: str) -> Iterator[TableDescriptor]:
            then = "" if is_of_now else str(ts)
            tables = Catalog(replica.store.snapshot(ts), then=then).tables_behind(after, request.database or None)
            if rights is None:
                return tables
            return _seen(tables, rights, None if is_of_now else Catalog(replica.store.snapshot(now_ts)))

        def page() -> tuple[Timestamp, Sequence[TableDescriptor], bytes]:
            return next_page(
                request,
                newest=newest,
                items=seen,
                name=lambda table: table.full_name,
                shape=[request.database, read_at_text(request.at)],
                size_bytes=lambda table: _table(table).ByteSize(),
            )

        # Ten thousand tables take long to decode.
        with self.host.process.reads.place():
            read_ts, tables, token = await self.host.process.scan(page)
        return pb.ListTablesResponse(header=self.header(read_ts), tables=map(_table, tables), next_page_token=token)

    async def describe_table(self, request: pb.DescribeTableRequest) -> Message:
        read_ts = await self.read_ts(self.host.meta, request.at)
        table = self.catalog_at(self.host.meta, read_ts, request.at).table(request.database, request.name)
        return pb.DescribeTableResponse(header=self.header(read_ts), table=_table(table))

    async def alter_table(self, request: pb.AlterTableRequest) -> bytes:
        """Change retention and TTL. A field that is not set is left as it is; 0 is a value. Raises InvalidArgument if
        neither is set."""
        retention_ms = request.retention_ms if request.HasField("retention_ms") else None
        ttl_ms = request.ttl_ms if request.HasField("ttl_ms") else None
        if retention_ms is None and ttl_ms is None:
            raise InvalidArgument("retention_ms", "or ttl_ms must be set: nothing else of a table is altered")

        def change(catalog: Catalog, _commit_ts: Timestamp) -> Evaluation:
            return alter_table(catalog, request.database, request.name, retention_ms=retention_ms, ttl_ms=ttl_ms)

        return await self.change_catalog(
            request, change, TableAltered, lambda altered: pb.AlterTableResponse(table=_table(altered.table))
        )

    # --- drops ---------------------------------------------------------------------------------------------------

    async def drop_table(self, request: pb.DropTableRequest) -> bytes:
        return await self.change_catalog(
            request,
            lambda catalog, ts: drop_table(catalog, request.database, request.name, commit_ts=ts),
            TableDropped,
            lambda gone: pb.DropTableResponse(dropped=dropped_message(gone.dropped)),
        )

    async def truncate_table(self, request: pb.TruncateTableRequest) -> bytes:
        """Empty a table. Its rows go to a dropped record, under which they can be undropped; the table has a new id
        from here on."""
        return await self.change_catalog(
            request,
            lambda catalog, ts: truncate_table(catalog, request.database, request.name, commit_ts=ts),
            TableTruncated,
            lambda done: pb.TruncateTableResponse(table=_table(done.table), dropped=dropped_message(done.dropped)),
        )

    async def rename_table(self, request: pb.RenameTableRequest) -> bytes:
        """Rename a table. With ``replaces``, a table of the new name is dropped in the same entry, so that every reader
        finds one."""

        def change(catalog: Catalog, commit_ts: Timestamp) -> Evaluation:
            names = request.database, request.name, request.new_name
            return rename_table(catalog, *names, replaces=request.replaces, commit_ts=commit_ts)

        def reply(named: TableNamed) -> Message:
            dropped = None if named.replaced is None else dropped_message(named.replaced)
            return pb.RenameTableResponse(table=_table(named.table), dropped=dropped)

        return await self.change_catalog(request, change, TableNamed, reply)

    async def undrop_table(self, request: pb.UndropTableRequest) -> bytes:
        """Bring back the newest table that was dropped under that name, or the one of ``number``. Raises NotFound,
        AlreadyExists."""

        def change(catalog: Catalog, commit_ts: Timestamp) -> Evaluation:
            number, as_name = request.number, request.as_name
            return undrop_table(
                catalog, request.database, request.name, number=number, as_name=as_name, commit_ts=commit_ts
            )

        return await self.change_catalog(
            request, change, TableNamed, lambda named: pb.UndropTableResponse(table=_table(named.table))
        )

    async def drop_database(self, request: pb.DropDatabaseRequest) -> bytes:
        """Drop a database. Without ``cascade``, raises InvalidArgument if it has tables."""

        def reply(gone: DatabaseDropped) -> Message:
            tables = [each.what.name for each in gone.tables]
            return pb.DropDatabaseResponse(dropped=dropped_message(gone.dropped), tables=tables)

        return await self.change_catalog(
            request,
            lambda catalog, ts: drop_database(catalog, request.database, cascade=request.cascade, commit_ts=ts),
            DatabaseDropped,
            reply,
        )

    async def undrop_database(self, request: pb.UndropDatabaseRequest) -> bytes:
        """Bring back a database, with the tables that were dropped together with it. The reply's ``cleared`` names
        tables that are being cleared, and stay away. Raises NotFound, AlreadyExists."""

        def change(catalog: Catalog, commit_ts: Timestamp) -> Evaluation:
            number, as_name = request.number, request.as_name
            return undrop_database(catalog, request.database, number=number, as_name=as_name, commit_ts=commit_ts)

        def reply(back: DatabaseUndropped) -> Message:
            tables = [each.full_name for each in back.tables]
            return pb.UndropDatabaseResponse(database=back.database, tables=tables, cleared=back.cleared)

        return await self.change_catalog(request, change, DatabaseUndropped, reply)

    async def list_dropped(self, request: pb.ListDroppedRequest) -> Message:
        """Return a page of records that can be undropped, in the order of their drops."""
        replica = self.host.meta
        newest = await replica.reads.applied_to(await self.newest())

        def page() -> tuple[Timestamp, Sequence[Dropped], bytes]:
            return next_page(
                request,
                newest=newest,
                items=lambda ts, after: Catalog(replica.store.snapshot(ts)).dropped_behind(_number(after)),
                name=lambda record: f"{record.number:0{_NUMBER_DIGITS}}",
            )

        with self.host.process.reads.place():
            read_ts, records, token = await self.host.process.scan(page)
        return pb.ListDroppedResponse(
            header=self.header(read_ts), dropped=map(dropped_message, records), next_page_token=token
        )

    # --- proof ---------------------------------------------------------------------------------------------------

    async def create_index(self, request: pb.CreateIndexRequest) -> bytes:
        """Begin to build an index; return when the job is committed, not when the index is built."""
        declaration, asked_by = _index_declaration(request.index, "index"), asking()
        return await self.change_catalog(
            request,
            lambda catalog, ts: begin_build(catalog, ts, request.database, request.table, declaration, asked_by()),
            IndexBegun,
            lambda begun: pb.CreateIndexResponse(table=_table(begun.table), job_id=begun.job.job_id),
        )

    async def drop_index(self, request: pb.DropIndexRequest) -> bytes:
        """Drop an index in any state; a job that builds it ends with the same entry."""
        return await self.change_catalog(
            request,
            lambda catalog, ts: drop_index(catalog, ts, request.database, request.table, request.index),
            IndexDropped,
            lambda gone: pb.DropIndexResponse(table=_table(gone.table)),
        )

    async def check_table(self, request: pb.CheckTableRequest) -> AsyncGenerator[bytes, None]:
        """Check rows and entries at one timestamp. With ``repair`` each page's suspects are repaired in the newest
        state before the page is sent. Raises InvalidArgument if ``at`` is set, too."""
        with self.host.process.scans.place():
            replica = self.host.replica_of_table(request.database, request.name)
            read_ts = await self.scan_ts(replica, request.at)
            catalog = await self.applied_catalog_at(replica, read_ts, request.at)
            plan = plan_check(catalog, request.database, request.name, read_ts)
            if request.repair and request.HasField("at"):
                raise InvalidArgument("at", "must not be set with repair, which works on the newest state")
            suspects: Suspects = deque() if request.repair else None
            put_right = pb.CheckTableResponse()
            async with aclosing(self.stream(self._step(plan, suspects, None, 0, 0))) as replies:
                async for reply in replies:
                    while suspects:
                        keys = [suspects.popleft() for _ in range(min(len(suspects), REPAIRED_MAX))]
                        await self._repair(plan, keys, put_right)
                    # Serialized messages that follow each other are one message.
                    yield reply + put_right.SerializeToString()

    async def _repair(self, plan: CheckPlan, keys: Sequence[LogicalKey], put_right: pb.CheckTableResponse) -> None:
        """Repair some suspects in the newest state; ``put_right`` counts the results. Keys that a large transaction has
        staged are left: its commit may repair them, and the others are not to wait for that."""
        table, replica = plan.view.table, self.host.replica_of(plan.ranges[0][0])

        def evaluate(reader: Reader, _commit_ts: Timestamp) -> Evaluation:
            return evaluate_repair(reader, replica.catalog(reader), table.database, table.name, keys)

        try:
            result = await replica.write(evaluate, size_bytes=sum(map(len, keys)))
        except KeyLocked:
            if len(keys) == 1:
                put_right.left += 1
                return
            # In halves, to find which.
            for half in (keys[: len(keys) // 2], keys[len(keys) // 2 :]):
                await self._repair(plan, half, put_right)
            return
        assert isinstance(result.value, Repaired)
        put_right.repaired += result.value.put + result.value.deleted
        put_right.left += result.value.left

    def _step(
        self, plan: CheckPlan, suspects: Suspects, position: CheckPosition | None, rows: int, entries: int
    ) -> Step:
        """Check a slice; ``rows`` and ``entries`` were checked before it."""
        replica = self.host.replica_of(plan.ranges[0][0])

        def step() -> tuple[bytes, Step | None]:
            page = check_step(replica.store, plan, position)
            if suspects is not None:
                suspects.extend(each.suspect for each in page.problems if each.suspect is not None)
            return self._told(
                plan, suspects, page, page.problems, rows + page.rows_checked, entries + page.entries_checked
            )

        return step

    def _told(
        self,
        plan: CheckPlan,
        suspects: Suspects,
        page: CheckPage,
        problems: Sequence[CheckProblem],
        rows: int,
        entries: int,
    ) -> tuple[bytes, Step | None]:
        """Return a reply with the findings of a slice, and the step that follows: further findings, or the next
        slice."""
        told, left = problems[:REPLY_PROBLEMS_MAX], problems[REPLY_PROBLEMS_MAX:]
        following: Step | None = None
        if left:
            following = partial(self._told, plan, suspects, page, left, rows, entries)
        elif page.next is not None:
            following = self._step(plan, suspects, page.next, rows, entries)
        reply = pb.CheckTableResponse(
            header=self.header(plan.read_ts),
            rows_checked=rows,
            entries_checked=entries,
            problems=map(_problem, told),
            done=following is None,
        )
        return reply.SerializeToString(), following


def _seen(tables: Iterator[TableDescriptor], rights: Rights, now: Catalog | None) -> Iterator[TableDescriptor]:
    """Yield the tables that the caller sees, by their names and by those that they have ``now``."""
    for each in tables:
        if rights.sees(table_resource(each.database, each.name)):
            newest = None if now is None else now.find_table_with(each.table_id, each.database, each.name)
            if newest is None or rights.sees(table_resource(newest.database, newest.name)):
                yield each


def _number(after: str) -> int:
    """Return the number of a drop; 0 before the first one. Raises InvalidPageToken."""
    if after and not (after.isascii() and after.isdigit() and len(after) <= _NUMBER_DIGITS):
        raise InvalidPageToken("page_token", "is not a page token of this list")
    return int(after or "0")


def _parts(parts: Sequence[pb.KeyPart], field: str) -> tuple[PartDeclaration, ...]:
    for i, part in enumerate(parts):
        if part.type != pb.KEY_TYPE_UNSPECIFIED:
            raise InvalidArgument(f"{field}[{i}].type", "must not be set: it follows from the schema", str(part.type))
    return tuple(PartDeclaration(part.path, part.descending) for part in parts)


def _index_declaration(index: pb.Index, field: str) -> IndexDeclaration:
    if index.index_id:
        raise InvalidArgument(f"{field}.index_id", "must not be set: the server gives it", str(index.index_id))
    for name in ("state", "ready", "job_id", "failure", "failed_keys"):
        if index.HasField("ready") if name == "ready" else getattr(index, name):
            raise InvalidArgument(f"{field}.{name}", "must not be set: the server says it")
    return IndexDeclaration(index.name, _parts(index.parts, f"{field}.parts"), index.unique)


def _table(table: TableDescriptor) -> pb.Table:
    return pb.Table(
        table_id=table.table_id,
        database=table.database,
        name=table.name,
        subject=table.subject,
        key=map(_part, table.key),
        indexes=map(_index, table.indexes),
        version=table.version,
        retention_ms=table.retention_ms,
        named=timestamp_message(table.named_ts),
        ttl_ms=table.ttl_ms,
    )


def _index(index: IndexDescriptor) -> pb.Index:
    return pb.Index(
        index_id=index.index_id,
        name=index.name,
        parts=map(_part, index.parts),
        unique=index.unique,
        state=f"INDEX_STATE_{index.state.name}",
        ready=None if index.ready_ts == ZERO else timestamp_message(index.ready_ts),
        job_id=index.job_id,
        failure=index.failure,
        failed_keys=index.failed_keys,
    )


def _part(part: KeyPart) -> pb.KeyPart:
    return pb.KeyPart(path=part.path, type=f"KEY_TYPE_{part.type.name}", descending=part.descending)


def _problem(problem: CheckProblem) -> pb.CheckProblem:
    return pb.CheckProblem(index=problem.index, kind=str(problem.kind), key=problem.key, message=problem.message)
