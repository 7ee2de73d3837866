from cortado.proto.v1 import common_pb2 as _common_pb2
from cortado.proto.v1 import documents_pb2 as _documents_pb2
from cortado.proto.v1 import kv_pb2 as _kv_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ChangeKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    CHANGE_KIND_PUT: _ClassVar[ChangeKind]
    CHANGE_KIND_DELETE: _ClassVar[ChangeKind]
CHANGE_KIND_PUT: ChangeKind
CHANGE_KIND_DELETE: ChangeKind

class WatchOptions(_message.Message):
    __slots__ = ("after", "initial_state", "page_token", "resolved_interval_ms", "with_previous", "progress_only")
    AFTER_FIELD_NUMBER: _ClassVar[int]
    INITIAL_STATE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    RESOLVED_INTERVAL_MS_FIELD_NUMBER: _ClassVar[int]
    WITH_PREVIOUS_FIELD_NUMBER: _ClassVar[int]
    PROGRESS_ONLY_FIELD_NUMBER: _ClassVar[int]
    after: _common_pb2.ReadAt
    initial_state: bool
    page_token: bytes
    resolved_interval_ms: int
    with_previous: bool
    progress_only: bool
    def __init__(self, after: _Optional[_Union[_common_pb2.ReadAt, _Mapping]] = ..., initial_state: bool = ..., page_token: _Optional[bytes] = ..., resolved_interval_ms: _Optional[int] = ..., with_previous: bool = ..., progress_only: bool = ...) -> None: ...

class WatchKeyValueRequest(_message.Message):
    __slots__ = ("namespace", "range", "options", "packed")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    RANGE_FIELD_NUMBER: _ClassVar[int]
    OPTIONS_FIELD_NUMBER: _ClassVar[int]
    PACKED_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    range: _kv_pb2.KvRange
    options: WatchOptions
    packed: bool
    def __init__(self, namespace: _Optional[str] = ..., range: _Optional[_Union[_kv_pb2.KvRange, _Mapping]] = ..., options: _Optional[_Union[WatchOptions, _Mapping]] = ..., packed: bool = ...) -> None: ...

class KvChange(_message.Message):
    __slots__ = ("kind", "key", "value", "timestamp", "etag", "previous", "expires_ms")
    KIND_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    TIMESTAMP_FIELD_NUMBER: _ClassVar[int]
    ETAG_FIELD_NUMBER: _ClassVar[int]
    PREVIOUS_FIELD_NUMBER: _ClassVar[int]
    EXPIRES_MS_FIELD_NUMBER: _ClassVar[int]
    kind: ChangeKind
    key: bytes
    value: bytes
    timestamp: _common_pb2.Timestamp
    etag: str
    previous: _kv_pb2.KvPair
    expires_ms: int
    def __init__(self, kind: _Optional[_Union[ChangeKind, str]] = ..., key: _Optional[bytes] = ..., value: _Optional[bytes] = ..., timestamp: _Optional[_Union[_common_pb2.Timestamp, _Mapping]] = ..., etag: _Optional[str] = ..., previous: _Optional[_Union[_kv_pb2.KvPair, _Mapping]] = ..., expires_ms: _Optional[int] = ...) -> None: ...

class WatchKeyValueResponse(_message.Message):
    __slots__ = ("header", "changes", "packed", "resolved", "next_page_token")
    HEADER_FIELD_NUMBER: _ClassVar[int]
    CHANGES_FIELD_NUMBER: _ClassVar[int]
    PACKED_FIELD_NUMBER: _ClassVar[int]
    RESOLVED_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    header: _common_pb2.Header
    changes: _containers.RepeatedCompositeFieldContainer[KvChange]
    packed: KvPackedChanges
    resolved: _common_pb2.Timestamp
    next_page_token: bytes
    def __init__(self, header: _Optional[_Union[_common_pb2.Header, _Mapping]] = ..., changes: _Optional[_Iterable[_Union[KvChange, _Mapping]]] = ..., packed: _Optional[_Union[KvPackedChanges, _Mapping]] = ..., resolved: _Optional[_Union[_common_pb2.Timestamp, _Mapping]] = ..., next_page_token: _Optional[bytes] = ...) -> None: ...

class KvPackedChanges(_message.Message):
    __slots__ = ("keys", "key_lengths", "values", "value_lengths", "versions", "deletes", "replacing", "replaced", "expiring", "expires_ms")
    KEYS_FIELD_NUMBER: _ClassVar[int]
    KEY_LENGTHS_FIELD_NUMBER: _ClassVar[int]
    VALUES_FIELD_NUMBER: _ClassVar[int]
    VALUE_LENGTHS_FIELD_NUMBER: _ClassVar[int]
    VERSIONS_FIELD_NUMBER: _ClassVar[int]
    DELETES_FIELD_NUMBER: _ClassVar[int]
    REPLACING_FIELD_NUMBER: _ClassVar[int]
    REPLACED_FIELD_NUMBER: _ClassVar[int]
    EXPIRING_FIELD_NUMBER: _ClassVar[int]
    EXPIRES_MS_FIELD_NUMBER: _ClassVar[int]
    keys: bytes
    key_lengths: bytes
    values: bytes
    value_lengths: bytes
    versions: bytes
    deletes: _containers.RepeatedScalarFieldContainer[int]
    replacing: _containers.RepeatedScalarFieldContainer[int]
    replaced: _kv_pb2.KvPackedPairs
    expiring: _containers.RepeatedScalarFieldContainer[int]
    expires_ms: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, keys: _Optional[bytes] = ..., key_lengths: _Optional[bytes] = ..., values: _Optional[bytes] = ..., value_lengths: _Optional[bytes] = ..., versions: _Optional[bytes] = ..., deletes: _Optional[_Iterable[int]] = ..., replacing: _Optional[_Iterable[int]] = ..., replaced: _Optional[_Union[_kv_pb2.KvPackedPairs, _Mapping]] = ..., expiring: _Optional[_Iterable[int]] = ..., expires_ms: _Optional[_Iterable[int]] = ...) -> None: ...

class WatchTableRequest(_message.Message):
    __slots__ = ("table", "range", "options", "format", "schema_id", "packed")
    TABLE_FIELD_NUMBER: _ClassVar[int]
    RANGE_FIELD_NUMBER: _ClassVar[int]
    OPTIONS_FIELD_NUMBER: _ClassVar[int]
    FORMAT_FIELD_NUMBER: _ClassVar[int]
    SCHEMA_ID_FIELD_NUMBER: _ClassVar[int]
    PACKED_FIELD_NUMBER: _ClassVar[int]
    table: _documents_pb2.TableName
    range: _common_pb2.KeyRange
    options: WatchOptions
    format: _common_pb2.DocumentFormat
    schema_id: int
    packed: bool
    def __init__(self, table: _Optional[_Union[_documents_pb2.TableName, _Mapping]] = ..., range: _Optional[_Union[_common_pb2.KeyRange, _Mapping]] = ..., options: _Optional[_Union[WatchOptions, _Mapping]] = ..., format: _Optional[_Union[_common_pb2.DocumentFormat, str]] = ..., schema_id: _Optional[int] = ..., packed: bool = ...) -> None: ...

class TableChange(_message.Message):
    __slots__ = ("kind", "key", "document", "timestamp", "etag", "previous", "expires_ms")
    KIND_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    DOCUMENT_FIELD_NUMBER: _ClassVar[int]
    TIMESTAMP_FIELD_NUMBER: _ClassVar[int]
    ETAG_FIELD_NUMBER: _ClassVar[int]
    PREVIOUS_FIELD_NUMBER: _ClassVar[int]
    EXPIRES_MS_FIELD_NUMBER: _ClassVar[int]
    kind: ChangeKind
    key: _common_pb2.Key
    document: _common_pb2.Document
    timestamp: _common_pb2.Timestamp
    etag: str
    previous: _documents_pb2.FoundDocument
    expires_ms: int
    def __init__(self, kind: _Optional[_Union[ChangeKind, str]] = ..., key: _Optional[_Union[_common_pb2.Key, _Mapping]] = ..., document: _Optional[_Union[_common_pb2.Document, _Mapping]] = ..., timestamp: _Optional[_Union[_common_pb2.Timestamp, _Mapping]] = ..., etag: _Optional[str] = ..., previous: _Optional[_Union[_documents_pb2.FoundDocument, _Mapping]] = ..., expires_ms: _Optional[int] = ...) -> None: ...

class WatchTableResponse(_message.Message):
    __slots__ = ("header", "changes", "packed", "resolved", "next_page_token")
    HEADER_FIELD_NUMBER: _ClassVar[int]
    CHANGES_FIELD_NUMBER: _ClassVar[int]
    PACKED_FIELD_NUMBER: _ClassVar[int]
    RESOLVED_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    header: _common_pb2.Header
    changes: _containers.RepeatedCompositeFieldContainer[TableChange]
    packed: TablePackedChanges
    resolved: _common_pb2.Timestamp
    next_page_token: bytes
    def __init__(self, header: _Optional[_Union[_common_pb2.Header, _Mapping]] = ..., changes: _Optional[_Iterable[_Union[TableChange, _Mapping]]] = ..., packed: _Optional[_Union[TablePackedChanges, _Mapping]] = ..., resolved: _Optional[_Union[_common_pb2.Timestamp, _Mapping]] = ..., next_page_token: _Optional[bytes] = ...) -> None: ...

class TablePackedChanges(_message.Message):
    __slots__ = ("rows", "versions", "deletes", "deleted", "replacing", "replaced", "expiring", "expires_ms")
    ROWS_FIELD_NUMBER: _ClassVar[int]
    VERSIONS_FIELD_NUMBER: _ClassVar[int]
    DELETES_FIELD_NUMBER: _ClassVar[int]
    DELETED_FIELD_NUMBER: _ClassVar[int]
    REPLACING_FIELD_NUMBER: _ClassVar[int]
    REPLACED_FIELD_NUMBER: _ClassVar[int]
    EXPIRING_FIELD_NUMBER: _ClassVar[int]
    EXPIRES_MS_FIELD_NUMBER: _ClassVar[int]
    rows: _containers.RepeatedCompositeFieldContainer[_common_pb2.RowBatch]
    versions: bytes
    deletes: _containers.RepeatedScalarFieldContainer[int]
    deleted: _containers.RepeatedCompositeFieldContainer[_common_pb2.Key]
    replacing: _containers.RepeatedScalarFieldContainer[int]
    replaced: _containers.RepeatedCompositeFieldContainer[_common_pb2.RowBatch]
    expiring: _containers.RepeatedScalarFieldContainer[int]
    expires_ms: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, rows: _Optional[_Iterable[_Union[_common_pb2.RowBatch, _Mapping]]] = ..., versions: _Optional[bytes] = ..., deletes: _Optional[_Iterable[int]] = ..., deleted: _Optional[_Iterable[_Union[_common_pb2.Key, _Mapping]]] = ..., replacing: _Optional[_Iterable[int]] = ..., replaced: _Optional[_Iterable[_Union[_common_pb2.RowBatch, _Mapping]]] = ..., expiring: _Optional[_Iterable[int]] = ..., expires_ms: _Optional[_Iterable[int]] = ...) -> None: ...

class WindowOfTable(_message.Message):
    __slots__ = ("table", "range")
    TABLE_FIELD_NUMBER: _ClassVar[int]
    RANGE_FIELD_NUMBER: _ClassVar[int]
    table: _documents_pb2.TableName
    range: _common_pb2.KeyRange
    def __init__(self, table: _Optional[_Union[_documents_pb2.TableName, _Mapping]] = ..., range: _Optional[_Union[_common_pb2.KeyRange, _Mapping]] = ...) -> None: ...

class WindowOfPairs(_message.Message):
    __slots__ = ("namespace", "range")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    RANGE_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    range: _kv_pb2.KvRange
    def __init__(self, namespace: _Optional[str] = ..., range: _Optional[_Union[_kv_pb2.KvRange, _Mapping]] = ...) -> None: ...

class WindowRequest(_message.Message):
    __slots__ = ("table", "pairs", "after", "until", "changes_max", "bytes_max", "parts")
    TABLE_FIELD_NUMBER: _ClassVar[int]
    PAIRS_FIELD_NUMBER: _ClassVar[int]
    AFTER_FIELD_NUMBER: _ClassVar[int]
    UNTIL_FIELD_NUMBER: _ClassVar[int]
    CHANGES_MAX_FIELD_NUMBER: _ClassVar[int]
    BYTES_MAX_FIELD_NUMBER: _ClassVar[int]
    PARTS_FIELD_NUMBER: _ClassVar[int]
    table: WindowOfTable
    pairs: WindowOfPairs
    after: _common_pb2.ReadAt
    until: _common_pb2.ReadAt
    changes_max: int
    bytes_max: int
    parts: int
    def __init__(self, table: _Optional[_Union[WindowOfTable, _Mapping]] = ..., pairs: _Optional[_Union[WindowOfPairs, _Mapping]] = ..., after: _Optional[_Union[_common_pb2.ReadAt, _Mapping]] = ..., until: _Optional[_Union[_common_pb2.ReadAt, _Mapping]] = ..., changes_max: _Optional[int] = ..., bytes_max: _Optional[int] = ..., parts: _Optional[int] = ...) -> None: ...

class WindowResponse(_message.Message):
    __slots__ = ("header", "until", "changes", "ranges", "pair_ranges", "changes_of_ranges")
    HEADER_FIELD_NUMBER: _ClassVar[int]
    UNTIL_FIELD_NUMBER: _ClassVar[int]
    CHANGES_FIELD_NUMBER: _ClassVar[int]
    RANGES_FIELD_NUMBER: _ClassVar[int]
    PAIR_RANGES_FIELD_NUMBER: _ClassVar[int]
    CHANGES_OF_RANGES_FIELD_NUMBER: _ClassVar[int]
    header: _common_pb2.Header
    until: _common_pb2.Timestamp
    changes: int
    ranges: _containers.RepeatedCompositeFieldContainer[_common_pb2.KeyRange]
    pair_ranges: _containers.RepeatedCompositeFieldContainer[_kv_pb2.KvRange]
    changes_of_ranges: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, header: _Optional[_Union[_common_pb2.Header, _Mapping]] = ..., until: _Optional[_Union[_common_pb2.Timestamp, _Mapping]] = ..., changes: _Optional[int] = ..., ranges: _Optional[_Iterable[_Union[_common_pb2.KeyRange, _Mapping]]] = ..., pair_ranges: _Optional[_Iterable[_Union[_kv_pb2.KvRange, _Mapping]]] = ..., changes_of_ranges: _Optional[_Iterable[int]] = ...) -> None: ...
