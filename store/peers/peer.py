"""One other node, as the transport knows it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from cortado.store.observe.measures import Traffic
from cortado.store.peers.link import Link


@dataclass(frozen=True, slots=True)
class PeerStatus:
    """For status pages: a peer, and how its stream does."""

    node_id: str
    address: str
    is_connected: bool
    opened_by: str
    silent_ms: float
    waiting_messages: int
    waiting_bytes: int
    dropped: int
    problem: str
    traffic: Traffic


@dataclass(slots=True, eq=False)
class Peer:
    """``address`` is its address, ``link`` the stream that counts, ``problem`` its last reported problem."""

    node_id: str
    address: str = ""
    storage_id: str = ""
    """The data directory at the other end of ``link``, or the one that was vouched for."""
    link: Link | None = None
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    dialling: asyncio.Task[None] | None = None
    dropped: int = 0
    problem: str = ""
    traffic: Traffic = field(default_factory=Traffic)

    def put(self, link: Link | None) -> None:
        self.link = link
        self.changed.set()

    async def change(self) -> None:
        """Wait for another link, or none."""
        self.changed.clear()
        await self.changed.wait()

    def stop_dialling(self) -> None:
        if self.dialling is not None:
            self.dialling.cancel()
            self.dialling = None

    def status(self, now_ms: float) -> PeerStatus:
        link = self.link
        messages, size = link.waiting if link is not None else (0, 0)
        return PeerStatus(
            node_id=self.node_id,
            address=self.address,
            is_connected=link is not None,
            opened_by=link.opened_by if link is not None else "",
            silent_ms=now_ms - link.heard_ms if link is not None else 0.0,
            waiting_messages=messages,
            waiting_bytes=size,
            dropped=self.dropped,
            problem=self.problem,
            traffic=self.traffic,
        )
