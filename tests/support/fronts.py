"""Both fronts in this process, for tests of their common duties."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

import grpc
from google.protobuf.descriptor import ServiceDescriptor

from cortado.store.observe.requests import Requests
from cortado.store.server.client_port import ClientPort, Port
from cortado.store.server.front import Front
from cortado.store.server.replying import Replying
from cortado.store.server.rpc import rpc_handler

FRONTS: Final = ("grpc", "native")
GRACE_S: Final = 0.1


def port_of(front: str, connections_max: int = 100) -> Port:
    if front == "native":
        return Front("127.0.0.1", 0, None, of_clients=False, connections_max=connections_max)
    return ClientPort("127.0.0.1", 0, None, of_clients=False, connections_max=connections_max, received=lambda: 0)


@asynccontextmanager
async def served_by(
    front: str,
    service: ServiceDescriptor,
    servicer: object,
    *,
    requests: Requests | None = None,
    replying: Replying | None = None,
    beside: tuple[grpc.GenericRpcHandler, ...] = (),
) -> AsyncIterator[str]:
    """Yield the address of ``service``, served by the methods of ``servicer``, with the services ``beside`` it."""
    port = port_of(front)
    port.add_handlers([rpc_handler(service, servicer, requests, replying=replying), *beside])
    await port.start()
    try:
        yield port.address
    finally:
        await port.stop(GRACE_S)
