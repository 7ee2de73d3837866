"""Processes that were forked from one in which a client had connected.

gRPC does not live through a fork. The child has none of its threads, and a lock that one of them held is held for ever.
Channels that the child makes anew mostly work; else they hang or end the process. Measured, with several threads at
work: one child of thirty; even if the parent had just closed everything, one of a hundred and fifty. So such a child is
told at once that it has no client, and touches none of the parent's objects, not even to free them.

A process that was forked earlier is like any other: a client may be made before the fork, as long as it is used after
it. Spark's workers, whose daemon never connects, are of that kind.
"""

from __future__ import annotations

import os
from typing import Final
from weakref import WeakSet

from cortado.errors import Unsupported


class _Process:
    """The state of this process: whether it may use gRPC."""

    def __init__(self) -> None:
        self.connected: WeakSet[object] = WeakSet()
        self.has_connected = False
        self.is_cut_off = False
        self.left: list[object] = []

    def after_fork(self) -> None:
        if self.has_connected:
            self.is_cut_off = True
            # Freeing a channel may wait for the parent's threads.
            self.left += self.connected


_PROCESS: Final = _Process()
os.register_at_fork(after_in_child=_PROCESS.after_fork)


def connects(owner: object) -> None:
    """Note that ``owner`` is about to use gRPC, and holds its channels."""
    _PROCESS.connected.add(owner)
    _PROCESS.has_connected = True


def is_cut_off() -> bool:
    """Whether gRPC must not be touched in this process."""
    return _PROCESS.is_cut_off


def leave(*things: object) -> None:
    """Never free them in this process."""
    _PROCESS.left += things


def check() -> None:
    """Raise Unsupported if this process has no gRPC."""
    if _PROCESS.is_cut_off:
        raise Unsupported(
            "a client in a process that was forked from one in which a client had connected",
            "fork before the first call, or start the process by spawn or forkserver",
        )
