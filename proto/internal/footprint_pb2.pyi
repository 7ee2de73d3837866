from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Optional as _Optional

DESCRIPTOR: _descriptor.FileDescriptor

class Footprint(_message.Message):
    __slots__ = ("format", "keys", "key_lengths", "bounds", "bound_lengths", "tables", "table_lengths")
    FORMAT_FIELD_NUMBER: _ClassVar[int]
    KEYS_FIELD_NUMBER: _ClassVar[int]
    KEY_LENGTHS_FIELD_NUMBER: _ClassVar[int]
    BOUNDS_FIELD_NUMBER: _ClassVar[int]
    BOUND_LENGTHS_FIELD_NUMBER: _ClassVar[int]
    TABLES_FIELD_NUMBER: _ClassVar[int]
    TABLE_LENGTHS_FIELD_NUMBER: _ClassVar[int]
    format: int
    keys: bytes
    key_lengths: bytes
    bounds: bytes
    bound_lengths: bytes
    tables: bytes
    table_lengths: bytes
    def __init__(self, format: _Optional[int] = ..., keys: _Optional[bytes] = ..., key_lengths: _Optional[bytes] = ..., bounds: _Optional[bytes] = ..., bound_lengths: _Optional[bytes] = ..., tables: _Optional[bytes] = ..., table_lengths: _Optional[bytes] = ...) -> None: ...
