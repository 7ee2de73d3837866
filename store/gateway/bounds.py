"""Admission control: how many calls, streams and bytes of bodies may be in flight, and how long each may take.

A call over a bound is refused at once, with a retry delay, so that the calls in flight finish in time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from cortado.errors import ResourceExhausted
from cortado.store.gateway.bodies import Bodies
from cortado.store.gateway.limits import RETRY_MS, GatewayLimits
from cortado.store.gateway.measures import Cause, Measures
from cortado.store.gateway.places import Places
from cortado.store.gateway.problems import Refused


class Bounds:
    """What is taken of the limits now."""

    def __init__(self, limits: GatewayLimits) -> None:
        self.limits = limits
        self.measures = Measures()
        self.bodies = Bodies(limits.bodies_bytes_max)
        self.places = Places(limits.connections_max)
        self._calls = 0
        self._streams: set[asyncio.Task[Any]] = set()
        self.is_stopping = False

    @property
    def calls(self) -> int:
        """Those under way."""
        return self._calls

    @property
    def streams(self) -> int:
        """Those that are open."""
        return len(self._streams)

    @contextmanager
    def call(self) -> Iterator[None]:
        """Around a call. Raises Refused."""
        if self._calls >= self.limits.calls_max:
            raise self.full("calls", "calls", self.limits.calls_max)
        self._calls += 1
        try:
            yield
        finally:
            self._calls -= 1

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Within a call, while it waits for its caller: it takes the place of no other. Raises Refused where
        there is none left behind it."""
        self._calls -= 1
        try:
            yield
        finally:
            self._calls += 1
        if self._calls > self.limits.calls_max:
            raise self.full("calls", "calls", self.limits.calls_max)

    def check_stream(self) -> None:
        """Raises Refused where there is no room for a stream."""
        if len(self._streams) >= self.limits.streams_max:
            raise self.full("streams", "streams", self.limits.streams_max)

    @contextmanager
    def stream(self) -> Iterator[None]:
        """Around a stream of rows or of changes. Raises Refused."""
        self.check_stream()
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

    def reject(self, cause: Cause) -> None:
        """Counts what is refused here, or cut off."""
        self.measures.rejections[cause] += 1

    def full(self, cause: Cause, resource: str, limit: int) -> Refused:
        """The refusal of one more of ``resource``."""
        self.reject(cause)
        problem = f"the gateway has {limit} {resource} under way, which is its limit"
        return Refused(429, ResourceExhausted(problem, RETRY_MS, resource=resource, limit=limit))
