"""docs/limits.md agrees with the code in every row, and has no row of its own."""

from __future__ import annotations

from pathlib import Path

from cortado.proto.bounds import FIELDS_MAX
from cortado.schema import json_bounds
from cortado.schema import limits as schema
from cortado.store.aggregate import bind as aggregates
from cortado.store.aggregate import partial as groups
from cortado.store.auth import changes as auth_changes
from cortado.store.backup import manifest
from cortado.store.catalog import declare, dropped, registry
from cortado.store.clock import timestamp
from cortado.store.collection import leases
from cortado.store.filter import parse as filters
from cortado.store.gateway import elements, idempotency, paths
from cortado.store.gateway import limits as http
from cortado.store.gateway.registry import declarations
from cortado.store.h2.limits import H2Limits
from cortado.store.jobs import job
from cortado.store.keys import decimals, keyspace, names
from cortado.store.kv.operations import DEFAULT_LIMITS
from cortado.store.mvcc import paging, sized_split
from cortado.store.process.limits import NodeLimits
from cortado.store.quotas import changes as quota_changes
from cortado.store.replica.duties import large_transactions
from cortado.store.replica.features import restoring
from cortado.store.server import (
    config,
    front,
    front_connection,
    kv_service,
    listening,
    listing,
    replying,
    request_limits,
    schemas_service,
    service,
    tables_service,
)
from cortado.store.server.calls_service import CallsLimits
from cortado.store.settings.server import SETTINGS
from cortado.store.staging import records
from cortado.store.tables import building, changes, rows, scan, split
from cortado.store.transactions import limits as transactions

ROOT = Path(__file__).parents[3]


def count(number: int) -> str:
    return f"{number:,}"


def size(number: int) -> str:
    for unit, factor in (("MiB", 1 << 20), ("KiB", 1 << 10)):
        if number % factor == 0:
            return f"{number // factor:,} {unit}"
    return f"{number} bytes"


def characters(number: int) -> str:
    return f"{number} characters"


SAID = {
    "a document": size(rows.DOCUMENT_BYTES_MAX),
    "a document in JSON": size(rows.JSON_BYTES_MAX),
    "nesting of a document": count(schema.DEPTH_MAX),
    "values without bytes in a document": count(schema.FREE_ITEMS_MAX),
    "a value": size(DEFAULT_LIMITS.value_bytes_max),
    "a stored key": size(keyspace.LOGICAL_KEY_BYTES_MAX),
    "parts of a key": count(declare.PARTS_MAX),
    "a field's path": characters(declare.PATH_LENGTH_MAX),
    "a name": characters(names.NAME_LENGTH_MAX),
    "a subject's name": characters(names.SUBJECT_LENGTH_MAX),
    "databases": count(declare.DATABASES_MAX),
    "tables": count(declare.TABLES_MAX),
    "databases ever": count(keyspace.NUMBER_MAX),
    "tables ever": count(keyspace.NUMBER_MAX),
    "tables with a retention of their own": count(declare.RETENTIONS_MAX),
    "a time to live": f"{timestamp.TTL_MS_MAX // (365 * 86_400_000)} years",
    "dropped things": count(dropped.DROPPED_MAX),
    "indexes": count(declare.INDEXES_MAX),
    "holds": count(leases.LEASES_MAX),
    "a hold's label": characters(leases.LABEL_CHARS_MAX),
    "a hold's time to live": f"{leases.TTL_MS_MAX // 60_000} minutes",
    "a hold's age": f"{leases.AGE_MS_MAX // 3_600_000} hours",
    "a consumer's hold": f"{leases.CONSUMER_TTL_MS_MAX // 86_400_000} days",
    "a consumer's name, and its owner's": characters(leases.OWNER_CHARS_MAX),
    "large transactions": count(records.UNRESOLVED_MAX),
    "tables of a large transaction": count(records.TABLES_MAX),
    "a large transaction's tasks": count(records.TASK_MAX + 1),
    "attempts of a task": count(records.TRY_MAX + 1),
    "attempts that count": count(records.ATTEMPTS_MAX),
    "an application's name": characters(records.APPLICATION_CHARS_MAX),
    "the record of a large transaction": f"{large_transactions.KEPT_MS // 3_600_000} hours",
    "that of an application": f"{large_transactions.APPLICATION_KEPT_MS // 60_000} minutes",
    "changes of a window": count(NodeLimits().watch_pass_events_max),
    "quotas": count(quota_changes.QUOTAS_MAX),
    "principals": count(auth_changes.PRINCIPALS_MAX),
    "jobs": count(job.UNFINISHED_MAX),
    "ended jobs": count(job.FINISHED_MAX),
    "segments of a followed backup": count(manifest.SEGMENTS_MAX),
    "parts of a restore": count(restoring.PARTS_MAX),
    "keys of a failed index": count(building.FAILED_KEYS_MAX),
    "a schema": size(schema.SCHEMA_BYTES_MAX),
    "fields of a schema": count(schema.SCHEMA_FIELDS_MAX),
    "fields of a schema, written out": count(schema.EXPANDED_FIELDS_MAX),
    "values in all defaults": count(schema.DEFAULT_VALUES_MAX),
    "a name within a schema": characters(schema.NAME_CHARACTERS_MAX),
    "a fixed type": size(schema.FIXED_BYTES_MAX),
    "digits of a decimal": count(schema.DECIMAL_PRECISION_MAX),
    "subjects": count(registry.SUBJECTS_MAX),
    "versions of a subject": count(registry.VERSIONS_MAX),
    "a message": size(config.MESSAGE_BYTES_MAX),
    "metadata of a call": size(config.METADATA_BYTES_MAX),
    "streams of a connection": count(H2Limits().streams),
    "the same, of gRPC's front": count(listening.STREAMS_MAX),
    "metadata that end a connection": size(H2Limits().header_list_bytes_max),
    "a header block": size(H2Limits().header_block_bytes),
    "unread bytes of a stream": size(H2Limits().stream_window + 1),
    "unread bytes of a connection": size(H2Limits().connection_window),
    "unread bytes of all connections, both ways": size(front.HELD_BYTES_MAX),
    "bytes of messages that have not arrived whole": size(front.ARRIVING_BYTES_MAX),
    "a reply that its caller does not take": f"{front_connection.STALLED_S:.0f} s",
    "the first message of a call": f"{front_connection.MESSAGE_S:.0f} s",
    "replies of health and reflection that callers do not take": size(replying.STRANGERS_BYTES),
    "a request without documents or values": size(request_limits.SMALL_BYTES_MAX),
    "a request with declarations": size(request_limits.DECLARATION_BYTES_MAX),
    "fields in a message": count(FIELDS_MAX),
    "operations of a transaction": count(request_limits.ITEMS_MAX["cortado.v1.CommitRequest.operations"]),
    "bytes of a transaction": size(transactions.BYTES_MAX),
    "keys of a footprint": count(transactions.KEYS_MAX),
    "ranges of a footprint": count(transactions.RANGES_MAX),
    "rows of a bulk chunk": count(request_limits.ITEMS_MAX["cortado.v1.BulkChunk.json_rows"]),
    "bytes of a bulk chunk": size(rows.BATCH_BYTES_MAX),
    "keys of `MultiGet`": count(request_limits.ITEMS_MAX["cortado.v1.MultiGetRequest.keys"]),
    "columns of a scan, of a bulk update": count(request_limits.ITEMS_MAX["cortado.v1.ScanRequest.columns"]),
    "a filter": size(filters.TEXT_BYTES_MAX),
    "nesting of a filter": count(filters.DEPTH_MAX),
    "terms of a filter": count(filters.NODES_MAX),
    "aggregates of a request": count(aggregates.AGGREGATES_MAX),
    "fields of a group": count(aggregates.GROUP_FIELDS_MAX),
    "parts of a split": count(split.PARTS_MAX),
    "parts of a split by size": count(sized_split.PARTS_MAX),
    "keys of a deleted range": count(DEFAULT_LIMITS.delete_range_keys_max),
    "bytes of a deleted range": size(DEFAULT_LIMITS.delete_range_read_bytes_max),
    "changes of an update": count(changes.CHANGES_MAX),
    "names asked of the statistics": count(request_limits.METRIC_NAMES_MAX),
    "a page token": size(paging.TOKEN_BYTES_MAX),
    "calls in one message": count(request_limits.CALLS_MAX),
    "calls in flight on a stream": count(CallsLimits().calls_max),
    "a document as it is read": size(scan.ROW_BYTES_MAX),
    "rows of a scan's reply": size(scan.PAGE_BYTES_MAX),
    "groups of a reply": count(groups.GROUPS_MAX),
    "one group": size(groups.GROUP_BYTES_MAX),
    "a page of pairs": size(kv_service.PAGE_BYTES_MAX),
    "pairs of a page": count(kv_service.PAGE_PAIRS_MAX),
    "documents of a partial `MultiGet`": size(service.SLICE_BYTES_MAX),
    "names on a page of a listing": count(listing.PAGE_ITEMS_MAX),
    "incompatibilities of a check": count(schemas_service.INCOMPATIBILITIES_MAX),
    "problems in a reply of a table's check": count(tables_service.REPLY_PROBLEMS_MAX),
    "a head": size(http.HEAD_BYTES_MAX),
    "headers": count(http.HEADERS_MAX),
    "parameters of a query": count(paths.PARAMETERS_MAX),
    "what is no content of a chunked body": size(http.HEAD_BYTES_MAX),
    "items of a body of JSON": count(json_bounds.ITEMS_MAX),
    "nesting of a body of JSON": count(json_bounds.DEPTH_MAX),
    "elements of a page": count(elements.LIMIT_MAX),
    "an idempotency key": characters(idempotency.CHARACTERS_MAX),
    "versions in one answer": count(declarations.SCHEMAS_MAX),
}


def test_the_page_says_what_the_code_says() -> None:
    found: dict[str, str] = {}
    for line in (ROOT / "docs" / "limits.md").read_text().splitlines():
        if line.startswith("| ") and not line.startswith(("| limit ", "| --- ")):
            name, most = line.split("|")[1:3]
            found[name.strip()] = most.strip()
    assert found == SAID


def test_limits_that_the_page_has_once_are_one() -> None:
    """Pairs and documents have the same limits; so have the contents of a request and the input of a service."""
    assert transactions.OPERATIONS_MAX == rows.BATCH_ROWS_MAX
    assert DEFAULT_LIMITS.batch_bytes_max == rows.BATCH_BYTES_MAX == transactions.BYTES_MAX
    assert decimals.DIGITS_MAX == 256
    assert listing.PAGE_BYTES_MAX == 1 << 20
    assert service.MESSAGE_BYTES_MAX == config.MESSAGE_BYTES_MAX


def test_what_a_server_may_be_told_to_take_is_no_more() -> None:
    node, largest = NodeLimits(), transactions.LARGEST
    assert (node.transaction_operations_max, node.transaction_bytes_max) == (largest.operations_max, largest.bytes_max)
    assert node.footprint_keys_max == largest.footprint_keys_max
    assert node.footprint_ranges_max == largest.footprint_ranges_max
    highest = {each.name: (each.default, each.high) for each in SETTINGS}
    for name in ("transaction-operations-max", "transaction-bytes-max", "footprint-keys-max", "footprint-ranges-max"):
        default, high = highest[f"limit.{name}"]
        assert default == high
