"""Offsets of clocks, and who is to blame for them."""

from __future__ import annotations

import pytest

from cortado.store.node.peer_clocks import FORGOTTEN_MS, KEPT_MS, PeerClocks


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
    clocks = PeerClocks(250)
    for node_id, (low_ms, high_ms) in offsets.items():
        clocks.observe(node_id, low_ms, high_ms, 0)
    assert clocks.is_out_of_bounds(["n1", "n2", "n3"], 0) is is_out


def test_of_two_nodes_nobody_can_say_which_is_wrong() -> None:
    clocks = PeerClocks(250)
    clocks.observe("n2", 1_000, 1_010, 0)
    assert not clocks.is_out_of_bounds(["n1", "n2"], 0)


def test_a_narrow_bound_outlives_wider_ones_for_a_while() -> None:
    clocks = PeerClocks(250)
    clocks.observe("n2", -1, 1, 0)
    clocks.observe("n2", -400, 400, 1)
    assert (clocks.offsets(1)[0].low_ms, clocks.offsets(1)[0].high_ms) == (-1, 1)
    clocks.observe("n2", -400, 400, KEPT_MS + 2)
    assert clocks.offsets(KEPT_MS + 2)[0].high_ms == 400


def test_a_clock_that_was_set_is_seen_at_once() -> None:
    clocks = PeerClocks(250)
    clocks.observe("n2", -1, 1, 0)
    clocks.observe("n2", 900, 1_000, 1)
    assert clocks.offsets(1)[0].low_ms == 900


def test_a_silent_peer_says_nothing_and_an_impossible_bound_neither() -> None:
    clocks = PeerClocks(250)
    clocks.observe("n3", 5, -5, 0)
    clocks.observe("n2", 900, 1_000, 0)
    assert [each.node_id for each in clocks.offsets(FORGOTTEN_MS)] == ["n2"]
    assert clocks.offsets(FORGOTTEN_MS + 1) == []
