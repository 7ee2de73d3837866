"""What belongs to a group: the ranges of each space that its snapshot copies, and that an installation replaces."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from cortado.store.engine.interface import ABOVE_KEYS, Space
from cortado.store.mvcc.damage import GROUP_BYTES
from cortado.store.node.snapshots.marker import applied_key

FIRST_KEY: Final = b"\x00"


@dataclass(frozen=True, slots=True)
class GroupRange:
    """``data`` is the half-open range of engine keys that the group holds; by default there is one group, with all."""

    group_id: int
    data: tuple[bytes, bytes] = (FIRST_KEY, ABOVE_KEYS)

    @property
    def requests(self) -> tuple[bytes, bytes]:
        return self.group_id.to_bytes(GROUP_BYTES), (self.group_id + 1).to_bytes(GROUP_BYTES)

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
        """The range of one space."""
        return next((start, end) for each, start, end in self.spaces if each is space)
