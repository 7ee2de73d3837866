"""A network that loses, delays, reorders and doubles messages, and may be cut one way.

Each direction between two nodes is a :class:`Link` with a random stream of its own, so that events on one never change
another. Nodes know each other only by their Hello: messages are handed on only if each side takes the other's identity,
as the real streams see to when they open.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, cast

from cortado.errors import CortadoError, NotFound, PeerRefused, Unavailable
from cortado.proto.internal.peers_pb2 import Hello
from cortado.raft.group import RaftLog
from cortado.raft.log import Message
from cortado.raft.registry import Roster
from cortado.raft.standing import Word, vouched_position
from cortado.store.engine.data_directory import Identity
from cortado.store.peers.hello import check_hello, make_hello, why_no_member
from cortado.store.process.range_copies import Answer, Ask
from support.simulation.loop import NodeLoop, Scheduler

if TYPE_CHECKING:
    from cortado.store.host.host import Host as NodeHost

# One reading of a peer's clock in this number of milliseconds is plenty.
_CLOCK_EVERY_MS = 200.0
# A peer that was sent nothing for so long is sent the clock alone.
_IDLE_MS = 500.0
# So that a snapshot of a few kilobytes takes some steps, and can break between them.
_PIECE_BYTES = 1_024
_PIECE_TAKES_MS = (1.0, 15.0)
_PIECE_LOST = 0.02
# How often a connection breaks for no reason, per message, and must be made anew.
_BREAKS = 0.002


class Process(Protocol):
    """One life of a node, as the network sees it."""

    loop: NodeLoop
    node: NodeHost
    node_id: str
    identity: Identity
    is_listening: bool

    @property
    def log(self) -> RaftLog: ...

    def wall_ms(self) -> int: ...


@dataclass(slots=True)
class Weather:
    """The fate of a message. Probabilities, and milliseconds."""

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
        self.connected: tuple[str, str] | None = None
        self.sent_ms = 0.0
        self.clock_read_ms = -_CLOCK_EVERY_MS
        self.before_ms = 0.0


class Network:
    """All links, by (sender, receiver); ``lives`` finds the process that runs under a node id now."""

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
        link.sent_ms = self.scheduler.now_ms
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
        sent = (sender.wall_ms(), self.scheduler.now_ms)
        # On the world's loop: the sender's death does not stop messages under way.
        self._world.call_later(delay_ms / 1000, self._arrive, sender, message, group_id, sent)

    def attach(self, world: NodeLoop) -> None:
        """Set the loop on which messages travel."""
        self._world = world

    def _arrive(self, sender: Process, message: Message, group_id: int, sent: tuple[int, float]) -> None:
        receiver = self._find(message.to)
        if receiver is None or not receiver.is_listening:
            return
        if self.link(sender.node_id, message.to).is_cut:
            self.link(sender.node_id, message.to).connected = None
            self.counts["messages cut off"] += 1
            return
        if not self._are_connected(self.link(sender.node_id, message.to), sender, receiver):
            self.counts["messages of a stranger"] += 1
            return
        receiver.loop.call_soon(self._receive, sender, receiver, group_id, message.body, sent)

    def _receive(self, sender: Process, receiver: Process, group_id: int, body: bytes, sent: tuple[int, float]) -> None:
        """Receive on the receiver's loop: when it comes to it, it looks at its clock first, as it must."""
        link = self.link(sender.node_id, receiver.node_id)
        now_ms = self.scheduler.now_ms
        if now_ms - link.clock_read_ms >= _CLOCK_EVERY_MS:
            link.clock_read_ms = now_ms
            sent_wall_ms, sent_ms = sent
            # The message took between nothing and a round trip.
            low_ms = sent_wall_ms - receiver.monotonic_ms()
            receiver.node.observe_peer_clock(sender.node_id, low_ms, low_ms + 2 * (now_ms - sent_ms) + 1)
        if not body:
            return
        self.counts["messages received"] += 1
        self.on_body(sender.node_id, receiver.node_id, body)
        receiver.node.receive(sender.node_id, group_id, [body])

    def _are_connected(self, link: Link, sender: Process, receiver: Process) -> bool:
        """Return whether both have taken the other's Hello. A new connection exchanges them now."""
        ends = (sender.loop.name, receiver.loop.name)
        if link.connected == ends and link.random.random() >= _BREAKS:
            return True
        link.connected = None
        try:
            self._introduce(sender, receiver)
            if not sender.loop.is_dead:
                self._introduce(receiver, sender)
        except PeerRefused:
            return False
        link.connected = ends
        return True

    def _introduce(self, caller: Process, to: Process) -> None:
        hello = make_hello(
            caller.identity, caller.node.process.identity.peer_address, caller.node.meta.log_position(), to.node_id
        )
        check_hello(hello, to.identity)
        refusal = why_no_member(hello, to.identity, to.node.meta.known_member(caller.node_id))
        if refusal is None or to.node.meta.is_believed(caller.node_id):
            return
        ours = to.node.meta.log_position()
        position = None
        if (hello.last_term, hello.last_index) > ours:
            position = vouched_position(self._words(hello, to), ours)
        self.counts["strangers refused" if position is None else "strangers vouched for"] += 1
        if position is None:
            raise refusal
        to.node.meta.believe(caller.node_id, position)

    def _words(self, hello: Hello, to: Process) -> list[Word]:
        """Return the words of the members that ``to`` knows and reaches."""
        words = []
        for member in to.node.meta.known_members():
            other = self._find(member.node_id)
            is_asked = member.node_id not in (to.node_id, hello.node_id) and other is not None and other.is_listening
            is_cut = self.link(to.node_id, member.node_id).is_cut or self.link(member.node_id, to.node_id).is_cut
            if other is None or not is_asked or is_cut or other.loop.is_paused:
                continue
            known = other.node.meta.known_member(hello.node_id)
            is_member = known is not None and known.storage_id == hello.storage_id
            words.append(Word(is_member, other.node.meta.log_position()))
        return words


class SimulatedTransport:
    """The transport of one life; see :class:`~cortado.store.process.transport.Transport`."""

    def __init__(self, network: Network, process: Process) -> None:
        self._network = network
        self._process = process
        self.roster = Roster()

        process.loop.call_later(_IDLE_MS / 1000, self._idle)

    def configure(self, configuration: Roster) -> None:
        self.roster = configuration

    def _idle(self) -> None:
        """Let peers know our clock, also without other messages."""
        now_ms = self._network.scheduler.now_ms
        for member in self.roster.others(self._process.node_id):
            if now_ms - self._network.link(self._process.node_id, member.node_id).sent_ms >= _IDLE_MS:
                self._network.send(self._process, 0, Message(member.node_id, b""))
        self._process.loop.call_later(_IDLE_MS / 1000, self._idle)

    def send(self, group_id: int, messages: Sequence[Message]) -> None:
        for message in messages:
            self._network.send(self._process, group_id, message)

    def fetch_snapshot(self, peer: str, group_id: int, snapshot_id: str, offset: int) -> AsyncIterator[bytes]:
        return _Fetch(self._network, self._process, peer, group_id, snapshot_id, offset)

    async def read_range(self, peer: str, group_id: int, ask: Ask) -> Answer:
        """Send one question and return its answer; each may be lost."""
        network, process = self._network, self._process
        there, back = network.link(process.node_id, peer), network.link(peer, process.node_id)
        answered: asyncio.Future[Answer] = process.loop.create_future()

        def arrive() -> None:
            sender = network._find(peer)
            if sender is None or not sender.is_listening or there.is_cut or back.is_cut or process.loop.is_dead:
                return
            sender.loop.call_soon(lambda: sender.loop.create_task(answer(sender), name="range"))

        async def answer(sender: Process) -> None:
            try:
                outcome: Answer | CortadoError = await sender.node.read_range(group_id, ask)
            except CortadoError as error:
                outcome = error
            if not back.is_cut and back.random.random() >= network.weather.loss:
                network.counts["ranges read by others"] += 1
                process.loop.call_later(back.random.uniform(*network.weather.delay_ms) / 1000, hand_over, outcome)

        def hand_over(outcome: Answer | CortadoError) -> None:
            if isinstance(outcome, CortadoError):
                _refuse(answered, outcome)
            elif not answered.done():
                answered.set_result(outcome)

        process.loop.call_later(there.random.uniform(*network.weather.delay_ms) / 1000, arrive)
        timer = process.loop.call_later(2, _refuse, answered, Unavailable("nobody answered for two seconds"))
        try:
            return await answered
        finally:
            timer.cancel()


class _Fetch:
    """A stream of a snapshot's bytes, that breaks when the network does."""

    def __init__(
        self, network: Network, process: Process, peer: str, group_id: int, snapshot_id: str, offset: int
    ) -> None:
        self._network = network
        self._process = process
        self._peer = peer
        self._source: AsyncGenerator[bytes, None] | None = None
        self._ask = (group_id, snapshot_id, offset)
        self._sender: Process | None = None
        self._making: asyncio.Task[None] | None = None
        self._left = b""
        self._is_over = False
        network.counts["snapshot fetches"] += 1
        if offset:
            network.counts["snapshot fetches resumed"] += 1

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        """Return one piece, after a round trip. It is made on the sender's loop, as its service would."""
        network, loop = self._network, self._process.loop
        link = network.link(self._peer, self._process.node_id)
        arrived: asyncio.Future[bytes] = loop.create_future()
        # Slow enough for something to happen in the middle of it.
        delay_s = (2 * link.random.uniform(*network.weather.delay_ms) + link.random.uniform(*_PIECE_TAKES_MS)) / 1000
        loop.call_later(delay_s, self._ask_for_piece, link, arrived)
        # A stream on which nothing arrives for two seconds is cut.
        timer = loop.call_later(2, _refuse, arrived, Unavailable("nothing arrived for two seconds"))
        try:
            return await arrived
        except Unavailable:
            network.counts["snapshot fetches broken"] += 1
            raise
        finally:
            timer.cancel()

    async def aclose(self) -> None:
        """Stop: the reader has enough."""
        self._hang_up()

    def _ask_for_piece(self, link: Link, arrived: asyncio.Future[bytes]) -> None:
        sender = self._find_sender()
        back = self._network.link(self._process.node_id, self._peer)
        if sender is None or link.is_cut or back.is_cut or link.random.random() < _PIECE_LOST:
            self._hang_up()
            _refuse(arrived, Unavailable("the stream broke"))
        elif self._left:
            self._hand_over(arrived)
        else:
            sender.loop.call_soon(self._make_piece, sender, arrived)

    def _make_piece(self, sender: Process, arrived: asyncio.Future[bytes]) -> None:
        async def make() -> None:
            if self._is_over:
                return  # The sender stood still, and hears of the call and of its end at once.
            if self._source is None:
                self._source = cast("AsyncGenerator[bytes, None]", sender.node.read_snapshot(*self._ask))
            try:
                self._left = await anext(self._source)
            except CortadoError as error:
                problem = error if isinstance(error, NotFound) else Unavailable(f"the stream broke: {error}")
                self._process.loop.call_soon(_refuse, arrived, problem)
            except StopAsyncIteration:
                self._process.loop.call_soon(_refuse, arrived, StopAsyncIteration())
            else:
                self._process.loop.call_soon(self._hand_over, arrived)

        self._making = sender.loop.create_task(make(), name="snapshot piece")

    def _hand_over(self, arrived: asyncio.Future[bytes]) -> None:
        if not arrived.done():
            piece, self._left = self._left[:_PIECE_BYTES], self._left[_PIECE_BYTES:]
            arrived.set_result(piece)

    def _hang_up(self) -> None:
        source, sender, making = self._source, self._sender, self._making
        self._is_over = True
        if source is None or sender is None:
            return
        self._source = None

        async def end() -> None:
            # As gRPC does with a call that its caller gave up: the awaited task ends first.
            if making is not None and not making.done():
                making.cancel()
                await asyncio.wait([making])
            await source.aclose()

        sender.loop.call_soon(lambda: sender.loop.create_task(end(), name="hung up"))

    def _find_sender(self) -> Process | None:
        now = self._network._find(self._peer)
        if self._sender is None:
            self._sender = now
        if now is None or now is not self._sender or not now.is_listening or now.loop.is_paused:
            return None
        return now


def _refuse(arrived: asyncio.Future[Any], problem: Exception) -> None:
    if not arrived.done():
        arrived.set_exception(problem)
