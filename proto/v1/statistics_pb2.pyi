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
