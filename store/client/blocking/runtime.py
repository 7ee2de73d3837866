"""The runtime of threads: an await returns when the awaited event has happened, or its time is over.

A thread that waits for a reply sleeps on a lock. One thread watches the streams (:mod:`.watchdog`), and may cancel
them. Work beside the calls has a thread of its own.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Coroutine, Iterator
from queue import SimpleQueue
from types import TracebackType
from typing import Any

import grpc

from cortado.errors import Cancelled, DeadlineExceeded, Unavailable
from cortado.store.client import forks
from cortado.store.client.authorization import Authorization
from cortado.store.client.blocking.call_stream import CLOSE_S, CallStream, SendingThread
from cortado.store.client.blocking.drive import run
from cortado.store.client.blocking.watchdog import Watch, Watchdog
from cortado.store.client.endpoints import Tls, blocking_channel
from cortado.store.client.retry import Failed, Failure, failure_of
from cortado.store.client.runtime import CHANNEL_OPTIONS, Environment, IsMoved, WireClosed
from cortado.store.client.stubs import Method, Stubs


class BlockingRuntime:
    """For any number of threads."""

    def __init__(self, environment: Environment | None = None) -> None:
        self.environment = environment or Environment()
        self._watchdog = Watchdog(self.environment.monotonic_s)

    def check(self) -> None:
        """Do nothing: any thread may use it."""

    def wire(self, address: str, tls: Tls | None, authorization: Authorization) -> BlockingWire:
        """Return a wire to ``address``. Raises InvalidArgument for files that hold no certificates."""
        return BlockingWire(address, tls, authorization, self._watchdog)

    def lock(self) -> ThreadLock:
        """Return a lock for threads."""
        return ThreadLock()

    def signal(self) -> ThreadSignal:
        """Return a signal for threads."""
        return ThreadSignal()

    def beside(self, work: Coroutine[Any, Any, None]) -> None:
        """Run ``work`` in a thread of its own: the caller may be one of gRPC's threads, which must not wait for
        itself."""
        threading.Thread(target=run, args=(work,), name="cortado-beside", daemon=True).start()

    def release(self, close: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Run ``close`` in a thread of its own: the garbage collector may run in one that holds gRPC's locks."""
        self.beside(close())

    async def sleep(self, seconds: float) -> None:
        """Let the thread sleep."""
        self.environment.sleep_s(seconds)

    async def give_way(self) -> None:
        """Do nothing: other threads run anyhow."""

    async def close(self) -> None:
        """End its thread."""
        self._watchdog.close()


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
    """gRPC's blocking channel to one address."""

    def __init__(self, address: str, tls: Tls | None, authorization: Authorization, watchdog: Watchdog) -> None:
        self._channel = blocking_channel(address, tls, CHANNEL_OPTIONS)
        self._authorization = authorization
        self._watchdog = watchdog
        self._under_way = UnderWay()
        self._multicallables: dict[str, Any] = {}

    def begin(self, method: Method, request: bytes, timeout_s: float) -> UnaryCall:
        """Begin a unary call of its own. Raises WireClosed."""
        try:
            call = self.multicallable(method).future(
                request, timeout=timeout_s, metadata=self._authorization.metadata()
            )
        except ValueError:
            raise WireClosed from None
        self._under_way.add(call)
        return UnaryCall(call, self._under_way)

    def open_calls(self, on_end: Callable[[CallStream, Failure], None]) -> CallStream:
        """Open a new coalescing stream. Raises WireClosed."""
        try:
            return CallStream(self._exchange, on_end, self._authorization)
        except ValueError:
            raise WireClosed from None

    def open_stream(self, method: Method, request: bytes | None, timeout_s: float, is_moved: IsMoved) -> ReplyStream:
        """Open a call with many replies. Raises WireClosed."""
        outbox: SimpleQueue[bytes | None] = SimpleQueue()
        sending = SendingThread() if request is None else None
        try:
            sent = request if sending is None else sending.takes(iter(outbox.get, None))
            call = self.multicallable(method)(sent, metadata=self._authorization.metadata())
        except ValueError:
            raise WireClosed from None
        self._under_way.add(call)
        watch = self._watchdog.watch(call.cancel, timeout_s, lambda: run(is_moved()))
        return ReplyStream(call, watch, outbox, sending)

    async def close(self) -> None:
        """End all calls and streams on it; gRPC's threads have finished with it then."""
        self._channel.close()
        self._under_way.wait()

    def _exchange(self, messages: Iterator[bytes]) -> Any:
        call = self.multicallable(Stubs.calls.Exchange)(messages, metadata=self._authorization.of_stream())
        self._under_way.add(call)
        return call

    def multicallable(self, method: Method) -> Any:
        """Return gRPC's callable of a method: requests are bytes, and replies too, except those of streams."""
        known = self._multicallables.get(method.name)
        if known is None:
            make = {
                (False, False): self._channel.unary_unary,
                (False, True): self._channel.unary_stream,
                (True, True): self._channel.stream_stream,
            }[method.client_streaming, method.server_streaming]
            known = self._multicallables[method.name] = make(f"/{method.name}", None, method.stream_reply_of)
        return known


class UnderWay:
    """Calls that gRPC's thread has not finished with.

    It is a daemon, and closing a channel does not wait for it. If the interpreter ends while it holds a call's lock,
    it holds it for ever: the call, which takes that lock when it is collected, would keep the process from ending.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._count = 0

    def add(self, call: Any, then: Callable[[], None] | None = None) -> None:
        """Count ``call`` until it is over, and ``then`` is done."""
        with self._changed:
            self._count += 1

        def over(_: Any) -> None:
            try:
                if then is not None:
                    then()
            finally:
                with self._changed:
                    self._count -= 1
                    self._changed.notify_all()

        call.add_done_callback(over)

    def wait(self) -> None:
        """Return when all are over, after :data:`CLOSE_S` at the latest."""
        with self._changed:
            self._changed.wait_for(lambda: not self._count, CLOSE_S)


class UnaryCall:
    """A call beside the thread, which can be given up while it runs."""

    is_sent = True

    def __init__(self, call: Any, under_way: UnderWay) -> None:
        self._call = call
        self._under_way = under_way

    async def wait(self, wait_s: float) -> bool:
        """Wait until it has ended, and no longer than ``wait_s``."""
        try:
            self._call.exception(timeout=wait_s)
        except grpc.FutureTimeoutError:
            return False
        except grpc.FutureCancelledError:
            return True
        return True

    def outcome(self) -> bytes:
        """Return the reply's bytes. Raises Failed."""
        try:
            reply: bytes = self._call.result()
        except grpc.FutureCancelledError:
            failure = Failure(Cancelled("the client was closed"), answered=False, sent=True)
        except grpc.RpcError as error:
            failure = failure_of(error)
        else:
            return reply
        raise Failed(failure)

    def give_up(self) -> bool:
        """Cancel the call."""
        self._call.cancel()
        return True

    def when_ended(self, tell: Callable[[UnaryCall], None]) -> None:
        """Call ``tell`` in one of gRPC's threads."""
        self._under_way.add(self._call, lambda: tell(self))


class ReplyStream:
    """A call with many replies, and the bound on each wait."""

    def __init__(
        self, call: Any, watch: Watch, outbox: SimpleQueue[bytes | None], sending: SendingThread | None
    ) -> None:
        self._call = call
        self._sending = sending
        self._watch = watch
        self._outbox = outbox

    def send(self, message: bytes) -> None:
        """Queue a message for gRPC's thread."""
        self._outbox.put(message)

    async def receive(self) -> Any:
        """Return the next reply, None at the end. Raises Failed, Unsupported in a process that was forked meanwhile."""
        forks.check()
        try:
            with self._watch:
                return next(self._call)
        except StopIteration:
            return None
        except grpc.RpcError as error:
            if self._watch.is_late:
                late = DeadlineExceeded(timeout_ms=round(self._watch.timeout_s * 1000))
                failure = Failure(late, answered=False, sent=True)
            elif self._watch.is_moved:
                failure = Failure(Unavailable("the node is silent, and another leads"), answered=False, sent=True)
            else:
                failure = failure_of(error)
        raise Failed(failure)

    def close(self) -> None:
        """Cancel the call, and end the thread that sends."""
        if forks.is_cut_off():
            forks.leave(self._call)
            return
        self._outbox.put(None)
        self._call.cancel()
        self._watch.close()
        if self._sending is not None:
            self._sending.join()
