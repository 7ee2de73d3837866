"""How long an open turn waits for company, and for whom it does not."""

from __future__ import annotations

from cortado.store.node.gathering import ENOUGH_BYTES, GATHER_MS, Gathering


def test_a_caller_alone_never_waits() -> None:
    gathering = Gathering()
    now_ms = 0.0
    for _ in range(10):
        gathering.proposed(now_ms)
        assert gathering.due_ms(100, now_ms, is_undecided=False) == now_ms
        gathering.closed()
        gathering.answered(1, now_ms + 1)
        now_ms += 2


def test_a_turn_waits_for_the_one_before_and_then_for_those_who_were_answered() -> None:
    gathering = Gathering()
    gathering.proposed(0)
    gathering.proposed(0)
    assert gathering.due_ms(100, 0, is_undecided=False) == 0
    gathering.closed()
    gathering.proposed(1)
    assert gathering.due_ms(100, 1, is_undecided=True) == 1 + GATHER_MS
    gathering.answered(2, 2)
    assert gathering.due_ms(100, 2, is_undecided=False) > 2
    gathering.proposed(3)
    assert gathering.due_ms(100, 3, is_undecided=False) > 3
    gathering.proposed(4)
    assert gathering.due_ms(100, 4, is_undecided=False) == 4


def test_no_turn_waits_longer_than_its_bound() -> None:
    gathering = Gathering()
    assert gathering.due_ms(100, 10, is_undecided=True) == 10 + GATHER_MS
    gathering.answered(50, 11)
    assert gathering.due_ms(100, 12, is_undecided=False) == 10 + GATHER_MS
    late_ms = 10 + GATHER_MS
    assert gathering.due_ms(100, late_ms, is_undecided=True) == late_ms


def test_who_was_answered_long_ago_is_not_waited_for() -> None:
    gathering = Gathering()
    gathering.answered(50, 0)
    assert gathering.due_ms(100, 1_000, is_undecided=False) == 1_000


def test_callers_who_do_not_come_back_are_not_waited_for_the_next_time() -> None:
    gathering = Gathering()
    gathering.answered(50, 0)
    gathering.proposed(1)
    gathering.answered(1, 100)
    assert gathering.due_ms(100, 101, is_undecided=False) == 101
    gathering.proposed(101)
    gathering.answered(50, 102)
    assert gathering.due_ms(100, 103, is_undecided=False) > 103


def test_a_large_turn_waits_for_nobody() -> None:
    gathering = Gathering()
    assert gathering.due_ms(ENOUGH_BYTES, 5, is_undecided=True) == 5
