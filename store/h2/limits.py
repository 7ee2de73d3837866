"""Every limit of a connection, and the error code that a peer gets beyond it.

======================  =====================================================  =====================================
limit                   beyond it                                              code
======================  =====================================================  =====================================
frame_bytes             the connection ends                                    FRAME_SIZE_ERROR
header_list_bytes       the stream is told so, and answered by its service     none: the event says it
header_list_bytes_max   the connection ends                                    ENHANCE_YOUR_CALM
header_block_bytes      the connection ends                                    ENHANCE_YOUR_CALM
continuations           the connection ends                                    ENHANCE_YOUR_CALM
streams                 the stream is refused                                  REFUSED_STREAM
stream_window           the stream is reset                                    FLOW_CONTROL_ERROR
connection_window       the connection ends                                    FLOW_CONTROL_ERROR
resets                  the connection ends                                    ENHANCE_YOUR_CALM
pings, settings,        the connection ends                                    ENHANCE_YOUR_CALM
empty_frames, others
output_bytes            the connection ends                                    ENHANCE_YOUR_CALM
======================  =====================================================  =====================================
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Final

WINDOW_MAX: Final = (1 << 31) - 1
STREAM_ID_MAX: Final = (1 << 31) - 1


class ErrorCode(IntEnum):
    """RFC 9113 §7."""

    NO_ERROR = 0
    PROTOCOL_ERROR = 1
    INTERNAL_ERROR = 2
    FLOW_CONTROL_ERROR = 3
    SETTINGS_TIMEOUT = 4
    STREAM_CLOSED = 5
    FRAME_SIZE_ERROR = 6
    REFUSED_STREAM = 7
    CANCEL = 8
    COMPRESSION_ERROR = 9
    CONNECT_ERROR = 10
    ENHANCE_YOUR_CALM = 11
    INADEQUATE_SECURITY = 12
    HTTP_1_1_REQUIRED = 13


class ConnectionFault(Exception):
    """The connection has to end (RFC 9113 §5.4.1)."""

    def __init__(self, code: ErrorCode, problem: str) -> None:
        super().__init__(code, problem)
        self.code = code
        self.problem = problem


class StreamFault(Exception):
    """The stream has to end, and the connection goes on (RFC 9113 §5.4.2)."""

    def __init__(self, code: ErrorCode, problem: str) -> None:
        super().__init__(code, problem)
        self.code = code
        self.problem = problem


@dataclass(frozen=True, slots=True)
class Rate:
    """``burst`` at once, and ``per_s`` more each second."""

    burst: int
    per_s: int


@dataclass(frozen=True, slots=True)
class H2Limits:
    """The limits of one connection. gRPC's own clients stay below each default."""

    frame_bytes: int = 16_384
    """RFC 9113 allows no peer a larger frame unless a setting raises the limit."""
    header_list_bytes: int = 16 << 10
    """As RFC 9113 §6.5.2 counts it: 32 bytes for each field beside name and value."""
    header_list_bytes_max: int = 32 << 10
    header_block_bytes: int = 16 << 10
    """Compressed, with all CONTINUATION frames. To decode this many bytes may take 10 ms."""
    continuations: int = 8
    streams: int = 4_096
    """Beyond the shares of one caller: half of all watches, of all streams of calls, of all scans and loads. Clients
    wait without an error for a stream to end, and calls would wait behind watches."""
    stream_window: int = 65_535
    """The bytes that a peer may send to a stream without a reader."""
    connection_window: int = 256 << 20
    """The same for all streams: as many bytes as all of them may hold. If it were less, streams without readers could
    use it up, and a stream that a reader waits for would get nothing."""
    output_bytes: int = 4 << 20
    """The bytes of answers that the peer does not read: to control frames, and to calls that end without a message.
    Messages wait in their streams."""
    resets: Rate = Rate(5_000, 500)
    """Open streams that the peer resets, streams at fault, and refused ones. A peer may reset all that it has open."""
    pings: Rate = Rate(2_000, 200)
    settings: Rate = Rate(50, 5)
    empty_frames: Rate = Rate(2_000, 200)
    """DATA frames without a byte that do not end their stream."""
    others: Rate = Rate(40_000, 20_000)
    """WINDOW_UPDATE and PRIORITY frames, frames of an unknown kind, DATA and RST_STREAM of streams that are over."""
    slice_cost: int = 256
    """The number of frames that one call of ``advance`` reads, or else header_block_bytes of header blocks: some
    milliseconds."""


class Budget:
    """The rest of a :class:`Rate`."""

    __slots__ = ("_left", "_rate", "_since_s")

    def __init__(self, rate: Rate, now_s: float) -> None:
        self._rate = rate
        self._left = float(rate.burst)
        self._since_s = now_s

    def take(self, now_s: float) -> bool:
        """Take one; return False if none is left."""
        rate = self._rate
        self._left = min(self._left + (now_s - self._since_s) * rate.per_s, rate.burst)
        self._since_s = now_s
        if self._left < 1:
            return False
        self._left -= 1
        return True
