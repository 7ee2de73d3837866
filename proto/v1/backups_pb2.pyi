from cortado.proto.v1 import common_pb2 as _common_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class BackupRange(_message.Message):
    __slots__ = ("start", "end", "keys")
    START_FIELD_NUMBER: _ClassVar[int]
    END_FIELD_NUMBER: _ClassVar[int]
    KEYS_FIELD_NUMBER: _ClassVar[int]
    start: bytes
    end: bytes
    keys: int
    def __init__(self, start: _Optional[bytes] = ..., end: _Optional[bytes] = ..., keys: _Optional[int] = ...) -> None: ...

class PlanBackupRequest(_message.Message):
    __slots__ = ("at", "range_bytes")
    AT_FIELD_NUMBER: _ClassVar[int]
    RANGE_BYTES_FIELD_NUMBER: _ClassVar[int]
    at: _common_pb2.ReadAt
    range_bytes: int
    def __init__(self, at: _Optional[_Union[_common_pb2.ReadAt, _Mapping]] = ..., range_bytes: _Optional[int] = ...) -> None: ...

class PlanBackupResponse(_message.Message):
    __slots__ = ("header", "timestamp", "oldest", "ranges", "restored", "roles_enabled")
    HEADER_FIELD_NUMBER: _ClassVar[int]
    TIMESTAMP_FIELD_NUMBER: _ClassVar[int]
    OLDEST_FIELD_NUMBER: _ClassVar[int]
    RANGES_FIELD_NUMBER: _ClassVar[int]
    RESTORED_FIELD_NUMBER: _ClassVar[int]
    ROLES_ENABLED_FIELD_NUMBER: _ClassVar[int]
    header: _common_pb2.Header
    timestamp: _common_pb2.Timestamp
    oldest: _common_pb2.Timestamp
    ranges: _containers.RepeatedCompositeFieldContainer[BackupRange]
    restored: _common_pb2.Timestamp
    roles_enabled: bool
    def __init__(self, header: _Optional[_Union[_common_pb2.Header, _Mapping]] = ..., timestamp: _Optional[_Union[_common_pb2.Timestamp, _Mapping]] = ..., oldest: _Optional[_Union[_common_pb2.Timestamp, _Mapping]] = ..., ranges: _Optional[_Iterable[_Union[BackupRange, _Mapping]]] = ..., restored: _Optional[_Union[_common_pb2.Timestamp, _Mapping]] = ..., roles_enabled: bool = ...) -> None: ...

class ReadBackupRequest(_message.Message):
    __slots__ = ("start", "end", "at", "since", "history", "with_start", "page_token", "restore_id")
    START_FIELD_NUMBER: _ClassVar[int]
    END_FIELD_NUMBER: _ClassVar[int]
    AT_FIELD_NUMBER: _ClassVar[int]
    SINCE_FIELD_NUMBER: _ClassVar[int]
    HISTORY_FIELD_NUMBER: _ClassVar[int]
    WITH_START_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    RESTORE_ID_FIELD_NUMBER: _ClassVar[int]
    start: bytes
    end: bytes
    at: _common_pb2.ReadAt
    since: _common_pb2.Timestamp
    history: bool
    with_start: bool
    page_token: bytes
    restore_id: str
    def __init__(self, start: _Optional[bytes] = ..., end: _Optional[bytes] = ..., at: _Optional[_Union[_common_pb2.ReadAt, _Mapping]] = ..., since: _Optional[_Union[_common_pb2.Timestamp, _Mapping]] = ..., history: bool = ..., with_start: bool = ..., page_token: _Optional[bytes] = ..., restore_id: _Optional[str] = ...) -> None: ...

class ReadBackupResponse(_message.Message):
    __slots__ = ("header", "run", "checksum", "next_page_token")
    HEADER_FIELD_NUMBER: _ClassVar[int]
    RUN_FIELD_NUMBER: _ClassVar[int]
    CHECKSUM_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    header: _common_pb2.Header
    run: bytes
    checksum: int
    next_page_token: bytes
    def __init__(self, header: _Optional[_Union[_common_pb2.Header, _Mapping]] = ..., run: _Optional[bytes] = ..., checksum: _Optional[int] = ..., next_page_token: _Optional[bytes] = ...) -> None: ...

class FollowBackupRequest(_message.Message):
    __slots__ = ("after", "resolved_interval_ms")
    AFTER_FIELD_NUMBER: _ClassVar[int]
    RESOLVED_INTERVAL_MS_FIELD_NUMBER: _ClassVar[int]
    after: _common_pb2.Timestamp
    resolved_interval_ms: int
    def __init__(self, after: _Optional[_Union[_common_pb2.Timestamp, _Mapping]] = ..., resolved_interval_ms: _Optional[int] = ...) -> None: ...

class FollowBackupResponse(_message.Message):
    __slots__ = ("header", "run", "checksum", "resolved", "roles_enabled")
    HEADER_FIELD_NUMBER: _ClassVar[int]
    RUN_FIELD_NUMBER: _ClassVar[int]
    CHECKSUM_FIELD_NUMBER: _ClassVar[int]
    RESOLVED_FIELD_NUMBER: _ClassVar[int]
    ROLES_ENABLED_FIELD_NUMBER: _ClassVar[int]
    header: _common_pb2.Header
    run: bytes
    checksum: int
    resolved: _common_pb2.Timestamp
    roles_enabled: bool
    def __init__(self, header: _Optional[_Union[_common_pb2.Header, _Mapping]] = ..., run: _Optional[bytes] = ..., checksum: _Optional[int] = ..., resolved: _Optional[_Union[_common_pb2.Timestamp, _Mapping]] = ..., roles_enabled: bool = ...) -> None: ...

class BeginRestoreRequest(_message.Message):
    __slots__ = ("restore_id", "timestamp", "readable_from", "parts")
    RESTORE_ID_FIELD_NUMBER: _ClassVar[int]
    TIMESTAMP_FIELD_NUMBER: _ClassVar[int]
    READABLE_FROM_FIELD_NUMBER: _ClassVar[int]
    PARTS_FIELD_NUMBER: _ClassVar[int]
    restore_id: str
    timestamp: _common_pb2.Timestamp
    readable_from: _common_pb2.Timestamp
    parts: int
    def __init__(self, restore_id: _Optional[str] = ..., timestamp: _Optional[_Union[_common_pb2.Timestamp, _Mapping]] = ..., readable_from: _Optional[_Union[_common_pb2.Timestamp, _Mapping]] = ..., parts: _Optional[int] = ...) -> None: ...

class PutRestoreRequest(_message.Message):
    __slots__ = ("restore_id", "run", "checksum", "part_done")
    RESTORE_ID_FIELD_NUMBER: _ClassVar[int]
    RUN_FIELD_NUMBER: _ClassVar[int]
    CHECKSUM_FIELD_NUMBER: _ClassVar[int]
    PART_DONE_FIELD_NUMBER: _ClassVar[int]
    restore_id: str
    run: bytes
    checksum: int
    part_done: int
    def __init__(self, restore_id: _Optional[str] = ..., run: _Optional[bytes] = ..., checksum: _Optional[int] = ..., part_done: _Optional[int] = ...) -> None: ...

class EndRestoreRequest(_message.Message):
    __slots__ = ("restore_id",)
    RESTORE_ID_FIELD_NUMBER: _ClassVar[int]
    restore_id: str
    def __init__(self, restore_id: _Optional[str] = ...) -> None: ...

class AbandonRestoreRequest(_message.Message):
    __slots__ = ("restore_id",)
    RESTORE_ID_FIELD_NUMBER: _ClassVar[int]
    restore_id: str
    def __init__(self, restore_id: _Optional[str] = ...) -> None: ...

class RestoreStatusRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class RestoreResponse(_message.Message):
    __slots__ = ("header", "state", "ended", "roles_enabled")
    HEADER_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    ENDED_FIELD_NUMBER: _ClassVar[int]
    ROLES_ENABLED_FIELD_NUMBER: _ClassVar[int]
    header: _common_pb2.Header
    state: RestoreState
    ended: str
    roles_enabled: bool
    def __init__(self, header: _Optional[_Union[_common_pb2.Header, _Mapping]] = ..., state: _Optional[_Union[RestoreState, _Mapping]] = ..., ended: _Optional[str] = ..., roles_enabled: bool = ...) -> None: ...

class RestoreState(_message.Message):
    __slots__ = ("restore_id", "timestamp", "readable_from", "parts", "parts_done", "is_abandoned")
    RESTORE_ID_FIELD_NUMBER: _ClassVar[int]
    TIMESTAMP_FIELD_NUMBER: _ClassVar[int]
    READABLE_FROM_FIELD_NUMBER: _ClassVar[int]
    PARTS_FIELD_NUMBER: _ClassVar[int]
    PARTS_DONE_FIELD_NUMBER: _ClassVar[int]
    IS_ABANDONED_FIELD_NUMBER: _ClassVar[int]
    restore_id: str
    timestamp: _common_pb2.Timestamp
    readable_from: _common_pb2.Timestamp
    parts: int
    parts_done: _containers.RepeatedScalarFieldContainer[int]
    is_abandoned: bool
    def __init__(self, restore_id: _Optional[str] = ..., timestamp: _Optional[_Union[_common_pb2.Timestamp, _Mapping]] = ..., readable_from: _Optional[_Union[_common_pb2.Timestamp, _Mapping]] = ..., parts: _Optional[int] = ..., parts_done: _Optional[_Iterable[int]] = ..., is_abandoned: bool = ...) -> None: ...
