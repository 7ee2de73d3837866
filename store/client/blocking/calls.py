"""Calls of threads: one with one reply, and one with many. A thread waits on a lock of the call's own."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

from google.protobuf.message import DecodeError

from cortado.errors import CortadoError, DeadlineExceeded, Internal, Unavailable
from cortado.store.client import forks
from cortado.store.client.authorization import Metadata
from cortado.store.client.blocking.line import Line
from cortado.store.client.link.call import Call
from cortado.store.client.retry import Failed, Failure
from cortado.store.client.runtime import SILENCE_AGAIN_S, SILENCE_S, IsMoved


def signal() -> threading.Lock:
    """Return a lock that a thread waits for, and :func:`give` releases."""
    made = threading.Lock()
    made.acquire()
    return made


def give(lock: threading.Lock) -> None:
    """Release a lock, whether it is held or not."""
    with suppress(RuntimeError):
        lock.release()


class UnaryCall(Call):
    """A call with one reply, which can be given up while it runs."""

    def __init__(self, line: Line, method: str, request: bytes, metadata: Metadata | None, deadline_s: float) -> None:
        super().__init__(method, request, metadata, deadline_s=deadline_s)
        self._line = line
        self._settled = signal()
        self._has_ended = False
        self._listeners: list[Callable[[UnaryCall], None]] = []

    async def wait(self, wait_s: float) -> bool:
        """Wait until it has ended, and no longer than ``wait_s``."""
        return self._has_ended or self._settled.acquire(timeout=wait_s)

    def give_up(self) -> bool:
        """Cancel the call. False if it has ended."""
        return self._line.cancel(self)

    def when_ended(self, tell: Callable[[UnaryCall], None]) -> None:
        """Call ``tell`` once, in any thread."""
        self._listeners.append(tell)
        if self._has_ended:
            self._tell_listeners()

    def tell(self) -> None:
        """Wake the caller if the call is over."""
        if self.is_over:
            self._has_ended = True
            give(self._settled)
            self._tell_listeners()

    def _tell_listeners(self) -> None:
        with suppress(IndexError):
            while True:
                self._listeners.pop()(self)


class ReplyStream(Call):
    """A call with many replies, each wait for one bounded by ``timeout_s``."""

    def __init__(
        self,
        line: Line,
        method: str,
        request: bytes | None,
        reply_of: Callable[[bytes], Any] | None,
        metadata: Metadata | None,
        timeout_s: float,
        is_moved: IsMoved,
    ) -> None:
        super().__init__(method, request, metadata, is_eager=False)
        self._line = line
        self._reply_of = reply_of
        self._timeout_s = timeout_s
        self._is_moved = is_moved
        self._outbox: deque[bytes] = deque()
        self._news = signal()
        self._now_s = line.now_s

    def send(self, message: bytes) -> None:
        """Put a message in line."""
        self._outbox.append(message)
        self._line.do(self._send)

    def _send(self) -> None:
        while self._outbox and self._line.link.has_room(self):
            self._line.link.send(self, self._outbox.popleft())

    def tell(self) -> None:
        """Send the waiting messages, and wake the reader."""
        if self._outbox:
            self._line.do(self._send)
        give(self._news)

    async def receive(self) -> Any:
        """Return the next reply, None at the end. Raises Failed, Unsupported in a process that was forked meanwhile."""
        forks.check()
        began_s, look_s = self._now_s(), min(SILENCE_S, self._timeout_s)
        while True:
            message, is_over, failure = self._line.do(self._read)
            if message is not None:
                return self._parsed(message)
            if failure is not None:
                raise Failed(failure)
            if is_over:
                return None
            waited_s = self._now_s() - began_s
            if waited_s >= self._timeout_s:
                self._give_up(DeadlineExceeded(timeout_ms=round(self._timeout_s * 1000)))
            elif waited_s < look_s:
                self._news.acquire(timeout=look_s - waited_s)
            elif await self._is_moved():
                self._give_up(Unavailable("the node is silent, and another leads"))
            else:
                look_s = min(waited_s + max(SILENCE_AGAIN_S, waited_s / 8), self._timeout_s)

    def _read(self) -> tuple[bytes | None, bool, Failure | None]:
        message = self._line.link.read(self)
        return message, self.is_over, self.failure

    def _give_up(self, error: CortadoError) -> None:
        """End the call with ``error``, if it does not end at this moment. Raises Failed."""
        if self._line.cancel(self):
            raise Failed(Failure(error, answered=False, sent=True))

    def _parsed(self, message: bytes) -> Any:
        try:
            return message if self._reply_of is None else self._reply_of(message)
        except DecodeError:
            unreadable = Internal(f"the server sent a reply of {self.path} that cannot be read")
            raise Failed(Failure(unreadable, answered=False, sent=True)) from None

    def close(self) -> None:
        """Cancel the call, unless it has ended. The I/O thread does it: the caller may be the collector of garbage, in
        a thread that has the line's lock."""
        if not forks.is_cut_off():
            if not self.is_over:
                self._line.do_later(partial(self._line.link.cancel, self))
            give(self._news)
