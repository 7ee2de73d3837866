"""One host's time stays near the truth while a majority of the voters' clocks is right, whatever its own clocks do."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from cortado.store.clock.host_time import ALONE_MS, SLEW, HostTime, majority_of

MAX_OFFSET_MS = 250
RIGHT_MS = 100
TRUE_MS = 1_763_643_600_000
YEAR_2071_MS = 3_187_296_000_000

RIGHT = st.integers(-RIGHT_MS, RIGHT_MS)
WRONG = st.integers(-100_000, 100_000) | st.sampled_from([-TRUE_MS, YEAR_2071_MS - TRUE_MS])
STEPS = st.lists(st.tuples(st.integers(0, 20_000), RIGHT | WRONG, st.booleans()), max_size=12)


@st.composite
def groups(draw: st.DrawFn) -> tuple[int, list[int], bool]:
    """Draw how many voters there are, how far the clocks of the heard peers are off, and whether ours is right.

    A majority of all voters is right, and enough are heard of to elect a leader.
    """
    voters = draw(st.integers(2, 7))
    own_is_right = voters == 2 or draw(st.booleans())  # A majority of two is both.
    right = voters // 2 + 1 - own_is_right
    peers = [draw(RIGHT) for _ in range(right)] + [draw(RIGHT | WRONG) for _ in range(voters - 1 - right)]
    heard = draw(st.integers(voters // 2, voters - 1))
    return voters, draw(st.permutations(peers))[:heard], own_is_right


@given(group=groups(), begun_ms=RIGHT | WRONG, steps=STEPS)
def test_the_time_is_never_far_ahead_while_a_majority_of_the_clocks_is_right(
    group: tuple[int, list[int], bool], begun_ms: int, steps: list[tuple[int, int, bool]]
) -> None:
    voters, peers, own_is_right = group
    offset_ms = max(-RIGHT_MS, min(begun_ms, RIGHT_MS)) if own_is_right else begun_ms
    now_ms = 5_000.0
    time = HostTime(lambda: int(TRUE_MS + now_ms + offset_ms), lambda: now_ms, max_offset_ms=MAX_OFFSET_MS)
    for elapsed_ms, set_to_ms, is_confirmed in steps:
        now_ms += elapsed_ms
        offset_ms = max(-RIGHT_MS, min(set_to_ms, RIGHT_MS)) if own_is_right else set_to_ms
        time.peers_say(majority_of([float(TRUE_MS + peer) for peer in peers], voters))
        if is_confirmed:
            time.follow_wall()
        assert time.now_ms() <= TRUE_MS + now_ms + RIGHT_MS + MAX_OFFSET_MS


@given(steps=STEPS)
def test_a_host_that_is_alone_is_never_ahead_of_its_wall_clock_nor_of_the_time_that_went_by(
    steps: list[tuple[int, int, bool]],
) -> None:
    now_ms, offset_ms = 5_000.0, 0
    time = HostTime(lambda: int(TRUE_MS + now_ms + offset_ms), lambda: now_ms, max_offset_ms=MAX_OFFSET_MS)
    for elapsed_ms, set_to_ms, _ in steps:
        now_ms += elapsed_ms
        offset_ms = set_to_ms
        assert time.now_ms() <= TRUE_MS + now_ms + offset_ms
        # Small steps one after the other may take it along, and no faster than it is slewed.
        assert time.now_ms() <= TRUE_MS + now_ms + MAX_OFFSET_MS + SLEW * (now_ms - 5_000)


@given(steps=st.lists(st.tuples(st.integers(0, 20_000), RIGHT | WRONG), max_size=12))
def test_a_clock_that_was_set_right_again_is_ahead_no_more_and_is_followed_in_time_whatever_it_did(
    steps: list[tuple[int, int]],
) -> None:
    now_ms, offset_ms = 5_000.0, 0
    time = HostTime(lambda: int(TRUE_MS + now_ms + offset_ms), lambda: now_ms, max_offset_ms=MAX_OFFSET_MS)
    for elapsed_ms, set_to_ms in steps:
        now_ms += elapsed_ms
        offset_ms = set_to_ms
        time.now_ms()
    offset_ms = 0
    assert time.now_ms() <= TRUE_MS + now_ms + 1
    time.follow_wall_alone()
    now_ms += ALONE_MS
    time.follow_wall_alone()
    assert time.jump_ms() == 0
    assert abs(time.now_ms() - (TRUE_MS + now_ms)) <= 1
