"""The request that is being answered: code deep below finds here the request that it logs or measures for.

A service sets :data:`CURRENT` where a call begins. On the coalescing stream many calls begin in one task, one after the
other. A call that waits goes on in a task of its own, made directly after its first step, which takes the value along.
So the value is right in all of the call's own code, and means nothing anywhere else.
"""

from __future__ import annotations

from contextvars import ContextVar
from typing import Final, Protocol

from cortado.store.observe.measures import EntryTimes


class Write(Protocol):
    """The times of a write on its way through the node, in the node's monotonic milliseconds; 0 for a step that has not
    happened."""

    @property
    def request_id(self) -> bytes: ...

    @property
    def proposed_ms(self) -> float:
        """It came to stand in line."""

    @property
    def evaluated_ms(self) -> float:
        """It begins: it is evaluated in well under a millisecond from here on."""

    @property
    def entry(self) -> EntryTimes | None:
        """The entry that carries it, from then on."""


class Call:
    """One request. ``began_s`` is of its maker's clock; ``traceparent`` is the caller's, in the form of W3C's Trace
    Context, or empty. ``read_wait_ms`` is the time that a read waited before it could look."""

    __slots__ = ("began_s", "is_over", "method", "read_wait_ms", "traceparent", "write")

    def __init__(self, method: str, began_s: float, traceparent: str = "") -> None:
        self.method = method
        self.began_s = began_s
        self.traceparent = traceparent
        self.write: Write | None = None
        self.read_wait_ms = 0.0
        self.is_over = False


CURRENT: Final[ContextVar[Call | None]] = ContextVar("cortado_call", default=None)
