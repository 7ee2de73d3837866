"""One address: how an attempt of a call is made there.

::

    most calls .................. the coalescing stream, once the address has answered at all
    the others .................. a gRPC call of their own

The stream is the better way for a caller that is alone, too: measured, its answers come a quarter sooner, since a
message on a stream costs the server less than a call. A caller that hears nothing for a while looks around
(:mod:`cortado.store.client.leader_search`) and goes on waiting for the same answer, unless another node leads: to ask a
slow node twice would make it slower, and leave behind an attempt with an unknown outcome.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from google.protobuf.message import DecodeError

from cortado.errors import Cancelled, DeadlineExceeded, Internal, ResourceExhausted, Unavailable, Unsupported
from cortado.store.client.authorization import Authorization
from cortado.store.client.call_queue import REQUEST_BYTES_MAX
from cortado.store.client.endpoints import Tls
from cortado.store.client.retry import Failed, Failure
from cortado.store.client.runtime import (
    SILENCE_AGAIN_S,
    SILENCE_S,
    Calls,
    IsMoved,
    Pending,
    Question,
    Runtime,
    Stream,
    WireClosed,
)
from cortado.store.client.stubs import Method


class Begun(NamedTuple):
    """An attempt that was begun to take ``timeout_s``, and waited for, and that has no plain reply."""

    channel: Channel
    pending: Pending
    timeout_s: float


class Channel:
    """The way to ``address``, which stands when it is first used, and again when it breaks. For many callers."""

    def __init__(
        self, address: str, tls: Tls | None, authorization: Authorization, runtime: Runtime, *, coalesce: bool
    ) -> None:
        """Raises InvalidArgument for files that hold no certificates, and for a token that would go unencrypted."""
        authorization.check_goes_to(address, is_encrypted=tls is not None)
        self.address = address
        self._runtime = runtime
        self._now_s = runtime.environment.monotonic_s
        self._wire = runtime.wire(address, tls, authorization)
        self._lock = threading.Lock()
        self._merged: Calls | None = None
        self._merges = coalesce
        self._was_reached = False
        self._calls = 0
        self._is_retired = False
        self.is_closed = False

    async def close(self) -> None:
        """End running calls with Cancelled."""
        with self._lock:
            self.is_closed = True
            merged = self._merged
        if merged is not None:
            merged.close(Failure(Cancelled("the client was closed"), answered=False, sent=True))
        await self._wire.close()

    def retire(self) -> None:
        """Retire the channel, which gets no new call: close it when the last call is done."""
        with self._lock:
            self._is_retired = True
            is_over = not self._calls
        if is_over:
            self._runtime.beside(self.close())

    # --- one request, one reply --------------------------------------------------------------------------------

    def begin(self, method: Method, request: bytes, timeout_s: float) -> Pending | None:
        """Begin an attempt on the stream that is open; None if that can't be: nothing was sent then.

        Its caller ends it by :meth:`answered`, by :meth:`give_up`, or by :meth:`call` with any other outcome.
        """
        merged = self._merged
        if merged is None or not self._was_reached or len(request) > REQUEST_BYTES_MAX:
            return None
        with self._lock:
            # Before it is in line, or a channel that retires at this moment would end it.
            self._calls += 1
        try:
            return merged.submit(method.name, request, timeout_s)
        except Failed:
            self._left()
            return None

    def answered(self) -> None:
        """Note that a call that was begun has its reply."""
        self._was_reached = True
        self._left()

    def give_up(self, begun: Pending) -> None:
        """Give up an attempt that was begun."""
        begun.give_up()
        self._left()

    async def call(
        self, method: Method, request: bytes, timeout_s: float, is_moved: IsMoved, begun: Pending | None = None
    ) -> Any:
        """Make one attempt, or wait for the rest of one that was ``begun``. Raises Failed, or WireClosed.

        After a silence it asks ``is_moved``, and gives the attempt up if another node leads.
        """
        if begun is None:
            with self._lock:
                self._calls += 1
        try:
            pending = begun or self._start(method, request, timeout_s)
            first_s = min(timeout_s, SILENCE_S) if begun is None else 0.0
            reply = method.reply_of(await self._outcome(pending, timeout_s, first_s, is_moved))
        except DecodeError:
            unreadable = Internal(f"the server sent a reply of {method.name} that cannot be read")
            failure = Failure(unreadable, answered=False, sent=True)
        except Failed as failed:
            failure = failed.failure
        else:
            self._was_reached = True
            return reply
        finally:
            self._left()
        # After a break each call would have to set up the stream: no stream before the next answer. A late answer, or
        # an overload, is no reason to go on with calls that cost the server more.
        if failure.answered or isinstance(failure.error, Unavailable):
            self._was_reached = failure.answered
        raise Failed(failure)

    def _start(self, method: Method, request: bytes, timeout_s: float) -> Pending:
        """Begin an attempt. Raises Failed, or WireClosed."""
        if self._was_reached and self._merges and len(request) <= REQUEST_BYTES_MAX:
            return (self._merged or self._open_calls()).submit(method.name, request, timeout_s)
        return self._wire.begin(method, request, timeout_s)

    async def _outcome(self, pending: Pending, timeout_s: float, first_s: float, is_moved: IsMoved) -> bytes:
        """Return the encoded reply. Raises Failed."""
        try:
            if not await pending.wait(first_s):
                await self._go_on_waiting(pending, timeout_s, is_moved)
        except BaseException:
            # Its caller gives up, or was interrupted or cancelled.
            pending.give_up()
            raise
        return pending.outcome()

    async def _go_on_waiting(self, pending: Pending, timeout_s: float, is_moved: IsMoved) -> None:
        """Go on waiting for a late reply. Raises Failed if the attempt is given up."""
        deadline_s = self._now_s() + timeout_s - SILENCE_S
        waited_s = SILENCE_S
        while True:
            late = self._now_s() >= deadline_s
            if late or await is_moved():
                if pending.give_up():
                    raise Failed(_given_up(self.address, late=late, sent=pending.is_sent))
                while not await pending.wait(SILENCE_S):
                    pass
                return
            next_s = max(SILENCE_AGAIN_S, waited_s / 8)
            if await pending.wait(max(0.001, min(next_s, deadline_s - self._now_s()))):
                return
            waited_s += next_s

    def _open_calls(self) -> Calls:
        with self._lock:
            if self._merged is None:
                if self.is_closed:
                    raise WireClosed
                self._merged = self._wire.open_calls(self._calls_ended)
            return self._merged

    def _calls_ended(self, stream: Calls, failure: Failure) -> None:
        if isinstance(failure.error, Unsupported | ResourceExhausted):
            self._merges = False  # This server has no such stream for us.
        with self._lock:
            if self._merged is stream:
                self._merged = None

    def ask(self, method: Method, request: bytes, timeout_s: float) -> Question:
        """Begin a call; the caller asks for its outcome later. Raises WireClosed."""
        return self._wire.begin(method, request, timeout_s)

    # --- streams -----------------------------------------------------------------------------------------------

    @contextmanager
    def stream(self, method: Method, request: bytes | None, timeout_s: float, is_moved: IsMoved) -> Iterator[Stream]:
        """Open a call with many replies, cancelled at the end. Raises WireClosed."""
        with self._lock:
            self._calls += 1
        try:
            stream = self._wire.open_stream(method, request, timeout_s, is_moved)
            try:
                yield stream
            finally:
                stream.close()
        finally:
            self._left()

    def _left(self) -> None:
        with self._lock:
            self._calls -= 1
            is_over = self._is_retired and not self._calls
        if is_over:
            self._runtime.beside(self.close())


def _given_up(address: str, *, late: bool, sent: bool) -> Failure:
    if late and sent:
        return Failure(DeadlineExceeded(), answered=False, sent=True)
    problem = "the request could not be sent in time" if late else f"{address} is silent, and another node leads"
    return Failure(Unavailable(problem), answered=False, sent=sent)


async def stays() -> bool:
    """Return False: the call is meant for its address, whichever node leads."""
    return False
