"""The Python client: :class:`Client`, and the values that it takes and gives.

It needs grpcio and protobuf, and nothing of the server. numpy and pyarrow are imported where Arrow is asked
for (:meth:`Table.scan_arrow`, :meth:`Table.bulk_arrow`), and not before.
"""

from cortado.store.client.batch import Batch
from cortado.store.client.bulk import BulkResult, RefusedRow
from cortado.store.client.client import DEFAULT_ENDPOINT, Client
from cortado.store.client.cluster import ClockOffset, ClockReading, Members, Membership, MemberStatus, Status
from cortado.store.client.documents import Document, RowBatch
from cortado.store.client.endpoints import Tls
from cortado.store.client.kv import Delete, KeyValue, KvPair, Put
from cortado.store.client.schemas import SchemaCheck, Schemas, SchemaVersion, SubjectSummary
from cortado.store.client.table import KeyRange, Table
from cortado.store.client.tables import CheckProblem, CheckReport, Index
from cortado.store.client.values import Stale

__all__ = [
    "DEFAULT_ENDPOINT",
    "Batch",
    "BulkResult",
    "CheckProblem",
    "CheckReport",
    "Client",
    "ClockOffset",
    "ClockReading",
    "Delete",
    "Document",
    "Index",
    "KeyRange",
    "KeyValue",
    "KvPair",
    "MemberStatus",
    "Members",
    "Membership",
    "Put",
    "RefusedRow",
    "RowBatch",
    "SchemaCheck",
    "SchemaVersion",
    "Schemas",
    "Stale",
    "Status",
    "SubjectSummary",
    "Table",
    "Tls",
]
