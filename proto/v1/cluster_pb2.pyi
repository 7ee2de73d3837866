from cortado.proto.v1 import common_pb2 as _common_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class StatusRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class StatusResponse(_message.Message):
    __slots__ = ("header", "version", "data_dir", "state", "leader", "applied_index", "uptime_ms", "map", "disk_free_bytes", "log_bytes", "queues", "loop_lag_ms_max", "role", "last_index", "leader_address", "clock_offsets", "patrol", "damage", "damaged", "repaired", "slowed", "scan_path", "disputes")
    HEADER_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    DATA_DIR_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    LEADER_FIELD_NUMBER: _ClassVar[int]
    APPLIED_INDEX_FIELD_NUMBER: _ClassVar[int]
    UPTIME_MS_FIELD_NUMBER: _ClassVar[int]
    MAP_FIELD_NUMBER: _ClassVar[int]
    DISK_FREE_BYTES_FIELD_NUMBER: _ClassVar[int]
    LOG_BYTES_FIELD_NUMBER: _ClassVar[int]
    QUEUES_FIELD_NUMBER: _ClassVar[int]
    LOOP_LAG_MS_MAX_FIELD_NUMBER: _ClassVar[int]
    ROLE_FIELD_NUMBER: _ClassVar[int]
    LAST_INDEX_FIELD_NUMBER: _ClassVar[int]
    LEADER_ADDRESS_FIELD_NUMBER: _ClassVar[int]
    CLOCK_OFFSETS_FIELD_NUMBER: _ClassVar[int]
    PATROL_FIELD_NUMBER: _ClassVar[int]
    DAMAGE_FIELD_NUMBER: _ClassVar[int]
    DAMAGED_FIELD_NUMBER: _ClassVar[int]
    REPAIRED_FIELD_NUMBER: _ClassVar[int]
    SLOWED_FIELD_NUMBER: _ClassVar[int]
    SCAN_PATH_FIELD_NUMBER: _ClassVar[int]
    DISPUTES_FIELD_NUMBER: _ClassVar[int]
    header: _common_pb2.Header
    version: str
    data_dir: str
    state: str
    leader: str
    applied_index: int
    uptime_ms: int
    map: MapUse
    disk_free_bytes: int
    log_bytes: int
    queues: _containers.RepeatedCompositeFieldContainer[QueueUse]
    loop_lag_ms_max: int
    role: str
    last_index: int
    leader_address: str
    clock_offsets: _containers.RepeatedCompositeFieldContainer[ClockOffset]
    patrol: Patrol
    damage: _containers.RepeatedCompositeFieldContainer[DamagedItem]
    damaged: int
    repaired: int
    slowed: str
    scan_path: str
    disputes: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, header: _Optional[_Union[_common_pb2.Header, _Mapping]] = ..., version: _Optional[str] = ..., data_dir: _Optional[str] = ..., state: _Optional[str] = ..., leader: _Optional[str] = ..., applied_index: _Optional[int] = ..., uptime_ms: _Optional[int] = ..., map: _Optional[_Union[MapUse, _Mapping]] = ..., disk_free_bytes: _Optional[int] = ..., log_bytes: _Optional[int] = ..., queues: _Optional[_Iterable[_Union[QueueUse, _Mapping]]] = ..., loop_lag_ms_max: _Optional[int] = ..., role: _Optional[str] = ..., last_index: _Optional[int] = ..., leader_address: _Optional[str] = ..., clock_offsets: _Optional[_Iterable[_Union[ClockOffset, _Mapping]]] = ..., patrol: _Optional[_Union[Patrol, _Mapping]] = ..., damage: _Optional[_Iterable[_Union[DamagedItem, _Mapping]]] = ..., damaged: _Optional[int] = ..., repaired: _Optional[int] = ..., slowed: _Optional[str] = ..., scan_path: _Optional[str] = ..., disputes: _Optional[_Iterable[str]] = ...) -> None: ...

class Patrol(_message.Message):
    __slots__ = ("read_bytes", "expected_bytes", "running_ms", "passes", "last_pass_ms", "damaged")
    READ_BYTES_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_BYTES_FIELD_NUMBER: _ClassVar[int]
    RUNNING_MS_FIELD_NUMBER: _ClassVar[int]
    PASSES_FIELD_NUMBER: _ClassVar[int]
    LAST_PASS_MS_FIELD_NUMBER: _ClassVar[int]
    DAMAGED_FIELD_NUMBER: _ClassVar[int]
    read_bytes: int
    expected_bytes: int
    running_ms: int
    passes: int
    last_pass_ms: int
    damaged: int
    def __init__(self, read_bytes: _Optional[int] = ..., expected_bytes: _Optional[int] = ..., running_ms: _Optional[int] = ..., passes: _Optional[int] = ..., last_pass_ms: _Optional[int] = ..., damaged: _Optional[int] = ...) -> None: ...

class DamagedItem(_message.Message):
    __slots__ = ("key", "text", "problem", "is_lost")
    KEY_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    PROBLEM_FIELD_NUMBER: _ClassVar[int]
    IS_LOST_FIELD_NUMBER: _ClassVar[int]
    key: bytes
    text: str
    problem: str
    is_lost: bool
    def __init__(self, key: _Optional[bytes] = ..., text: _Optional[str] = ..., problem: _Optional[str] = ..., is_lost: bool = ...) -> None: ...

class AcceptLossRequest(_message.Message):
    __slots__ = ("key", "request_id")
    KEY_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    key: bytes
    request_id: bytes
    def __init__(self, key: _Optional[bytes] = ..., request_id: _Optional[bytes] = ...) -> None: ...

class AcceptLossResponse(_message.Message):
    __slots__ = ("header",)
    HEADER_FIELD_NUMBER: _ClassVar[int]
    header: _common_pb2.Header
    def __init__(self, header: _Optional[_Union[_common_pb2.Header, _Mapping]] = ...) -> None: ...

class ClockOffset(_message.Message):
    __slots__ = ("node_id", "low_ms", "high_ms")
    NODE_ID_FIELD_NUMBER: _ClassVar[int]
    LOW_MS_FIELD_NUMBER: _ClassVar[int]
    HIGH_MS_FIELD_NUMBER: _ClassVar[int]
    node_id: str
    low_ms: int
    high_ms: int
    def __init__(self, node_id: _Optional[str] = ..., low_ms: _Optional[int] = ..., high_ms: _Optional[int] = ...) -> None: ...

class MapUse(_message.Message):
    __slots__ = ("used_bytes", "limit_bytes")
    USED_BYTES_FIELD_NUMBER: _ClassVar[int]
    LIMIT_BYTES_FIELD_NUMBER: _ClassVar[int]
    used_bytes: int
    limit_bytes: int
    def __init__(self, used_bytes: _Optional[int] = ..., limit_bytes: _Optional[int] = ...) -> None: ...

class QueueUse(_message.Message):
    __slots__ = ("name", "count", "count_max", "bytes", "bytes_max")
    NAME_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    COUNT_MAX_FIELD_NUMBER: _ClassVar[int]
    BYTES_FIELD_NUMBER: _ClassVar[int]
    BYTES_MAX_FIELD_NUMBER: _ClassVar[int]
    name: str
    count: int
    count_max: int
    bytes: int
    bytes_max: int
    def __init__(self, name: _Optional[str] = ..., count: _Optional[int] = ..., count_max: _Optional[int] = ..., bytes: _Optional[int] = ..., bytes_max: _Optional[int] = ...) -> None: ...

class ClockRequest(_message.Message):
    __slots__ = ("at_leader", "is_read", "at")
    AT_LEADER_FIELD_NUMBER: _ClassVar[int]
    IS_READ_FIELD_NUMBER: _ClassVar[int]
    AT_FIELD_NUMBER: _ClassVar[int]
    at_leader: bool
    is_read: bool
    at: _common_pb2.ReadAt
    def __init__(self, at_leader: bool = ..., is_read: bool = ..., at: _Optional[_Union[_common_pb2.ReadAt, _Mapping]] = ...) -> None: ...

class ClockResponse(_message.Message):
    __slots__ = ("header", "now", "physical_ms", "last_applied", "max_offset_ms", "jump_ms")
    HEADER_FIELD_NUMBER: _ClassVar[int]
    NOW_FIELD_NUMBER: _ClassVar[int]
    PHYSICAL_MS_FIELD_NUMBER: _ClassVar[int]
    LAST_APPLIED_FIELD_NUMBER: _ClassVar[int]
    MAX_OFFSET_MS_FIELD_NUMBER: _ClassVar[int]
    JUMP_MS_FIELD_NUMBER: _ClassVar[int]
    header: _common_pb2.Header
    now: _common_pb2.Timestamp
    physical_ms: int
    last_applied: _common_pb2.Timestamp
    max_offset_ms: int
    jump_ms: int
    def __init__(self, header: _Optional[_Union[_common_pb2.Header, _Mapping]] = ..., now: _Optional[_Union[_common_pb2.Timestamp, _Mapping]] = ..., physical_ms: _Optional[int] = ..., last_applied: _Optional[_Union[_common_pb2.Timestamp, _Mapping]] = ..., max_offset_ms: _Optional[int] = ..., jump_ms: _Optional[int] = ...) -> None: ...

class BumpEpochRequest(_message.Message):
    __slots__ = ("from_epoch", "request_id")
    FROM_EPOCH_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    from_epoch: int
    request_id: bytes
    def __init__(self, from_epoch: _Optional[int] = ..., request_id: _Optional[bytes] = ...) -> None: ...

class BumpEpochResponse(_message.Message):
    __slots__ = ("header", "epoch")
    HEADER_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    header: _common_pb2.Header
    epoch: int
    def __init__(self, header: _Optional[_Union[_common_pb2.Header, _Mapping]] = ..., epoch: _Optional[int] = ...) -> None: ...

class MembersRequest(_message.Message):
    __slots__ = ("at_leader", "committed")
    AT_LEADER_FIELD_NUMBER: _ClassVar[int]
    COMMITTED_FIELD_NUMBER: _ClassVar[int]
    at_leader: bool
    committed: bool
    def __init__(self, at_leader: bool = ..., committed: bool = ...) -> None: ...

class MembersResponse(_message.Message):
    __slots__ = ("header", "members", "leader")
    HEADER_FIELD_NUMBER: _ClassVar[int]
    MEMBERS_FIELD_NUMBER: _ClassVar[int]
    LEADER_FIELD_NUMBER: _ClassVar[int]
    header: _common_pb2.Header
    members: _containers.RepeatedCompositeFieldContainer[MemberStatus]
    leader: str
    def __init__(self, header: _Optional[_Union[_common_pb2.Header, _Mapping]] = ..., members: _Optional[_Iterable[_Union[MemberStatus, _Mapping]]] = ..., leader: _Optional[str] = ...) -> None: ...

class MemberStatus(_message.Message):
    __slots__ = ("node_id", "address", "voter", "joined", "match_index", "behind", "last_heard_ms", "needs_snapshot", "peer_address", "down", "no_room")
    NODE_ID_FIELD_NUMBER: _ClassVar[int]
    ADDRESS_FIELD_NUMBER: _ClassVar[int]
    VOTER_FIELD_NUMBER: _ClassVar[int]
    JOINED_FIELD_NUMBER: _ClassVar[int]
    MATCH_INDEX_FIELD_NUMBER: _ClassVar[int]
    BEHIND_FIELD_NUMBER: _ClassVar[int]
    LAST_HEARD_MS_FIELD_NUMBER: _ClassVar[int]
    NEEDS_SNAPSHOT_FIELD_NUMBER: _ClassVar[int]
    PEER_ADDRESS_FIELD_NUMBER: _ClassVar[int]
    DOWN_FIELD_NUMBER: _ClassVar[int]
    NO_ROOM_FIELD_NUMBER: _ClassVar[int]
    node_id: str
    address: str
    voter: bool
    joined: bool
    match_index: int
    behind: int
    last_heard_ms: int
    needs_snapshot: bool
    peer_address: str
    down: bool
    no_room: bool
    def __init__(self, node_id: _Optional[str] = ..., address: _Optional[str] = ..., voter: bool = ..., joined: bool = ..., match_index: _Optional[int] = ..., behind: _Optional[int] = ..., last_heard_ms: _Optional[int] = ..., needs_snapshot: bool = ..., peer_address: _Optional[str] = ..., down: bool = ..., no_room: bool = ...) -> None: ...

class AddMemberRequest(_message.Message):
    __slots__ = ("node_id", "peer_address")
    NODE_ID_FIELD_NUMBER: _ClassVar[int]
    PEER_ADDRESS_FIELD_NUMBER: _ClassVar[int]
    node_id: str
    peer_address: str
    def __init__(self, node_id: _Optional[str] = ..., peer_address: _Optional[str] = ...) -> None: ...

class PromoteMemberRequest(_message.Message):
    __slots__ = ("node_id",)
    NODE_ID_FIELD_NUMBER: _ClassVar[int]
    node_id: str
    def __init__(self, node_id: _Optional[str] = ...) -> None: ...

class RemoveMemberRequest(_message.Message):
    __slots__ = ("node_id",)
    NODE_ID_FIELD_NUMBER: _ClassVar[int]
    node_id: str
    def __init__(self, node_id: _Optional[str] = ...) -> None: ...

class MemberChangeResponse(_message.Message):
    __slots__ = ("header", "members")
    HEADER_FIELD_NUMBER: _ClassVar[int]
    MEMBERS_FIELD_NUMBER: _ClassVar[int]
    header: _common_pb2.Header
    members: _containers.RepeatedCompositeFieldContainer[MemberStatus]
    def __init__(self, header: _Optional[_Union[_common_pb2.Header, _Mapping]] = ..., members: _Optional[_Iterable[_Union[MemberStatus, _Mapping]]] = ...) -> None: ...

class TransferLeaderRequest(_message.Message):
    __slots__ = ("to_node_id",)
    TO_NODE_ID_FIELD_NUMBER: _ClassVar[int]
    to_node_id: str
    def __init__(self, to_node_id: _Optional[str] = ...) -> None: ...

class TransferLeaderResponse(_message.Message):
    __slots__ = ("header", "leader")
    HEADER_FIELD_NUMBER: _ClassVar[int]
    LEADER_FIELD_NUMBER: _ClassVar[int]
    header: _common_pb2.Header
    leader: str
    def __init__(self, header: _Optional[_Union[_common_pb2.Header, _Mapping]] = ..., leader: _Optional[str] = ...) -> None: ...

class RebuildReplicaRequest(_message.Message):
    __slots__ = ("node_id",)
    NODE_ID_FIELD_NUMBER: _ClassVar[int]
    node_id: str
    def __init__(self, node_id: _Optional[str] = ...) -> None: ...

class RebuildReplicaResponse(_message.Message):
    __slots__ = ("header",)
    HEADER_FIELD_NUMBER: _ClassVar[int]
    header: _common_pb2.Header
    def __init__(self, header: _Optional[_Union[_common_pb2.Header, _Mapping]] = ...) -> None: ...
