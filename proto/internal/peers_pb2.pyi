from cortado.proto.internal import raft_pb2 as _raft_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class EntryFormats(_message.Message):
    __slots__ = ("written", "oldest_read", "newest_read")
    WRITTEN_FIELD_NUMBER: _ClassVar[int]
    OLDEST_READ_FIELD_NUMBER: _ClassVar[int]
    NEWEST_READ_FIELD_NUMBER: _ClassVar[int]
    written: int
    oldest_read: int
    newest_read: int
    def __init__(self, written: _Optional[int] = ..., oldest_read: _Optional[int] = ..., newest_read: _Optional[int] = ...) -> None: ...

class Hello(_message.Message):
    __slots__ = ("protocol", "cluster_id", "node_id", "storage_id", "to_node_id", "peer_address", "last_index", "last_term", "oldest_protocol", "entries", "process", "process_age_ms")
    PROTOCOL_FIELD_NUMBER: _ClassVar[int]
    CLUSTER_ID_FIELD_NUMBER: _ClassVar[int]
    NODE_ID_FIELD_NUMBER: _ClassVar[int]
    STORAGE_ID_FIELD_NUMBER: _ClassVar[int]
    TO_NODE_ID_FIELD_NUMBER: _ClassVar[int]
    PEER_ADDRESS_FIELD_NUMBER: _ClassVar[int]
    LAST_INDEX_FIELD_NUMBER: _ClassVar[int]
    LAST_TERM_FIELD_NUMBER: _ClassVar[int]
    OLDEST_PROTOCOL_FIELD_NUMBER: _ClassVar[int]
    ENTRIES_FIELD_NUMBER: _ClassVar[int]
    PROCESS_FIELD_NUMBER: _ClassVar[int]
    PROCESS_AGE_MS_FIELD_NUMBER: _ClassVar[int]
    protocol: int
    cluster_id: str
    node_id: str
    storage_id: str
    to_node_id: str
    peer_address: str
    last_index: int
    last_term: int
    oldest_protocol: int
    entries: EntryFormats
    process: int
    process_age_ms: int
    def __init__(self, protocol: _Optional[int] = ..., cluster_id: _Optional[str] = ..., node_id: _Optional[str] = ..., storage_id: _Optional[str] = ..., to_node_id: _Optional[str] = ..., peer_address: _Optional[str] = ..., last_index: _Optional[int] = ..., last_term: _Optional[int] = ..., oldest_protocol: _Optional[int] = ..., entries: _Optional[_Union[EntryFormats, _Mapping]] = ..., process: _Optional[int] = ..., process_age_ms: _Optional[int] = ...) -> None: ...

class PeerBatch(_message.Message):
    __slots__ = ("physical_ms", "monotonic_ms", "echo_monotonic_ms", "echo_age_ms", "messages")
    PHYSICAL_MS_FIELD_NUMBER: _ClassVar[int]
    MONOTONIC_MS_FIELD_NUMBER: _ClassVar[int]
    ECHO_MONOTONIC_MS_FIELD_NUMBER: _ClassVar[int]
    ECHO_AGE_MS_FIELD_NUMBER: _ClassVar[int]
    MESSAGES_FIELD_NUMBER: _ClassVar[int]
    physical_ms: int
    monotonic_ms: float
    echo_monotonic_ms: float
    echo_age_ms: float
    messages: _containers.RepeatedCompositeFieldContainer[GroupMessage]
    def __init__(self, physical_ms: _Optional[int] = ..., monotonic_ms: _Optional[float] = ..., echo_monotonic_ms: _Optional[float] = ..., echo_age_ms: _Optional[float] = ..., messages: _Optional[_Iterable[_Union[GroupMessage, _Mapping]]] = ...) -> None: ...

class GroupMessage(_message.Message):
    __slots__ = ("group_id", "body")
    GROUP_ID_FIELD_NUMBER: _ClassVar[int]
    BODY_FIELD_NUMBER: _ClassVar[int]
    group_id: int
    body: bytes
    def __init__(self, group_id: _Optional[int] = ..., body: _Optional[bytes] = ...) -> None: ...

class FetchSnapshotRequest(_message.Message):
    __slots__ = ("hello", "group_id", "snapshot_id", "offset")
    HELLO_FIELD_NUMBER: _ClassVar[int]
    GROUP_ID_FIELD_NUMBER: _ClassVar[int]
    SNAPSHOT_ID_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    hello: Hello
    group_id: int
    snapshot_id: str
    offset: int
    def __init__(self, hello: _Optional[_Union[Hello, _Mapping]] = ..., group_id: _Optional[int] = ..., snapshot_id: _Optional[str] = ..., offset: _Optional[int] = ...) -> None: ...

class SnapshotChunk(_message.Message):
    __slots__ = ("offset", "data", "checksum")
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    CHECKSUM_FIELD_NUMBER: _ClassVar[int]
    offset: int
    data: bytes
    checksum: int
    def __init__(self, offset: _Optional[int] = ..., data: _Optional[bytes] = ..., checksum: _Optional[int] = ...) -> None: ...

class VouchRequest(_message.Message):
    __slots__ = ("hello", "node_id", "storage_id")
    HELLO_FIELD_NUMBER: _ClassVar[int]
    NODE_ID_FIELD_NUMBER: _ClassVar[int]
    STORAGE_ID_FIELD_NUMBER: _ClassVar[int]
    hello: Hello
    node_id: str
    storage_id: str
    def __init__(self, hello: _Optional[_Union[Hello, _Mapping]] = ..., node_id: _Optional[str] = ..., storage_id: _Optional[str] = ...) -> None: ...

class VouchResponse(_message.Message):
    __slots__ = ("is_member", "last_index", "last_term")
    IS_MEMBER_FIELD_NUMBER: _ClassVar[int]
    LAST_INDEX_FIELD_NUMBER: _ClassVar[int]
    LAST_TERM_FIELD_NUMBER: _ClassVar[int]
    is_member: bool
    last_index: int
    last_term: int
    def __init__(self, is_member: bool = ..., last_index: _Optional[int] = ..., last_term: _Optional[int] = ...) -> None: ...

class ReadRangeRequest(_message.Message):
    __slots__ = ("hello", "group_id", "space", "start", "end")
    HELLO_FIELD_NUMBER: _ClassVar[int]
    GROUP_ID_FIELD_NUMBER: _ClassVar[int]
    SPACE_FIELD_NUMBER: _ClassVar[int]
    START_FIELD_NUMBER: _ClassVar[int]
    END_FIELD_NUMBER: _ClassVar[int]
    hello: Hello
    group_id: int
    space: int
    start: bytes
    end: bytes
    def __init__(self, hello: _Optional[_Union[Hello, _Mapping]] = ..., group_id: _Optional[int] = ..., space: _Optional[int] = ..., start: _Optional[bytes] = ..., end: _Optional[bytes] = ...) -> None: ...

class ReadRangeResponse(_message.Message):
    __slots__ = ("applied_index", "last_timestamp", "keys", "key_lengths", "values", "value_lengths", "damaged", "damaged_right_keys", "end", "request_floor")
    APPLIED_INDEX_FIELD_NUMBER: _ClassVar[int]
    LAST_TIMESTAMP_FIELD_NUMBER: _ClassVar[int]
    KEYS_FIELD_NUMBER: _ClassVar[int]
    KEY_LENGTHS_FIELD_NUMBER: _ClassVar[int]
    VALUES_FIELD_NUMBER: _ClassVar[int]
    VALUE_LENGTHS_FIELD_NUMBER: _ClassVar[int]
    DAMAGED_FIELD_NUMBER: _ClassVar[int]
    DAMAGED_RIGHT_KEYS_FIELD_NUMBER: _ClassVar[int]
    END_FIELD_NUMBER: _ClassVar[int]
    REQUEST_FLOOR_FIELD_NUMBER: _ClassVar[int]
    applied_index: int
    last_timestamp: bytes
    keys: bytes
    key_lengths: bytes
    values: bytes
    value_lengths: bytes
    damaged: _containers.RepeatedScalarFieldContainer[bytes]
    damaged_right_keys: _containers.RepeatedScalarFieldContainer[bytes]
    end: bytes
    request_floor: bytes
    def __init__(self, applied_index: _Optional[int] = ..., last_timestamp: _Optional[bytes] = ..., keys: _Optional[bytes] = ..., key_lengths: _Optional[bytes] = ..., values: _Optional[bytes] = ..., value_lengths: _Optional[bytes] = ..., damaged: _Optional[_Iterable[bytes]] = ..., damaged_right_keys: _Optional[_Iterable[bytes]] = ..., end: _Optional[bytes] = ..., request_floor: _Optional[bytes] = ...) -> None: ...

class JoinRequest(_message.Message):
    __slots__ = ("node_id", "storage_id", "peer_address", "protocol", "cluster_id", "oldest_protocol", "entries", "address", "process", "process_age_ms")
    NODE_ID_FIELD_NUMBER: _ClassVar[int]
    STORAGE_ID_FIELD_NUMBER: _ClassVar[int]
    PEER_ADDRESS_FIELD_NUMBER: _ClassVar[int]
    PROTOCOL_FIELD_NUMBER: _ClassVar[int]
    CLUSTER_ID_FIELD_NUMBER: _ClassVar[int]
    OLDEST_PROTOCOL_FIELD_NUMBER: _ClassVar[int]
    ENTRIES_FIELD_NUMBER: _ClassVar[int]
    ADDRESS_FIELD_NUMBER: _ClassVar[int]
    PROCESS_FIELD_NUMBER: _ClassVar[int]
    PROCESS_AGE_MS_FIELD_NUMBER: _ClassVar[int]
    node_id: str
    storage_id: str
    peer_address: str
    protocol: int
    cluster_id: str
    oldest_protocol: int
    entries: EntryFormats
    address: str
    process: int
    process_age_ms: int
    def __init__(self, node_id: _Optional[str] = ..., storage_id: _Optional[str] = ..., peer_address: _Optional[str] = ..., protocol: _Optional[int] = ..., cluster_id: _Optional[str] = ..., oldest_protocol: _Optional[int] = ..., entries: _Optional[_Union[EntryFormats, _Mapping]] = ..., address: _Optional[str] = ..., process: _Optional[int] = ..., process_age_ms: _Optional[int] = ...) -> None: ...

class JoinResponse(_message.Message):
    __slots__ = ("cluster_id", "roster")
    CLUSTER_ID_FIELD_NUMBER: _ClassVar[int]
    ROSTER_FIELD_NUMBER: _ClassVar[int]
    cluster_id: str
    roster: _raft_pb2.Roster
    def __init__(self, cluster_id: _Optional[str] = ..., roster: _Optional[_Union[_raft_pb2.Roster, _Mapping]] = ...) -> None: ...
