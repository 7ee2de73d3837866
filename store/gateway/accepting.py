"""The gateway's listener: accepts connections, makes their TLS handshakes where there is a certificate, and hands them
to uvicorn's protocol (:mod:`cortado.store.gateway.connections`).

The protocol cannot count or end a connection before its handshake is complete. So handshakes have bounds of their own:
``head_ms`` for each, and HANDSHAKES_MAX at a time. Beyond that the oldest handshake is ended, so that silent strangers
keep nobody out. Without TLS there is no handshake, and nothing is ended here: uvloop would close such a connection
without telling the protocol, which would count it for ever.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable
from typing import Final

from cortado.store.accepting import accept
from cortado.store.gateway.certificate import ServedCertificate
from cortado.store.gateway.limits import HANDSHAKES_MAX, GatewayLimits

_LOG: Final = logging.getLogger(__name__)

# A client that does not look at its connection says no goodbye when that is closed.
_GOODBYE_S: Final = 0.5


class Listener:
    """Serves what comes to ``listening``, a socket that listens already, from :meth:`start` to :meth:`close`."""

    def __init__(
        self,
        listening: socket.socket,
        protocol: Callable[[], asyncio.Protocol],
        limits: GatewayLimits,
        certificate: ServedCertificate | None = None,
    ) -> None:
        self._listening = listening
        self._protocol = protocol
        self._handshake_s = limits.head_ms / 1000
        self._certificate = certificate
        self._accepting: asyncio.Task[None] | None = None
        self._coming: dict[asyncio.Task[None], None] = {}
        """Those that are no connection of the protocol yet, the oldest first."""

    def start(self) -> None:
        """Accept from here on, on the loop that runs."""
        self._listening.setblocking(False)
        self._accepting = asyncio.ensure_future(self._accept())

    async def close(self) -> None:
        """Accept no more. Connections that the protocol has stay with it."""
        coming, accepting = list(self._coming), [] if self._accepting is None else [self._accepting]
        for each in accepting if self._certificate is None else [*coming, *accepting]:
            each.cancel()
        await asyncio.gather(*coming, *accepting, return_exceptions=True)
        self._listening.close()

    async def _accept(self) -> None:
        while True:
            accepted, _ = await accept(self._listening, _LOG.warning)
            if self._certificate is not None and len(self._coming) >= HANDSHAKES_MAX:
                next(iter(self._coming)).cancel()
            task = asyncio.ensure_future(self._take(accepted))
            self._coming[task] = None
            task.add_done_callback(self._coming.pop)
            # So that it has begun before it can be ended: it closes what was accepted.
            await asyncio.sleep(0)

    async def _take(self, accepted: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        try:
            if self._certificate is None:
                await loop.connect_accepted_socket(self._protocol, accepted)
            else:
                await loop.connect_accepted_socket(
                    self._protocol,
                    accepted,
                    ssl=self._certificate.current().context,
                    ssl_handshake_timeout=self._handshake_s,
                    ssl_shutdown_timeout=_GOODBYE_S,
                )
        except OSError as problem:
            # Those of ssl are among them. Whoever scans a port would fill a log that everybody reads.
            _LOG.debug("a connection was not made: %s", problem)
            accepted.close()
        except asyncio.CancelledError:
            accepted.close()
            raise
