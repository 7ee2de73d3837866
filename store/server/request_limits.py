"""The limits of requests, method by method: their bytes, and the items of each repeated field.

All of them are checked before the request is parsed (:mod:`cortado.proto.bounds`). The limits of services are more
precise, and often lower: a key has sixteen parts at most, and a request within the limits here is cheap to refuse.

A method that is not named below takes a request of :data:`SMALL_BYTES_MAX`. A server does not start with a repeated
field that has no limit.
"""

from __future__ import annotations

from typing import Final

from google.protobuf.descriptor import MethodDescriptor

from cortado.proto import message_class
from cortado.proto.bounds import MessageBounds
from cortado.schema.limits import SCHEMA_FIELDS_MAX
from cortado.store.aggregate.bind import AGGREGATES_MAX, GROUP_FIELDS_MAX
from cortado.store.catalog.declare import INDEXES_MAX, PARTS_MAX
from cortado.store.server.config import MESSAGE_BYTES_MAX
from cortado.store.staging.records import ATTEMPTS_MAX, TABLES_MAX
from cortado.store.tables.building import FAILED_KEYS_MAX
from cortado.store.tables.rows import BATCH_ROWS_MAX
from cortado.store.transactions.limits import KEYS_MAX, OPERATIONS_MAX, RANGES_MAX

SMALL_BYTES_MAX: Final = 64 << 10
"""The limit of a request without documents, values or declarations: a few keys, a filter and a token."""
DECLARATION_BYTES_MAX: Final = 1 << 20

CALLS_MAX: Final = 4_096
"""The calls in one message of the coalescing stream, which has 2,048 in flight."""
METRIC_NAMES_MAX: Final = 1_000

_ALL_PARTS_MAX: Final = 2 * PARTS_MAX
"""The parts of a key, or of an index's values with the key behind them."""

ITEMS_MAX: Final[dict[str, int]] = {
    "cortado.v1.CallBatch.calls": CALLS_MAX,
    "cortado.v1.CallBatch.cancelled": CALLS_MAX,
    "cortado.v1.Key.parts": _ALL_PARTS_MAX,
    "cortado.v1.MultiGetRequest.keys": BATCH_ROWS_MAX,
    "cortado.v1.KvMultiGetRequest.keys": BATCH_ROWS_MAX,
    "cortado.v1.ReadAt.own_writes": OPERATIONS_MAX,
    "cortado.v1.CommitRequest.operations": OPERATIONS_MAX,
    "cortado.v1.CommitRequest.footprints": KEYS_MAX + RANGES_MAX,
    "cortado.v1.BeginLargeTransactionRequest.tables": TABLES_MAX,
    "cortado.v1.CommitLargeTransactionRequest.tasks": ATTEMPTS_MAX,
    "cortado.v1.CommitLargeTransactionRequest.attempts": ATTEMPTS_MAX,
    "cortado.v1.BulkChunk.json_rows": BATCH_ROWS_MAX,
    "cortado.v1.BulkStart.columns": SCHEMA_FIELDS_MAX,
    "cortado.v1.ScanRequest.columns": SCHEMA_FIELDS_MAX,
    "cortado.v1.AggregateRequest.group_by": 4 * GROUP_FIELDS_MAX,
    "cortado.v1.AggregateRequest.aggregates": 4 * AGGREGATES_MAX,
    "cortado.v1.CreateTableRequest.key": _ALL_PARTS_MAX,
    "cortado.v1.CreateTableRequest.indexes": 4 * INDEXES_MAX,
    "cortado.v1.Index.parts": _ALL_PARTS_MAX,
    "cortado.v1.Index.failed_keys": FAILED_KEYS_MAX,
    "cortado.v1.ReadStatisticsRequest.names": METRIC_NAMES_MAX,
}

BYTES_MAX: Final[dict[str, int]] = {
    "cortado.v1.Calls.Exchange": MESSAGE_BYTES_MAX,
    "cortado.v1.KeyValue.Put": MESSAGE_BYTES_MAX,
    "cortado.v1.KeyValue.Get": MESSAGE_BYTES_MAX,
    "cortado.v1.KeyValue.MultiGet": MESSAGE_BYTES_MAX,
    "cortado.v1.KeyValue.Scan": MESSAGE_BYTES_MAX,
    "cortado.v1.KeyValue.ScanPage": MESSAGE_BYTES_MAX,
    "cortado.v1.Documents.Get": MESSAGE_BYTES_MAX,
    "cortado.v1.Documents.MultiGet": MESSAGE_BYTES_MAX,
    "cortado.v1.Documents.Put": MESSAGE_BYTES_MAX,
    "cortado.v1.Documents.Update": MESSAGE_BYTES_MAX,
    "cortado.v1.Transactions.Commit": MESSAGE_BYTES_MAX,
    "cortado.v1.LargeTransactions.Commit": DECLARATION_BYTES_MAX,
    "cortado.v1.Restores.Put": MESSAGE_BYTES_MAX,
    "cortado.v1.Documents.Bulk": MESSAGE_BYTES_MAX,
    "cortado.v1.Documents.Scan": MESSAGE_BYTES_MAX,
    "cortado.v1.Documents.Aggregate": MESSAGE_BYTES_MAX,
    "cortado.v1.Schemas.Register": DECLARATION_BYTES_MAX,
    "cortado.v1.Schemas.Check": DECLARATION_BYTES_MAX,
    "cortado.v1.Tables.CreateTable": DECLARATION_BYTES_MAX,
}


def bounds_of(method: MethodDescriptor) -> MessageBounds:
    """Return the limits of this method's requests. Raises KeyError for a repeated field without a limit."""
    bytes_max = BYTES_MAX.get(method.full_name, SMALL_BYTES_MAX)
    return MessageBounds(message_class(method.input_type), ITEMS_MAX, bytes_max=bytes_max)
