"""The port for peers of a node that waits to join: it answers that the node belongs to no cluster.

A node that is to found a cluster asks every node that is to be a member (:mod:`cortado.store.peers.join`). Silence
could be a member that is starting, so a node that belongs to no cluster must say so.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Coroutine, Sequence
from contextlib import suppress
from typing import Any, Final

from cortado.errors import CortadoError
from cortado.store.peers.connection import Connection
from cortado.store.peers.credentials import Certificates
from cortado.store.peers.frames import Kind
from cortado.store.peers.hello import check_certificate
from cortado.store.peers.interface import PeerLimits
from cortado.store.peers.tls import caller_of
from cortado.store.ports.accepting import accept
from cortado.store.ports.sliced_tls import taken

_LOG: Final = logging.getLogger(__name__)

CALLERS_MAX: Final = 64
"""At a time; one more waits until another has its answer, or its time is over."""


class WaitingListener:
    """For the length of a block, answers each JOIN on ``sockets``, which listen already and stay open, with ``answer``;
    everything else is closed without a word."""

    def __init__(
        self, sockets: Sequence[socket.socket], answer: CortadoError, certificates: Certificates | None
    ) -> None:
        self._sockets = sockets
        self._answer = answer
        self._certificates = certificates
        self._limits = PeerLimits()
        self._room = asyncio.Semaphore(CALLERS_MAX)
        self._tasks: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> None:
        for each in self._sockets:
            each.setblocking(False)
            self._start(self._accept(each))

    async def __aexit__(self, *_: object) -> None:
        for each in self._tasks:
            each.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _accept(self, listening: socket.socket) -> None:
        while True:
            await self._room.acquire()
            accepted, _ = await accept(listening, _LOG.warning)
            self._start(self._serve(accepted))
            # So that it has begun before it can be ended: it closes the accepted socket.
            await asyncio.sleep(0)

    async def _serve(self, accepted: socket.socket) -> None:
        connection = Connection("a caller")
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(self._limits.hello_ms / 1000):
                    if await self._asks_to_join(connection, accepted):
                        await connection.refuse(self._answer)
        except (CortadoError, OSError) as problem:
            # Those of ssl are among them.
            _LOG.debug("a caller before this node is in a cluster: %s", problem)
        finally:
            connection.abort()
            if not connection.is_made:
                accepted.close()
            self._room.release()

    async def _asks_to_join(self, connection: Connection, accepted: socket.socket) -> bool:
        """Return whether the caller is a node that asks to join. Raises PeerRefused for a frame that no node sends."""
        if self._certificates is None:
            await taken(accepted, lambda: connection, None)
        else:
            await taken(accepted, lambda: connection, self._certificates.current().contexts.serving)
            role, name = caller_of(connection.told("peercert"))
            check_certificate(name, (role, name))
        connection.expect(**{kind.name: self._limits.hello_bytes_max for kind in (Kind.JOIN, Kind.HELLO)})
        first = await connection.read()
        return first is not None and first.kind is Kind.JOIN
