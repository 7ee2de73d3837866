"""The client: a cluster, all of its services, for many threads at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Self

from cortado.errors import InvalidArgument
from cortado.proto.v1 import cluster_pb2, kv_pb2
from cortado.store.catalog.descriptors import TableDescriptor
from cortado.store.client.batch import Batch
from cortado.store.client.cluster import ClockReading, Membership, Status, clock_from_proto, status_from_proto
from cortado.store.client.connection import Connection, Environment, ReadFrom, check_timeout
from cortado.store.client.endpoints import Endpoints, Tls
from cortado.store.client.kv import KeyValue
from cortado.store.client.schemas import SchemaCache, Schemas
from cortado.store.client.table import Table
from cortado.store.client.tables import CheckReport, Index, TableCache, Tables
from cortado.store.client.values import At, timestamp_of
from cortado.store.clock.timestamp import Timestamp

DEFAULT_ENDPOINT = "127.0.0.1:7621"


class Client:
    """A connection to a cluster::

        with Client("10.0.0.1:7621,10.0.0.2:7621", timeout_s=5) as client:
            flights = client.table("flights.flights")
            for document in flights.scan(prefix="N14228", index="by_tailnum"):
                print(document.value)

    ``timeout_s`` bounds each call, all its retries included, and of a stream each wait for the next message. Reads and
    writes are repeated where that is safe; what cannot be decided in time is OutcomeUnknown, never a failure. All
    errors are :mod:`cortado.errors`. A client is safe to share between threads, and not to use after a fork.

    ``endpoint`` is one ``host:port``, or several (with commas between them, or a list); one that answers is enough to
    find the others. Calls go to the node that leads, which the client finds and follows. ``read_from`` "any" lets reads
    at a time (``at=``) go to any member; the newest is always read at the leader. ``tls`` encrypts the connections.
    Concurrent calls share messages on one stream; without ``coalesce`` each is a gRPC call of its own.
    """

    def __init__(
        self,
        endpoint: Endpoints = DEFAULT_ENDPOINT,
        *,
        timeout_s: float = 10.0,
        tls: Tls | None = None,
        read_from: ReadFrom = "leader",
        coalesce: bool = True,
        environment: Environment | None = None,
    ) -> None:
        self._timeout_s = check_timeout(timeout_s)
        self._connection = Connection(
            endpoint, tls=tls, read_from=read_from, coalesce=coalesce, environment=environment
        )
        self._schema_cache = SchemaCache()
        self._table_cache = TableCache()
        self._connection.on_other_cluster += [self._schema_cache.clear, self._table_cache.clear]

    def with_timeout(self, timeout_s: float) -> Client:
        """The same client with another timeout; both share the connection, and closing either closes it."""
        view = object.__new__(Client)
        view.__dict__.update(self.__dict__)
        view._timeout_s = check_timeout(timeout_s)
        return view

    @property
    def endpoint(self) -> str:
        """The endpoints that it was given, with commas between them."""
        return self._connection.endpoint

    def close(self) -> None:
        """Ends the connection; what is running ends with Cancelled."""
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    # --- services --------------------------------------------------------------------------------------------

    def kv(self, namespace: str) -> KeyValue:
        """The key-value API in a namespace, which needs no making."""
        return KeyValue(self._connection, namespace, timeout_s=self._timeout_s)

    @property
    def schemas(self) -> Schemas:
        """The schema registry."""
        return Schemas(self._connection, self._schema_cache, timeout_s=self._timeout_s)

    def table(self, full_name: str, *, schema_version: int | None = None) -> Table:
        """A handle of ``database.table``; asks the server for nothing yet.

        Documents are written and read with the subject's newest schema, or with ``schema_version``.
        """
        return Table(
            self._connection,
            self._tables,
            self.schemas,
            full_name,
            timeout_s=self._timeout_s,
            schema_version=schema_version,
        )

    def batch(self, database: str) -> Batch:
        """An atomic batch on the tables of ``database``; a context manager that commits at its end."""
        return Batch(self._connection, database, self.table, timeout_s=self._timeout_s)

    # --- databases and tables --------------------------------------------------------------------------------

    @property
    def _tables(self) -> Tables:
        return Tables(self._connection, self._table_cache, timeout_s=self._timeout_s)

    def create_database(self, name: str) -> None:
        """Raises AlreadyExists."""
        self._tables.create_database(name)

    def databases(self) -> list[str]:
        """All databases, by name."""
        return self._tables.databases()

    def create_table(
        self, full_name: str, key: Sequence[str], *, subject: str | None = None, indexes: Sequence[Index] = ()
    ) -> TableDescriptor:
        """Makes ``database.table`` with a primary key and indexes.

        ``key`` and the indexes' parts are field paths of the newest schema of ``subject`` (by default the table's full
        name), each perhaps followed by ``desc``. Raises NotFound (database, subject), AlreadyExists, InvalidArgument.
        """
        return self._tables.create(full_name, key, subject, indexes)

    def tables(self, database: str | None = None) -> list[TableDescriptor]:
        """The tables of a database, or of all. Raises NotFound."""
        return self._tables.list(database)

    def describe(self, full_name: str) -> TableDescriptor:
        """A table's key, subject and indexes as they are now. Raises NotFound."""
        return self._tables.describe(full_name)

    def check_table(
        self, full_name: str, *, at: At = None, progress: Callable[[int, int], None] | None = None
    ) -> CheckReport:
        """Proves that the table's indexes hold what its rows say, and nothing else, at one timestamp."""
        return self._tables.check(full_name, at, progress)

    # --- the node and its clock, the cluster and its nodes ---------------------------------------------------

    @property
    def membership(self) -> Membership:
        """Who belongs to the cluster, and the changes of that."""
        return Membership(self._connection, timeout_s=self._timeout_s)

    def status(self) -> Status:
        """What the node says of itself."""
        stub = self._connection.stubs.cluster
        return status_from_proto(
            self._connection.call(stub.Status, cluster_pb2.StatusRequest(), timeout_s=self._timeout_s)
        )

    def clock(self) -> ClockReading:
        """The node's clock."""
        stub = self._connection.stubs.cluster
        return clock_from_proto(
            self._connection.call(stub.Clock, cluster_pb2.ClockRequest(), timeout_s=self._timeout_s)
        )

    def now(self) -> Timestamp:
        """A timestamp to read at: what is committed by now is at or below it, what is written later above.

        It is that of a linearizable read, not the clock's: of a time above what is stored the server would know nothing
        after a crash, and if its clock then went back, a later write might come to stand below.
        """
        request = kv_pb2.KvGetRequest(namespace="now", key=b"now")
        reply = self._connection.call(self._connection.stubs.kv.Get, request, timeout_s=self._timeout_s)
        return timestamp_of(reply.header.timestamp)

    def bump_epoch(self, from_epoch: int) -> int:
        """Begins a new epoch, after which every timestamp sorts after every earlier one; returns it.

        Raises InvalidArgument where the epoch is not ``from_epoch`` any more.
        """
        if isinstance(from_epoch, bool) or not isinstance(from_epoch, int) or not 0 <= from_epoch < 1 << 16:
            raise InvalidArgument("from_epoch", "must be between 0 and 65535", repr(from_epoch))
        request = cluster_pb2.BumpEpochRequest(from_epoch=from_epoch)
        stub = self._connection.stubs.cluster
        epoch: int = self._connection.write(stub.BumpEpoch, request, timeout_s=self._timeout_s).epoch
        return epoch
