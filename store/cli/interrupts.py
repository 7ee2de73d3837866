"""Ctrl-C while a command waits for a server: the command ends, and does not hang.

Python raises KeyboardInterrupt between any two steps of the main thread. One such place keeps a lock for ever: within
``Condition.__enter__``, behind the step that has taken the lock, and before the ``with`` of the caller knows of it.
gRPC's threads and the main thread meet at such conditions, so an interrupt falls there often: the main thread waits for
the lock when it comes. The next call to gRPC, which cancels what is open, would then wait for a thread that waits for
that lock.

There the interrupt is put off for some milliseconds, again and again, and raised where the main thread stands next.
"""

from __future__ import annotations

import signal
import threading
from types import CodeType, FrameType
from typing import Final

_LATER_S: Final = 0.002
_TIMES_MAX: Final = 1_000
"""After this many, Ctrl-C ends the command, also within such a wait."""
_WITHIN_A_LOCK: Final[set[CodeType]] = {threading.Condition.__enter__.__code__, threading.Condition.__exit__.__code__}


class _Interrupt:
    """The handler of Ctrl-C in the main thread."""

    def __init__(self) -> None:
        self._times = 0

    def __call__(self, _number: int, frame: FrameType | None) -> None:
        if frame is not None and frame.f_code in _WITHIN_A_LOCK and self._times < _TIMES_MAX:
            self._times += 1
            signal.signal(signal.SIGALRM, self)
            signal.setitimer(signal.ITIMER_REAL, _LATER_S)
            return
        self._times = 0
        raise KeyboardInterrupt


def interrupt_between_locks() -> None:
    """Use this handler from here on, in the main thread, if Ctrl-C raises KeyboardInterrupt at once."""
    if threading.current_thread() is threading.main_thread():
        current = signal.getsignal(signal.SIGINT)
        if current is signal.default_int_handler:
            signal.signal(signal.SIGINT, _Interrupt())
