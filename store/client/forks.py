"""Processes that were forked from one in which a client had connected.

The child shares the sockets and the selector of its parent, and has none of its threads. A lock that one of them held
stays held there. The child is told at once that it has no client. It touches none of the parent's objects, not even to
free them (docs/adr/0021-no-client-across-a-fork.md).

A process that was forked earlier is like any other: a client may be made before the fork, as long as it is used after
it. Spark's workers, whose daemon never connects, are of that kind.
"""

from __future__ import annotations

import os
from typing import Final
from weakref import WeakSet

from cortado.errors import Unsupported


class _Process:
    """The state of this process: whether its clients may be used."""

    def __init__(self) -> None:
        self.connected: WeakSet[object] = WeakSet()
        self.has_connected = False
        self.is_cut_off = False
        self.left: list[object] = []

    def after_fork(self) -> None:
        if self.has_connected:
            self.is_cut_off = True
            self.left += self.connected


_PROCESS: Final = _Process()
os.register_at_fork(after_in_child=_PROCESS.after_fork)


def connects(owner: object) -> None:
    """Note that ``owner`` is about to connect, and holds its channels."""
    _PROCESS.connected.add(owner)
    _PROCESS.has_connected = True


def is_cut_off() -> bool:
    """Return whether the clients of this process are its parent's."""
    return _PROCESS.is_cut_off


def check() -> None:
    """Raise Unsupported if this process has no client."""
    if _PROCESS.is_cut_off:
        raise Unsupported(
            "a client in a process that was forked from one in which a client had connected",
            "fork before the first call, or start the process by spawn or forkserver",
        )
