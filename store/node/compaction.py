"""When the log may drop what is applied: now and then, and not what a member that gets a snapshot will ask for next."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from cortado.raft.log import Ready, ReplicatedLog

# A member that brings and installs a snapshot for longer than so much is written needs another one then.
HELD_BYTES_MAX: Final = 256 << 20


class Compaction:
    """Counts what is applied and stored; the log itself decides what it keeps for members that are a little behind."""

    def __init__(self, log: ReplicatedLog, *, entries: int, bytes: int, applied_index: int) -> None:
        """The log is asked each time so many ``entries`` were applied, or so many ``bytes`` of them stored."""
        self._log = log
        self._entries = entries
        self._bytes = bytes
        self._last_index = applied_index
        self._stored_bytes = 0
        self._held_bytes = 0
        self.held_index: Callable[[], int | None] = _held_nowhere
        """Above which index the log should not drop entries: members get a snapshot up to there now."""

    def durable(self, ready: Ready, applied_index: int) -> None:
        """``ready`` is stored, and entries up to ``applied_index`` are applied."""
        log = self._log
        if len(log.configuration.members) <= 1:
            return
        self._stored_bytes += sum([len(value) for _, value in ready.writes if value is not None])
        if applied_index - self._last_index < self._entries and self._stored_bytes < self._bytes:
            return
        held_index = self.held_index()
        self._held_bytes += self._stored_bytes
        index = applied_index
        if held_index is None or self._held_bytes > HELD_BYTES_MAX:
            self._held_bytes = 0
        else:
            index = min(index, held_index)
        self.restart(applied_index)
        log.compact(index)

    def restart(self, applied_index: int) -> None:
        """Count from here."""
        self._last_index, self._stored_bytes = applied_index, 0


def _held_nowhere() -> int | None:
    """Nobody asked for entries to be kept."""
    return None
