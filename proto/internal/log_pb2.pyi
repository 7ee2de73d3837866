from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class LogEntry(_message.Message):
    __slots__ = ("format", "after_index", "after_term", "commands")
    FORMAT_FIELD_NUMBER: _ClassVar[int]
    AFTER_INDEX_FIELD_NUMBER: _ClassVar[int]
    AFTER_TERM_FIELD_NUMBER: _ClassVar[int]
    COMMANDS_FIELD_NUMBER: _ClassVar[int]
    format: int
    after_index: int
    after_term: int
    commands: _containers.RepeatedCompositeFieldContainer[Command]
    def __init__(self, format: _Optional[int] = ..., after_index: _Optional[int] = ..., after_term: _Optional[int] = ..., commands: _Optional[_Iterable[_Union[Command, _Mapping]]] = ...) -> None: ...

class Command(_message.Message):
    __slots__ = ("timestamp", "keys", "key_lengths", "payloads", "payload_lengths", "request_id", "request_hash", "reply", "bump_epoch", "raise_ceiling")
    TIMESTAMP_FIELD_NUMBER: _ClassVar[int]
    KEYS_FIELD_NUMBER: _ClassVar[int]
    KEY_LENGTHS_FIELD_NUMBER: _ClassVar[int]
    PAYLOADS_FIELD_NUMBER: _ClassVar[int]
    PAYLOAD_LENGTHS_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    REQUEST_HASH_FIELD_NUMBER: _ClassVar[int]
    REPLY_FIELD_NUMBER: _ClassVar[int]
    BUMP_EPOCH_FIELD_NUMBER: _ClassVar[int]
    RAISE_CEILING_FIELD_NUMBER: _ClassVar[int]
    timestamp: bytes
    keys: bytes
    key_lengths: bytes
    payloads: bytes
    payload_lengths: bytes
    request_id: bytes
    request_hash: bytes
    reply: bytes
    bump_epoch: int
    raise_ceiling: bytes
    def __init__(self, timestamp: _Optional[bytes] = ..., keys: _Optional[bytes] = ..., key_lengths: _Optional[bytes] = ..., payloads: _Optional[bytes] = ..., payload_lengths: _Optional[bytes] = ..., request_id: _Optional[bytes] = ..., request_hash: _Optional[bytes] = ..., reply: _Optional[bytes] = ..., bump_epoch: _Optional[int] = ..., raise_ceiling: _Optional[bytes] = ...) -> None: ...
