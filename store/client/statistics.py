"""What one node counts and measures, asked of that node alone: ``cortado.v1.Statistics``.

::

    with NodeStatistics("127.0.0.1:7621") as node:
        before = node.read()
        ...
        after = node.read()
        after.value("cortado_rounds_total") - before.value("cortado_rounds_total")
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cortado.proto.v1 import statistics_pb2
from cortado.store.client.node import NodeConnection


@dataclass(frozen=True, slots=True)
class HistogramValue:
    """How often a value fell into each bucket; ``counts`` has one more than ``bounds``, for those above the last."""

    bounds: tuple[float, ...]
    counts: tuple[int, ...]
    sum: float


@dataclass(frozen=True, slots=True)
class Statistics:
    """One answer. ``values`` and ``histograms`` are by the metric's name, then by the values of its labels.

    ``monotonic_s`` is of the node's clock, for rates between two answers of one process, which ``started_s`` names.
    ``problems`` are (reason, message): why the node can't serve.
    """

    cluster_id: str
    node_id: str
    monotonic_s: float
    problems: tuple[tuple[str, str], ...]
    values: Mapping[str, Mapping[tuple[str, ...], float]]
    histograms: Mapping[str, Mapping[tuple[str, ...], HistogramValue]]

    def value(self, name: str, *labels: str) -> float:
        """One sample; 0 where the node has none."""
        return self.values.get(name, {}).get(labels, 0.0)

    def by_label(self, name: str) -> Mapping[tuple[str, ...], float]:
        """All samples of a metric."""
        return self.values.get(name, {})

    @property
    def started_s(self) -> float:
        return self.monotonic_s - self.value("cortado_uptime_seconds")


class NodeStatistics(NodeConnection):
    """A connection to one node, for what it counts."""

    def read(self, names: Sequence[str] = ()) -> Statistics:
        """All metrics, or those of ``names``. Raises Unavailable, DeadlineExceeded, Unsupported."""
        request = statistics_pb2.ReadStatisticsRequest(names=names)
        return _statistics(self.ask("Statistics/ReadStatistics", request, statistics_pb2.ReadStatisticsResponse))


def _statistics(reply: statistics_pb2.ReadStatisticsResponse) -> Statistics:
    values: dict[str, dict[tuple[str, ...], float]] = {}
    histograms: dict[str, dict[tuple[str, ...], HistogramValue]] = {}
    for metric in reply.metrics:
        if metric.kind == statistics_pb2.METRIC_KIND_HISTOGRAM:
            bounds = tuple(metric.bounds)
            histograms[metric.name] = {
                tuple(each.label_values): HistogramValue(bounds, tuple(each.bucket_counts), each.sum)
                for each in metric.samples
            }
        else:
            values[metric.name] = {tuple(each.label_values): each.value for each in metric.samples}
    return Statistics(
        cluster_id=reply.header.cluster_id,
        node_id=reply.header.node_id,
        monotonic_s=reply.monotonic_seconds,
        problems=tuple((each.reason, each.message) for each in reply.problems),
        values=values,
        histograms=histograms,
    )
