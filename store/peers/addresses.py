"""A node's two addresses: one for clients, one for the other nodes (docs/adr/0028)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Addresses:
    """host:port each."""

    clients: str
    peers: str

    def __str__(self) -> str:
        return f"{self.clients} (for peers {self.peers})"
