from cortado.proto.v1 import common_pb2 as _common_pb2
from cortado.proto.v1 import tables_pb2 as _tables_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class KvPair(_message.Message):
    __slots__ = ("key", "value", "etag", "expires_ms")
    KEY_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    ETAG_FIELD_NUMBER: _ClassVar[int]
    EXPIRES_MS_FIELD_NUMBER: _ClassVar[int]
    key: bytes
    value: bytes
    etag: str
    expires_ms: int
    def __init__(self, key: _Optional[bytes] = ..., value: _Optional[bytes] = ..., etag: _Optional[str] = ..., expires_ms: _Optional[int] = ...) -> None: ...

class KvGetRequest(_message.Message):
    __slots__ = ("namespace", "key", "at")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    AT_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    key: bytes
    at: _common_pb2.ReadAt
    def __init__(self, namespace: _Optional[str] = ..., key: _Optional[bytes] = ..., at: _Optional[_Union[_common_pb2.ReadAt, _Mapping]] = ...) -> None: ...

class KvGetResponse(_message.Message):
    __slots__ = ("header", "pair", "footprint")
    HEADER_FIELD_NUMBER: _ClassVar[int]
    PAIR_FIELD_NUMBER: _ClassVar[int]
    FOOTPRINT_FIELD_NUMBER: _ClassVar[int]
    header: _common_pb2.Header
    pair: KvPair
    footprint: bytes
    def __init__(self, header: _Optional[_Union[_common_pb2.Header, _Mapping]] = ..., pair: _Optional[_Union[KvPair, _Mapping]] = ..., footprint: _Optional[bytes] = ...) -> None: ...

class KvMultiGetRequest(_message.Message):
    __slots__ = ("namespace", "keys", "at", "may_stop_early")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    KEYS_FIELD_NUMBER: _ClassVar[int]
    AT_FIELD_NUMBER: _ClassVar[int]
    MAY_STOP_EARLY_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    keys: _containers.RepeatedScalarFieldContainer[bytes]
    at: _common_pb2.ReadAt
    may_stop_early: bool
    def __init__(self, namespace: _Optional[str] = ..., keys: _Optional[_Iterable[bytes]] = ..., at: _Optional[_Union[_common_pb2.ReadAt, _Mapping]] = ..., may_stop_early: bool = ...) -> None: ...

class KvMultiGetResponse(_message.Message):
    __slots__ = ("header", "pairs", "footprint")
    HEADER_FIELD_NUMBER: _ClassVar[int]
    PAIRS_FIELD_NUMBER: _ClassVar[int]
    FOOTPRINT_FIELD_NUMBER: _ClassVar[int]
    header: _common_pb2.Header
    pairs: _containers.RepeatedCompositeFieldContainer[KvPair]
    footprint: bytes
    def __init__(self, header: _Optional[_Union[_common_pb2.Header, _Mapping]] = ..., pairs: _Optional[_Iterable[_Union[KvPair, _Mapping]]] = ..., footprint: _Optional[bytes] = ...) -> None: ...

class KvPutRequest(_message.Message):
    __slots__ = ("namespace", "key", "value", "condition", "request_id", "expiry")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    CONDITION_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    EXPIRY_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    key: bytes
    value: bytes
    condition: _common_pb2.Condition
    request_id: bytes
    expiry: _common_pb2.Expiry
    def __init__(self, namespace: _Optional[str] = ..., key: _Optional[bytes] = ..., value: _Optional[bytes] = ..., condition: _Optional[_Union[_common_pb2.Condition, _Mapping]] = ..., request_id: _Optional[bytes] = ..., expiry: _Optional[_Union[_common_pb2.Expiry, _Mapping]] = ...) -> None: ...

class KvPutResponse(_message.Message):
    __slots__ = ("header", "etag")
    HEADER_FIELD_NUMBER: _ClassVar[int]
    ETAG_FIELD_NUMBER: _ClassVar[int]
    header: _common_pb2.Header
    etag: str
    def __init__(self, header: _Optional[_Union[_common_pb2.Header, _Mapping]] = ..., etag: _Optional[str] = ...) -> None: ...

class KvDeleteRequest(_message.Message):
    __slots__ = ("namespace", "key", "condition", "request_id")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    CONDITION_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    key: bytes
    condition: _common_pb2.Condition
    request_id: bytes
    def __init__(self, namespace: _Optional[str] = ..., key: _Optional[bytes] = ..., condition: _Optional[_Union[_common_pb2.Condition, _Mapping]] = ..., request_id: _Optional[bytes] = ...) -> None: ...

class KvDeleteResponse(_message.Message):
    __slots__ = ("header", "existed")
    HEADER_FIELD_NUMBER: _ClassVar[int]
    EXISTED_FIELD_NUMBER: _ClassVar[int]
    header: _common_pb2.Header
    existed: bool
    def __init__(self, header: _Optional[_Union[_common_pb2.Header, _Mapping]] = ..., existed: bool = ...) -> None: ...

class KvRange(_message.Message):
    __slots__ = ("start", "end", "prefix")
    START_FIELD_NUMBER: _ClassVar[int]
    END_FIELD_NUMBER: _ClassVar[int]
    PREFIX_FIELD_NUMBER: _ClassVar[int]
    start: bytes
    end: bytes
    prefix: bytes
    def __init__(self, start: _Optional[bytes] = ..., end: _Optional[bytes] = ..., prefix: _Optional[bytes] = ...) -> None: ...

class KvDeleteRangeRequest(_message.Message):
    __slots__ = ("namespace", "range", "request_id")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    RANGE_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    range: KvRange
    request_id: bytes
    def __init__(self, namespace: _Optional[str] = ..., range: _Optional[_Union[KvRange, _Mapping]] = ..., request_id: _Optional[bytes] = ...) -> None: ...

class KvDeleteRangeResponse(_message.Message):
    __slots__ = ("header", "deleted")
    HEADER_FIELD_NUMBER: _ClassVar[int]
    DELETED_FIELD_NUMBER: _ClassVar[int]
    header: _common_pb2.Header
    deleted: int
    def __init__(self, header: _Optional[_Union[_common_pb2.Header, _Mapping]] = ..., deleted: _Optional[int] = ...) -> None: ...

class KvScanRequest(_message.Message):
    __slots__ = ("namespace", "range", "reverse", "limit", "page_size", "page_token", "at", "keys_only", "packed")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    RANGE_FIELD_NUMBER: _ClassVar[int]
    REVERSE_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    AT_FIELD_NUMBER: _ClassVar[int]
    KEYS_ONLY_FIELD_NUMBER: _ClassVar[int]
    PACKED_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    range: KvRange
    reverse: bool
    limit: int
    page_size: int
    page_token: bytes
    at: _common_pb2.ReadAt
    keys_only: bool
    packed: bool
    def __init__(self, namespace: _Optional[str] = ..., range: _Optional[_Union[KvRange, _Mapping]] = ..., reverse: bool = ..., limit: _Optional[int] = ..., page_size: _Optional[int] = ..., page_token: _Optional[bytes] = ..., at: _Optional[_Union[_common_pb2.ReadAt, _Mapping]] = ..., keys_only: bool = ..., packed: bool = ...) -> None: ...

class KvScanResponse(_message.Message):
    __slots__ = ("header", "pairs", "next_page_token", "packed", "footprint")
    HEADER_FIELD_NUMBER: _ClassVar[int]
    PAIRS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    PACKED_FIELD_NUMBER: _ClassVar[int]
    FOOTPRINT_FIELD_NUMBER: _ClassVar[int]
    header: _common_pb2.Header
    pairs: _containers.RepeatedCompositeFieldContainer[KvPair]
    next_page_token: bytes
    packed: KvPackedPairs
    footprint: bytes
    def __init__(self, header: _Optional[_Union[_common_pb2.Header, _Mapping]] = ..., pairs: _Optional[_Iterable[_Union[KvPair, _Mapping]]] = ..., next_page_token: _Optional[bytes] = ..., packed: _Optional[_Union[KvPackedPairs, _Mapping]] = ..., footprint: _Optional[bytes] = ...) -> None: ...

class KvPackedPairs(_message.Message):
    __slots__ = ("keys", "key_lengths", "values", "value_lengths", "versions")
    KEYS_FIELD_NUMBER: _ClassVar[int]
    KEY_LENGTHS_FIELD_NUMBER: _ClassVar[int]
    VALUES_FIELD_NUMBER: _ClassVar[int]
    VALUE_LENGTHS_FIELD_NUMBER: _ClassVar[int]
    VERSIONS_FIELD_NUMBER: _ClassVar[int]
    keys: bytes
    key_lengths: bytes
    values: bytes
    value_lengths: bytes
    versions: bytes
    def __init__(self, keys: _Optional[bytes] = ..., key_lengths: _Optional[bytes] = ..., values: _Optional[bytes] = ..., value_lengths: _Optional[bytes] = ..., versions: _Optional[bytes] = ...) -> None: ...

class ListNamespacesRequest(_message.Message):
    __slots__ = ("page_size", "page_token", "at")
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    AT_FIELD_NUMBER: _ClassVar[int]
    page_size: int
    page_token: bytes
    at: _common_pb2.ReadAt
    def __init__(self, page_size: _Optional[int] = ..., page_token: _Optional[bytes] = ..., at: _Optional[_Union[_common_pb2.ReadAt, _Mapping]] = ...) -> None: ...

class ListNamespacesResponse(_message.Message):
    __slots__ = ("header", "namespaces", "next_page_token")
    HEADER_FIELD_NUMBER: _ClassVar[int]
    NAMESPACES_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    header: _common_pb2.Header
    namespaces: _containers.RepeatedScalarFieldContainer[str]
    next_page_token: bytes
    def __init__(self, header: _Optional[_Union[_common_pb2.Header, _Mapping]] = ..., namespaces: _Optional[_Iterable[str]] = ..., next_page_token: _Optional[bytes] = ...) -> None: ...

class DropNamespaceRequest(_message.Message):
    __slots__ = ("namespace", "request_id")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    request_id: bytes
    def __init__(self, namespace: _Optional[str] = ..., request_id: _Optional[bytes] = ...) -> None: ...

class DropNamespaceResponse(_message.Message):
    __slots__ = ("header", "dropped")
    HEADER_FIELD_NUMBER: _ClassVar[int]
    DROPPED_FIELD_NUMBER: _ClassVar[int]
    header: _common_pb2.Header
    dropped: _tables_pb2.Dropped
    def __init__(self, header: _Optional[_Union[_common_pb2.Header, _Mapping]] = ..., dropped: _Optional[_Union[_tables_pb2.Dropped, _Mapping]] = ...) -> None: ...

class UndropNamespaceRequest(_message.Message):
    __slots__ = ("namespace", "number", "request_id")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    number: int
    request_id: bytes
    def __init__(self, namespace: _Optional[str] = ..., number: _Optional[int] = ..., request_id: _Optional[bytes] = ...) -> None: ...

class UndropNamespaceResponse(_message.Message):
    __slots__ = ("header",)
    HEADER_FIELD_NUMBER: _ClassVar[int]
    header: _common_pb2.Header
    def __init__(self, header: _Optional[_Union[_common_pb2.Header, _Mapping]] = ...) -> None: ...
