"""The range of a group: the parts of each space that it holds, that its snapshot copies, and that an installation
replaces. No other module says which groups there are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from cortado.store.engine.interface import ABOVE_KEYS, Space
from cortado.store.keys.codec import successor_of_prefix
from cortado.store.keys.groups import SEGMENT_BYTES
from cortado.store.keys.keyspace import META_SPACE
from cortado.store.replica.snapshots.marker import applied_key

FIRST_KEY: Final = b"\x00"


@dataclass(frozen=True, slots=True)
class GroupRange:
    """``data`` is the half-open range of engine keys that the group holds; its remembered requests have the prefix
    ``segment``."""

    group_id: int
    data: tuple[bytes, bytes]
    segment: bytes

    @property
    def holds_meta(self) -> bool:
        """Return whether the catalogue and the cluster's state are the group's."""
        return self.data[0] <= META_SPACE < self.data[1]

    @property
    def requests(self) -> tuple[bytes, bytes]:
        """Return the range of its remembered requests."""
        return self.segment, successor_of_prefix(self.segment)

    @property
    def applied(self) -> tuple[bytes, bytes]:
        key = applied_key(self.group_id)
        return key, key + b"\x00"

    @property
    def spaces(self) -> tuple[tuple[Space, bytes, bytes], ...]:
        """All of it, in the order of a snapshot file; the applied state comes last."""
        return (
            (Space.DATA, *self.data),
            (Space.REQUESTS, *self.requests),
            (Space.META, *self.applied),
        )

    def overlaps(self, space: Space, start: bytes, end: bytes) -> bool:
        """Return whether keys of ``[start, end)`` may be the group's; without ``end`` the range has no upper bound."""
        bounds = [(low, high) for each, low, high in self.spaces if each is space]
        return any(start < high and (not end or low < end) for low, high in bounds)

    def bounds(self, space: Space) -> tuple[bytes, bytes]:
        """Return the range of one space."""
        return next((start, end) for each, start, end in self.spaces if each is space)


META_GROUP: Final = GroupRange(1, (FIRST_KEY, ABOVE_KEYS), (1).to_bytes(SEGMENT_BYTES))
"""The group that holds the catalogue and the members. It holds all keys so far, since there is no other."""
