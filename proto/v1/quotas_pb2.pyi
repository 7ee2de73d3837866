from cortado.proto.v1 import common_pb2 as _common_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Quota(_message.Message):
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

class QuotaState(_message.Message):
    __slots__ = ("quota", "used_bytes", "refused")
    QUOTA_FIELD_NUMBER: _ClassVar[int]
    USED_BYTES_FIELD_NUMBER: _ClassVar[int]
    REFUSED_FIELD_NUMBER: _ClassVar[int]
    quota: Quota
    used_bytes: int
    refused: int
    def __init__(self, quota: _Optional[_Union[Quota, _Mapping]] = ..., used_bytes: _Optional[int] = ..., refused: _Optional[int] = ...) -> None: ...

class SetQuotaRequest(_message.Message):
    __slots__ = ("target", "calls_per_second", "bytes_per_second", "stored_bytes", "request_id")
    TARGET_FIELD_NUMBER: _ClassVar[int]
    CALLS_PER_SECOND_FIELD_NUMBER: _ClassVar[int]
    BYTES_PER_SECOND_FIELD_NUMBER: _ClassVar[int]
    STORED_BYTES_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    target: str
    calls_per_second: int
    bytes_per_second: int
    stored_bytes: int
    request_id: bytes
    def __init__(self, target: _Optional[str] = ..., calls_per_second: _Optional[int] = ..., bytes_per_second: _Optional[int] = ..., stored_bytes: _Optional[int] = ..., request_id: _Optional[bytes] = ...) -> None: ...

class SetQuotaResponse(_message.Message):
    __slots__ = ("header",)
    HEADER_FIELD_NUMBER: _ClassVar[int]
    header: _common_pb2.Header
    def __init__(self, header: _Optional[_Union[_common_pb2.Header, _Mapping]] = ...) -> None: ...

class RemoveQuotaRequest(_message.Message):
    __slots__ = ("target", "request_id")
    TARGET_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    target: str
    request_id: bytes
    def __init__(self, target: _Optional[str] = ..., request_id: _Optional[bytes] = ...) -> None: ...

class RemoveQuotaResponse(_message.Message):
    __slots__ = ("header",)
    HEADER_FIELD_NUMBER: _ClassVar[int]
    header: _common_pb2.Header
    def __init__(self, header: _Optional[_Union[_common_pb2.Header, _Mapping]] = ...) -> None: ...

class GetQuotaRequest(_message.Message):
    __slots__ = ("target",)
    TARGET_FIELD_NUMBER: _ClassVar[int]
    target: str
    def __init__(self, target: _Optional[str] = ...) -> None: ...

class GetQuotaResponse(_message.Message):
    __slots__ = ("header", "quota")
    HEADER_FIELD_NUMBER: _ClassVar[int]
    QUOTA_FIELD_NUMBER: _ClassVar[int]
    header: _common_pb2.Header
    quota: QuotaState
    def __init__(self, header: _Optional[_Union[_common_pb2.Header, _Mapping]] = ..., quota: _Optional[_Union[QuotaState, _Mapping]] = ...) -> None: ...

class ListQuotasRequest(_message.Message):
    __slots__ = ("page_size", "page_token")
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    page_size: int
    page_token: bytes
    def __init__(self, page_size: _Optional[int] = ..., page_token: _Optional[bytes] = ...) -> None: ...

class ListQuotasResponse(_message.Message):
    __slots__ = ("header", "quotas", "next_page_token")
    HEADER_FIELD_NUMBER: _ClassVar[int]
    QUOTAS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    header: _common_pb2.Header
    quotas: _containers.RepeatedCompositeFieldContainer[QuotaState]
    next_page_token: bytes
    def __init__(self, header: _Optional[_Union[_common_pb2.Header, _Mapping]] = ..., quotas: _Optional[_Iterable[_Union[QuotaState, _Mapping]]] = ..., next_page_token: _Optional[bytes] = ...) -> None: ...
