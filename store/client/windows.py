"""Windows of changes: the end of a range's next changes, and ranges to read them in parts.

::

    window = table.window(after=place, changes_max=100_000, parts=8)
    for each in window.ranges:      # here, or in as many processes
        for event in table.watch(each.start, each.end, after=place, until=window.until): ...
    place = window.until

A window is whole commits. Its content depends on the commits alone: asked for again, with its ``until``, it is the
same.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

from cortado.errors import InvalidArgument
from cortado.proto.v1 import watch_pb2
from cortado.store.client.arguments import whole
from cortado.store.client.connection import Connection
from cortado.store.client.values import At, Key, Stale, at_to_proto, key_from_proto, timestamp_of
from cortado.store.clock.timestamp import Timestamp

K = TypeVar("K")

_UINT32_MAX: Final = (1 << 32) - 1
_UINT63_MAX: Final = (1 << 63) - 1


@dataclass(frozen=True, slots=True)
class ChangedRange(Generic[K]):
    """A range ``[start, end)``, open at None, and about how many of a window's ``changes`` it has."""

    start: K | None
    end: K | None
    changes: int


@dataclass(frozen=True, slots=True)
class ChangeWindow(Generic[K]):
    """All ``changes`` of a range above the window's beginning and at or below ``until``. ``ranges`` are adjacent, in
    order, and together the range; all changes of a key are in one of them."""

    until: Timestamp
    changes: int
    ranges: tuple[ChangedRange[K], ...]


@dataclass(frozen=True, slots=True)
class WindowOptions:
    """The arguments of ``window`` that are not its range. Raises InvalidArgument."""

    after: At
    until: At
    changes_max: int | None
    bytes_max: int | None
    parts: int

    def to_proto(self) -> watch_pb2.WindowRequest:
        """Return a request without its range."""
        for name in ("after", "until"):
            if isinstance(getattr(self, name), Stale):
                raise InvalidArgument(name, "must be a Timestamp, its text, or a datetime with a time zone", "Stale")
        after = at_to_proto(self.after, "after")
        if after is None:
            raise InvalidArgument("after", "must be given: '0.0.0' for everything that is kept")
        return watch_pb2.WindowRequest(
            after=after,
            until=at_to_proto(self.until, "until"),
            changes_max=0 if self.changes_max is None else whole(self.changes_max, "changes_max", 1, _UINT32_MAX),
            bytes_max=0 if self.bytes_max is None else whole(self.bytes_max, "bytes_max", 1, _UINT63_MAX),
            parts=whole(self.parts, "parts", 1, _UINT32_MAX),
        )


async def window_of_table(
    connection: Connection, of: watch_pb2.WindowOfTable, options: WindowOptions, timeout_s: float
) -> ChangeWindow[Key]:
    """Return the next window of a table's changes."""
    request = options.to_proto()
    request.table.CopyFrom(of)
    reply = await connection.call(connection.stubs.watch.Window, request, timeout_s=timeout_s)
    bounds = [
        (
            key_from_proto(each.start) if each.HasField("start") else None,
            key_from_proto(each.end) if each.HasField("end") else None,
        )
        for each in reply.ranges
    ]
    return _window(reply, bounds)


async def window_of_pairs(
    connection: Connection, of: watch_pb2.WindowOfPairs, options: WindowOptions, timeout_s: float
) -> ChangeWindow[bytes]:
    """Return the next window of a namespace's changes."""
    request = options.to_proto()
    request.pairs.CopyFrom(of)
    reply = await connection.call(connection.stubs.watch.Window, request, timeout_s=timeout_s)
    return _window(reply, [(each.start or None, each.end or None) for each in reply.pair_ranges])


def _window(reply: Any, bounds: list[tuple[K | None, K | None]]) -> ChangeWindow[K]:
    counted = zip(bounds, reply.changes_of_ranges, strict=True)
    ranges = tuple(ChangedRange(start, end, changes) for (start, end), changes in counted)
    return ChangeWindow(timestamp_of(reply.until), reply.changes, ranges)
