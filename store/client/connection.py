"""One endpoint: its channel, and how a call on it is made, repeated and ended.

Every unary call of the client goes through :meth:`Connection.call` and every stream of replies through
:meth:`Connection.replies`; :mod:`cortado.store.client.retry` decides what a failed attempt leads to. So no
``grpc.RpcError`` leaves this file (and :mod:`cortado.store.client.bulk`, which holds the one stream that goes both
ways), and every header is seen in one place: its cluster id tells when another cluster answers, whose schemas and
tables are not those in the caches. The timestamps of writes keep request ids recent.

All of it may be called from many threads.
"""

from __future__ import annotations

import os
import random
import re
import threading
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import Any, Final

import grpc

from cortado.errors import Cancelled, DeadlineExceeded, InvalidArgument, Unavailable
from cortado.proto.v1 import cluster_pb2, common_pb2
from cortado.store.client.arguments import text
from cortado.store.client.request_ids import RequestIds
from cortado.store.client.retry import Attempts, Failure, failure_of
from cortado.store.client.stubs import Method, Stubs
from cortado.store.client.values import timestamp_of
from cortado.store.client.watchdog import Watchdog

CONNECT_TIMEOUT_S: Final = 3.0
TIMEOUT_S_MAX: Final = 24 * 3600.0

_ENDPOINT = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+):([0-9]{1,5})")

_CHANNEL_OPTIONS: Final = [
    # The server bounds what it takes, and a scan's replies are bounded by the server too.
    ("grpc.max_send_message_length", -1),
    ("grpc.max_receive_message_length", -1),
    # The core would wait a second and more before it connects again; our own backoff decides that.
    ("grpc.initial_reconnect_backoff_ms", 50),
    ("grpc.min_reconnect_backoff_ms", 50),
    ("grpc.max_reconnect_backoff_ms", 500),
    # Two clients of a process are two connections.
    ("grpc.use_local_subchannel_pool", 1),
]


@dataclass(frozen=True, slots=True)
class Environment:
    """Time and chance, as a connection takes them in."""

    monotonic_s: Callable[[], float] = time.monotonic
    sleep_s: Callable[[float], None] = time.sleep
    random: Callable[[], float] = random.random
    random_bytes: Callable[[int], bytes] = os.urandom


class Connection:
    """A channel to ``endpoint`` (``host:port``). Raises InvalidArgument for an endpoint of another shape."""

    def __init__(self, endpoint: str, *, environment: Environment | None = None) -> None:
        self.endpoint = check_endpoint(endpoint)
        self.environment = environment or Environment()
        self.request_ids = RequestIds(
            monotonic_s=self.environment.monotonic_s, random_bytes=self.environment.random_bytes
        )
        self.watchdog = Watchdog(self.environment.monotonic_s)
        self.on_other_cluster: list[Callable[[], None]] = []
        self._lock = threading.Lock()
        self._cluster_id = ""
        self._reached = False
        self._closed = False
        self._channel = grpc.insecure_channel(endpoint, options=_CHANNEL_OPTIONS)
        self.stubs = Stubs(self._channel)

    def close(self) -> None:
        """Ends what is running with Cancelled. May be called again."""
        with self._lock:
            self._closed = True
        self._channel.close()
        self.watchdog.close()

    # --- one request, one reply ------------------------------------------------------------------------------

    def call(self, method: Method, request: Any, *, timeout_s: float) -> Any:
        """The reply to ``request``, which is repeated while that is safe and ``timeout_s`` allows it.

        A request with a ``request_id`` is a write. Raises what the server refused with, Unavailable, DeadlineExceeded
        (reads) or OutcomeUnknown (writes).
        """
        attempts = self.attempts(getattr(request, "request_id", b""), timeout_s)
        while True:
            left_s = attempts.deadline_s - self.environment.monotonic_s()
            try:
                reply = self._attempt(method, request, max(left_s, 0.001))
            except grpc.RpcError as error:
                failure = failure_of(error)
            else:
                self.observe(reply.header)
                if attempts.request_id:
                    self.request_ids.observe(timestamp_of(reply.header.timestamp), attempts.started_s)
                return reply
            # Outside of the handler, so that gRPC's error is not the context of ours.
            self.rest_after(attempts, failure)

    def write(self, method: Method, request: Any, *, timeout_s: float) -> Any:
        """As :meth:`call`, under a new request id."""
        request.request_id = self.new_request_id(timeout_s)
        return self.call(method, request, timeout_s=timeout_s)

    def _attempt(self, method: Method, request: Any, timeout_s: float | None) -> Any:
        self.check_open()
        try:
            return method(request, timeout=timeout_s)
        except ValueError as error:
            raise self._closed_meanwhile() from error

    def new_request_id(self, timeout_s: float) -> bytes:
        """An id for one write; asks for the server's clock where no reply was seen recently."""
        if not self.request_ids.is_recent:
            asked_s = self.environment.monotonic_s()
            clock = self.call(self.stubs.cluster.Clock, cluster_pb2.ClockRequest(), timeout_s=timeout_s)
            self.request_ids.observe(timestamp_of(clock.now), asked_s)
        return self.request_ids.new()

    # --- one request, many replies ---------------------------------------------------------------------------

    def replies(self, method: Method, request: Any, *, timeout_s: float) -> Iterator[Any]:
        """The replies of a scan, which goes on where it was when its stream breaks.

        ``request`` has a ``page_token``, each reply a ``next_page_token`` from which the same request goes on, at the
        same timestamp; only the last reply has none. ``timeout_s`` bounds the wait for each reply. Closing the iterator
        stops the server's work.
        """
        attempts = self.attempts(b"", timeout_s)
        resumable = "page_token" in request.DESCRIPTOR.fields_by_name
        started = False
        while True:
            try:
                with closing(self._stream(method, request, timeout_s)) as stream:
                    for reply in stream:
                        started = True
                        yield reply
                        attempts = self.attempts(b"", timeout_s)
                        if resumable:
                            if not reply.next_page_token:
                                # The end, whatever becomes of the stream: to go on would be to repeat this reply.
                                return
                            request.page_token = reply.next_page_token
                if not resumable:
                    return
                failure = Failure(Unavailable("the stream ended before the scan did"), answered=False, sent=True)
            except grpc.RpcError as error:
                failure = failure_of(error)
            if started and not resumable:
                raise failure.error
            self.rest_after(attempts, failure)

    def _stream(self, method: Method, request: Any, timeout_s: float) -> Generator[Any, None, None]:
        call = self._attempt(method, request, None)
        watch = self.watchdog.watch(call.cancel, timeout_s)
        try:
            while True:
                try:
                    with watch:
                        reply = next(call)
                except StopIteration:
                    return
                except grpc.RpcError:
                    if watch.fired:
                        raise DeadlineExceeded(timeout_ms=round(timeout_s * 1000)) from None
                    raise
                self.observe(reply.header)
                yield reply
        finally:
            watch.close()
            call.cancel()

    # --- what all of them share ------------------------------------------------------------------------------

    def attempts(self, request_id: bytes, timeout_s: float) -> Attempts:
        """The bookkeeping of a call that begins now."""
        now_s = self.environment.monotonic_s()
        connect_deadline_s = None if self._reached else now_s + CONNECT_TIMEOUT_S
        return Attempts(request_id, now_s, timeout_s, self.environment.random, connect_deadline_s)

    def rest_after(self, attempts: Attempts, failure: Failure) -> None:
        """Waits until the next attempt may be made. Raises how the call ends, where there is none."""
        if failure.answered:
            self._reached = True
        if self._closed:
            failure = Failure(self._closed_meanwhile(), answered=False, sent=failure.sent)
        error = failure.error
        if isinstance(error, Unavailable) and not failure.answered:
            error.problem = f"cannot reach {self.endpoint}: {error.problem}"
        self.environment.sleep_s(attempts.delay_after(failure, self.environment.monotonic_s()))

    def observe(self, header: common_pb2.Header) -> None:
        """A reply came: notice another cluster behind the same address."""
        self._reached = True
        if header.cluster_id != self._cluster_id and header.cluster_id:
            with self._lock:
                changed = bool(self._cluster_id) and header.cluster_id != self._cluster_id
                self._cluster_id = header.cluster_id
            if changed:
                self.request_ids.forget()
                for forget in self.on_other_cluster:
                    forget()

    def check_open(self) -> None:
        """Raises Cancelled once the client was closed."""
        if self._closed:
            raise self._closed_meanwhile()

    def _closed_meanwhile(self) -> Cancelled:
        return Cancelled(problem=f"the client of {self.endpoint} was closed")


def check_endpoint(endpoint: str) -> str:
    """``endpoint``, where it looks like ``host:port``. Raises InvalidArgument."""
    match = _ENDPOINT.fullmatch(text(endpoint, "endpoint"))
    if match is None or not 0 < int(match[2]) < 65536:
        raise InvalidArgument("endpoint", "must look like host:port, such as 127.0.0.1:7621", endpoint)
    return endpoint


def check_timeout(timeout_s: float) -> float:
    """``timeout_s``, where it is above 0 and at most a day. Raises InvalidArgument."""
    is_number = isinstance(timeout_s, int | float) and not isinstance(timeout_s, bool)
    if not is_number or not 0 < timeout_s <= TIMEOUT_S_MAX:
        raise InvalidArgument("timeout_s", f"must be above 0 and at most {TIMEOUT_S_MAX:.0f} seconds", str(timeout_s))
    return float(timeout_s)
