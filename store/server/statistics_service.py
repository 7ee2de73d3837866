"""``cortado.v1.Statistics``: the node's metrics and its slow calls, over the port for clients."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from google.protobuf.message import Message

from cortado.proto.v1 import statistics_pb2
from cortado.store.host.host import Host
from cortado.store.observe.definitions import Kind
from cortado.store.observe.families import Family
from cortado.store.observe.measures import Histogram
from cortado.store.observe.slow import SlowCall
from cortado.store.server.service import Service

if TYPE_CHECKING:
    from cortado.store.server.observing import Observing

_KINDS: Final = {
    Kind.GAUGE: statistics_pb2.METRIC_KIND_GAUGE,
    Kind.COUNTER: statistics_pb2.METRIC_KIND_COUNTER,
    Kind.HISTOGRAM: statistics_pb2.METRIC_KIND_HISTOGRAM,
}


class StatisticsService(Service):
    """Returns the counts of ``observing``, and ``slow_request_ms`` of its settings."""

    def __init__(self, host: Host, observing: Observing, slow_request_ms: int) -> None:
        super().__init__(host)
        self._observing = observing
        self._slow_request_ms = slow_request_ms

    async def read_statistics(self, request: statistics_pb2.ReadStatisticsRequest) -> Message:
        wanted = frozenset(request.names)
        return statistics_pb2.ReadStatisticsResponse(
            header=self.header(self.host.meta.read_ts()),
            monotonic_seconds=self.host.process.monotonic_ms() / 1000,
            problems=[
                statistics_pb2.ReadinessProblem(reason=each.reason.value, message=each.message)
                for each in self._observing.readiness.problems()
            ],
            metrics=[
                metric_message(each)
                for each in self._observing.collect()
                if not wanted or each.definition.full_name in wanted
            ],
        )

    async def list_slow_calls(self, _request: statistics_pb2.ListSlowCallsRequest) -> Message:
        return statistics_pb2.ListSlowCallsResponse(
            header=self.header(self.host.meta.read_ts()),
            slow_request_ms=self._slow_request_ms,
            slow_calls=self._observing.requests.slow_calls,
            calls=[_slow_call_message(each) for each in self._observing.slow_calls()],
        )


def _slow_call_message(slow: SlowCall) -> statistics_pb2.SlowCall:
    return statistics_pb2.SlowCall(
        ended_ms=slow.ended_ms,
        method=slow.method,
        duration_ms=slow.duration_ms,
        code=slow.code,
        stages=[statistics_pb2.CallStage(name=name, duration_ms=ms) for name, ms in slow.split_ms],
        request_bytes=slow.request_bytes,
        reply_bytes=slow.reply_bytes,
        about=[statistics_pb2.CallName(kind=kind, name=name) for kind, name in slow.about],
        peer=slow.peer,
        request_id=slow.request_id,
    )


def metric_message(family: Family) -> statistics_pb2.Metric:
    """Return a metric as a message."""
    definition = family.definition
    metric = statistics_pb2.Metric(
        name=definition.full_name, kind=_KINDS[definition.kind], label_names=definition.labels
    )
    for labels, value in family.samples:
        if isinstance(value, Histogram):
            metric.bounds[:] = value.bounds
            metric.samples.add(label_values=labels, bucket_counts=value.counts, sum=value.sum)
        else:
            metric.samples.add(label_values=labels, value=float(value))
    return metric
