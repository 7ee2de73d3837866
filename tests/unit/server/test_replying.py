"""Replies that their callers do not take: over a real port they are bounded, for any request."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import grpc
import pytest

from cortado.proto.v1 import kv_pb2
from cortado.store.server.replying import Replying
from support.fronts import FRONTS, served_by

REPLY = b"\x0a" + b"\x80\x80\x10" + b"x" * (1 << 18)
REPLIES_MAX = 4
CALLS = 12
WAIT_S = 10.0
# A caller that takes nothing: no window of a call grows by itself.
OPTIONS = [("grpc.http2.bdp_probe", 0), ("grpc.http2.lookahead_bytes", 65_535), ("grpc.use_local_subchannel_pool", 1)]


class Kv:
    def __getattr__(self, name: str) -> Any:
        return self._answer

    async def _answer(self, _request: Any) -> bytes:
        await asyncio.sleep(0)
        return REPLY


@pytest.fixture(params=FRONTS)
def front(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@asynccontextmanager
async def served(front: str) -> AsyncIterator[tuple[Replying, Callable[[], grpc.aio.Channel]]]:
    """Yield the counts, and a function that connects anew each time."""
    replying = Replying(REPLIES_MAX * len(REPLY))
    service = kv_pb2.DESCRIPTOR.services_by_name["KeyValue"]
    async with served_by(front, service, Kv(), replying=replying) as endpoint:
        yield replying, lambda: grpc.aio.insecure_channel(endpoint, options=OPTIONS)


async def until(condition: Any) -> None:
    async with asyncio.timeout(WAIT_S):
        while not condition():
            await asyncio.sleep(0.005)


@pytest.mark.parametrize(("method", "refused"), [("Get", CALLS - REPLIES_MAX), ("Put", 0)])
def test_replies_that_are_not_taken_are_bounded_where_nothing_changed(front: str, method: str, refused: int) -> None:
    async def test() -> None:
        async with served(front) as (replying, connect), connect() as channel:
            make: Any = channel.stream_stream(f"/cortado.v1.KeyValue/{method}")
            calls = [make(iter([b""])) for _ in range(CALLS)]
            await until(lambda: replying.bytes == (CALLS - refused) * len(REPLY))
            await until(lambda: sum(each.done() for each in calls) == refused)
            codes = [await each.code() for each in calls if each.done()]
            assert codes == [grpc.StatusCode.RESOURCE_EXHAUSTED] * refused
            for each in calls:
                each.cancel()
            await until(lambda: replying.bytes == 0)

    asyncio.run(test())


def test_who_takes_nothing_keeps_no_other_from_his_even_share(front: str) -> None:
    async def test() -> None:
        async with served(front) as (replying, connect), connect() as stuck, connect() as another:
            calls = [stuck.stream_stream("/cortado.v1.KeyValue/Get")(iter([b""])) for _ in range(CALLS)]
            await until(lambda: replying.bytes == REPLIES_MAX * len(REPLY))
            calls += [another.stream_stream("/cortado.v1.KeyValue/Get")(iter([b""])) for _ in range(CALLS)]
            await until(lambda: sum(each.done() for each in calls) == 2 * CALLS - REPLIES_MAX * 3 // 2)
            assert replying.bytes == REPLIES_MAX * 3 // 2 * len(REPLY)
            for each in calls:
                each.cancel()
            await until(lambda: replying.bytes == 0)

    asyncio.run(test())
