"""Admission control: how many calls, streams and bytes of bodies may be in flight, and how long each may take.

A call over a bound is refused at once, with a retry delay, so that the calls in flight finish in time.

A token may hold as many calls, and as many streams, as it leaves free: alone at most half of them. So the callers of
one token keep no others out. All callers that the cluster has not authenticated have one share together
(:meth:`cortado.store.gateway.callers.Callers.share`). While roles are off there are no shares: nothing tells callers
apart.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Final, Literal

from cortado.errors import ResourceExhausted
from cortado.store.auth.owners import has_share
from cortado.store.gateway.bodies import Bodies
from cortado.store.gateway.callers import STRANGERS, shown_token
from cortado.store.gateway.limits import RETRY_MS, GatewayLimits
from cortado.store.gateway.measures import Cause, Measures
from cortado.store.gateway.places import Places
from cortado.store.gateway.problems import Refused


@dataclass(slots=True)
class _Held:
    """The share that a call's place is of. The caller may become known while its body arrives."""

    share: bytes


_HELD: Final[ContextVar[_Held]] = ContextVar("cortado_gateway_held")
"""That of the running call."""


class _Shared:
    """Things of one kind that are under way, with a share of ``most`` for each token, and one for all strangers."""

    def __init__(self, most: int) -> None:
        self.count = 0
        self.most = most
        self._of_share: Counter[bytes] = Counter()

    def has_room(self, share: bytes) -> bool:
        return has_share(self._of_share[share] if share else 0, self.count, self.most)

    def add(self, share: bytes, number: int = 1) -> None:
        self.count += number
        if share:
            self._of_share[share] += number
            if not self._of_share[share]:
                del self._of_share[share]


class Bounds:
    """Count the use of each limit."""

    def __init__(self, limits: GatewayLimits, share: Callable[[], bytes] = shown_token) -> None:
        """``share`` says which one the running call uses; empty for none."""
        self.limits = limits
        self._share = share
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
        share = self._share()
        if not self._calls.has_room(share):
            raise self._no_room("calls", self._calls, share)
        self._calls.add(share)
        held = _Held(share)
        _HELD.set(held)
        try:
            yield
        finally:
            self._calls.add(held.share, -1)

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Free the place of a call while it waits for its caller. Raises Refused if the place is taken when the
        wait ends."""
        held = _HELD.get()
        self._calls.add(held.share, -1)
        try:
            yield
        finally:
            held.share = self._share()
            has_room = self._calls.has_room(held.share)
            self._calls.add(held.share)
        if not has_room:
            raise self._no_room("calls", self._calls, held.share)

    def check_stream(self) -> None:
        """Raise Refused if there is no room for a stream."""
        share = self._share()
        if not self._streams.has_room(share):
            raise self._no_room("streams", self._streams, share)

    @contextmanager
    def stream(self) -> Iterator[None]:
        """Around a stream of rows or of changes. Raises Refused."""
        self.check_stream()
        task, share = asyncio.current_task(), self._share()
        if task is None:
            raise RuntimeError("a stream runs in a task")
        self._streaming.add(task)
        self._streams.add(share)
        try:
            yield
        finally:
            self._streaming.discard(task)
            self._streams.add(share, -1)

    def stop(self) -> None:
        """End all streams: some have no end of their own."""
        self.is_stopping = True
        for each in self._streaming:
            each.cancel()

    def reject(self, cause: Cause) -> None:
        """Count a refusal or a cut-off."""
        self.measures.rejections[cause] += 1

    def full(self, cause: Cause, resource: str, limit: int) -> Refused:
        """Return the refusal of one more of ``resource``, at its limit of ``limit``."""
        return self._refused(
            cause, f"the gateway has {limit} {resource} under way, which is its limit", resource, limit
        )

    def _no_room(self, cause: Literal["calls", "streams"], shared: _Shared, share: bytes) -> Refused:
        if shared.count >= shared.most:
            return self.full(cause, cause, shared.most)
        free = shared.most - shared.count
        whose = "callers that are authenticated: the others" if share == STRANGERS else "other tokens: this one"
        has = "have" if share == STRANGERS else "has"
        problem = f"the {free} {cause} that are left of {shared.most} are for {whose} {has} as many"
        return self._refused(cause, problem, cause, shared.most)

    def _refused(self, cause: Cause, problem: str, resource: str, limit: int) -> Refused:
        self.reject(cause)
        return Refused(429, ResourceExhausted(problem, RETRY_MS, resource=resource, limit=limit))
