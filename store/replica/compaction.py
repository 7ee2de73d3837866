"""When the log may drop applied entries: now and then, and not those that a member catching up will ask for next.

It holds the entries above a snapshot that is being made or brought to a member, and then those that the member still
lacks, up to ``held_bytes_max``. The length of the log held for members slows the leader down.

A member that fell behind is brought a snapshot, and then the writes since. The log is held that long, in memory and on
the disk, so its length is bounded. Past the bound it is dropped, and the member needs another snapshot, which takes as
long again. Under steady load it would never catch up. So the leader slows down::

    held for members    0 ─── begins ──────────────────────── held_bytes_max ──► dropped: another try
    bytes a second        any    64 MiB ... ever less ... 2 MiB

The leader finds the rate at which a slow member keeps up, since the held log stops growing there. The rate is bounded:
never slower than the last of these, which halves with each failed try. After ``TRIES_MAX`` the leader gives up slowing
down, for a member that cannot keep up at all must not hold the others.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Sequence
from typing import Final

from cortado.raft.group import RaftLog
from cortado.raft.log import PeerProgress
from cortado.raft.settings import RaftSettings

_LOG: Final = logging.getLogger(__name__)

FASTEST_S: Final = 4.0
"""At the rate at which slowing begins, the bound of the held log is filled in this time."""
SLOWEST_S: Final = 128.0
"""The same at the slowest rate."""
TRIES_MAX: Final = 3
DELAY_MS_MAX: Final = 2_000.0
"""No entry waits longer, however large the one before it was."""
BURST_MS: Final = 250.0
"""A batch holds about the bytes that may be written in this time."""

# The log is compacted after this part of its retained length was added.
_PART: Final = 8
# The usual length of a log: the retained entries, and two such parts more.
_USUAL_PARTS: Final = 10
# If there is no other member, applied entries are kept for no one.
_ALONE_BYTES: Final = 1 << 20
# If the disk is nearly full, only this part of the usual retention is kept.
_SCARCE_PART: Final = 64
# A member that lacks no more has caught up: a healthy member has this many on their way.
_NEAR_ENTRIES: Final = 16
# An entry's memory beside its bytes.
_ENTRY_BYTES: Final = 512


def append_rate(held_bytes: int, begins_bytes: int, held_bytes_max: int, failed_tries: int) -> float:
    """Return the bytes a second that may be appended; infinite if there is no need to slow down."""
    if held_bytes <= begins_bytes or failed_tries > TRIES_MAX:
        return math.inf
    share = min((held_bytes - begins_bytes) / max(held_bytes_max - begins_bytes, 1), 1.0)
    fastest, slowest = held_bytes_max / FASTEST_S, held_bytes_max / SLOWEST_S / 2**failed_tries
    return float(fastest * (slowest / fastest) ** share)


class Pacing:
    """Keeps the leader's appends to a rate. Times are monotonic milliseconds."""

    def __init__(self) -> None:
        self.rate = math.inf
        """Bytes a second."""
        self.delayed_ms = 0.0
        """How long appending was put off, since the start."""
        self._due_ms = -math.inf

    def appended(self, size_bytes: int, now_ms: float) -> None:
        """Note that ``size_bytes`` were appended: the next entry's wait follows from it."""
        delay_ms = 0.0 if math.isinf(self.rate) else min(size_bytes / self.rate * 1_000, DELAY_MS_MAX)
        self.delayed_ms += delay_ms
        self._due_ms = now_ms + delay_ms

    def due_ms(self, now_ms: float) -> float:
        """Return when the next entry may be appended; ``now_ms`` if at once."""
        return now_ms if math.isinf(self.rate) else max(self._due_ms, now_ms)

    def batch_bytes(self, batch_bytes_max: int) -> int:
        """Return the most that one batch should hold."""
        return batch_bytes_max if math.isinf(self.rate) else min(batch_bytes_max, int(self.rate * BURST_MS / 1_000) + 1)


class Compaction:
    """Counts applied and stored entries. The log itself decides how many to keep for members a little behind."""

    def __init__(self, log: RaftLog, settings: RaftSettings, *, held_bytes_max: int, applied_index: int) -> None:
        self._log = log
        self._entries = max(settings.retain_entries // _PART, 1)
        self._bytes = max(settings.retain_bytes // _PART, 1)
        # Nothing is held for a member that was silent for longer.
        self._heard_ms = settings.election_ms_max
        self._retain_entries = settings.retain_entries
        self._scarce_bytes = settings.retain_bytes // _SCARCE_PART
        # A log is no longer than this while nothing is held for a member.
        self._begins_bytes = max(settings.retain_bytes * _USUAL_PARTS // _PART, held_bytes_max // _PART)
        self._held_bytes_max = max(held_bytes_max, 2 * self._begins_bytes)
        self._last_index = applied_index
        self._stored_bytes = 0
        self._failed_tries = 0
        # Members that needed a snapshot, until they are near the end of the log.
        self._catching_up: set[str] = set()
        self.pacing = Pacing()
        self.slowed: str = ""
        """Why, and how far, writes are slowed; empty if they are not."""
        self.held_index: Callable[[], int | None] = _held_nowhere
        """The index above which the log should not drop entries: members get a snapshot up to there now."""

    def durable(self, size_bytes: int, applied_index: int) -> None:
        """Note that ``size_bytes`` more are stored, and entries up to ``applied_index`` are applied."""
        log = self._log
        self._stored_bytes += size_bytes
        is_long = self._log_bytes() > self._begins_bytes
        due_bytes = self._bytes if len(log.configuration.members) > 1 else min(self._bytes, _ALONE_BYTES)
        is_due = applied_index - self._last_index >= self._entries or self._stored_bytes >= due_bytes
        if is_due or is_long:
            self._compact(applied_index)
        if is_long or self.slowed or self._failed_tries:
            self._pace(log.progress if is_long else [])

    def make_room(self, applied_index: int) -> None:
        """Shorten the log on a nearly full disk, but keep all entries that answering members lack."""
        window = self._log.window
        if window.size[1] > 2 * self._scarce_bytes:
            needed = [each.match_index for each in self._log.progress if self._is_heard(each)]
            held_index = self.held_index()
            if held_index is not None:
                needed.append(held_index)
            window.compact(min([applied_index, *needed]), retain_bytes=self._scarce_bytes)

    def restart(self, applied_index: int) -> None:
        """Count from here on."""
        self._last_index, self._stored_bytes = applied_index, 0

    def _compact(self, applied_index: int) -> None:
        held_index = self._lowest_needed()
        index = applied_index if held_index is None else min(applied_index, held_index)
        if index < applied_index and self._log_bytes() > self._held_bytes_max:
            self._failed_tries += 1
            _LOG.warning(
                "the log is dropped up to entry %d, though a member still lacks entry %d: it needs another snapshot%s",
                *(applied_index, index + 1),
                "; writes are not slowed for it any longer" if self._failed_tries > TRIES_MAX else "",
            )
            index = applied_index
        self.restart(applied_index)
        self._log.window.compact(index)

    def _lowest_needed(self) -> int | None:
        """Return the last index that every answering, catching-up member and every snapshot under way has."""
        last_index = self._log.last[0]
        needed = []
        for each in self._log.progress:
            node_id = each.node_id
            if each.needs_snapshot:
                self._catching_up.add(node_id)
            elif last_index - each.match_index <= _NEAR_ENTRIES:
                self._catching_up.discard(node_id)
            elif node_id in self._catching_up and self._is_heard(each):
                needed.append(each.match_index)
        held_index = self.held_index()
        return min(needed if held_index is None else [*needed, held_index], default=None)

    def _log_bytes(self) -> int:
        count, size_bytes = self._log.window.size
        return size_bytes + _ENTRY_BYTES * max(count - self._retain_entries, 0)

    def _pace(self, members: Sequence[PeerProgress]) -> None:
        """Slow down if the log has become long for a member. ``members`` is empty if it has not."""
        behind = [each for each in members if self._is_heard(each) and each.node_id in self._catching_up]
        is_held = bool(behind) or self.held_index() is not None
        held_bytes = self._log_bytes() if is_held else 0
        rate = append_rate(held_bytes, self._begins_bytes, self._held_bytes_max, self._failed_tries)
        if not self._log.is_leader:
            rate = math.inf
        names = ", ".join(each.node_id for each in behind) or "a member"
        was_slowed, self.pacing.rate = bool(self.slowed), rate
        self.slowed = "" if math.isinf(rate) else f"to {rate / (1 << 20):.1f} MiB/s, until {names} has caught up"
        if self.slowed and not was_slowed:
            _LOG.warning("writes are slowed %s", self.slowed)
        elif was_slowed and not self.slowed:
            _LOG.info("writes are not slowed any longer")
        if not held_bytes and not self._log.window.snapshot_needs:
            self._failed_tries = 0

    def _is_heard(self, member: PeerProgress) -> bool:
        return member.last_heard_ms <= self._heard_ms


def _held_nowhere() -> int | None:
    """No entries are held."""
    return None
