from cortado.proto.v1 import common_pb2 as _common_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Lease(_message.Message):
    __slots__ = ("lease_id", "timestamp", "ttl_ms", "label", "acquired", "silent_ms", "consumer", "owner", "principal")
    LEASE_ID_FIELD_NUMBER: _ClassVar[int]
    TIMESTAMP_FIELD_NUMBER: _ClassVar[int]
    TTL_MS_FIELD_NUMBER: _ClassVar[int]
    LABEL_FIELD_NUMBER: _ClassVar[int]
    ACQUIRED_FIELD_NUMBER: _ClassVar[int]
    SILENT_MS_FIELD_NUMBER: _ClassVar[int]
    CONSUMER_FIELD_NUMBER: _ClassVar[int]
    OWNER_FIELD_NUMBER: _ClassVar[int]
    PRINCIPAL_FIELD_NUMBER: _ClassVar[int]
    lease_id: bytes
    timestamp: _common_pb2.Timestamp
    ttl_ms: int
    label: str
    acquired: _common_pb2.Timestamp
    silent_ms: int
    consumer: str
    owner: str
    principal: str
    def __init__(self, lease_id: _Optional[bytes] = ..., timestamp: _Optional[_Union[_common_pb2.Timestamp, _Mapping]] = ..., ttl_ms: _Optional[int] = ..., label: _Optional[str] = ..., acquired: _Optional[_Union[_common_pb2.Timestamp, _Mapping]] = ..., silent_ms: _Optional[int] = ..., consumer: _Optional[str] = ..., owner: _Optional[str] = ..., principal: _Optional[str] = ...) -> None: ...

class AcquireLeaseRequest(_message.Message):
    __slots__ = ("lease_id", "timestamp", "wall_ms", "ttl_ms", "label", "request_id", "consumer", "owner")
    LEASE_ID_FIELD_NUMBER: _ClassVar[int]
    TIMESTAMP_FIELD_NUMBER: _ClassVar[int]
    WALL_MS_FIELD_NUMBER: _ClassVar[int]
    TTL_MS_FIELD_NUMBER: _ClassVar[int]
    LABEL_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    CONSUMER_FIELD_NUMBER: _ClassVar[int]
    OWNER_FIELD_NUMBER: _ClassVar[int]
    lease_id: bytes
    timestamp: _common_pb2.Timestamp
    wall_ms: int
    ttl_ms: int
    label: str
    request_id: bytes
    consumer: str
    owner: str
    def __init__(self, lease_id: _Optional[bytes] = ..., timestamp: _Optional[_Union[_common_pb2.Timestamp, _Mapping]] = ..., wall_ms: _Optional[int] = ..., ttl_ms: _Optional[int] = ..., label: _Optional[str] = ..., request_id: _Optional[bytes] = ..., consumer: _Optional[str] = ..., owner: _Optional[str] = ...) -> None: ...

class AcquireLeaseResponse(_message.Message):
    __slots__ = ("header", "lease")
    HEADER_FIELD_NUMBER: _ClassVar[int]
    LEASE_FIELD_NUMBER: _ClassVar[int]
    header: _common_pb2.Header
    lease: Lease
    def __init__(self, header: _Optional[_Union[_common_pb2.Header, _Mapping]] = ..., lease: _Optional[_Union[Lease, _Mapping]] = ...) -> None: ...

class KeepLeaseRequest(_message.Message):
    __slots__ = ("lease_id",)
    LEASE_ID_FIELD_NUMBER: _ClassVar[int]
    lease_id: bytes
    def __init__(self, lease_id: _Optional[bytes] = ...) -> None: ...

class KeepLeaseResponse(_message.Message):
    __slots__ = ("header",)
    HEADER_FIELD_NUMBER: _ClassVar[int]
    header: _common_pb2.Header
    def __init__(self, header: _Optional[_Union[_common_pb2.Header, _Mapping]] = ...) -> None: ...

class ReleaseLeaseRequest(_message.Message):
    __slots__ = ("lease_id", "request_id")
    LEASE_ID_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    lease_id: bytes
    request_id: bytes
    def __init__(self, lease_id: _Optional[bytes] = ..., request_id: _Optional[bytes] = ...) -> None: ...

class ReleaseLeaseResponse(_message.Message):
    __slots__ = ("header", "ended")
    HEADER_FIELD_NUMBER: _ClassVar[int]
    ENDED_FIELD_NUMBER: _ClassVar[int]
    header: _common_pb2.Header
    ended: bool
    def __init__(self, header: _Optional[_Union[_common_pb2.Header, _Mapping]] = ..., ended: bool = ...) -> None: ...

class ListLeasesRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ListLeasesResponse(_message.Message):
    __slots__ = ("header", "leases")
    HEADER_FIELD_NUMBER: _ClassVar[int]
    LEASES_FIELD_NUMBER: _ClassVar[int]
    header: _common_pb2.Header
    leases: _containers.RepeatedCompositeFieldContainer[Lease]
    def __init__(self, header: _Optional[_Union[_common_pb2.Header, _Mapping]] = ..., leases: _Optional[_Iterable[_Union[Lease, _Mapping]]] = ...) -> None: ...

class CollectionStatusRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class CollectionStatusResponse(_message.Message):
    __slots__ = ("header", "safepoint", "retention_ms", "lag_ms", "holder", "removed", "pieces", "pieces_pending", "tables")
    HEADER_FIELD_NUMBER: _ClassVar[int]
    SAFEPOINT_FIELD_NUMBER: _ClassVar[int]
    RETENTION_MS_FIELD_NUMBER: _ClassVar[int]
    LAG_MS_FIELD_NUMBER: _ClassVar[int]
    HOLDER_FIELD_NUMBER: _ClassVar[int]
    REMOVED_FIELD_NUMBER: _ClassVar[int]
    PIECES_FIELD_NUMBER: _ClassVar[int]
    PIECES_PENDING_FIELD_NUMBER: _ClassVar[int]
    TABLES_FIELD_NUMBER: _ClassVar[int]
    header: _common_pb2.Header
    safepoint: _common_pb2.Timestamp
    retention_ms: int
    lag_ms: int
    holder: Lease
    removed: int
    pieces: int
    pieces_pending: int
    tables: _containers.RepeatedCompositeFieldContainer[TableSafepoint]
    def __init__(self, header: _Optional[_Union[_common_pb2.Header, _Mapping]] = ..., safepoint: _Optional[_Union[_common_pb2.Timestamp, _Mapping]] = ..., retention_ms: _Optional[int] = ..., lag_ms: _Optional[int] = ..., holder: _Optional[_Union[Lease, _Mapping]] = ..., removed: _Optional[int] = ..., pieces: _Optional[int] = ..., pieces_pending: _Optional[int] = ..., tables: _Optional[_Iterable[_Union[TableSafepoint, _Mapping]]] = ...) -> None: ...

class TableSafepoint(_message.Message):
    __slots__ = ("table", "safepoint")
    TABLE_FIELD_NUMBER: _ClassVar[int]
    SAFEPOINT_FIELD_NUMBER: _ClassVar[int]
    table: str
    safepoint: _common_pb2.Timestamp
    def __init__(self, table: _Optional[str] = ..., safepoint: _Optional[_Union[_common_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class RunCollectionRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class RunCollectionResponse(_message.Message):
    __slots__ = ("header", "removed", "pieces_pending", "done")
    HEADER_FIELD_NUMBER: _ClassVar[int]
    REMOVED_FIELD_NUMBER: _ClassVar[int]
    PIECES_PENDING_FIELD_NUMBER: _ClassVar[int]
    DONE_FIELD_NUMBER: _ClassVar[int]
    header: _common_pb2.Header
    removed: int
    pieces_pending: int
    done: bool
    def __init__(self, header: _Optional[_Union[_common_pb2.Header, _Mapping]] = ..., removed: _Optional[int] = ..., pieces_pending: _Optional[int] = ..., done: bool = ...) -> None: ...
