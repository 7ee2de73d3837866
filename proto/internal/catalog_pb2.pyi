from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class StoredDatabase(_message.Message):
    __slots__ = ("name", "number", "next_table_number", "principal")
    NAME_FIELD_NUMBER: _ClassVar[int]
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    NEXT_TABLE_NUMBER_FIELD_NUMBER: _ClassVar[int]
    PRINCIPAL_FIELD_NUMBER: _ClassVar[int]
    name: str
    number: int
    next_table_number: int
    principal: str
    def __init__(self, name: _Optional[str] = ..., number: _Optional[int] = ..., next_table_number: _Optional[int] = ..., principal: _Optional[str] = ...) -> None: ...

class StoredKeyPart(_message.Message):
    __slots__ = ("path", "type", "descending")
    PATH_FIELD_NUMBER: _ClassVar[int]
    TYPE_FIELD_NUMBER: _ClassVar[int]
    DESCENDING_FIELD_NUMBER: _ClassVar[int]
    path: str
    type: str
    descending: bool
    def __init__(self, path: _Optional[str] = ..., type: _Optional[str] = ..., descending: bool = ...) -> None: ...

class StoredIndex(_message.Message):
    __slots__ = ("index_id", "name", "parts", "unique", "state", "ready_ts", "job_id", "failure", "failed_keys")
    INDEX_ID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    PARTS_FIELD_NUMBER: _ClassVar[int]
    UNIQUE_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    READY_TS_FIELD_NUMBER: _ClassVar[int]
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    FAILURE_FIELD_NUMBER: _ClassVar[int]
    FAILED_KEYS_FIELD_NUMBER: _ClassVar[int]
    index_id: int
    name: str
    parts: _containers.RepeatedCompositeFieldContainer[StoredKeyPart]
    unique: bool
    state: str
    ready_ts: bytes
    job_id: int
    failure: str
    failed_keys: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, index_id: _Optional[int] = ..., name: _Optional[str] = ..., parts: _Optional[_Iterable[_Union[StoredKeyPart, _Mapping]]] = ..., unique: bool = ..., state: _Optional[str] = ..., ready_ts: _Optional[bytes] = ..., job_id: _Optional[int] = ..., failure: _Optional[str] = ..., failed_keys: _Optional[_Iterable[str]] = ...) -> None: ...

class StoredTable(_message.Message):
    __slots__ = ("table_id", "database", "name", "subject", "key", "indexes", "version", "next_index_id", "retention_ms", "named_ts", "ttl_ms", "principal")
    TABLE_ID_FIELD_NUMBER: _ClassVar[int]
    DATABASE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    SUBJECT_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    INDEXES_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    NEXT_INDEX_ID_FIELD_NUMBER: _ClassVar[int]
    RETENTION_MS_FIELD_NUMBER: _ClassVar[int]
    NAMED_TS_FIELD_NUMBER: _ClassVar[int]
    TTL_MS_FIELD_NUMBER: _ClassVar[int]
    PRINCIPAL_FIELD_NUMBER: _ClassVar[int]
    table_id: int
    database: str
    name: str
    subject: str
    key: _containers.RepeatedCompositeFieldContainer[StoredKeyPart]
    indexes: _containers.RepeatedCompositeFieldContainer[StoredIndex]
    version: int
    next_index_id: int
    retention_ms: int
    named_ts: bytes
    ttl_ms: int
    principal: str
    def __init__(self, table_id: _Optional[int] = ..., database: _Optional[str] = ..., name: _Optional[str] = ..., subject: _Optional[str] = ..., key: _Optional[_Iterable[_Union[StoredKeyPart, _Mapping]]] = ..., indexes: _Optional[_Iterable[_Union[StoredIndex, _Mapping]]] = ..., version: _Optional[int] = ..., next_index_id: _Optional[int] = ..., retention_ms: _Optional[int] = ..., named_ts: _Optional[bytes] = ..., ttl_ms: _Optional[int] = ..., principal: _Optional[str] = ...) -> None: ...

class StoredRange(_message.Message):
    __slots__ = ("start", "end")
    START_FIELD_NUMBER: _ClassVar[int]
    END_FIELD_NUMBER: _ClassVar[int]
    start: bytes
    end: bytes
    def __init__(self, start: _Optional[bytes] = ..., end: _Optional[bytes] = ...) -> None: ...

class StoredDropped(_message.Message):
    __slots__ = ("number", "kind", "name", "dropped_ts", "retention_ms", "table_id", "ranges", "descriptor", "dropped_with", "is_clearing", "principal")
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    DROPPED_TS_FIELD_NUMBER: _ClassVar[int]
    RETENTION_MS_FIELD_NUMBER: _ClassVar[int]
    TABLE_ID_FIELD_NUMBER: _ClassVar[int]
    RANGES_FIELD_NUMBER: _ClassVar[int]
    DESCRIPTOR_FIELD_NUMBER: _ClassVar[int]
    DROPPED_WITH_FIELD_NUMBER: _ClassVar[int]
    IS_CLEARING_FIELD_NUMBER: _ClassVar[int]
    PRINCIPAL_FIELD_NUMBER: _ClassVar[int]
    number: int
    kind: str
    name: str
    dropped_ts: bytes
    retention_ms: int
    table_id: int
    ranges: _containers.RepeatedCompositeFieldContainer[StoredRange]
    descriptor: bytes
    dropped_with: int
    is_clearing: bool
    principal: str
    def __init__(self, number: _Optional[int] = ..., kind: _Optional[str] = ..., name: _Optional[str] = ..., dropped_ts: _Optional[bytes] = ..., retention_ms: _Optional[int] = ..., table_id: _Optional[int] = ..., ranges: _Optional[_Iterable[_Union[StoredRange, _Mapping]]] = ..., descriptor: _Optional[bytes] = ..., dropped_with: _Optional[int] = ..., is_clearing: bool = ..., principal: _Optional[str] = ...) -> None: ...

class StoredNamespace(_message.Message):
    __slots__ = ("generation",)
    GENERATION_FIELD_NUMBER: _ClassVar[int]
    generation: int
    def __init__(self, generation: _Optional[int] = ...) -> None: ...

class StoredSchema(_message.Message):
    __slots__ = ("schema_id", "text", "fingerprint")
    SCHEMA_ID_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    FINGERPRINT_FIELD_NUMBER: _ClassVar[int]
    schema_id: int
    text: str
    fingerprint: bytes
    def __init__(self, schema_id: _Optional[int] = ..., text: _Optional[str] = ..., fingerprint: _Optional[bytes] = ...) -> None: ...

class StoredSchemaId(_message.Message):
    __slots__ = ("schema_id",)
    SCHEMA_ID_FIELD_NUMBER: _ClassVar[int]
    schema_id: int
    def __init__(self, schema_id: _Optional[int] = ...) -> None: ...

class StoredVersion(_message.Message):
    __slots__ = ("version", "schema_id", "deleted")
    VERSION_FIELD_NUMBER: _ClassVar[int]
    SCHEMA_ID_FIELD_NUMBER: _ClassVar[int]
    DELETED_FIELD_NUMBER: _ClassVar[int]
    version: int
    schema_id: int
    deleted: bool
    def __init__(self, version: _Optional[int] = ..., schema_id: _Optional[int] = ..., deleted: bool = ...) -> None: ...

class StoredSubject(_message.Message):
    __slots__ = ("subject", "mode", "versions", "next_version", "principal")
    SUBJECT_FIELD_NUMBER: _ClassVar[int]
    MODE_FIELD_NUMBER: _ClassVar[int]
    VERSIONS_FIELD_NUMBER: _ClassVar[int]
    NEXT_VERSION_FIELD_NUMBER: _ClassVar[int]
    PRINCIPAL_FIELD_NUMBER: _ClassVar[int]
    subject: str
    mode: str
    versions: _containers.RepeatedCompositeFieldContainer[StoredVersion]
    next_version: int
    principal: str
    def __init__(self, subject: _Optional[str] = ..., mode: _Optional[str] = ..., versions: _Optional[_Iterable[_Union[StoredVersion, _Mapping]]] = ..., next_version: _Optional[int] = ..., principal: _Optional[str] = ...) -> None: ...

class StoredCompatibility(_message.Message):
    __slots__ = ("mode",)
    MODE_FIELD_NUMBER: _ClassVar[int]
    mode: str
    def __init__(self, mode: _Optional[str] = ...) -> None: ...

class StoredCounters(_message.Message):
    __slots__ = ("next_database_number", "next_schema_id", "next_dropped_number", "dropped")
    NEXT_DATABASE_NUMBER_FIELD_NUMBER: _ClassVar[int]
    NEXT_SCHEMA_ID_FIELD_NUMBER: _ClassVar[int]
    NEXT_DROPPED_NUMBER_FIELD_NUMBER: _ClassVar[int]
    DROPPED_FIELD_NUMBER: _ClassVar[int]
    next_database_number: int
    next_schema_id: int
    next_dropped_number: int
    dropped: int
    def __init__(self, next_database_number: _Optional[int] = ..., next_schema_id: _Optional[int] = ..., next_dropped_number: _Optional[int] = ..., dropped: _Optional[int] = ...) -> None: ...

class StoredShare(_message.Message):
    __slots__ = ("dropped",)
    DROPPED_FIELD_NUMBER: _ClassVar[int]
    dropped: int
    def __init__(self, dropped: _Optional[int] = ...) -> None: ...
