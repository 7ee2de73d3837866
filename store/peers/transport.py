"""The node's transport over gRPC: who is dialled, which of several streams to a peer counts, and what goes where.

One stream joins two nodes. The node with the smaller id dials at once; the other one waits a second for that, and dials
too where nothing came, since it may be the only one that knows the other (a node that was away while a member was
added). Where both dialled at the same time, the smaller id's stream stays.

A peer is not reached: messages to it are dropped and counted, and it is dialled again after 50 ms, then twice as long,
up to a second, each time shortened by chance. A stream on which nothing arrives for two seconds is cut: also an idle
one carries a batch with the clock every half second. Every attempt is a new connection, with the certificates of then.

Who is no member any more is cut off once that is committed, and refused when it dials again: so it learns that it was
removed, whether it ran then or not. Refusals and lost connections are logged once per change.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Final

from cortado.errors import CortadoError, PeerRefused, ResourceExhausted, Unavailable
from cortado.proto.internal.peers_pb2 import FetchSnapshotRequest, Hello, PeerBatch
from cortado.raft.configuration import Configuration
from cortado.raft.log import Message
from cortado.store.engine.data_directory import Identity
from cortado.store.node.repair.ranges import Answer, Ask
from cortado.store.observe.measures import Traffic
from cortado.store.peers.credentials import Certificates
from cortado.store.peers.dial import dial
from cortado.store.peers.fetch import fetch_snapshot
from cortado.store.peers.hello import check_certificate, check_hello, make_hello, read_hello, why_no_member
from cortado.store.peers.interface import PeerLimits, PeerNode, Stream
from cortado.store.peers.link import Link
from cortado.store.peers.once import OncePerChange
from cortado.store.peers.ranges import range_request, read_range
from cortado.store.peers.vouching import Vouching

_LOG: Final = logging.getLogger(__name__)

_TICK_S: Final = 0.1


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
class _Peer:
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


class PeerTransport:
    """A :class:`~cortado.store.node.transport.Transport`, and the other end of the streams that peers open.

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
        self._physical_ms = physical_ms
        self._monotonic_ms = monotonic_ms
        self._chance = chance
        self._node: PeerNode | None = None
        self.configuration = Configuration()
        self._peers: dict[str, _Peer] = {}
        self._handshakes = 0
        self._vouching = Vouching(self.hello_to, certificates, self.limits, monotonic_ms)
        self._vouched: dict[str, str] = {}
        self._said = OncePerChange()
        self._ticking: asyncio.Task[None] | None = None
        self._cut: frozenset[str] = frozenset()
        self._is_closed = False

    def attach(self, node: PeerNode) -> None:
        """Whom messages are for."""
        self._node = node

    @property
    def node_id(self) -> str:
        return self.identity.node_id

    # --- the node's side ---------------------------------------------------------------------------------------

    def configure(self, configuration: Configuration) -> None:
        """Whom to be connected to from now on: every member but ourselves. Streams of those who are none by any
        configuration that may be in force are cut."""
        if self._is_closed:
            return
        self.configuration = configuration
        for member in configuration.members:
            if member.node_id != self.node_id:
                self._keep(self._peers.setdefault(member.node_id, _Peer(member.node_id)), member.peer_address)
        self._review()
        self._start_ticking()

    def send(self, group_id: int, messages: Sequence[Message]) -> None:
        """Queue each for its peer, or drop it where the peer is not connected or its queue is full."""
        for message in messages:
            peer = self._peers.get(message.to)
            if peer is not None and (peer.link is None or not peer.link.offer(group_id, message.body)):
                peer.dropped += 1

    def fetch_snapshot(self, peer: str, group_id: int, snapshot_id: str, offset: int) -> AsyncIterator[bytes]:
        """See :meth:`cortado.store.node.transport.Transport.fetch_snapshot`."""
        self._check_not_cut(peer)
        known = self._peers.get(peer)
        address = known.address if known is not None else ""
        wanted = FetchSnapshotRequest(
            hello=self.hello_to(peer), group_id=group_id, snapshot_id=snapshot_id, offset=offset
        )
        return fetch_snapshot(address, wanted, self.certificates, self.limits)

    async def read_range(self, peer: str, group_id: int, ask: Ask) -> Answer:
        """See :meth:`cortado.store.node.transport.Transport.read_range`."""
        self._check_not_cut(peer)
        known = self._peers.get(peer)
        wanted = range_request(self.hello_to(peer), group_id, ask)
        return await read_range(known.address if known is not None else "", wanted, self.certificates, self.limits)

    def cut(self, node_ids: Collection[str]) -> None:
        """For tests: from now on nothing comes from these nodes or goes to them, as if the network between were cut.
        The others are reached again."""
        self._cut = frozenset(node_ids)
        for node_id in self._cut:
            peer = self._peers.get(node_id)
            if peer is not None and peer.link is not None:
                peer.link.close(Unavailable(f"cut off from node {node_id}"))

    def status(self) -> list[PeerStatus]:
        """Of every peer, in the order of their ids."""
        return [self._status_of(self._peers[node_id]) for node_id in sorted(self._peers)]

    def link_to(self, node_id: str) -> Link | None:
        """The stream to a peer that counts now."""
        peer = self._peers.get(node_id)
        return peer.link if peer is not None else None

    async def close(self) -> None:
        """Cut all streams, and dial no more."""
        self._is_closed = True
        tasks = [each.dialling for each in self._peers.values() if each.dialling is not None]
        if self._ticking is not None:
            tasks.append(self._ticking)
        for peer in self._peers.values():
            if peer.link is not None:
                peer.link.close(Unavailable(f"node {self.node_id} stops"))
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    # --- what a peer asks --------------------------------------------------------------------------------------

    async def accept(self, stream: Stream, certificate: tuple[str, str] | None) -> None:
        """Serve a stream that a peer opened, until it ends. ``certificate``: the caller's role and name, None where
        connections have none. Always raises why it ended: PeerRefused, ResourceExhausted, Unavailable."""
        if self._handshakes >= self.limits.handshakes_max:
            problem = "too many streams wait to be accepted"
            raise ResourceExhausted(problem, 100, resource="peer handshakes", limit=self.limits.handshakes_max)
        self._handshakes += 1
        try:
            async with asyncio.timeout(self.limits.hello_ms / 1000):
                hello = await self._introduced(stream, certificate)
                await stream.write(PeerBatch(hello=self.hello_to(hello.node_id)).SerializeToString())
        except TimeoutError:
            raise Unavailable(f"no Hello within {self.limits.hello_ms} ms") from None
        finally:
            self._handshakes -= 1
        await self.carry(hello, stream, opened_by=hello.node_id)

    def check(self, hello: Hello, certificate: tuple[str, str] | None) -> None:
        """Whether the sender is a member by what is known here. Raises PeerRefused; a refusal is logged."""
        try:
            refusal = self._why_no_member(hello, certificate)
            if refusal is not None:
                raise refusal
        except PeerRefused as refused:
            self._say(hello.node_id, "refused", refused)
            raise

    async def admit(self, hello: Hello, certificate: tuple[str, str] | None) -> None:
        """The same, but for one that we do not know and whose log is ahead of ours, members are asked. Raises also
        ResourceExhausted."""
        try:
            refusal = self._why_no_member(hello, certificate)
            if refusal is None or self._is_vouched_for(hello.node_id, hello.storage_id):
                return
            ours = self._position()
            if (hello.last_term, hello.last_index) <= ours:
                raise refusal
            known = [each for each in self._attached.known_members() if each.node_id not in self._none_to_ask(hello)]
            position = await self._vouching.position_for(hello, known, ours, refusal)
        except PeerRefused as refused:
            self._say(hello.node_id, "refused", refused)
            raise
        _LOG.warning("node %s is not known here: members vouched for it, up to %s", hello.node_id, position)
        self._vouched[hello.node_id] = hello.storage_id
        self._attached.believe(hello.node_id, position)

    def _none_to_ask(self, hello: Hello) -> set[str]:
        """Neither a stranger itself, nor we, nor who can't be reached."""
        return {hello.node_id, self.node_id, *self._cut}

    def _why_no_member(self, hello: Hello, certificate: tuple[str, str] | None) -> PeerRefused | None:
        check_certificate(hello.node_id, certificate)
        check_hello(hello, self.identity)
        return why_no_member(hello, self.identity, self._attached.known_member(hello.node_id))

    def _is_vouched_for(self, node_id: str, storage_id: str) -> bool:
        return self._vouched.get(node_id) == storage_id and self._attached.is_believed(node_id)

    @property
    def _attached(self) -> PeerNode:
        if self._node is None:
            raise Unavailable(f"node {self.node_id} starts")
        return self._node

    async def _introduced(self, stream: Stream, certificate: tuple[str, str] | None) -> Hello:
        if certificate is not None:
            # Before anything is read from a caller that cannot be a peer whatever it says.
            self._check_role(certificate)
        try:
            hello = read_hello(await stream.read(), self.limits.hello_bytes_max).hello
        except PeerRefused as refusal:
            self._say("", "refused", refusal)
            raise
        await self.admit(hello, certificate)
        return hello

    def _check_not_cut(self, node_id: str) -> None:
        if node_id in self._cut:
            raise Unavailable(f"cut off from node {node_id}")

    def _check_role(self, certificate: tuple[str, str]) -> None:
        try:
            check_certificate(certificate[1], certificate)
        except PeerRefused as refusal:
            self._say("", "refused", refusal)
            raise

    # --- streams -----------------------------------------------------------------------------------------------

    def _keep(self, peer: _Peer, address: str) -> None:
        """Dial a peer at ``address`` from now on."""
        if peer.address != address:
            peer.address = address
            if peer.dialling is not None and peer.link is None:
                peer.dialling.cancel()
                peer.dialling = None
        if peer.dialling is None:
            peer.dialling = asyncio.ensure_future(self._keep_dialling(peer))

    def _review(self) -> None:
        """Whether everyone whom we are connected to, or dial, still belongs here."""
        if self._node is None:
            return
        for peer in list(self._peers.values()):
            if self._is_vouched_for(peer.node_id, peer.storage_id):
                continue
            member = self._node.known_member(peer.node_id)
            if member is None:
                self._dismiss(peer)
            elif peer.link is not None and member.storage_id not in ("", peer.storage_id):
                peer.link.close(PeerRefused(f"node id {peer.node_id} belongs to another data directory now"))
        for node_id in [each for each in self._vouched if not self._node.is_believed(each)]:
            del self._vouched[node_id]

    def _dismiss(self, peer: _Peer) -> None:
        """A peer is no member any more."""
        if peer.link is None:
            del self._peers[peer.node_id]
        else:
            peer.link.close(PeerRefused(f"node {peer.node_id} was removed from cluster {self.identity.cluster_id}"))
        if peer.dialling is not None:
            peer.dialling.cancel()
            peer.dialling = None

    async def _keep_dialling(self, peer: _Peer) -> None:
        backoff_ms: float = self.limits.backoff_ms_min
        # gRPC may end a call with an error of its own where its task was cancelled.
        while not self._is_closed and peer.dialling is asyncio.current_task():
            while peer.link is not None:
                await peer.change()
            if self.node_id > peer.node_id and await self._is_linked_soon(peer):
                continue
            began_ms = self._monotonic_ms()
            try:
                await dial(self, peer.node_id, peer.address)
            except CortadoError as problem:
                self._say(peer.node_id, "not connected", problem)
            except Exception:
                _LOG.exception("a defect in the stream to node %s", peer.node_id)
            if self._monotonic_ms() - began_ms > self.limits.silence_ms:
                backoff_ms = self.limits.backoff_ms_min
            await asyncio.sleep(backoff_ms * self._chance.uniform(0.5, 1.0) / 1000)
            backoff_ms = min(backoff_ms * 2, self.limits.backoff_ms_max)

    async def _is_linked_soon(self, peer: _Peer) -> bool:
        try:
            async with asyncio.timeout(self.limits.wait_to_dial_ms / 1000):
                while peer.link is None:
                    await peer.change()
        except TimeoutError:
            return False
        return True

    async def carry(self, hello: Hello, stream: Stream, *, opened_by: str) -> None:
        """Use a stream whose sides have accepted each other, until it ends. Always raises why."""
        if self._node is None or self._is_closed:
            raise Unavailable(f"node {self.node_id} stops")
        # Once more: the other side's Hello may have been waited for.
        self._check_not_cut(hello.node_id)
        peer = self._peers.setdefault(hello.node_id, _Peer(hello.node_id, hello.peer_address))
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
        self._adopt(peer, link)
        peer.storage_id = hello.storage_id
        self._start_ticking()
        try:
            await link.run()
        except CortadoError as problem:
            if peer.link is link:
                self._say(peer.node_id, "lost", problem)
            raise
        finally:
            if peer.link is link:
                peer.put(None)
                if self.configuration.member(peer.node_id) is None:
                    self._peers.pop(peer.node_id, None)

    def _adopt(self, peer: _Peer, link: Link) -> None:
        """Make ``link`` the one that counts. Raises Unavailable where the one that there is stays."""
        old = peer.link
        if old is not None and old.is_open:
            first = min(self.node_id, peer.node_id)
            is_alive = self._monotonic_ms() - old.heard_ms < 2 * self.limits.idle_ms
            if old.opened_by == first != link.opened_by and is_alive:
                raise Unavailable(f"another stream joins nodes {self.node_id} and {peer.node_id} already")
            old.close(Unavailable(f"a newer stream joins nodes {self.node_id} and {peer.node_id}"))
        peer.put(link)
        peer.traffic.connections += 1
        self._said.forget(peer.node_id)
        peer.problem = ""
        _LOG.info("connected to node %s at %s", peer.node_id, peer.address)

    def _start_ticking(self) -> None:
        if self._ticking is None:
            self._ticking = asyncio.ensure_future(self._tick())

    async def _tick(self) -> None:
        last_ms = self._monotonic_ms()
        while True:
            await asyncio.sleep(_TICK_S)
            now_ms = self._monotonic_ms()
            # Where this process itself stood still, what arrived meanwhile has not been read yet.
            was_late = now_ms - last_ms > _TICK_S * 1000 + self.limits.silence_ms / 4
            last_ms = now_ms
            # A removal is committed at some time after the configuration without the member came.
            self._review()
            for link in [each.link for each in self._peers.values() if each.link is not None]:
                if was_late:
                    link.heard_ms = now_ms
                elif now_ms - link.heard_ms > self.limits.silence_ms:
                    link.close(Unavailable(f"nothing arrived from it for {self.limits.silence_ms} ms"))
                elif now_ms - link.sent_ms >= self.limits.idle_ms:
                    link.poke()

    # --- small things ------------------------------------------------------------------------------------------

    def hello_to(self, node_id: str) -> Hello:
        """How this node introduces itself."""
        return make_hello(self.identity, self.address, self._position(), node_id)

    def _position(self) -> tuple[int, int]:
        return self._attached.log_position()

    def _say(self, node_id: str, what: str, problem: CortadoError) -> None:
        """Log a problem with a peer, or with somebody who says to be one (``node_id`` may be made up)."""
        text = problem.message()
        peer = self._peers.get(node_id)
        is_known = self.configuration.member(node_id) is not None
        if peer is not None:
            peer.problem = text
        if self._said.is_new(node_id, f"{what}: {text}", self._monotonic_ms(), known=is_known):
            whom = f"node {node_id[:64]!r}" if node_id else "a caller"
            level = logging.WARNING if isinstance(problem, PeerRefused) else logging.INFO
            _LOG.log(level, "%s of the peers %s: %s", whom, what, text)

    def _status_of(self, peer: _Peer) -> PeerStatus:
        link = peer.link
        messages, size = link.waiting if link is not None else (0, 0)
        return PeerStatus(
            node_id=peer.node_id,
            address=peer.address,
            is_connected=link is not None,
            opened_by=link.opened_by if link is not None else "",
            silent_ms=self._monotonic_ms() - link.heard_ms if link is not None else 0.0,
            waiting_messages=messages,
            waiting_bytes=size,
            dropped=peer.dropped,
            problem=peer.problem,
            traffic=peer.traffic,
        )
