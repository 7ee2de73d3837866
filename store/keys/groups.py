"""What the keys of one engine say of groups of replicas: the widths of their ids.

An item of META that belongs to a group ends with the group's id. A remembered request stands under its segment and its
id::

    META      applied | group id 4
    REQUESTS  segment 4 | request id 20

A group's range (:mod:`cortado.store.replica.group_range`) says which ids and segments there are.
"""

from __future__ import annotations

from typing import Final

GROUP_BYTES: Final = 4
SEGMENT_BYTES: Final = 4


def request_id_of(key: bytes) -> bytes:
    """Return the id of a request from the key of its record."""
    return key[SEGMENT_BYTES:]
