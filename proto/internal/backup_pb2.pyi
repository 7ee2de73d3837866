from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Optional as _Optional

DESCRIPTOR: _descriptor.FileDescriptor

class StoredRestore(_message.Message):
    __slots__ = ("restore_id", "timestamp", "readable_from", "parts", "parts_done", "is_abandoned")
    RESTORE_ID_FIELD_NUMBER: _ClassVar[int]
    TIMESTAMP_FIELD_NUMBER: _ClassVar[int]
    READABLE_FROM_FIELD_NUMBER: _ClassVar[int]
    PARTS_FIELD_NUMBER: _ClassVar[int]
    PARTS_DONE_FIELD_NUMBER: _ClassVar[int]
    IS_ABANDONED_FIELD_NUMBER: _ClassVar[int]
    restore_id: str
    timestamp: bytes
    readable_from: bytes
    parts: int
    parts_done: bytes
    is_abandoned: bool
    def __init__(self, restore_id: _Optional[str] = ..., timestamp: _Optional[bytes] = ..., readable_from: _Optional[bytes] = ..., parts: _Optional[int] = ..., parts_done: _Optional[bytes] = ..., is_abandoned: bool = ...) -> None: ...
