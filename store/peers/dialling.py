"""When a peer is dialled: at once by the node with the smaller id, and by the other if no stream came within a second.

The other one must be able to dial, as it may be the only one that knows its peer: a node that was away while a member
was added does not. A failed attempt is repeated after 50 ms, then after twice as long, up to a second, with jitter.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable
from typing import Final

from cortado.errors import CortadoError
from cortado.store.peers.dial import Caller, dial
from cortado.store.peers.peer import Peer

_LOG: Final = logging.getLogger(__name__)


class Dialling:
    """For ``caller``, the transport; ``report`` logs why a peer was not reached."""

    def __init__(
        self,
        caller: Caller,
        *,
        monotonic_ms: Callable[[], float],
        chance: random.Random,
        report: Callable[[str, str, CortadoError], None],
    ) -> None:
        self._caller = caller
        self._limits = caller.limits
        self._monotonic_ms = monotonic_ms
        self._chance = chance
        self._report = report

    def keep(self, peer: Peer, address: str) -> None:
        """Dial a peer at ``address`` from now on."""
        if peer.address != address:
            peer.address = address
            if peer.link is None:
                peer.stop_dialling()
        if peer.dialling is None:
            peer.dialling = asyncio.ensure_future(self._keep_dialling(peer))

    async def _keep_dialling(self, peer: Peer) -> None:
        backoff_ms: float = self._limits.backoff_ms_min
        while True:
            while peer.link is not None:
                await peer.change()
            if self._caller.node_id > peer.node_id and await self._is_linked_soon(peer):
                continue
            began_ms = self._monotonic_ms()
            try:
                await dial(self._caller, peer.node_id, peer.address)
            except CortadoError as problem:
                self._report(peer.node_id, "not connected", problem)
            except Exception:
                _LOG.exception("a defect in the stream to node %s", peer.node_id)
            if self._monotonic_ms() - began_ms > self._limits.silence_ms:
                backoff_ms = self._limits.backoff_ms_min
            await asyncio.sleep(backoff_ms * self._chance.uniform(0.5, 1.0) / 1000)
            backoff_ms = min(backoff_ms * 2, self._limits.backoff_ms_max)

    async def _is_linked_soon(self, peer: Peer) -> bool:
        try:
            async with asyncio.timeout(self._limits.wait_to_dial_ms / 1000):
                while peer.link is None:
                    await peer.change()
        except TimeoutError:
            return False
        return True
