"""Answers without an end that is known: streams of rows and of changes.

There are at most so many streams (:class:`~cortado.store.gateway.limits.GatewayLimits`). Each counts from before its
first byte until it is over, however it ends. Nothing is fetched for a reader that takes nothing: each piece waits until
the last one is sent, and a reader that stands still is cut off (:mod:`cortado.store.gateway.connections`).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing

from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from cortado.store.gateway.bounds import Bounds


class StreamCut(Exception):
    """An answer that cannot be ended as it began; its connection is cut."""


class Stream(StreamingResponse):
    """``pieces`` as they come. Raises ResourceExhausted where there are too many streams."""

    def __init__(self, bounds: Bounds, pieces: AsyncGenerator[bytes, None], media_type: str) -> None:
        super().__init__(pieces, 200, {"Cache-Control": "no-store", "Vary": "Accept"}, media_type)
        self._bounds = bounds
        self._pieces = pieces

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async with aclosing(self._pieces):
            with self._bounds.stream():
                try:
                    await super().__call__(scope, receive, send)
                except asyncio.CancelledError:
                    if self._bounds.is_stopping:
                        raise StreamCut from None
                    raise
