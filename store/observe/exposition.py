"""The samples in the formats that Prometheus reads: its text, or OpenMetrics if a scraper asks for that."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import accumulate

from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector
from prometheus_client.utils import floatToGoString

from cortado.store.observe.definitions import Kind
from cortado.store.observe.families import Family
from cortado.store.observe.measures import Histogram


class _Collected(Collector):
    """Prometheus' own encoders want something to collect from."""

    def __init__(self, families: Iterable[Family]) -> None:
        self._families = families

    def collect(self) -> Iterator[Metric]:
        return map(_metric, self._families)


def expose(families: Iterable[Family], accept: str = "") -> tuple[bytes, str]:
    """Return the body and its content type, for a scraper that accepts what ``accept`` (the header) says."""
    encode, content_type = choose_encoder(accept)
    return encode(_Collected(families)), content_type


def _metric(family: Family) -> Metric:
    definition = family.definition
    name, meaning, labels = definition.full_name, definition.meaning, definition.labels
    if definition.kind is Kind.HISTOGRAM:
        histograms = HistogramMetricFamily(name, meaning, labels=labels)
        for sample in family.samples:
            assert isinstance(sample.value, Histogram)
            histograms.add_metric(sample.labels, _buckets(sample.value), sample.value.sum)
        return histograms
    made = CounterMetricFamily if definition.kind is Kind.COUNTER else GaugeMetricFamily
    numbers = made(name, meaning, labels=labels)
    for sample in family.samples:
        assert not isinstance(sample.value, Histogram)
        numbers.add_metric(sample.labels, float(sample.value))
    return numbers


def _buckets(histogram: Histogram) -> list[tuple[str, float]]:
    """Prometheus counts each bucket with all below it."""
    bounds = [*map(floatToGoString, histogram.bounds), "+Inf"]
    return list(zip(bounds, map(float, accumulate(histogram.counts)), strict=True))
