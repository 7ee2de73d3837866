"""Nodes that only have peers: a transport and its listener on a real port of this process, and a node that records the
messages that reach it."""

from __future__ import annotations

import random
import socket
import time
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace

from cortado.errors import CortadoError, NotFound
from cortado.raft.registry import Member, Roster
from cortado.store.engine.data_directory import Identity
from cortado.store.peers.connecting import Target
from cortado.store.peers.connecting import connected as connected_to
from cortado.store.peers.connection import Connection
from cortado.store.peers.credentials import Certificates
from cortado.store.peers.frames import Frame
from cortado.store.peers.interface import PeerLimits
from cortado.store.peers.listener import PeerListener
from cortado.store.peers.service import PeersService
from cortado.store.peers.transport import PeerTransport
from cortado.store.process.range_copies import Answer, Ask
from support.nodes import until
from support.peer_calls import takes_anything

CLUSTER = "cluster-a"
# Everything happens fast, but for silence: a busy machine must not cut streams.
LIMITS = PeerLimits(hello_ms=20_000, silence_ms=20_000, backoff_ms_min=5, backoff_ms_max=50, wait_to_dial_ms=100)


def identity_of_node(node_id: str, cluster_id: str = CLUSTER) -> Identity:
    return Identity(cluster_id, node_id, f"storage-{node_id}")


@dataclass
class RecordingNode:
    """A :class:`~cortado.store.peers.interface.PeerNode` without a log. It knows the members that its transport was
    told of last, and the members in ``leaving``: their removal is not committed."""

    transport: PeerTransport | None = None
    leaving: tuple[Member, ...] = ()
    removed: set[str] = field(default_factory=set)
    believed: dict[str, tuple[int, int]] = field(default_factory=dict)
    position: tuple[int, int] = (1, 10)
    received: list[tuple[str, int, bytes]] = field(default_factory=list)
    clocks: dict[str, tuple[float, float]] = field(default_factory=dict)
    snapshot_files: dict[str, bytes] = field(default_factory=dict)
    snapshots_ended: list[str] = field(default_factory=list)
    bound: list[Member] = field(default_factory=list)
    asked: list[tuple[int, Ask]] = field(default_factory=list)
    range_answer: CortadoError | Answer = field(default_factory=lambda: NotFound("range", "nothing"))
    join_answer: CortadoError | Roster = field(default_factory=Roster)

    @property
    def meta(self) -> RecordingNode:
        """Its own group."""
        return self

    def receive(self, sender: str, group_id: int, bodies: Sequence[bytes]) -> None:
        self.received += [(sender, group_id, body) for body in bodies]

    def observe_peer_clock(self, node_id: str, low_ms: float, high_ms: float) -> None:
        self.clocks[node_id] = (low_ms, high_ms)

    def log_position(self) -> tuple[int, int]:
        return self.position

    def known_members(self) -> Sequence[Member]:
        assert self.transport is not None
        return (*self.transport.roster.members, *self.leaving)

    def known_member(self, node_id: str) -> Member | None:
        return next((each for each in self.known_members() if each.node_id == node_id), None)

    def is_removed(self, node_id: str) -> bool:
        return node_id in self.removed

    def believe(self, node_id: str, position: tuple[int, int]) -> None:
        self.believed[node_id] = position

    def is_believed(self, node_id: str) -> bool:
        return self.position < self.believed.get(node_id, (0, 0))

    async def bind_member(self, member: Member) -> Roster:
        self.bound.append(member)
        if isinstance(self.join_answer, CortadoError):
            raise self.join_answer
        return self.join_answer

    async def read_snapshot(self, group_id: int, snapshot_id: str, offset: int) -> AsyncGenerator[bytes, None]:
        if snapshot_id not in self.snapshot_files:
            raise NotFound("snapshot", snapshot_id)
        try:
            yield self.snapshot_files[snapshot_id][offset:]
        finally:
            self.snapshots_ended.append(snapshot_id)

    async def read_range(self, group_id: int, ask: Ask) -> Answer:
        self.asked.append((group_id, ask))
        if isinstance(self.range_answer, CortadoError):
            raise self.range_answer
        return self.range_answer

    def bodies(self) -> list[bytes]:
        return [body for _, _, body in self.received]


@dataclass
class PeerProcess:
    """One node as its peers see it."""

    node: RecordingNode
    transport: PeerTransport
    listener: PeerListener
    member: Member

    @property
    def address(self) -> str:
        return self.member.peer_address

    def is_connected_to(self, node_id: str) -> bool:
        return any(each.node_id == node_id and each.is_connected for each in self.transport.status())

    def problem_with(self, node_id: str) -> str:
        return next((each.problem for each in self.transport.status() if each.node_id == node_id), "")


@asynccontextmanager
async def running_peer(
    node_id: str,
    *,
    identity: Identity | None = None,
    certificates: Certificates | None = None,
    limits: PeerLimits = LIMITS,
    node: RecordingNode | None = None,
    port: int = 0,
    physical_offset_ms: int = 0,
) -> AsyncIterator[PeerProcess]:
    """Run a node on loopback, with no peer configured yet."""
    identity = identity or identity_of_node(node_id)
    node = node or RecordingNode()
    listening = socket.create_server(("127.0.0.1", port))
    transport = PeerTransport(
        identity,
        f"127.0.0.1:{listening.getsockname()[1]}",
        certificates=certificates,
        physical_ms=lambda: time.time_ns() // 1_000_000 + physical_offset_ms,
        monotonic_ms=lambda: time.monotonic_ns() / 1_000_000,
        chance=random.Random(node_id),
        limits=limits,
    )
    node.transport = transport
    transport.attach(node)
    listener = PeerListener(PeersService(node, transport), transport)
    listener.start([listening])
    try:
        member = Member(node_id, transport.address, identity.storage_id, f"{node_id}.clients:7621")
        yield PeerProcess(node, transport, listener, member)
    finally:
        await transport.close()
        await listener.close()


@asynccontextmanager
async def calling(peer: PeerProcess, certificates: Certificates | None = None) -> AsyncIterator[Connection]:
    """Connect to a peer with these certificates; the connection takes any answer."""
    target = Target(peer.address, certificates, peer.transport.limits, peer.member.node_id)
    async with connected_to(target) as connection:
        takes_anything(connection)
        yield connection


async def how_it_ends(connection: Connection, *frames: Frame) -> CortadoError:
    """Send frames, and return the error with which the other side ends the connection."""
    for frame in frames:
        # It may have ended by now; the reader is told why.
        with suppress(CortadoError):
            await connection.write(*frame)
    try:
        while await connection.read() is not None:
            pass
    except CortadoError as error:
        return error
    raise AssertionError("it ended without a word")


def members(*peers: PeerProcess, **storage_ids: str) -> Roster:
    """Return a configuration of these as voters."""
    found = sorted((each.member for each in peers), key=lambda each: each.node_id)
    return Roster.of(tuple(replace(each, storage_id=storage_ids.get(each.node_id, each.storage_id)) for each in found))


async def connected(*peers: PeerProcess) -> None:
    """Return once each of them is connected to each other one."""
    for one in peers:
        for other in peers:
            if one is not other:
                node_id = other.member.node_id
                await until(lambda one=one, node_id=node_id: one.is_connected_to(node_id), f"connected to {node_id}")  # type: ignore[misc]
