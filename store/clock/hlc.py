"""The hybrid logical clock: timestamps that never go back, and stay close to the physical clock.

::

    physical clock ──► wall_ms ┐
    update(remote) ──────────► ├─► last ──► tick():    strictly above everything issued and seen
    observe_log(ts) ─────────► ┘           now():     at or above it, and below every later tick
                                           reading(): the same, and nothing promised

While the physical clock is ahead of the last timestamp, the wall part follows it and the logical part is 0. While it
stands still or is behind, the wall part stays and the logical part counts. So time may be read from a clock that jumps,
and order does not depend on it.

Hazards, each with its guard:

- *A physical clock that goes back* (an operator, a virtual machine resumed, another host after a restart). The wall
  part waits until it is overtaken. Over a restart this needs ``last``: the largest timestamp in the log.
- *A remote clock that is wrong.* A message from a host set to the year 2071 would carry every clock of the cluster
  there, one after the other. :meth:`Clock.update` moves the wall part at most ``max_offset_ms`` ahead of the physical
  clock, and refuses more with ClockOutOfBounds, changing nothing.
- *The local clock that is wrong.* Nothing here can know better; it is followed. The guard stands before this clock
  (:mod:`cortado.store.clock.host_time`). Its timestamps are in the log, and committed ones are true:
  :meth:`Clock.observe_log` is exempt from bounds, or a replica could not apply its own log. :attr:`Clock.ahead_ms`
  shows it once the physical clock is right again. The next epoch (:meth:`Clock.first_of`) ends it: later timestamps
  sort after every earlier one, at the true wall time.
- *A question for the time.* It moves nothing (:meth:`Clock.reading`): a node that is only asked, and may be wrong, must
  not move its clock to the time that it answers.
- *A timestamp that was given out and then forgotten.* :meth:`Clock.now` promises that every later write sorts above,
  but this promise lives in memory. A read above the last timestamp of the log is repeatable over a restart or a change
  of leader only below a durable ceiling. The node keeps that ceiling, not the clock.
- *A physical clock outside of the calendar.* Readings are taken as the nearest instant between 1970 and the end of the
  year 9999, so that every wall time that a reading caused can be shown as a date.
- *A full millisecond.* After 2^32 timestamps within one millisecond the wall part moves on by one, ahead of the
  physical clock. Only the very last millisecond of the format has no next one, and then the clock refuses: the epoch
  is an operator's decision and never moves by itself.
- *Two threads.* The clock has no lock; all calls come from the node's loop.

Source: *Logical Physical Clocks and Consistent Snapshots in Globally Distributed Databases*, Kulkarni et al. 2014;
CockroachDB's ``pkg/util/hlc`` for the bounds. The epoch is ours.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from cortado.errors import ClockOutOfBounds, InvalidArgument
from cortado.store.clock.timestamp import EPOCH_MAX, LOGICAL_MAX, WALL_MS_MAX, ZERO, Timestamp

MAX_OFFSET_MS: Final = 250
PHYSICAL_MS_MAX: Final = 253_402_300_799_999
"""The last millisecond of the year 9999."""


class Clock:
    """Issues timestamps. ``physical_ms`` reads the wall clock in milliseconds since 1970 and may jump at will."""

    def __init__(
        self, physical_ms: Callable[[], int], *, last: Timestamp = ZERO, max_offset_ms: int = MAX_OFFSET_MS
    ) -> None:
        """``last`` is the largest timestamp that may have been used: that of the log's last entry, or its ceiling."""
        if max_offset_ms < 0:
            raise InvalidArgument("max_offset_ms", "must not be negative", str(max_offset_ms))
        self._read_physical_ms = physical_ms
        self._last = last
        self._max_offset_ms = max_offset_ms

    @property
    def last(self) -> Timestamp:
        """Return the largest timestamp issued or seen. Every later :meth:`tick` is above it."""
        return self._last

    @property
    def epoch(self) -> int:
        return self._last.epoch

    @property
    def max_offset_ms(self) -> int:
        return self._max_offset_ms

    @property
    def physical_ms(self) -> int:
        """Return the physical clock, as it is used: between 0 and PHYSICAL_MS_MAX."""
        return min(max(self._read_physical_ms(), 0), PHYSICAL_MS_MAX)

    @property
    def ahead_ms(self) -> int:
        """Return how far issued time is ahead of the physical clock, 0 in good order. A bump of the epoch takes it
        back."""
        return max(self._last.wall_ms - self.physical_ms, 0)

    def reading(self) -> Timestamp:
        """Return the time for a caller that only asks: at or above every timestamp issued and seen. It promises and
        moves nothing."""
        physical_ms = self.physical_ms
        return Timestamp(self._last.epoch, physical_ms, 0) if physical_ms > self._last.wall_ms else self._last

    def now(self) -> Timestamp:
        """Issue a timestamp to read at: at or above every timestamp issued and seen, and below every later
        :meth:`tick`."""
        self._last = self.reading()
        return self._last

    def tick(self, physical_ms: int | None = None) -> Timestamp:
        """Issue a timestamp for a write: strictly above every timestamp issued and seen, in the same epoch. A caller
        that needs many in a row reads ``physical_ms`` once.

        Raises ClockOutOfBounds if the epoch has no timestamp left (the log's or a peer's was at its very end).
        """
        if physical_ms is None:
            physical_ms = self.physical_ms
        last = self._last
        if physical_ms > last.wall_ms:
            self._last = Timestamp(last.epoch, physical_ms, 0)
        elif last.logical < LOGICAL_MAX:
            self._last = Timestamp(last.epoch, last.wall_ms, last.logical + 1)
        elif last.wall_ms < WALL_MS_MAX:
            self._last = Timestamp(last.epoch, last.wall_ms + 1, 0)
        else:
            raise ClockOutOfBounds(last.wall_ms - physical_ms, self._max_offset_ms, f"epoch {last.epoch} is used up")
        return self._last

    def tick_many(self, count: int, physical_ms: int) -> Timestamp | None:
        """Issue ``count`` timestamps, at least one, for as many writes, and return the first. They differ in their
        logical part alone, and each is above every timestamp issued and seen. Returns None, and issues none, if the
        millisecond has too few left."""
        last = self._last
        if physical_ms > last.wall_ms:
            first = Timestamp(last.epoch, physical_ms, 0)
        elif last.logical + count <= LOGICAL_MAX:
            first = Timestamp(last.epoch, last.wall_ms, last.logical + 1)
        else:
            return None
        self._last = Timestamp(first.epoch, first.wall_ms, first.logical + count - 1)
        return first

    def update(self, remote: Timestamp) -> None:
        """Move forward to a timestamp that came from a peer or a client, so that later ones are above it.

        Raises ClockOutOfBounds, changing nothing, if that would take the wall part more than ``max_offset_ms`` ahead of
        the physical clock, or into an epoch that the log has not begun. A timestamp below the clock is always accepted.
        """
        if remote <= self._last:
            return
        physical_ms = self.physical_ms
        ahead_ms = remote.wall_ms - physical_ms
        if remote.epoch > self._last.epoch:
            problem = f"timestamp {remote} is of epoch {remote.epoch}, this node is in epoch {self._last.epoch}"
            raise ClockOutOfBounds(ahead_ms, self._max_offset_ms, problem)
        # A wall time that the log has reached already takes the clock nowhere new.
        if ahead_ms > self._max_offset_ms and remote.wall_ms > self._last.wall_ms:
            raise ClockOutOfBounds(ahead_ms, self._max_offset_ms)
        self._last = remote

    def observe_log(self, ts: Timestamp) -> None:
        """Move forward to a timestamp of the group's own log, even beyond the bounds: it is committed."""
        self._last = max(self._last, ts)

    def first_of(self, epoch: int) -> Timestamp:
        """Return the first timestamp of the next epoch, which begins once that is in the log. Raises
        InvalidArgument."""
        current = self._last.epoch
        if current == EPOCH_MAX:
            raise InvalidArgument("epoch", f"cannot be raised: {EPOCH_MAX} is the last one", str(epoch))
        if epoch != current + 1:
            raise InvalidArgument("epoch", f"must be {current + 1}, the one after the current epoch", str(epoch))
        return Timestamp(epoch, self.physical_ms, 0)
