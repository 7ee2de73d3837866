"""What is free in the heaps goes back to the system, whatever has filled them."""

from __future__ import annotations

import asyncio
import ctypes
import os

import pytest

from cortado.store.server import allocator
from support.memory import MIB, anonymous_bytes

BLOCK_BYTES = 2_000


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "malloc_trim"), reason="the C library gives nothing back")
def test_memory_that_no_received_bytes_explain_goes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(allocator, "LOOK_S", 0.01)

    async def grow() -> None:
        giving = asyncio.create_task(allocator.give_back_after_bursts(lambda: 0, lambda: 0))
        await asyncio.sleep(0)
        blocks = [bytes(BLOCK_BYTES) for _ in range(2 * allocator.BURST_BYTES // BLOCK_BYTES)]
        grown = anonymous_bytes(os.getpid())
        # The last block stays, and keeps all before it.
        del blocks[:-1]
        async with asyncio.timeout(30):
            while anonymous_bytes(os.getpid()) > grown - 100 * MIB:
                await asyncio.sleep(0.01)
        giving.cancel()
        assert len(blocks) == 1

    asyncio.run(grow())
