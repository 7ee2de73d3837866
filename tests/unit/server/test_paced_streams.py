"""A stream that owes bytes waits before its next message, until they are paid, or the quota is gone."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import nullcontext

import pytest

from cortado.errors import PermissionDenied
from cortado.store.quotas.meters import Meters
from cortado.store.quotas.quota import Quota, Target
from cortado.store.server.authority import OpenStream

TARGET = Target("namespace:carts")


class Paced:
    """A stream that has sent ten seconds' worth."""

    def __init__(self) -> None:
        self.now_ms = 0.0
        self.meters = Meters(lambda: self.now_ms)
        self.meters.use({TARGET: Quota(TARGET, bytes_per_second=1_000)})
        self.stream = OpenStream("cortado.v1.KeyValue/Scan")
        self.stream._meters = self.meters
        self.stream._counting = lambda: list(self.meters.by_target.values())  # type: ignore[method-assign]

    def end(self) -> None:
        self.stream._refusal = PermissionDenied("app", "reader", "namespace:carts")

    def pay(self) -> None:
        self.now_ms += 10_000

    def remove(self) -> None:
        self.meters.use({})


@pytest.mark.parametrize(("what", "denial"), [(Paced.pay, None), (Paced.remove, None), (Paced.end, PermissionDenied)])
def test_it_waits_until(what: Callable[[Paced], None], denial: type[Exception] | None) -> None:
    async def play() -> None:
        paced = Paced()
        assert not paced.stream.sent(900)
        assert paced.stream.sent(10_000)
        waiting = asyncio.ensure_future(paced.stream.pace())
        for _ in range(5):
            await asyncio.sleep(0)
        assert not waiting.done()
        what(paced)
        with nullcontext() if denial is None else pytest.raises(denial):
            await asyncio.wait_for(waiting, 10)

    asyncio.run(play())


def test_without_quotas_it_waits_for_nothing() -> None:
    async def play() -> None:
        stream = OpenStream("cortado.v1.KeyValue/Scan")
        assert not stream.sent(1 << 30)
        await stream.pace()

    asyncio.run(play())
