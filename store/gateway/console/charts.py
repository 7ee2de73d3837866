"""Samples as lines of a chart: numbers become places in a drawing of fixed size, which a template writes as SVG.

::

    most ┌──────────────────────────────┐
         │          ╭─╮        ╭────────│ n1  12.0
         │ ─────────╯ ╰── gap ─╯        │ n2   0.5
       0 └──────────────────────────────┘
       10 min ago                      now
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from cortado.store.gateway.console import texts
from cortado.store.gateway.console.samples import EVERY_S, KEPT, Sample, Samples

WIDTH: Final = 320
HEIGHT: Final = 80
SPAN_S: Final = EVERY_S * KEPT
_GAP_S: Final = 2.5 * EVERY_S
"""Samples that lie further apart have nothing between them that is known."""


@dataclass(frozen=True, slots=True)
class Line:
    """One node's. ``paths`` are its unbroken pieces, each the ``points`` of a polyline; ``last`` is its newest value as
    text, a dash if it is not known."""

    node: str
    paths: tuple[str, ...]
    last: str


@dataclass(frozen=True, slots=True)
class Chart:
    """``most`` is the text of its upper edge; the lower one is 0."""

    title: str
    most: str
    lines: tuple[Line, ...]

    @property
    def said(self) -> str:
        """For those who do not see it."""
        newest = ", ".join(f"{line.node} {line.last}" for line in self.lines)
        return f"{self.title} in the last ten minutes, at most {self.most}; now {newest}"


@dataclass(frozen=True, slots=True)
class _Measure:
    """``edge`` gives the upper edge of a chart from its largest value."""

    title: str
    value: Callable[[Sample], float | None]
    text: Callable[[float], str]
    edge: Callable[[float], float]


def _decimal_edge(most: float) -> float:
    """Return the next of 1, 2 and 5 times a power of ten."""
    power = 10.0 ** math.floor(math.log10(most))
    return next(each * power for each in (1, 2, 5, 10) if each * power >= most * (1 - 1e-9))


def _binary_edge(most: float) -> float:
    """Return the next power of two, as sizes are written."""
    return 2.0 ** math.ceil(math.log2(most))


_MEASURES: Final = (
    _Measure("Calls per second", lambda each: each.calls_per_s, texts.rate, _decimal_edge),
    _Measure("Latency, p99", lambda each: each.p99_s, texts.seconds, _decimal_edge),
    _Measure("Behind the leader", lambda each: each.lag_s, texts.seconds, _decimal_edge),
    _Measure("Data", lambda each: each.data_bytes, texts.size, _binary_edge),
)


def charts_of(samples: Samples, nodes: Sequence[str]) -> list[Chart]:
    """Return a chart for each measure, with a line for each of the ``nodes``; none before there are two samples."""
    times = [each.at_s for node in nodes for each in samples.of(node)]
    if len(set(times)) < 2:
        return []
    return [_chart(each, samples, nodes, max(times)) for each in _MEASURES]


def _chart(measure: _Measure, samples: Samples, nodes: Sequence[str], now_s: float) -> Chart:
    values = {node: [(each.at_s - now_s, measure.value(each)) for each in samples.of(node)] for node in nodes}
    largest = max((found for line in values.values() for _, found in line if found is not None), default=0.0)
    most = measure.edge(largest) if largest > 0 else 1.0
    lines = []
    for node, line in values.items():
        last = line[-1][1] if line else None
        lines.append(Line(node, tuple(_paths(line, most)), "-" if last is None else measure.text(last)))
    return Chart(measure.title, measure.text(most), tuple(lines))


def _paths(line: Sequence[tuple[float, float | None]], most: float) -> Iterator[str]:
    points: list[str] = []
    before_s = -math.inf
    for at_s, found in line:
        if points and (found is None or at_s - before_s > _GAP_S):
            yield _polyline(points)
            points = []
        if found is not None and at_s >= -SPAN_S:
            x, y = WIDTH * (1 + at_s / SPAN_S), HEIGHT * (1 - min(found / most, 1.0))
            points.append(f"{x:.1f},{y:.1f}")
            before_s = at_s
    if points:
        yield _polyline(points)


def _polyline(points: Sequence[str]) -> str:
    # A single point has no length: a line to itself shows as a dot.
    return " ".join(points if len(points) > 1 else (points[0], points[0]))
