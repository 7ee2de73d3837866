"""Commands that run until the user ends them: after Ctrl-C or SIGTERM they finish their current step."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event
from types import FrameType


@contextmanager
def stopped_by_signals() -> Iterator[Event]:
    """Yield an event that the first SIGINT or SIGTERM sets. A second one ends the command as it always does."""
    stop, ends = Event(), (signal.SIGINT, signal.SIGTERM)
    before = {number: signal.getsignal(number) for number in ends}

    def restore() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)

    def asked(_number: int, _frame: FrameType | None) -> None:
        restore()
        stop.set()

    for number in ends:
        signal.signal(number, asked)
    try:
        yield stop
    finally:
        restore()
