"""The cluster's members, synchronous."""

from __future__ import annotations

from cortado.store.client.blocking.drive import run
from cortado.store.client.blocking.forward import forwards
from cortado.store.client.cluster import AsyncMembership, Members, MemberStatus


@forwards(AsyncMembership)
class Membership:
    """The cluster's members. Changes go to the leader, one at a time, and return when they are committed.

    A change without an answer in time raises OutcomeUnknown: :meth:`list` tells later whether it was made.
    """

    def __init__(self, core: AsyncMembership) -> None:
        self._core = core

    def list(self, *, at_leader: bool = False) -> Members:
        return run(self._core.list(at_leader=at_leader))

    def add(self, node_id: str, peer_address: str) -> tuple[MemberStatus, ...]:
        return run(self._core.add(node_id, peer_address))

    def promote(self, node_id: str) -> tuple[MemberStatus, ...]:
        return run(self._core.promote(node_id))

    def remove(self, node_id: str) -> tuple[MemberStatus, ...]:
        return run(self._core.remove(node_id))

    def transfer_leader(self, to_node_id: str = "") -> str:
        return run(self._core.transfer_leader(to_node_id))
