from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Control(_message.Message):
    __slots__ = ("bump_epoch", "raise_ceiling", "accept_loss")
    BUMP_EPOCH_FIELD_NUMBER: _ClassVar[int]
    RAISE_CEILING_FIELD_NUMBER: _ClassVar[int]
    ACCEPT_LOSS_FIELD_NUMBER: _ClassVar[int]
    bump_epoch: BumpEpoch
    raise_ceiling: RaiseCeiling
    accept_loss: AcceptLoss
    def __init__(self, bump_epoch: _Optional[_Union[BumpEpoch, _Mapping]] = ..., raise_ceiling: _Optional[_Union[RaiseCeiling, _Mapping]] = ..., accept_loss: _Optional[_Union[AcceptLoss, _Mapping]] = ...) -> None: ...

class BumpEpoch(_message.Message):
    __slots__ = ("epoch",)
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    epoch: int
    def __init__(self, epoch: _Optional[int] = ...) -> None: ...

class RaiseCeiling(_message.Message):
    __slots__ = ("timestamp",)
    TIMESTAMP_FIELD_NUMBER: _ClassVar[int]
    timestamp: bytes
    def __init__(self, timestamp: _Optional[bytes] = ...) -> None: ...

class AcceptLoss(_message.Message):
    __slots__ = ("key", "is_key_right")
    KEY_FIELD_NUMBER: _ClassVar[int]
    IS_KEY_RIGHT_FIELD_NUMBER: _ClassVar[int]
    key: bytes
    is_key_right: bool
    def __init__(self, key: _Optional[bytes] = ..., is_key_right: bool = ...) -> None: ...

class LogEntry(_message.Message):
    __slots__ = ("format", "after_index", "after_term", "first_timestamp", "last_timestamp", "keys", "key_lengths", "values", "value_lengths", "request_ids", "results", "result_lengths", "request_floor", "controls", "read_keys", "read_key_lengths", "read_versions", "read_ranges", "read_range_lengths", "read_collected", "removed", "removed_lengths", "removed_densely", "cleared", "safepoints")
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
    CONTROLS_FIELD_NUMBER: _ClassVar[int]
    READ_KEYS_FIELD_NUMBER: _ClassVar[int]
    READ_KEY_LENGTHS_FIELD_NUMBER: _ClassVar[int]
    READ_VERSIONS_FIELD_NUMBER: _ClassVar[int]
    READ_RANGES_FIELD_NUMBER: _ClassVar[int]
    READ_RANGE_LENGTHS_FIELD_NUMBER: _ClassVar[int]
    READ_COLLECTED_FIELD_NUMBER: _ClassVar[int]
    REMOVED_FIELD_NUMBER: _ClassVar[int]
    REMOVED_LENGTHS_FIELD_NUMBER: _ClassVar[int]
    REMOVED_DENSELY_FIELD_NUMBER: _ClassVar[int]
    CLEARED_FIELD_NUMBER: _ClassVar[int]
    SAFEPOINTS_FIELD_NUMBER: _ClassVar[int]
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
    controls: _containers.RepeatedCompositeFieldContainer[Control]
    read_keys: bytes
    read_key_lengths: bytes
    read_versions: bytes
    read_ranges: bytes
    read_range_lengths: bytes
    read_collected: bytes
    removed: bytes
    removed_lengths: bytes
    removed_densely: bool
    cleared: _containers.RepeatedCompositeFieldContainer[Cleared]
    safepoints: bytes
    def __init__(self, format: _Optional[int] = ..., after_index: _Optional[int] = ..., after_term: _Optional[int] = ..., first_timestamp: _Optional[bytes] = ..., last_timestamp: _Optional[bytes] = ..., keys: _Optional[bytes] = ..., key_lengths: _Optional[bytes] = ..., values: _Optional[bytes] = ..., value_lengths: _Optional[bytes] = ..., request_ids: _Optional[bytes] = ..., results: _Optional[bytes] = ..., result_lengths: _Optional[bytes] = ..., request_floor: _Optional[bytes] = ..., controls: _Optional[_Iterable[_Union[Control, _Mapping]]] = ..., read_keys: _Optional[bytes] = ..., read_key_lengths: _Optional[bytes] = ..., read_versions: _Optional[bytes] = ..., read_ranges: _Optional[bytes] = ..., read_range_lengths: _Optional[bytes] = ..., read_collected: _Optional[bytes] = ..., removed: _Optional[bytes] = ..., removed_lengths: _Optional[bytes] = ..., removed_densely: bool = ..., cleared: _Optional[_Iterable[_Union[Cleared, _Mapping]]] = ..., safepoints: _Optional[bytes] = ...) -> None: ...

class Cleared(_message.Message):
    __slots__ = ("start", "end", "items_max")
    START_FIELD_NUMBER: _ClassVar[int]
    END_FIELD_NUMBER: _ClassVar[int]
    ITEMS_MAX_FIELD_NUMBER: _ClassVar[int]
    start: bytes
    end: bytes
    items_max: int
    def __init__(self, start: _Optional[bytes] = ..., end: _Optional[bytes] = ..., items_max: _Optional[int] = ...) -> None: ...
