"""One stream's queue is bounded, and messages that gather while a batch is written leave as the next one."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from cortado.errors import PeerRefused, Unavailable
from cortado.proto.internal.peers_pb2 import PeerBatch
from cortado.store.peers.clock_echo import WINDOW_MS, ClockEcho
from cortado.store.peers.interface import PeerLimits, Receiver
from cortado.store.peers.link import Link
from support.nodes import run
from support.peers import LIMITS, RecordingNode


class HeldStream:
    """A stream to a peer that takes only as many messages as it is let."""

    def __init__(self, room: int = 0) -> None:
        self.room = room
        self.written: list[PeerBatch] = []
        self.receiver: Receiver | None = None

    def start(self, receiver: Receiver) -> None:
        self.receiver = receiver

    @property
    def is_writable(self) -> bool:
        return self.room > 0

    def write(self, message: bytes) -> None:
        self.room -= 1
        self.written.append(PeerBatch.FromString(message))

    def let(self, room: int) -> None:
        self.room = room
        assert self.receiver is not None
        self.receiver.writable()

    def bodies(self) -> list[list[bytes]]:
        return [[each.body for each in batch.messages] for batch in self.written]


def make_link(stream: HeldStream, limits: PeerLimits = LIMITS, node: RecordingNode | None = None) -> Link:
    return Link(
        "n2",
        stream,
        node or RecordingNode(),
        opened_by="n1",
        limits=limits,
        monotonic_ms=lambda: 1.0,
        physical_ms=lambda: 1,
    )


def test_a_peer_that_does_not_read_grows_no_memory_and_later_gets_what_had_room() -> None:
    async def scenario() -> None:
        stream = HeldStream(room=1)
        link = make_link(stream, replace(LIMITS, queue_messages_max=10, queue_bytes_max=1_000))
        running = asyncio.ensure_future(link.run())
        await asyncio.sleep(0)
        assert link.offer(1, b"first")
        link.flush()
        assert link.waiting == (0, 0)
        taken = [link.offer(1, b"%02d" % number) for number in range(50)]
        link.flush()
        assert taken == [True] * 10 + [False] * 40
        assert link.waiting == (10, 20)
        assert link.dropped == 40
        # A sign of life adds nothing to the messages that a slow peer has not taken.
        link.greet()
        assert stream.bodies() == [[b"first"]]
        stream.let(3)
        # The messages gathered meanwhile are one batch.
        assert stream.bodies() == [[b"first"], [b"%02d" % number for number in range(10)]]
        assert link.offer(1, bytes(900))
        assert not link.offer(1, bytes(101))
        assert link.waiting == (1, 900)
        link.close(Unavailable("enough"))
        with pytest.raises(Unavailable, match="enough"):
            await running

    run(scenario)


def test_batches_are_bounded_in_bytes_and_hold_at_least_one_message() -> None:
    async def scenario() -> None:
        stream = HeldStream(room=10)
        link = make_link(stream, replace(LIMITS, batch_bytes_max=100))
        for size in (300, 60, 60, 30, 200):
            assert link.offer(1, bytes(size))
        link.flush()
        assert [[len(body) for body in batch] for batch in stream.bodies()] == [[300], [60], [60, 30], [200]]

    run(scenario)


def test_where_nothing_waits_a_sign_of_life_is_an_empty_batch() -> None:
    async def scenario() -> None:
        stream = HeldStream(room=10)
        link = make_link(stream)
        link.flush()
        assert stream.bodies() == []
        link.greet()
        assert stream.bodies() == [[]]
        assert stream.written[0].physical_ms == 1

    run(scenario)


def test_the_end_of_a_stream_says_why_and_empties_the_queue() -> None:
    async def scenario() -> None:
        stream, node = HeldStream(), RecordingNode()
        link = make_link(stream, node=node)
        link.offer(1, b"one")
        link.offer(1, b"two")
        running = asyncio.ensure_future(link.run())
        await asyncio.sleep(0)
        assert stream.receiver is not None
        stream.receiver.ended(Unavailable("the peer ended the stream"))
        # Messages on their way when a stream has ended are lost.
        batch = PeerBatch()
        batch.messages.add(group_id=1, body=b"late")
        stream.receiver.arrived(batch.SerializeToString())
        with pytest.raises(Unavailable, match="the peer ended the stream"):
            await running
        assert not link.is_open
        assert link.waiting == (0, 0)
        assert node.received == []

    run(scenario)


def test_what_is_no_batch_is_refused() -> None:
    async def scenario() -> None:
        with pytest.raises(PeerRefused, match="node n2 sent a message that is not of the peers' protocol"):
            make_link(HeldStream()).arrived(b"\xff")

    run(scenario)


def test_messages_of_several_groups_in_one_batch_reach_each_in_order() -> None:
    async def scenario() -> None:
        node = RecordingNode()
        batch = PeerBatch()
        for group_id, body in ((1, b"a"), (2, b"b"), (1, b"c")):
            batch.messages.add(group_id=group_id, body=body)
        make_link(HeldStream(), node=node).arrived(batch.SerializeToString())
        assert node.received == [("n2", 1, b"a"), ("n2", 1, b"c"), ("n2", 2, b"b")]

    run(scenario)


# --- clocks ----------------------------------------------------------------------------------------------------


def exchange(offset_ms: int, there_ms: float, kept_ms: float, back_ms: float) -> tuple[float, float] | None:
    """Return the bounds of the peer's clock minus ours after a message to a peer that is ``offset_ms`` ahead, and its
    answer."""
    ours, theirs = ClockEcho(), ClockEcho()
    now_ms = 1_000.0
    question, answer = PeerBatch(), PeerBatch()
    ours.stamp(question, now_ms, 50_000)
    now_ms += there_ms
    # The peer's monotonic clock began at another time.
    theirs.arrived(question, now_ms + 7e6)
    now_ms += kept_ms
    theirs.stamp(answer, now_ms + 7e6, int(50_000 + there_ms + kept_ms + offset_ms))
    now_ms += back_ms
    bounds = ours.arrived(answer, now_ms)
    # Our wall clock is 49 s ahead of our monotonic one.
    return None if bounds is None else (bounds.low_ms - 49_000, bounds.high_ms - 49_000)


@pytest.mark.parametrize("offset_ms", [-40_000, -1, 0, 1, 250, 5_000_000])
@pytest.mark.parametrize(("there_ms", "kept_ms", "back_ms"), [(0, 0, 0), (0.4, 10.3, 0.4), (300, 0, 0), (0, 900, 300)])
def test_the_true_offset_lies_within_the_bounds(
    offset_ms: int, there_ms: float, kept_ms: float, back_ms: float
) -> None:
    bounds = exchange(offset_ms, there_ms, kept_ms, back_ms)
    assert bounds is not None
    low_ms, high_ms = bounds
    assert low_ms <= offset_ms <= high_ms
    assert high_ms - low_ms == pytest.approx(1 + there_ms + back_ms)


@pytest.mark.parametrize(
    ("monotonic_ms", "echo_ms", "age_ms"),
    [
        (1.0, 0.0, 0.0),
        (float("nan"), float("nan"), float("nan")),
        (float("inf"), float("inf"), 0.0),
        (-5.0, 100.0, -50.0),
        (1.0, 5_000.0, 0.0),
        (1.0, 1.0, 1e300),
        (1.0, 1.0, float("-inf")),
    ],
)
def test_made_up_clocks_bound_nothing(monotonic_ms: float, echo_ms: float, age_ms: float) -> None:
    echo = ClockEcho()
    batch = PeerBatch(physical_ms=1, monotonic_ms=monotonic_ms, echo_monotonic_ms=echo_ms, echo_age_ms=age_ms)
    assert echo.arrived(batch, 1_000.0) is None


def test_the_narrowest_bounds_of_a_window_are_reported() -> None:
    echo = ClockEcho()

    def arrived(at_ms: int, round_trip_ms: float) -> tuple[float, float] | None:
        batch = PeerBatch(physical_ms=70_000 + at_ms, monotonic_ms=1.0, echo_monotonic_ms=at_ms - round_trip_ms)
        return echo.arrived(batch, at_ms)

    assert arrived(10_000, 50) == (70_000, 70_051)
    for later_ms, round_trip_ms in ((10, 80), (20, 3), (30, 60)):
        assert arrived(10_000 + later_ms, round_trip_ms) is None
    assert arrived(10_000 + int(WINDOW_MS), 90) == (70_000, 70_004)
