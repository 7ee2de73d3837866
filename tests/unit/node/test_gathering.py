"""How long an open turn waits for company, and for whom it does not."""

from __future__ import annotations

from cortado.store.node.gathering import ENOUGH_BYTES, GATHER_MS, HALF_CALLERS_MIN, Gathering


def test_a_caller_alone_never_waits() -> None:
    gathering = Gathering()
    now_ms = 0.0
    for _ in range(10):
        gathering.proposed(now_ms)
        assert gathering.due_ms(2, 100, now_ms, undecided=0) == now_ms
        gathering.closed()
        gathering.answered(1, now_ms + 1)
        now_ms += 2


def test_a_turn_waits_for_the_one_before_and_then_for_those_who_were_answered() -> None:
    gathering = Gathering()
    gathering.proposed(0)
    gathering.proposed(0)
    assert gathering.due_ms(2, 100, 0, undecided=0) == 0
    gathering.closed()
    gathering.proposed(1)
    assert gathering.due_ms(2, 100, 1, undecided=2) == 1 + GATHER_MS
    gathering.answered(2, 2)
    assert gathering.due_ms(2, 100, 2, undecided=0) > 2
    gathering.proposed(3)
    assert gathering.due_ms(2, 100, 3, undecided=0) > 3
    gathering.proposed(4)
    assert gathering.due_ms(2, 100, 4, undecided=0) == 4


def test_no_turn_waits_longer_than_its_bound() -> None:
    gathering = Gathering()
    assert gathering.due_ms(2, 100, 10, undecided=2) == 10 + GATHER_MS
    gathering.answered(50, 11)
    assert gathering.due_ms(2, 100, 12, undecided=0) == 10 + GATHER_MS
    late_ms = 10 + GATHER_MS
    assert gathering.due_ms(2, 100, late_ms, undecided=2) == late_ms


def test_who_was_answered_long_ago_is_not_waited_for() -> None:
    gathering = Gathering()
    gathering.answered(50, 0)
    assert gathering.due_ms(2, 100, 1_000, undecided=0) == 1_000


def test_callers_who_do_not_come_back_are_not_waited_for_the_next_time() -> None:
    gathering = Gathering()
    gathering.answered(50, 0)
    gathering.proposed(1)
    gathering.answered(1, 100)
    assert gathering.due_ms(2, 100, 101, undecided=0) == 101
    gathering.proposed(101)
    gathering.answered(50, 102)
    assert gathering.due_ms(2, 100, 103, undecided=0) > 103


def test_a_large_turn_waits_for_nobody() -> None:
    gathering = Gathering()
    assert gathering.due_ms(2, ENOUGH_BYTES, 5, undecided=2) == 5


def test_half_of_many_callers_are_a_turn_while_the_other_half_is_on_its_way() -> None:
    gathering = Gathering()
    half = HALF_CALLERS_MIN
    for _ in range(half - 1):
        gathering.proposed(1)
    assert gathering.due_ms(half - 1, 100, 1, undecided=half) > 1
    gathering.proposed(1)
    assert gathering.due_ms(half, 100, 1, undecided=half) == 1
    assert gathering.due_ms(half, 100, 1, undecided=half + 1) > 1


def test_who_was_answered_just_now_counts_as_one_of_the_callers_there_are() -> None:
    gathering = Gathering()
    half = HALF_CALLERS_MIN
    gathering.answered(2 * half, 0)
    for back in range(1, half + 1):
        gathering.proposed(1)
        due_ms = gathering.due_ms(back, 100, 1, undecided=0)
        assert (due_ms == 1) == (back == half)
    gathering.closed()
    assert gathering.due_ms(half - 1, 100, 2, undecided=half) > 2
