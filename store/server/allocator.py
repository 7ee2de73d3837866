"""Large blocks go back to the system when they are freed.

glibc gives a block a mapping of its own from 128 KiB on, but raises that bound, up to 32 MiB, whenever such a block is
freed; what is smaller lies in heaps, one for each of several threads, where one block that stays keeps all before it.
A server's large blocks are messages of a few MiB that come and go in bursts: without this it held half as much again
as was in flight (measured: 735 MiB instead of 480, under 48 bulk streams of chunks of 4 MiB).

What is smaller leaves holes in the heaps, which go back only when they are asked for: after a burst, once little is in
flight, since the heaps are locked for some 100 us a MiB meanwhile.
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

# Of <malloc.h>.
_M_MMAP_THRESHOLD: Final = -3
_M_ARENA_MAX: Final = -8


def give_back_large_blocks() -> None:
    """For this process, from now on. Nothing changes where the C library knows no such settings."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_M_MMAP_THRESHOLD, MAPPED_BYTES_MIN)
        mallopt(_M_ARENA_MAX, ARENAS_MAX)


async def give_back_after_bursts(received: Callable[[], int], in_flight: Callable[[], int]) -> None:
    """Give back what is free, once ``BURST_BYTES`` were received since the last time, and no more than ``CALM_BYTES``
    are in flight. Runs until it is cancelled; returns at once where the C library cannot."""
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
