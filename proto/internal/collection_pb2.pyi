from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Optional as _Optional

DESCRIPTOR: _descriptor.FileDescriptor

class StoredLease(_message.Message):
    __slots__ = ("timestamp", "ttl_ms", "label", "consumer", "owner", "principal")
    TIMESTAMP_FIELD_NUMBER: _ClassVar[int]
    TTL_MS_FIELD_NUMBER: _ClassVar[int]
    LABEL_FIELD_NUMBER: _ClassVar[int]
    CONSUMER_FIELD_NUMBER: _ClassVar[int]
    OWNER_FIELD_NUMBER: _ClassVar[int]
    PRINCIPAL_FIELD_NUMBER: _ClassVar[int]
    timestamp: bytes
    ttl_ms: int
    label: str
    consumer: str
    owner: str
    principal: str
    def __init__(self, timestamp: _Optional[bytes] = ..., ttl_ms: _Optional[int] = ..., label: _Optional[str] = ..., consumer: _Optional[str] = ..., owner: _Optional[str] = ..., principal: _Optional[str] = ...) -> None: ...
