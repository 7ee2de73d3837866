"""Work beside the loop: long work runs on a thread, so that the loop answers other calls and probes meanwhile.

There is one such thread. Python runs one thread at a time, so a second one would only make the loop wait longer. Each
token has one work at a time in the thread's line, so a caller waits for one work of each other caller at most.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeVar
from weakref import WeakValueDictionary

from cortado.store.gateway.callers import shown_token

T = TypeVar("T")

ON_THE_LOOP_BYTES: Final = 16 << 10
"""Smaller work runs on the loop: it takes less time than the way to a thread and back."""

_THREAD: Final = ThreadPoolExecutor(1, "cortado-gateway-beside")
_TURNS: Final[WeakValueDictionary[bytes, asyncio.Lock]] = WeakValueDictionary()
"""By token, while any work of it waits or runs."""


async def beside(size_bytes: int, work: Callable[[], T]) -> T:
    """Return the result of ``work`` on ``size_bytes`` of input. It must not wait, and must not touch objects of the
    loop."""
    if size_bytes <= ON_THE_LOOP_BYTES:
        return work()
    async with _TURNS.setdefault(shown_token(), asyncio.Lock()):
        return await asyncio.get_running_loop().run_in_executor(_THREAD, work)
