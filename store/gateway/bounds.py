"""Admission control: how many calls, streams and bytes of bodies may be in flight, and how long each may take.

A call over a bound is refused at once, with a retry delay, so that the calls in flight finish in time.

A token may hold as many calls, and as many streams, as it leaves free: alone at most half of them. So the callers of
one token keep no others out. Calls without a token have no such share: without roles, nothing tells callers apart.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal

from cortado.errors import ResourceExhausted
from cortado.store.gateway.bodies import Bodies
from cortado.store.gateway.callers import shown_token
from cortado.store.gateway.limits import RETRY_MS, GatewayLimits
from cortado.store.gateway.measures import Cause, Measures
from cortado.store.gateway.places import Places
from cortado.store.gateway.problems import Refused
from cortado.store.owners import has_share


class _Shared:
    """Things of one kind that are under way, with a share of ``most`` for each token."""

    def __init__(self, most: int) -> None:
        self.count = 0
        self.most = most
        self._of_token: Counter[bytes] = Counter()

    def has_room(self, token: bytes) -> bool:
        return has_share(self._of_token[token] if token else 0, self.count, self.most)

    def add(self, token: bytes, number: int = 1) -> None:
        self.count += number
        if token:
            self._of_token[token] += number
            if not self._of_token[token]:
                del self._of_token[token]


class Bounds:
    """What is taken of the limits now."""

    def __init__(self, limits: GatewayLimits) -> None:
        self.limits = limits
        self.measures = Measures()
        self.bodies = Bodies(limits.bodies_bytes_max)
        self.places = Places(limits.connections_max)
        self._calls = _Shared(limits.calls_max)
        self._streams = _Shared(limits.streams_max)
        self._streaming: set[asyncio.Task[Any]] = set()
        self.is_stopping = False

    @property
    def calls(self) -> int:
        """Those under way."""
        return self._calls.count

    @property
    def streams(self) -> int:
        """Those that are open."""
        return self._streams.count

    @contextmanager
    def call(self) -> Iterator[None]:
        """Around a call. Raises Refused."""
        token = shown_token()
        if not self._calls.has_room(token):
            raise self._no_room("calls", self._calls)
        self._calls.add(token)
        try:
            yield
        finally:
            self._calls.add(token, -1)

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Within a call, while it waits for its caller: it takes the place of no other. Raises Refused where
        there is none left behind it."""
        token = shown_token()
        self._calls.add(token, -1)
        try:
            yield
        finally:
            has_room = self._calls.has_room(token)
            self._calls.add(token)
        if not has_room:
            raise self._no_room("calls", self._calls)

    def check_stream(self) -> None:
        """Raises Refused where there is no room for a stream."""
        if not self._streams.has_room(shown_token()):
            raise self._no_room("streams", self._streams)

    @contextmanager
    def stream(self) -> Iterator[None]:
        """Around a stream of rows or of changes. Raises Refused."""
        self.check_stream()
        task, token = asyncio.current_task(), shown_token()
        if task is None:
            raise RuntimeError("a stream runs in a task")
        self._streaming.add(task)
        self._streams.add(token)
        try:
            yield
        finally:
            self._streaming.discard(task)
            self._streams.add(token, -1)

    def stop(self) -> None:
        """Ends all streams: some have no end of their own."""
        self.is_stopping = True
        for each in self._streaming:
            each.cancel()

    def reject(self, cause: Cause) -> None:
        """Counts what is refused here, or cut off."""
        self.measures.rejections[cause] += 1

    def full(self, cause: Cause, resource: str, limit: int) -> Refused:
        """The refusal of one more of ``resource``, of which there are ``limit``."""
        return self._refused(
            cause, f"the gateway has {limit} {resource} under way, which is its limit", resource, limit
        )

    def _no_room(self, cause: Literal["calls", "streams"], shared: _Shared) -> Refused:
        if shared.count >= shared.most:
            return self.full(cause, cause, shared.most)
        free = shared.most - shared.count
        problem = f"the {free} {cause} that are left of {shared.most} are for other tokens: this one has as many"
        return self._refused(cause, problem, cause, shared.most)

    def _refused(self, cause: Cause, problem: str, resource: str, limit: int) -> Refused:
        self.reject(cause)
        return Refused(429, ResourceExhausted(problem, RETRY_MS, resource=resource, limit=limit))
