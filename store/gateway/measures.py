"""The gateway's counts of itself: plain numbers, which :mod:`cortado.store.gateway.metrics` renders as pages.

Labels are bounded: routes are the table's (never a path), statuses and causes this code's, reasons those of the errors.
"""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

from starlette.types import Message, Send

from cortado.errors import Broken, CortadoError, DeadlineExceeded, OutcomeUnknown, TryAgain
from cortado.store.observe.measures import Histogram

Cause: TypeAlias = Literal[
    "calls",
    "streams",
    "bodies",
    "connections",
    "idle connection",
    "head",
    "late head",
    "late body",
    "stalled body",
    "stalled",
    "host",
    "origin",
]
NO_ROUTE: Final = ("none", "none")

_UPSTREAM: Final = (TryAgain, OutcomeUnknown, DeadlineExceeded, Broken)


@dataclass(slots=True, eq=False)
class RouteMeasures:
    """The counts of one operation's calls."""

    statuses: Counter[int] = field(default_factory=Counter)
    durations: Histogram = field(default_factory=Histogram)
    received_bytes: int = 0
    sent_bytes: int = 0
    cut: int = 0


class Measures:
    """The counts of one gateway. ``routes`` are those that were called, by path and method as the table has them."""

    def __init__(self) -> None:
        self.routes: dict[tuple[str, str], RouteMeasures] = {}
        self.rejections: Counter[Cause] = Counter()
        self.upstream_errors: Counter[str] = Counter()

    def route(self, path: str, method: str) -> RouteMeasures:
        return self.routes.setdefault((path, method), RouteMeasures())

    def upstream(self, error: CortadoError) -> None:
        """Count a call that ended with ``error``, which the cluster or the way to it may have caused."""
        if isinstance(error, _UPSTREAM):
            self.upstream_errors[error.reason] += 1


class Answer:
    """Send an answer and count it for ``route``, which is known a little later."""

    __slots__ = ("_began_s", "_ended", "_is_stream", "_measures", "_send", "_status", "route")

    def __init__(self, measures: Measures, send: Send) -> None:
        self.route: RouteMeasures | None = None
        self._measures = measures
        self._send = send
        self._began_s = time.perf_counter()
        self._status = 0
        self._is_stream = False
        self._ended = False

    async def __call__(self, message: Message) -> None:
        await self._send(message)
        if message["type"] == "http.response.start":
            self._status = message["status"]
            return
        self._of_route().sent_bytes += len(message.get("body", b""))
        if message.get("more_body"):
            self._is_stream = True
        else:
            self._ended = True

    def count(self) -> None:
        """Count the answer, whole or cut: no more of it will be sent."""
        route = self._of_route()
        if not self._ended:
            route.cut += 1
            return
        route.statuses[self._status] += 1
        if not self._is_stream:
            route.durations.observe(time.perf_counter() - self._began_s)

    def _of_route(self) -> RouteMeasures:
        return self._measures.route(*NO_ROUTE) if self.route is None else self.route
