"""Cancels a stream on which nothing arrives.

A stream may rightly last for hours, so a deadline over the whole of it says nothing; what a caller wants to bound is
the wait for the *next* message. gRPC's blocking iterators have no such timeout, and a timer per message would be a
thread per message. So one daemon thread watches all of a connection's streams and wakes at the earliest deadline only;
a stream that moves on costs a lock and two attribute writes a message.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Final

_NEVER: Final = float("inf")


class Watch:
    """One stream's bound. ``fired`` is true once the stream was cancelled for being silent."""

    def __init__(self, watchdog: Watchdog, cancel: Callable[[], object], timeout_s: float) -> None:
        self._watchdog = watchdog
        self._cancel = cancel
        self._timeout_s = timeout_s
        self.deadline_s = _NEVER
        self.fired = False

    def __enter__(self) -> None:
        """The caller begins to wait for a message."""
        self._watchdog.wait_until(self, self._watchdog.now_s() + self._timeout_s)

    def __exit__(self, *_: object) -> None:
        """The message came, or the stream ended."""
        self.deadline_s = _NEVER

    def fire(self) -> None:
        self.fired = True
        self.deadline_s = _NEVER
        self._cancel()

    def close(self) -> None:
        self._watchdog.forget(self)


class Watchdog:
    """The watching thread; it starts with the first stream, and sleeps while no stream waits."""

    def __init__(self, now_s: Callable[[], float]) -> None:
        self.now_s = now_s
        self._condition = threading.Condition()
        self._watches: set[Watch] = set()
        self._wake_s = _NEVER
        self._thread: threading.Thread | None = None
        self._closed = False

    def watch(self, cancel: Callable[[], object], timeout_s: float) -> Watch:
        """A watch that calls ``cancel`` when one wait takes longer than ``timeout_s``. Use it as ``with watch:``."""
        watch = Watch(self, cancel, timeout_s)
        with self._condition:
            self._watches.add(watch)
            if self._thread is None and not self._closed:
                self._thread = threading.Thread(target=self._run, name="cortado-watchdog", daemon=True)
                self._thread.start()
        return watch

    def forget(self, watch: Watch) -> None:
        with self._condition:
            self._watches.discard(watch)

    def wait_until(self, watch: Watch, deadline_s: float) -> None:
        with self._condition:
            watch.deadline_s = deadline_s
            if deadline_s < self._wake_s:
                self._wake_s = deadline_s
                self._condition.notify()

    def close(self) -> None:
        with self._condition:
            self._closed = True
            self._condition.notify()
            thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join()

    def _run(self) -> None:
        while True:
            with self._condition:
                if self._closed:
                    return
                now_s = self.now_s()
                late = [watch for watch in self._watches if watch.deadline_s <= now_s]
                if not late:
                    self._wake_s = min((watch.deadline_s for watch in self._watches), default=_NEVER)
                    self._condition.wait(None if self._wake_s == _NEVER else self._wake_s - now_s)
                    continue
            for watch in late:
                watch.fire()
