"""One stream of a connection: its state, its windows, and its queue of data to send."""

from __future__ import annotations

from collections import deque

from cortado.store.h2.fields import Head, ResponseFields
from cortado.store.h2.states import State


class Stream:
    """``unread`` and ``credited`` count bytes that have arrived and were not consumed. The first counts against the
    connection's window; the second does not, since a reader waits for it."""

    __slots__ = (
        "credited",
        "expected",
        "head",
        "id",
        "is_held",
        "moved_s",
        "offset",
        "queue",
        "queued",
        "received",
        "recv_window",
        "send_window",
        "state",
        "trailers",
        "unread",
    )

    def __init__(self, stream_id: int, head: Head | ResponseFields | None, recv_window: int, send_window: int) -> None:
        self.id = stream_id
        self.head = head
        """The fields that the peer has sent: none until a response begins."""
        self.state = State.OPEN
        self.recv_window = recv_window
        self.send_window = send_window
        self.received = self.unread = self.credited = 0
        self.expected = 0
        """The number of bytes that are credited when they arrive next."""
        self.queue: deque[bytes] = deque()
        self.offset = 0
        """The number of bytes of the first of ``queue`` that were sent."""
        self.queued = 0
        self.moved_s = 0.0
        """When the last bytes left ``queue``, or the first ones came to it."""
        self.is_held = False
        """The sender gets an event (Drained) once nothing waits."""
        self.trailers: bytes | None = None

    def arrived(self, count: int) -> int:
        """Count bytes in. Return the number of those that a reader waits for."""
        credited = min(self.expected, count)
        self.expected -= credited
        self.credited += credited
        self.unread += count - credited
        return credited

    def expect(self, count: int) -> int:
        """Record that a reader waits for ``count`` bytes more. Return how many arrived before, and are credited now."""
        credited = self.unread
        self.unread = 0
        self.credited += credited
        self.expected = count
        return credited

    def consume(self, count: int) -> int:
        """Count bytes out. Return the number to give back to the connection's window."""
        credited = min(self.credited, count)
        self.credited -= credited
        self.unread -= count - credited
        return count - credited

    def next_fits(self, room: int) -> bool:
        """Return whether nothing of the next message was sent, and all of it has at most ``room`` bytes."""
        return not self.offset and len(self.queue[0]) <= room

    def taken(self, room: int) -> bytes:
        """Take the next piece of the queue, of at most ``room`` bytes."""
        first, offset = self.queue[0], self.offset
        end = offset + room
        if end < len(first):
            self.offset = end
            piece = first[offset:end]
        else:
            self.queue.popleft()
            self.offset = 0
            piece = first[offset:] if offset else first
        self.queued -= len(piece)
        return piece

    def drop_unbegun(self) -> None:
        """Empty the queue, but for the rest of a message that has begun."""
        rest = [self.queue[0]] if self.offset else []
        self.queue = deque(rest)
        self.queued = sum(map(len, rest)) - self.offset
