"""A host's wall clock is set, stands still and comes back; the node's time meanwhile."""

from __future__ import annotations

import math

import pytest

from cortado.store.clock.host_time import ALONE_MS, HostTime, Majority, majority_of

NOW_MS = 1_763_643_600_000
YEAR_2071_MS = 3_187_296_000_000


class Host:
    """Two clocks that run together, until one is set."""

    def __init__(self) -> None:
        self.monotonic_ms = 5_000.0
        self.wall_ms = float(NOW_MS)
        self.time = HostTime(lambda: int(self.wall_ms), lambda: self.monotonic_ms, max_offset_ms=250)

    def runs(self, ms: float) -> None:
        self.wall_ms += ms
        self.monotonic_ms += ms

    @property
    def elapsed_ms(self) -> int:
        return self.time.now_ms() - NOW_MS

    def peers_are_right(self) -> None:
        """Set the clocks of the peers, two of three, right."""
        right_ms = NOW_MS - 5_000.0
        self.time.peers_say(Majority(right_ms, right_ms))


def test_a_clock_that_runs_evenly_is_given_as_it_is_read() -> None:
    host = Host()
    for step_ms in (1, 3, 1_000, 86_400_000):
        host.runs(step_ms)
        assert host.time.now_ms() == host.wall_ms
        assert host.time.jump_ms() == 0


@pytest.mark.parametrize("by_ms", [251, 10_000, YEAR_2071_MS - NOW_MS])
def test_a_jump_ahead_that_the_monotonic_clock_does_not_confirm_is_not_followed(by_ms: int) -> None:
    host = Host()
    host.wall_ms += by_ms
    assert host.elapsed_ms == 0
    assert host.time.jump_ms() == by_ms
    host.runs(60_000)
    assert host.elapsed_ms == 60_000, "time goes on by the monotonic clock"
    host.wall_ms -= by_ms
    host.runs(1_000)
    assert host.elapsed_ms == 61_000
    assert host.time.jump_ms() == 0


def test_a_jump_back_makes_a_host_that_is_alone_wait_and_its_end_is_no_jump() -> None:
    host = Host()
    host.wall_ms -= 3_600_000
    assert host.elapsed_ms == -3_600_000, "an operator who set it right begins an epoch at the true time"
    host.wall_ms += 3_600_000
    assert host.elapsed_ms == 0


def test_a_jump_back_is_not_followed_where_most_clocks_are_ahead() -> None:
    host = Host()
    host.peers_are_right()
    host.wall_ms -= 3_600_000
    host.runs(10)
    assert host.elapsed_ms == 10


def test_a_small_step_is_slewed() -> None:
    host = Host()
    host.wall_ms += 100
    assert host.elapsed_ms < 1
    host.runs(1_000)
    assert host.elapsed_ms == 1_050
    host.runs(1_000)
    assert host.elapsed_ms == 2_100
    assert host.time.jump_ms() == 0


def test_small_steps_one_after_the_other_are_a_jump() -> None:
    host = Host()
    for _ in range(60):
        host.wall_ms += 200
        host.runs(1_000)
        host.elapsed_ms  # noqa: B018
    assert host.elapsed_ms < 60_000 + 250
    assert host.time.jump_ms() > 0


def test_a_jump_that_peers_confirm_is_followed_at_once() -> None:
    """If a host slept and its monotonic clock did not count that, it comes back by itself."""
    host = Host()
    host.wall_ms += 3_600_000
    host.time.follow_wall()
    assert host.elapsed_ms == 3_600_000
    assert host.time.jump_ms() == 0


def test_a_host_that_is_alone_follows_a_jump_that_stands() -> None:
    host = Host()
    host.wall_ms += 3_600_000
    assert not host.time.follow_wall_alone()
    host.runs(ALONE_MS - 1)
    assert not host.time.follow_wall_alone()
    host.wall_ms += 1_000
    host.runs(2)
    assert not host.time.follow_wall_alone(), "it jumped again"
    host.runs(ALONE_MS)
    assert host.time.follow_wall_alone()
    assert host.time.now_ms() == host.wall_ms
    host.runs(10 * ALONE_MS)
    assert not host.time.follow_wall_alone(), "there is nothing to follow"


def test_a_host_that_was_started_with_a_wrong_clock_issues_the_majoritys_time() -> None:
    host = Host()
    right_ms = NOW_MS - 5_000.0 - 10_000
    host.time.peers_say(Majority(right_ms, right_ms))
    assert host.elapsed_ms == -10_000 + 250
    host.wall_ms -= 10_000
    host.runs(1)
    assert host.elapsed_ms == -10_000 + 251, "it was set right, and peers have not confirmed it yet"
    host.time.follow_wall()
    assert host.elapsed_ms == -10_000 + 1


@pytest.mark.parametrize(
    ("peers", "voters", "expected"),
    [
        ([], 1, None),
        ([7.0], 2, Majority(7.0, math.inf)),
        ([], 2, Majority(-math.inf, math.inf)),
        ([3.0, 7.0], 3, Majority(3.0, 7.0)),
        ([7.0], 3, Majority(-math.inf, 7.0)),
        ([], 3, None),
        ([1.0, 2.0, 3.0, 4.0], 5, Majority(2.0, 3.0)),
        ([3.0, 4.0], 5, Majority(-math.inf, 3.0)),
        ([3.0], 5, None),
    ],
)
def test_the_majority_of_clocks_that_are_known_in_part(
    peers: list[float], voters: int, expected: Majority | None
) -> None:
    assert majority_of(peers, voters) == expected
