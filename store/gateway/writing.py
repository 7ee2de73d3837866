"""Fewer system calls: everything that one step of the event loop writes to a connection is sent at the step's end.

uvicorn writes the head and the body of an answer separately. Each write is a system call, a tenth of the cost of a
small answer.
"""

from __future__ import annotations

import asyncio
from typing import Final

HELD_BYTES_MAX: Final = 64 << 10
"""More than this is written at once: the transport detects a slow reader, so it has to see the bytes."""


class Together:
    """``transport``, as far as uvicorn's connections use it for writing."""

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport = transport
        self._loop = loop
        self._held: list[bytes] = []
        self._held_bytes = 0

    def write(self, data: bytes) -> None:
        """Send ``data`` after all earlier data, by the end of this step of the loop."""
        if not self._held:
            self._loop.call_soon(self._flush)
        self._held.append(data)
        self._held_bytes += len(data)
        if self._held_bytes > HELD_BYTES_MAX:
            self._flush()

    def close(self) -> None:
        """Close the connection once everything is sent."""
        self._flush()
        self._transport.close()

    def abort(self) -> None:
        """Close the connection; unsent data is dropped."""
        self._transport.abort()

    def is_closing(self) -> bool:
        return self._transport.is_closing()

    def _flush(self) -> None:
        held, self._held, self._held_bytes = self._held, [], 0
        if held and not self._transport.is_closing():
            self._transport.write(b"".join(held))
