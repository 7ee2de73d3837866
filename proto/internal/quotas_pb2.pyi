from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class StoredQuota(_message.Message):
    __slots__ = ("target", "calls_per_second", "bytes_per_second", "stored_bytes")
    TARGET_FIELD_NUMBER: _ClassVar[int]
    CALLS_PER_SECOND_FIELD_NUMBER: _ClassVar[int]
    BYTES_PER_SECOND_FIELD_NUMBER: _ClassVar[int]
    STORED_BYTES_FIELD_NUMBER: _ClassVar[int]
    target: str
    calls_per_second: int
    bytes_per_second: int
    stored_bytes: int
    def __init__(self, target: _Optional[str] = ..., calls_per_second: _Optional[int] = ..., bytes_per_second: _Optional[int] = ..., stored_bytes: _Optional[int] = ...) -> None: ...

class StoredQuotas(_message.Message):
    __slots__ = ("quotas",)
    QUOTAS_FIELD_NUMBER: _ClassVar[int]
    quotas: _containers.RepeatedCompositeFieldContainer[StoredQuota]
    def __init__(self, quotas: _Optional[_Iterable[_Union[StoredQuota, _Mapping]]] = ...) -> None: ...
