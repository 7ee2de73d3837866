"""Cancels a stream on which nothing arrives.

A stream may rightly last for hours, so a deadline over the whole of it says nothing; callers need a bound of the wait
for the *next* message. gRPC's blocking iterators have no such timeout, and a timer per message would be a thread per
message. So one daemon thread watches all of a connection's streams and wakes at the earliest bound only; a stream that
moves on costs a lock and a few attribute writes a message.

Well before a wait is too long, the thread asks from time to time whether there is a better node. If there is, it
cancels the stream. That question takes a moment, during which other streams may overrun their bound by as much.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Final

from cortado.store.client.runtime import SILENCE_AGAIN_S, SILENCE_S

_NEVER: Final = float("inf")


class Watch:
    """One stream's bound. Once the stream was cancelled, ``is_late`` or ``is_moved`` says why."""

    def __init__(
        self, watchdog: Watchdog, cancel: Callable[[], object], timeout_s: float, moved: Callable[[], bool]
    ) -> None:
        self._watchdog = watchdog
        self._cancel = cancel
        self._moved = moved
        self.timeout_s = timeout_s
        self.began_s = 0.0
        self.deadline_s = _NEVER
        self.look_s = _NEVER
        self.is_late = False
        self.is_moved = False

    def __enter__(self) -> None:
        """Begin the caller's wait for a message."""
        self._watchdog.begin(self, self._watchdog.now_s())

    def __exit__(self, *_: object) -> None:
        """End the wait: the message came, or the stream ended."""
        self.deadline_s = self.look_s = _NEVER

    @property
    def due_s(self) -> float:
        return min(self.deadline_s, self.look_s)

    def look(self, now_s: float) -> None:
        """Note that the moment has come: too late, or time to look around."""
        if self.deadline_s <= now_s:
            self.is_late = True
        else:
            self.look_s = now_s + max(SILENCE_AGAIN_S, (now_s - self.began_s) / 8)
            if not self._moved() or self.deadline_s == _NEVER:
                return
            self.is_moved = True
        self.deadline_s = self.look_s = _NEVER
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

    def watch(self, cancel: Callable[[], object], timeout_s: float, moved: Callable[[], bool]) -> Watch:
        """Return a watch that calls ``cancel`` when one wait takes longer than ``timeout_s``, or takes a while and
        ``moved`` says that there is no use in it. Use it as ``with watch:``."""
        watch = Watch(self, cancel, timeout_s, moved)
        with self._condition:
            self._watches.add(watch)
            if self._thread is None and not self._closed:
                self._thread = threading.Thread(target=self._run, name="cortado-watchdog", daemon=True)
                self._thread.start()
        return watch

    def forget(self, watch: Watch) -> None:
        with self._condition:
            self._watches.discard(watch)

    def begin(self, watch: Watch, now_s: float) -> None:
        with self._condition:
            watch.began_s = now_s
            watch.deadline_s = now_s + watch.timeout_s
            watch.look_s = now_s + SILENCE_S
            if watch.due_s < self._wake_s:
                self._wake_s = watch.due_s
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
                due = [watch for watch in self._watches if watch.due_s <= now_s]
                if not due:
                    self._wake_s = min((watch.due_s for watch in self._watches), default=_NEVER)
                    self._condition.wait(None if self._wake_s == _NEVER else self._wake_s - now_s)
                    continue
            for watch in due:
                watch.look(now_s)
