"""The node's transport: chooses among several streams to one peer, and sends messages over it.

One stream joins two nodes. If both dialled at the same time (``dialling.py``), the smaller id's stream stays.

Messages to a peer without a stream are dropped and counted, and the peer is dialled again. A stream on which nothing
arrives for two seconds is closed (``liveness.py``). Each attempt is a new connection, with the newest certificates.

A removed member is disconnected once its removal is committed, and refused when it dials again (``admission.py``). So
it learns of the removal, whether or not it was running then. Refusals and lost connections are logged once per change.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Sequence
from typing import Final

from cortado.errors import CortadoError, PeerRefused, Unavailable
from cortado.proto.internal.peers_pb2 import FetchSnapshotRequest, Hello
from cortado.raft.log import Message
from cortado.raft.registry import Roster
from cortado.store.engine.data_directory import Identity
from cortado.store.peers.admission import Admission
from cortado.store.peers.connecting import Target
from cortado.store.peers.credentials import Certificates
from cortado.store.peers.dialling import Dialling
from cortado.store.peers.fetch import fetch_snapshot
from cortado.store.peers.hello import make_hello
from cortado.store.peers.interface import PeerLimits, PeerNode, Stream
from cortado.store.peers.link import Link
from cortado.store.peers.liveness import watch_links
from cortado.store.peers.once import OncePerChange
from cortado.store.peers.peer import Peer, PeerStatus
from cortado.store.peers.processes import Processes, refusal_of
from cortado.store.peers.ranges import range_request, read_range
from cortado.store.peers.vouching import Vouching
from cortado.store.process.range_copies import Answer, Ask

_LOG: Final = logging.getLogger(__name__)


class PeerTransport:
    """A :class:`~cortado.store.process.transport.Transport`, and the other end of the streams that peers open.

    ``address`` (host:port) is where peers reach this node; ``certificates`` None for connections without. Call
    :meth:`attach` with the node before anything else, and :meth:`close` at the end. All of it belongs to one loop.
    """

    def __init__(
        self,
        identity: Identity,
        address: str,
        *,
        certificates: Certificates | None,
        physical_ms: Callable[[], int],
        monotonic_ms: Callable[[], float],
        chance: random.Random,
        limits: PeerLimits | None = None,
    ) -> None:
        self.identity = identity
        self.address = address
        self.certificates = certificates
        self.limits = limits or PeerLimits()
        self.limits.check()
        self.roster = Roster()
        self._physical_ms = physical_ms
        self._monotonic_ms = monotonic_ms
        self._node: PeerNode | None = None
        self._peers: dict[str, Peer] = {}
        self._said = OncePerChange()
        self._ticking: asyncio.Task[None] | None = None
        self._cut: frozenset[str] = frozenset()
        self._is_closed = False
        self.vouching = Vouching(self.hello_to, certificates, self.limits, monotonic_ms)
        self.processes = Processes(
            own=chance.getrandbits(64) | 1,
            monotonic_ms=monotonic_ms,
            open_link=self._open_link,
            is_heard=lambda: any(each.is_open for each in self._links()),
            alive_ms=2 * self.limits.idle_ms,
        )
        self.admission = Admission(
            identity,
            self.vouching,
            self.processes,
            node=self._attached,
            cut=lambda: self._cut,
            report=self.report,
        )
        self._dialling = Dialling(self, monotonic_ms=monotonic_ms, chance=chance, report=self.report)

    def attach(self, node: PeerNode) -> None:
        """Set the node that receives messages."""
        self._node = node

    @property
    def node_id(self) -> str:
        return self.identity.node_id

    # --- the node's side ---------------------------------------------------------------------------------------

    def configure(self, roster: Roster) -> None:
        """Connect to every member but ourselves from now on. Cuts streams of nodes that are members by no configuration
        that may be in force."""
        if self._is_closed:
            return
        self.roster = roster
        for member in roster.members:
            if member.node_id != self.node_id:
                peer = self._peers.setdefault(member.node_id, Peer(member.node_id))
                self._dialling.keep(peer, member.peer_address)
        self._review()
        self._start_ticking()

    def send(self, group_id: int, messages: Sequence[Message]) -> None:
        """Send each to its peer, or queue it if the peer is slow, or drop it if the peer is not connected or its queue
        is full."""
        links = {}
        for message in messages:
            peer = self._peers.get(message.to)
            if peer is None:
                continue
            if peer.link is not None and peer.link.offer(group_id, message.body):
                links[message.to] = peer.link
            else:
                peer.dropped += 1
        for link in links.values():
            link.flush()

    def fetch_snapshot(self, peer: str, group_id: int, snapshot_id: str, offset: int) -> AsyncIterator[bytes]:
        """See :meth:`cortado.store.process.transport.Transport.fetch_snapshot`."""
        wanted = FetchSnapshotRequest(
            hello=self.hello_to(peer), group_id=group_id, snapshot_id=snapshot_id, offset=offset
        )
        return fetch_snapshot(self._target(peer), wanted)

    async def read_range(self, peer: str, group_id: int, ask: Ask) -> Answer:
        """See :meth:`cortado.store.process.transport.Transport.read_range`."""
        return await read_range(self._target(peer), range_request(self.hello_to(peer), group_id, ask))

    def cut(self, node_ids: Collection[str]) -> None:
        """For tests: from now on nothing comes from these nodes or goes to them, as if the network between were cut.
        The others are reached again."""
        self._cut = frozenset(node_ids)
        for node_id in self._cut:
            peer = self._peers.get(node_id)
            if peer is not None and peer.link is not None:
                peer.link.close(Unavailable(f"cut off from node {node_id}"))

    def status(self) -> list[PeerStatus]:
        """Return the status of every peer, in the order of their ids."""
        now_ms = self._monotonic_ms()
        return [self._peers[node_id].status(now_ms) for node_id in sorted(self._peers)]

    def link_to(self, node_id: str) -> Link | None:
        """Return the stream to a peer that counts now."""
        peer = self._peers.get(node_id)
        return peer.link if peer is not None else None

    async def close(self) -> None:
        """Cut all streams, and dial no more."""
        self._is_closed = True
        tasks = [each.dialling for each in self._peers.values() if each.dialling is not None]
        if self._ticking is not None:
            tasks.append(self._ticking)
        for link in self._links():
            link.close(Unavailable(f"node {self.node_id} stops"))
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    # --- streams -----------------------------------------------------------------------------------------------

    async def admit(self, hello: Hello) -> None:
        """See :meth:`~cortado.store.peers.admission.Admission.admit`, for a node that was dialled."""
        await self.admission.admit(hello, None)

    async def carry(self, hello: Hello, stream: Stream, *, opened_by: str) -> None:
        """Use a stream whose sides have accepted each other, until it ends. Always raises the reason."""
        if self._node is None or self._is_closed:
            raise Unavailable(f"node {self.node_id} stops")
        # Once more: the other side's Hello may have been waited for.
        self._check_not_cut(hello.node_id)
        self.processes.check(hello)
        peer = self._peers.setdefault(hello.node_id, Peer(hello.node_id, hello.peer_address))
        link = Link(
            peer.node_id,
            stream,
            self._node,
            opened_by=opened_by,
            limits=self.limits,
            monotonic_ms=self._monotonic_ms,
            physical_ms=self._physical_ms,
            traffic=peer.traffic,
        )
        self._adopt(peer, link, hello)
        peer.storage_id = hello.storage_id
        self._start_ticking()
        try:
            await link.run()
        except CortadoError as problem:
            if peer.link is link:
                self.report(peer.node_id, "lost", problem)
            raise
        finally:
            self.processes.lost(peer.node_id, hello.process, link.lived_ms)
            if peer.link is link:
                peer.put(None)
                if self.roster.member(peer.node_id) is None:
                    self._peers.pop(peer.node_id, None)

    def _adopt(self, peer: Peer, link: Link, hello: Hello) -> None:
        """Make ``link`` the one that counts. Raises Unavailable if the one that there is stays."""
        old = peer.link
        if old is not None and old.is_open and self.processes.takes_over(hello):
            old.close(refusal_of(peer.node_id))
        elif old is not None and old.is_open:
            first = min(self.node_id, peer.node_id)
            is_alive = self._monotonic_ms() - old.heard_ms < 2 * self.limits.idle_ms
            if old.opened_by == first != link.opened_by and is_alive:
                raise Unavailable(f"another stream joins nodes {self.node_id} and {peer.node_id} already")
            old.close(Unavailable(f"a newer stream joins nodes {self.node_id} and {peer.node_id}"))
        self.processes.adopt(hello)
        peer.put(link)
        peer.traffic.connections += 1
        self._said.forget(peer.node_id)
        peer.problem = ""
        _LOG.info("connected to node %s at %s", peer.node_id, peer.address)

    def _open_link(self, node_id: str) -> Link | None:
        link = self.link_to(node_id)
        return link if link is not None and link.is_open else None

    def _review(self) -> None:
        """Disconnect peers that are members no longer, or whose node id belongs to another data directory now."""
        if self._node is None:
            return
        for peer in list(self._peers.values()):
            if self.admission.is_vouched_for(peer.node_id, peer.storage_id):
                continue
            member = self._node.meta.known_member(peer.node_id)
            if member is None:
                self._dismiss(peer)
            elif peer.link is not None and member.storage_id not in ("", peer.storage_id):
                peer.link.close(PeerRefused(f"node id {peer.node_id} belongs to another data directory now"))
        self.admission.review()

    def _dismiss(self, peer: Peer) -> None:
        """Disconnect and forget a peer that is no member any more."""
        self.processes.forget(peer.node_id)
        if peer.link is None:
            del self._peers[peer.node_id]
        else:
            peer.link.close(PeerRefused(f"node {peer.node_id} was removed from cluster {self.identity.cluster_id}"))
        peer.stop_dialling()

    def _start_ticking(self) -> None:
        if self._ticking is None:
            self._ticking = asyncio.ensure_future(
                watch_links(self._links, self._review, self.limits, self._monotonic_ms)
            )

    def _links(self) -> Iterator[Link]:
        return (each.link for each in self._peers.values() if each.link is not None)

    # --- small things ------------------------------------------------------------------------------------------

    def hello_to(self, node_id: str) -> Hello:
        """Return how this node introduces itself."""
        hello = make_hello(self.identity, self.address, self._attached().meta.log_position(), node_id)
        self.processes.tell(hello)
        return hello

    def report(self, node_id: str, what: str, problem: CortadoError) -> None:
        """Log a problem with a peer, or with a caller that claims to be one (``node_id`` may be made up, or empty)."""
        text = problem.message()
        if isinstance(problem, PeerRefused) and problem.replaced == self.node_id:
            self.processes.refused(problem)
        peer = self._peers.get(node_id)
        is_known = self.roster.member(node_id) is not None
        if peer is not None:
            peer.problem = text
        # For a caller without a name, the problem itself is the topic.
        topic = node_id or text
        if self._said.is_new(topic, f"{what}: {text}", self._monotonic_ms(), known=is_known):
            whom = f"node {node_id[:64]!r}" if node_id else "a caller"
            level = logging.WARNING if isinstance(problem, PeerRefused) else logging.INFO
            _LOG.log(level, "%s of the peers %s: %s", whom, what, text)

    def _attached(self) -> PeerNode:
        if self._node is None:
            raise Unavailable(f"node {self.node_id} starts")
        return self._node

    def _target(self, node_id: str) -> Target:
        self._check_not_cut(node_id)
        known = self._peers.get(node_id)
        address = known.address if known is not None else ""
        return Target(address, self.certificates, self.limits, node_id)

    def _check_not_cut(self, node_id: str) -> None:
        if node_id in self._cut:
            raise Unavailable(f"cut off from node {node_id}")
