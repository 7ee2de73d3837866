"""Issued timestamps never go back, under any events of the physical clock, peers, the log and restarts."""

from __future__ import annotations

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from cortado.errors import ClockOutOfBounds, InvalidArgument
from cortado.store.clock.hlc import PHYSICAL_MS_MAX, Clock
from cortado.store.clock.timestamp import EPOCH_MAX, LOGICAL_MAX, WALL_MS_MAX, ZERO, Timestamp

MAX_OFFSET_MS = 250
NOW_MS = 1_763_643_600_000
YEAR_2071_MS = 3_187_296_000_000

WALLS = st.integers(NOW_MS - 400, NOW_MS + 800) | st.sampled_from(
    [0, YEAR_2071_MS, YEAR_2071_MS + 1, PHYSICAL_MS_MAX, WALL_MS_MAX - 1, WALL_MS_MAX]
)
READINGS = WALLS | st.integers(-(1 << 60), 1 << 60)
LOGICALS = st.integers(0, 3) | st.sampled_from([LOGICAL_MAX - 1, LOGICAL_MAX])
EPOCHS = st.integers(0, 3) | st.sampled_from([EPOCH_MAX - 1, EPOCH_MAX])
TIMESTAMPS = st.builds(Timestamp, EPOCHS, WALLS, LOGICALS)


class ClockMachine(RuleBasedStateMachine):
    """One node's clock, and the log that survives it. Its twin: the largest timestamp promised, the largest logged."""

    def __init__(self) -> None:
        super().__init__()
        self.physical_ms = NOW_MS
        self.promised = ZERO
        self.logged = ZERO
        self.start()

    def start(self) -> None:
        self.clock = Clock(lambda: self.physical_ms, last=self.logged, max_offset_ms=MAX_OFFSET_MS)

    @rule(reading=READINGS)
    def the_physical_clock_jumps(self, reading: int) -> None:
        self.physical_ms = reading

    @rule(step=st.integers(0, 3))
    def the_physical_clock_runs(self, step: int) -> None:
        self.physical_ms += step

    @rule(times=st.integers(1, 4))
    def writes_are_issued(self, times: int) -> None:
        for _ in range(times):
            try:
                ts = self.clock.tick()
            except ClockOutOfBounds:
                assert (self.promised.wall_ms, self.promised.logical) == (WALL_MS_MAX, LOGICAL_MAX)
                return
            assert ts > self.promised
            assert ts.epoch == self.promised.epoch
            assert ts.wall_ms <= max(self.promised.wall_ms + 1, self.clock.physical_ms)
            self.promised = self.logged = ts

    @rule(count=st.integers(1, 4))
    def a_run_of_writes_is_issued(self, count: int) -> None:
        before, physical_ms = self.clock.last, self.clock.physical_ms
        first = self.clock.tick_many(count, physical_ms)
        if first is None:
            assert self.clock.last == before
            assert physical_ms <= before.wall_ms and before.logical + count > LOGICAL_MAX
            return
        assert first > self.promised
        last = Timestamp(first.epoch, first.wall_ms, first.logical + count - 1)
        assert self.clock.last == last and last.epoch == self.promised.epoch
        assert first.wall_ms == max(self.promised.wall_ms, physical_ms)
        self.promised = self.logged = last

    @rule()
    def a_read_is_promised(self) -> None:
        before = self.clock.now()
        assert before >= self.promised
        assert before.wall_ms == max(self.promised.wall_ms, self.clock.physical_ms)
        assert self.clock.now() == before
        self.promised = before

    @rule(remote=TIMESTAMPS)
    def a_peer_speaks(self, remote: Timestamp) -> None:
        try:
            self.clock.update(remote)
        except ClockOutOfBounds:
            assert remote > self.promised
            new_epoch = remote.epoch > self.promised.epoch
            assert new_epoch or remote.wall_ms > max(self.promised.wall_ms, self.clock.physical_ms + MAX_OFFSET_MS)
            assert self.clock.last == self.promised
            return
        self.promised = max(self.promised, remote)

    @rule(ts=TIMESTAMPS)
    def the_log_grows(self, ts: Timestamp) -> None:
        self.clock.observe_log(ts)
        self.promised = max(self.promised, ts)
        self.logged = max(self.logged, ts)

    @rule()
    def an_operator_bumps_the_epoch(self) -> None:
        following = self.promised.epoch + 1
        if following > EPOCH_MAX:
            with pytest.raises(InvalidArgument, match="65535 is the last one"):
                self.clock.first_of(following)
            return
        ts = self.clock.first_of(following)
        self.clock.observe_log(ts)
        assert ts > self.promised
        assert ts == Timestamp(self.promised.epoch + 1, self.clock.physical_ms, 0)
        assert self.clock.ahead_ms == 0
        self.promised = self.logged = ts

    @rule()
    def the_node_restarts(self) -> None:
        self.promised = self.logged
        self.start()

    @invariant()
    def the_last_timestamp_is_the_largest_promised(self) -> None:
        assert self.clock.last == self.promised


TestClock = ClockMachine.TestCase
