"""The range of a group: the ranges of each space that its snapshot copies, and that an installation replaces."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from cortado.store.engine.interface import ABOVE_KEYS, Space
from cortado.store.keys.codec import successor_of_prefix
from cortado.store.mvcc.damage import SEGMENT
from cortado.store.node.snapshots.marker import applied_key

FIRST_KEY: Final = b"\x00"


@dataclass(frozen=True, slots=True)
class GroupRange:
    """``data`` is the half-open range of engine keys that the group holds, ``requests`` that of its remembered
    requests; by default there is one group, with all."""

    group_id: int
    data: tuple[bytes, bytes] = (FIRST_KEY, ABOVE_KEYS)
    requests: tuple[bytes, bytes] = (SEGMENT, successor_of_prefix(SEGMENT))

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

    def bounds(self, space: Space) -> tuple[bytes, bytes]:
        """Return the range of one space."""
        return next((start, end) for each, start, end in self.spaces if each is space)
