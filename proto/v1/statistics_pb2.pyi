from cortado.proto.v1 import common_pb2 as _common_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class MetricKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    METRIC_KIND_UNSPECIFIED: _ClassVar[MetricKind]
    METRIC_KIND_GAUGE: _ClassVar[MetricKind]
    METRIC_KIND_COUNTER: _ClassVar[MetricKind]
    METRIC_KIND_HISTOGRAM: _ClassVar[MetricKind]
METRIC_KIND_UNSPECIFIED: MetricKind
METRIC_KIND_GAUGE: MetricKind
METRIC_KIND_COUNTER: MetricKind
METRIC_KIND_HISTOGRAM: MetricKind

class ReadStatisticsRequest(_message.Message):
    __slots__ = ("names",)
    NAMES_FIELD_NUMBER: _ClassVar[int]
    names: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, names: _Optional[_Iterable[str]] = ...) -> None: ...

class ReadStatisticsResponse(_message.Message):
    __slots__ = ("header", "monotonic_seconds", "problems", "metrics")
    HEADER_FIELD_NUMBER: _ClassVar[int]
    MONOTONIC_SECONDS_FIELD_NUMBER: _ClassVar[int]
    PROBLEMS_FIELD_NUMBER: _ClassVar[int]
    METRICS_FIELD_NUMBER: _ClassVar[int]
    header: _common_pb2.Header
    monotonic_seconds: float
    problems: _containers.RepeatedCompositeFieldContainer[ReadinessProblem]
    metrics: _containers.RepeatedCompositeFieldContainer[Metric]
    def __init__(self, header: _Optional[_Union[_common_pb2.Header, _Mapping]] = ..., monotonic_seconds: _Optional[float] = ..., problems: _Optional[_Iterable[_Union[ReadinessProblem, _Mapping]]] = ..., metrics: _Optional[_Iterable[_Union[Metric, _Mapping]]] = ...) -> None: ...

class ReadinessProblem(_message.Message):
    __slots__ = ("reason", "message")
    REASON_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    reason: str
    message: str
    def __init__(self, reason: _Optional[str] = ..., message: _Optional[str] = ...) -> None: ...

class Metric(_message.Message):
    __slots__ = ("name", "kind", "label_names", "bounds", "samples")
    NAME_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    LABEL_NAMES_FIELD_NUMBER: _ClassVar[int]
    BOUNDS_FIELD_NUMBER: _ClassVar[int]
    SAMPLES_FIELD_NUMBER: _ClassVar[int]
    name: str
    kind: MetricKind
    label_names: _containers.RepeatedScalarFieldContainer[str]
    bounds: _containers.RepeatedScalarFieldContainer[float]
    samples: _containers.RepeatedCompositeFieldContainer[MetricSample]
    def __init__(self, name: _Optional[str] = ..., kind: _Optional[_Union[MetricKind, str]] = ..., label_names: _Optional[_Iterable[str]] = ..., bounds: _Optional[_Iterable[float]] = ..., samples: _Optional[_Iterable[_Union[MetricSample, _Mapping]]] = ...) -> None: ...

class MetricSample(_message.Message):
    __slots__ = ("label_values", "value", "bucket_counts", "sum")
    LABEL_VALUES_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    BUCKET_COUNTS_FIELD_NUMBER: _ClassVar[int]
    SUM_FIELD_NUMBER: _ClassVar[int]
    label_values: _containers.RepeatedScalarFieldContainer[str]
    value: float
    bucket_counts: _containers.RepeatedScalarFieldContainer[int]
    sum: float
    def __init__(self, label_values: _Optional[_Iterable[str]] = ..., value: _Optional[float] = ..., bucket_counts: _Optional[_Iterable[int]] = ..., sum: _Optional[float] = ...) -> None: ...

class ListSlowCallsRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ListSlowCallsResponse(_message.Message):
    __slots__ = ("header", "slow_request_ms", "slow_calls", "calls")
    HEADER_FIELD_NUMBER: _ClassVar[int]
    SLOW_REQUEST_MS_FIELD_NUMBER: _ClassVar[int]
    SLOW_CALLS_FIELD_NUMBER: _ClassVar[int]
    CALLS_FIELD_NUMBER: _ClassVar[int]
    header: _common_pb2.Header
    slow_request_ms: int
    slow_calls: int
    calls: _containers.RepeatedCompositeFieldContainer[SlowCall]
    def __init__(self, header: _Optional[_Union[_common_pb2.Header, _Mapping]] = ..., slow_request_ms: _Optional[int] = ..., slow_calls: _Optional[int] = ..., calls: _Optional[_Iterable[_Union[SlowCall, _Mapping]]] = ...) -> None: ...

class SlowCall(_message.Message):
    __slots__ = ("ended_ms", "method", "duration_ms", "code", "stages", "request_bytes", "reply_bytes", "about", "peer", "request_id")
    ENDED_MS_FIELD_NUMBER: _ClassVar[int]
    METHOD_FIELD_NUMBER: _ClassVar[int]
    DURATION_MS_FIELD_NUMBER: _ClassVar[int]
    CODE_FIELD_NUMBER: _ClassVar[int]
    STAGES_FIELD_NUMBER: _ClassVar[int]
    REQUEST_BYTES_FIELD_NUMBER: _ClassVar[int]
    REPLY_BYTES_FIELD_NUMBER: _ClassVar[int]
    ABOUT_FIELD_NUMBER: _ClassVar[int]
    PEER_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    ended_ms: int
    method: str
    duration_ms: float
    code: str
    stages: _containers.RepeatedCompositeFieldContainer[CallStage]
    request_bytes: int
    reply_bytes: int
    about: _containers.RepeatedCompositeFieldContainer[CallName]
    peer: str
    request_id: bytes
    def __init__(self, ended_ms: _Optional[int] = ..., method: _Optional[str] = ..., duration_ms: _Optional[float] = ..., code: _Optional[str] = ..., stages: _Optional[_Iterable[_Union[CallStage, _Mapping]]] = ..., request_bytes: _Optional[int] = ..., reply_bytes: _Optional[int] = ..., about: _Optional[_Iterable[_Union[CallName, _Mapping]]] = ..., peer: _Optional[str] = ..., request_id: _Optional[bytes] = ...) -> None: ...

class CallStage(_message.Message):
    __slots__ = ("name", "duration_ms")
    NAME_FIELD_NUMBER: _ClassVar[int]
    DURATION_MS_FIELD_NUMBER: _ClassVar[int]
    name: str
    duration_ms: float
    def __init__(self, name: _Optional[str] = ..., duration_ms: _Optional[float] = ...) -> None: ...

class CallName(_message.Message):
    __slots__ = ("kind", "name")
    KIND_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    kind: str
    name: str
    def __init__(self, kind: _Optional[str] = ..., name: _Optional[str] = ...) -> None: ...
