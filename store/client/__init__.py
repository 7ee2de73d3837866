'''The Python client: :class:`Client` and :class:`AsyncClient`, and the values that they take and give.

It needs grpcio and protobuf, and nothing of the server. numpy and pyarrow are imported when Arrow is asked
for (:meth:`Table.scan_arrow`, :meth:`Table.bulk_arrow`), pandas and polars for data frames, and not before.

Two faces, one core::

    Client   Table   KeyValue ...       forwarders, in blocking/: run(self._core.get(key))
       │ drive
    AsyncClient   AsyncTable ...        the core, and the asyncio face: async def get(key)
       │ await
    Connection, Channel, LeaderSearch   how a call is made, where, repeated and ended
       │                                (through a View: the time of reads, and whether writes wait for a commit)
       │ await
    Runtime                             blocking/ (threads) or aio/ (a loop)

How a service is added, here one named Things with a call and a stream:

1.  ``stubs.py``: a line that names the service's methods.
2.  ``things.py``: the core, documented in full. It awaits nothing but the connection and other parts of the core::

        class AsyncThings:
            """The things of a cluster."""

            def __init__(self, connection: Connection, *, timeout_s: float) -> None: ...

            async def get(self, name: str) -> Thing:
                """Return the thing. Raises NotFound."""
                request = things_pb2.GetRequest(name=text(name, "name"))
                reply = await self._connection.call(self._stub.Get, request, timeout_s=self._timeout_s)
                return _thing(reply)

            def scan(self, *, limit: int | None = None) -> AsyncIterator[Thing]:
                """Yield all things. Closing the iterator stops the server's work."""
                return items(self.scan_pages(limit=limit))

            def scan_pages(self, *, limit: int | None = None) -> AsyncGenerator[Iterable[Thing], None]:
                """Yield pages of things as they come; otherwise as :meth:`scan`."""
                return self._pages(things_pb2.ScanRequest(limit=check_limit(limit)))

            async def _pages(self, request: things_pb2.ScanRequest) -> AsyncGenerator[Iterable[Thing], None]:
                replies = self._connection.replies(self._stub.Scan, request, timeout_s=self._timeout_s)
                async with aclosing(replies):  # always: a generator that is left open goes on at the server
                    async for reply in replies:
                        yield map(_thing, reply.things)

    A write is ``self._connection.write``, which gives it a request id; a stream that both sides send on is
    ``self._connection.stream`` (as in ``bulk.py``). Items come in pages: a step of a generator costs more than most
    items.

3.  ``blocking/things.py``: the forwarder, with the same names and parameters, and no text of its own::

        @forwards(AsyncThings)
        class Things:
            """The things of a cluster."""

            def __init__(self, core: AsyncThings) -> None:
                self._core = core

            def get(self, name: str) -> Thing:
                return run(self._core.get(name))

            def scan(self, *, limit: int | None = None) -> Iterator[Thing]:
                return each(self._core.scan_pages(limit=limit))

4.  A property or a method in both ``async_client.py`` and ``client.py``, and the names below.

A test compares the faces, name by name and parameter by parameter.
'''

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from cortado.store.client.admin import AsyncAdmin
    from cortado.store.client.async_client import AsyncClient
    from cortado.store.client.auth import AsyncAuth, AuthStatus, Issued, PrincipalInfo, RoleGrant, TokenInfo, WhoAmI
    from cortado.store.client.blocking.admin import Admin
    from cortado.store.client.blocking.auth import Auth
    from cortado.store.client.blocking.cluster import Membership
    from cortado.store.client.blocking.gc import Gc
    from cortado.store.client.blocking.holds import Hold
    from cortado.store.client.blocking.jobs import Jobs
    from cortado.store.client.blocking.kv import KeyValue
    from cortado.store.client.blocking.large_transactions import LargeTransaction, LargeTransactions, Staging
    from cortado.store.client.blocking.quotas import Quotas
    from cortado.store.client.blocking.schemas import Schemas
    from cortado.store.client.blocking.sizes import Sizes
    from cortado.store.client.blocking.table import Table
    from cortado.store.client.blocking.transaction import Transaction
    from cortado.store.client.blocking.watch import Watch
    from cortado.store.client.bulk import BulkResult, RefusedRow
    from cortado.store.client.client import Client
    from cortado.store.client.cluster import (
        AsyncMembership,
        ClockOffset,
        ClockReading,
        DamagedItem,
        Members,
        MemberStatus,
        Status,
    )
    from cortado.store.client.documents import Document, RowBatch
    from cortado.store.client.drops import DroppedDatabase, DropRecord, UndroppedDatabase
    from cortado.store.client.endpoints import Tls
    from cortado.store.client.gc import AsyncGc, GcStatus
    from cortado.store.client.holds import AsyncHold, HoldInfo
    from cortado.store.client.jobs import AsyncJobs, Job
    from cortado.store.client.known_schemas import SchemaVersion
    from cortado.store.client.kv import AsyncKeyValue, Delete, KvPair, Put
    from cortado.store.client.large_transactions import (
        AsyncLargeTransaction,
        AsyncLargeTransactions,
        AsyncStaging,
        LargeTransactionRecord,
    )
    from cortado.store.client.quotas import AsyncQuotas, QuotaInfo
    from cortado.store.client.scans import KeyRange
    from cortado.store.client.schemas import AsyncSchemas, SchemaCheck, SubjectSummary, VersionSummary
    from cortado.store.client.sizes import AsyncSizes, DatabaseSize, Size, TableSize
    from cortado.store.client.table import AsyncTable
    from cortado.store.client.tables import CheckProblem, CheckReport, Index
    from cortado.store.client.transaction import AsyncTransaction
    from cortado.store.client.values import Stale
    from cortado.store.client.watch import AsyncWatch, Changed, Deleted, Resolved
    from cortado.store.client.windows import ChangedRange, ChangeWindow

__all__ = [
    "Admin",
    "AsyncAdmin",
    "AsyncAuth",
    "AsyncClient",
    "AsyncGc",
    "AsyncHold",
    "AsyncJobs",
    "AsyncKeyValue",
    "AsyncLargeTransaction",
    "AsyncLargeTransactions",
    "AsyncMembership",
    "AsyncQuotas",
    "AsyncSchemas",
    "AsyncSizes",
    "AsyncStaging",
    "AsyncTable",
    "AsyncTransaction",
    "AsyncWatch",
    "Auth",
    "AuthStatus",
    "BulkResult",
    "ChangeWindow",
    "Changed",
    "ChangedRange",
    "CheckProblem",
    "CheckReport",
    "Client",
    "ClockOffset",
    "ClockReading",
    "DamagedItem",
    "DatabaseSize",
    "Delete",
    "Deleted",
    "Document",
    "DropRecord",
    "DroppedDatabase",
    "Gc",
    "GcStatus",
    "Hold",
    "HoldInfo",
    "Index",
    "Issued",
    "Job",
    "Jobs",
    "KeyRange",
    "KeyValue",
    "KvPair",
    "LargeTransaction",
    "LargeTransactionRecord",
    "LargeTransactions",
    "MemberStatus",
    "Members",
    "Membership",
    "PrincipalInfo",
    "Put",
    "QuotaInfo",
    "Quotas",
    "RefusedRow",
    "Resolved",
    "RoleGrant",
    "RowBatch",
    "SchemaCheck",
    "SchemaVersion",
    "Schemas",
    "Size",
    "Sizes",
    "Staging",
    "Stale",
    "Status",
    "SubjectSummary",
    "Table",
    "TableSize",
    "Tls",
    "TokenInfo",
    "Transaction",
    "UndroppedDatabase",
    "VersionSummary",
    "Watch",
    "WhoAmI",
]

# Loaded on first use, so that one module of the client does not bring them all.
_HOMES: Final = {
    "Admin": "blocking.admin",
    "AsyncAdmin": "admin",
    "AsyncAuth": "auth",
    "AsyncClient": "async_client",
    "AsyncGc": "gc",
    "AsyncJobs": "jobs",
    "AsyncKeyValue": "kv",
    "AsyncLargeTransaction": "large_transactions",
    "AsyncLargeTransactions": "large_transactions",
    "AsyncHold": "holds",
    "AsyncMembership": "cluster",
    "AsyncQuotas": "quotas",
    "AsyncSchemas": "schemas",
    "AsyncSizes": "sizes",
    "AsyncStaging": "large_transactions",
    "AsyncTable": "table",
    "AsyncTransaction": "transaction",
    "AsyncWatch": "watch",
    "Auth": "blocking.auth",
    "AuthStatus": "auth",
    "BulkResult": "bulk",
    "ChangeWindow": "windows",
    "Changed": "watch",
    "ChangedRange": "windows",
    "CheckProblem": "tables",
    "CheckReport": "tables",
    "Client": "client",
    "ClockOffset": "cluster",
    "ClockReading": "cluster",
    "Gc": "blocking.gc",
    "GcStatus": "gc",
    "DamagedItem": "cluster",
    "DatabaseSize": "sizes",
    "Delete": "kv",
    "Deleted": "watch",
    "Document": "documents",
    "DropRecord": "drops",
    "DroppedDatabase": "drops",
    "HoldInfo": "holds",
    "Index": "tables",
    "Issued": "auth",
    "Job": "jobs",
    "Jobs": "blocking.jobs",
    "KeyRange": "scans",
    "KeyValue": "blocking.kv",
    "KvPair": "kv",
    "LargeTransaction": "blocking.large_transactions",
    "LargeTransactionRecord": "large_transactions",
    "LargeTransactions": "blocking.large_transactions",
    "Hold": "blocking.holds",
    "MemberStatus": "cluster",
    "Members": "cluster",
    "Membership": "blocking.cluster",
    "PrincipalInfo": "auth",
    "Put": "kv",
    "QuotaInfo": "quotas",
    "Quotas": "blocking.quotas",
    "RefusedRow": "bulk",
    "Resolved": "watch",
    "RoleGrant": "auth",
    "RowBatch": "documents",
    "SchemaCheck": "schemas",
    "SchemaVersion": "known_schemas",
    "Schemas": "blocking.schemas",
    "Size": "sizes",
    "Sizes": "blocking.sizes",
    "Staging": "blocking.large_transactions",
    "Stale": "values",
    "Status": "cluster",
    "SubjectSummary": "schemas",
    "Table": "blocking.table",
    "TableSize": "sizes",
    "Tls": "endpoints",
    "TokenInfo": "auth",
    "Transaction": "blocking.transaction",
    "UndroppedDatabase": "drops",
    "VersionSummary": "schemas",
    "Watch": "blocking.watch",
    "WhoAmI": "auth",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = found
    return found
