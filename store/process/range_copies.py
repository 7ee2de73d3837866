"""A copy of a range of stored keys, as one node asks another for it to repair its own.

:mod:`cortado.store.replica.repair.ranges` makes the copies, and puts them in the place of damaged items.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass
from itertools import pairwise

from cortado.errors import DataLoss
from cortado.store.clock.timestamp import Timestamp
from cortado.store.engine.interface import Space
from cortado.store.mvcc.damage import damaged_keys, item_text
from cortado.store.mvcc.versions import Item


@dataclass(frozen=True, slots=True)
class Ask:
    """A range of stored keys, ``[start, end)``."""

    space: Space
    start: bytes
    end: bytes


@dataclass(frozen=True, slots=True)
class Answer:
    """A member's items in ``[ask.start, end)``, after it has applied everything up to ``index``, at ``last_ts``, and
    forgotten requests below ``request_floor``.

    ``items`` have right checksums; ``damaged`` are keys of others, or out of their place. Of the damaged,
    ``right_keys`` are as they were written. ``end`` is the ask's, or lies before it if more was there than fits.

    If several answers were joined, ``index`` is the lowest of theirs, and ``needed_index`` the highest: a replica that
    has applied less can use none of it.
    """

    index: int
    last_ts: Timestamp
    request_floor: bytes
    items: Sequence[Item]
    damaged: Sequence[bytes]
    end: bytes
    right_keys: Set[bytes] = frozenset()
    needed_index: int = 0

    @property
    def size_bytes(self) -> int:
        return sum(len(key) + len(value) for key, value in self.items) + sum(map(len, self.damaged))

    def joined(self, more: Answer) -> Answer:
        """Return this answer together with the same member's next one, from ``end`` on."""
        return Answer(
            min(self.index, more.index),
            min(self.last_ts, more.last_ts),
            # If it has risen in between, it differs from this replica's, which tells.
            self.request_floor,
            [*self.items, *more.items],
            [*self.damaged, *more.damaged],
            more.end,
            self.right_keys | more.right_keys,
            max(self.index, self.needed_index, more.index),
        )

    def check(self, ask: Ask) -> None:
        """Raise DataLoss if this cannot be an answer to ``ask``: stored items are never exchanged for less."""
        keys = [key for key, _ in self.items]
        in_order = all(before < after for before, after in pairwise(keys))
        inside = not keys or (ask.start <= keys[0] and keys[-1] < self.end)
        if not in_order or not inside or not ask.start < self.end <= ask.end:
            raise DataLoss("another member's copy", "its keys are not in the range that was asked for")
        wrong = damaged_keys(keys, [value for _, value in self.items])
        if wrong:
            raise DataLoss(item_text(ask.space, wrong[0]), "another member's copy has a wrong checksum too")
