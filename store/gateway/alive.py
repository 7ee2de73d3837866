"""``GET /healthz``: the process lives, and its loop runs. It asks no node: a restart here would not mend one.

It is answered beyond the bounds of calls and connections, too.
"""

from __future__ import annotations

from typing import Final

from starlette.responses import Response

from cortado.store.gateway.calls import Call, Operation

PATH: Final = "/healthz"


def operations() -> list[Operation]:
    """Return the one call."""
    summary = "Whether the gateway is alive: for probes."
    return [Operation("GET", PATH, _alive, summary, gives={200: ("text/plain",)}, is_probe=True)]


async def _alive(_: Call) -> Response:
    return Response("alive\n", 200, {"Cache-Control": "no-store"}, "text/plain")
