"""A server that no client can reach ends in order, with an exit code of its own."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest

from cortado.errors import Unavailable
from cortado.store.replica.replica import Role
from cortado.store.server.ending import Served, until_stopped
from cortado.store.server.exits import EXIT_PORT, PortLost


def test_a_server_whose_port_is_lost_stops_in_order_and_says_so() -> None:
    done: list[str] = []

    async def wait() -> Any:
        await asyncio.get_running_loop().create_future()

    async def lost() -> Unavailable:
        return Unavailable("it cannot be served again")

    async def did(what: str) -> None:
        done.append(what)

    watches = SimpleNamespace(stop=lambda _: done.append("watches"))
    served = SimpleNamespace(
        config=SimpleNamespace(stop_grace_ms=100, election_ms_max=100),
        host=SimpleNamespace(
            process=SimpleNamespace(
                life=SimpleNamespace(failed=wait), writes=SimpleNamespace(use=lambda: SimpleNamespace(count=0))
            ),
            meta=SimpleNamespace(role=Role.FOLLOWER, watches=watches),
        ),
        port=SimpleNamespace(lost=lost, stop=lambda _: did("port")),
        healthy=SimpleNamespace(enter_graceful_shutdown=lambda: did("health")),
        calls=SimpleNamespace(stop=lambda: done.append("calls")),
        metering=SimpleNamespace(stop=lambda: done.append("metering")),
        transport=SimpleNamespace(close=lambda: did("transport")),
    )

    async def run() -> None:
        await until_stopped(cast(Served, served), asyncio.Event())

    with pytest.raises(PortLost) as ended:
        asyncio.run(run())
    assert ended.value.exit_code == EXIT_PORT
    assert set(done) == {"health", "port", "calls", "metering", "watches", "transport"}
