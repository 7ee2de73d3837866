"""The coalescing stream of threads: each waits for its outcome on a lock of its own, which is released once.

Two threads serve a stream, beside the callers': gRPC's, which takes messages to send, and one that reads replies. They
end with it. :mod:`cortado.store.client.call_queue` decides which calls are sent and bounds them.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any, Final, TypeAlias

import grpc

from cortado.errors import Internal
from cortado.store.client import call_queue
from cortado.store.client.authorization import NOBODYS, Authorization
from cortado.store.client.call_queue import ENDED_BY_SERVER, ENDED_IDLE, CallQueue, Waiter
from cortado.store.client.retry import Failure, failure_of

CLOSE_S: Final = 2.0
"""How long closing waits for each thread of a stream, which ends as soon as gRPC has cancelled it."""

OpenStream: TypeAlias = Callable[[Iterator[bytes]], Any]


class SendingThread:
    """gRPC's thread that takes a stream's messages, known so that closing can wait for it.

    Such a thread is a daemon. If the interpreter ends while the thread holds the call's lock, it holds it for ever: the
    call, which takes that lock when it is collected, would keep the process from ending.
    """

    def __init__(self) -> None:
        self._begun = threading.Event()
        self._thread: threading.Thread | None = None

    def takes(self, messages: Iterator[bytes]) -> Iterator[bytes]:
        """Yield ``messages``, for gRPC."""
        self._thread = threading.current_thread()
        self._begun.set()
        yield from messages

    def join(self) -> None:
        """Return when it has ended, after :data:`CLOSE_S` at the latest. The stream was cancelled."""
        if self._begun.wait(CLOSE_S) and self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(CLOSE_S)


class ThreadWaiter(Waiter):
    """A call whose thread sleeps on ``settled``, a lock that is released when its outcome is there."""

    __slots__ = ("_stream", "settled")

    def __init__(self, stream: CallStream, call_id: int, encoded: bytes) -> None:
        super().__init__(call_id, encoded)
        self._stream = stream
        self.settled = threading.Lock()
        self.settled.acquire()

    async def wait(self, wait_s: float) -> bool:
        return self.has_ended or self.settled.acquire(timeout=wait_s)

    def give_up(self) -> bool:
        return self._stream.give_up(self)

    def wake(self) -> None:
        self.has_ended = True
        self.settled.release()


class CallStream:
    """One stream, opened at once. ``open_stream`` takes the messages to send and gives those that come."""

    def __init__(
        self,
        open_stream: OpenStream,
        on_end: Callable[[CallStream, Failure], None],
        authorization: Authorization = NOBODYS,
    ) -> None:
        self._on_end = on_end
        self._lock = threading.Lock()
        self._calls: CallQueue[ThreadWaiter] = CallQueue(authorization)
        self._is_sender_asleep = False
        self._wake_sender = threading.Lock()
        self._wake_sender.acquire()
        self._sending = SendingThread()
        self._call = open_stream(self._sending.takes(self._messages()))
        self._reader = threading.Thread(target=self._read, name="cortado-replies", daemon=True)
        self._reader.start()

    # --- callers' threads --------------------------------------------------------------------------------------

    def submit(self, method: str, request: bytes, timeout_s: float) -> ThreadWaiter:
        """Put a call in line. Raises Failed if the stream is full or over; nothing was sent then."""
        waiter = ThreadWaiter(self, *self._calls.encode(method, request, timeout_s))
        with self._lock:
            self._calls.add(waiter)
            wakes, self._is_sender_asleep = self._is_sender_asleep, False
        if wakes:
            self._wake_sender.release()
        return waiter

    def give_up(self, waiter: ThreadWaiter) -> bool:
        """Give up the call: the server need not work on it. False if the outcome came just now."""
        with self._lock:
            if not self._calls.remove(waiter):
                return False
            wakes = self._is_sender_asleep and waiter.is_sent
            self._is_sender_asleep = self._is_sender_asleep and not wakes
        if wakes:
            self._wake_sender.release()
        return True

    def close(self, failure: Failure) -> None:
        """End the stream, and every call on it with ``failure``; its threads are gone then."""
        self._end(failure)
        self._call.cancel()
        if self._reader is not threading.current_thread():
            self._reader.join(CLOSE_S)
        self._sending.join()

    # --- gRPC's sending thread ---------------------------------------------------------------------------------

    def _messages(self) -> Iterator[bytes]:
        while True:
            with self._lock:
                message = self._calls.take()
                self._is_sender_asleep = not message
                if self._calls.ended is not None:
                    return
            if message:
                yield message
            elif not self._wake_sender.acquire(timeout=call_queue.IDLE_S) and self._is_idle():
                return

    def _is_idle(self) -> bool:
        with self._lock:
            if not self._is_sender_asleep:
                # A caller woke us at this moment.
                self._wake_sender.acquire()
                return False
            if self._calls.in_flight:
                return False
            # The next caller opens another stream.
            self._calls.ended = ENDED_IDLE
            return True

    # --- the reading thread ------------------------------------------------------------------------------------

    def _read(self) -> None:
        try:
            for message in self._call:
                self._settle(message)
            failure = ENDED_BY_SERVER
        except grpc.RpcError as error:
            failure = failure_of(error)
        except Exception as defect:
            failure = Failure(Internal(f"reading replies: {defect!r}"), answered=False, sent=True)
            self._call.cancel()
        self._end(failure)

    def _settle(self, message: bytes) -> None:
        settled = self._calls.settle(message)
        with self._lock:
            self._calls.free(settled)
        for waiter in settled:
            waiter.wake()

    def _end(self, failure: Failure) -> None:
        with self._lock:
            left = self._calls.end(failure)
            wakes, self._is_sender_asleep = self._is_sender_asleep, False
        if wakes:
            self._wake_sender.release()
        self._on_end(self, failure)
        for waiter in left:
            waiter.wake()
