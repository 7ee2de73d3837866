"""Whether peers live: a stream on which nothing arrives is cut, and one on which nothing is sent carries the clock."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Final

from cortado.errors import Unavailable
from cortado.store.peers.interface import PeerLimits
from cortado.store.peers.link import Link

_TICK_S: Final = 0.1


async def watch_links(
    links: Callable[[], Iterable[Link]],
    review: Callable[[], None],
    limits: PeerLimits,
    monotonic_ms: Callable[[], float],
) -> None:
    """Look at ``links`` ten times a second, after ``review``, until cancelled."""
    last_ms = monotonic_ms()
    while True:
        await asyncio.sleep(_TICK_S)
        now_ms = monotonic_ms()
        # If this process itself stood still, messages that arrived meanwhile have not been read yet.
        was_late = now_ms - last_ms > _TICK_S * 1000 + limits.silence_ms / 4
        last_ms = now_ms
        # A removal is committed at some time after the configuration without the member came.
        review()
        for link in list(links()):
            if was_late:
                link.heard_ms = now_ms
            elif now_ms - link.heard_ms > limits.silence_ms:
                link.close(Unavailable(f"nothing arrived from it for {limits.silence_ms} ms"))
            elif now_ms - link.sent_ms >= limits.idle_ms:
                link.greet()
