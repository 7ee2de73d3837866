"""``GET /healthz``: the process lives, and its loop runs. It asks no node: a restart here would not mend one."""

from __future__ import annotations

from starlette.responses import Response

from cortado.store.gateway.calls import Call
from cortado.store.gateway.operations import Operation


def operations() -> list[Operation]:
    """The one call."""
    return [
        Operation("GET", "/healthz", _alive, "Whether the gateway is alive: for probes.", gives={200: ("text/plain",)})
    ]


async def _alive(_: Call) -> Response:
    return Response("alive\n", 200, {"Cache-Control": "no-store"}, "text/plain")
