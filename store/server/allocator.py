"""Large blocks go back to the system when they are freed.

glibc gives a block a mapping of its own from 128 KiB on, but raises that bound, up to 32 MiB, whenever such a block is
freed. Smaller blocks lie in heaps, one for each of several threads; there one block that stays keeps all before it. A
server's large blocks are messages of a few MiB that come and go in bursts: without this the process held half as much
again as was in flight (measured: 735 MiB instead of 480, under 48 bulk streams of chunks of 4 MiB).

Smaller blocks leave holes in the heaps. The holes go back only on request: after a burst, once little is in flight,
since the heaps are locked for some 100 us a MiB meanwhile.
"""

from __future__ import annotations

import asyncio
import ctypes
from collections.abc import Callable
from typing import Final

MAPPED_BYTES_MIN: Final = 256 << 10
ARENAS_MAX: Final = 2
BURST_BYTES: Final = 64 << 20
CALM_BYTES: Final = 4 << 20
LOOK_S: Final = 1.0

# From <malloc.h>.
_M_MMAP_THRESHOLD: Final = -3
_M_ARENA_MAX: Final = -8


def give_back_large_blocks() -> None:
    """Set this for the process, from now on. Nothing changes if the C library has no such settings."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_M_MMAP_THRESHOLD, MAPPED_BYTES_MIN)
        mallopt(_M_ARENA_MAX, ARENAS_MAX)


async def give_back_after_bursts(received: Callable[[], int], in_flight: Callable[[], int]) -> None:
    """Give back free blocks once ``BURST_BYTES`` were received since the last time and at most ``CALM_BYTES`` are in
    flight. Runs until it is cancelled; returns at once if the C library cannot do it."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is None:
        return
    given_back_at = received()
    while True:
        await asyncio.sleep(LOOK_S)
        count = received()
        if count - given_back_at >= BURST_BYTES and in_flight() <= CALM_BYTES:
            given_back_at = count
            await asyncio.to_thread(trim, 0)
