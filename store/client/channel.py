"""One address: its gRPC channel, and the ways in which a call is made on it.

::

    most calls .................. the coalescing stream, once the address has answered at all
    the others .................. a gRPC call beside the thread, which can be given up while it runs

The stream is the better way for a thread that calls alone, too: measured, its answers come a quarter sooner, since a
message on a stream costs the server less than a call. A caller who hears nothing for a while looks around
(:mod:`cortado.store.client.leader_search`) and goes on waiting for the same answer, unless another node leads: to ask a
slow node twice would make it slower, and leave an attempt behind of which nobody knows what became.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final, TypeAlias

import grpc
from google.protobuf.message import DecodeError

from cortado.errors import Cancelled, DeadlineExceeded, Internal, ResourceExhausted, Unavailable, Unsupported
from cortado.store.client.call_stream import REQUEST_BYTES_MAX, CallStream, Waiter
from cortado.store.client.endpoints import Tls
from cortado.store.client.retry import Failed, Failure, failure_of
from cortado.store.client.stubs import Method, Stubs

SILENCE_S: Final = 0.8
"""How long nothing may come before a caller asks whether somebody else leads. Longer than most elections' first half:
whoever asks earlier hears of the old leader."""
SILENCE_AGAIN_S: Final = 0.2

_OPTIONS: Final = [
    # The server bounds what it takes, and a scan's replies are bounded by the server too.
    ("grpc.max_send_message_length", -1),
    ("grpc.max_receive_message_length", -1),
    # The core would wait a second and more before it connects again; our own backoff decides that.
    ("grpc.initial_reconnect_backoff_ms", 50),
    ("grpc.min_reconnect_backoff_ms", 50),
    ("grpc.max_reconnect_backoff_ms", 500),
    # Two clients of a process are two connections.
    ("grpc.use_local_subchannel_pool", 1),
    # Members that are not asked anything need no connection.
    ("grpc.client_idle_timeout_ms", 60_000),
]

IsMoved: TypeAlias = Callable[[], bool]
"""Asked while an answer is late: whether there is a better place to ask."""


class Channel:
    """The connection to ``address``; made when it is first used, made again when it breaks. For many threads."""

    def __init__(self, address: str, tls: Tls | None, now_s: Callable[[], float], *, coalesce: bool) -> None:
        """Raises InvalidArgument for files that hold no certificates."""
        self.address = address
        self._now_s = now_s
        if tls is None:
            self._grpc = grpc.insecure_channel(address, options=_OPTIONS)
        else:
            self._grpc = grpc.secure_channel(address, tls.credentials(), options=_OPTIONS)
        self._lock = threading.Lock()
        self._multicallables: dict[str, Any] = {}
        self._stream: CallStream | None = None
        self._has_calls = coalesce
        self._was_reached = False
        self._calls = 0
        self._is_retired = False
        self.is_closed = False

    def close(self) -> None:
        """Ends what is running with Cancelled."""
        with self._lock:
            self.is_closed = True
            stream = self._stream
        if stream is not None:
            stream.close(Failure(Cancelled("the client was closed"), answered=False, sent=True))
        self._grpc.close()

    def retire(self) -> None:
        """No call will be made here any more: close when the last one is done."""
        with self._lock:
            self._is_retired = True
            is_over = not self._calls
        if is_over:
            self.close()

    # --- one request, one reply --------------------------------------------------------------------------------

    def call(self, method: Method, request: bytes, timeout_s: float, is_moved: IsMoved) -> Any:
        """One attempt. Raises Failed, or ValueError where the channel was closed.

        Where no answer came for a while, ``is_moved`` is asked, and if so the attempt is given up.
        """
        with self._lock:
            self._calls += 1
        try:
            if self._was_reached and self._has_calls and len(request) <= REQUEST_BYTES_MAX:
                reply = self._merged(method, request, timeout_s, is_moved)
            else:
                reply = self._beside(method, request, timeout_s, is_moved)
        except grpc.RpcError as error:
            failure = failure_of(error)
        except Failed as failed:
            failure = failed.failure
        else:
            self._was_reached = True
            return reply
        finally:
            self._left()
        # What broke would have to be set up for each call: no stream before the next answer. What is only late, or too
        # much at once, is no reason to go on with calls that cost the server more.
        if failure.answered or isinstance(failure.error, Unavailable):
            self._was_reached = failure.answered
        raise Failed(failure)

    def _left(self) -> None:
        with self._lock:
            self._calls -= 1
            is_over = self._is_retired and not self._calls
        if is_over:
            self.close()

    def _merged(self, method: Method, request: bytes, timeout_s: float, is_moved: IsMoved) -> Any:
        """On the coalescing stream. Raises Failed."""
        stream = self._stream or self._open_calls()
        waiter = stream.submit(method.name, request, timeout_s)
        if not waiter.settled.acquire(timeout=min(timeout_s, SILENCE_S)):
            self._wait(stream, waiter, timeout_s, is_moved)
        if waiter.failure is not None:
            raise Failed(waiter.failure)
        try:
            return method.reply_of(waiter.reply)
        except DecodeError:
            unreadable = Internal(f"the server sent a reply of {method.name} that cannot be read")
            raise Failed(Failure(unreadable, answered=False, sent=True)) from None

    def _wait(self, stream: CallStream, waiter: Waiter, timeout_s: float, is_moved: IsMoved) -> None:
        """Go on waiting for what did not come soon. Raises Failed where it is given up."""
        deadline_s = self._now_s() + timeout_s - SILENCE_S
        waited_s = SILENCE_S
        while True:
            late = self._now_s() >= deadline_s
            if late or is_moved():
                if stream.give_up(waiter):
                    raise Failed(_given_up(self.address, late=late, sent=waiter.is_sent))
                waiter.settled.acquire()
                return
            next_s = max(SILENCE_AGAIN_S, waited_s / 8)
            if waiter.settled.acquire(timeout=max(0.001, min(next_s, deadline_s - self._now_s()))):
                return
            waited_s += next_s

    def _open_calls(self) -> CallStream:
        with self._lock:
            if self._stream is None:
                if self.is_closed:
                    raise ValueError("the channel is closed")
                self._stream = CallStream(self.multicallable(Stubs.calls.Exchange), self._calls_ended)
            return self._stream

    def _calls_ended(self, stream: CallStream, failure: Failure) -> None:
        if isinstance(failure.error, Unsupported | ResourceExhausted):
            self._has_calls = False  # This server has no such stream for us.
        with self._lock:
            if self._stream is stream:
                self._stream = None

    def _beside(self, method: Method, request: bytes, timeout_s: float, is_moved: IsMoved) -> Any:
        """By a call of its own that can be given up. Raises Failed, grpc.RpcError."""
        call = self.multicallable(method).future(request, timeout=timeout_s)
        waited_s, next_s = 0.0, SILENCE_S
        while True:
            try:
                return call.result(timeout=next_s)
            except grpc.FutureTimeoutError:
                if is_moved():
                    call.cancel()
                    raise Failed(_given_up(self.address, late=False, sent=True)) from None
            except grpc.FutureCancelledError:
                raise Failed(Failure(Cancelled("the client was closed"), answered=False, sent=True)) from None
            waited_s += next_s
            next_s = max(SILENCE_AGAIN_S, waited_s / 8)

    # --- streams -----------------------------------------------------------------------------------------------

    @contextmanager
    def stream(self, method: Method, request: bytes | Iterator[bytes]) -> Iterator[Any]:
        """A call with many replies, cancelled at the end. Raises ValueError where the channel was closed."""
        with self._lock:
            self._calls += 1
        try:
            call = self.multicallable(method)(request)
            try:
                yield call
            finally:
                call.cancel()
        finally:
            self._left()

    def ask(self, method: Method, request: bytes, timeout_s: float) -> Any:
        """Begin a call whose ``result()`` is asked for later. Raises ValueError where the channel was closed."""
        return self.multicallable(method).future(request, timeout=timeout_s)

    def multicallable(self, method: Method) -> Any:
        """What gRPC makes of a method: requests are bytes."""
        known = self._multicallables.get(method.name)
        if known is None:
            make = {
                (False, False): self._grpc.unary_unary,
                (False, True): self._grpc.unary_stream,
                (True, True): self._grpc.stream_stream,
            }[method.client_streaming, method.server_streaming]
            deserializer = None if method is Stubs.calls.Exchange else method.reply_of
            known = self._multicallables[method.name] = make(f"/{method.name}", None, deserializer)
        return known


def _given_up(address: str, *, late: bool, sent: bool) -> Failure:
    if late and sent:
        return Failure(DeadlineExceeded(), answered=False, sent=True)
    problem = "the request could not be sent in time" if late else f"{address} is silent, and another node leads"
    return Failure(Unavailable(problem), answered=False, sent=sent)
