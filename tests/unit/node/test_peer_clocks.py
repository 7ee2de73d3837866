"""Offsets of clocks, and the hosts to blame for them."""

from __future__ import annotations

import pytest

from cortado.store.clock.host_time import HostTime, Majority
from cortado.store.process.peer_clocks import CONFIRMS_MS, FORGOTTEN_MS, KEPT_MS, PeerClocks

OWN_MS = 1_763_643_600_000.0
"""Our wall clock minus our monotonic one."""


def heard(clocks: PeerClocks, node_id: str, low_ms: float, high_ms: float, now_ms: float) -> bool:
    """Tell that a peer's clock minus our wall clock lies between these; return whether that is new."""
    return clocks.observe(node_id, low_ms + OWN_MS, high_ms + OWN_MS, now_ms)


@pytest.mark.parametrize(
    ("offsets", "is_out"),
    [
        ({}, False),
        ({"n2": (240, 260), "n3": (240, 260)}, False),
        ({"n2": (251, 260)}, False),
        ({"n2": (251, 260), "n3": (-5, 5)}, False),
        ({"n2": (251, 260), "n3": (300, 310)}, True),
        ({"n2": (-900, -251), "n3": (300, 310)}, True),
        ({"n2": (251, 260), "stranger": (300, 310)}, False),
    ],
)
def test_a_clock_is_wrong_where_a_majority_of_the_voters_says_so(
    offsets: dict[str, tuple[float, float]], is_out: bool
) -> None:
    clocks = PeerClocks(250, election_ms_max=1_300)
    for node_id, (low_ms, high_ms) in offsets.items():
        heard(clocks, node_id, low_ms, high_ms, 0)
    assert clocks.is_out_of_bounds(["n1", "n2", "n3"], 0, OWN_MS) is is_out


def test_of_two_nodes_nobody_can_say_which_is_wrong() -> None:
    clocks = PeerClocks(250, election_ms_max=1_300)
    heard(clocks, "n2", 1_000, 1_010, 0)
    assert not clocks.is_out_of_bounds(["n1", "n2"], 0, OWN_MS)


def test_a_narrow_bound_outlives_wider_ones_for_a_while() -> None:
    clocks = PeerClocks(250, election_ms_max=1_300)
    heard(clocks, "n2", -1, 1, 0)
    heard(clocks, "n2", -400, 400, 1)
    assert (clocks.offsets(1, OWN_MS)[0].low_ms, clocks.offsets(1, OWN_MS)[0].high_ms) == (-1, 1)
    heard(clocks, "n2", -400, 400, KEPT_MS + 2)
    assert clocks.offsets(KEPT_MS + 2, OWN_MS)[0].high_ms == 400


def test_a_clock_that_was_set_is_seen_at_once() -> None:
    clocks = PeerClocks(250, election_ms_max=1_300)
    heard(clocks, "n2", -1, 1, 0)
    heard(clocks, "n2", 900, 1_000, 1)
    assert clocks.offsets(1, OWN_MS)[0].low_ms == 900


def test_a_silent_peer_says_nothing_and_an_impossible_bound_neither() -> None:
    clocks = PeerClocks(250, election_ms_max=1_300)
    heard(clocks, "n3", 5, -5, 0)
    heard(clocks, "n2", 900, 1_000, 0)
    assert [each.node_id for each in clocks.offsets(FORGOTTEN_MS, OWN_MS)] == ["n2"]
    assert clocks.offsets(FORGOTTEN_MS + 1, OWN_MS) == []


def test_a_peer_that_was_silent_for_a_while_confirms_no_time() -> None:
    """Its clock may have been wrong as ours is now, and set right since."""
    clocks = PeerClocks(250, election_ms_max=1_300)
    heard(clocks, "n2", 9_990, 10_010, 0)
    heard(clocks, "n2", 9_900, 10_100, KEPT_MS)
    for at_ms, confirms in ((KEPT_MS + CONFIRMS_MS, True), (KEPT_MS + CONFIRMS_MS + 1, False)):
        assert clocks.are_for(["n1", "n2", "n3"], at_ms, OWN_MS + 10_000, OWN_MS) is confirms
    assert [each.node_id for each in clocks.offsets(KEPT_MS + CONFIRMS_MS + 1, OWN_MS)] == ["n2"], "it is still told"


@pytest.mark.parametrize("election_ms", [1_300, 60_000])
def test_a_clock_that_was_started_wrong_is_held_back_for_as_long_as_its_node_may_lead(election_ms: int) -> None:
    """One voter of three is away, and another one stands still. The node may lead on for an election."""
    monotonic_ms = 0.0
    time = HostTime(lambda: int(monotonic_ms) + 3_600_000, lambda: monotonic_ms, max_offset_ms=250)
    clocks = PeerClocks(250, election_ms_max=election_ms)
    clocks.observe("n2", -1, 1, 0)
    clocks.observe("n2", -5, 5, 1_950)
    for monotonic_ms in (1_950.0, 1_950.0 + CONFIRMS_MS, 1_950.0 + election_ms):
        time.peers_say(clocks.majority(["n2", "n3"], monotonic_ms))
        assert time.now_ms() <= monotonic_ms + 251


def test_a_jump_of_our_own_wall_clock_moves_what_is_known_of_peers_beside_it_and_nothing_else() -> None:
    clocks = PeerClocks(250, election_ms_max=1_300)
    for peer in ("n2", "n3"):
        heard(clocks, peer, -1, 1, 0)
    assert clocks.is_out_of_bounds(["n1", "n2", "n3"], 1, OWN_MS + 10_000), "before anybody is heard again"
    assert [(each.low_ms, each.high_ms) for each in clocks.offsets(1, OWN_MS + 10_000)] == [(-10_001, -9_999)] * 2
    assert clocks.majority(["n2", "n3"], 1) == Majority(OWN_MS + 1, OWN_MS + 1)


@pytest.mark.parametrize(
    ("offsets", "voters", "are_for"),
    [
        ({}, 3, False),
        ({"n2": (9_990, 10_010)}, 3, True),
        ({"n2": (-10, 10)}, 3, False),
        ({"n2": (9_990, 10_010), "n3": (-10, 10)}, 3, True),
        ({"n2": (9_990, 10_010)}, 2, True),
        ({"n2": (9_990, 10_010)}, 4, False),
        ({"n2": (9_990, 10_010), "n3": (9_990, 10_010)}, 4, True),
        ({"stranger": (9_990, 10_010)}, 3, False),
        ({"n2": (0, 10_001)}, 3, True),
        ({"n2": (0, 9_999)}, 3, False),
    ],
    ids=str,
)
def test_a_jump_is_confirmed_by_a_majority_that_has_the_same_time(
    offsets: dict[str, tuple[float, float]], voters: int, are_for: bool
) -> None:
    clocks = PeerClocks(250, election_ms_max=1_300)
    for node_id, (low_ms, high_ms) in offsets.items():
        heard(clocks, node_id, low_ms, high_ms, 0)
    others = [f"n{number}" for number in range(1, voters + 1)]
    assert clocks.are_for(others, 1, OWN_MS + 10_000, OWN_MS) is are_for
