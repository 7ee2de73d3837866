"""The I/O thread of one client: it connects, reads, finishes writes, and looks at the time, for all connections.

::

    callers' threads ── write at once ──────────────────► sockets
                     ◄─ are woken ── the I/O thread ◄──── sockets, timers, posted work

It begins with the first connection, and ends with the client. Callers wake it for a new connection, for a socket that
takes no more, and for an earlier time to look.
"""

from __future__ import annotations

import logging
import math
import selectors
import socket
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Final, Protocol

CLOSE_S: Final = 2.0
"""How long closing waits for the thread, which does nothing that takes long."""
_LOG: Final = logging.getLogger(__name__)


class Watched(Protocol):
    """A connection, as the thread sees it."""

    @property
    def look_s(self) -> float:
        """When :meth:`look` is to be called."""
        ...

    def look(self) -> None: ...

    def failed(self, defect: Exception) -> None:
        """End, since a callback of this connection raised an error."""
        ...

    def let_go(self) -> None:
        """Close the socket."""
        ...


class IoThread:
    """``now_s`` is a monotonic clock. Only the thread itself uses ``selector`` and ``watched``."""

    def __init__(self, now_s: Callable[[], float]) -> None:
        self.now_s = now_s
        self.watched: set[Watched] = set()
        self._lock = threading.RLock()
        """Taken again by a thread that has it, when it collects garbage that posts work."""
        self._thread: threading.Thread | None = None
        self._is_closed = False
        self._posted: deque[Callable[[], object]] = deque()
        self._look_s = math.inf
        self._is_awake = False
        """The thread looks at posted work before it sleeps."""

    def post(self, work: Callable[[], object]) -> None:
        """Run ``work`` in the thread, which begins if this is the first. Once it has ended, nothing is left to do."""
        with self._lock:
            if self._is_closed:
                return
            self._posted.append(work)
            is_awake = self._is_awake
            if self._thread is None:
                self.selector = selectors.DefaultSelector()
                self._waking, self._woken = socket.socketpair()
                self._waking.setblocking(False)
                self._woken.setblocking(False)
                self._thread = threading.Thread(target=self._run, name="cortado-io", daemon=True)
                self._thread.start()
        if not is_awake:
            self._wake()

    def look_at(self, time_s: float) -> None:
        """Look at the connections at ``time_s``, if not before."""
        if time_s < self._look_s and threading.current_thread() is not self._thread:
            self._wake()

    def close(self) -> None:
        """End the thread, and all sockets. May be called again."""
        with self._lock:
            self._is_closed = True
            thread = self._thread
        if thread is not None:
            self._wake()
            if thread is not threading.current_thread():
                thread.join(CLOSE_S)

    def _wake(self) -> None:
        # If there is no room, it is awake; if it is closed, it has ended.
        with suppress(OSError):
            self._waking.send(b"\0")

    # --- the thread --------------------------------------------------------------------------------------------

    def _run(self) -> None:
        self.selector.register(self._woken, selectors.EVENT_READ)
        try:
            while not self._is_closed:
                self._step()
        finally:
            self._do_posted()
            for each in list(self.watched):
                each.let_go()
            self.selector.close()
            self._waking.close()
            self._woken.close()

    def _step(self) -> None:
        self._do_posted()
        self._is_awake = False
        self._do_posted()
        # In this order: callers who bring a time forward meanwhile wake the thread.
        self._look_s = math.inf
        self._look_s = look_s = min((each.look_s for each in self.watched), default=math.inf)
        wait_s = None if look_s == math.inf else max(0.0, look_s - self.now_s())
        ready = self.selector.select(wait_s)
        self._is_awake = True
        for key, mask in ready:
            if key.data is None:
                with suppress(BlockingIOError):
                    self._woken.recv(4_096)
                continue
            line, on_ready = key.data
            try:
                on_ready(mask)
            except Exception as defect:
                _LOG.exception("a connection failed")
                line.failed(defect)
        now_s = self.now_s()
        for each in [each for each in self.watched if each.look_s <= now_s]:
            each.look()

    def _do_posted(self) -> None:
        while self._posted:
            self._posted.popleft()()
