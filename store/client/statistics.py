"""One node's counts and measures, asked of that node alone: ``cortado.v1.Statistics``.

::

    with NodeStatistics("127.0.0.1:7621") as node:
        before = node.read()
        ...
        after = node.read()
        after.value("cortado_rounds_total") - before.value("cortado_rounds_total")
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from cortado.proto.v1 import statistics_pb2
from cortado.store.client.node import NodeConnection
from cortado.store.observe.measures import quantile

# Two starts of a process lie further apart, and two readings of one differ by less.
_SAME_START_S: Final = 0.5


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
        """Return one sample; 0 if the node has none."""
        return self.values.get(name, {}).get(labels, 0.0)

    def by_label(self, name: str) -> Mapping[tuple[str, ...], float]:
        """Return all samples of a metric."""
        return self.values.get(name, {})

    @property
    def started_s(self) -> float:
        return self.monotonic_s - self.value("cortado_uptime_seconds")


class Since:
    """The changes between two readings of one process."""

    def __init__(self, now: Statistics, before: Statistics | None) -> None:
        if before is not None and abs(now.started_s - before.started_s) > _SAME_START_S:
            before = None
        self._now = now
        self._before = before
        self._seconds = now.monotonic_s - before.monotonic_s if before is not None else 0.0

    def rate(self, name: str, of: Iterable[tuple[str, ...]] | None = None) -> float | None:
        """Return the growth of a counter's samples per second, for those with the labels ``of``, or for all."""
        if self._before is None or self._seconds <= 0:
            return None
        chosen = self._now.by_label(name).keys() if of is None else of
        grown = sum(self._now.value(name, *labels) - self._before.value(name, *labels) for labels in chosen)
        return max(grown, 0.0) / self._seconds

    def percent(self, name: str) -> float | None:
        """Return the percentage of the time that a counter of seconds ran."""
        rate = self.rate(name)
        return None if rate is None else 100 * rate

    def calls_per_s(self, methods: Sequence[str]) -> float | None:
        """Return how many unary calls of these methods ended a second."""
        chosen = [labels for labels in self._now.by_label("cortado_requests_total") if labels[0] in methods]
        return self.rate("cortado_requests_total", chosen)

    def latency(self, q: float, methods: Sequence[str]) -> float | None:
        """Return a quantile of how long they took, in seconds."""
        return self.quantile("cortado_request_duration_seconds", q, [(method,) for method in methods])

    def quantile(self, name: str, q: float, of: Sequence[tuple[str, ...]] = ((),)) -> float | None:
        """Return a quantile of a histogram's samples that came between the readings, with the labels ``of`` merged."""
        if self._before is None:
            return None
        now, before = self._now.histograms.get(name, {}), self._before.histograms.get(name, {})
        grown = [_grown(now[labels], before.get(labels)) for labels in of if labels in now]
        if not grown:
            return None
        bounds = next(iter(now.values())).bounds
        return quantile(bounds, [sum(counts) for counts in zip(*grown, strict=True)], q)


def _grown(now: HistogramValue, before: HistogramValue | None) -> list[int]:
    if before is None or len(before.counts) != len(now.counts):
        return list(now.counts)
    return [max(new - old, 0) for new, old in zip(now.counts, before.counts, strict=True)]


class NodeStatistics(NodeConnection):
    """A connection to one node, for its counts."""

    def read(self, names: Sequence[str] = ()) -> Statistics:
        """Return all metrics, or those of ``names``. Raises Unavailable, DeadlineExceeded, Unsupported."""
        request = statistics_pb2.ReadStatisticsRequest(names=names)
        return statistics_of(self.ask("Statistics/ReadStatistics", request, statistics_pb2.ReadStatisticsResponse))

    def slow_calls(self) -> SlowCalls:
        """Return the last slow calls. Raises Unavailable, DeadlineExceeded, Unsupported."""
        request = statistics_pb2.ListSlowCallsRequest()
        return slow_calls_of(self.ask("Statistics/ListSlowCalls", request, statistics_pb2.ListSlowCallsResponse))


def statistics_of(reply: statistics_pb2.ReadStatisticsResponse) -> Statistics:
    """Return a reply as a value."""
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


@dataclass(frozen=True, slots=True)
class SlowCall:
    """A call that took longer than its node's ``slow-request-ms``. ``ended_ms`` is the node's wall clock; ``stages``
    split its time, in milliseconds; ``about`` are names that stood in its request, by their kinds."""

    ended_ms: int
    method: str
    duration_ms: float
    code: str
    stages: Mapping[str, float]
    request_bytes: int
    reply_bytes: int
    about: Mapping[str, str]
    peer: str
    request_id: bytes


@dataclass(frozen=True, slots=True)
class SlowCalls:
    """The last slow calls of a node, the newest first; ``slow_calls`` counts all since it was started. If
    ``slow_request_ms`` is 0, calls are not checked."""

    node_id: str
    slow_request_ms: int
    slow_calls: int
    calls: tuple[SlowCall, ...]


def slow_calls_of(reply: statistics_pb2.ListSlowCallsResponse) -> SlowCalls:
    """Return a reply as a value."""
    calls = tuple(
        SlowCall(
            each.ended_ms,
            each.method,
            each.duration_ms,
            each.code,
            {stage.name: stage.duration_ms for stage in each.stages},
            each.request_bytes,
            each.reply_bytes,
            {named.kind: named.name for named in each.about},
            each.peer,
            each.request_id,
        )
        for each in reply.calls
    )
    return SlowCalls(reply.header.node_id, reply.slow_request_ms, reply.slow_calls, calls)
