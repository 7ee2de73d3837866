"""Replies on their way: those that callers do not take stay in memory, so they are bounded.

gRPC keeps the reply of a call until its caller opens the window of HTTP/2, which it need not do. An answered call holds
nothing of the node's budget any more. So replies of more than ``SMALL_BYTES`` count until they have left. If they would
be more than a quarter of the budget, the next one is replaced by a refusal, if its method only reads: the outcome of a
write is always told. A stream that calls share has a bound of its own (:mod:`cortado.store.server.calls_service`).

::

    the bound  ├─ a caller that takes nothing ─────────────────────┤   its next reply: refused
               ├─ two callers: half each ─┤                            another's: given, up to half of the bound

One caller must not keep others from reading. So a connection may always have its even share: the bound, divided by the
number of connections with replies. N connections that take nothing get a half, a third, ... of it one after the other,
so all of them together have no more than 1 + ln(N) times the bound.

Strangers may call health and reflection. So these have a small bound of their own, :data:`STRANGERS_BYTES`, and their
replies count from ``STRANGERS_SMALL_BYTES`` on.

Caveat: a call is over with its deadline, its caller, or its connection. gRPC for Python has no way to take back a reply
that a server has given it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from cortado.errors import ResourceExhausted
from cortado.store.server.call_context import Context

SMALL_BYTES: Final = 16 << 10
"""A reply of up to this size costs no more than its call."""
STRANGERS_BYTES: Final = 4 << 20
STRANGERS_SMALL_BYTES: Final = 256
"""The size of a reply such as the state of a service. A connection has no more than a thousand of them."""
PARTS: Final = 4
"""The budget is divided by this number; one part is for replies."""
RESOURCE: Final = "replies"
_RETRY_DELAY_MS: Final = 200


class Replying:
    """For one server. Everything here runs on the loop."""

    def __init__(self, bytes_max: int, small_bytes: int = SMALL_BYTES) -> None:
        self.bytes_max = bytes_max
        self.bytes = 0
        self._small_bytes = small_bytes
        self._by_connection: dict[str, int] = {}
        """The bytes of the connections that have any."""

    def refusal(self, context: Context, size_bytes: int) -> ResourceExhausted | None:
        """Return the refusal that replaces a reply of a method that only reads; None if the reply is given. A single
        one always is."""
        if size_bytes <= self._small_bytes or not self.bytes or self.bytes + size_bytes <= self.bytes_max:
            return None
        of = self._by_connection
        connection = context.peer()
        own_bytes = of.get(connection, 0)
        if own_bytes + size_bytes <= self.bytes_max // (len(of) + (not own_bytes)):
            return None
        problem = f"{self.bytes} bytes of replies are not taken by their callers, the limit is {self.bytes_max}"
        return ResourceExhausted(problem, _RETRY_DELAY_MS, RESOURCE, self.bytes_max)

    def send(self, context: Context, size_bytes: int) -> None:
        """Count a reply until its call is over."""
        if size_bytes <= self._small_bytes:
            return
        connection = context.peer()
        self._count(connection, size_bytes)
        context.add_done_callback(lambda _: self._count(connection, -size_bytes))

    @contextmanager
    def sending(self, context: Context, size_bytes: int) -> Iterator[None]:
        """Count one of many replies of a call until its caller has taken it. Raises ResourceExhausted."""
        refusal = self.refusal(context, size_bytes)
        if refusal is not None:
            raise refusal
        counted = size_bytes if size_bytes > self._small_bytes else 0
        connection = context.peer()
        self._count(connection, counted)
        try:
            yield
        finally:
            self._count(connection, -counted)

    def _count(self, connection: str, size_bytes: int) -> None:
        of = self._by_connection
        self.bytes += size_bytes
        of[connection] = of.get(connection, 0) + size_bytes
        if not of[connection]:
            del of[connection]
