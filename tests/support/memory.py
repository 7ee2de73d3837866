"""How much memory a process of its own takes, as the system counts it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

MIB = 1 << 20
_SAMPLE_S = 0.01


def anonymous_bytes(pid: int) -> int:
    """Return a process's memory beside mapped files. For a server that is everything but the touched pages of its
    data."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1]) * 1024
    raise AssertionError("the system does not say")


class Peak:
    """The most that was seen above the amount at first."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._first_bytes = anonymous_bytes(pid)
        self.bytes = 0

    @property
    def mib(self) -> float:
        return self.bytes / MIB

    def look(self) -> None:
        self.bytes = max(self.bytes, anonymous_bytes(self._pid) - self._first_bytes)


@contextmanager
def peak_of(pid: int) -> Iterator[Peak]:
    """Look all the while."""
    peak, over = Peak(pid), threading.Event()

    def watch() -> None:
        while not over.wait(_SAMPLE_S):
            peak.look()

    watching = threading.Thread(target=watch, daemon=True)
    watching.start()
    try:
        yield peak
        peak.look()
    finally:
        over.set()
        watching.join()
