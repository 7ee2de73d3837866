"""The bounds of one node, each with its unit and what happens past it."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from cortado.errors import InvalidArgument


@dataclass(frozen=True, slots=True)
class NodeLimits:
    """Bounds. Past the first group a caller is refused with ResourceExhausted at once; the others shape the work.

    - ``writes_max``, ``write_bytes_max``: proposals in flight, and the bytes of their requests.
    - ``reads_max``: unary reads in flight.
    - ``scans_max``: streamed scans and table checks in flight; their slices take turns on one thread.
    - ``bulk_streams_max``: bulk streams in flight; ``bulk_chunks_max``: chunks in flight on each (more simply wait).

    - ``turn_bytes_max``, ``turn_commands_max``: what one turn, so one log entry and one transaction, may hold.
    - ``command_bytes_max``: what one proposal may change; more is refused as too large. One entry of the log must be
      able to hold it.
    - ``turns_in_flight_max``: turns that are appended to the log and not applied yet. While there are so many, what
      arrives is evaluated into one more.
    - ``evaluate_slice_ms``: how long proposals are evaluated before other work of the loop gets its turn.
    - ``remember_ms``, ``remember_requests_max``, ``remember_bytes_max``: how long results of requests are remembered,
      and how many and how much of them at most.
    - ``ceiling_ahead_ms``: how far a read ahead of the log raises the replicated ceiling above itself.
    """

    writes_max: int = 8_192
    write_bytes_max: int = 64 << 20
    reads_max: int = 2_048
    scans_max: int = 64
    bulk_streams_max: int = 64
    bulk_chunks_max: int = 16

    turn_bytes_max: int = 4 << 20
    turn_commands_max: int = 2_048
    command_bytes_max: int = 5 << 20
    turns_in_flight_max: int = 16
    evaluate_slice_ms: int = 5
    remember_ms: int = 600_000
    remember_requests_max: int = 200_000
    remember_bytes_max: int = 64 << 20
    ceiling_ahead_ms: int = 250

    def check(self) -> None:
        """Raises InvalidArgument with the field, the value and the bound."""
        for each in dataclasses.fields(self):
            check_bound(f"limits.{each.name}", getattr(self, each.name), 1, 1 << 40)


def check_bound(field: str, value: int, low: int, high: int) -> None:
    """Raises InvalidArgument unless ``low <= value <= high``."""
    if not low <= value <= high:
        raise InvalidArgument(field, f"must be between {low} and {high}", str(value))
