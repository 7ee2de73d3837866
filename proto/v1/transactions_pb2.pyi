from cortado.proto.v1 import common_pb2 as _common_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Isolation(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    ISOLATION_SNAPSHOT: _ClassVar[Isolation]
    ISOLATION_SERIALIZABLE: _ClassVar[Isolation]
ISOLATION_SNAPSHOT: Isolation
ISOLATION_SERIALIZABLE: Isolation

class CommitRequest(_message.Message):
    __slots__ = ("start", "isolation", "operations", "footprints", "request_id")
    START_FIELD_NUMBER: _ClassVar[int]
    ISOLATION_FIELD_NUMBER: _ClassVar[int]
    OPERATIONS_FIELD_NUMBER: _ClassVar[int]
    FOOTPRINTS_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    start: _common_pb2.Timestamp
    isolation: Isolation
    operations: _containers.RepeatedCompositeFieldContainer[_common_pb2.Operation]
    footprints: _containers.RepeatedScalarFieldContainer[bytes]
    request_id: bytes
    def __init__(self, start: _Optional[_Union[_common_pb2.Timestamp, _Mapping]] = ..., isolation: _Optional[_Union[Isolation, str]] = ..., operations: _Optional[_Iterable[_Union[_common_pb2.Operation, _Mapping]]] = ..., footprints: _Optional[_Iterable[bytes]] = ..., request_id: _Optional[bytes] = ...) -> None: ...

class CommitResponse(_message.Message):
    __slots__ = ("header", "etag", "sums")
    HEADER_FIELD_NUMBER: _ClassVar[int]
    ETAG_FIELD_NUMBER: _ClassVar[int]
    SUMS_FIELD_NUMBER: _ClassVar[int]
    header: _common_pb2.Header
    etag: str
    sums: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, header: _Optional[_Union[_common_pb2.Header, _Mapping]] = ..., etag: _Optional[str] = ..., sums: _Optional[_Iterable[int]] = ...) -> None: ...

class SettleRequest(_message.Message):
    __slots__ = ("request_id",)
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    request_id: bytes
    def __init__(self, request_id: _Optional[bytes] = ...) -> None: ...

class SettleResponse(_message.Message):
    __slots__ = ("header", "happened", "timestamp", "reply")
    HEADER_FIELD_NUMBER: _ClassVar[int]
    HAPPENED_FIELD_NUMBER: _ClassVar[int]
    TIMESTAMP_FIELD_NUMBER: _ClassVar[int]
    REPLY_FIELD_NUMBER: _ClassVar[int]
    header: _common_pb2.Header
    happened: bool
    timestamp: _common_pb2.Timestamp
    reply: bytes
    def __init__(self, header: _Optional[_Union[_common_pb2.Header, _Mapping]] = ..., happened: bool = ..., timestamp: _Optional[_Union[_common_pb2.Timestamp, _Mapping]] = ..., reply: _Optional[bytes] = ...) -> None: ...
