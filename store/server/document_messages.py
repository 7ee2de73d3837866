"""Documents and scans between their messages and the values of :mod:`cortado.store.tables`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias

from cortado.errors import InvalidArgument, InvalidDocument
from cortado.proto.v1 import common_pb2, documents_pb2
from cortado.store.aggregate.bind import Aggregate, Kind
from cortado.store.catalog.catalog import Catalog
from cortado.store.catalog.descriptors import TableDescriptor
from cortado.store.keys.types import KeyPart, KeyValue
from cortado.store.server.convert import expiry_value, key_values, timestamp_value
from cortado.store.tables.aggregate import AggregateScan
from cortado.store.tables.json_input import parse_object
from cortado.store.tables.operations import (
    AvroDocument,
    AvroRows,
    BulkChunk,
    BulkMode,
    DocumentInput,
    JsonDocument,
    JsonRows,
    PutMode,
)
from cortado.store.tables.read import json_of, transcode
from cortado.store.tables.rows import StoredRow
from cortado.store.tables.runs import Run
from cortado.store.tables.scan import Scan
from cortado.store.tables.view import TableView

_PUT_MODES: Final[dict[int, PutMode]] = {
    documents_pb2.PUT_MODE_UPSERT: PutMode.UPSERT,
    documents_pb2.PUT_MODE_INSERT: PutMode.INSERT,
    documents_pb2.PUT_MODE_REPLACE: PutMode.REPLACE,
}
_BULK_MODES: Final[dict[int, BulkMode]] = {
    documents_pb2.BULK_MODE_UPSERT: BulkMode.UPSERT,
    documents_pb2.BULK_MODE_INSERT: BulkMode.INSERT,
    documents_pb2.BULK_MODE_REPLACE: BulkMode.REPLACE,
    documents_pb2.BULK_MODE_UPDATE: BulkMode.UPDATE,
    documents_pb2.BULK_MODE_DELETE: BulkMode.DELETE,
}
_OF_COLUMNS: Final = (BulkMode.UPDATE, BulkMode.DELETE)
_AGGREGATE_KINDS: Final[dict[int, Kind]] = {
    documents_pb2.AGGREGATE_KIND_COUNT: Kind.COUNT,
    documents_pb2.AGGREGATE_KIND_SUM: Kind.SUM,
    documents_pb2.AGGREGATE_KIND_MIN: Kind.MIN,
    documents_pb2.AGGREGATE_KIND_MAX: Kind.MAX,
    documents_pb2.AGGREGATE_KIND_AVG: Kind.AVG,
}

Bounds: TypeAlias = tuple[Sequence[KeyValue] | None, Sequence[KeyValue] | None, Sequence[KeyValue] | None]
"""Lower, upper and prefix; None where a side is open."""


# --- documents -----------------------------------------------------------------------------------------------------


def is_json(document_format: int) -> bool:
    """Return whether the format is JSON. Raises InvalidArgument for a number that names no format."""
    if document_format not in common_pb2.DocumentFormat.values():
        raise InvalidArgument("format", "is not a document format that this server knows", str(document_format))
    return document_format == common_pb2.DOCUMENT_FORMAT_JSON


def check_form(view: TableView, document_format: int, schema_id: int) -> None:
    """Check that documents can be returned in this form, found or not. Raises NotFound or InvalidArgument."""
    is_json(document_format)
    if schema_id:
        view.writer(schema_id)


def found_message(view: TableView, row: StoredRow, document_format: int, schema_id: int) -> documents_pb2.FoundDocument:
    """Return a stored row in the requested form. Raises NotFound or InvalidArgument for the schema id."""
    if is_json(document_format):
        text = json_of(view, row, schema_id)
        document = common_pb2.Document(schema_id=schema_id or view.newest_id, json=text)
    else:
        read = transcode(view, row, schema_id)
        document = common_pb2.Document(schema_id=read.schema_id, avro=read.body)
    return documents_pb2.FoundDocument(document=document, etag=row.etag, expires_ms=row.expires_ms)


def put_mode(mode: int) -> PutMode:
    """Return the mode of a put. Raises InvalidArgument for a number that names no mode."""
    found = _PUT_MODES.get(mode)
    if found is None:
        raise InvalidArgument("mode", "is not a put mode that this server knows", str(mode))
    return found


def document_input(message: common_pb2.Document, field: str = "document") -> DocumentInput:
    """Return the document of a message. Raises InvalidArgument if it has no body."""
    match message.WhichOneof("body"):
        case "avro":
            return AvroDocument(message.schema_id, message.avro)
        case "json":
            return JsonDocument(message.json, message.schema_id)
        case _:
            raise InvalidArgument(field, "must set one of avro and json")


def update_changes(changes_json: str, field: str = "changes_json") -> Mapping[str, Any]:
    """Return the new values by field path. Raises InvalidArgument."""
    try:
        return parse_object(changes_json, field)
    except InvalidDocument as malformed:
        raise InvalidArgument(malformed.field, malformed.problem, malformed.value) from malformed


# --- bulk ----------------------------------------------------------------------------------------------------------


def bulk_chunk(start: documents_pb2.BulkStart, chunk: documents_pb2.BulkChunk) -> BulkChunk:
    """Return a chunk, with the fields of its stream's start. Raises InvalidArgument."""
    rows: AvroRows | JsonRows
    if chunk.json_rows:
        if chunk.HasField("rows"):
            raise InvalidArgument("chunk.rows", "excludes json_rows")
        if start.columns:
            raise InvalidArgument("chunk.json_rows", f"hold whole documents, and mode {bulk_mode(start)} wants rows")
        rows = JsonRows(chunk.json_rows)
    elif chunk.HasField("rows"):
        rows = AvroRows(chunk.rows.schema_id, chunk.rows.bodies, chunk.rows.lengths)
    else:
        raise InvalidArgument("chunk", "must set rows or json_rows")
    since = start.unchanged_since
    return BulkChunk(
        database=start.table.database,
        table=start.table.table,
        rows=rows,
        mode=bulk_mode(start),
        unchanged_since=timestamp_value(since, "start.unchanged_since") if start.HasField("unchanged_since") else None,
        expiry=expiry_value(start, "start.expiry"),
        columns=tuple(start.columns),
    )


def bulk_mode(start: documents_pb2.BulkStart) -> BulkMode:
    """Return the mode of a load. Raises InvalidArgument for a number that names no mode, and if columns do not go with
    it."""
    mode = _BULK_MODES.get(start.mode)
    if mode is None:
        raise InvalidArgument("start.mode", "is not a mode that this server knows", str(start.mode))
    if start.columns and mode not in _OF_COLUMNS:
        problem = f"go with an update or a delete, not with mode {mode}: a row is written whole"
        raise InvalidArgument("start.columns", problem, ", ".join(start.columns))
    if not start.columns and mode in _OF_COLUMNS:
        raise InvalidArgument("start.columns", f"must name the fields that rows have, with mode {mode}")
    return mode


# --- ranges and scans ----------------------------------------------------------------------------------------------


def scan_of(catalog: Catalog, request: documents_pb2.ScanRequest) -> Scan:
    """Return the scan of a request. Raises NotFound (database, table, index), IndexNotReady, InvalidArgument for its
    bounds."""
    table, (lower, upper, prefix) = _bounds_of(catalog, request)
    return Scan(
        database=table.database,
        table=table.name,
        index=request.index,
        lower=lower,
        upper=upper,
        prefix=prefix,
        reverse=request.reverse,
        filter=request.filter,
        columns=tuple(request.columns),
        limit=request.limit or None,
        schema_id=request.schema_id,
        json=is_json(request.format),
        with_versions=request.with_versions,
    )


def aggregate_of(catalog: Catalog, request: documents_pb2.AggregateRequest) -> AggregateScan:
    """Return the aggregates of a request. Raises as :func:`scan_of`."""
    table, (lower, upper, prefix) = _bounds_of(catalog, request)
    scan = Scan(
        database=table.database,
        table=table.name,
        index=request.index,
        lower=lower,
        upper=upper,
        prefix=prefix,
        filter=request.filter,
        schema_id=request.schema_id,
    )
    return AggregateScan(scan, tuple(request.group_by), tuple(map(_aggregate, request.aggregates)))


def _aggregate(message: documents_pb2.Aggregate) -> Aggregate:
    kind = _AGGREGATE_KINDS.get(message.kind)
    if kind is None:
        raise InvalidArgument("aggregates.kind", "is not an aggregate that this server knows", str(message.kind))
    return Aggregate(kind, message.field)


def _bounds_of(catalog: Catalog, request: Any) -> tuple[TableDescriptor, Bounds]:
    """Return the table of a scan or an aggregate, and its bounds, which are of the key or of an index."""
    table = catalog.table(request.table.database, request.table.table)
    parts = catalog.index_of(table, request.index).parts if request.index else table.key
    return table, range_bounds(request.range, parts)


def range_bounds(message: common_pb2.KeyRange, parts: Sequence[KeyPart]) -> Bounds:
    """Return lower, upper and prefix; None for an open side. Raises InvalidArgument."""
    if message.HasField("prefix") and (message.HasField("start") or message.HasField("end")):
        raise InvalidArgument("range.prefix", "excludes start and end")
    return (
        _bound(message.start, parts, "range.start"),
        _bound(message.end, parts, "range.end"),
        _bound(message.prefix, parts, "range.prefix"),
    )


def _bound(message: common_pb2.Key, parts: Sequence[KeyPart], field: str) -> Sequence[KeyValue] | None:
    return key_values(message, parts, field) or None


def row_batch(run: Run) -> common_pb2.RowBatch:
    """Return the message of a run of rows; its lengths are little-endian on every machine."""
    lengths = run.lengths.astype("<u4", copy=False).tobytes()
    return common_pb2.RowBatch(schema_id=run.schema_id, bodies=run.bodies, lengths=lengths, versions=run.versions)
