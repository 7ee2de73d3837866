"""The groups of a run: one with all keys, or two that divide the keys, on the same hosts.

Both groups share everything of a host: its process, log files, data, clock and connections. The second one has the
pairs of a namespace of its own and nothing in ``m``. The first one has all other keys.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Final, TypeAlias

from cortado.store.engine.interface import ABOVE_KEYS, Space
from cortado.store.keys.groups import SEGMENT_BYTES
from cortado.store.keys.keyspace import namespace_range
from cortado.store.replica.group_range import FIRST_KEY, META_GROUP, GroupRange

Groups: TypeAlias = Sequence[GroupRange]

META_ID: Final = META_GROUP.group_id
NAMESPACE: Final = "sim"
SECOND_NAMESPACE: Final = "rim"
_BOUND: Final = namespace_range(NAMESPACE)[0]
assert namespace_range(SECOND_NAMESPACE)[0] < _BOUND

ONE_GROUP: Final[Groups] = (META_GROUP,)
TWO_GROUPS: Final[Groups] = (
    replace(META_GROUP, data=(_BOUND, ABOVE_KEYS)),
    GroupRange(2, (FIRST_KEY, _BOUND), (2).to_bytes(SEGMENT_BYTES)),
)


def namespace_of(of: GroupRange) -> str:
    """Return the namespace of the pairs that the group's clients write."""
    return NAMESPACE if of.holds_meta else SECOND_NAMESPACE


def group_of(groups: Groups, space: Space, key: bytes) -> int:
    """Return the id of the group that holds a stored item; 0 if none does."""
    for each in groups:
        for of, start, end in each.spaces:
            if of is space and start <= key < end:
                return each.group_id
    return 0


def any_group(groups: Groups, source: random.Random) -> int:
    """Return the id of one of the groups. One alone is no draw."""
    return (groups[0] if len(groups) == 1 else source.choice(groups)).group_id
