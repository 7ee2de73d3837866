from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Optional as _Optional

DESCRIPTOR: _descriptor.FileDescriptor

class LogEntry(_message.Message):
    __slots__ = ("format", "after_index", "after_term", "first_timestamp", "last_timestamp", "keys", "key_lengths", "values", "value_lengths", "request_ids", "results", "result_lengths", "request_floor", "bump_epoch", "raise_ceiling", "accepted_losses", "accepted_loss_lengths", "accepted_loss_keys_right", "read_keys", "read_key_lengths", "read_versions", "read_ranges", "read_range_lengths")
    FORMAT_FIELD_NUMBER: _ClassVar[int]
    AFTER_INDEX_FIELD_NUMBER: _ClassVar[int]
    AFTER_TERM_FIELD_NUMBER: _ClassVar[int]
    FIRST_TIMESTAMP_FIELD_NUMBER: _ClassVar[int]
    LAST_TIMESTAMP_FIELD_NUMBER: _ClassVar[int]
    KEYS_FIELD_NUMBER: _ClassVar[int]
    KEY_LENGTHS_FIELD_NUMBER: _ClassVar[int]
    VALUES_FIELD_NUMBER: _ClassVar[int]
    VALUE_LENGTHS_FIELD_NUMBER: _ClassVar[int]
    REQUEST_IDS_FIELD_NUMBER: _ClassVar[int]
    RESULTS_FIELD_NUMBER: _ClassVar[int]
    RESULT_LENGTHS_FIELD_NUMBER: _ClassVar[int]
    REQUEST_FLOOR_FIELD_NUMBER: _ClassVar[int]
    BUMP_EPOCH_FIELD_NUMBER: _ClassVar[int]
    RAISE_CEILING_FIELD_NUMBER: _ClassVar[int]
    ACCEPTED_LOSSES_FIELD_NUMBER: _ClassVar[int]
    ACCEPTED_LOSS_LENGTHS_FIELD_NUMBER: _ClassVar[int]
    ACCEPTED_LOSS_KEYS_RIGHT_FIELD_NUMBER: _ClassVar[int]
    READ_KEYS_FIELD_NUMBER: _ClassVar[int]
    READ_KEY_LENGTHS_FIELD_NUMBER: _ClassVar[int]
    READ_VERSIONS_FIELD_NUMBER: _ClassVar[int]
    READ_RANGES_FIELD_NUMBER: _ClassVar[int]
    READ_RANGE_LENGTHS_FIELD_NUMBER: _ClassVar[int]
    format: int
    after_index: int
    after_term: int
    first_timestamp: bytes
    last_timestamp: bytes
    keys: bytes
    key_lengths: bytes
    values: bytes
    value_lengths: bytes
    request_ids: bytes
    results: bytes
    result_lengths: bytes
    request_floor: bytes
    bump_epoch: int
    raise_ceiling: bytes
    accepted_losses: bytes
    accepted_loss_lengths: bytes
    accepted_loss_keys_right: bytes
    read_keys: bytes
    read_key_lengths: bytes
    read_versions: bytes
    read_ranges: bytes
    read_range_lengths: bytes
    def __init__(self, format: _Optional[int] = ..., after_index: _Optional[int] = ..., after_term: _Optional[int] = ..., first_timestamp: _Optional[bytes] = ..., last_timestamp: _Optional[bytes] = ..., keys: _Optional[bytes] = ..., key_lengths: _Optional[bytes] = ..., values: _Optional[bytes] = ..., value_lengths: _Optional[bytes] = ..., request_ids: _Optional[bytes] = ..., results: _Optional[bytes] = ..., result_lengths: _Optional[bytes] = ..., request_floor: _Optional[bytes] = ..., bump_epoch: _Optional[int] = ..., raise_ceiling: _Optional[bytes] = ..., accepted_losses: _Optional[bytes] = ..., accepted_loss_lengths: _Optional[bytes] = ..., accepted_loss_keys_right: _Optional[bytes] = ..., read_keys: _Optional[bytes] = ..., read_key_lengths: _Optional[bytes] = ..., read_versions: _Optional[bytes] = ..., read_ranges: _Optional[bytes] = ..., read_range_lengths: _Optional[bytes] = ...) -> None: ...
