"""How much the gateway takes on: the calls, the streams and the bytes of bodies at a time, and how long each may take.

What is over a bound is refused at once, with a delay to wait, so that what is running ends in its time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from cortado.errors import ResourceExhausted

RETRY_MS: Final = 1_000
HEADERS_MAX: Final = 100
HEAD_BYTES_MAX: Final = 32 << 10
"""Of the request line and all headers."""


@dataclass(frozen=True, slots=True)
class GatewayLimits:
    """- ``connections_max``: connections at a time; one more is answered 429, and closed.
    - ``calls_max``: calls at a time, streams among them, and ``streams_max``: streams of rows and of changes.
    - ``body_bytes_max``: of one call's body, and ``bodies_bytes_max``: of all that are being read or worked on.
    - ``head_ms``, ``body_ms``: within which a call's head and its body must have come.
    - ``idle_ms``: so long a connection may stay without a call.
    - ``stalled_ms``: so long a reader may take nothing of an answer.
    """

    connections_max: int = 4_096
    calls_max: int = 512
    streams_max: int = 64
    body_bytes_max: int = 8 << 20
    bodies_bytes_max: int = 64 << 20
    head_ms: int = 10_000
    body_ms: int = 30_000
    idle_ms: int = 60_000
    stalled_ms: int = 30_000


class Bounds:
    """What is taken of the limits now."""

    def __init__(self, limits: GatewayLimits) -> None:
        self.limits = limits
        self._calls = 0
        self._streams: set[asyncio.Task[Any]] = set()
        self.is_stopping = False
        self._body_bytes = 0

    @contextmanager
    def call(self) -> Iterator[None]:
        """Around a call. Raises ResourceExhausted."""
        if self._calls >= self.limits.calls_max:
            raise _full("calls", self.limits.calls_max)
        self._calls += 1
        try:
            yield
        finally:
            self._calls -= 1

    @contextmanager
    def stream(self) -> Iterator[None]:
        """Around a stream of rows or of changes. Raises ResourceExhausted."""
        if len(self._streams) >= self.limits.streams_max:
            raise _full("streams", self.limits.streams_max)
        task = asyncio.current_task()
        if task is None:
            raise RuntimeError("a stream runs in a task")
        self._streams.add(task)
        try:
            yield
        finally:
            self._streams.discard(task)

    def stop(self) -> None:
        """Ends all streams: some have no end of their own."""
        self.is_stopping = True
        for each in self._streams:
            each.cancel()

    def take_body(self, size: int) -> None:
        """Sets bytes of a body aside, which :meth:`give_body` gives back. Raises ResourceExhausted."""
        if self._body_bytes + size > self.limits.bodies_bytes_max:
            raise _full("bytes of bodies", self.limits.bodies_bytes_max)
        self._body_bytes += size

    def give_body(self, size: int) -> None:
        self._body_bytes -= size


def _full(resource: str, limit: int) -> ResourceExhausted:
    problem = f"the gateway has {limit} {resource} under way, which is its limit"
    return ResourceExhausted(problem, RETRY_MS, resource=resource, limit=limit)
