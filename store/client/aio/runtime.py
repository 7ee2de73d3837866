"""The runtime of asyncio: calls, streams and waits are those of one loop, the one in which it is first used.

Nothing is bound to a loop before that, so that a client may be made where none runs. A timer of the loop bounds the
waits of its tasks; a task that is cancelled while it waits for an answer takes its call back.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from typing import Any

import grpc

from cortado.errors import Cancelled, DeadlineExceeded, Unavailable, Unsupported
from cortado.store.client.aio.call_stream import CallStream
from cortado.store.client.aio.tasks import Tasks
from cortado.store.client.aio.writing import write
from cortado.store.client.authorization import Authorization
from cortado.store.client.endpoints import Tls
from cortado.store.client.retry import Failed, Failure, failure_of
from cortado.store.client.runtime import (
    CHANNEL_OPTIONS,
    NOTHING_AHEAD,
    SILENCE_AGAIN_S,
    SILENCE_S,
    Environment,
    IsMoved,
    WireClosed,
)
from cortado.store.client.stubs import Method, Stubs


class AsyncioRuntime:
    """For any number of tasks of one loop. A process that serves others takes at most 64 KiB of unread data ``ahead``
    of each stream. By default gRPC widens that to megabytes as the link allows, so that a distant reader is faster."""

    def __init__(self, environment: Environment | None = None, *, ahead: bool = True) -> None:
        self.environment = environment or Environment()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._tasks = Tasks()
        self._options = CHANNEL_OPTIONS if ahead else [*CHANNEL_OPTIONS, NOTHING_AHEAD]

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
        return AsyncioWire(address, tls, authorization, self.environment, self._tasks, self._options)

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
    """grpc.aio's channel to one address."""

    def __init__(
        self,
        address: str,
        tls: Tls | None,
        authorization: Authorization,
        environment: Environment,
        tasks: Tasks,
        options: Sequence[tuple[str, Any]],
    ) -> None:
        if tls is None:
            self._channel = grpc.aio.insecure_channel(address, options=options)
        else:
            self._channel = grpc.aio.secure_channel(address, tls._credentials(), options=options)
        self._authorization = authorization
        self._environment = environment
        self._tasks = tasks
        self._multicallables: dict[str, Any] = {}
        self._is_closed = False

    def begin(self, method: Method, request: bytes, timeout_s: float) -> UnaryCall:
        """Begin a unary call of its own. Raises WireClosed."""
        metadata = self._authorization.metadata()
        return UnaryCall(self.multicallable(method)(request, timeout=timeout_s, metadata=metadata), self._tasks)

    def open_calls(self, on_end: Callable[[CallStream, Failure], None]) -> CallStream:
        """Open a new coalescing stream. Raises WireClosed."""
        exchange = self.multicallable(Stubs.calls.Exchange)(metadata=self._authorization.of_stream())
        return CallStream(exchange, on_end, self._tasks, self._authorization)

    def open_stream(self, method: Method, request: bytes | None, timeout_s: float, is_moved: IsMoved) -> ReplyStream:
        """Open a call with many replies. Raises WireClosed."""
        multicallable = self.multicallable(method)
        metadata = self._authorization.metadata()
        call = multicallable(metadata=metadata) if request is None else multicallable(request, metadata=metadata)
        return ReplyStream(call, timeout_s, is_moved, self._environment, self._tasks)

    async def close(self) -> None:
        """End all calls and streams on it."""
        self._is_closed = True
        await self._channel.close()

    def multicallable(self, method: Method) -> Any:
        """Return gRPC's callable of a method: requests are bytes, and replies too, except those of streams."""
        if self._is_closed:
            raise WireClosed
        known = self._multicallables.get(method.name)
        if known is None:
            make: Any = {
                (False, False): self._channel.unary_unary,
                (False, True): self._channel.unary_stream,
                (True, True): self._channel.stream_stream,
            }[method.client_streaming, method.server_streaming]
            known = self._multicallables[method.name] = make(f"/{method.name}", None, method.stream_reply_of)
        return known


class UnaryCall:
    """A call beside the task, which can be given up while it runs."""

    is_sent = True

    def __init__(self, call: Any, tasks: Tasks) -> None:
        self._task = tasks.start(_reply_of(call))

    async def wait(self, wait_s: float) -> bool:
        """Wait until it has ended, and no longer than ``wait_s``."""
        ended, _ = await asyncio.wait({self._task}, timeout=wait_s)
        return bool(ended)

    def outcome(self) -> bytes:
        """Return the reply's bytes. Raises Failed."""
        if self._task.cancelled():
            raise Failed(Failure(Cancelled("the client was closed"), answered=False, sent=True))
        try:
            reply: bytes = self._task.result()
        except grpc.RpcError as error:
            failure = failure_of(error)
        else:
            return reply
        raise Failed(failure)

    def give_up(self) -> bool:
        """Cancel the call."""
        return self._task.cancel()

    def when_ended(self, tell: Callable[[UnaryCall], None]) -> None:
        """Call ``tell`` in a step of the loop."""
        self._task.add_done_callback(lambda _: tell(self))


async def _reply_of(call: Any) -> bytes:
    reply: bytes = await call
    return reply


class ReplyStream:
    """A call with many replies; a timer bounds each wait, and cancels the call."""

    def __init__(
        self,
        call: Any,
        timeout_s: float,
        is_moved: IsMoved,
        environment: Environment,
        tasks: Tasks,
    ) -> None:
        self._call = call
        self._timeout_s = timeout_s
        self._is_moved = is_moved
        self._outbox: asyncio.Queue[bytes] = asyncio.Queue()
        self._writer: asyncio.Task[None] | None = None
        self._now_s = environment.monotonic_s
        self._tasks = tasks
        self._loop = asyncio.get_running_loop()
        self._began_s = 0.0
        self._looking: asyncio.Task[None] | None = None
        self._given_up: Failure | None = None

    def send(self, message: bytes) -> None:
        """Queue a message for the sending task, which begins with the first message."""
        self._outbox.put_nowait(message)
        if self._writer is None:
            self._writer = self._tasks.start(self._write())

    async def receive(self) -> Any:
        """Return the next reply, None at the end. Raises Failed."""
        self._began_s = self._now_s()
        bound = self._loop.call_later(min(SILENCE_S, self._timeout_s), self._begin_looking)
        try:
            reply = await self._call.read()
            return None if reply is grpc.aio.EOF else reply
        except grpc.RpcError as error:
            failure = self._given_up or failure_of(error)
        except asyncio.CancelledError:
            if not self._call.cancelled() or _is_cancelled_itself():
                raise
            closed = Failure(Cancelled("the client was closed"), answered=False, sent=True)
            failure = self._given_up or closed
        finally:
            bound.cancel()
            if self._looking is not None:
                self._looking.cancel()
                self._looking = None
        raise Failed(failure)

    def close(self) -> None:
        """Cancel the call, and end the task that sends."""
        if self._writer is not None:
            # It may wait for a connection that will never be.
            self._writer.cancel()
        self._call.cancel()

    async def _write(self) -> None:
        with suppress(Exception):  # The reader receives the reason.
            while True:
                await write(self._call, await self._outbox.get())

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
        self._given_up = failure
        self._call.cancel()


def _is_cancelled_itself() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
