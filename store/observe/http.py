"""A server of a few pages over HTTP: enough for a scraper, a probe and curl, and nothing else.

It lives on the node's loop, so that its answer is of one moment, and so that a node whose loop is stuck does not say
that it is alive. Everything is bounded: a request's head, the time for it to come, and the requests at once. Each
connection carries one request.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from cortado.errors import Unavailable

_LOG: Final = logging.getLogger(__name__)

HEAD_BYTES_MAX: Final = 16 << 10
HEAD_S_MAX: Final = 5.0
CONNECTIONS_MAX: Final = 64

_PHRASES: Final = {
    200: "OK",
    400: "Bad Request",
    404: "Not Found",
    405: "Method Not Allowed",
    500: "Internal Server Error",
    503: "Service Unavailable",
}


@dataclass(frozen=True, slots=True)
class Request:
    """``headers`` by their names in lower case."""

    path: str
    headers: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Response:
    status: int
    body: bytes
    content_type: str


Page: TypeAlias = Callable[[Request], Awaitable[Response]]


def json_response(status: int, value: Any) -> Response:
    return Response(status, json.dumps(value).encode() + b"\n", "application/json")


def text_response(status: int, text: str) -> Response:
    return Response(status, text.encode() + b"\n", "text/plain; charset=utf-8")


class HttpServer:
    """Serves ``pages`` by their paths, to GET and HEAD."""

    def __init__(self, pages: Mapping[str, Page]) -> None:
        self._pages = pages
        self._server: asyncio.Server | None = None
        self._open = 0

    async def start(self, host: str, port: int) -> int:
        """Listen, and return the port. Raises Unavailable if that can't be."""
        try:
            self._server = await asyncio.start_server(self._connected, host, port, limit=HEAD_BYTES_MAX)
        except OSError as error:
            why = (error.strerror or str(error)).rpartition(": ")[2]
            raise Unavailable(f"cannot listen on {host}:{port} for metrics: {why}") from error
        bound: int = self._server.sockets[0].getsockname()[1]
        return bound

    async def stop(self) -> None:
        if self._server is not None:
            self._server.close()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open += 1
        try:
            if self._open > CONNECTIONS_MAX:
                await _send(writer, text_response(503, "too many connections"))
                return
            with suppress(TimeoutError, ConnectionError):
                async with asyncio.timeout(HEAD_S_MAX):
                    method, response = await self._answer(reader)
                    await _send(writer, response, with_body=method != "HEAD")
        finally:
            self._open -= 1
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()

    async def _answer(self, reader: asyncio.StreamReader) -> tuple[str, Response]:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            method, request = _parsed(head.decode("latin-1"))
        except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, ValueError):
            return "", text_response(400, "not a request that is understood here")
        page = self._pages.get(request.path)
        if page is None:
            return method, text_response(404, f"there is {', '.join(self._pages)}")
        if method not in ("GET", "HEAD"):
            return method, text_response(405, "GET or HEAD")
        try:
            return method, await page(request)
        except Exception:
            _LOG.exception("a defect in answering %s", request.path)
            return method, text_response(500, "see the server's log")


def _parsed(head: str) -> tuple[str, Request]:
    """Return the method and the rest. Raises ValueError for text that is no HTTP/1."""
    first, *lines = head.split("\r\n")
    method, target, version = first.split(" ")
    if not version.startswith("HTTP/1."):
        raise ValueError(version)
    pairs = (line.partition(":") for line in lines if line)
    return method, Request(target.partition("?")[0], {name.strip().lower(): value.strip() for name, _, value in pairs})


async def _send(writer: asyncio.StreamWriter, response: Response, *, with_body: bool = True) -> None:
    head = (
        f"HTTP/1.1 {response.status} {_PHRASES[response.status]}\r\n"
        f"Content-Type: {response.content_type}\r\n"
        f"Content-Length: {len(response.body)}\r\n"
        "Connection: close\r\n\r\n"
    )
    writer.write(head.encode() + (response.body if with_body else b""))
    await writer.drain()
