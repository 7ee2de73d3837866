"""The synchronous client: :class:`AsyncClient`, driven by whichever thread calls it."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from copy import copy
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, cast, overload

from cortado.errors import InvalidArgument
from cortado.store.client.async_client import AsyncClient
from cortado.store.client.authorization import TokenSource
from cortado.store.client.blocking.drive import run
from cortado.store.client.blocking.forward import forwards
from cortado.store.client.blocking.kv import KeyValue
from cortado.store.client.blocking.runtime import BlockingRuntime
from cortado.store.client.cluster import ClockReading, Status
from cortado.store.client.connection import ReadFrom
from cortado.store.client.endpoints import Endpoints, Tls
from cortado.store.client.reach import reached
from cortado.store.client.runtime import Environment
from cortado.store.client.transaction_runs import T
from cortado.store.client.values import At, Times
from cortado.store.clock.timestamp import Timestamp

if TYPE_CHECKING:
    from cortado.store.catalog.descriptors import IndexDescriptor, TableDescriptor
    from cortado.store.client.blocking.admin import Admin
    from cortado.store.client.blocking.holds import Hold
    from cortado.store.client.blocking.large_transactions import LargeTransaction, LargeTransactions
    from cortado.store.client.blocking.schemas import Schemas
    from cortado.store.client.blocking.table import Table
    from cortado.store.client.blocking.transaction import Transaction
    from cortado.store.client.documents import D
    from cortado.store.client.drops import DroppedDatabase, DropRecord, UndroppedDatabase
    from cortado.store.client.jobs import Job
    from cortado.store.client.table import AsyncTable
    from cortado.store.client.tables import CheckReport, Index
    from cortado.store.client.transaction import AsyncTransaction, Isolation


@forwards(AsyncClient)
class Client:
    """A connection to a cluster::

        with Client("10.0.0.1:7621,10.0.0.2:7621", timeout_s=5) as client:
            flights = client.table("flights.flights")
            for document in flights.scan(prefix="N14228", index="by_tailnum"):
                print(document.value)

    ``timeout_s`` bounds each call, all its retries included, and of a stream each wait for the next message. Reads and
    writes are repeated if that is safe; a write undecided in time raises OutcomeUnknown, never a failure. All
    errors are :mod:`cortado.errors`. A client is safe to share between threads, and not to use after a fork.

    ``endpoint`` is one ``host:port``, or several (with commas between them, or a list); one that answers is enough to
    find the others. Without it the command line's variables name the cluster and the caller's identity
    (:mod:`cortado.store.settings.reach`); without those it is 127.0.0.1:7621. Calls go to the node that leads, which
    the client finds and follows. ``read_from`` "any" lets reads at a time (``at=``) go to any member; the newest is
    always read at the leader. ``tls`` encrypts the connections.
    ``token`` identifies the caller if the cluster has roles: its text, or the ``Path`` of a file that holds it.
    Concurrent calls share messages on one stream; without ``coalesce`` each is a gRPC call of its own.
    A field refuses a time that is finer than it keeps. With ``times`` "truncate" such a time is truncated towards the
    past, in documents, keys and bounds alike.
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
        self._core = AsyncClient._of(
            BlockingRuntime(environment),
            endpoint,
            timeout_s=timeout_s,
            tls=tls,
            token=token,
            read_from=read_from,
            coalesce=coalesce,
            times=times,
        )

    def __repr__(self) -> str:
        return repr(self._core).removeprefix("Async")

    def with_timeout(self, timeout_s: float) -> Self:
        return self._view(self._core.with_timeout(timeout_s))

    def without_cache(self) -> Self:
        return self._view(self._core.without_cache())

    def at(self, at: At) -> Self:
        return self._view(self._core.at(at))

    def snapshot(self, *, stale_ms: int | None = None) -> Self:
        return self._view(self._core.snapshot(stale_ms=stale_ms))

    def new_request_id(self) -> bytes:
        return run(self._core.new_request_id())

    def with_request_id(self, request_id: bytes) -> Self:
        return self._view(self._core.with_request_id(request_id))

    def _view(self, core: AsyncClient) -> Self:
        view = copy(self)
        view._core = core
        return view

    @property
    def endpoint(self) -> str:
        return self._core.endpoint

    def close(self) -> None:
        run(self._core.close())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    # --- services --------------------------------------------------------------------------------------------

    def kv(self, namespace: str) -> KeyValue:
        return KeyValue(self._core.kv(namespace))

    @property
    def schemas(self) -> Schemas:
        from cortado.store.client.blocking.schemas import Schemas

        return Schemas(self._core.schemas)

    @overload
    def table(self, full_name: str, *, schema_version: int | None = None) -> Table: ...

    @overload
    def table(self, full_name: str, *, schema_version: int | None = None, document_type: type[D]) -> Table[D]: ...

    def table(
        self, full_name: str, *, schema_version: int | None = None, document_type: type[Any] | None = None
    ) -> Table[Any]:
        from cortado.store.client.blocking.table import Table

        core: AsyncTable[Any] = self._core.table(
            full_name, schema_version=schema_version, document_type=cast("type[Any]", document_type)
        )
        return Table(core)

    # --- transactions ----------------------------------------------------------------------------------------

    def transaction(self, *, isolation: Isolation = "snapshot") -> Transaction:
        from cortado.store.client.blocking.transaction import Transaction

        return Transaction(self._core.transaction(isolation=isolation))

    def run(
        self, fn: Callable[[Transaction], T], *, isolation: Isolation = "snapshot", attempts: int | None = None
    ) -> T:
        from cortado.store.client.blocking.transaction import Transaction

        async def awaited(core: AsyncTransaction) -> T:
            result = fn(Transaction(core))
            if isinstance(result, Coroutine):
                result.close()
                raise InvalidArgument("fn", "must be no coroutine function: those are for AsyncClient")
            return result

        return run(self._core.run(awaited if callable(fn) else fn, isolation=isolation, attempts=attempts))

    def large_transaction(self, tables: Sequence[str], *, label: str = "", ttl_s: float = 60.0) -> LargeTransaction:
        from cortado.store.client.blocking.large_transactions import LargeTransaction

        return LargeTransaction(self._core.large_transaction(tables, label=label, ttl_s=ttl_s))

    @property
    def large_transactions(self) -> LargeTransactions:
        from cortado.store.client.blocking.large_transactions import LargeTransactions

        return LargeTransactions(self._core.large_transactions)

    # --- holds -----------------------------------------------------------------------------------------------

    def hold(self, at: At = None, *, label: str = "", ttl_s: float = 60.0, shared: bool = False) -> Hold:
        from cortado.store.client.blocking.holds import Hold

        return Hold(self._core.hold(at, label=label, ttl_s=ttl_s, shared=shared))

    @property
    def admin(self) -> Admin:
        from cortado.store.client.blocking.admin import Admin

        return Admin(self._core.admin)

    # --- databases and tables --------------------------------------------------------------------------------

    def create_database(self, name: str) -> None:
        run(self._core.create_database(name))

    def databases(self) -> list[str]:
        return run(self._core.databases())

    def create_table(
        self,
        full_name: str,
        key: Sequence[str],
        *,
        subject: str | None = None,
        indexes: Sequence[Index] = (),
        retention_ms: int = 0,
        ttl_ms: int = 0,
    ) -> TableDescriptor:
        times = {"retention_ms": retention_ms, "ttl_ms": ttl_ms}
        return run(self._core.create_table(full_name, key, subject=subject, indexes=indexes, **times))

    def alter_table(
        self, full_name: str, *, retention_ms: int | None = None, ttl_ms: int | None = None
    ) -> TableDescriptor:
        return run(self._core.alter_table(full_name, retention_ms=retention_ms, ttl_ms=ttl_ms))

    def drop_table(self, full_name: str) -> DropRecord:
        return run(self._core.drop_table(full_name))

    def truncate_table(self, full_name: str) -> DropRecord:
        return run(self._core.truncate_table(full_name))

    def rename_table(
        self, full_name: str, new_name: str, *, replaces: TableDescriptor | None = None
    ) -> TableDescriptor:
        return run(self._core.rename_table(full_name, new_name, replaces=replaces))

    def undrop_table(self, full_name: str, *, as_name: str | None = None, number: int | None = None) -> TableDescriptor:
        return run(self._core.undrop_table(full_name, as_name=as_name, number=number))

    def drop_database(self, name: str, *, cascade: bool = False) -> DroppedDatabase:
        return run(self._core.drop_database(name, cascade=cascade))

    def undrop_database(self, name: str, *, as_name: str | None = None, number: int | None = None) -> UndroppedDatabase:
        return run(self._core.undrop_database(name, as_name=as_name, number=number))

    def namespaces(self) -> list[str]:
        return run(self._core.namespaces())

    def drop_namespace(self, namespace: str) -> DropRecord:
        return run(self._core.drop_namespace(namespace))

    def undrop_namespace(self, namespace: str, *, number: int | None = None) -> None:
        run(self._core.undrop_namespace(namespace, number=number))

    def dropped(self) -> list[DropRecord]:
        return run(self._core.dropped())

    def tables(self, database: str | None = None) -> list[TableDescriptor]:
        return run(self._core.tables(database))

    def describe(self, full_name: str) -> TableDescriptor:
        return run(self._core.describe(full_name))

    def verify_indexes(
        self, full_name: str, *, at: At = None, progress: Callable[[int, int], None] | None = None, repair: bool = False
    ) -> CheckReport:
        return run(self._core.verify_indexes(full_name, at=at, progress=progress, repair=repair))

    def create_index(
        self,
        full_name: str,
        index: Index,
        *,
        wait: bool = True,
        progress: Callable[[Job], None] | None = None,
    ) -> IndexDescriptor:
        return run(self._core.create_index(full_name, index, wait=wait, progress=progress))

    def drop_index(self, full_name: str, name: str) -> None:
        run(self._core.drop_index(full_name, name))

    def indexes(self, full_name: str) -> tuple[IndexDescriptor, ...]:
        return run(self._core.indexes(full_name))

    # --- the node and its clock, the cluster and its nodes ---------------------------------------------------

    def status(self, address: str | None = None) -> Status:
        return run(self._core.status(address))

    def clock(self, address: str | None = None) -> ClockReading:
        return run(self._core.clock(address))

    def now(self) -> Timestamp:
        return run(self._core.now())
