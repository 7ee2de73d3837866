"""One process at a time speaks for a node: a restart takes its place, and a copy that runs beside it is refused."""

from __future__ import annotations

import math
from dataclasses import dataclass

import pytest

from cortado.errors import PeerRefused, Unavailable
from cortado.proto.internal.peers_pb2 import Hello
from cortado.store.peers.processes import TOLERANCE_MS, Processes

ALIVE_MS = 1_000.0
ORIGINAL, COPY, RESTARTED = 11, 22, 33
MINUTE_MS = 60_000.0


@dataclass
class Stream:
    process: int
    heard_ms: float
    lived_ms: float = -math.inf


class Peer:
    """One that knows n2 by its streams, on a clock that the test sets."""

    def __init__(self) -> None:
        self.now_ms = 1_000_000.0
        self.began_ms = {ORIGINAL: self.now_ms - MINUTE_MS}
        self.open: Stream | None = None
        self.processes = Processes(
            own=1,
            monotonic_ms=lambda: self.now_ms,
            open_link=lambda _node: self.open,
            is_heard=lambda: self.open is not None,
            alive_ms=ALIVE_MS,
        )

    def begins(self, process: int) -> None:
        self.began_ms[process] = self.now_ms

    def hello(self, process: int) -> None:
        """Open a stream of the peer's, which counts from now on. Raises as the product does."""
        age_ms = int(self.now_ms - self.began_ms[process])
        hello = Hello(node_id="n2", process=process, process_age_ms=age_ms)
        self.processes.check(hello)
        self.processes.adopt(hello)
        self.open = Stream(process, self.now_ms)

    def hears(self, *, sent_ms: float | None = None) -> None:
        """Receive on the open stream; the message may have been sent long ago."""
        assert self.open is not None
        self.open.heard_ms = self.now_ms
        self.open.lived_ms = self.now_ms if sent_ms is None else sent_ms

    def loses(self) -> None:
        """Break the stream."""
        assert self.open is not None
        self.processes.lost("n2", self.open.process, self.open.lived_ms)
        self.open = None

    def pass_ms(self, duration_ms: float, *, heard: bool = False) -> None:
        for _ in range(int(duration_ms // 100)):
            self.now_ms += 100
            if heard:
                self.hears()


@pytest.fixture
def peer() -> Peer:
    peer = Peer()
    peer.hello(ORIGINAL)
    peer.hears()
    return peer


def refused(peer: Peer, process: int) -> None:
    with pytest.raises(PeerRefused, match="copy"):
        peer.hello(process)


def test_a_stream_that_broke_is_opened_again_by_the_same_process(peer: Peer) -> None:
    for silent_ms in (0, 100, 5_000, 10 * MINUTE_MS):
        peer.loses()
        peer.pass_ms(silent_ms)
        peer.hello(ORIGINAL)


@pytest.mark.parametrize("broke", [False, True])
@pytest.mark.parametrize("after_ms", [100, 1_500, 10_000])
def test_a_restart_takes_the_place_of_a_process_that_is_not_heard_any_more(
    peer: Peer, *, broke: bool, after_ms: float
) -> None:
    if broke:
        peer.loses()
    peer.pass_ms(after_ms)
    peer.begins(RESTARTED)
    peer.pass_ms(200)
    if not broke and after_ms + 200 < ALIVE_MS:
        # Its host lost power: the end of the stream was not told.
        with pytest.raises(Unavailable, match="was heard 300 ms ago"):
            peer.hello(RESTARTED)
        peer.pass_ms(ALIVE_MS)
    peer.hello(RESTARTED)
    peer.loses()
    peer.pass_ms(MINUTE_MS)
    peer.hello(RESTARTED)


def test_a_copy_is_refused_while_the_original_is_heard_and_for_good(peer: Peer) -> None:
    peer.begins(COPY)
    with pytest.raises((Unavailable, PeerRefused)):
        peer.hello(COPY)
    peer.pass_ms(TOLERANCE_MS + 200, heard=True)
    refused(peer, COPY)
    peer.loses()
    peer.pass_ms(10 * MINUTE_MS)
    refused(peer, COPY)
    peer.hello(ORIGINAL)


def test_a_copy_does_not_slip_in_where_the_originals_stream_breaks_for_a_moment(peer: Peer) -> None:
    peer.begins(COPY)
    peer.pass_ms(5_000, heard=True)
    peer.loses()
    refused(peer, COPY)
    peer.pass_ms(3_000)
    refused(peer, COPY)
    peer.hello(ORIGINAL)


def test_a_copy_that_was_heard_first_is_refused_once_the_original_is_heard() -> None:
    """This peer has just started, or could not reach the original."""
    peer = Peer()
    peer.pass_ms(5_000)
    peer.begins(COPY)
    peer.pass_ms(2_000)
    peer.hello(COPY)
    peer.pass_ms(2_000, heard=True)
    peer.hello(ORIGINAL)
    peer.pass_ms(2_000, heard=True)
    refused(peer, COPY)
    peer.loses()
    peer.pass_ms(MINUTE_MS)
    refused(peer, COPY)


def test_a_process_that_was_frozen_and_replaced_is_refused_when_it_wakes_up(peer: Peer) -> None:
    peer.pass_ms(3_000)
    peer.loses()
    peer.pass_ms(MINUTE_MS)
    peer.begins(RESTARTED)
    peer.pass_ms(500)
    peer.hello(RESTARTED)
    peer.pass_ms(MINUTE_MS, heard=True)
    refused(peer, ORIGINAL)
    peer.loses()
    refused(peer, ORIGINAL)
    peer.hello(RESTARTED)


@pytest.mark.parametrize("broke", [False, True])
@pytest.mark.parametrize("frozen_ms", [3_000, 10_000, MINUTE_MS])
def test_a_restart_while_this_process_stood_still_is_no_copy(peer: Peer, frozen_ms: float, *, broke: bool) -> None:
    """A buffer held messages of the process before, which this one reads only now."""
    sent_ms = peer.now_ms + 200
    peer.pass_ms(500)
    peer.begins(RESTARTED)
    peer.pass_ms(frozen_ms)
    peer.hears(sent_ms=sent_ms)
    if broke:
        peer.loses()
    else:
        with pytest.raises(Unavailable, match="was heard 0 ms ago"):
            peer.hello(RESTARTED)
        peer.pass_ms(ALIVE_MS)
    peer.hello(RESTARTED)
    refused(peer, ORIGINAL)


def test_hellos_of_several_starts_that_are_read_together_refuse_none_but_the_dead(peer: Peer) -> None:
    peer.pass_ms(500)
    peer.loses()
    for process in (101, 102, 103):
        peer.begins(process)
        peer.pass_ms(2_000)
    peer.hello(101)
    peer.loses()
    peer.hello(103)
    with pytest.raises(Unavailable):
        peer.hello(102)
    peer.hello(103)
    refused(peer, 101)


def test_a_refused_process_that_no_member_hears_says_and_hears_nothing_any_more(peer: Peer) -> None:
    """A member that starts later would take it for the original."""
    peer.processes.refused(PeerRefused("another process speaks for node n1", "n1"))
    # The one that refused it may be wrong, if another one hears it.
    peer.processes.tell(Hello())
    peer.hello(ORIGINAL)
    peer.loses()
    for _ in range(2):
        with pytest.raises(PeerRefused, match="speaks for node n1"):
            peer.processes.tell(Hello())
        with pytest.raises(PeerRefused, match="speaks for node n1"):
            peer.hello(ORIGINAL)
        peer.pass_ms(MINUTE_MS)


def test_a_process_that_was_frozen_and_not_replaced_goes_on(peer: Peer) -> None:
    peer.pass_ms(3_000)
    peer.loses()
    peer.pass_ms(10 * MINUTE_MS)
    peer.hello(ORIGINAL)


def test_a_build_that_names_no_process_is_taken_as_before(peer: Peer) -> None:
    peer.processes.check(Hello(node_id="n2"))
    peer.processes.adopt(Hello(node_id="n2"))
    peer.hello(ORIGINAL)


def test_what_is_remembered_of_refused_ones_is_bounded(peer: Peer) -> None:
    peer.pass_ms(5_000, heard=True)
    for number in range(1_000):
        peer.began_ms[100 + number] = peer.now_ms - 2_000
        refused(peer, 100 + number)
    assert len(peer.processes._known["n2"].refused) < 100
    peer.hello(ORIGINAL)


@pytest.mark.parametrize("age_ms", [0, 1, 1 << 62, (1 << 64) - 1])
def test_no_age_takes_a_node_out_of_bounds(peer: Peer, age_ms: int) -> None:
    peer.pass_ms(5_000, heard=True)
    hello = Hello(node_id="n2", process=COPY, process_age_ms=age_ms)
    try:
        peer.processes.check(hello)
    except (PeerRefused, Unavailable):
        return
    peer.processes.adopt(hello)
