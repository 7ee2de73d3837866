"""Accepting connections one by one, for listeners that make the TLS handshake themselves.

They make it with the newest certificate, and bound how many are under way. What happens to one too many differs: a peer
may displace one that has said nothing yet, a joining node waits. So each listener has its bound beside its loop.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from typing import Any, Final

# Long enough that a process without file descriptors does not spin, short enough that a caller waits through it.
_PAUSE_S: Final = 0.1


async def accept(listening: socket.socket, on_failed: Callable[[str], None]) -> tuple[socket.socket, Any]:
    """The next connection to ``listening``, which does not block, and the address it comes from.

    Where accepting fails, as it does without a free file descriptor, it tells ``on_failed`` why, waits a moment, and
    tries again.
    """
    while True:
        try:
            return await asyncio.get_running_loop().sock_accept(listening)
        except OSError as problem:
            on_failed(f"no connection can be accepted: {problem.strerror}")
            await asyncio.sleep(_PAUSE_S)
