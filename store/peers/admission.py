"""Decides which nodes are peers: members by the replicated state, and nodes that members vouch for.

:mod:`cortado.store.peers.hello` compares that with what a node says about itself and with its certificate. A refusal is
sent to the node that is refused, and logged once per change.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

from cortado.errors import CortadoError, PeerRefused
from cortado.proto.internal.peers_pb2 import Hello
from cortado.store.engine.data_directory import Identity
from cortado.store.peers.hello import check_certificate, check_hello, read_hello, why_no_member, why_removed
from cortado.store.peers.interface import PeerNode
from cortado.store.peers.processes import Processes
from cortado.store.peers.vouching import Vouching

_LOG: Final = logging.getLogger(__name__)


class Admission:
    """``node`` is the one that peers reach (it raises Unavailable while there is none), ``report`` logs a problem with
    the node of an id. ``cut`` nodes are never asked."""

    def __init__(
        self,
        identity: Identity,
        vouching: Vouching,
        processes: Processes,
        *,
        node: Callable[[], PeerNode],
        cut: Callable[[], frozenset[str]],
        report: Callable[[str, str, CortadoError], None],
    ) -> None:
        self._identity = identity
        self._node = node
        self._cut = cut
        self._report = report
        self._vouching = vouching
        self._processes = processes
        self._vouched: dict[str, str] = {}

    def check_role(self, certificate: tuple[str, str] | None) -> None:
        """Check the certificate's role before reading from a caller that cannot be a peer. Raises PeerRefused."""
        if certificate is None:
            return
        try:
            check_certificate(certificate[1], certificate)
        except PeerRefused as refusal:
            self._report("", "refused", refusal)
            raise

    def check(self, hello: Hello, certificate: tuple[str, str] | None) -> None:
        """Check that the sender is a member by this node's knowledge. Raises PeerRefused; a refusal is logged."""
        try:
            refusal = self._why_no_member(hello, certificate)
            if refusal is not None:
                raise refusal
        except PeerRefused as refused:
            self._report(hello.node_id, "refused", refused)
            raise

    async def introduced(self, message: bytes, certificate: tuple[str, str] | None) -> Hello:
        """Return the Hello of a caller that is a peer. Raises as :meth:`admit` does."""
        try:
            hello = read_hello(message)
        except PeerRefused as refusal:
            self._report("", "refused", refusal)
            raise
        await self.admit(hello, certificate)
        return hello

    async def admit(self, hello: Hello, certificate: tuple[str, str] | None) -> None:
        """As :meth:`check`, but an unknown sender with a log ahead of ours is a peer if members vouch for it. Raises
        also ResourceExhausted."""
        group = self._node().meta
        try:
            refusal = self._why_no_member(hello, certificate)
            if refusal is None or self.is_vouched_for(hello.node_id, hello.storage_id):
                return
            ours = group.log_position()
            if (hello.last_term, hello.last_index) <= ours:
                raise refusal
            # Not the stranger itself, nor this node, nor nodes that can't be reached.
            nobody = {hello.node_id, self._identity.node_id, *self._cut()}
            known = [each for each in group.known_members() if each.node_id not in nobody]
            position = await self._vouching.position_for(hello, known, ours, refusal)
        except PeerRefused as refused:
            self._report(hello.node_id, "refused", refused)
            raise
        _LOG.warning("node %s is not known here: members vouched for it, up to %s", hello.node_id, position)
        self._vouched[hello.node_id] = hello.storage_id
        group.believe(hello.node_id, position)

    def is_vouched_for(self, node_id: str, storage_id: str) -> bool:
        """Return whether members' word still counts for this node with this data directory."""
        return self._vouched.get(node_id) == storage_id and self._node().meta.is_believed(node_id)

    def review(self) -> None:
        """Forget nodes that are vouched for no longer."""
        for node_id in [each for each in self._vouched if not self._node().meta.is_believed(each)]:
            del self._vouched[node_id]

    def _why_no_member(self, hello: Hello, certificate: tuple[str, str] | None) -> PeerRefused | None:
        check_certificate(hello.node_id, certificate)
        check_hello(hello, self._identity)
        self._processes.check(hello)
        replica = self._node().meta
        if replica.is_removed(hello.node_id):
            raise why_removed(hello, self._identity)
        return why_no_member(hello, self._identity, replica.known_member(hello.node_id))
