"""Descriptions of damage, by which it is repaired from a replica that has the item whole.

Any reader that finds a wrong checksum (a caller's read, the background pass, a copy for a snapshot) reports it to
``VersionStore.on_damage``, on its own thread. The node repairs it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import compress
from operator import add
from typing import Self

from cortado.errors import DataLoss
from cortado.store.engine.interface import Disordered, Space
from cortado.store.keys.dump import dump
from cortado.store.keys.groups import request_id_of
from cortado.store.mvcc.versions import RESET, RESIDUE, checksum


@dataclass(frozen=True, slots=True)
class Damage:
    """Not all items of ``space`` in ``[start, end)`` are as they were written; ``what`` names them for operators.

    A range ends before the first key behind the damage that is known to be whole, and begins after the last one before
    it, if these are known; for a single key it is that key alone. Both are empty if the tree itself is damaged, so that
    the missing items are unknown.
    """

    space: Space
    start: bytes
    end: bytes
    what: str

    @classmethod
    def at(cls, space: Space, key: bytes) -> Self:
        """Return the damage of the item under ``key``, which has a wrong checksum."""
        return cls(space, key, key + b"\x00", item_text(space, key))

    @classmethod
    def of_disorder(cls, found: Disordered) -> Self:
        """Return the damage of a range in which searches may go wrong: a missing item proves nothing there."""
        where = item_text(found.space, found.start) if found.start else "the first item"
        return cls(found.space, found.start, found.end, f"{where} and the items behind it: keys are out of their order")

    @property
    def is_of_one_key(self) -> bool:
        """Nothing beside it is in doubt, as far as this tells."""
        return self.end == self.start + b"\x00"

    @classmethod
    def of_tree(cls, error: DataLoss) -> Self:
        """Return the damage of a tree that the engine could not follow."""
        return cls(Space.DATA, b"", b"", error.message())


def item_text(space: Space, key: bytes) -> str:
    """Return a stored key of the data or of the remembered requests, for people."""
    return dump(key) if space is Space.DATA else f"the remembered request {request_id_of(key).hex()}"


def damaged_keys(keys: Sequence[bytes], values: Sequence[bytes]) -> list[bytes]:
    """Return the keys of the items, of the data or of remembered requests, with a wrong checksum, in their order."""
    pieces = [RESET] * (3 * len(keys))
    pieces[0::3] = keys
    pieces[1::3] = values
    if checksum(b"".join(pieces)) == 0:
        return []
    return list(compress(keys, [checksum(each) != RESIDUE for each in map(add, keys, values)]))
