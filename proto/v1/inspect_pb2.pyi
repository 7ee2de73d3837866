from cortado.proto.v1 import common_pb2 as _common_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class StoredSpace(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    STORED_SPACE_DATA: _ClassVar[StoredSpace]
    STORED_SPACE_REQUESTS: _ClassVar[StoredSpace]
    STORED_SPACE_LOG: _ClassVar[StoredSpace]
    STORED_SPACE_META: _ClassVar[StoredSpace]
STORED_SPACE_DATA: StoredSpace
STORED_SPACE_REQUESTS: StoredSpace
STORED_SPACE_LOG: StoredSpace
STORED_SPACE_META: StoredSpace

class StoredKey(_message.Message):
    __slots__ = ("key", "text")
    KEY_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    key: bytes
    text: str
    def __init__(self, key: _Optional[bytes] = ..., text: _Optional[str] = ...) -> None: ...

class ReadLogRequest(_message.Message):
    __slots__ = ("group_id", "from_index", "to_index", "page_size", "page_token", "changes_max")
    GROUP_ID_FIELD_NUMBER: _ClassVar[int]
    FROM_INDEX_FIELD_NUMBER: _ClassVar[int]
    TO_INDEX_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    CHANGES_MAX_FIELD_NUMBER: _ClassVar[int]
    group_id: int
    from_index: int
    to_index: int
    page_size: int
    page_token: bytes
    changes_max: int
    def __init__(self, group_id: _Optional[int] = ..., from_index: _Optional[int] = ..., to_index: _Optional[int] = ..., page_size: _Optional[int] = ..., page_token: _Optional[bytes] = ..., changes_max: _Optional[int] = ...) -> None: ...

class ReadLogResponse(_message.Message):
    __slots__ = ("header", "state", "entries", "next_page_token")
    HEADER_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    ENTRIES_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    header: _common_pb2.Header
    state: LogState
    entries: _containers.RepeatedCompositeFieldContainer[LogEntry]
    next_page_token: bytes
    def __init__(self, header: _Optional[_Union[_common_pb2.Header, _Mapping]] = ..., state: _Optional[_Union[LogState, _Mapping]] = ..., entries: _Optional[_Iterable[_Union[LogEntry, _Mapping]]] = ..., next_page_token: _Optional[bytes] = ...) -> None: ...

class LogState(_message.Message):
    __slots__ = ("group_id", "term", "voted_for", "base_index", "base_term", "base_configuration", "base_registry", "first_index", "last_index", "applied_index", "applied_term", "last_timestamp", "ceiling", "epoch_began", "request_floor", "requests", "request_bytes", "installing")
    GROUP_ID_FIELD_NUMBER: _ClassVar[int]
    TERM_FIELD_NUMBER: _ClassVar[int]
    VOTED_FOR_FIELD_NUMBER: _ClassVar[int]
    BASE_INDEX_FIELD_NUMBER: _ClassVar[int]
    BASE_TERM_FIELD_NUMBER: _ClassVar[int]
    BASE_CONFIGURATION_FIELD_NUMBER: _ClassVar[int]
    BASE_REGISTRY_FIELD_NUMBER: _ClassVar[int]
    FIRST_INDEX_FIELD_NUMBER: _ClassVar[int]
    LAST_INDEX_FIELD_NUMBER: _ClassVar[int]
    APPLIED_INDEX_FIELD_NUMBER: _ClassVar[int]
    APPLIED_TERM_FIELD_NUMBER: _ClassVar[int]
    LAST_TIMESTAMP_FIELD_NUMBER: _ClassVar[int]
    CEILING_FIELD_NUMBER: _ClassVar[int]
    EPOCH_BEGAN_FIELD_NUMBER: _ClassVar[int]
    REQUEST_FLOOR_FIELD_NUMBER: _ClassVar[int]
    REQUESTS_FIELD_NUMBER: _ClassVar[int]
    REQUEST_BYTES_FIELD_NUMBER: _ClassVar[int]
    INSTALLING_FIELD_NUMBER: _ClassVar[int]
    group_id: int
    term: int
    voted_for: str
    base_index: int
    base_term: int
    base_configuration: LogConfiguration
    base_registry: LogRegistry
    first_index: int
    last_index: int
    applied_index: int
    applied_term: int
    last_timestamp: _common_pb2.Timestamp
    ceiling: _common_pb2.Timestamp
    epoch_began: _common_pb2.Timestamp
    request_floor: bytes
    requests: int
    request_bytes: int
    installing: str
    def __init__(self, group_id: _Optional[int] = ..., term: _Optional[int] = ..., voted_for: _Optional[str] = ..., base_index: _Optional[int] = ..., base_term: _Optional[int] = ..., base_configuration: _Optional[_Union[LogConfiguration, _Mapping]] = ..., base_registry: _Optional[_Union[LogRegistry, _Mapping]] = ..., first_index: _Optional[int] = ..., last_index: _Optional[int] = ..., applied_index: _Optional[int] = ..., applied_term: _Optional[int] = ..., last_timestamp: _Optional[_Union[_common_pb2.Timestamp, _Mapping]] = ..., ceiling: _Optional[_Union[_common_pb2.Timestamp, _Mapping]] = ..., epoch_began: _Optional[_Union[_common_pb2.Timestamp, _Mapping]] = ..., request_floor: _Optional[bytes] = ..., requests: _Optional[int] = ..., request_bytes: _Optional[int] = ..., installing: _Optional[str] = ...) -> None: ...

class LogMember(_message.Message):
    __slots__ = ("node_id", "address", "storage_id", "peer_address")
    NODE_ID_FIELD_NUMBER: _ClassVar[int]
    ADDRESS_FIELD_NUMBER: _ClassVar[int]
    STORAGE_ID_FIELD_NUMBER: _ClassVar[int]
    PEER_ADDRESS_FIELD_NUMBER: _ClassVar[int]
    node_id: str
    address: str
    storage_id: str
    peer_address: str
    def __init__(self, node_id: _Optional[str] = ..., address: _Optional[str] = ..., storage_id: _Optional[str] = ..., peer_address: _Optional[str] = ...) -> None: ...

class LogConfiguration(_message.Message):
    __slots__ = ("voters", "learners")
    VOTERS_FIELD_NUMBER: _ClassVar[int]
    LEARNERS_FIELD_NUMBER: _ClassVar[int]
    voters: _containers.RepeatedScalarFieldContainer[str]
    learners: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, voters: _Optional[_Iterable[str]] = ..., learners: _Optional[_Iterable[str]] = ...) -> None: ...

class LogRegistry(_message.Message):
    __slots__ = ("nodes", "removed")
    NODES_FIELD_NUMBER: _ClassVar[int]
    REMOVED_FIELD_NUMBER: _ClassVar[int]
    nodes: _containers.RepeatedCompositeFieldContainer[LogMember]
    removed: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, nodes: _Optional[_Iterable[_Union[LogMember, _Mapping]]] = ..., removed: _Optional[_Iterable[str]] = ...) -> None: ...

class LogEntry(_message.Message):
    __slots__ = ("index", "term", "kind", "stored_bytes", "problem", "after_index", "after_term", "commands", "command_count", "change_count", "request_floor", "bump_epoch", "raise_ceiling", "accepted_losses", "configuration", "registry")
    INDEX_FIELD_NUMBER: _ClassVar[int]
    TERM_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    STORED_BYTES_FIELD_NUMBER: _ClassVar[int]
    PROBLEM_FIELD_NUMBER: _ClassVar[int]
    AFTER_INDEX_FIELD_NUMBER: _ClassVar[int]
    AFTER_TERM_FIELD_NUMBER: _ClassVar[int]
    COMMANDS_FIELD_NUMBER: _ClassVar[int]
    COMMAND_COUNT_FIELD_NUMBER: _ClassVar[int]
    CHANGE_COUNT_FIELD_NUMBER: _ClassVar[int]
    REQUEST_FLOOR_FIELD_NUMBER: _ClassVar[int]
    BUMP_EPOCH_FIELD_NUMBER: _ClassVar[int]
    RAISE_CEILING_FIELD_NUMBER: _ClassVar[int]
    ACCEPTED_LOSSES_FIELD_NUMBER: _ClassVar[int]
    CONFIGURATION_FIELD_NUMBER: _ClassVar[int]
    REGISTRY_FIELD_NUMBER: _ClassVar[int]
    index: int
    term: int
    kind: str
    stored_bytes: int
    problem: str
    after_index: int
    after_term: int
    commands: _containers.RepeatedCompositeFieldContainer[LogCommand]
    command_count: int
    change_count: int
    request_floor: bytes
    bump_epoch: int
    raise_ceiling: _common_pb2.Timestamp
    accepted_losses: _containers.RepeatedScalarFieldContainer[bytes]
    configuration: LogConfiguration
    registry: LogRegistry
    def __init__(self, index: _Optional[int] = ..., term: _Optional[int] = ..., kind: _Optional[str] = ..., stored_bytes: _Optional[int] = ..., problem: _Optional[str] = ..., after_index: _Optional[int] = ..., after_term: _Optional[int] = ..., commands: _Optional[_Iterable[_Union[LogCommand, _Mapping]]] = ..., command_count: _Optional[int] = ..., change_count: _Optional[int] = ..., request_floor: _Optional[bytes] = ..., bump_epoch: _Optional[int] = ..., raise_ceiling: _Optional[_Union[_common_pb2.Timestamp, _Mapping]] = ..., accepted_losses: _Optional[_Iterable[bytes]] = ..., configuration: _Optional[_Union[LogConfiguration, _Mapping]] = ..., registry: _Optional[_Union[LogRegistry, _Mapping]] = ...) -> None: ...

class LogCommand(_message.Message):
    __slots__ = ("timestamp", "request_id", "reply_bytes", "changes", "change_count")
    TIMESTAMP_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    REPLY_BYTES_FIELD_NUMBER: _ClassVar[int]
    CHANGES_FIELD_NUMBER: _ClassVar[int]
    CHANGE_COUNT_FIELD_NUMBER: _ClassVar[int]
    timestamp: _common_pb2.Timestamp
    request_id: bytes
    reply_bytes: int
    changes: _containers.RepeatedCompositeFieldContainer[LogChange]
    change_count: int
    def __init__(self, timestamp: _Optional[_Union[_common_pb2.Timestamp, _Mapping]] = ..., request_id: _Optional[bytes] = ..., reply_bytes: _Optional[int] = ..., changes: _Optional[_Iterable[_Union[LogChange, _Mapping]]] = ..., change_count: _Optional[int] = ...) -> None: ...

class LogChange(_message.Message):
    __slots__ = ("key", "is_delete", "payload_bytes", "expires_ms")
    KEY_FIELD_NUMBER: _ClassVar[int]
    IS_DELETE_FIELD_NUMBER: _ClassVar[int]
    PAYLOAD_BYTES_FIELD_NUMBER: _ClassVar[int]
    EXPIRES_MS_FIELD_NUMBER: _ClassVar[int]
    key: StoredKey
    is_delete: bool
    payload_bytes: int
    expires_ms: int
    def __init__(self, key: _Optional[_Union[StoredKey, _Mapping]] = ..., is_delete: bool = ..., payload_bytes: _Optional[int] = ..., expires_ms: _Optional[int] = ...) -> None: ...

class ReadVersionsRequest(_message.Message):
    __slots__ = ("key", "kv", "row", "index", "page_size", "page_token", "payload_bytes_max")
    KEY_FIELD_NUMBER: _ClassVar[int]
    KV_FIELD_NUMBER: _ClassVar[int]
    ROW_FIELD_NUMBER: _ClassVar[int]
    INDEX_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    PAYLOAD_BYTES_MAX_FIELD_NUMBER: _ClassVar[int]
    key: bytes
    kv: KvTarget
    row: RowTarget
    index: IndexTarget
    page_size: int
    page_token: bytes
    payload_bytes_max: int
    def __init__(self, key: _Optional[bytes] = ..., kv: _Optional[_Union[KvTarget, _Mapping]] = ..., row: _Optional[_Union[RowTarget, _Mapping]] = ..., index: _Optional[_Union[IndexTarget, _Mapping]] = ..., page_size: _Optional[int] = ..., page_token: _Optional[bytes] = ..., payload_bytes_max: _Optional[int] = ...) -> None: ...

class KvTarget(_message.Message):
    __slots__ = ("namespace", "key")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    key: bytes
    def __init__(self, namespace: _Optional[str] = ..., key: _Optional[bytes] = ...) -> None: ...

class RowTarget(_message.Message):
    __slots__ = ("database", "table", "key")
    DATABASE_FIELD_NUMBER: _ClassVar[int]
    TABLE_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    database: str
    table: str
    key: _common_pb2.Key
    def __init__(self, database: _Optional[str] = ..., table: _Optional[str] = ..., key: _Optional[_Union[_common_pb2.Key, _Mapping]] = ...) -> None: ...

class IndexTarget(_message.Message):
    __slots__ = ("database", "table", "index", "values")
    DATABASE_FIELD_NUMBER: _ClassVar[int]
    TABLE_FIELD_NUMBER: _ClassVar[int]
    INDEX_FIELD_NUMBER: _ClassVar[int]
    VALUES_FIELD_NUMBER: _ClassVar[int]
    database: str
    table: str
    index: str
    values: _common_pb2.Key
    def __init__(self, database: _Optional[str] = ..., table: _Optional[str] = ..., index: _Optional[str] = ..., values: _Optional[_Union[_common_pb2.Key, _Mapping]] = ...) -> None: ...

class ReadVersionsResponse(_message.Message):
    __slots__ = ("header", "versions", "next_page_token")
    HEADER_FIELD_NUMBER: _ClassVar[int]
    VERSIONS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    header: _common_pb2.Header
    versions: _containers.RepeatedCompositeFieldContainer[StoredVersion]
    next_page_token: bytes
    def __init__(self, header: _Optional[_Union[_common_pb2.Header, _Mapping]] = ..., versions: _Optional[_Iterable[_Union[StoredVersion, _Mapping]]] = ..., next_page_token: _Optional[bytes] = ...) -> None: ...

class StoredVersion(_message.Message):
    __slots__ = ("key", "timestamp", "kind", "payload_bytes", "payload", "is_intact", "schema_id", "value", "problem", "expires_ms")
    KEY_FIELD_NUMBER: _ClassVar[int]
    TIMESTAMP_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    PAYLOAD_BYTES_FIELD_NUMBER: _ClassVar[int]
    PAYLOAD_FIELD_NUMBER: _ClassVar[int]
    IS_INTACT_FIELD_NUMBER: _ClassVar[int]
    SCHEMA_ID_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    PROBLEM_FIELD_NUMBER: _ClassVar[int]
    EXPIRES_MS_FIELD_NUMBER: _ClassVar[int]
    key: StoredKey
    timestamp: _common_pb2.Timestamp
    kind: str
    payload_bytes: int
    payload: bytes
    is_intact: bool
    schema_id: int
    value: str
    problem: str
    expires_ms: int
    def __init__(self, key: _Optional[_Union[StoredKey, _Mapping]] = ..., timestamp: _Optional[_Union[_common_pb2.Timestamp, _Mapping]] = ..., kind: _Optional[str] = ..., payload_bytes: _Optional[int] = ..., payload: _Optional[bytes] = ..., is_intact: bool = ..., schema_id: _Optional[int] = ..., value: _Optional[str] = ..., problem: _Optional[str] = ..., expires_ms: _Optional[int] = ...) -> None: ...

class VerifyRangeRequest(_message.Message):
    __slots__ = ("space", "start", "end", "up_to", "items_max")
    SPACE_FIELD_NUMBER: _ClassVar[int]
    START_FIELD_NUMBER: _ClassVar[int]
    END_FIELD_NUMBER: _ClassVar[int]
    UP_TO_FIELD_NUMBER: _ClassVar[int]
    ITEMS_MAX_FIELD_NUMBER: _ClassVar[int]
    space: StoredSpace
    start: bytes
    end: bytes
    up_to: _common_pb2.Timestamp
    items_max: int
    def __init__(self, space: _Optional[_Union[StoredSpace, str]] = ..., start: _Optional[bytes] = ..., end: _Optional[bytes] = ..., up_to: _Optional[_Union[_common_pb2.Timestamp, _Mapping]] = ..., items_max: _Optional[int] = ...) -> None: ...

class VerifyRangeResponse(_message.Message):
    __slots__ = ("header", "items", "bytes", "digest_items", "digest", "problems", "problems_left_out", "resume")
    HEADER_FIELD_NUMBER: _ClassVar[int]
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    BYTES_FIELD_NUMBER: _ClassVar[int]
    DIGEST_ITEMS_FIELD_NUMBER: _ClassVar[int]
    DIGEST_FIELD_NUMBER: _ClassVar[int]
    PROBLEMS_FIELD_NUMBER: _ClassVar[int]
    PROBLEMS_LEFT_OUT_FIELD_NUMBER: _ClassVar[int]
    RESUME_FIELD_NUMBER: _ClassVar[int]
    header: _common_pb2.Header
    items: int
    bytes: int
    digest_items: int
    digest: bytes
    problems: _containers.RepeatedCompositeFieldContainer[StoredProblem]
    problems_left_out: int
    resume: bytes
    def __init__(self, header: _Optional[_Union[_common_pb2.Header, _Mapping]] = ..., items: _Optional[int] = ..., bytes: _Optional[int] = ..., digest_items: _Optional[int] = ..., digest: _Optional[bytes] = ..., problems: _Optional[_Iterable[_Union[StoredProblem, _Mapping]]] = ..., problems_left_out: _Optional[int] = ..., resume: _Optional[bytes] = ...) -> None: ...

class StoredProblem(_message.Message):
    __slots__ = ("key", "kind", "message")
    KEY_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    key: StoredKey
    kind: str
    message: str
    def __init__(self, key: _Optional[_Union[StoredKey, _Mapping]] = ..., kind: _Optional[str] = ..., message: _Optional[str] = ...) -> None: ...

class ListItemsRequest(_message.Message):
    __slots__ = ("start", "end", "up_to")
    START_FIELD_NUMBER: _ClassVar[int]
    END_FIELD_NUMBER: _ClassVar[int]
    UP_TO_FIELD_NUMBER: _ClassVar[int]
    start: bytes
    end: bytes
    up_to: _common_pb2.Timestamp
    def __init__(self, start: _Optional[bytes] = ..., end: _Optional[bytes] = ..., up_to: _Optional[_Union[_common_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class ListItemsResponse(_message.Message):
    __slots__ = ("header", "items", "resume")
    HEADER_FIELD_NUMBER: _ClassVar[int]
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    RESUME_FIELD_NUMBER: _ClassVar[int]
    header: _common_pb2.Header
    items: _containers.RepeatedCompositeFieldContainer[StoredItem]
    resume: bytes
    def __init__(self, header: _Optional[_Union[_common_pb2.Header, _Mapping]] = ..., items: _Optional[_Iterable[_Union[StoredItem, _Mapping]]] = ..., resume: _Optional[bytes] = ...) -> None: ...

class StoredItem(_message.Message):
    __slots__ = ("key", "digest", "is_intact")
    KEY_FIELD_NUMBER: _ClassVar[int]
    DIGEST_FIELD_NUMBER: _ClassVar[int]
    IS_INTACT_FIELD_NUMBER: _ClassVar[int]
    key: bytes
    digest: bytes
    is_intact: bool
    def __init__(self, key: _Optional[bytes] = ..., digest: _Optional[bytes] = ..., is_intact: bool = ...) -> None: ...
