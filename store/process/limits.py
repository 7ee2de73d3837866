"""The bounds of one node, each with its unit and its effect."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from cortado.errors import InvalidArgument

REQUESTS_BYTES_MIN: Final = 128 << 20
"""The least that must be left for requests beside entries: a part of it holds the largest one."""


COMMAND_BYTES_MIN: Final = 5 << 20
"""The least ``command_bytes_max`` of a server. With one write the leader puts a piece of a large transaction in its
place, removes garbage, or builds some of an index: with less, none of these would ever end."""


@dataclass(frozen=True, slots=True)
class NodeLimits:
    """Bounds. Past the first group a caller is refused with ResourceExhausted at once; the others shape the work.

    - ``in_flight_bytes_max``: about what everything in flight may hold in memory, see
      :mod:`cortado.store.process.budget`. Calls past it are refused; chunks of bulk streams wait.
    - ``kept_bytes_max``: how much of it may hold columns of rows for later aggregates, while nothing else takes it.
    - ``writes_max``, ``write_bytes_max``: proposals in flight, and the bytes of their requests.
    - ``reads_max``: unary reads in flight.
    - ``scans_max``: streamed scans and table checks in flight; their slices take turns on one thread.
    - ``bulk_streams_max``: bulk streams in flight; ``bulk_chunks_max``: chunks in flight on each (more simply wait).

    - ``batch_bytes_max``, ``batch_commands_max``: the most that one batch, so one entry and one transaction, may hold.
    - ``command_bytes_max``: the most that one proposal may change; more is refused as too large. One log entry must be
      able to hold it.
    - ``entries_in_flight_max``, ``entries_in_flight_bytes_max``: entries that are appended to the log and not applied
      yet, and the bytes that they write. At the bound, arriving writes are evaluated into one more.
    - ``held_bytes_max``: how long the log may become for a member that is brought a snapshot and the entries behind it.
    - ``evaluate_slice_ms``: how long proposals are evaluated before other work of the loop goes on.
    - ``remember_ms``, ``remember_requests_max``, ``remember_bytes_max``: how long results of requests are remembered,
      and how many and how much of them at most.
    - ``ceiling_ahead_ms``: how far a read ahead of the log raises the replicated ceiling above itself.

    - ``walk_ms``: how long stored data is verified at a start, before anything is served.
    - ``examined_percent``: of a hundred entries, how many have their reads examined by followers, beside
      one entry in 50 ms.
    - ``patrol_ms``: the time within which all stored data is verified, again and again.

    - ``transaction_operations_max``, ``transaction_bytes_max``: the most that one commit may hold, and
      ``footprint_keys_max``, ``footprint_ranges_max``: how many of its reads it may validate.

    - ``watches_max``: watches open at once; more are refused, as in the first group.
    - ``watch_queue_events_max``, ``watch_queue_bytes_max``: changes that wait to be sent to one watch;
      ``watch_bytes_max``: to all. Past it a watch gives its queue up, and catches up from the engine later.
    - ``watch_recent_entries_max``, ``watch_recent_bytes_max``: entries of the log whose changes are kept in memory, so
      that a watch returning after a moment need not search the engine.
    - ``watch_passes_max``: watches that search the engine at once, more wait; ``watch_pass_events_max``: how many
      changes one of them keeps in memory, more take several passes.
    - ``watch_close_ms``: the time after the last write after which a leader with watches writes an entry that resolves
      the time since then.
    - ``watch_leaderless_ms``: the time without a known leader after which watches are ended, to go on at another node.
    """

    in_flight_bytes_max: int = 512 << 20
    kept_bytes_max: int = 128 << 20
    writes_max: int = 8_192
    write_bytes_max: int = 64 << 20
    reads_max: int = 2_048
    scans_max: int = 64
    bulk_streams_max: int = 64
    bulk_chunks_max: int = 16

    batch_bytes_max: int = 4 << 20
    batch_commands_max: int = 2_048
    command_bytes_max: int = 5 << 20
    entries_in_flight_max: int = 16
    entries_in_flight_bytes_max: int = 32 << 20
    held_bytes_max: int = 256 << 20
    evaluate_slice_ms: int = 5
    remember_ms: int = 600_000
    remember_requests_max: int = 200_000
    remember_bytes_max: int = 64 << 20
    ceiling_ahead_ms: int = 250
    walk_ms: int = 3_000
    examined_percent: int = 1
    patrol_ms: int = 3_600_000

    transaction_operations_max: int = 10_000
    transaction_bytes_max: int = 4 << 20
    footprint_keys_max: int = 20_000
    footprint_ranges_max: int = 1_000

    watches_max: int = 4_096
    watch_queue_events_max: int = 16_384
    watch_queue_bytes_max: int = 4 << 20
    watch_bytes_max: int = 64 << 20
    watch_recent_entries_max: int = 4_096
    watch_recent_bytes_max: int = 8 << 20
    watch_passes_max: int = 4
    watch_pass_events_max: int = 65_536
    watch_close_ms: int = 1_000
    watch_leaderless_ms: int = 5_000

    def check(self, entry_bytes_max: int) -> None:
        """Raise InvalidArgument for limits that do not fit each other, or an entry of the log."""
        for name in ("command_bytes_max", "batch_bytes_max"):
            check_bound(f"limits.{name}", getattr(self, name), 1, entry_bytes_max)
        check_bound(
            "limits.entries_in_flight_bytes_max", self.entries_in_flight_bytes_max, self.entry_bytes_max, 1 << 40
        )
        check_bound("limits.in_flight_bytes_max", self.in_flight_bytes_max, self.in_flight_bytes_min, 1 << 40)

    @property
    def entry_bytes_max(self) -> int:
        """Return the most that one batch may write: several commands, or a single one that is larger."""
        return max(self.batch_bytes_max, self.command_bytes_max)

    @property
    def entries_bytes_set_aside(self) -> int:
        """Return the part of ``in_flight_bytes_max`` that entries may hold: those in flight, the open batch, and the
        head of the next, each as keys and values, encoded, and on its way into one of the two stores."""
        return 3 * (self.entries_in_flight_bytes_max + 2 * self.entry_bytes_max)

    @property
    def in_flight_bytes_min(self) -> int:
        """Return the least that ``in_flight_bytes_max`` may be."""
        return self.entries_bytes_set_aside + REQUESTS_BYTES_MIN


def check_bound(field: str, value: int, low: int, high: int) -> None:
    """Raise InvalidArgument unless ``low <= value <= high``."""
    if not low <= value <= high:
        raise InvalidArgument(field, f"must be between {low} and {high}", str(value))
