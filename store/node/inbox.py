"""What peers sent and the log has not seen yet: bounded, and stepped for a bounded time."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Final

# Past it messages are dropped, as a network would; whoever sent them sends again.
ARRIVED_BYTES_MAX: Final = 64 << 20


class Inbox:
    """Messages in the order in which they came. A single one is taken however large it is."""

    def __init__(self, monotonic_ms: Callable[[], float]) -> None:
        self._monotonic_ms = monotonic_ms
        self._arrived: deque[tuple[str, bytes]] = deque()
        self._bytes = 0

    @property
    def is_empty(self) -> bool:
        """True where nothing waits."""
        return not self._arrived

    @property
    def use(self) -> tuple[int, int]:
        """Messages that wait, and their bytes."""
        return len(self._arrived), self._bytes

    def put(self, sender: str, bodies: Sequence[bytes]) -> None:
        """Messages of a peer; those are dropped for which there is no room."""
        for body in bodies:
            if self._bytes + len(body) > ARRIVED_BYTES_MAX and self._arrived:
                return
            self._arrived.append((sender, body))
            self._bytes += len(body)

    def step(self, step: Callable[[str, bytes], None], until_ms: float) -> bool:
        """Give ``step`` what arrived, one message at least. False where some are left at ``until_ms``."""
        arrived = self._arrived
        while arrived:
            sender, body = arrived.popleft()
            self._bytes -= len(body)
            step(sender, body)
            if arrived and self._monotonic_ms() > until_ms:
                return False
        return True
