"""How long an open batch waits for more, and which callers it does not wait for; other waits for a round or a
transaction."""

from __future__ import annotations

import math

import pytest

from cortado.store.replica.write.group_commit import (
    APPLY_BYTES,
    APPLY_ENTRIES,
    APPLY_WAIT_MS,
    CLOSE_WAIT_MS,
    ENOUGH_BYTES,
    HALF_CALLERS_MIN,
    LISTEN_WAIT_MS,
    READ_TRIAL,
    READ_WAIT_MS,
    READS_ENOUGH,
    GroupCommit,
)


def close_at_ms(waits: GroupCommit, commands: int, size_bytes: int, now_ms: float, uncommitted: int) -> float:
    """Return when the open batch is closed, by a round that begins now."""
    waits.round_begins()
    if waits.may_close(commands, size_bytes, now_ms, uncommitted=uncommitted):
        assert waits.due_ms == math.inf
        return now_ms
    assert waits.due_ms < math.inf
    return waits.due_ms


def test_a_caller_alone_never_waits() -> None:
    waits = GroupCommit()
    now_ms = 0.0
    for _ in range(10):
        waits.proposed(now_ms)
        assert close_at_ms(waits, 2, 100, now_ms, 0) == now_ms
        waits.closed()
        waits.answered(1, now_ms + 1)
        now_ms += 2


def test_a_batch_waits_for_the_one_before_and_then_for_those_who_were_answered() -> None:
    waits = GroupCommit()
    waits.proposed(0)
    waits.proposed(0)
    assert close_at_ms(waits, 2, 100, 0, 0) == 0
    waits.closed()
    waits.proposed(1)
    assert close_at_ms(waits, 2, 100, 1, 2) == 1 + CLOSE_WAIT_MS
    waits.answered(2, 2)
    assert close_at_ms(waits, 2, 100, 2, 0) > 2
    waits.proposed(3)
    assert close_at_ms(waits, 2, 100, 3, 0) > 3
    waits.proposed(4)
    assert close_at_ms(waits, 2, 100, 4, 0) == 4


def test_no_batch_waits_longer_than_its_bound() -> None:
    waits = GroupCommit()
    assert close_at_ms(waits, 2, 100, 10, 2) == 10 + CLOSE_WAIT_MS
    waits.answered(50, 11)
    assert close_at_ms(waits, 2, 100, 12, 0) == 10 + CLOSE_WAIT_MS
    late_ms = 10 + CLOSE_WAIT_MS
    assert close_at_ms(waits, 2, 100, late_ms, 2) == late_ms


def test_who_was_answered_long_ago_is_not_waited_for() -> None:
    waits = GroupCommit()
    waits.answered(50, 0)
    assert close_at_ms(waits, 2, 100, 1_000, 0) == 1_000


def test_callers_who_do_not_come_back_are_not_waited_for_the_next_time() -> None:
    waits = GroupCommit()
    waits.answered(50, 0)
    waits.proposed(1)
    waits.answered(1, 100)
    assert close_at_ms(waits, 2, 100, 101, 0) == 101
    waits.proposed(101)
    waits.answered(50, 102)
    assert close_at_ms(waits, 2, 100, 103, 0) > 103


def test_a_large_batch_waits_for_nobody() -> None:
    waits = GroupCommit()
    assert close_at_ms(waits, 2, ENOUGH_BYTES, 5, 2) == 5


def test_half_of_many_callers_are_a_batch_while_the_other_half_is_on_its_way() -> None:
    waits = GroupCommit()
    half = HALF_CALLERS_MIN
    for _ in range(half - 1):
        waits.proposed(1)
    assert close_at_ms(waits, half - 1, 100, 1, half) > 1
    waits.proposed(1)
    assert close_at_ms(waits, half, 100, 1, half) == 1
    assert close_at_ms(waits, half, 100, 1, half + 1) > 1


def test_who_was_answered_just_now_counts_as_one_of_the_callers_there_are() -> None:
    waits = GroupCommit()
    half = HALF_CALLERS_MIN
    waits.answered(2 * half, 0)
    for back in range(1, half + 1):
        waits.proposed(1)
        due_ms = close_at_ms(waits, back, 100, 1, 0)
        assert (due_ms == 1) == (back == half)
    waits.closed()
    assert close_at_ms(waits, half - 1, 100, 2, half) > 2


# --- what else waits -------------------------------------------------------------------------------------------------


def test_what_nobody_needs_applied_waits_for_so_long_and_no_longer() -> None:
    waits = GroupCommit()
    assert waits.may_apply_later(1, 0, 10, is_wanted=False)
    assert waits.due_ms == 10 + APPLY_WAIT_MS
    assert waits.may_apply_later(2, 0, 12, is_wanted=False)
    assert waits.due_ms == 10 + APPLY_WAIT_MS, "since it began to wait"
    assert not waits.may_apply_later(2, 0, 10 + APPLY_WAIT_MS, is_wanted=False)
    assert waits.may_apply_later(1, 0, 40, is_wanted=False)
    assert waits.due_ms == 40 + APPLY_WAIT_MS
    assert not waits.may_apply_later(1, 0, 41, is_wanted=True)
    assert waits.due_ms == math.inf


@pytest.mark.parametrize(("entries", "size_bytes"), [(APPLY_ENTRIES, 0), (1, APPLY_BYTES)])
def test_what_is_enough_for_a_transaction_is_applied_at_once(entries: int, size_bytes: int) -> None:
    waits = GroupCommit()
    assert waits.may_apply_later(max(entries - 1, 1), max(size_bytes - 1, 0), 10, is_wanted=False)
    assert not waits.may_apply_later(entries, size_bytes, 10, is_wanted=False)


def test_where_nothing_is_to_be_applied_nothing_is_due() -> None:
    waits = GroupCommit()
    assert waits.may_apply_later(1, 0, 10, is_wanted=False)
    waits.applied_all()
    assert waits.due_ms == math.inf


def test_late_acknowledgements_wait_for_the_next_round() -> None:
    waits = GroupCommit()
    assert waits.listen_later(5)
    assert not waits.listen_later(6), "others wait already"
    assert waits.due_ms == 5 + LISTEN_WAIT_MS
    waits.round_begins()
    assert waits.due_ms == math.inf


def test_a_batch_that_is_held_for_another_reason_keeps_the_deadline_of_that() -> None:
    waits = GroupCommit()
    waits.hold_batch(70)
    assert waits.due_ms < math.inf
    assert waits.due_ms == 70


def reads_at_ms(waits: GroupCommit, reads: int, now_ms: float) -> float:
    """Return when a round of heartbeats begins for ``reads`` reads, by a round that begins now."""
    waits.round_begins()
    if waits.may_read(reads, now_ms):
        assert waits.due_ms == math.inf
        return now_ms
    assert waits.holds_reads(reads)
    return waits.due_ms


def test_a_lone_reader_waits_in_one_round_of_many() -> None:
    waits = GroupCommit()
    held = []
    now_ms = 0.0
    for place in range(3 * READ_TRIAL):
        now_ms += 0.25
        began_ms = reads_at_ms(waits, 1, now_ms)
        if began_ms > now_ms:
            assert began_ms == now_ms + READ_WAIT_MS
            held.append(place)
            assert reads_at_ms(waits, 1, began_ms) == began_ms
            now_ms = began_ms
    assert held == [READ_TRIAL, 2 * READ_TRIAL]


def test_readers_who_come_one_after_the_other_share_rounds_once_that_was_tried() -> None:
    waits = GroupCommit()
    now_ms = 0.0
    while not waits.holds_reads(1):
        now_ms += 1
        reads_at_ms(waits, 1, now_ms)
    # More come while they wait, and make it no longer.
    assert reads_at_ms(waits, 4, now_ms + 3) == now_ms + READ_WAIT_MS
    assert reads_at_ms(waits, 6, now_ms + READ_WAIT_MS) == now_ms + READ_WAIT_MS
    # From now on it is six of them.
    now_ms += 20
    assert reads_at_ms(waits, 5, now_ms) == now_ms + READ_WAIT_MS
    assert waits.holds_reads(5)
    assert not waits.holds_reads(6)
    assert reads_at_ms(waits, 6, now_ms + 1) == now_ms + 1
    # One left: the others wait for him once.
    assert reads_at_ms(waits, 5, now_ms + 2) == now_ms + 2 + READ_WAIT_MS
    assert reads_at_ms(waits, 5, now_ms + 2 + READ_WAIT_MS) == now_ms + 2 + READ_WAIT_MS
    assert reads_at_ms(waits, 5, now_ms + 20) == now_ms + 20


def test_reads_that_are_enough_wait_for_nobody() -> None:
    waits = GroupCommit()
    assert reads_at_ms(waits, 64, 10) == 10
    assert reads_at_ms(waits, READS_ENOUGH, 11) == 11
    assert reads_at_ms(waits, READS_ENOUGH - 1, 12) == 12 + READ_WAIT_MS
