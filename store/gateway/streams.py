"""Answers of unknown length: streams of rows and of changes.

:class:`~cortado.store.gateway.limits.GatewayLimits` bounds how many run at a time; a stream counts from before its
first byte until its end, of any kind. Each piece is fetched only after the last one is sent, so a slow reader slows
its own stream, and one that reads nothing is cut off (:mod:`cortado.store.gateway.connections`). A piece may be a row
of some MiB, so it goes out in slices: the connection, which copies the data that it is given, holds one.
A client that hangs up leaves nothing behind: its runner keeps the ending exception in a cycle, so that keeps no frame.

HTTP/1.0 cannot tell the end of such an answer from a broken connection, so it gets no stream. HEAD is answered
with the head, and no stream is begun.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Final, TypeVar

from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from cortado.errors import InvalidArgument
from cortado.store.gateway.bounds import Bounds
from cortado.store.gateway.calls import Call
from cortado.store.gateway.problems import Refused

T = TypeVar("T")

SLICE_BYTES: Final = 256 << 10


class StreamCut(Exception):
    """An answer that cannot be ended as it began; its connection is cut."""


def check_stream(call: Call) -> None:
    """Check before asking the cluster for a stream. Raises Refused for HTTP/1.0, and for one too many."""
    if call.http_version == "1.0":
        error = InvalidArgument(
            "request", "must be one of HTTP/1.1: HTTP/1.0 cannot tell where a stream ends", "HTTP/1.0"
        )
        raise Refused(505, error)
    call.bounds.check_stream()


async def begun(pages: AsyncGenerator[T, None]) -> AsyncGenerator[T, None]:
    """Return ``pages`` once the first one has come: an immediate refusal is raised here, and answered as a problem."""
    async for first in pages:
        return _with_first([first], pages)
    return pages


async def _with_first(first: list[T], pages: AsyncGenerator[T, None]) -> AsyncGenerator[T, None]:
    async with aclosing(pages):
        # Out of a list, so that it is kept here no longer than it is used.
        yield first.pop()
        async for page in pages:
            yield page


class Stream(StreamingResponse):
    """``pieces`` as they come. Raises Refused if there are too many streams."""

    def __init__(self, bounds: Bounds, pieces: AsyncGenerator[bytes, None], media_type: str) -> None:
        self._pieces = _slices(pieces)
        super().__init__(self._pieces, 200, {"Cache-Control": "no-store", "Vary": "Accept"}, media_type)
        self._bounds = bounds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async with aclosing(self._pieces):
            if scope["method"] == "HEAD":
                # Begun, so that closing it ends its source too.
                await anext(self._pieces, b"")
                await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
                await send({"type": "http.response.body", "body": b""})
                return
            with self._bounds.stream():
                try:
                    await super().__call__(scope, receive, send)
                except asyncio.CancelledError:
                    if self._bounds.is_stopping:
                        raise StreamCut from None
                    raise

    async def stream_response(self, send: Send) -> None:
        try:
            return await super().stream_response(send)
        except asyncio.CancelledError as error:
            cancelled = error.with_traceback(None)
        # From here on: the frames behind this one hold pages, of some MiB each.
        raise cancelled


async def _slices(pieces: AsyncGenerator[bytes, None]) -> AsyncGenerator[bytes, None]:
    async with aclosing(pieces):
        async for piece in pieces:
            for begin in range(0, len(piece), SLICE_BYTES):
                yield piece[begin : begin + SLICE_BYTES]
