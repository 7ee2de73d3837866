"""TLS that is opened in slices: all bytes come, in their order, and costly ones leave the loop to others."""

from __future__ import annotations

import asyncio
import random
import socket
import ssl
from collections.abc import Callable, Coroutine
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

import pytest
import uvloop

from cortado.store.peers.credentials import Contexts, contexts_of
from cortado.store.ports import sliced_tls
from cortado.store.ports.accepting import Listener
from support.certificates import Certifier

ROOT = Path(__file__).parents[3]
WAIT_S = 30.0
RUNNERS: list[Callable[[Coroutine[Any, Any, Any]], Any]] = [uvloop.run, asyncio.run]


@pytest.fixture(scope="module")
def contexts(tmp_path_factory: pytest.TempPathFactory) -> Contexts:
    return contexts_of(Certifier(tmp_path_factory.mktemp("ca")).node("n1"))


class Taking(asyncio.Protocol):
    """Keeps all received bytes; pauses now and then, if it has a ``source`` of chance."""

    def __init__(self, whole: int, source: random.Random | None = None) -> None:
        self.received: list[bytes] = []
        self.is_whole: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._left, self._source = whole, source

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        self.received.append(data)
        self._left -= len(data)
        if self._left <= 0:
            self.is_whole.set_result(None)
        elif self._source is not None and self._source.random() < 0.3:
            self._transport.pause_reading()
            asyncio.get_running_loop().call_soon(self._transport.resume_reading)


class Caller:
    """TLS by hand: its records leave together."""

    def __init__(self, context: ssl.SSLContext) -> None:
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing)

    async def connect(self, address: Any) -> None:
        self._reader, self._writer = await asyncio.open_connection(*address)
        while True:
            try:
                self._tls.do_handshake()
                break
            except ssl.SSLWantReadError:
                self._writer.write(self._outgoing.read())
                self._incoming.write(await self._reader.read(1 << 16))

    def send(self, records: list[bytes]) -> None:
        """The first bytes come with the end of the handshake."""
        for each in records:
            self._tls.write(each)
        self._writer.write(self._outgoing.read())

    def end(self, *, says_goodbye: bool) -> None:
        """Send no more, and leave the other direction open."""
        if says_goodbye:
            with suppress(ssl.SSLWantReadError):
                self._tls.unwrap()
            self._writer.write(self._outgoing.read())
        self._writer.write_eof()

    def close(self) -> None:
        self._writer.close()


async def received(
    serving: ssl.SSLContext,
    calling: ssl.SSLContext,
    records: list[bytes],
    source: random.Random | None = None,
    *,
    says_goodbye: bool | None = None,
) -> list[bytes]:
    """Send the records at once; return the parts that a protocol receives.

    The caller's end of the connection ends right behind them, unless ``says_goodbye`` is None.
    """
    protocol = Taking(sum(map(len, records)), source)
    taken = socket.create_server(("127.0.0.1", 0))
    listener = Listener([taken], lambda: protocol, context=lambda: serving, handshake_s=WAIT_S, handshakes_max=9)
    listener.start()
    caller = Caller(calling)
    await caller.connect(taken.getsockname())
    caller.send(records)
    if says_goodbye is not None:
        caller.end(says_goodbye=says_goodbye)
    await asyncio.wait_for(protocol.is_whole, WAIT_S)
    caller.close()
    await listener.close()
    return protocol.received


@pytest.mark.parametrize("run", RUNNERS)
@pytest.mark.parametrize("port", ["anybody", "clients", "serving"])
def test_records_of_one_byte_are_opened_piece_by_piece(
    contexts: Contexts, run: Callable[..., Any], port: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sliced_tls, "SLICE_S", -1.0)
    serving, calling = getattr(contexts, port), contexts.looking if port == "anybody" else contexts.calling
    parts = run(received(serving, calling, [b"x"] * 20_000))
    # A record has 22 bytes more than its content. The first piece may have come with the handshake.
    assert max(map(len, parts)) <= 2 * sliced_tls.PIECE_BYTES // 22


@pytest.mark.parametrize("run", RUNNERS)
@pytest.mark.parametrize("slice_s", [-1.0, sliced_tls.SLICE_S])
@pytest.mark.parametrize("seed", range(4))
def test_all_bytes_come_in_their_order_however_a_protocol_pauses(
    contexts: Contexts, run: Callable[..., Any], slice_s: float, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sliced_tls, "SLICE_S", slice_s)
    source = random.Random(seed)
    records = [source.randbytes(source.choice((1, 30, 5_000, 16_384))) for _ in range(300)]
    parts = run(received(contexts.anybody, contexts.looking, records, source))
    assert b"".join(parts) == b"".join(records)


def test_all_accepted_connections_are_made_where_tls_is_sliced() -> None:
    made = "connect_accepted_socket("
    found = [path for path in (ROOT / "store").rglob("*.py") if made in path.read_text()]
    assert [path.name for path in found] == ["sliced_tls.py"]


@pytest.mark.parametrize("run", RUNNERS)
@pytest.mark.parametrize("says_goodbye", [False, True])
def test_bytes_before_the_end_of_a_connection_come_though_they_wait(
    contexts: Contexts, run: Callable[..., Any], says_goodbye: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sliced_tls, "SLICE_S", -1.0)
    parts = run(received(contexts.anybody, contexts.looking, [b"x"] * 20_000, says_goodbye=says_goodbye))
    assert sum(map(len, parts)) == 20_000
