"""The bounds of a gateway: values alone, which the settings have as their defaults."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

RETRY_MS: Final = 1_000
HEADERS_MAX: Final = 100
HEAD_BYTES_MAX: Final = 32 << 10
"""Bytes of the request line and all headers."""


HANDSHAKES_MAX: Final = 256
"""Connections at a time that have not finished their TLS handshake."""


@dataclass(frozen=True, slots=True)
class GatewayLimits:
    """- ``connections_max``: open connections; a further one is answered 429, and closed.
    - ``calls_max``: calls at a time, streams among them, and ``streams_max``: streams of rows and of changes.
    - ``body_bytes_max``: bytes of one call's body, and ``bodies_bytes_max``: of all bodies in memory.
    - ``head_ms``, ``body_ms``: most time for a call's head and its body to arrive.
    - ``idle_ms``: most time of a connection without a call.
    - ``stalled_ms``: a client that reads nothing of an answer for this long is cut off.
    """

    connections_max: int = 4_096
    calls_max: int = 512
    streams_max: int = 64
    body_bytes_max: int = 8 << 20
    bodies_bytes_max: int = 64 << 20
    head_ms: int = 10_000
    body_ms: int = 30_000
    idle_ms: int = 60_000
    stalled_ms: int = 30_000
