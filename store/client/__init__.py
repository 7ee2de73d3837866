'''The Python client: :class:`Client` and :class:`AsyncClient`, and the values that they take and give.

It needs hpack and protobuf, and nothing of the server. numpy and pyarrow are imported when Arrow is asked
for (:meth:`Table.scan_arrow`, :meth:`Table.put_arrow`), pandas and polars for data frames, and not before.

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
                return items(self._scan_pages(limit=limit))

            def _scan_pages(self, *, limit: int | None = None) -> AsyncGenerator[Iterable[Thing], None]:
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
                return each(self._core._scan_pages(limit=limit))

4.  A property or a method in both ``async_client.py`` and ``client.py``, and the names below.

A test compares the faces, name by name and parameter by parameter.
'''

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from cortado.schema.compatibility import CompatibilityMode, Incompatibility
    from cortado.schema.model import Schema
    from cortado.schema.values import Branch, Duration
    from cortado.store.auth.tokens import Token
    from cortado.store.catalog.descriptors import IndexDescriptor, IndexState, TableDescriptor
    from cortado.store.client.admin import AsyncAdmin
    from cortado.store.client.aggregates import Groups
    from cortado.store.client.async_client import AsyncClient
    from cortado.store.client.auth import AsyncAuth, AuthStatus, Issued, PrincipalInfo, RoleGrant, TokenInfo, WhoAmI
    from cortado.store.client.authorization import TokenSource
    from cortado.store.client.backups import AsyncBackups
    from cortado.store.client.blocking.admin import Admin
    from cortado.store.client.blocking.auth import Auth
    from cortado.store.client.blocking.backups import Backups
    from cortado.store.client.blocking.cluster import Membership
    from cortado.store.client.blocking.documents import DocumentCodec
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
        PatrolStatus,
        Queue,
        Status,
    )
    from cortado.store.client.connection import ReadFrom
    from cortado.store.client.documents import AsyncDocumentCodec, Document, RowBatch
    from cortado.store.client.drops import DroppedDatabase, DropRecord, UndroppedDatabase
    from cortado.store.client.endpoints import Endpoints, Tls, TlsNames
    from cortado.store.client.gc import AsyncGc, GcStatus
    from cortado.store.client.holds import AsyncHold, HoldInfo
    from cortado.store.client.jobs import AsyncJobs, Job
    from cortado.store.client.known_schemas import SchemaVersion
    from cortado.store.client.kv import AsyncKeyValue, Delete, KvPair, Operation, Put
    from cortado.store.client.large_transactions import (
        AsyncLargeTransaction,
        AsyncLargeTransactions,
        AsyncStaging,
        LargeTransactionRecord,
        LargeTransactionState,
    )
    from cortado.store.client.put_mode import BulkMode, PutMode
    from cortado.store.client.quotas import AsyncQuotas, QuotaInfo
    from cortado.store.client.runtime import Environment
    from cortado.store.client.scans import AggregateOptions, KeyRange, ScanOptions
    from cortado.store.client.schemas import AsyncSchemas, SchemaCheck, SubjectSummary, VersionSummary
    from cortado.store.client.sizes import AsyncSizes, DatabaseSize, Size, TableSize
    from cortado.store.client.streams import ArrowStream, Rows
    from cortado.store.client.table import AsyncTable
    from cortado.store.client.tables import CheckProblem, CheckReport, Index
    from cortado.store.client.transaction import AsyncTransaction, Isolation
    from cortado.store.client.values import At, Expires, Key, KeyLike, Stale, Times
    from cortado.store.client.watch import AsyncWatch, Changed, Deleted, Resolved
    from cortado.store.client.windows import ChangedRange, ChangeWindow
    from cortado.store.clock.timestamp import Timestamp
    from cortado.store.keys.types import KeyPart, KeyType

__all__ = [
    "Admin",
    "AggregateOptions",
    "ArrowStream",
    "AsyncAdmin",
    "AsyncAuth",
    "AsyncBackups",
    "AsyncClient",
    "AsyncDocumentCodec",
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
    "At",
    "Auth",
    "AuthStatus",
    "Backups",
    "Branch",
    "BulkMode",
    "BulkResult",
    "ChangeWindow",
    "Changed",
    "ChangedRange",
    "CheckProblem",
    "CheckReport",
    "Client",
    "ClockOffset",
    "ClockReading",
    "CompatibilityMode",
    "DamagedItem",
    "DatabaseSize",
    "Delete",
    "Deleted",
    "Document",
    "DocumentCodec",
    "DropRecord",
    "DroppedDatabase",
    "Duration",
    "Endpoints",
    "Environment",
    "Expires",
    "Gc",
    "GcStatus",
    "Groups",
    "Hold",
    "HoldInfo",
    "Incompatibility",
    "Index",
    "IndexDescriptor",
    "IndexState",
    "Isolation",
    "Issued",
    "Job",
    "Jobs",
    "Key",
    "KeyLike",
    "KeyPart",
    "KeyRange",
    "KeyType",
    "KeyValue",
    "KvPair",
    "LargeTransaction",
    "LargeTransactionRecord",
    "LargeTransactionState",
    "LargeTransactions",
    "MemberStatus",
    "Members",
    "Membership",
    "Operation",
    "PatrolStatus",
    "PrincipalInfo",
    "Put",
    "PutMode",
    "Queue",
    "QuotaInfo",
    "Quotas",
    "ReadFrom",
    "RefusedRow",
    "Resolved",
    "RoleGrant",
    "RowBatch",
    "Rows",
    "ScanOptions",
    "Schema",
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
    "TableDescriptor",
    "TableSize",
    "Times",
    "Timestamp",
    "Tls",
    "TlsNames",
    "Token",
    "TokenInfo",
    "TokenSource",
    "Transaction",
    "UndroppedDatabase",
    "VersionSummary",
    "Watch",
    "WhoAmI",
]

# Loaded on first use, so that one module of the client does not bring them all.
_HOMES: Final = {
    "Admin": "blocking.admin",
    "AggregateOptions": "scans",
    "ArrowStream": "streams",
    "AsyncAdmin": "admin",
    "AsyncAuth": "auth",
    "AsyncBackups": "backups",
    "AsyncClient": "async_client",
    "AsyncDocumentCodec": "documents",
    "AsyncGc": "gc",
    "AsyncHold": "holds",
    "AsyncJobs": "jobs",
    "AsyncKeyValue": "kv",
    "AsyncLargeTransaction": "large_transactions",
    "AsyncLargeTransactions": "large_transactions",
    "AsyncMembership": "cluster",
    "AsyncQuotas": "quotas",
    "AsyncSchemas": "schemas",
    "AsyncSizes": "sizes",
    "AsyncStaging": "large_transactions",
    "AsyncTable": "table",
    "AsyncTransaction": "transaction",
    "AsyncWatch": "watch",
    "At": "values",
    "Auth": "blocking.auth",
    "AuthStatus": "auth",
    "Backups": "blocking.backups",
    "Branch": "cortado.schema.values",
    "BulkMode": "put_mode",
    "BulkResult": "bulk",
    "ChangeWindow": "windows",
    "Changed": "watch",
    "ChangedRange": "windows",
    "CheckProblem": "tables",
    "CheckReport": "tables",
    "Client": "client",
    "ClockOffset": "cluster",
    "ClockReading": "cluster",
    "CompatibilityMode": "cortado.schema.compatibility",
    "DamagedItem": "cluster",
    "DatabaseSize": "sizes",
    "Delete": "kv",
    "Deleted": "watch",
    "Document": "documents",
    "DocumentCodec": "blocking.documents",
    "DropRecord": "drops",
    "DroppedDatabase": "drops",
    "Duration": "cortado.schema.values",
    "Endpoints": "endpoints",
    "Environment": "runtime",
    "Expires": "values",
    "Gc": "blocking.gc",
    "GcStatus": "gc",
    "Groups": "aggregates",
    "Hold": "blocking.holds",
    "HoldInfo": "holds",
    "Incompatibility": "cortado.schema.compatibility",
    "Index": "tables",
    "IndexDescriptor": "cortado.store.catalog.descriptors",
    "IndexState": "cortado.store.catalog.descriptors",
    "Isolation": "transaction",
    "Issued": "auth",
    "Job": "jobs",
    "Jobs": "blocking.jobs",
    "Key": "values",
    "KeyLike": "values",
    "KeyPart": "cortado.store.keys.types",
    "KeyRange": "scans",
    "KeyType": "cortado.store.keys.types",
    "KeyValue": "blocking.kv",
    "KvPair": "kv",
    "LargeTransaction": "blocking.large_transactions",
    "LargeTransactionRecord": "large_transactions",
    "LargeTransactionState": "large_transactions",
    "LargeTransactions": "blocking.large_transactions",
    "MemberStatus": "cluster",
    "Members": "cluster",
    "Membership": "blocking.cluster",
    "Operation": "kv",
    "PatrolStatus": "cluster",
    "PrincipalInfo": "auth",
    "Put": "kv",
    "PutMode": "put_mode",
    "Queue": "cluster",
    "QuotaInfo": "quotas",
    "Quotas": "blocking.quotas",
    "ReadFrom": "connection",
    "RefusedRow": "bulk",
    "Resolved": "watch",
    "RoleGrant": "auth",
    "RowBatch": "documents",
    "Rows": "streams",
    "ScanOptions": "scans",
    "Schema": "cortado.schema.model",
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
    "TableDescriptor": "cortado.store.catalog.descriptors",
    "TableSize": "sizes",
    "Times": "values",
    "Timestamp": "cortado.store.clock.timestamp",
    "Tls": "endpoints",
    "TlsNames": "endpoints",
    "Token": "cortado.store.auth.tokens",
    "TokenInfo": "auth",
    "TokenSource": "authorization",
    "Transaction": "blocking.transaction",
    "UndroppedDatabase": "drops",
    "VersionSummary": "schemas",
    "Watch": "blocking.watch",
    "WhoAmI": "auth",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    home = _HOMES[name]
    found = getattr(import_module(home if home.startswith("cortado.") else f"{__name__}.{home}"), name)
    globals()[name] = found
    return found
