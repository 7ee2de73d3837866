"""Streams with replies that are not taken: over a real port they give their places up if others find none."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import grpc
import pytest

from cortado.errors import ResourceExhausted
from cortado.proto.v1 import kv_pb2
from cortado.store.auth.caller import holder
from cortado.store.observe.requests import Requests
from cortado.store.process.admission import Gate
from cortado.store.server import sending
from cortado.store.server.replying import Replying
from support.fronts import FRONTS, served_by

REPLY = b"\x0a" + b"\x80\x80\x10" + b"x" * (1 << 18)
REPLIES = 8
SCAN = "/cortado.v1.KeyValue/Scan"
WAIT_S = 10.0
# A caller that takes nothing: no window of a call grows by itself.
OPTIONS = [("grpc.http2.bdp_probe", 0), ("grpc.http2.lookahead_bytes", 65_535), ("grpc.use_local_subchannel_pool", 1)]


class Scans:
    """Scans of eight replies each; a connection may have two open."""

    def __init__(self, bytes_max: int = 1 << 30) -> None:
        self.gate = Gate("scans", count_max=4, holder=holder)
        self.requests = Requests()
        self.replying = Replying(bytes_max)
        self.open = 0

    async def scan(self, _request: Any) -> AsyncGenerator[bytes, None]:
        with self.gate.place():
            self.open += 1
            try:
                for _ in range(REPLIES):
                    yield REPLY
            finally:
                self.open -= 1

    def __getattr__(self, name: str) -> Any:
        return self.scan

    def refuse(self) -> None:
        """Take all places, and let another caller find none."""
        places = self.gate.use()
        for _ in range(places.count_max - places.count):
            self.gate.enter()
        with suppress(ResourceExhausted):
            self.gate.enter()


@pytest.fixture(params=FRONTS)
def front(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@asynccontextmanager
async def served(scans: Scans, front: str) -> AsyncIterator[grpc.aio.Channel]:
    service = kv_pb2.DESCRIPTOR.services_by_name["KeyValue"]
    async with (
        served_by(front, service, scans, requests=scans.requests, replying=scans.replying) as endpoint,
        grpc.aio.insecure_channel(endpoint, options=OPTIONS) as channel,
    ):
        yield channel


async def until(condition: Any) -> None:
    async with asyncio.timeout(WAIT_S):
        while not condition():
            await asyncio.sleep(0.005)


def opened(channel: grpc.aio.Channel) -> Any:
    return channel.stream_stream(SCAN)(iter([b""]))


def test_an_unread_scan_gives_its_place_up_where_others_find_none(
    front: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(sending, "UNREAD_S", 0.01)

    async def test() -> None:
        scans = Scans()
        async with served(scans, front) as channel:
            scan = opened(channel)
            await until(lambda: scans.gate.use().count == 1)
            scans.refuse()
            count = scans.gate.use().count
            await until(lambda: scans.refuse() or scans.requests.refusals["scans"])
            assert scans.gate.use().count == count, "another one has its place"
            assert scans.requests.method("cortado.v1.KeyValue/Scan").codes == {"RESOURCE_EXHAUSTED": 1}
            assert scans.replying.bytes == len(REPLY), "it is kept until the caller reads on"
            with pytest.raises(grpc.aio.AioRpcError) as ended:
                while await scan.read() is not grpc.aio.EOF:
                    pass
            assert ended.value.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
            assert "was not taken" in str(ended.value.details())
            await until(lambda: scans.replying.bytes == 0)

    asyncio.run(test())
    assert "KeyValue/Scan of ipv4:127.0.0.1" in caplog.text
    assert "callers found no place among 4 scans" in caplog.text


def test_an_unread_scan_keeps_its_place_while_nobody_wants_it(front: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sending, "UNREAD_S", 0.001)
    looks = 0
    look = sending.Sending._look

    def counted(self: sending.Sending) -> None:
        nonlocal looks
        looks += 1
        look(self)

    monkeypatch.setattr(sending.Sending, "_look", counted)

    async def test() -> None:
        scans = Scans()
        async with served(scans, front) as channel:
            scan = opened(channel)
            await until(lambda: looks > 10)
            assert scans.gate.use().count == 1
            count = 0
            while await scan.read() is not grpc.aio.EOF:
                count += 1
            assert count == REPLIES
            assert await scan.code() == grpc.StatusCode.OK

    asyncio.run(test())


def test_what_scans_that_were_given_up_leave_behind_is_bounded(front: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sending, "UNREAD_S", 0.01)

    async def test() -> None:
        scans = Scans(bytes_max=3 * len(REPLY))
        async with served(scans, front) as channel:
            calls = []
            for kept_bytes in (len(REPLY), 2 * len(REPLY), 3 * len(REPLY)):
                calls.append(opened(channel))
                await until(lambda: scans.open == 1)
                await until(lambda: scans.refuse() or scans.replying.bytes == kept_bytes)  # noqa: B023
                while scans.gate.use().count:
                    scans.gate.leave()
            refused = opened(channel)
            with pytest.raises(grpc.aio.AioRpcError, match="bytes of replies are not taken"):
                await refused.read()
            for each in calls:
                each.cancel()
            await until(lambda: scans.replying.bytes == 0)

    asyncio.run(test())
