from cortado.proto.v1 import common_pb2 as _common_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class PutMode(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    PUT_MODE_UPSERT: _ClassVar[PutMode]
    PUT_MODE_INSERT: _ClassVar[PutMode]
    PUT_MODE_REPLACE: _ClassVar[PutMode]

class BulkMode(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    BULK_MODE_UPSERT: _ClassVar[BulkMode]
    BULK_MODE_INSERT: _ClassVar[BulkMode]
    BULK_MODE_REPLACE: _ClassVar[BulkMode]
    BULK_MODE_UPDATE: _ClassVar[BulkMode]
    BULK_MODE_DELETE: _ClassVar[BulkMode]

class AggregateKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    AGGREGATE_KIND_UNSPECIFIED: _ClassVar[AggregateKind]
    AGGREGATE_KIND_COUNT: _ClassVar[AggregateKind]
    AGGREGATE_KIND_SUM: _ClassVar[AggregateKind]
    AGGREGATE_KIND_MIN: _ClassVar[AggregateKind]
    AGGREGATE_KIND_MAX: _ClassVar[AggregateKind]
    AGGREGATE_KIND_AVG: _ClassVar[AggregateKind]
PUT_MODE_UPSERT: PutMode
PUT_MODE_INSERT: PutMode
PUT_MODE_REPLACE: PutMode
BULK_MODE_UPSERT: BulkMode
BULK_MODE_INSERT: BulkMode
BULK_MODE_REPLACE: BulkMode
BULK_MODE_UPDATE: BulkMode
BULK_MODE_DELETE: BulkMode
AGGREGATE_KIND_UNSPECIFIED: AggregateKind
AGGREGATE_KIND_COUNT: AggregateKind
AGGREGATE_KIND_SUM: AggregateKind
AGGREGATE_KIND_MIN: AggregateKind
AGGREGATE_KIND_MAX: AggregateKind
AGGREGATE_KIND_AVG: AggregateKind

class TableName(_message.Message):
    __slots__ = ("database", "table")
    DATABASE_FIELD_NUMBER: _ClassVar[int]
    TABLE_FIELD_NUMBER: _ClassVar[int]
    database: str
    table: str
    def __init__(self, database: _Optional[str] = ..., table: _Optional[str] = ...) -> None: ...

class GetDocumentRequest(_message.Message):
    __slots__ = ("table", "key", "at", "format", "schema_id")
    TABLE_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    AT_FIELD_NUMBER: _ClassVar[int]
    FORMAT_FIELD_NUMBER: _ClassVar[int]
    SCHEMA_ID_FIELD_NUMBER: _ClassVar[int]
    table: TableName
    key: _common_pb2.Key
    at: _common_pb2.ReadAt
    format: _common_pb2.DocumentFormat
    schema_id: int
    def __init__(self, table: _Optional[_Union[TableName, _Mapping]] = ..., key: _Optional[_Union[_common_pb2.Key, _Mapping]] = ..., at: _Optional[_Union[_common_pb2.ReadAt, _Mapping]] = ..., format: _Optional[_Union[_common_pb2.DocumentFormat, str]] = ..., schema_id: _Optional[int] = ...) -> None: ...

class FoundDocument(_message.Message):
    __slots__ = ("document", "etag", "expires_ms")
    DOCUMENT_FIELD_NUMBER: _ClassVar[int]
    ETAG_FIELD_NUMBER: _ClassVar[int]
    EXPIRES_MS_FIELD_NUMBER: _ClassVar[int]
    document: _common_pb2.Document
    etag: str
    expires_ms: int
    def __init__(self, document: _Optional[_Union[_common_pb2.Document, _Mapping]] = ..., etag: _Optional[str] = ..., expires_ms: _Optional[int] = ...) -> None: ...

class GetDocumentResponse(_message.Message):
    __slots__ = ("header", "found", "footprint")
    HEADER_FIELD_NUMBER: _ClassVar[int]
    FOUND_FIELD_NUMBER: _ClassVar[int]
    FOOTPRINT_FIELD_NUMBER: _ClassVar[int]
    header: _common_pb2.Header
    found: FoundDocument
    footprint: bytes
    def __init__(self, header: _Optional[_Union[_common_pb2.Header, _Mapping]] = ..., found: _Optional[_Union[FoundDocument, _Mapping]] = ..., footprint: _Optional[bytes] = ...) -> None: ...

class MultiGetRequest(_message.Message):
    __slots__ = ("table", "keys", "at", "format", "schema_id", "may_stop_early")
    TABLE_FIELD_NUMBER: _ClassVar[int]
    KEYS_FIELD_NUMBER: _ClassVar[int]
    AT_FIELD_NUMBER: _ClassVar[int]
    FORMAT_FIELD_NUMBER: _ClassVar[int]
    SCHEMA_ID_FIELD_NUMBER: _ClassVar[int]
    MAY_STOP_EARLY_FIELD_NUMBER: _ClassVar[int]
    table: TableName
    keys: _containers.RepeatedCompositeFieldContainer[_common_pb2.Key]
    at: _common_pb2.ReadAt
    format: _common_pb2.DocumentFormat
    schema_id: int
    may_stop_early: bool
    def __init__(self, table: _Optional[_Union[TableName, _Mapping]] = ..., keys: _Optional[_Iterable[_Union[_common_pb2.Key, _Mapping]]] = ..., at: _Optional[_Union[_common_pb2.ReadAt, _Mapping]] = ..., format: _Optional[_Union[_common_pb2.DocumentFormat, str]] = ..., schema_id: _Optional[int] = ..., may_stop_early: bool = ...) -> None: ...

class MultiGetResponse(_message.Message):
    __slots__ = ("header", "found", "footprint")
    HEADER_FIELD_NUMBER: _ClassVar[int]
    FOUND_FIELD_NUMBER: _ClassVar[int]
    FOOTPRINT_FIELD_NUMBER: _ClassVar[int]
    header: _common_pb2.Header
    found: _containers.RepeatedCompositeFieldContainer[FoundDocument]
    footprint: bytes
    def __init__(self, header: _Optional[_Union[_common_pb2.Header, _Mapping]] = ..., found: _Optional[_Iterable[_Union[FoundDocument, _Mapping]]] = ..., footprint: _Optional[bytes] = ...) -> None: ...

class PutDocumentRequest(_message.Message):
    __slots__ = ("table", "document", "mode", "condition", "request_id", "expiry")
    TABLE_FIELD_NUMBER: _ClassVar[int]
    DOCUMENT_FIELD_NUMBER: _ClassVar[int]
    MODE_FIELD_NUMBER: _ClassVar[int]
    CONDITION_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    EXPIRY_FIELD_NUMBER: _ClassVar[int]
    table: TableName
    document: _common_pb2.Document
    mode: PutMode
    condition: _common_pb2.Condition
    request_id: bytes
    expiry: _common_pb2.Expiry
    def __init__(self, table: _Optional[_Union[TableName, _Mapping]] = ..., document: _Optional[_Union[_common_pb2.Document, _Mapping]] = ..., mode: _Optional[_Union[PutMode, str]] = ..., condition: _Optional[_Union[_common_pb2.Condition, _Mapping]] = ..., request_id: _Optional[bytes] = ..., expiry: _Optional[_Union[_common_pb2.Expiry, _Mapping]] = ...) -> None: ...

class PutDocumentResponse(_message.Message):
    __slots__ = ("header", "etag")
    HEADER_FIELD_NUMBER: _ClassVar[int]
    ETAG_FIELD_NUMBER: _ClassVar[int]
    header: _common_pb2.Header
    etag: str
    def __init__(self, header: _Optional[_Union[_common_pb2.Header, _Mapping]] = ..., etag: _Optional[str] = ...) -> None: ...

class UpdateDocumentRequest(_message.Message):
    __slots__ = ("table", "key", "changes_json", "condition", "request_id", "format", "expiry")
    TABLE_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    CHANGES_JSON_FIELD_NUMBER: _ClassVar[int]
    CONDITION_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    FORMAT_FIELD_NUMBER: _ClassVar[int]
    EXPIRY_FIELD_NUMBER: _ClassVar[int]
    table: TableName
    key: _common_pb2.Key
    changes_json: str
    condition: _common_pb2.Condition
    request_id: bytes
    format: _common_pb2.DocumentFormat
    expiry: _common_pb2.Expiry
    def __init__(self, table: _Optional[_Union[TableName, _Mapping]] = ..., key: _Optional[_Union[_common_pb2.Key, _Mapping]] = ..., changes_json: _Optional[str] = ..., condition: _Optional[_Union[_common_pb2.Condition, _Mapping]] = ..., request_id: _Optional[bytes] = ..., format: _Optional[_Union[_common_pb2.DocumentFormat, str]] = ..., expiry: _Optional[_Union[_common_pb2.Expiry, _Mapping]] = ...) -> None: ...

class UpdateDocumentResponse(_message.Message):
    __slots__ = ("header", "found")
    HEADER_FIELD_NUMBER: _ClassVar[int]
    FOUND_FIELD_NUMBER: _ClassVar[int]
    header: _common_pb2.Header
    found: FoundDocument
    def __init__(self, header: _Optional[_Union[_common_pb2.Header, _Mapping]] = ..., found: _Optional[_Union[FoundDocument, _Mapping]] = ...) -> None: ...

class DeleteDocumentRequest(_message.Message):
    __slots__ = ("table", "key", "condition", "request_id")
    TABLE_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    CONDITION_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    table: TableName
    key: _common_pb2.Key
    condition: _common_pb2.Condition
    request_id: bytes
    def __init__(self, table: _Optional[_Union[TableName, _Mapping]] = ..., key: _Optional[_Union[_common_pb2.Key, _Mapping]] = ..., condition: _Optional[_Union[_common_pb2.Condition, _Mapping]] = ..., request_id: _Optional[bytes] = ...) -> None: ...

class DeleteDocumentResponse(_message.Message):
    __slots__ = ("header", "existed")
    HEADER_FIELD_NUMBER: _ClassVar[int]
    EXISTED_FIELD_NUMBER: _ClassVar[int]
    header: _common_pb2.Header
    existed: bool
    def __init__(self, header: _Optional[_Union[_common_pb2.Header, _Mapping]] = ..., existed: bool = ...) -> None: ...

class BulkStart(_message.Message):
    __slots__ = ("table", "mode", "unchanged_since", "staging", "expiry", "columns")
    TABLE_FIELD_NUMBER: _ClassVar[int]
    MODE_FIELD_NUMBER: _ClassVar[int]
    UNCHANGED_SINCE_FIELD_NUMBER: _ClassVar[int]
    STAGING_FIELD_NUMBER: _ClassVar[int]
    EXPIRY_FIELD_NUMBER: _ClassVar[int]
    COLUMNS_FIELD_NUMBER: _ClassVar[int]
    table: TableName
    mode: BulkMode
    unchanged_since: _common_pb2.Timestamp
    staging: Staging
    expiry: _common_pb2.Expiry
    columns: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, table: _Optional[_Union[TableName, _Mapping]] = ..., mode: _Optional[_Union[BulkMode, str]] = ..., unchanged_since: _Optional[_Union[_common_pb2.Timestamp, _Mapping]] = ..., staging: _Optional[_Union[Staging, _Mapping]] = ..., expiry: _Optional[_Union[_common_pb2.Expiry, _Mapping]] = ..., columns: _Optional[_Iterable[str]] = ...) -> None: ...

class Staging(_message.Message):
    __slots__ = ("transaction_id", "task", "attempt")
    TRANSACTION_ID_FIELD_NUMBER: _ClassVar[int]
    TASK_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    transaction_id: bytes
    task: int
    attempt: int
    def __init__(self, transaction_id: _Optional[bytes] = ..., task: _Optional[int] = ..., attempt: _Optional[int] = ...) -> None: ...

class BulkChunk(_message.Message):
    __slots__ = ("sequence", "rows", "json_rows", "request_id")
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    ROWS_FIELD_NUMBER: _ClassVar[int]
    JSON_ROWS_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    sequence: int
    rows: _common_pb2.RowBatch
    json_rows: _containers.RepeatedScalarFieldContainer[str]
    request_id: bytes
    def __init__(self, sequence: _Optional[int] = ..., rows: _Optional[_Union[_common_pb2.RowBatch, _Mapping]] = ..., json_rows: _Optional[_Iterable[str]] = ..., request_id: _Optional[bytes] = ...) -> None: ...

class BulkRequest(_message.Message):
    __slots__ = ("start", "chunk")
    START_FIELD_NUMBER: _ClassVar[int]
    CHUNK_FIELD_NUMBER: _ClassVar[int]
    start: BulkStart
    chunk: BulkChunk
    def __init__(self, start: _Optional[_Union[BulkStart, _Mapping]] = ..., chunk: _Optional[_Union[BulkChunk, _Mapping]] = ...) -> None: ...

class BulkResponse(_message.Message):
    __slots__ = ("header", "sequence", "written", "errors")
    HEADER_FIELD_NUMBER: _ClassVar[int]
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    WRITTEN_FIELD_NUMBER: _ClassVar[int]
    ERRORS_FIELD_NUMBER: _ClassVar[int]
    header: _common_pb2.Header
    sequence: int
    written: int
    errors: _containers.RepeatedCompositeFieldContainer[_common_pb2.RowError]
    def __init__(self, header: _Optional[_Union[_common_pb2.Header, _Mapping]] = ..., sequence: _Optional[int] = ..., written: _Optional[int] = ..., errors: _Optional[_Iterable[_Union[_common_pb2.RowError, _Mapping]]] = ...) -> None: ...

class ScanRequest(_message.Message):
    __slots__ = ("table", "index", "range", "reverse", "filter", "columns", "limit", "page_size", "page_token", "at", "format", "schema_id", "with_versions")
    TABLE_FIELD_NUMBER: _ClassVar[int]
    INDEX_FIELD_NUMBER: _ClassVar[int]
    RANGE_FIELD_NUMBER: _ClassVar[int]
    REVERSE_FIELD_NUMBER: _ClassVar[int]
    FILTER_FIELD_NUMBER: _ClassVar[int]
    COLUMNS_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    AT_FIELD_NUMBER: _ClassVar[int]
    FORMAT_FIELD_NUMBER: _ClassVar[int]
    SCHEMA_ID_FIELD_NUMBER: _ClassVar[int]
    WITH_VERSIONS_FIELD_NUMBER: _ClassVar[int]
    table: TableName
    index: str
    range: _common_pb2.KeyRange
    reverse: bool
    filter: str
    columns: _containers.RepeatedScalarFieldContainer[str]
    limit: int
    page_size: int
    page_token: bytes
    at: _common_pb2.ReadAt
    format: _common_pb2.DocumentFormat
    schema_id: int
    with_versions: bool
    def __init__(self, table: _Optional[_Union[TableName, _Mapping]] = ..., index: _Optional[str] = ..., range: _Optional[_Union[_common_pb2.KeyRange, _Mapping]] = ..., reverse: bool = ..., filter: _Optional[str] = ..., columns: _Optional[_Iterable[str]] = ..., limit: _Optional[int] = ..., page_size: _Optional[int] = ..., page_token: _Optional[bytes] = ..., at: _Optional[_Union[_common_pb2.ReadAt, _Mapping]] = ..., format: _Optional[_Union[_common_pb2.DocumentFormat, str]] = ..., schema_id: _Optional[int] = ..., with_versions: bool = ...) -> None: ...

class ScanResponse(_message.Message):
    __slots__ = ("header", "batches", "json_rows", "etags", "next_page_token", "projected_schema", "footprint")
    HEADER_FIELD_NUMBER: _ClassVar[int]
    BATCHES_FIELD_NUMBER: _ClassVar[int]
    JSON_ROWS_FIELD_NUMBER: _ClassVar[int]
    ETAGS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    PROJECTED_SCHEMA_FIELD_NUMBER: _ClassVar[int]
    FOOTPRINT_FIELD_NUMBER: _ClassVar[int]
    header: _common_pb2.Header
    batches: _containers.RepeatedCompositeFieldContainer[_common_pb2.RowBatch]
    json_rows: _containers.RepeatedScalarFieldContainer[str]
    etags: _containers.RepeatedScalarFieldContainer[str]
    next_page_token: bytes
    projected_schema: str
    footprint: bytes
    def __init__(self, header: _Optional[_Union[_common_pb2.Header, _Mapping]] = ..., batches: _Optional[_Iterable[_Union[_common_pb2.RowBatch, _Mapping]]] = ..., json_rows: _Optional[_Iterable[str]] = ..., etags: _Optional[_Iterable[str]] = ..., next_page_token: _Optional[bytes] = ..., projected_schema: _Optional[str] = ..., footprint: _Optional[bytes] = ...) -> None: ...

class Aggregate(_message.Message):
    __slots__ = ("kind", "field")
    KIND_FIELD_NUMBER: _ClassVar[int]
    FIELD_FIELD_NUMBER: _ClassVar[int]
    kind: AggregateKind
    field: str
    def __init__(self, kind: _Optional[_Union[AggregateKind, str]] = ..., field: _Optional[str] = ...) -> None: ...

class AggregateRequest(_message.Message):
    __slots__ = ("table", "index", "range", "filter", "group_by", "aggregates", "page_token", "at", "schema_id")
    TABLE_FIELD_NUMBER: _ClassVar[int]
    INDEX_FIELD_NUMBER: _ClassVar[int]
    RANGE_FIELD_NUMBER: _ClassVar[int]
    FILTER_FIELD_NUMBER: _ClassVar[int]
    GROUP_BY_FIELD_NUMBER: _ClassVar[int]
    AGGREGATES_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    AT_FIELD_NUMBER: _ClassVar[int]
    SCHEMA_ID_FIELD_NUMBER: _ClassVar[int]
    table: TableName
    index: str
    range: _common_pb2.KeyRange
    filter: str
    group_by: _containers.RepeatedScalarFieldContainer[str]
    aggregates: _containers.RepeatedCompositeFieldContainer[Aggregate]
    page_token: bytes
    at: _common_pb2.ReadAt
    schema_id: int
    def __init__(self, table: _Optional[_Union[TableName, _Mapping]] = ..., index: _Optional[str] = ..., range: _Optional[_Union[_common_pb2.KeyRange, _Mapping]] = ..., filter: _Optional[str] = ..., group_by: _Optional[_Iterable[str]] = ..., aggregates: _Optional[_Iterable[_Union[Aggregate, _Mapping]]] = ..., page_token: _Optional[bytes] = ..., at: _Optional[_Union[_common_pb2.ReadAt, _Mapping]] = ..., schema_id: _Optional[int] = ...) -> None: ...

class AggregateResponse(_message.Message):
    __slots__ = ("header", "groups", "groups_schema", "result_schema", "next_page_token", "footprint")
    HEADER_FIELD_NUMBER: _ClassVar[int]
    GROUPS_FIELD_NUMBER: _ClassVar[int]
    GROUPS_SCHEMA_FIELD_NUMBER: _ClassVar[int]
    RESULT_SCHEMA_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    FOOTPRINT_FIELD_NUMBER: _ClassVar[int]
    header: _common_pb2.Header
    groups: _common_pb2.RowBatch
    groups_schema: str
    result_schema: str
    next_page_token: bytes
    footprint: bytes
    def __init__(self, header: _Optional[_Union[_common_pb2.Header, _Mapping]] = ..., groups: _Optional[_Union[_common_pb2.RowBatch, _Mapping]] = ..., groups_schema: _Optional[str] = ..., result_schema: _Optional[str] = ..., next_page_token: _Optional[bytes] = ..., footprint: _Optional[bytes] = ...) -> None: ...

class SplitRequest(_message.Message):
    __slots__ = ("table", "range", "parts", "at", "part_bytes")
    TABLE_FIELD_NUMBER: _ClassVar[int]
    RANGE_FIELD_NUMBER: _ClassVar[int]
    PARTS_FIELD_NUMBER: _ClassVar[int]
    AT_FIELD_NUMBER: _ClassVar[int]
    PART_BYTES_FIELD_NUMBER: _ClassVar[int]
    table: TableName
    range: _common_pb2.KeyRange
    parts: int
    at: _common_pb2.ReadAt
    part_bytes: int
    def __init__(self, table: _Optional[_Union[TableName, _Mapping]] = ..., range: _Optional[_Union[_common_pb2.KeyRange, _Mapping]] = ..., parts: _Optional[int] = ..., at: _Optional[_Union[_common_pb2.ReadAt, _Mapping]] = ..., part_bytes: _Optional[int] = ...) -> None: ...

class SplitResponse(_message.Message):
    __slots__ = ("header", "ranges", "rows")
    HEADER_FIELD_NUMBER: _ClassVar[int]
    RANGES_FIELD_NUMBER: _ClassVar[int]
    ROWS_FIELD_NUMBER: _ClassVar[int]
    header: _common_pb2.Header
    ranges: _containers.RepeatedCompositeFieldContainer[_common_pb2.KeyRange]
    rows: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, header: _Optional[_Union[_common_pb2.Header, _Mapping]] = ..., ranges: _Optional[_Iterable[_Union[_common_pb2.KeyRange, _Mapping]]] = ..., rows: _Optional[_Iterable[int]] = ...) -> None: ...
