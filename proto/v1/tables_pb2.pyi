from cortado.proto.v1 import common_pb2 as _common_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class KeyType(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    KEY_TYPE_UNSPECIFIED: _ClassVar[KeyType]
    KEY_TYPE_BOOL: _ClassVar[KeyType]
    KEY_TYPE_INT64: _ClassVar[KeyType]
    KEY_TYPE_FLOAT64: _ClassVar[KeyType]
    KEY_TYPE_BYTES: _ClassVar[KeyType]
    KEY_TYPE_STRING: _ClassVar[KeyType]
    KEY_TYPE_TIMESTAMP: _ClassVar[KeyType]
    KEY_TYPE_DATE: _ClassVar[KeyType]
    KEY_TYPE_DECIMAL: _ClassVar[KeyType]
    KEY_TYPE_UUID: _ClassVar[KeyType]

class IndexState(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    INDEX_STATE_UNSPECIFIED: _ClassVar[IndexState]
    INDEX_STATE_BUILDING: _ClassVar[IndexState]
    INDEX_STATE_READY: _ClassVar[IndexState]
    INDEX_STATE_FAILED: _ClassVar[IndexState]

class DropKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    DROP_KIND_UNSPECIFIED: _ClassVar[DropKind]
    DROP_KIND_TABLE: _ClassVar[DropKind]
    DROP_KIND_TRUNCATED: _ClassVar[DropKind]
    DROP_KIND_INDEX: _ClassVar[DropKind]
    DROP_KIND_DATABASE: _ClassVar[DropKind]
    DROP_KIND_NAMESPACE: _ClassVar[DropKind]
KEY_TYPE_UNSPECIFIED: KeyType
KEY_TYPE_BOOL: KeyType
KEY_TYPE_INT64: KeyType
KEY_TYPE_FLOAT64: KeyType
KEY_TYPE_BYTES: KeyType
KEY_TYPE_STRING: KeyType
KEY_TYPE_TIMESTAMP: KeyType
KEY_TYPE_DATE: KeyType
KEY_TYPE_DECIMAL: KeyType
KEY_TYPE_UUID: KeyType
INDEX_STATE_UNSPECIFIED: IndexState
INDEX_STATE_BUILDING: IndexState
INDEX_STATE_READY: IndexState
INDEX_STATE_FAILED: IndexState
DROP_KIND_UNSPECIFIED: DropKind
DROP_KIND_TABLE: DropKind
DROP_KIND_TRUNCATED: DropKind
DROP_KIND_INDEX: DropKind
DROP_KIND_DATABASE: DropKind
DROP_KIND_NAMESPACE: DropKind

class KeyPart(_message.Message):
    __slots__ = ("path", "type", "descending")
    PATH_FIELD_NUMBER: _ClassVar[int]
    TYPE_FIELD_NUMBER: _ClassVar[int]
    DESCENDING_FIELD_NUMBER: _ClassVar[int]
    path: str
    type: KeyType
    descending: bool
    def __init__(self, path: _Optional[str] = ..., type: _Optional[_Union[KeyType, str]] = ..., descending: bool = ...) -> None: ...

class Index(_message.Message):
    __slots__ = ("index_id", "name", "parts", "unique", "state", "ready", "job_id", "failure", "failed_keys")
    INDEX_ID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    PARTS_FIELD_NUMBER: _ClassVar[int]
    UNIQUE_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    READY_FIELD_NUMBER: _ClassVar[int]
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    FAILURE_FIELD_NUMBER: _ClassVar[int]
    FAILED_KEYS_FIELD_NUMBER: _ClassVar[int]
    index_id: int
    name: str
    parts: _containers.RepeatedCompositeFieldContainer[KeyPart]
    unique: bool
    state: IndexState
    ready: _common_pb2.Timestamp
    job_id: int
    failure: str
    failed_keys: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, index_id: _Optional[int] = ..., name: _Optional[str] = ..., parts: _Optional[_Iterable[_Union[KeyPart, _Mapping]]] = ..., unique: bool = ..., state: _Optional[_Union[IndexState, str]] = ..., ready: _Optional[_Union[_common_pb2.Timestamp, _Mapping]] = ..., job_id: _Optional[int] = ..., failure: _Optional[str] = ..., failed_keys: _Optional[_Iterable[str]] = ...) -> None: ...

class Table(_message.Message):
    __slots__ = ("table_id", "database", "name", "subject", "key", "indexes", "version", "retention_ms", "named", "ttl_ms")
    TABLE_ID_FIELD_NUMBER: _ClassVar[int]
    DATABASE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    SUBJECT_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    INDEXES_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    RETENTION_MS_FIELD_NUMBER: _ClassVar[int]
    NAMED_FIELD_NUMBER: _ClassVar[int]
    TTL_MS_FIELD_NUMBER: _ClassVar[int]
    table_id: int
    database: str
    name: str
    subject: str
    key: _containers.RepeatedCompositeFieldContainer[KeyPart]
    indexes: _containers.RepeatedCompositeFieldContainer[Index]
    version: int
    retention_ms: int
    named: _common_pb2.Timestamp
    ttl_ms: int
    def __init__(self, table_id: _Optional[int] = ..., database: _Optional[str] = ..., name: _Optional[str] = ..., subject: _Optional[str] = ..., key: _Optional[_Iterable[_Union[KeyPart, _Mapping]]] = ..., indexes: _Optional[_Iterable[_Union[Index, _Mapping]]] = ..., version: _Optional[int] = ..., retention_ms: _Optional[int] = ..., named: _Optional[_Union[_common_pb2.Timestamp, _Mapping]] = ..., ttl_ms: _Optional[int] = ...) -> None: ...

class CreateDatabaseRequest(_message.Message):
    __slots__ = ("database", "request_id")
    DATABASE_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    database: str
    request_id: bytes
    def __init__(self, database: _Optional[str] = ..., request_id: _Optional[bytes] = ...) -> None: ...

class CreateDatabaseResponse(_message.Message):
    __slots__ = ("header",)
    HEADER_FIELD_NUMBER: _ClassVar[int]
    header: _common_pb2.Header
    def __init__(self, header: _Optional[_Union[_common_pb2.Header, _Mapping]] = ...) -> None: ...

class ListDatabasesRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ListDatabasesResponse(_message.Message):
    __slots__ = ("header", "databases")
    HEADER_FIELD_NUMBER: _ClassVar[int]
    DATABASES_FIELD_NUMBER: _ClassVar[int]
    header: _common_pb2.Header
    databases: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, header: _Optional[_Union[_common_pb2.Header, _Mapping]] = ..., databases: _Optional[_Iterable[str]] = ...) -> None: ...

class Size(_message.Message):
    __slots__ = ("count", "is_estimated", "bytes")
    COUNT_FIELD_NUMBER: _ClassVar[int]
    IS_ESTIMATED_FIELD_NUMBER: _ClassVar[int]
    BYTES_FIELD_NUMBER: _ClassVar[int]
    count: int
    is_estimated: bool
    bytes: int
    def __init__(self, count: _Optional[int] = ..., is_estimated: bool = ..., bytes: _Optional[int] = ...) -> None: ...

class IndexSize(_message.Message):
    __slots__ = ("name", "size")
    NAME_FIELD_NUMBER: _ClassVar[int]
    SIZE_FIELD_NUMBER: _ClassVar[int]
    name: str
    size: Size
    def __init__(self, name: _Optional[str] = ..., size: _Optional[_Union[Size, _Mapping]] = ...) -> None: ...

class TableSize(_message.Message):
    __slots__ = ("database", "name", "rows", "indexes")
    DATABASE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    ROWS_FIELD_NUMBER: _ClassVar[int]
    INDEXES_FIELD_NUMBER: _ClassVar[int]
    database: str
    name: str
    rows: Size
    indexes: _containers.RepeatedCompositeFieldContainer[IndexSize]
    def __init__(self, database: _Optional[str] = ..., name: _Optional[str] = ..., rows: _Optional[_Union[Size, _Mapping]] = ..., indexes: _Optional[_Iterable[_Union[IndexSize, _Mapping]]] = ...) -> None: ...

class TableSizesRequest(_message.Message):
    __slots__ = ("database", "name", "page_size", "page_token")
    DATABASE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    database: str
    name: str
    page_size: int
    page_token: bytes
    def __init__(self, database: _Optional[str] = ..., name: _Optional[str] = ..., page_size: _Optional[int] = ..., page_token: _Optional[bytes] = ...) -> None: ...

class TableSizesResponse(_message.Message):
    __slots__ = ("header", "tables", "next_page_token")
    HEADER_FIELD_NUMBER: _ClassVar[int]
    TABLES_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    header: _common_pb2.Header
    tables: _containers.RepeatedCompositeFieldContainer[TableSize]
    next_page_token: bytes
    def __init__(self, header: _Optional[_Union[_common_pb2.Header, _Mapping]] = ..., tables: _Optional[_Iterable[_Union[TableSize, _Mapping]]] = ..., next_page_token: _Optional[bytes] = ...) -> None: ...

class DatabaseSize(_message.Message):
    __slots__ = ("name", "tables", "rows")
    NAME_FIELD_NUMBER: _ClassVar[int]
    TABLES_FIELD_NUMBER: _ClassVar[int]
    ROWS_FIELD_NUMBER: _ClassVar[int]
    name: str
    tables: int
    rows: Size
    def __init__(self, name: _Optional[str] = ..., tables: _Optional[int] = ..., rows: _Optional[_Union[Size, _Mapping]] = ...) -> None: ...

class DatabaseSizesRequest(_message.Message):
    __slots__ = ("page_size", "page_token")
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    page_size: int
    page_token: bytes
    def __init__(self, page_size: _Optional[int] = ..., page_token: _Optional[bytes] = ...) -> None: ...

class DatabaseSizesResponse(_message.Message):
    __slots__ = ("header", "databases", "next_page_token")
    HEADER_FIELD_NUMBER: _ClassVar[int]
    DATABASES_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    header: _common_pb2.Header
    databases: _containers.RepeatedCompositeFieldContainer[DatabaseSize]
    next_page_token: bytes
    def __init__(self, header: _Optional[_Union[_common_pb2.Header, _Mapping]] = ..., databases: _Optional[_Iterable[_Union[DatabaseSize, _Mapping]]] = ..., next_page_token: _Optional[bytes] = ...) -> None: ...

class CreateTableRequest(_message.Message):
    __slots__ = ("database", "name", "subject", "key", "indexes", "request_id", "retention_ms", "ttl_ms")
    DATABASE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    SUBJECT_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    INDEXES_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    RETENTION_MS_FIELD_NUMBER: _ClassVar[int]
    TTL_MS_FIELD_NUMBER: _ClassVar[int]
    database: str
    name: str
    subject: str
    key: _containers.RepeatedCompositeFieldContainer[KeyPart]
    indexes: _containers.RepeatedCompositeFieldContainer[Index]
    request_id: bytes
    retention_ms: int
    ttl_ms: int
    def __init__(self, database: _Optional[str] = ..., name: _Optional[str] = ..., subject: _Optional[str] = ..., key: _Optional[_Iterable[_Union[KeyPart, _Mapping]]] = ..., indexes: _Optional[_Iterable[_Union[Index, _Mapping]]] = ..., request_id: _Optional[bytes] = ..., retention_ms: _Optional[int] = ..., ttl_ms: _Optional[int] = ...) -> None: ...

class CreateTableResponse(_message.Message):
    __slots__ = ("header", "table")
    HEADER_FIELD_NUMBER: _ClassVar[int]
    TABLE_FIELD_NUMBER: _ClassVar[int]
    header: _common_pb2.Header
    table: Table
    def __init__(self, header: _Optional[_Union[_common_pb2.Header, _Mapping]] = ..., table: _Optional[_Union[Table, _Mapping]] = ...) -> None: ...

class ListTablesRequest(_message.Message):
    __slots__ = ("database", "page_size", "page_token", "at")
    DATABASE_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    AT_FIELD_NUMBER: _ClassVar[int]
    database: str
    page_size: int
    page_token: bytes
    at: _common_pb2.ReadAt
    def __init__(self, database: _Optional[str] = ..., page_size: _Optional[int] = ..., page_token: _Optional[bytes] = ..., at: _Optional[_Union[_common_pb2.ReadAt, _Mapping]] = ...) -> None: ...

class ListTablesResponse(_message.Message):
    __slots__ = ("header", "tables", "next_page_token")
    HEADER_FIELD_NUMBER: _ClassVar[int]
    TABLES_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    header: _common_pb2.Header
    tables: _containers.RepeatedCompositeFieldContainer[Table]
    next_page_token: bytes
    def __init__(self, header: _Optional[_Union[_common_pb2.Header, _Mapping]] = ..., tables: _Optional[_Iterable[_Union[Table, _Mapping]]] = ..., next_page_token: _Optional[bytes] = ...) -> None: ...

class DescribeTableRequest(_message.Message):
    __slots__ = ("database", "name", "at")
    DATABASE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    AT_FIELD_NUMBER: _ClassVar[int]
    database: str
    name: str
    at: _common_pb2.ReadAt
    def __init__(self, database: _Optional[str] = ..., name: _Optional[str] = ..., at: _Optional[_Union[_common_pb2.ReadAt, _Mapping]] = ...) -> None: ...

class DescribeTableResponse(_message.Message):
    __slots__ = ("header", "table")
    HEADER_FIELD_NUMBER: _ClassVar[int]
    TABLE_FIELD_NUMBER: _ClassVar[int]
    header: _common_pb2.Header
    table: Table
    def __init__(self, header: _Optional[_Union[_common_pb2.Header, _Mapping]] = ..., table: _Optional[_Union[Table, _Mapping]] = ...) -> None: ...

class AlterTableRequest(_message.Message):
    __slots__ = ("database", "name", "retention_ms", "request_id", "ttl_ms")
    DATABASE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    RETENTION_MS_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    TTL_MS_FIELD_NUMBER: _ClassVar[int]
    database: str
    name: str
    retention_ms: int
    request_id: bytes
    ttl_ms: int
    def __init__(self, database: _Optional[str] = ..., name: _Optional[str] = ..., retention_ms: _Optional[int] = ..., request_id: _Optional[bytes] = ..., ttl_ms: _Optional[int] = ...) -> None: ...

class AlterTableResponse(_message.Message):
    __slots__ = ("header", "table")
    HEADER_FIELD_NUMBER: _ClassVar[int]
    TABLE_FIELD_NUMBER: _ClassVar[int]
    header: _common_pb2.Header
    table: Table
    def __init__(self, header: _Optional[_Union[_common_pb2.Header, _Mapping]] = ..., table: _Optional[_Union[Table, _Mapping]] = ...) -> None: ...

class Dropped(_message.Message):
    __slots__ = ("number", "kind", "name", "dropped", "retention_ms", "table_id", "dropped_with", "is_clearing")
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    DROPPED_FIELD_NUMBER: _ClassVar[int]
    RETENTION_MS_FIELD_NUMBER: _ClassVar[int]
    TABLE_ID_FIELD_NUMBER: _ClassVar[int]
    DROPPED_WITH_FIELD_NUMBER: _ClassVar[int]
    IS_CLEARING_FIELD_NUMBER: _ClassVar[int]
    number: int
    kind: DropKind
    name: str
    dropped: _common_pb2.Timestamp
    retention_ms: int
    table_id: int
    dropped_with: int
    is_clearing: bool
    def __init__(self, number: _Optional[int] = ..., kind: _Optional[_Union[DropKind, str]] = ..., name: _Optional[str] = ..., dropped: _Optional[_Union[_common_pb2.Timestamp, _Mapping]] = ..., retention_ms: _Optional[int] = ..., table_id: _Optional[int] = ..., dropped_with: _Optional[int] = ..., is_clearing: bool = ...) -> None: ...

class DropTableRequest(_message.Message):
    __slots__ = ("database", "name", "request_id")
    DATABASE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    database: str
    name: str
    request_id: bytes
    def __init__(self, database: _Optional[str] = ..., name: _Optional[str] = ..., request_id: _Optional[bytes] = ...) -> None: ...

class DropTableResponse(_message.Message):
    __slots__ = ("header", "dropped")
    HEADER_FIELD_NUMBER: _ClassVar[int]
    DROPPED_FIELD_NUMBER: _ClassVar[int]
    header: _common_pb2.Header
    dropped: Dropped
    def __init__(self, header: _Optional[_Union[_common_pb2.Header, _Mapping]] = ..., dropped: _Optional[_Union[Dropped, _Mapping]] = ...) -> None: ...

class TruncateTableRequest(_message.Message):
    __slots__ = ("database", "name", "request_id")
    DATABASE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    database: str
    name: str
    request_id: bytes
    def __init__(self, database: _Optional[str] = ..., name: _Optional[str] = ..., request_id: _Optional[bytes] = ...) -> None: ...

class TruncateTableResponse(_message.Message):
    __slots__ = ("header", "table", "dropped")
    HEADER_FIELD_NUMBER: _ClassVar[int]
    TABLE_FIELD_NUMBER: _ClassVar[int]
    DROPPED_FIELD_NUMBER: _ClassVar[int]
    header: _common_pb2.Header
    table: Table
    dropped: Dropped
    def __init__(self, header: _Optional[_Union[_common_pb2.Header, _Mapping]] = ..., table: _Optional[_Union[Table, _Mapping]] = ..., dropped: _Optional[_Union[Dropped, _Mapping]] = ...) -> None: ...

class RenameTableRequest(_message.Message):
    __slots__ = ("database", "name", "new_name", "request_id", "replaces")
    DATABASE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    NEW_NAME_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    REPLACES_FIELD_NUMBER: _ClassVar[int]
    database: str
    name: str
    new_name: str
    request_id: bytes
    replaces: int
    def __init__(self, database: _Optional[str] = ..., name: _Optional[str] = ..., new_name: _Optional[str] = ..., request_id: _Optional[bytes] = ..., replaces: _Optional[int] = ...) -> None: ...

class RenameTableResponse(_message.Message):
    __slots__ = ("header", "table", "dropped")
    HEADER_FIELD_NUMBER: _ClassVar[int]
    TABLE_FIELD_NUMBER: _ClassVar[int]
    DROPPED_FIELD_NUMBER: _ClassVar[int]
    header: _common_pb2.Header
    table: Table
    dropped: Dropped
    def __init__(self, header: _Optional[_Union[_common_pb2.Header, _Mapping]] = ..., table: _Optional[_Union[Table, _Mapping]] = ..., dropped: _Optional[_Union[Dropped, _Mapping]] = ...) -> None: ...

class UndropTableRequest(_message.Message):
    __slots__ = ("database", "name", "number", "as_name", "request_id")
    DATABASE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    AS_NAME_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    database: str
    name: str
    number: int
    as_name: str
    request_id: bytes
    def __init__(self, database: _Optional[str] = ..., name: _Optional[str] = ..., number: _Optional[int] = ..., as_name: _Optional[str] = ..., request_id: _Optional[bytes] = ...) -> None: ...

class UndropTableResponse(_message.Message):
    __slots__ = ("header", "table")
    HEADER_FIELD_NUMBER: _ClassVar[int]
    TABLE_FIELD_NUMBER: _ClassVar[int]
    header: _common_pb2.Header
    table: Table
    def __init__(self, header: _Optional[_Union[_common_pb2.Header, _Mapping]] = ..., table: _Optional[_Union[Table, _Mapping]] = ...) -> None: ...

class DropDatabaseRequest(_message.Message):
    __slots__ = ("database", "cascade", "request_id")
    DATABASE_FIELD_NUMBER: _ClassVar[int]
    CASCADE_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    database: str
    cascade: bool
    request_id: bytes
    def __init__(self, database: _Optional[str] = ..., cascade: bool = ..., request_id: _Optional[bytes] = ...) -> None: ...

class DropDatabaseResponse(_message.Message):
    __slots__ = ("header", "dropped", "tables")
    HEADER_FIELD_NUMBER: _ClassVar[int]
    DROPPED_FIELD_NUMBER: _ClassVar[int]
    TABLES_FIELD_NUMBER: _ClassVar[int]
    header: _common_pb2.Header
    dropped: Dropped
    tables: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, header: _Optional[_Union[_common_pb2.Header, _Mapping]] = ..., dropped: _Optional[_Union[Dropped, _Mapping]] = ..., tables: _Optional[_Iterable[str]] = ...) -> None: ...

class UndropDatabaseRequest(_message.Message):
    __slots__ = ("database", "number", "as_name", "request_id")
    DATABASE_FIELD_NUMBER: _ClassVar[int]
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    AS_NAME_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    database: str
    number: int
    as_name: str
    request_id: bytes
    def __init__(self, database: _Optional[str] = ..., number: _Optional[int] = ..., as_name: _Optional[str] = ..., request_id: _Optional[bytes] = ...) -> None: ...

class UndropDatabaseResponse(_message.Message):
    __slots__ = ("header", "database", "tables", "cleared")
    HEADER_FIELD_NUMBER: _ClassVar[int]
    DATABASE_FIELD_NUMBER: _ClassVar[int]
    TABLES_FIELD_NUMBER: _ClassVar[int]
    CLEARED_FIELD_NUMBER: _ClassVar[int]
    header: _common_pb2.Header
    database: str
    tables: _containers.RepeatedScalarFieldContainer[str]
    cleared: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, header: _Optional[_Union[_common_pb2.Header, _Mapping]] = ..., database: _Optional[str] = ..., tables: _Optional[_Iterable[str]] = ..., cleared: _Optional[_Iterable[str]] = ...) -> None: ...

class ListDroppedRequest(_message.Message):
    __slots__ = ("page_size", "page_token")
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    page_size: int
    page_token: bytes
    def __init__(self, page_size: _Optional[int] = ..., page_token: _Optional[bytes] = ...) -> None: ...

class ListDroppedResponse(_message.Message):
    __slots__ = ("header", "dropped", "next_page_token")
    HEADER_FIELD_NUMBER: _ClassVar[int]
    DROPPED_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    header: _common_pb2.Header
    dropped: _containers.RepeatedCompositeFieldContainer[Dropped]
    next_page_token: bytes
    def __init__(self, header: _Optional[_Union[_common_pb2.Header, _Mapping]] = ..., dropped: _Optional[_Iterable[_Union[Dropped, _Mapping]]] = ..., next_page_token: _Optional[bytes] = ...) -> None: ...

class CheckTableRequest(_message.Message):
    __slots__ = ("database", "name", "at", "repair")
    DATABASE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    AT_FIELD_NUMBER: _ClassVar[int]
    REPAIR_FIELD_NUMBER: _ClassVar[int]
    database: str
    name: str
    at: _common_pb2.ReadAt
    repair: bool
    def __init__(self, database: _Optional[str] = ..., name: _Optional[str] = ..., at: _Optional[_Union[_common_pb2.ReadAt, _Mapping]] = ..., repair: bool = ...) -> None: ...

class CheckProblem(_message.Message):
    __slots__ = ("index", "kind", "key", "message")
    INDEX_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    index: str
    kind: str
    key: str
    message: str
    def __init__(self, index: _Optional[str] = ..., kind: _Optional[str] = ..., key: _Optional[str] = ..., message: _Optional[str] = ...) -> None: ...

class CheckTableResponse(_message.Message):
    __slots__ = ("header", "rows_checked", "entries_checked", "problems", "done", "repaired", "left")
    HEADER_FIELD_NUMBER: _ClassVar[int]
    ROWS_CHECKED_FIELD_NUMBER: _ClassVar[int]
    ENTRIES_CHECKED_FIELD_NUMBER: _ClassVar[int]
    PROBLEMS_FIELD_NUMBER: _ClassVar[int]
    DONE_FIELD_NUMBER: _ClassVar[int]
    REPAIRED_FIELD_NUMBER: _ClassVar[int]
    LEFT_FIELD_NUMBER: _ClassVar[int]
    header: _common_pb2.Header
    rows_checked: int
    entries_checked: int
    problems: _containers.RepeatedCompositeFieldContainer[CheckProblem]
    done: bool
    repaired: int
    left: int
    def __init__(self, header: _Optional[_Union[_common_pb2.Header, _Mapping]] = ..., rows_checked: _Optional[int] = ..., entries_checked: _Optional[int] = ..., problems: _Optional[_Iterable[_Union[CheckProblem, _Mapping]]] = ..., done: bool = ..., repaired: _Optional[int] = ..., left: _Optional[int] = ...) -> None: ...

class CreateIndexRequest(_message.Message):
    __slots__ = ("database", "table", "index", "request_id")
    DATABASE_FIELD_NUMBER: _ClassVar[int]
    TABLE_FIELD_NUMBER: _ClassVar[int]
    INDEX_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    database: str
    table: str
    index: Index
    request_id: bytes
    def __init__(self, database: _Optional[str] = ..., table: _Optional[str] = ..., index: _Optional[_Union[Index, _Mapping]] = ..., request_id: _Optional[bytes] = ...) -> None: ...

class CreateIndexResponse(_message.Message):
    __slots__ = ("header", "table", "job_id")
    HEADER_FIELD_NUMBER: _ClassVar[int]
    TABLE_FIELD_NUMBER: _ClassVar[int]
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    header: _common_pb2.Header
    table: Table
    job_id: int
    def __init__(self, header: _Optional[_Union[_common_pb2.Header, _Mapping]] = ..., table: _Optional[_Union[Table, _Mapping]] = ..., job_id: _Optional[int] = ...) -> None: ...

class DropIndexRequest(_message.Message):
    __slots__ = ("database", "table", "index", "request_id")
    DATABASE_FIELD_NUMBER: _ClassVar[int]
    TABLE_FIELD_NUMBER: _ClassVar[int]
    INDEX_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    database: str
    table: str
    index: str
    request_id: bytes
    def __init__(self, database: _Optional[str] = ..., table: _Optional[str] = ..., index: _Optional[str] = ..., request_id: _Optional[bytes] = ...) -> None: ...

class DropIndexResponse(_message.Message):
    __slots__ = ("header", "table")
    HEADER_FIELD_NUMBER: _ClassVar[int]
    TABLE_FIELD_NUMBER: _ClassVar[int]
    header: _common_pb2.Header
    table: Table
    def __init__(self, header: _Optional[_Union[_common_pb2.Header, _Mapping]] = ..., table: _Optional[_Union[Table, _Mapping]] = ...) -> None: ...
