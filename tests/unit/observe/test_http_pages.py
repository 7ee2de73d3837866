"""Three pages over HTTP: for GET and HEAD, one request a connection, with bounds on all that comes."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable

import pytest

from cortado.errors import Unavailable
from cortado.store.observe.http import CONNECTIONS_MAX, HEAD_BYTES_MAX, HttpServer, Request, Response, text_response
from cortado.store.observe.pages import Pages
from cortado.store.observe.readiness import Readiness

Exchange = Callable[[bytes], Awaitable[bytes]]


async def _shown(request: Request) -> Response:
    return text_response(200, f"{request.path} {request.headers.get('accept', '-')}")


async def _broken(_request: Request) -> Response:
    raise ValueError("SECRET")


def served(test: Callable[[Exchange], Awaitable[None]], pages: dict[str, object] | None = None) -> None:
    """Run ``test`` with a function that sends bytes to a server and returns all that comes back."""

    async def run() -> None:
        server = HttpServer(pages or {"/a": _shown, "/broken": _broken})  # type: ignore[arg-type]
        port = await server.start("127.0.0.1", 0)

        async def exchange(sent: bytes) -> bytes:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(sent)
            try:
                return await reader.read()
            finally:
                writer.close()

        try:
            await test(exchange)
        finally:
            await server.stop()

    asyncio.run(run())


def test_a_page_is_given_to_get_and_its_head_to_head() -> None:
    async def test(exchange: Exchange) -> None:
        got = await exchange(b"GET /a?x=1 HTTP/1.1\r\nHost: x\r\nACCEPT: text/plain\r\n\r\n")
        head, _, body = got.partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200 OK\r\n")
        assert body == b"/a text/plain\n"
        assert b"Content-Length: 14" in head
        assert (await exchange(b"HEAD /a HTTP/1.0\r\n\r\n")).endswith(b"\r\n\r\n")

    served(test)


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"GET /nothing HTTP/1.1\r\n\r\n", b"404"),
        (b"POST /a HTTP/1.1\r\n\r\n", b"405"),
        (b"hello\r\n\r\n", b"400"),
        (b"GET /a HTTP/2.0\r\n\r\n", b"400"),
        (b"GET /a HTTP/1.1\r\nX: " + b"x" * HEAD_BYTES_MAX + b"\r\n\r\n", b"400"),
        (b"\xff\xfe\r\n\r\n", b"400"),
    ],
    ids=["unknown", "post", "no request", "http2", "too long", "binary"],
)
def test_anything_else_is_refused(sent: bytes, status: bytes) -> None:
    async def test(exchange: Exchange) -> None:
        assert (await exchange(sent)).split(b" ")[1] == status

    served(test)


def test_a_defect_in_a_page_is_logged_and_not_shown(caplog: pytest.LogCaptureFixture) -> None:
    async def test(exchange: Exchange) -> None:
        got = await exchange(b"GET /broken HTTP/1.1\r\n\r\n")
        assert got.split(b" ")[1] == b"500"
        assert b"SECRET" not in got

    served(test)
    assert [record.levelno for record in caplog.records] == [logging.ERROR]


def test_too_many_connections_are_turned_away() -> None:
    async def run() -> None:
        server = HttpServer({"/a": _shown})
        port = await server.start("127.0.0.1", 0)
        held = [await asyncio.open_connection("127.0.0.1", port) for _ in range(CONNECTIONS_MAX)]
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        assert (await reader.read()).split(b" ")[1] == b"503"
        for _, each in [*held, (reader, writer)]:
            each.close()
        await server.stop()

    asyncio.run(run())


def test_an_address_that_is_taken_is_named() -> None:
    async def run() -> None:
        first = HttpServer({})
        port = await first.start("127.0.0.1", 0)
        with pytest.raises(Unavailable, match=rf"cannot listen on 127.0.0.1:{port} for metrics: .*in use"):
            await HttpServer({}).start("127.0.0.1", port)
        await first.stop()

    asyncio.run(run())


def test_before_a_node_has_started_it_is_alive_and_not_ready() -> None:
    async def test(exchange: Exchange) -> None:
        assert (await exchange(b"GET /healthz HTTP/1.1\r\n\r\n")).endswith(b"alive\n")
        head, _, body = (await exchange(b"GET /readyz HTTP/1.1\r\n\r\n")).partition(b"\r\n\r\n")
        assert b"503" in head
        assert json.loads(body)["reasons"][0]["reason"] == "starting"
        assert b"\ncortado_process_threads " in await exchange(b"GET /metrics HTTP/1.1\r\n\r\n")

    served(test, dict(Pages(Readiness(lambda: 0.0)).by_path))
