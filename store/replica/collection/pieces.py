"""The places that may have garbage: a group's keys in pieces, and of each since when something was written there.

If little is overwritten, a pass over everything would cost more than it finds. So each piece remembers the first write
since it was last looked at. Once the safepoint is well above that, it is due::

    piece        [..  |  b..  |  f..  |  k..  ]
    written from  -      @70     -       @12         safepoint 40: the last one is due

A new leader knows nothing: one piece, due. Pieces are divided as passes find how much lies in them.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Final

from cortado.store.clock.timestamp import LARGEST, ZERO, Timestamp
from cortado.store.collection.safepoints import OF_THE_CLUSTER
from cortado.store.keys.keyspace import META_SPACE, TABLE_SPACE, meta_range, table_range
from cortado.store.mvcc.versions import Item

PIECE_VERSIONS: Final = 50_000
"""A piece is divided after this many versions."""
PIECES_MAX: Final = 10_000

_SAFEPOINTS: Final = meta_range("gc")[0]

# If an entry spans several pieces, mark the piece of every 16th key.
_SAMPLED: Final = 16


@dataclass(slots=True)
class Piece:
    """Stored keys from ``start`` to the next piece's. ``written_from`` is None if nothing was written since it was
    looked at, and no garbage will come of the rest. It lies in the future if all later garbage has to expire first.

    ``loose`` is which part of its versions was removed since the rest of them was packed, as far as this leader knows.
    """

    start: bytes
    written_from: Timestamp | None
    loose: float = 0.0

    def was_written_by(self, below: Timestamp) -> bool:
        """Return whether something is garbage there, once versions below that are collected; below ZERO nothing is."""
        return self.written_from is not None and below > ZERO and self.written_from <= below


class Pieces:
    """One leader's. On the loop."""

    def __init__(self, within: tuple[bytes, bytes], table_ids: Iterable[int]) -> None:
        """``within`` is the range of the group's keys. ``table_ids`` have safepoints of their own: no piece is of
        several safepoints."""
        first, self._end = within
        bounds = {META_SPACE, TABLE_SPACE, *chain(*OF_THE_CLUSTER, *map(table_range, table_ids))}
        self._starts: list[bytes] = [first, *sorted(each for each in bounds if first < each < self._end)]
        self._pieces = [Piece(start, ZERO) for start in self._starts]

    def __len__(self) -> int:
        return len(self._pieces)

    def wrote(self, items: Sequence[Item], ts: Timestamp) -> None:
        """An entry was applied: its stored items, ascending; ``ts`` is at or below each of its commits."""
        first, last = self._place(items[0][0]), self._place(items[-1][0])
        self._mark(first, ts)
        if last != first:
            self._mark(last, ts)
            for key, _ in items[_SAMPLED:-1:_SAMPLED]:
                self._mark(self._place(key), ts)

    def due(self, below: Callable[[Piece], Timestamp], waits_ms: float) -> Piece | None:
        """Return the one that was written longest ago, of those that were written so long before the time ``below``
        which versions are collected there."""
        found, oldest = None, LARGEST
        for each in self._pieces:
            if each.written_from is None or each.written_from >= oldest:
                continue
            until = below(each)
            if waits_ms:
                until = Timestamp(until.epoch, max(0, until.wall_ms - int(waits_ms)), 0)
            if each.was_written_by(until):
                found, oldest = each, each.written_from
        return found

    def pending(self, ever_below: Callable[[Piece], Timestamp]) -> int:
        """Return how many are to be looked at, now or later: ``ever_below`` is as far as versions may ever be collected
        there.

        That of the safepoints does not count. Whenever they rise they leave an old version there, which goes when they
        rise for something else.
        """
        written = [each for each in self._pieces if each.written_from is not None and each.start != _SAFEPOINTS]
        return sum(each.was_written_by(ever_below(each)) for each in written)

    def end_of(self, piece: Piece) -> bytes:
        place = self._place(piece.start)
        return self._starts[place + 1] if place + 1 < len(self._starts) else self._end

    def divide(self, piece: Piece, start: bytes) -> Piece:
        """Return the rest of ``piece``, from ``start`` on, as one of its own; or the same if there are enough."""
        if len(self._pieces) >= PIECES_MAX:
            return piece
        place = self._place(piece.start) + 1
        rest = Piece(start, piece.written_from, piece.loose)
        self._pieces.insert(place, rest)
        self._starts.insert(place, start)
        return rest

    def mark(self, piece: Piece, ts: Timestamp | None) -> None:
        """Something was or will be garbage there from ``ts`` on; None: nothing."""
        if ts is not None and (piece.written_from is None or ts < piece.written_from):
            piece.written_from = ts

    def _place(self, key: bytes) -> int:
        return bisect_right(self._starts, key) - 1

    def _mark(self, place: int, ts: Timestamp) -> None:
        self.mark(self._pieces[place], ts)
