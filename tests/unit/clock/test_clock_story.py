"""The clock's promises as a story each, first of all the year 2071."""

from __future__ import annotations

import pytest

from cortado.error_metadata import from_metadata, to_metadata
from cortado.errors import ClockOutOfBounds, InvalidArgument
from cortado.store.clock.hlc import PHYSICAL_MS_MAX, Clock
from cortado.store.clock.timestamp import EPOCH_MAX, LARGEST, LOGICAL_MAX, WALL_MS_MAX, Timestamp

NOW_MS = 1_763_643_600_000
YEAR_2071_MS = 3_187_296_000_000


class PhysicalClock:
    def __init__(self, ms: int = NOW_MS) -> None:
        self.ms = ms

    def __call__(self) -> int:
        return self.ms


def test_a_visit_to_the_year_2071_ends_with_a_bump_of_the_epoch() -> None:
    physical = PhysicalClock()
    clock = Clock(physical)
    before = clock.tick()

    physical.ms = YEAR_2071_MS
    during = clock.tick()
    assert during == Timestamp(0, YEAR_2071_MS, 0)

    physical.ms = NOW_MS + 10
    after = [clock.tick() for _ in range(3)]
    assert before < during < after[0] < after[1] < after[2]
    assert {ts.wall_ms for ts in after} == {YEAR_2071_MS}
    assert clock.ahead_ms == YEAR_2071_MS - NOW_MS - 10

    bumped = clock.first_of(1)
    clock.observe_log(bumped)
    assert bumped == Timestamp(1, NOW_MS + 10, 0) > after[-1]
    assert clock.tick() == Timestamp(1, NOW_MS + 10, 1)
    physical.ms += 1
    assert clock.tick() == Timestamp(1, NOW_MS + 11, 0)
    assert clock.ahead_ms == 0


def test_a_restart_goes_on_above_the_log_though_the_clock_was_set_back() -> None:
    physical = PhysicalClock()
    last = Clock(physical).tick()
    physical.ms -= 3_600_000
    restarted = Clock(physical, last=last)
    assert restarted.tick() == last.next()
    assert restarted.ahead_ms == 3_600_000


def test_a_peer_in_the_year_2071_is_refused_and_changes_nothing() -> None:
    clock = Clock(PhysicalClock(), last=Timestamp(0, NOW_MS, 7))
    with pytest.raises(ClockOutOfBounds) as refused:
        clock.update(Timestamp(0, YEAR_2071_MS, 0))
    assert (refused.value.ahead_ms, refused.value.limit_ms) == (YEAR_2071_MS - NOW_MS, 250)
    assert clock.last == Timestamp(0, NOW_MS, 7)


def test_a_peer_ahead_within_the_bound_moves_the_clock() -> None:
    clock = Clock(PhysicalClock(), max_offset_ms=250)
    clock.update(Timestamp(0, NOW_MS + 250, 9))
    assert clock.tick() == Timestamp(0, NOW_MS + 250, 10)
    with pytest.raises(ClockOutOfBounds):
        clock.update(Timestamp(0, NOW_MS + 251, 0))


def test_a_peer_of_a_later_epoch_is_refused_until_the_log_says_so() -> None:
    clock = Clock(PhysicalClock())
    later = Timestamp(1, NOW_MS, 0)
    with pytest.raises(ClockOutOfBounds, match=r"is of epoch 1, this node is in epoch 0") as refused:
        clock.update(later)
    returned = from_metadata(refused.value.reason, to_metadata(refused.value))
    assert str(returned) == str(refused.value)
    clock.observe_log(later)
    clock.update(later.next())
    assert clock.tick() == Timestamp(1, NOW_MS, 2)


def test_what_the_log_decided_is_exempt_from_the_bound_and_so_are_peers_at_that_wall_time() -> None:
    clock = Clock(PhysicalClock())
    clock.observe_log(Timestamp(0, YEAR_2071_MS, 3))
    clock.update(Timestamp(0, YEAR_2071_MS, 5))
    assert clock.tick() == Timestamp(0, YEAR_2071_MS, 6)
    with pytest.raises(ClockOutOfBounds):
        clock.update(Timestamp(0, YEAR_2071_MS + 1, 0))


def test_a_read_is_at_or_above_all_writes_and_below_every_later_one() -> None:
    physical = PhysicalClock()
    clock = Clock(physical)
    write = clock.tick()
    assert clock.now() == write
    physical.ms += 5
    read = clock.now()
    assert read == Timestamp(0, NOW_MS + 5, 0)
    physical.ms -= 1000
    assert clock.now() == read
    assert clock.tick() > read


def test_a_full_millisecond_overflows_into_the_next_and_a_full_epoch_refuses() -> None:
    clock = Clock(PhysicalClock(), last=Timestamp(0, NOW_MS, LOGICAL_MAX))
    assert clock.tick() == Timestamp(0, NOW_MS + 1, 0)
    full = Clock(PhysicalClock(), last=Timestamp(0, WALL_MS_MAX, LOGICAL_MAX))
    with pytest.raises(ClockOutOfBounds, match="epoch 0 is used up"):
        full.tick()
    assert full.now() == Timestamp(0, WALL_MS_MAX, LOGICAL_MAX)
    assert full.first_of(1) == Timestamp(1, NOW_MS, 0)


def test_the_last_epoch_has_no_next() -> None:
    clock = Clock(PhysicalClock(), last=LARGEST)
    with pytest.raises(InvalidArgument, match=f"{EPOCH_MAX} is the last one"):
        clock.first_of(EPOCH_MAX + 1)
    assert clock.last == LARGEST


@pytest.mark.parametrize(("reading", "used"), [(-1, 0), (1 << 60, PHYSICAL_MS_MAX)])
def test_a_physical_clock_outside_of_the_calendar_is_taken_as_its_nearest_end(reading: int, used: int) -> None:
    clock = Clock(PhysicalClock(reading))
    assert clock.now().wall_ms == used
    assert clock.tick().as_datetime().year in (1970, 9999)


def test_a_negative_bound_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="max_offset_ms: must not be negative"):
        Clock(PhysicalClock(), max_offset_ms=-1)
