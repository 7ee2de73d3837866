"""A network that loses, delays, reorders and doubles messages, and may be cut one way.

Each direction between two nodes is a :class:`Link` with a random stream of its own, so that what happens on one never
changes what happens on another. Nodes know each other only by their Hello: what arrives is handed on only where each
side takes the other's identity, as the real streams see to when they open.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from cortado.errors import CortadoError, NotFound, PeerRefused, Unavailable
from cortado.raft.configuration import Configuration
from cortado.raft.log import Message
from support.simulation.loop import NodeLoop, Scheduler

if TYPE_CHECKING:
    from cortado.store.node.node import Node

# One reading of a peer's clock in so many milliseconds is plenty.
_CLOCK_EVERY_MS = 200.0
_CHUNK_BYTES = 512


class Process(Protocol):
    """One life of a node, as the network sees it."""

    loop: NodeLoop
    node: Node
    node_id: str
    cluster_id: str
    storage_id: str
    is_listening: bool

    def wall_ms(self) -> int: ...

    def send_snapshot(self, group_id: int, snapshot_id: str, offset: int) -> AsyncIterator[bytes]: ...


@dataclass(slots=True)
class Weather:
    """What a message meets. Probabilities, and milliseconds."""

    loss: float = 0.0
    double: float = 0.0
    late: float = 0.0
    delay_ms: tuple[float, float] = (0.2, 2.0)
    late_ms: tuple[float, float] = (20.0, 400.0)


class Link:
    """One direction between two nodes."""

    def __init__(self, source: random.Random) -> None:
        self.random = source
        self.is_cut = False
        self.clock_read_ms = -_CLOCK_EVERY_MS
        self.before_ms = 0.0


class Network:
    """All links, by (sender, receiver); ``lives`` finds who runs under a node id now."""

    def __init__(self, scheduler: Scheduler, seed: str, find: Callable[[str], Process | None]) -> None:
        self.scheduler = scheduler
        self.weather = Weather()
        self.counts: Counter[str] = Counter()
        self.on_body: Callable[[str, str, bytes], None] = lambda _sender, _to, _body: None
        self._seed = seed
        self._find = find
        self._links: dict[tuple[str, str], Link] = {}

    def link(self, sender: str, to: str) -> Link:
        found = self._links.get((sender, to))
        if found is None:
            found = self._links[sender, to] = Link(random.Random(f"{self._seed}/link/{sender}/{to}"))
        return found

    def cut(self, sender: str, to: str) -> None:
        self.link(sender, to).is_cut = True

    def heal(self) -> None:
        for link in self._links.values():
            link.is_cut = False

    def send(self, sender: Process, group_id: int, message: Message) -> None:
        link, weather = self.link(sender.node_id, message.to), self.weather
        if link.is_cut:
            self.counts["messages cut off"] += 1
            return
        if link.random.random() < weather.loss:
            self.counts["messages lost"] += 1
            return
        copies = 1
        if link.random.random() < weather.double:
            self.counts["messages doubled"] += 1
            copies = 2
        for _ in range(copies):
            self._carry(sender, link, group_id, message)

    def _carry(self, sender: Process, link: Link, group_id: int, message: Message) -> None:
        weather = self.weather
        delay_ms = link.random.uniform(*weather.delay_ms)
        if link.random.random() < weather.late:
            delay_ms += link.random.uniform(*weather.late_ms)
            self.counts["messages delayed"] += 1
        arrives_ms = self.scheduler.now_ms + delay_ms
        if arrives_ms < link.before_ms:
            self.counts["messages overtaken"] += 1
        link.before_ms = max(link.before_ms, arrives_ms)
        sent_wall_ms = sender.wall_ms()
        # On the world's loop: the sender's death does not stop what is under way.
        self._world.call_later(delay_ms / 1000, self._arrive, sender, message, group_id, sent_wall_ms, delay_ms)

    def attach(self, world: NodeLoop) -> None:
        """The loop on which messages travel."""
        self._world = world

    def _arrive(self, sender: Process, message: Message, group_id: int, sent_wall_ms: int, delay_ms: float) -> None:
        receiver = self._find(message.to)
        if receiver is None or not receiver.is_listening:
            return
        if self.link(sender.node_id, message.to).is_cut:
            self.counts["messages cut off"] += 1
            return
        if not self._know_each_other(sender, receiver):
            self.counts["messages of a stranger"] += 1
            return
        receiver.loop.call_soon(self._receive, sender, receiver, group_id, message.body, sent_wall_ms, delay_ms)

    def _receive(
        self, sender: Process, receiver: Process, group_id: int, body: bytes, sent_wall_ms: int, delay_ms: float
    ) -> None:
        """On the receiver's loop: when it comes to it, it looks at its clock first, as it must."""
        link = self.link(sender.node_id, receiver.node_id)
        now_ms = self.scheduler.now_ms
        if now_ms - link.clock_read_ms >= _CLOCK_EVERY_MS:
            link.clock_read_ms = now_ms
            # The message took between nothing and a round trip.
            low_ms = float(sent_wall_ms - receiver.wall_ms())
            receiver.node.observe_peer_clock(sender.node_id, low_ms, low_ms + 2 * delay_ms + 1)
        self.counts["messages received"] += 1
        self.on_body(sender.node_id, receiver.node_id, body)
        receiver.node.receive(sender.node_id, group_id, [body])

    def _know_each_other(self, sender: Process, receiver: Process) -> bool:
        try:
            receiver.node.check_hello(sender.cluster_id, sender.node_id, sender.storage_id)
            if not sender.loop.is_dead:
                sender.node.check_hello(receiver.cluster_id, receiver.node_id, receiver.storage_id)
        except PeerRefused:
            return False
        except CortadoError:
            return False
        return True


class SimulatedTransport:
    """The transport of one life; see :class:`~cortado.store.node.transport.Transport`."""

    def __init__(self, network: Network, process: Process) -> None:
        self._network = network
        self._process = process
        self.configuration = Configuration()

    def configure(self, configuration: Configuration) -> None:
        self.configuration = configuration

    def send(self, group_id: int, messages: Sequence[Message]) -> None:
        for message in messages:
            self._network.send(self._process, group_id, message)

    def fetch_snapshot(self, peer: str, group_id: int, snapshot_id: str, offset: int) -> AsyncIterator[bytes]:
        return _Fetch(self._network, self._process, peer, group_id, snapshot_id, offset)


class _Fetch:
    """A stream of a spool's bytes, that breaks where the network does."""

    def __init__(
        self, network: Network, process: Process, peer: str, group_id: int, snapshot_id: str, offset: int
    ) -> None:
        self._network = network
        self._process = process
        self._peer = peer
        self._source: AsyncIterator[bytes] | None = None
        self._ask = (group_id, snapshot_id, offset)
        self._sender: Process | None = None
        network.counts["snapshot fetches"] += 1
        if offset:
            network.counts["snapshot fetches resumed"] += 1

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        link = self._network.link(self._peer, self._process.node_id)
        weather = self._network.weather
        loop = self._process.loop
        arrived = loop.create_future()
        loop.call_later(2 * link.random.uniform(*weather.delay_ms) / 1000, arrived.set_result, None)
        await arrived
        sender = self._find_sender()
        back = self._network.link(self._process.node_id, self._peer)
        if sender is None or link.is_cut or back.is_cut or link.random.random() < weather.loss / 4:
            self._network.counts["snapshot fetches broken"] += 1
            raise Unavailable("the stream broke")
        if self._source is None:
            self._source = sender.send_snapshot(*self._ask)
        try:
            return await anext(self._source)
        except (NotFound, StopAsyncIteration):
            raise
        except CortadoError as error:
            raise Unavailable(f"the stream broke: {error}") from error

    def _find_sender(self) -> Process | None:
        now = self._network._find(self._peer)
        if self._sender is None:
            self._sender = now
        if now is None or now is not self._sender or not now.is_listening or now.loop.is_paused:
            return None
        return now
