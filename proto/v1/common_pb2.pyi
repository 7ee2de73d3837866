from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class NullValue(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    NULL_VALUE: _ClassVar[NullValue]

class DocumentFormat(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    DOCUMENT_FORMAT_AVRO: _ClassVar[DocumentFormat]
    DOCUMENT_FORMAT_JSON: _ClassVar[DocumentFormat]
NULL_VALUE: NullValue
DOCUMENT_FORMAT_AVRO: DocumentFormat
DOCUMENT_FORMAT_JSON: DocumentFormat

class Timestamp(_message.Message):
    __slots__ = ("epoch", "wall_ms", "logical")
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    WALL_MS_FIELD_NUMBER: _ClassVar[int]
    LOGICAL_FIELD_NUMBER: _ClassVar[int]
    epoch: int
    wall_ms: int
    logical: int
    def __init__(self, epoch: _Optional[int] = ..., wall_ms: _Optional[int] = ..., logical: _Optional[int] = ...) -> None: ...

class Header(_message.Message):
    __slots__ = ("cluster_id", "node_id", "term", "timestamp", "region_id", "region_epoch")
    CLUSTER_ID_FIELD_NUMBER: _ClassVar[int]
    NODE_ID_FIELD_NUMBER: _ClassVar[int]
    TERM_FIELD_NUMBER: _ClassVar[int]
    TIMESTAMP_FIELD_NUMBER: _ClassVar[int]
    REGION_ID_FIELD_NUMBER: _ClassVar[int]
    REGION_EPOCH_FIELD_NUMBER: _ClassVar[int]
    cluster_id: str
    node_id: str
    term: int
    timestamp: Timestamp
    region_id: int
    region_epoch: int
    def __init__(self, cluster_id: _Optional[str] = ..., node_id: _Optional[str] = ..., term: _Optional[int] = ..., timestamp: _Optional[_Union[Timestamp, _Mapping]] = ..., region_id: _Optional[int] = ..., region_epoch: _Optional[int] = ...) -> None: ...

class Value(_message.Message):
    __slots__ = ("null", "bool", "int64", "float64", "bytes", "string", "timestamp_micros", "decimal", "uuid", "date_days")
    NULL_FIELD_NUMBER: _ClassVar[int]
    BOOL_FIELD_NUMBER: _ClassVar[int]
    INT64_FIELD_NUMBER: _ClassVar[int]
    FLOAT64_FIELD_NUMBER: _ClassVar[int]
    BYTES_FIELD_NUMBER: _ClassVar[int]
    STRING_FIELD_NUMBER: _ClassVar[int]
    TIMESTAMP_MICROS_FIELD_NUMBER: _ClassVar[int]
    DECIMAL_FIELD_NUMBER: _ClassVar[int]
    UUID_FIELD_NUMBER: _ClassVar[int]
    DATE_DAYS_FIELD_NUMBER: _ClassVar[int]
    null: NullValue
    bool: bool
    int64: int
    float64: float
    bytes: bytes
    string: str
    timestamp_micros: int
    decimal: str
    uuid: bytes
    date_days: int
    def __init__(self, null: _Optional[_Union[NullValue, str]] = ..., bool: bool = ..., int64: _Optional[int] = ..., float64: _Optional[float] = ..., bytes: _Optional[bytes] = ..., string: _Optional[str] = ..., timestamp_micros: _Optional[int] = ..., decimal: _Optional[str] = ..., uuid: _Optional[bytes] = ..., date_days: _Optional[int] = ...) -> None: ...

class Key(_message.Message):
    __slots__ = ("parts",)
    PARTS_FIELD_NUMBER: _ClassVar[int]
    parts: _containers.RepeatedCompositeFieldContainer[Value]
    def __init__(self, parts: _Optional[_Iterable[_Union[Value, _Mapping]]] = ...) -> None: ...

class KeyRange(_message.Message):
    __slots__ = ("start", "end", "prefix")
    START_FIELD_NUMBER: _ClassVar[int]
    END_FIELD_NUMBER: _ClassVar[int]
    PREFIX_FIELD_NUMBER: _ClassVar[int]
    start: Key
    end: Key
    prefix: Key
    def __init__(self, start: _Optional[_Union[Key, _Mapping]] = ..., end: _Optional[_Union[Key, _Mapping]] = ..., prefix: _Optional[_Union[Key, _Mapping]] = ...) -> None: ...

class Condition(_message.Message):
    __slots__ = ("absent", "present", "etag", "value")
    ABSENT_FIELD_NUMBER: _ClassVar[int]
    PRESENT_FIELD_NUMBER: _ClassVar[int]
    ETAG_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    absent: bool
    present: bool
    etag: str
    value: bytes
    def __init__(self, absent: bool = ..., present: bool = ..., etag: _Optional[str] = ..., value: _Optional[bytes] = ...) -> None: ...

class Expiry(_message.Message):
    __slots__ = ("ttl_ms", "at_ms", "never")
    TTL_MS_FIELD_NUMBER: _ClassVar[int]
    AT_MS_FIELD_NUMBER: _ClassVar[int]
    NEVER_FIELD_NUMBER: _ClassVar[int]
    ttl_ms: int
    at_ms: int
    never: bool
    def __init__(self, ttl_ms: _Optional[int] = ..., at_ms: _Optional[int] = ..., never: bool = ...) -> None: ...

class ReadAt(_message.Message):
    __slots__ = ("timestamp", "wall_ms", "stale_ms", "own_writes", "footprint")
    TIMESTAMP_FIELD_NUMBER: _ClassVar[int]
    WALL_MS_FIELD_NUMBER: _ClassVar[int]
    STALE_MS_FIELD_NUMBER: _ClassVar[int]
    OWN_WRITES_FIELD_NUMBER: _ClassVar[int]
    FOOTPRINT_FIELD_NUMBER: _ClassVar[int]
    timestamp: Timestamp
    wall_ms: int
    stale_ms: int
    own_writes: _containers.RepeatedCompositeFieldContainer[Operation]
    footprint: bool
    def __init__(self, timestamp: _Optional[_Union[Timestamp, _Mapping]] = ..., wall_ms: _Optional[int] = ..., stale_ms: _Optional[int] = ..., own_writes: _Optional[_Iterable[_Union[Operation, _Mapping]]] = ..., footprint: bool = ...) -> None: ...

class Document(_message.Message):
    __slots__ = ("schema_id", "avro", "json")
    SCHEMA_ID_FIELD_NUMBER: _ClassVar[int]
    AVRO_FIELD_NUMBER: _ClassVar[int]
    JSON_FIELD_NUMBER: _ClassVar[int]
    schema_id: int
    avro: bytes
    json: str
    def __init__(self, schema_id: _Optional[int] = ..., avro: _Optional[bytes] = ..., json: _Optional[str] = ...) -> None: ...

class Operation(_message.Message):
    __slots__ = ("put", "update", "delete", "add", "check", "put_pair", "delete_pair", "add_pair", "check_pair", "packed_pairs")
    PUT_FIELD_NUMBER: _ClassVar[int]
    UPDATE_FIELD_NUMBER: _ClassVar[int]
    DELETE_FIELD_NUMBER: _ClassVar[int]
    ADD_FIELD_NUMBER: _ClassVar[int]
    CHECK_FIELD_NUMBER: _ClassVar[int]
    PUT_PAIR_FIELD_NUMBER: _ClassVar[int]
    DELETE_PAIR_FIELD_NUMBER: _ClassVar[int]
    ADD_PAIR_FIELD_NUMBER: _ClassVar[int]
    CHECK_PAIR_FIELD_NUMBER: _ClassVar[int]
    PACKED_PAIRS_FIELD_NUMBER: _ClassVar[int]
    put: DocumentPut
    update: DocumentUpdate
    delete: DocumentDelete
    add: DocumentAdd
    check: DocumentCheck
    put_pair: KvPut
    delete_pair: KvDelete
    add_pair: KvAdd
    check_pair: KvCheck
    packed_pairs: KvPackedOperations
    def __init__(self, put: _Optional[_Union[DocumentPut, _Mapping]] = ..., update: _Optional[_Union[DocumentUpdate, _Mapping]] = ..., delete: _Optional[_Union[DocumentDelete, _Mapping]] = ..., add: _Optional[_Union[DocumentAdd, _Mapping]] = ..., check: _Optional[_Union[DocumentCheck, _Mapping]] = ..., put_pair: _Optional[_Union[KvPut, _Mapping]] = ..., delete_pair: _Optional[_Union[KvDelete, _Mapping]] = ..., add_pair: _Optional[_Union[KvAdd, _Mapping]] = ..., check_pair: _Optional[_Union[KvCheck, _Mapping]] = ..., packed_pairs: _Optional[_Union[KvPackedOperations, _Mapping]] = ...) -> None: ...

class DocumentPut(_message.Message):
    __slots__ = ("database", "table", "document", "condition", "expiry")
    DATABASE_FIELD_NUMBER: _ClassVar[int]
    TABLE_FIELD_NUMBER: _ClassVar[int]
    DOCUMENT_FIELD_NUMBER: _ClassVar[int]
    CONDITION_FIELD_NUMBER: _ClassVar[int]
    EXPIRY_FIELD_NUMBER: _ClassVar[int]
    database: str
    table: str
    document: Document
    condition: Condition
    expiry: Expiry
    def __init__(self, database: _Optional[str] = ..., table: _Optional[str] = ..., document: _Optional[_Union[Document, _Mapping]] = ..., condition: _Optional[_Union[Condition, _Mapping]] = ..., expiry: _Optional[_Union[Expiry, _Mapping]] = ...) -> None: ...

class DocumentUpdate(_message.Message):
    __slots__ = ("database", "table", "key", "changes_json", "condition", "expiry")
    DATABASE_FIELD_NUMBER: _ClassVar[int]
    TABLE_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    CHANGES_JSON_FIELD_NUMBER: _ClassVar[int]
    CONDITION_FIELD_NUMBER: _ClassVar[int]
    EXPIRY_FIELD_NUMBER: _ClassVar[int]
    database: str
    table: str
    key: Key
    changes_json: str
    condition: Condition
    expiry: Expiry
    def __init__(self, database: _Optional[str] = ..., table: _Optional[str] = ..., key: _Optional[_Union[Key, _Mapping]] = ..., changes_json: _Optional[str] = ..., condition: _Optional[_Union[Condition, _Mapping]] = ..., expiry: _Optional[_Union[Expiry, _Mapping]] = ...) -> None: ...

class DocumentDelete(_message.Message):
    __slots__ = ("database", "table", "key", "condition")
    DATABASE_FIELD_NUMBER: _ClassVar[int]
    TABLE_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    CONDITION_FIELD_NUMBER: _ClassVar[int]
    database: str
    table: str
    key: Key
    condition: Condition
    def __init__(self, database: _Optional[str] = ..., table: _Optional[str] = ..., key: _Optional[_Union[Key, _Mapping]] = ..., condition: _Optional[_Union[Condition, _Mapping]] = ...) -> None: ...

class DocumentAdd(_message.Message):
    __slots__ = ("database", "table", "key", "field", "delta", "min", "max")
    DATABASE_FIELD_NUMBER: _ClassVar[int]
    TABLE_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    FIELD_FIELD_NUMBER: _ClassVar[int]
    DELTA_FIELD_NUMBER: _ClassVar[int]
    MIN_FIELD_NUMBER: _ClassVar[int]
    MAX_FIELD_NUMBER: _ClassVar[int]
    database: str
    table: str
    key: Key
    field: str
    delta: int
    min: int
    max: int
    def __init__(self, database: _Optional[str] = ..., table: _Optional[str] = ..., key: _Optional[_Union[Key, _Mapping]] = ..., field: _Optional[str] = ..., delta: _Optional[int] = ..., min: _Optional[int] = ..., max: _Optional[int] = ...) -> None: ...

class DocumentCheck(_message.Message):
    __slots__ = ("database", "table", "key", "condition")
    DATABASE_FIELD_NUMBER: _ClassVar[int]
    TABLE_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    CONDITION_FIELD_NUMBER: _ClassVar[int]
    database: str
    table: str
    key: Key
    condition: Condition
    def __init__(self, database: _Optional[str] = ..., table: _Optional[str] = ..., key: _Optional[_Union[Key, _Mapping]] = ..., condition: _Optional[_Union[Condition, _Mapping]] = ...) -> None: ...

class KvPut(_message.Message):
    __slots__ = ("namespace", "key", "value", "condition", "expiry")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    CONDITION_FIELD_NUMBER: _ClassVar[int]
    EXPIRY_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    key: bytes
    value: bytes
    condition: Condition
    expiry: Expiry
    def __init__(self, namespace: _Optional[str] = ..., key: _Optional[bytes] = ..., value: _Optional[bytes] = ..., condition: _Optional[_Union[Condition, _Mapping]] = ..., expiry: _Optional[_Union[Expiry, _Mapping]] = ...) -> None: ...

class KvDelete(_message.Message):
    __slots__ = ("namespace", "key", "condition")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    CONDITION_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    key: bytes
    condition: Condition
    def __init__(self, namespace: _Optional[str] = ..., key: _Optional[bytes] = ..., condition: _Optional[_Union[Condition, _Mapping]] = ...) -> None: ...

class KvAdd(_message.Message):
    __slots__ = ("namespace", "key", "delta", "min", "max")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    DELTA_FIELD_NUMBER: _ClassVar[int]
    MIN_FIELD_NUMBER: _ClassVar[int]
    MAX_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    key: bytes
    delta: int
    min: int
    max: int
    def __init__(self, namespace: _Optional[str] = ..., key: _Optional[bytes] = ..., delta: _Optional[int] = ..., min: _Optional[int] = ..., max: _Optional[int] = ...) -> None: ...

class KvCheck(_message.Message):
    __slots__ = ("namespace", "key", "condition")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    CONDITION_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    key: bytes
    condition: Condition
    def __init__(self, namespace: _Optional[str] = ..., key: _Optional[bytes] = ..., condition: _Optional[_Union[Condition, _Mapping]] = ...) -> None: ...

class KvPackedOperations(_message.Message):
    __slots__ = ("namespace", "keys", "key_lengths", "values", "value_lengths", "deletes", "expiry")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    KEYS_FIELD_NUMBER: _ClassVar[int]
    KEY_LENGTHS_FIELD_NUMBER: _ClassVar[int]
    VALUES_FIELD_NUMBER: _ClassVar[int]
    VALUE_LENGTHS_FIELD_NUMBER: _ClassVar[int]
    DELETES_FIELD_NUMBER: _ClassVar[int]
    EXPIRY_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    keys: bytes
    key_lengths: bytes
    values: bytes
    value_lengths: bytes
    deletes: bytes
    expiry: Expiry
    def __init__(self, namespace: _Optional[str] = ..., keys: _Optional[bytes] = ..., key_lengths: _Optional[bytes] = ..., values: _Optional[bytes] = ..., value_lengths: _Optional[bytes] = ..., deletes: _Optional[bytes] = ..., expiry: _Optional[_Union[Expiry, _Mapping]] = ...) -> None: ...

class RowBatch(_message.Message):
    __slots__ = ("schema_id", "bodies", "lengths", "versions")
    SCHEMA_ID_FIELD_NUMBER: _ClassVar[int]
    BODIES_FIELD_NUMBER: _ClassVar[int]
    LENGTHS_FIELD_NUMBER: _ClassVar[int]
    VERSIONS_FIELD_NUMBER: _ClassVar[int]
    schema_id: int
    bodies: bytes
    lengths: bytes
    versions: bytes
    def __init__(self, schema_id: _Optional[int] = ..., bodies: _Optional[bytes] = ..., lengths: _Optional[bytes] = ..., versions: _Optional[bytes] = ...) -> None: ...

class RowError(_message.Message):
    __slots__ = ("row", "reason", "message", "metadata")
    class MetadataEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    ROW_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    row: int
    reason: str
    message: str
    metadata: _containers.ScalarMap[str, str]
    def __init__(self, row: _Optional[int] = ..., reason: _Optional[str] = ..., message: _Optional[str] = ..., metadata: _Optional[_Mapping[str, str]] = ...) -> None: ...
