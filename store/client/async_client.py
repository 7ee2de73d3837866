"""The client: a cluster, all of its services, for many callers at once. The core of both faces, and the asyncio one.

Modules of tables and schemas are imported when a table or a schema is asked for: a client of pairs loads none of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, Unpack, overload

from cortado.errors import InvalidArgument
from cortado.proto.v1 import cluster_pb2, common_pb2
from cortado.store.client.admin import AsyncAdmin
from cortado.store.client.aio.runtime import AsyncioRuntime
from cortado.store.client.arguments import callback, check_timeout, flag, shown, whole
from cortado.store.client.authorization import TokenSource
from cortado.store.client.caches import PerCaller, SchemaCache, TableCache
from cortado.store.client.client_transactions import ClientTransactions
from cortado.store.client.cluster import ClockReading, Status, clock_from_proto, status_from_proto
from cortado.store.client.connection import Connection, ConnectionOptions, ReadFrom
from cortado.store.client.endpoints import Endpoints, Tls, check_endpoint, parse_endpoints
from cortado.store.client.kv import AsyncKeyValue
from cortado.store.client.public_faces import public_face
from cortado.store.client.reach import reached
from cortado.store.client.request_ids import REQUEST_ID_BYTES
from cortado.store.client.runtime import Environment, Runtime
from cortado.store.client.transaction_runs import Pace
from cortado.store.client.values import At, Times, at_to_proto, timestamp_of
from cortado.store.client.views import Past, Snapshot, View
from cortado.store.clock.timestamp import Timestamp

if TYPE_CHECKING:
    from cortado.store.catalog.descriptors import IndexDescriptor, TableDescriptor
    from cortado.store.client.documents import D
    from cortado.store.client.drops import DroppedDatabase, DropRecord, UndroppedDatabase
    from cortado.store.client.holds import AsyncHold
    from cortado.store.client.jobs import Job
    from cortado.store.client.known_schemas import SchemaVersion
    from cortado.store.client.namespaces import AsyncNamespaces
    from cortado.store.client.schemas import AsyncSchemas
    from cortado.store.client.stubs import Method
    from cortado.store.client.table import AsyncTable
    from cortado.store.client.tables import AsyncTables, CheckReport, Index

_STALE_MS_MAX = (1 << 32) - 1


@public_face
class AsyncClient(ClientTransactions):
    """A connection to a cluster, for asyncio::

        async with AsyncClient("10.0.0.1:7621,10.0.0.2:7621", timeout_s=5) as client:
            flights = client.table("flights.flights")
            async for document in flights.scan(prefix="N14228", index="by_tailnum"):
                print(document.value)

    ``timeout_s`` bounds each call, all its retries included, and of a stream each wait for the next message. Reads and
    writes are repeated if that is safe; a write undecided in time raises OutcomeUnknown, never a failure. All
    errors are :mod:`cortado.errors`.

    ``endpoint`` is one ``host:port``, or several (with commas between them, or a list); one that answers is enough to
    find the others. Without it the command line's variables name the cluster and the caller's identity
    (:mod:`cortado.store.settings.reach`); without those it is 127.0.0.1:7621. Calls go to the node that leads, which
    the client finds and follows. ``read_from`` "any" lets reads at a time (``at=``) go to any member; the newest is
    always read at the leader. ``tls`` encrypts the connections.
    ``token`` identifies the caller if the cluster has roles: its text, or the ``Path`` of a file that holds it.
    Concurrent calls share messages on one stream; without ``coalesce`` each is a gRPC call of its own.
    A field refuses a time that is finer than it keeps. With ``times`` "truncate" such a time is truncated towards the
    past, in documents, keys and bounds alike.

    The client belongs to the loop in which it is first used. If a call's task is cancelled, the server cancels it too;
    a write that was cancelled may or may not have happened.
    """

    def __init__(
        self,
        endpoint: Endpoints | None = None,
        *,
        timeout_s: float = 10.0,
        tls: Tls | None = None,
        token: TokenSource | None = None,
        read_from: ReadFrom = "leader",
        coalesce: bool = True,
        times: Times = "exact",
        environment: Environment | None = None,
    ) -> None:
        endpoint, tls, token = reached(endpoint, tls, token)
        options = ConnectionOptions(tls=tls, token=token, read_from=read_from, coalesce=coalesce, times=times)
        self._over(AsyncioRuntime(environment), endpoint, timeout_s, options)

    @classmethod
    def _of(
        cls, runtime: Runtime, endpoint: Endpoints, *, timeout_s: float, **options: Unpack[ConnectionOptions]
    ) -> Self:
        """Return the core over another runtime."""
        core = cls.__new__(cls)
        core._over(runtime, endpoint, timeout_s, options)
        return core

    def _over(self, runtime: Runtime, endpoint: Endpoints, timeout_s: float, options: ConnectionOptions) -> None:
        self._timeout_s = check_timeout(timeout_s)
        self._connection = Connection(endpoint, runtime, **options)
        self._endpoints = parse_endpoints(endpoint)
        self._schema_cache: PerCaller[SchemaCache[SchemaVersion]] = PerCaller(SchemaCache)
        self._table_cache = PerCaller(TableCache)
        self._pace = Pace(runtime)
        self._connection.on_other_cluster += [self._schema_cache.clear, self._table_cache.clear]

    def with_timeout(self, timeout_s: float) -> Self:
        """Return the same client with another timeout; both share the connection, and closing either closes it."""
        view = copy(self)
        view._timeout_s = check_timeout(timeout_s)
        return view

    def without_cache(self) -> Self:
        """Return the same client with an empty cache of tables, for another job; closing either closes both."""
        view = copy(self)
        view._table_cache = PerCaller(TableCache)
        return view

    def at(self, at: At) -> Self:
        """Return the same client, read-only: it reads at that time, except in calls that name another one.

        ``at`` is a timestamp, its text, a ``datetime`` with a time zone (or its text), or how stale answers may be.
        Views share the connection, and closing one closes all. Writing raises Unsupported. Raises InvalidArgument.
        """
        past = at_to_proto(at)
        if past is None:
            raise InvalidArgument("at", "must be given")
        return self._then(Past(past))

    def snapshot(self, *, stale_ms: int | None = None) -> Self:
        """Return the same client, read-only: it reads at one timestamp, that of its first read.

        That read is linearizable. With ``stale_ms`` any member may serve it, from a state that has all writes
        acknowledged that many milliseconds ago or earlier. Otherwise as :meth:`at`.
        """
        self._connection.check_present("a snapshot")
        first = common_pb2.ReadAt()
        if stale_ms is not None:
            first.stale_ms = whole(stale_ms, "stale_ms", 1, _STALE_MS_MAX)
        return self._then(Snapshot(first, self._connection.runtime.lock()))

    async def new_request_id(self) -> bytes:
        """Return an id for one write, 20 bytes, unique. It is good as long as the cluster remembers results:
        ``limit.remember-ms``, some minutes, and less if very many are written."""
        return await self._connection.new_request_id(self._timeout_s)

    def with_request_id(self, request_id: bytes) -> Self:
        """Return the same client for one write with this id. Repeated, also by another process, the write has no second
        effect and returns its first result. An application can store the id with its own task.

        Another write with the same id is refused with InvalidArgument, one that the cluster may have forgotten with
        OutcomeUnknown. Views share the connection. Raises InvalidArgument if ``request_id`` is not an id.
        """
        if not isinstance(request_id, bytes) or len(request_id) != REQUEST_ID_BYTES:
            raise InvalidArgument("request_id", f"must be {REQUEST_ID_BYTES} bytes", shown(request_id))
        self._connection.check_present("a write with an id")
        view = copy(self)
        view._connection = self._connection.under(request_id)
        return view

    async def _open_call(self, method: Method, request: Any) -> Any:
        """Return the reply to a ready request of any unary method. A write without an id gets a new one."""
        if not hasattr(request, "request_id"):
            # If a change gets no reply, its outcome is unknown: that is not a failure.
            return await self._connection.call(method, request, timeout_s=self._timeout_s, changes=method.changes)
        if request.request_id:
            return await self._connection.call(method, request, timeout_s=self._timeout_s)
        return await self._connection.write(method, request, timeout_s=self._timeout_s)

    async def _open_call_at(self, address: str, method: Method, request: Any) -> Any:
        """Send as :meth:`_open_call`, in one attempt to the node at this address, the leader or not."""
        return await self._connection.ask_node(address, method, request, timeout_s=self._timeout_s)

    def _then(self, view: View) -> Self:
        """Return a view of one time, at which names of tables may mean others than now."""
        return self._through(view).without_cache()

    @property
    def endpoint(self) -> str:
        """The endpoints that it was given, with commas between them."""
        return self._connection.endpoint

    async def close(self) -> None:
        """End the connection: calls in progress end with Cancelled, writes that were sent with OutcomeUnknown."""
        await self._connection.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()

    # --- services --------------------------------------------------------------------------------------------

    def kv(self, namespace: str) -> AsyncKeyValue:
        """Return the key-value API of a namespace, which exists without being made."""
        return AsyncKeyValue(self._connection, namespace, timeout_s=self._timeout_s)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({','.join(self._endpoints)!r}, timeout_s={self._timeout_s:g})"

    @property
    def schemas(self) -> AsyncSchemas:
        """The schema registry."""
        from cortado.store.client.schemas import AsyncSchemas

        return AsyncSchemas(self._connection, self._schema_cache.here(), timeout_s=self._timeout_s)

    @overload
    def table(self, full_name: str, *, schema_version: int | None = None) -> AsyncTable: ...

    @overload
    def table(self, full_name: str, *, schema_version: int | None = None, document_type: type[D]) -> AsyncTable[D]: ...

    def table(
        self, full_name: str, *, schema_version: int | None = None, document_type: type[Any] | None = None
    ) -> AsyncTable[Any]:
        """Return a handle of ``database.table``; asks the server for nothing yet.

        Documents are written and read with the subject's newest schema, or with ``schema_version``. They are dicts, or
        instances of ``document_type``, a dataclass or a TypedDict. If that does not fit the schema, the first call
        raises InvalidArgument with the field.
        """
        from cortado.store.client.known_schemas import KnownSchemas
        from cortado.store.client.table import AsyncTable

        return AsyncTable(
            self._connection,
            self._tables,
            KnownSchemas(self._connection, self._schema_cache.here(), timeout_s=self._timeout_s),
            full_name,
            timeout_s=self._timeout_s,
            schema_version=schema_version,
            document_type=document_type,
        )

    # --- holds -----------------------------------------------------------------------------------------------

    def hold(self, at: At = None, *, label: str = "", ttl_s: float = 60.0, shared: bool = False) -> AsyncHold:
        """Return a context manager that keeps versions readable at a time, and at all later ones, from being collected.

        ``at`` is a timestamp, its text, or a ``datetime`` with a time zone (or its text); None for the newest, which
        :attr:`AsyncHold.timestamp` tells. ``label`` tells operators who reads and why, when they look for the use of
        the disk. The hold ends if the cluster hears nothing of its holder for ``ttl_s``, 1 to 600 seconds. Entering it
        raises SnapshotTooOld, TimestampInFuture, and ResourceExhausted if there are too many.

        With ``shared`` all callers, of any process, that ask for the same timestamp, label and ``ttl_s`` keep one
        hold. It does not end with a block, but once none of them has been heard of for ``ttl_s``.
        """
        from cortado.store.client.holds import AsyncHold

        self._connection.check_present("a hold")
        return AsyncHold(self._connection, at, label=label, ttl_s=ttl_s, shared=shared, timeout_s=self._timeout_s)

    @property
    def admin(self) -> AsyncAdmin:
        """The calls for operators: members, backups, roles, quotas, jobs, garbage collection, sizes."""
        return AsyncAdmin(self._connection, timeout_s=self._timeout_s)

    # --- databases and tables --------------------------------------------------------------------------------

    @property
    def _namespaces(self) -> AsyncNamespaces:
        from cortado.store.client.namespaces import AsyncNamespaces

        return AsyncNamespaces(self._connection, timeout_s=self._timeout_s)

    @property
    def _tables(self) -> AsyncTables:
        from cortado.store.client.tables import AsyncTables

        return AsyncTables(self._connection, self._table_cache.here(), timeout_s=self._timeout_s)

    async def create_database(self, name: str) -> None:
        """Create a database. Raises AlreadyExists."""
        await self._tables.create_database(name)

    async def databases(self) -> list[str]:
        """Return all databases, by name."""
        return await self._tables.databases()

    async def create_table(
        self,
        full_name: str,
        key: Sequence[str],
        *,
        subject: str | None = None,
        indexes: Sequence[Index] = (),
        retention_ms: int = 0,
        ttl_ms: int = 0,
    ) -> TableDescriptor:
        """Create ``database.table`` with a primary key and indexes.

        ``key`` and the indexes' parts are field paths of the newest schema of ``subject`` (by default the table's full
        name), each perhaps followed by ``desc``. Old versions are kept for ``retention_ms``, from 1,000 on; 0: as long
        as the cluster keeps them; -1: for ever. Documents expire ``ttl_ms`` after their commit, 0 never, unless their
        write says otherwise. Raises NotFound (database, subject), AlreadyExists, InvalidArgument.
        """
        return await self._tables.create(full_name, key, subject, indexes, retention_ms, ttl_ms)

    async def alter_table(
        self, full_name: str, *, retention_ms: int | None = None, ttl_ms: int | None = None
    ) -> TableDescriptor:
        """Change how long a table keeps old versions, and after what time new rows expire, as :meth:`create_table`;
        None: as before. Raises NotFound, InvalidArgument."""
        return await self._tables.alter(full_name, retention_ms, ttl_ms)

    async def drop_table(self, full_name: str) -> DropRecord:
        """Drop a table. Reads at an earlier time still find it, and it may be undropped, until its grace is over: the
        time for which its old versions are kept. Raises NotFound."""
        return await self._tables.drop(full_name)

    async def truncate_table(self, full_name: str) -> DropRecord:
        """Put an empty table in the place of a table. The old one may be undropped under another name. Raises
        NotFound."""
        return await self._tables.truncate(full_name)

    async def rename_table(
        self, full_name: str, new_name: str, *, replaces: TableDescriptor | None = None
    ) -> TableDescriptor:
        """Rename a table within its database.

        The table ``replaces``, as :meth:`describe` gave it, has that name until then, and is dropped in the same
        commit: readers find the one or the other. Raises NotFound, and AlreadyExists if a table has the new name, or
        another one than ``replaces``.
        """
        return await self._tables.rename(full_name, new_name, replaces)

    async def undrop_table(
        self, full_name: str, *, as_name: str | None = None, number: int | None = None
    ) -> TableDescriptor:
        """Bring back the table that was dropped last under that name, or the one of a record's ``number``, with its
        rows and indexes; in its database, under ``as_name`` if its own is taken.

        Raises NotFound, AlreadyExists, and InvalidArgument if the grace is over.
        """
        return await self._tables.undrop(full_name, as_name, number)

    async def drop_database(self, name: str, *, cascade: bool = False) -> DroppedDatabase:
        """Drop a database; with ``cascade`` its tables, too, at most 1,000.

        Raises NotFound, InvalidArgument if it has tables, TooLarge.
        """
        return await self._tables.drop_database(name, cascade=cascade)

    async def undrop_database(
        self, name: str, *, as_name: str | None = None, number: int | None = None
    ) -> UndroppedDatabase:
        """Bring back a database, and the tables that were dropped with it. Raises NotFound, AlreadyExists."""
        return await self._tables.undrop_database(name, as_name, number)

    async def namespaces(self) -> list[str]:
        """Return the names of all namespaces that have pairs, in order."""
        return await self._namespaces.names()

    async def drop_namespace(self, namespace: str) -> DropRecord:
        """Drop all pairs of a namespace at once. Reads at an earlier time still find them, and they may be
        undropped, until the grace is over: the time for which the cluster keeps old versions. Raises NotFound."""
        return await self._namespaces.drop(namespace)

    async def undrop_namespace(self, namespace: str, *, number: int | None = None) -> None:
        """Bring back the pairs that were dropped last, or those of a record's ``number``, with their history.

        Raises NotFound, AlreadyExists if there are pairs, and InvalidArgument if the grace is over.
        """
        await self._namespaces.undrop(namespace, number)

    async def dropped(self) -> list[DropRecord]:
        """Return the drops that are not cleared yet, oldest first."""
        return await self._tables.dropped()

    async def tables(self, database: str | None = None) -> list[TableDescriptor]:
        """Return the tables of a database, or of all. Raises NotFound."""
        return await self._tables.list(database)

    async def describe(self, full_name: str) -> TableDescriptor:
        """Return a table's key, subject and indexes as they are now, or at the time of a view. Raises NotFound."""
        return await self._tables.describe(full_name)

    async def verify_indexes(
        self, full_name: str, *, at: At = None, progress: Callable[[int, int], None] | None = None, repair: bool = False
    ) -> CheckReport:
        """Verify that the table's indexes hold exactly the entries of its rows, at one timestamp.

        With ``repair``, which excludes ``at``, missing entries are put and stray ones deleted, in the newest state.
        """
        return await self._tables.check(full_name, at, progress, repair)

    async def create_index(
        self,
        full_name: str,
        index: Index,
        *,
        wait: bool = True,
        progress: Callable[[Job], None] | None = None,
    ) -> IndexDescriptor:
        """Create an index of a table, which may have rows and be written to meanwhile.

        Returns when it can be read; with ``wait=False`` at once, and ``client.admin.jobs`` tells how far it is.
        ``progress`` is told of the job while this waits. Raises NotFound, AlreadyExists, InvalidArgument. Raises
        IndexNotReady if it could not be built, as when two rows share a value of a unique one: it is there, and has to
        be dropped.
        """
        callback(progress, "progress")
        started, job_id = await self._tables.create_index(full_name, index)
        if not flag(wait, "wait"):
            return started
        await self.admin.jobs.wait(job_id, progress)
        return await self._tables.built(full_name, started)

    async def drop_index(self, full_name: str, name: str) -> None:
        """Drop an index, also one that is being built. Raises NotFound."""
        await self._tables.drop_index(full_name, name)

    async def indexes(self, full_name: str) -> tuple[IndexDescriptor, ...]:
        """Return a table's indexes as they are now, each with its state. Raises NotFound."""
        return (await self._tables.describe(full_name)).indexes

    # --- the node and its clock, the cluster and its nodes ---------------------------------------------------

    async def status(self, address: str | None = None) -> Status:
        """Return the status of one node, the leader or not: the one at ``address``, by default the first of this
        client's endpoints that answers. Raises InvalidArgument, Unavailable, DeadlineExceeded."""
        return status_from_proto(
            await self._ask(self._connection.stubs.cluster.Status, cluster_pb2.StatusRequest(), address)
        )

    async def clock(self, address: str | None = None) -> ClockReading:
        """Return the clock of one node, which is found as by :meth:`status`."""
        return clock_from_proto(
            await self._ask(self._connection.stubs.cluster.Clock, cluster_pb2.ClockRequest(), address)
        )

    async def _ask(self, method: Method, request: Any, address: str | None) -> Any:
        if address is None:
            return await self._connection.call(method, request, timeout_s=self._timeout_s, of_endpoint=True)
        return await self._open_call_at(check_endpoint(address), method, request)

    async def now(self) -> Timestamp:
        """Return a timestamp to read at: commits until now are at or below it, later writes above.

        A view of the past returns the time that it reads at.

        The timestamp is that of a linearizable read, not the clock's. After a crash the server would not know of a time
        above its stored ones. If its clock then went back, a later write might get a timestamp below that time.
        """
        stub, request = self._connection.stubs.cluster.Clock, cluster_pb2.ClockRequest(is_read=True)
        reply = await self._connection.call(stub, request, timeout_s=self._timeout_s)
        return timestamp_of(reply.header.timestamp)
