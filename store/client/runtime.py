"""The core's interface to its surroundings: to call, to receive, to wait.

The client is written once, as coroutines. In the end they await one of the methods below, and there are two
runtimes that perform them::

    AsyncClient, AsyncTable, ...      Client, Table, ...     the faces
               │                           │ drives each coroutine to its end, in one step
               └────── the core ───────────┘
                          │ awaits
                       Runtime ─┬─ aio ........ our own HTTP/2 on the caller's loop, no threads of ours
                                └─ blocking ... threads and locks: an await is over when it returns

A coroutine over the blocking runtime never suspends, so that a function can run it by a single ``send(None)``
(:func:`cortado.store.client.blocking.drive.run`). That binds code of the core: it awaits nothing but other parts of
the core and this runtime, and holds a thread's lock over no await.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any, Final, Protocol, TypeAlias

from cortado.store.client.authorization import Authorization
from cortado.store.client.endpoints import Tls
from cortado.store.client.retry import Failure
from cortado.store.client.stubs import Method

SILENCE_S: Final = 0.8
"""How long nothing may come before a caller asks whether another node leads. Longer than most elections' first half: a
caller that asks earlier hears of the old leader."""
SILENCE_AGAIN_S: Final = 0.2

IsMoved: TypeAlias = Callable[[], Coroutine[Any, Any, bool]]
"""Asked while an answer is late: whether there is a better place to ask."""


class WireClosed(Exception):
    """The wire was closed, and takes no call any more."""


@dataclass(frozen=True, slots=True)
class Environment:
    """Time and chance, as a connection takes them in. ``sleep_s`` is how a thread waits; a loop has its own way."""

    monotonic_s: Callable[[], float] = time.monotonic
    sleep_s: Callable[[float], None] = time.sleep
    random: Callable[[], float] = random.random
    random_bytes: Callable[[int], bytes] = os.urandom


class Pending(Protocol):
    """A call that was begun. ``is_sent``: it may have left."""

    @property
    def is_sent(self) -> bool: ...

    def wait(self, wait_s: float) -> Awaitable[bool]:
        """Wait for the end of the call, and no longer than that; whether it has come."""
        ...

    def outcome(self) -> bytes:
        """Return the encoded reply of a call that has ended. Raises Failed."""
        ...

    def give_up(self) -> bool:
        """Give up the wait: the server need not work on it. False if the end is coming at this moment."""
        ...


class Question(Pending, Protocol):
    """A call of its own, which may be left alone."""

    def when_ended(self, tell: Callable[[Question], None]) -> None:
        """Call ``tell`` once the call has ended, in any thread."""
        ...


class Calls(Protocol):
    """The coalescing stream to one address (:mod:`cortado.store.client.call_queue`)."""

    def submit(self, method: str, request: bytes, timeout_s: float) -> Pending:
        """Put a call in line. Raises Failed if the stream is full or over; nothing was sent then."""
        ...

    def close(self, failure: Failure) -> None:
        """End the stream, and every call on it with ``failure``."""
        ...


class Stream(Protocol):
    """A call with many replies."""

    def send(self, message: bytes) -> None:
        """Put a message in line, on a stream that goes both ways."""
        ...

    async def receive(self) -> Any:
        """Return the next reply, None at the end. Raises Failed if the stream broke or was silent for too long."""
        ...

    def close(self) -> None:
        """Cancel it, unless it has ended. May be called again."""
        ...


class Wire(Protocol):
    """The way to one address. It connects when it is first used, and again when that breaks."""

    def begin(self, method: Method, request: bytes, timeout_s: float) -> Question:
        """Begin a unary call of its own. Raises WireClosed."""
        ...

    def open_calls(self, on_end: Callable[[Calls, Failure], None]) -> Calls:
        """Open a new coalescing stream; ``on_end`` is told once when it is over. Raises WireClosed."""
        ...

    def open_stream(self, method: Method, request: bytes | None, timeout_s: float, is_moved: IsMoved) -> Stream:
        """Open a call with many replies; ``request`` is None if it goes both ways. Raises WireClosed.

        Each wait for a reply is bounded by ``timeout_s``, and ends earlier if ``is_moved`` says so.
        """
        ...

    async def close(self) -> None:
        """End all calls and streams on it."""
        ...


class Lock(AbstractAsyncContextManager[None], Protocol):
    """Held by one at a time, also over awaits."""

    def locked(self) -> bool: ...


class Signal(Protocol):
    """Given once; then all waiting callers go on."""

    def give(self) -> None: ...

    async def wait(self, seconds: float) -> bool:
        """Wait until it is given, and no longer than that; return whether it was."""
        ...


class Runtime(Protocol):
    """One world, for one connection."""

    environment: Environment

    def check(self) -> None:
        """Raise an error if the connection may not be used from here: another loop, say."""
        ...

    def wire(self, address: str, tls: Tls | None, authorization: Authorization) -> Wire:
        """Return a wire to ``address``. Raises InvalidArgument for files that hold no certificates."""
        ...

    def lock(self) -> Lock: ...

    def signal(self) -> Signal: ...

    def beside(self, work: Coroutine[Any, Any, None]) -> None:
        """Run ``work``, which raises nothing, beside the caller."""
        ...

    async def sleep(self, seconds: float) -> None: ...

    def release(self, close: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Run ``close`` for an owner that is gone, from whichever thread collected it."""
        ...

    async def give_way(self) -> None:
        """Let others run, in the middle of work that takes long and waits for nothing."""
        ...

    async def close(self) -> None: ...
