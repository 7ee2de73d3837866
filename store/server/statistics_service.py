"""``cortado.v1.Statistics``: the node's metrics, over the port and with the certificates of everything else."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from google.protobuf.message import Message

from cortado.proto.v1 import statistics_pb2
from cortado.store.node.host import Host
from cortado.store.observe.collecting import Family
from cortado.store.observe.definitions import Kind
from cortado.store.observe.measures import Histogram
from cortado.store.observe.readiness import Problem
from cortado.store.server.service import Service

_KINDS: Final = {
    Kind.GAUGE: statistics_pb2.METRIC_KIND_GAUGE,
    Kind.COUNTER: statistics_pb2.METRIC_KIND_COUNTER,
    Kind.HISTOGRAM: statistics_pb2.METRIC_KIND_HISTOGRAM,
}


class StatisticsService(Service):
    """``collect`` gives all metrics now, ``problems`` why the node can't serve."""

    def __init__(
        self, host: Host, *, collect: Callable[[], Sequence[Family]], problems: Callable[[], Sequence[Problem]]
    ) -> None:
        super().__init__(host)
        self._collect = collect
        self._problems = problems

    async def read_statistics(self, request: statistics_pb2.ReadStatisticsRequest) -> Message:
        wanted = frozenset(request.names)
        return statistics_pb2.ReadStatisticsResponse(
            header=self.header(self.host.meta.read_ts()),
            monotonic_seconds=self.host.monotonic_ms() / 1000,
            problems=[
                statistics_pb2.ReadinessProblem(reason=each.reason.value, message=each.message)
                for each in self._problems()
            ],
            metrics=[
                metric_message(each) for each in self._collect() if not wanted or each.definition.full_name in wanted
            ],
        )


def metric_message(family: Family) -> statistics_pb2.Metric:
    """A metric as a message."""
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
