"""Ports on loopback that no other test process gives to a server meanwhile.

A killed server must find its port again, even if no process listened on it for a while. So each test process locks a
block of ports for as long as it lives, and hands them out in turn. They lie below those that the system gives to
outgoing connections.
"""

from __future__ import annotations

import fcntl
import functools
import os
import socket
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Final

_FIRST: Final = 15_000
_LAST: Final = 32_000
_BLOCK: Final = 500


def free_port() -> int:
    return free_ports(1)[0]


def free_ports(count: int) -> list[int]:
    """Return ports in a row on which no process listens."""
    return _block().take(count)


class _Block:
    """The ports from ``first`` on, each handed out once before the first one is again."""

    def __init__(self, first: int) -> None:
        self._first = first
        self._next = first

    def take(self, count: int) -> list[int]:
        for _ in range(_BLOCK):
            if self._next + count > self._first + _BLOCK:
                self._next = self._first
            found = list(range(self._next, self._next + count))
            if _are_free(found):
                self._next += count
                return found
            self._next += 1
        raise AssertionError(f"no {count} free ports in a row from {self._first} on")


def _are_free(ports: list[int]) -> bool:
    with ExitStack() as stack:
        try:
            for port in ports:
                stack.enter_context(socket.socket()).bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


@functools.cache
def _block() -> _Block:
    """Return this process's own block: its file stays locked until the process ends."""
    locks = Path(tempfile.gettempdir()) / f"cortado-test-ports-{os.getuid()}"
    locks.mkdir(exist_ok=True)
    for first in range(_FIRST, _LAST, _BLOCK):
        lock = os.open(locks / str(first), os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(lock)
            continue
        return _Block(first)
    raise AssertionError(f"other test processes hold all ports between {_FIRST} and {_LAST}")
