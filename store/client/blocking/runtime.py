"""The runtime of threads: an await returns when the awaited event has happened, or its time is over.

::

    callers ─► BlockingWire ─► Line: a link and its socket ◄─ IoThread, one for a client
                                 └─ UnaryCall, ReplyStream, CallStream: threads wait on locks of these

A thread that waits for a reply sleeps on a lock. Work beside the calls has a thread of its own.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Coroutine
from types import TracebackType
from typing import Any

from cortado.store.client.authorization import Authorization
from cortado.store.client.blocking.call_stream import CallStream
from cortado.store.client.blocking.calls import ReplyStream, UnaryCall
from cortado.store.client.blocking.drive import run
from cortado.store.client.blocking.io_thread import IoThread
from cortado.store.client.blocking.line import Line
from cortado.store.client.endpoints import Tls
from cortado.store.client.retry import Failure
from cortado.store.client.runtime import Environment, IsMoved, WireClosed
from cortado.store.client.stubs import Method


class BlockingRuntime:
    """For any number of threads."""

    def __init__(self, environment: Environment | None = None) -> None:
        self.environment = environment or Environment()
        self._io = IoThread(self.environment.monotonic_s)

    def check(self) -> None:
        """Do nothing: any thread may use it."""

    def wire(self, address: str, tls: Tls | None, authorization: Authorization) -> BlockingWire:
        return BlockingWire(address, tls, authorization, self._io)

    def lock(self) -> ThreadLock:
        """Return a lock for threads."""
        return ThreadLock()

    def signal(self) -> ThreadSignal:
        """Return a signal for threads."""
        return ThreadSignal()

    def beside(self, work: Coroutine[Any, Any, None]) -> None:
        """Run ``work`` in a thread of its own: the caller may be the I/O thread, which must not wait for itself."""
        threading.Thread(target=run, args=(work,), name="cortado-beside", daemon=True).start()

    def release(self, close: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Run ``close`` in a thread of its own: the garbage collector may run in one that holds a lock."""
        self.beside(close())

    async def sleep(self, seconds: float) -> None:
        """Let the thread sleep."""
        self.environment.sleep_s(seconds)

    async def give_way(self) -> None:
        """Do nothing: other threads run anyhow."""

    async def close(self) -> None:
        """End its thread."""
        self._io.close()


class ThreadSignal:
    """An event, waited for as a coroutine waits."""

    def __init__(self) -> None:
        self._event = threading.Event()

    def give(self) -> None:
        """Give the signal in any thread."""
        self._event.set()

    async def wait(self, seconds: float) -> bool:
        """Let the thread wait."""
        return self._event.wait(seconds)


class ThreadLock:
    """A thread's lock, taken as a coroutine takes one."""

    def __init__(self) -> None:
        self._lock = threading.Lock()

    def locked(self) -> bool:
        return self._lock.locked()

    async def __aenter__(self) -> None:
        self._lock.acquire()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._lock.release()


class BlockingWire:
    """The connections to one address, one after the other: a new one takes calls if the last one takes no more."""

    def __init__(self, address: str, tls: Tls | None, authorization: Authorization, io: IoThread) -> None:
        self._address = address
        self._tls = tls
        self._authorization = authorization
        self._io = io
        self._lock = threading.Lock()
        self._lines: list[Line] = []
        self._is_closed = False

    def begin(self, method: Method, request: bytes, timeout_s: float) -> UnaryCall:
        """Begin a unary call of its own. Raises WireClosed."""
        return self.ask(method.name, request, timeout_s)

    def ask(self, method: str, request: bytes, timeout_s: float) -> UnaryCall:
        """Do as :meth:`begin`, by the method's name."""
        line = self._line()
        call = UnaryCall(line, method, request, self._authorization.metadata(), self._io.now_s() + timeout_s)
        line.begin(call)
        return call

    def open_calls(self, on_end: Callable[[CallStream, Failure], None]) -> CallStream:
        """Open a new coalescing stream. Raises WireClosed."""
        return CallStream(self._line(), on_end, self._authorization)

    def open_stream(self, method: Method, request: bytes | None, timeout_s: float, is_moved: IsMoved) -> ReplyStream:
        """Open a call with many replies. Raises WireClosed."""
        return self.stream(method.name, request, method.stream_reply_of, timeout_s, is_moved)

    def stream(
        self,
        method: str,
        request: bytes | None,
        reply_of: Callable[[bytes], Any] | None,
        timeout_s: float,
        is_moved: IsMoved,
    ) -> ReplyStream:
        """Do as :meth:`open_stream`, by the method's name. Replies are parsed by ``reply_of``."""
        line = self._line()
        stream = ReplyStream(line, method, request, reply_of, self._authorization.metadata(), timeout_s, is_moved)
        line.begin(stream)
        return stream

    async def close(self) -> None:
        """End all calls and streams on it."""
        with self._lock:
            self._is_closed = True
            lines, self._lines = self._lines, []
        for each in lines:
            each.close()

    def _line(self) -> Line:
        """Return the connection that takes calls. Raises WireClosed."""
        with self._lock:
            if self._is_closed:
                raise WireClosed
            if not self._lines or not self._lines[-1].link.takes_calls():
                self._lines = [each for each in self._lines if not each.link.is_over]
                self._lines.append(Line(self._address, self._tls, self._io))
            return self._lines[-1]
