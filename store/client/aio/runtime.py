"""The runtime of asyncio: calls, streams and waits are those of one loop, the one in which it is first used.

Nothing is bound to a loop before that, so that a client may be made where none runs. A timer of the loop bounds the
waits of its tasks; a task that is cancelled while it waits for an answer takes its call back.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any, Final
from weakref import WeakSet

from google.protobuf.message import DecodeError

from cortado.errors import DeadlineExceeded, Internal, Unavailable, Unsupported
from cortado.store.client.aio.call_stream import CallStream
from cortado.store.client.aio.port import Port
from cortado.store.client.aio.tasks import Tasks
from cortado.store.client.authorization import Authorization, Metadata
from cortado.store.client.endpoints import Tls
from cortado.store.client.link.call import Call
from cortado.store.client.retry import Failed, Failure
from cortado.store.client.runtime import SILENCE_AGAIN_S, SILENCE_S, Environment, IsMoved, WireClosed
from cortado.store.client.stubs import Method

_AHEAD_BYTES: Final = 4 << 20
_LITTLE_AHEAD_BYTES: Final = 65_535


class AsyncioRuntime:
    """For any number of tasks of one loop. A process that serves others takes at most 64 KiB of unread data ``ahead``
    of each stream. By default that is 4 MiB, so that a distant reader is faster."""

    def __init__(self, environment: Environment | None = None, *, ahead: bool = True) -> None:
        self.environment = environment or Environment()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._tasks = Tasks()
        self._ahead_bytes = _AHEAD_BYTES if ahead else _LITTLE_AHEAD_BYTES

    def check(self) -> None:
        """Raise Unsupported in another loop than that of the first use."""
        running = asyncio.get_running_loop()
        if self._loop is running:
            return
        if self._loop is None:
            self._loop = running
            return
        if self._loop.is_closed():
            raise Unsupported("an AsyncClient after its event loop has ended", "its connections ended with the loop")
        raise Unsupported("an AsyncClient in two event loops", "make one for each loop")

    def wire(self, address: str, tls: Tls | None, authorization: Authorization) -> AsyncioWire:
        """Return a wire to ``address``. Raises InvalidArgument for files that hold no certificates."""
        return AsyncioWire(address, tls, authorization, self.environment, self._ahead_bytes)

    def lock(self) -> asyncio.Lock:
        """Return a lock for tasks."""
        return asyncio.Lock()

    def signal(self) -> TaskSignal:
        """Return a signal for tasks."""
        return TaskSignal()

    def beside(self, work: Coroutine[Any, Any, None]) -> None:
        """Run ``work`` in a task of its own."""
        self._tasks.start(work)

    def release(self, close: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Run ``close`` in a task of the loop, if the loop still exists."""
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(lambda: self._tasks.start(close()))

    async def sleep(self, seconds: float) -> None:
        """Let the task sleep."""
        await asyncio.sleep(seconds)

    async def give_way(self) -> None:
        """Let other tasks run."""
        await asyncio.sleep(0)

    async def close(self) -> None:
        """End its tasks."""
        await self._tasks.ended()


class TaskSignal:
    """An event of the loop."""

    def __init__(self) -> None:
        self._event = asyncio.Event()

    def give(self) -> None:
        """Give the signal in a step of the loop."""
        self._event.set()

    async def wait(self, seconds: float) -> bool:
        """Let the task wait."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._event.wait(), seconds)
        return self._event.is_set()


class AsyncioWire:
    """Connections to one address, one after the other."""

    def __init__(
        self, address: str, tls: Tls | None, authorization: Authorization, environment: Environment, ahead_bytes: int
    ) -> None:
        if tls is not None:
            tls.context()
        self._address = address
        self._tls = tls
        self._authorization = authorization
        self._environment = environment
        self._ahead_bytes = ahead_bytes
        self._tasks = Tasks()
        self._port: Port | None = None
        self._ports: WeakSet[Port] = WeakSet()
        self._is_closed = False

    def begin(self, method: Method, request: bytes, timeout_s: float) -> UnaryCall:
        """Begin a unary call of its own. Raises WireClosed."""
        port = self._open()
        call = UnaryCall(port, method, request, self._authorization.metadata(), timeout_s)
        port.begin(call)
        return call

    def open_calls(self, on_end: Callable[[CallStream, Failure], None]) -> CallStream:
        """Open a new coalescing stream. Raises WireClosed."""
        port = self._open()
        stream = CallStream(port, on_end, self._authorization)
        port.begin(stream)
        return stream

    def open_stream(self, method: Method, request: bytes | None, timeout_s: float, is_moved: IsMoved) -> ReplyStream:
        """Open a call with many replies. Raises WireClosed."""
        port = self._open()
        metadata = self._authorization.metadata()
        stream = ReplyStream(port, method, request, metadata, timeout_s, is_moved, self._environment, self._tasks)
        port.begin(stream)
        return stream

    async def close(self) -> None:
        """End all calls and streams on it."""
        self._is_closed = True
        for port in list(self._ports):
            await port.close()
        await self._tasks.ended()

    def _open(self) -> Port:
        """Return the connection that takes calls. Raises WireClosed."""
        if self._is_closed:
            raise WireClosed
        if self._port is None or not self._port.link.takes_calls():
            self._port = Port(self._address, self._tls, self._ahead_bytes, self._tasks)
            self._ports.add(self._port)
        return self._port


class UnaryCall(Call):
    """A call beside the task, which can be given up while it runs."""

    __slots__ = ("_bound", "_port", "_tellers", "_waking")

    def __init__(self, port: Port, method: Method, request: bytes, metadata: Metadata | None, timeout_s: float) -> None:
        super().__init__(method.name, request, metadata, deadline_s=port.loop.time() + timeout_s)
        self._port = port
        self._waking: asyncio.Future[bool] | None = None
        self._bound: asyncio.TimerHandle | None = None
        self._tellers: list[Callable[[UnaryCall], None]] = []

    def wait(self, wait_s: float) -> asyncio.Future[bool]:
        """Wait until it has ended, and no longer than ``wait_s``."""
        self._waking = waking = self._port.loop.create_future()
        if self.is_over:
            waking.set_result(True)
        else:
            self._bound = self._port.loop.call_later(wait_s, self._wake)
        return waking

    def give_up(self) -> bool:
        """Cancel the call."""
        return self._port.cancel(self)

    def when_ended(self, tell: Callable[[UnaryCall], None]) -> None:
        """Call ``tell`` in a step of the loop."""
        self._tellers.append(tell)
        if self.is_over:
            self._port.loop.call_soon(self.tell)

    def tell(self) -> None:
        if self.is_over:
            self._wake()
            tellers, self._tellers = self._tellers, []
            for each in tellers:
                each(self)

    def _wake(self) -> None:
        if self._bound is not None:
            self._bound.cancel()
            self._bound = None
        if self._waking is not None and not self._waking.done():
            self._waking.set_result(self.is_over)


class ReplyStream(Call):
    """A call with many replies; a timer bounds each wait, and cancels the call."""

    __slots__ = (
        "_began_s",
        "_given_up",
        "_is_moved",
        "_looking",
        "_now_s",
        "_outbox",
        "_port",
        "_reply_of",
        "_tasks",
        "_timeout_s",
        "_waking",
    )

    def __init__(
        self,
        port: Port,
        method: Method,
        request: bytes | None,
        metadata: Metadata | None,
        timeout_s: float,
        is_moved: IsMoved,
        environment: Environment,
        tasks: Tasks,
    ) -> None:
        super().__init__(method.name, request, metadata, is_eager=False)
        self._port = port
        self._reply_of = method.reply_of
        self._timeout_s = timeout_s
        self._is_moved = is_moved
        self._outbox: deque[bytes] = deque()
        self._now_s = environment.monotonic_s
        self._tasks = tasks
        self._waking: asyncio.Future[None] | None = None
        self._began_s = 0.0
        self._looking: asyncio.Task[None] | None = None
        self._given_up: Failure | None = None

    def send(self, message: bytes) -> None:
        """Put a message in line."""
        self._outbox.append(message)
        self._port.wants(self)

    def fill(self) -> None:
        while self._outbox and self._port.link.has_room(self):
            self._port.link.send(self, self._outbox.popleft())

    def tell(self) -> None:
        if self._outbox:
            self._port.wants(self)
        if self._waking is not None and not self._waking.done():
            self._waking.set_result(None)

    async def receive(self) -> Any:
        """Return the next reply, None at the end. Raises Failed."""
        reply = self._next()
        if reply is None and not self.is_over:
            reply = await self._late_reply()
        if reply is not None:
            try:
                return self._reply_of(reply)
            except DecodeError:
                unreadable = Internal(f"the server sent a reply of {self.path} that cannot be read")
                raise Failed(Failure(unreadable, answered=False, sent=True)) from None
        failure = self._given_up or self.failure
        if failure is not None:
            raise Failed(failure)
        return None

    def close(self) -> None:
        """Cancel the call."""
        self._port.cancel(self)

    def _next(self) -> bytes | None:
        reply = self._port.link.read(self)
        if self._port.link.has_output:
            self._port.flush_soon()
        return reply

    async def _late_reply(self) -> bytes | None:
        self._began_s = self._now_s()
        bound = self._port.loop.call_later(min(SILENCE_S, self._timeout_s), self._begin_looking)
        try:
            while True:
                self._waking = self._port.loop.create_future()
                await self._waking
                reply = self._next()
                if reply is not None or self.is_over:
                    return reply
        finally:
            self._waking = None
            bound.cancel()
            if self._looking is not None:
                self._looking.cancel()
                self._looking = None

    def _begin_looking(self) -> None:
        self._looking = self._tasks.start(self._look_around())

    async def _look_around(self) -> None:
        """Look around during a long wait: cancel the call if the wait is too long, or there is a better node."""
        while True:
            waited_s = self._now_s() - self._began_s
            if waited_s >= self._timeout_s:
                late = DeadlineExceeded(timeout_ms=round(self._timeout_s * 1000))
                self._give_up(Failure(late, answered=False, sent=True))
                return
            if await self._is_moved():
                moved = Unavailable("the node is silent, and another leads")
                self._give_up(Failure(moved, answered=False, sent=True))
                return
            again_s = max(SILENCE_AGAIN_S, waited_s / 8)
            await asyncio.sleep(max(0.001, min(again_s, self._timeout_s - waited_s)))

    def _give_up(self, failure: Failure) -> None:
        if self._port.cancel(self):
            self._given_up = failure
        self.tell()
